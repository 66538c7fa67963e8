//! Questions about catalogs: who provides an API, who requires a package, what a range of versions installs.

use std::collections::{BTreeMap, BTreeSet};

use gantry_catalog::bundle::{OlmRelease, Profile, UncheckedBundlePart};
use gantry_catalog::csv::Csv;
use gantry_catalog::dependency::{Api, BundleRequirement, provided};
use gantry_catalog::resolve::{
    ExtensionRequest, InstalledBundle, NoCandidateReason, ResolvedCatalogBundle, ServedCatalog, resolve,
};
use gantry_catalog::{Catalog, Package, PackageBundle};
use serde_json::json;

use super::CatalogPrintout;
use crate::cli::CatalogArgs;
use gantry_core::options::CatalogFormat;
use gantry_core::problem::{Error, Problem, Result, did_you_mean};
use gantry_core::text::{count, sanitize, table};

/// Answers `--provides` and `--requires`.
pub fn across(args: &CatalogArgs, catalogs: &[(String, Catalog)]) -> Result<CatalogPrintout> {
    let as_json = args.output == Some(CatalogFormat::Json);
    let text = match (&args.provides, &args.requires) {
        (Some(api), _) => providers(api, catalogs, as_json)?,
        (None, Some(package)) => dependents(package, catalogs, as_json)?,
        (None, None) => String::new(),
    };
    Ok(text.into())
}

/// The bundles of a package that provide or require something.
struct MatchingBundles<'a> {
    catalog: &'a str,
    package: &'a Package,
    /// From the highest version down.
    bundles: Vec<&'a PackageBundle>,
}

impl MatchingBundles<'_> {
    fn highest(&self) -> &str {
        self.bundles.first().map_or("", |bundle| &bundle.version)
    }

    /// The highest version, and how many bundles there are of all.
    fn rows(&self, what: String) -> [String; 5] {
        let of = format!("{} of {}", self.bundles.len(), count(self.package.bundles.len(), "bundle"));
        [self.package.name.clone(), self.catalog.to_owned(), what, self.highest().to_owned(), of]
    }

    fn json(&self) -> serde_json::Value {
        let bundles = self.bundles.iter().map(|bundle| json!({"bundle": bundle.name, "version": bundle.version}));
        json!({"package": self.package.name, "catalog": self.catalog, "bundles": bundles.collect::<Vec<_>>()})
    }
}

fn packages(catalogs: &[(String, Catalog)]) -> impl Iterator<Item = (&str, &Package)> {
    catalogs.iter().flat_map(|(name, catalog)| catalog.packages.values().map(move |package| (name.as_str(), package)))
}

fn api_text(api: &Api) -> String {
    format!("{} ({}/{})", api.kind, api.group, api.version)
}

fn providers(asked: &str, catalogs: &[(String, Catalog)], as_json: bool) -> Result<String> {
    let (group, kind) = asked.split_once('/').map_or((asked, None), |(group, kind)| (group, Some(kind)));
    let mut found: BTreeMap<(Api, &str, &str), MatchingBundles<'_>> = BTreeMap::new();
    let mut known: BTreeSet<String> = BTreeSet::new();
    for (catalog, package) in packages(catalogs) {
        for bundle in package.by_version() {
            for api in provided(&bundle.properties) {
                if api.group == group && kind.is_none_or(|kind| kind == api.kind) {
                    let key = (api, package.name.as_str(), catalog);
                    let entry = || MatchingBundles { catalog, package, bundles: Vec::new() };
                    found.entry(key).or_insert_with(entry).bundles.push(bundle);
                } else if kind.is_some() {
                    known.insert(format!("{}/{}", api.group, api.kind));
                } else {
                    known.insert(api.group);
                }
            }
        }
    }
    if found.is_empty() {
        let problem = Problem::new(format!("no bundle provides {asked}"));
        return Err(Error::failed(match did_you_mean(asked, known.iter().map(String::as_str)) {
            Some(near) => problem.help(format!("did you mean {near:?}?")),
            None => problem.help("an API is a group and a kind, such as monitoring.coreos.com/Prometheus"),
        }));
    }
    if as_json {
        let line = |((api, ..), matching): (&(Api, &str, &str), &MatchingBundles<'_>)| {
            let mut line = matching.json();
            line["api"] = json!({"group": api.group, "version": api.version, "kind": api.kind});
            format!("{line}\n")
        };
        return Ok(found.iter().map(line).collect());
    }
    let mut rows = vec![["PACKAGE", "CATALOG", "API", "HIGHEST VERSION", "PROVIDED BY"].map(str::to_owned)];
    rows.extend(found.iter().map(|((api, ..), matching)| matching.rows(api_text(api))));
    Ok(table(&rows))
}

fn dependents(asked: &str, catalogs: &[(String, Catalog)], as_json: bool) -> Result<String> {
    let of_package: Vec<&Package> =
        packages(catalogs).map(|(_, package)| package).filter(|package| package.name == asked).collect();
    let apis: BTreeSet<Api> = of_package
        .iter()
        .flat_map(|package| package.bundles.values())
        .flat_map(|bundle| provided(&bundle.properties))
        .collect();
    let mut found: BTreeMap<(&str, &str, String), MatchingBundles<'_>> = BTreeMap::new();
    for (catalog, package) in packages(catalogs).filter(|(_, package)| package.name != asked) {
        for bundle in package.by_version() {
            // OLM refuses a bundle with a requirement that cannot be read.
            let read = |property| BundleRequirement::of_property(property).ok().flatten();
            for requirement in bundle.properties.iter().filter_map(read) {
                if names_package(&requirement, asked) || requirement.apis().into_iter().any(|api| apis.contains(api)) {
                    let key = (package.name.as_str(), catalog, requirement.to_string());
                    let entry = || MatchingBundles { catalog, package, bundles: Vec::new() };
                    let bundles = &mut found.entry(key).or_insert_with(entry).bundles;
                    if bundles.last().is_none_or(|last| last.name != bundle.name) {
                        bundles.push(bundle);
                    }
                }
            }
        }
    }
    if found.is_empty() && of_package.is_empty() {
        let names = packages(catalogs).map(|(_, package)| package.name.as_str());
        let problem = Problem::new(format!("no catalog has a package {asked:?}, and no bundle requires it"));
        return Err(Error::failed(match did_you_mean(asked, names) {
            Some(near) => problem.help(format!("did you mean {near:?}?")),
            None => problem.help("gantry catalog lists all packages"),
        }));
    }
    if as_json {
        let line = |((.., requirement), matching): (&(&str, &str, String), &MatchingBundles<'_>)| {
            let mut line = matching.json();
            line["requirement"] = requirement.as_str().into();
            format!("{line}\n")
        };
        return Ok(found.iter().map(line).collect());
    }
    if found.is_empty() {
        return Ok(format!("no bundle of another package requires {}\n", sanitize(asked)));
    }
    let mut rows =
        vec![["PACKAGE", "CATALOG", "REQUIRES AN OPERATOR", "HIGHEST VERSION", "REQUIRED BY"].map(str::to_owned)];
    rows.extend(found.iter().map(|((.., requirement), matching)| matching.rows(requirement.clone())));
    Ok(table(&rows))
}

/// Whether the requirement names the package, at any level.
fn names_package(requirement: &BundleRequirement, package: &str) -> bool {
    match requirement {
        BundleRequirement::Package { name, .. } => name == package,
        BundleRequirement::All(parts) | BundleRequirement::Any(parts) => {
            parts.iter().any(|part| names_package(part, package))
        }
        BundleRequirement::Api(_) | BundleRequirement::Not(_) | BundleRequirement::Cel(_) => false,
    }
}

/// Answers `--version`: what this OLM installs for a range of versions, and what it updates to with `--from`.
pub fn installed_by_range(
    args: &CatalogArgs,
    range: &str,
    olm: OlmRelease,
    found: &[(&str, &Package)],
) -> Result<String> {
    let name = found.first().map_or("", |(_, package)| package.name.as_str());
    let channels: Vec<String> = args.item.iter().cloned().collect();
    for channel in &channels {
        if !found.iter().any(|(_, package)| package.channels.contains_key(channel)) {
            let (catalog, package) = found[0];
            return Err(Error::failed(super::problems::no_channel(catalog, package, channel)));
        }
    }
    let wanted = ExtensionRequest {
        package: name.to_owned(),
        version: range.to_owned(),
        channels,
        ..ExtensionRequest::default()
    };
    let installed = args.from.as_deref().map(|from| installed_bundle(found, from));
    let sources =
        found.iter().map(|(catalog, package)| ServedCatalog { name: catalog, priority: 0, package: Some(package) });
    let sources: Vec<ServedCatalog<'_>> = sources.collect();
    let resolved = resolve(&wanted, installed.as_ref(), &sources).map_err(|failure| {
        let problem = Problem::new(failure.text.clone());
        Error::failed(match range_help(&failure.reason, name, args.from.as_deref()) {
            Some(help) => problem.help(help),
            None => problem,
        })
    })?;
    let ResolvedCatalogBundle { catalog, package, bundle, .. } = &resolved;
    let nothing = Csv::default();
    let support = bundle.csv.as_ref().unwrap_or(&nothing).support(&Profile { olm, ..Profile::default() });
    if let Some(refused) = support.unsupported.first() {
        let message = format!(
            "{} {} resolves to bundle {} (catalog {}), which {olm} does not install: {}",
            sanitize(name),
            sanitize(range),
            sanitize(&bundle.name),
            sanitize(catalog),
            sanitize(&refused.text)
        );
        return Err(Error::failed(Problem::new(message).help(untried(&sanitize(name)))));
    }
    let unknown: Vec<String> = support.unchecked.iter().map(UncheckedBundlePart::to_string).collect();
    let channels: Vec<&str> = package.channels_of(&bundle.name).map(|channel| channel.name.as_str()).collect();
    if args.output == Some(CatalogFormat::Json) {
        let json = json!({"package": name, "range": range, "from": args.from, "catalog": catalog, "bundle": bundle.name,
            "version": bundle.version, "channels": channels, "image": bundle.image, "olm": olm.to_string(),
            "unknown": unknown});
        return Ok(format!("{json}\n"));
    }
    let from = args.from.as_ref().map(|from| format!(" over {}", sanitize(from))).unwrap_or_default();
    let rows = [
        ("bundle", bundle.name.as_str()),
        ("catalog", catalog),
        ("channels", &channels.join(", ")),
        ("image", &bundle.image),
        ("unknown", &unknown.join(", ")),
    ];
    let shown = rows.into_iter().filter(|(key, value)| *key != "unknown" || !value.is_empty());
    let rows: Vec<[String; 2]> = shown.map(|(key, value)| [format!("  {key}"), value.to_owned()]).collect();
    let head = format!("{} {}{from}: {olm} installs {}\n", sanitize(name), sanitize(range), sanitize(&bundle.version));
    Ok(format!("{head}{}", table(&rows)))
}

/// The bundle with this name or version, or a version that no catalog has.
fn installed_bundle(found: &[(&str, &Package)], from: &str) -> InstalledBundle {
    let bundles = found.iter().flat_map(|(_, package)| package.by_version());
    let meant = bundles.into_iter().find(|bundle| super::is_meant(bundle, from));
    match meant {
        Some(bundle) => InstalledBundle { name: bundle.name.clone(), version: bundle.version.clone(), release: None },
        None => InstalledBundle { name: String::new(), version: from.to_owned(), release: None },
    }
}

fn untried(package: &str) -> String {
    format!("OLM v1 tries no other version; gantry catalog {package} --supported lists those that it installs")
}

fn range_help(reason: &NoCandidateReason<'_>, package: &str, from: Option<&str>) -> Option<String> {
    let package = sanitize(package);
    Some(match reason {
        NoCandidateReason::NoVersion { versions, pre_releases } => match pre_releases.first() {
            Some(version) => format!("a range without a pre-release does not match one, such as {}", sanitize(version)),
            None => format!("the highest version is {}; gantry catalog {package} lists all", versions.first()?),
        },
        NoCandidateReason::NoEdge(_) => {
            format!("to see what is reachable: gantry catalog {package} --from {}", sanitize(from.unwrap_or("VERSION")))
        }
        NoCandidateReason::Ambiguous(_) => "name one of the catalogs with --catalog alone".to_owned(),
        NoCandidateReason::Unsupported(_) => untried(&package),
        _ => return None,
    })
}
