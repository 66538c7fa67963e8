//! The errors that `opm validate` reports for a package, in opm's words. OLM v1 silently accepts most of them.
//!
//! opm stops at the first error; here all are reported.

use std::collections::{BTreeMap, BTreeSet};

use gantry_k8s_cel::gotext::quote;

use crate::graph::heads;
use crate::package::{Channel, PACKAGE, Package};
use crate::skip_range::SkipRange;
use crate::version::SemanticVersion;

/// The errors of a package, in an order that depends only on the package.
pub fn mistakes(package: &Package) -> Vec<String> {
    let mut found = Vec::new();
    let name = quote(&package.name);
    if !package.is_declared {
        found.push(match package.channels.keys().next() {
            Some(channel) => format!("unknown package {name} for channel {}", quote(channel)),
            None => format!("unknown package {name}"),
        });
    }
    for (schema, replaced) in &package.replaced {
        found.push(match schema.as_str() {
            "olm.package" => format!("duplicate package {name}"),
            "olm.channel" => format!("package {name} has duplicate channel {}", quote(replaced)),
            _ => format!("package {name} has duplicate bundle {}", quote(replaced)),
        });
    }
    if package.is_declared {
        of_channel_names(package, &mut found);
    }
    for channel in package.channels.values() {
        of_channel(package, channel, &mut found);
    }
    of_bundles(package, &mut found);
    of_versions(package, &mut found);
    of_deprecations(package, &mut found);
    found
}

fn of_channel_names(package: &Package, found: &mut Vec<String>) {
    if package.channels.is_empty() {
        found.push("package must contain at least one channel".into());
    }
    match package.default_channel.as_str() {
        "" => found.push("default channel must be set".into()),
        channel if !package.channels.contains_key(channel) => {
            found.push(format!("default channel {} not found in channels list", quote(channel)));
        }
        _ => {}
    }
}

fn of_channel(package: &Package, channel: &Channel, found: &mut Vec<String>) {
    let (name, of) = (quote(&package.name), quote(&channel.name));
    if channel.name.is_empty() {
        found.push(format!("package {name} contains channel with no name"));
    }
    let mut names = BTreeSet::new();
    for entry in &channel.entries {
        if !names.insert(entry.name.as_str()) {
            let entry = quote(&entry.name);
            found.push(format!("invalid package {name}, channel {of}: duplicate entry {entry}"));
        }
        for (at, _) in entry.skips.iter().enumerate().filter(|(_, skipped)| skipped.is_empty()) {
            found.push(format!("invalid bundle {}: skip[{at}] is empty", quote(&entry.name)));
        }
        if !entry.skip_range.is_empty()
            && let Err(error) = SkipRange::parse(&entry.skip_range)
        {
            let range = quote(&entry.skip_range);
            found.push(format!("invalid bundle {}: invalid skipRange {range}: {error}", quote(&entry.name)));
        }
    }
    let missing: Vec<&str> = names.iter().copied().filter(|name| !package.bundles.contains_key(*name)).collect();
    if !missing.is_empty() {
        let missing = missing.join(" ");
        found.push(format!("no olm.bundle blobs found in package {name} for olm.channel entries [{missing}]"));
    }
    let wrong = match channel.entries.is_empty() {
        true => Some("channel must contain at least one bundle".to_owned()),
        false => of_chain(channel),
    };
    found.extend(wrong.map(|wrong| format!("invalid channel {of}: {wrong}")));
}

/// The `replaces` chain from the only head must reach every entry that no other entry skips.
fn of_chain(channel: &Channel) -> Option<String> {
    let head = match heads(channel)[..] {
        [] => return Some("no channel head found in graph".into()),
        [head] => head,
        ref heads => return Some(format!("multiple channel heads found in graph: {}", heads.join(", "))),
    };
    // Of two entries with the same name the later one counts, as in a map.
    let entries: BTreeMap<&str, _> = channel.entries.iter().map(|entry| (entry.name.as_str(), entry)).collect();
    let skipped: BTreeSet<&str> = entries.values().flat_map(|entry| entry.skips.iter().map(String::as_str)).collect();
    let (mut chain, mut reached) = (vec![head], BTreeSet::from([head]));
    let mut at = entries.get(head);
    while let Some(entry) = at {
        let next = entry.replaces.as_str();
        if skipped.contains(next) {
            break;
        }
        chain.push(next);
        if !reached.insert(next) {
            let start = chain.iter().position(|name| *name == next).unwrap_or_default();
            let cycle = chain[start..].join(" -> ");
            return Some(format!("detected cycle in replaces chain of upgrade graph: {cycle}"));
        }
        at = entries.get(next);
    }
    let is_stranded = |name: &&str| !reached.contains(*name) && !skipped.contains(*name);
    let stranded: Vec<&str> = entries.keys().copied().filter(is_stranded).collect();
    (!stranded.is_empty()).then(|| format!("channel contains one or more stranded bundles: {}", stranded.join(", ")))
}

fn of_bundles(package: &Package, found: &mut Vec<String>) {
    let name = quote(&package.name);
    let in_channels: BTreeSet<&str> =
        package.channels.values().flat_map(|channel| channel.entries.iter().map(|entry| entry.name.as_str())).collect();
    for bundle in package.bundles.values() {
        let of = quote(&bundle.name);
        match bundle.packages.as_slice() {
            [own] => {
                if *own != package.name {
                    let own = quote(own);
                    found.push(format!("package {name} does not match {} property {own}", quote(PACKAGE)));
                }
                if let Err(error) = SemanticVersion::parse(&bundle.version) {
                    let version = quote(&bundle.version);
                    found.push(format!("error parsing bundle {of} version {version}: {error}"));
                }
            }
            several => found.push(format!(
                "package {name} bundle {of} must have exactly 1 {} property, found {}",
                quote(PACKAGE),
                several.len()
            )),
        }
        if !in_channels.contains(bundle.name.as_str()) {
            found.push(format!("package {name}, bundle {of} not found in any channel entries"));
        }
    }
}

fn of_versions(package: &Package, found: &mut Vec<String>) {
    let mut versions: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let entries = package.channels.values().flat_map(|channel| &channel.entries);
    let in_channels: BTreeSet<&str> = entries.map(|entry| entry.name.as_str()).collect();
    for bundle in package.bundles.values().filter(|bundle| in_channels.contains(bundle.name.as_str())) {
        if let Ok(version) = SemanticVersion::parse(&bundle.version) {
            versions.entry(version.to_string()).or_default().push(&bundle.name);
        }
    }
    let twice = versions.iter().filter(|(_, bundles)| bundles.len() > 1);
    let twice: Vec<String> =
        twice.map(|(version, bundles)| format!("{{{version}: [{}]}}", bundles.join(", "))).collect();
    if !twice.is_empty() {
        found.push(format!("duplicate versions found in bundles: [{}]", twice.join(" ")));
    }
}

fn of_deprecations(package: &Package, found: &mut Vec<String>) {
    let name = quote(&package.name);
    if package.deprecation_blobs > 1 {
        found.push(format!("expected a maximum of one deprecation per package: {name}"));
    }
    let mut seen = BTreeSet::new();
    for (at, deprecation) in package.deprecations.iter().enumerate() {
        let of = quote(&deprecation.name);
        if !seen.insert((&deprecation.schema, &deprecation.name)) {
            found.push(format!("duplicate deprecation entry {} {of} for package {name}", deprecation.schema));
        }
        match deprecation.schema.as_str() {
            "" => found.push(format!("schema must be set for deprecation entry [{at}] for package {name}")),
            "olm.bundle" if !package.bundles.contains_key(&deprecation.name) => {
                found.push(format!("cannot deprecate bundle {of} for package {name}: bundle not found"));
            }
            "olm.channel" if !package.channels.contains_key(&deprecation.name) => {
                found.push(format!("cannot deprecate channel {of} for package {name}: channel not found"));
            }
            "olm.package" if !deprecation.name.is_empty() => {
                found.push(format!("package name must be empty for deprecated package {name} (specified {of})"))
            }
            "olm.package" | "olm.channel" | "olm.bundle" => {}
            schema => found.push(format!(
                "cannot deprecate object {} {of} for package {name}: object schema unknown",
                quote(schema)
            )),
        }
        if deprecation.message.is_empty() {
            found.push(format!("invalid deprecation of {} {of}: message must be set", deprecation.schema));
        }
    }
}
