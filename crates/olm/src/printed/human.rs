//! Tables for the human output.

use std::collections::BTreeMap;

use gantry_catalog::graph::{By, InstalledBundleRef, UpgradeGraph, heads};
use gantry_catalog::{Catalog, Channel, OlmRelease, Package, PackageBundle, REQUIRED};
use serde_json::Value;

use gantry_core::text::{count, cut, sanitize, table};

/// The packages of several catalogs, one line each.
pub fn packages(catalogs: &[(String, Catalog)]) -> String {
    let mut rows =
        vec![["PACKAGE", "CATALOG", "DEFAULT CHANNEL", "HEAD", "CHANNELS", "BUNDLES", ""].map(str::to_owned)];
    let mut found: Vec<(&Package, &String)> = catalogs
        .iter()
        .flat_map(|(name, catalog)| catalog.packages.values().map(move |package| (package, name)))
        .collect();
    found.sort_by_key(|(package, catalog)| (&package.name, *catalog));
    for (package, catalog) in found {
        let head = package.channels.get(&package.default_channel).map(|channel| channel_heading(package, channel));
        rows.push([
            package.name.clone(),
            catalog.clone(),
            package.default_channel.clone(),
            head.unwrap_or_default(),
            package.channels.len().to_string(),
            package.bundles.len().to_string(),
            if package.deprecation("olm.package", "").is_some() { "deprecated".into() } else { String::new() },
        ]);
    }
    table(&without_one_catalog(rows, catalogs))
}

/// With a single catalog, its name is left out of the lines.
fn without_one_catalog<const N: usize>(mut rows: Vec<[String; N]>, catalogs: &[(String, Catalog)]) -> Vec<[String; N]> {
    if let [(only, _)] = catalogs {
        for row in &mut rows {
            if row[1] == *only || row[1] == "CATALOG" {
                row[1..].rotate_left(1);
                row[N - 1].clear();
            }
        }
    }
    rows
}

/// The version at the head of a channel, or the names of several heads, which is an error of the catalog.
fn channel_heading(package: &Package, channel: &Channel) -> String {
    let mut heads = heads(channel);
    if heads.len() > 1 {
        let order: Vec<&str> = package.by_version().into_iter().map(|bundle| bundle.name.as_str()).collect();
        heads.sort_by_key(|head| order.iter().position(|name| name == head).unwrap_or(usize::MAX));
    }
    let version = |name: &&str| package.bundles.get(*name).map_or(*name, |bundle| &bundle.version).to_owned();
    let shown: Vec<String> = heads.iter().take(3).map(version).collect();
    let more = if heads.len() > 3 { format!(" and {} more", heads.len() - 3) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// The bundles that a release of OLM v1 installs, one line each. For some it is unknown whether they have webhooks.
pub fn supported(catalogs: &[(String, Catalog)], bundles: &[(&str, &str, &PackageBundle)], olm: OlmRelease) -> String {
    let mut rows = vec![["PACKAGE", "CATALOG", "VERSION", "WEBHOOKS"].map(str::to_owned)];
    let webhooks = |bundle: &PackageBundle| bundle.csv.as_ref().and_then(|csv| csv.webhooks);
    for (catalog, package, bundle) in bundles {
        let webhooks = match webhooks(bundle) {
            Some(0) => "none".to_owned(),
            Some(number) => number.to_string(),
            None => "unknown".to_owned(),
        };
        rows.push([(*package).to_owned(), (*catalog).to_owned(), bundle.version.clone(), webhooks]);
    }
    if bundles.is_empty() {
        let webhooks = if olm.supports_webhooks() { "" } else { ", without webhooks" };
        return format!(
            "no bundle that {olm} installs: it installs bundles with a ClusterServiceVersion that can be installed for all \
             namespaces{webhooks}, without declared dependencies\n"
        );
    }
    let mut out = table(&without_one_catalog(rows, catalogs));
    if bundles.iter().any(|(.., bundle)| webhooks(bundle).is_none()) {
        let but =
            if olm.supports_webhooks() { "" } else { &format!("; {olm} does not install a bundle with webhooks") };
        out.push_str(&format!(
            "\nunknown: the catalog has only metadata of the bundle, which does not say whether it has webhooks{but}.\n"
        ));
    }
    out
}

/// A package with its channels and bundles.
pub fn package(catalog: &str, package: &Package) -> String {
    let mut out = format!("{} (catalog {})\n", sanitize(&package.name), sanitize(catalog));
    let deprecation = package.deprecation("olm.package", "").map(|found| found.message.clone());
    let facts = [
        ("default channel", package.default_channel.clone()),
        ("description", cut(&package.description.replace('\n', " "), 100).into_owned()),
        ("icon", package.icon.clone()),
        ("deprecated", deprecation.unwrap_or_default()),
    ];
    out.push_str(&listed(&facts));
    let mut rows = vec![["CHANNEL", "HEAD", "BUNDLES", ""].map(str::to_owned)];
    for channel in package.channels.values() {
        let deprecated = package.deprecation("olm.channel", &channel.name).map(|found| deprecated(&found.message));
        let default = (channel.name == package.default_channel).then(|| "default".to_owned());
        let notes: Vec<String> = default.into_iter().chain(deprecated).collect();
        let bundles = channel.entries.len().to_string();
        rows.push([channel.name.clone(), channel_heading(package, channel), bundles, notes.join("; ")]);
    }
    out.push_str(&format!("\n{}", table(&rows)));
    let mut rows = vec![["VERSION", "BUNDLE", "CHANNELS", ""].map(str::to_owned)];
    let mut channels_of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for channel in package.channels.values() {
        for entry in &channel.entries {
            channels_of.entry(&entry.name).or_default().push(&channel.name);
        }
    }
    for bundle in package.by_version() {
        let mut channels = channels_of.remove(bundle.name.as_str()).unwrap_or_default();
        channels.dedup();
        let deprecated = package.deprecation("olm.bundle", &bundle.name).map(|found| deprecated(&found.message));
        rows.push([bundle.version.clone(), bundle.name.clone(), channels.join(", "), deprecated.unwrap_or_default()]);
    }
    out.push_str(&format!("\n{}", table(&rows)));
    out
}

fn deprecated(message: &str) -> String {
    let first = message.lines().next().unwrap_or_default();
    format!("deprecated: {}", cut(first, 100)).trim_end_matches(": ").to_owned()
}

fn listed(facts: &[(&str, String)]) -> String {
    let facts = facts.iter().filter(|(_, value)| !value.is_empty());
    let rows: Vec<[String; 2]> = facts.map(|(name, value)| [format!("  {name}"), value.clone()]).collect();
    table(&rows)
}

/// A channel with its upgrade graph, from the highest version down.
pub fn channel(catalog: &str, package: &Package, channel: &Channel) -> String {
    let (name, of, catalog) = (sanitize(&channel.name), sanitize(&package.name), sanitize(catalog));
    let mut out = format!("channel {name} of {of} (catalog {catalog})\n");
    let deprecation = package.deprecation("olm.channel", &channel.name).map(|found| found.message.clone());
    out.push_str(&listed(&[
        ("head", channel_heading(package, channel)),
        ("deprecated", deprecation.unwrap_or_default()),
    ]));
    let mut rows = vec![["VERSION", "BUNDLE", "REPLACES", "SKIPS", "SKIP RANGE"].map(str::to_owned)];
    let order = package.by_version();
    let known = order.iter().flat_map(|bundle| channel.entries.iter().filter(|entry| entry.name == bundle.name));
    let unknown = channel.entries.iter().filter(|entry| !package.bundles.contains_key(&entry.name));
    for entry in known.chain(unknown) {
        let version = package.bundles.get(&entry.name).map(|bundle| bundle.version.clone());
        let skips = match entry.skips.len() {
            0..=3 => entry.skips.join(", "),
            many => format!("{} and {} more", entry.skips[..2].join(", "), many - 2),
        };
        let version = version.unwrap_or_else(|| "(no bundle)".into());
        rows.push([version, entry.name.clone(), entry.replaces.clone(), skips, entry.skip_range.clone()]);
    }
    out.push_str(&format!("\n{}", table(&rows)));
    out
}

/// A bundle: what it provides, what it requires, and the possible upgrades from it.
pub fn bundle(catalog: &str, package: &Package, bundle: &PackageBundle) -> String {
    let mut out =
        format!("{} (package {}, catalog {})\n", sanitize(&bundle.name), sanitize(&package.name), sanitize(catalog));
    let channels: Vec<&str> = package.channels_of(&bundle.name).map(|channel| channel.name.as_str()).collect();
    let csv = bundle.csv.clone().unwrap_or_default();
    let webhooks = match (&bundle.csv, csv.webhooks) {
        (None, _) | (_, None) => "unknown: the catalog has no ClusterServiceVersion for it".to_owned(),
        (_, Some(0)) => "none".to_owned(),
        (_, Some(number)) => number.to_string(),
    };
    let modes = match &bundle.csv {
        Some(csv) => csv.install_modes.join(", "),
        None => "unknown".to_owned(),
    };
    let deprecation = package.deprecation("olm.bundle", &bundle.name).map(|found| found.message.clone());
    out.push_str(&listed(&[
        ("display name", csv.display_name),
        ("version", bundle.version.clone()),
        ("image", bundle.image.clone()),
        ("channels", channels.join(", ")),
        ("install modes", modes),
        ("webhooks", webhooks),
        ("needs Kubernetes", csv.min_kube_version),
        ("deprecated", deprecation.unwrap_or_default()),
    ]));
    let provided: Vec<[String; 1]> =
        bundle.properties_of("olm.gvk").map(|property| [format!("  {}", gvk(&property.value))]).collect();
    if !provided.is_empty() {
        out.push_str(&format!("\nprovides {}\n{}", count(provided.len(), "API"), table(&provided)));
    }
    let required = REQUIRED.iter().flat_map(|kind| bundle.properties_of(kind));
    let required: Vec<[String; 2]> = required
        .map(|property| [format!("  {}", property.kind), requirement(&property.kind, &property.value)])
        .collect();
    if !required.is_empty() {
        out.push_str(&format!(
            "\nrequires (OLM v1 does not install bundles that declare dependencies)\n{}",
            table(&required)
        ));
    }
    let graph = UpgradeGraph::new(package, &[]);
    let from =
        InstalledBundleRef { name: Some(&bundle.name), version: bundle.version().ok().map(|found| found.version) };
    let successors = graph.successors(&from);
    let mut rows = Vec::new();
    for next in &successors {
        let edges = graph.edges(&from).into_iter().filter(|edge| edge.to == next.name);
        let by: Vec<String> = edges
            .map(|edge| match edge.by {
                By::SkipRange => format!("{} (skipRange)", edge.channel),
                By::Replaces => format!("{} (replaces)", edge.channel),
                By::Skips => format!("{} (skips)", edge.channel),
            })
            .collect();
        rows.push([format!("  {}", next.version), next.name.clone(), by.join(", ")]);
    }
    match rows.is_empty() {
        true => out.push_str(&format!("\n{}\n", describe_end(package, &bundle.name))),
        false => out.push_str(&format!("\ncan be updated to\n{}", table(&rows))),
    }
    out
}

/// Why no upgrade leads from a bundle: it is the head of its channels, or nothing replaces it.
pub(super) fn describe_end(package: &Package, bundle: &str) -> String {
    let is_head = |channel: &&Channel| heads(channel).contains(&bundle);
    let of: Vec<&Channel> = package.channels_of(bundle).collect();
    let names: Vec<&str> = of.iter().filter(|channel| is_head(channel)).map(|channel| channel.name.as_str()).collect();
    let shown = sanitize(&names.join(", ")).into_owned();
    match (names.len(), names.len() == of.len()) {
        (1, true) => format!("it is the head of channel {shown}: there is no newer version"),
        (2.., true) => format!("it is the head of the channels {shown}: there is no newer version"),
        _ => "no upgrade is possible from here: no bundle replaces it, skips it or has its version in skipRange"
            .to_owned(),
    }
}

/// How to get the content of a bundle as a directory.
pub fn bundle_source(catalog: &str, package: &Package, bundle: &PackageBundle, as_json: bool) -> String {
    if as_json {
        let json = serde_json::json!({"catalog": catalog, "package": package.name, "bundle": bundle.name,
            "version": bundle.version, "image": bundle.image});
        return format!("{json}\n");
    }
    let (name, image) = (sanitize(&bundle.name), sanitize(&bundle.image));
    let head = format!("{name} (package {}, catalog {})\n", sanitize(&package.name), sanitize(catalog));
    // The name is part of a command.
    let is_plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:@+".contains(c));
    if image.is_empty() || !is_plain(&image) || !is_plain(&name) || name.contains('/') {
        return format!("{head}  image  {}\n", if image.is_empty() { "the catalog names none" } else { &image });
    }
    format!(
        "{head}  image  {image}\n\nto judge its content, extract it and add it with -f:\n  mkdir {name} && crane export {image} - \
         | tar -x -C {name} manifests metadata\n  gantry check -f {name} -f EXTENSION.yaml\n\nwith the client of OpenShift: \
         mkdir {name} && oc image extract {image} --path /manifests/:{name}/manifests --path /metadata/:{name}/metadata\n"
    )
}

/// `Cluster (rabbitmq.com/v1beta1)`
fn gvk(json: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let part = |name: &str| value[name].as_str().unwrap_or("?").to_owned();
    format!("{} ({}/{})", part("kind"), part("group"), part("version"))
}

fn requirement(kind: &str, json: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    match (kind, value["packageName"].as_str(), value["versionRange"].as_str()) {
        ("olm.gvk.required", ..) => gvk(json),
        ("olm.package.required", Some(package), Some(range)) => format!("{package} {range}"),
        _ => cut(json, 200).into_owned(),
    }
}
