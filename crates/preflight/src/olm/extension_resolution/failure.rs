//! Reports why a ClusterExtension does not resolve: OLM's message, the step that left no bundle, and what to do.

use std::collections::BTreeSet;

use gantry_catalog::graph::{By, InstalledBundleRef, UpgradeEdge, UpgradeGraph};
use gantry_catalog::resolve::{InstalledBundle, NoCandidateReason, ResolutionError, UpgradeConstraints, version_of};
use gantry_catalog::{Channel, Package, PackageBundle, REQUIRED, SemanticVersion, VersionRelease};

use super::rules::{
    AMBIGUOUS_CATALOGS, DOWNGRADE, MAJOR_UPGRADE, MAJOR_ZERO_UPGRADE, NO_BUNDLE_FOUND, UNSUPPORTED_BUNDLE,
    UPGRADE_EDGE_MISSING, VERSION_RANGE_INVALID,
};
use super::{RequestedExtension, Selected, ViolationsFound, entry, violation};
use crate::rule::RuleDoc;
use crate::{Context, CouldNotCheck, Violation};
use gantry_core::finding::Severity;
use gantry_core::problem::did_you_mean;
use gantry_core::resource::Step;
use gantry_core::text::sanitize;
use gantry_olm::cluster_catalog::NAME_LABEL;
use gantry_olm::cluster_extension::ExtensionFieldPaths;

/// The maximum number of versions, packages or channels that a message names.
const NAMES_SHOWN: usize = 6;

pub fn report_failure(
    asked: &RequestedExtension,
    failure: &ResolutionError<'_>,
    selected: &[Selected<'_>],
    has_catalog: bool,
    context: &Context<'_>,
    found: &mut ViolationsFound,
) {
    let failing = FailedExtension { asked, failure, selected };
    let mut path = Vec::new();
    match &failure.reason {
        NoCandidateReason::BrokenPackage => {
            let help = "fix the catalog's blobs of this package; gantry catalog PACKAGE shows what is wrong";
            found
                .unchecked
                .push(CouldNotCheck { message: sanitize(&failure.text).into_owned(), help: Some(help.into()) });
        }
        NoCandidateReason::NoPackage
            if !has_catalog && asked.installed.is_some() && failing.is_the_installed_version() =>
        {
            // OLM keeps what is installed, without an error.
            let name = &asked.extension.name;
            context.notices.add(format!("ClusterExtension {name} selects no catalog, so OLM keeps what is installed"));
            context.notices.add_resolution(entry(asked, Ok(()), Vec::new()));
            return;
        }
        NoCandidateReason::NoEdge(in_range) => {
            path = failing.path(in_range);
            found.violations.push(failing.no_edge(in_range, &path));
        }
        _ => found.violations.push(failing.violation()),
    }
    context.notices.add_resolution(entry(asked, Err(&failure.text), path));
}

struct FailedExtension<'a> {
    asked: &'a RequestedExtension,
    failure: &'a ResolutionError<'a>,
    selected: &'a [Selected<'a>],
}

impl<'a> FailedExtension<'a> {
    /// A violation with OLM's message.
    fn with_olm_message(&self, doc: &RuleDoc, help: String, at: Vec<Step>, label: &str) -> Violation {
        let message = sanitize(&self.failure.text).into_owned();
        let label = Some(label.to_owned()).filter(|label| !label.is_empty());
        violation(doc, self.asked.change, message, help, at).label(label)
    }

    /// The violation for every reason except a missing edge and a broken package.
    fn violation(&self) -> Violation {
        let places = self.asked.extension.places;
        let wanted = &self.asked.extension.wanted;
        let package = sanitize(&wanted.package);
        match &self.failure.reason {
            NoCandidateReason::RangeInvalid => {
                let help = "ranges are like 1.12.x, >=1.11, <1.13, ^1.2 or ~1.2.3; blank or comma for and, || for or";
                self.with_olm_message(&VERSION_RANGE_INVALID, help.into(), places.version(), "not a version range")
            }
            NoCandidateReason::NoPackage => self.no_package(&package),
            NoCandidateReason::NoChannel(known) => {
                let near = wanted.channels.iter().find_map(|channel| did_you_mean(channel, known.iter().copied()));
                let near = near.map(|near| format!("; did you mean {:?}?", sanitize(near))).unwrap_or_default();
                let help = format!("package {package} has the channels {}{near}", listed(known.iter().copied()));
                self.with_olm_message(&NO_BUNDLE_FOUND, help, places.channels(), "no such channel")
            }
            NoCandidateReason::NoVersion { versions, pre_releases } => self.no_version(versions, pre_releases),
            NoCandidateReason::Ambiguous(candidates) => self.ambiguous(candidates),
            NoCandidateReason::Unsupported(bundle) => self.unsupported(bundle),
            // The installed version, or that of the winner.
            _ => {
                let unreadable = self.asked.installed.as_ref().filter(|installed| version_of(installed).is_err());
                let help = match unreadable {
                    Some(installed) => format!(
                        "the status of the ClusterExtension says that {:?} is installed, which is not a version",
                        sanitize(&installed.version)
                    ),
                    None => format!("the olm.package property of a bundle of package {package} has no valid version"),
                };
                self.with_olm_message(&NO_BUNDLE_FOUND, help, places.package(), "")
            }
        }
    }

    fn no_package(&self, package: &str) -> Violation {
        let places = self.asked.extension.places;
        if self.selected.is_empty() {
            let help = "no available catalog is selected: see kubectl get clustercatalogs --show-labels, and \
                spec.source.catalog.selector";
            return self.with_olm_message(
                &NO_BUNDLE_FOUND,
                help.into(),
                places.selector(),
                "selects no available catalog",
            );
        }
        let catalogs = listed(self.selected.iter().map(|selected| selected.known.name.as_str()));
        let known: BTreeSet<&str> =
            self.selected.iter().flat_map(|selected| selected.packages.iter().copied()).collect();
        let near = did_you_mean(&self.asked.extension.wanted.package, known.iter().copied());
        let next = match near {
            Some(near) => format!("; did you mean {:?}?", sanitize(near)),
            None => ": gantry catalog lists the available packages".to_owned(),
        };
        let help = format!("no package {package} in {catalogs}{next}");
        self.with_olm_message(&NO_BUNDLE_FOUND, help, places.package(), "no such package")
    }

    fn no_version(&self, versions: &[&str], pre_releases: &[&str]) -> Violation {
        let wanted = &self.asked.extension.wanted;
        let which = match &wanted.channels[..] {
            [] => "the package has".to_owned(),
            [one] => format!("channel {} has", sanitize(one)),
            _ => "these channels have".to_owned(),
        };
        let mut help = format!("{which} {}", listed(nearest(&wanted.version, versions)));
        if !pre_releases.is_empty() {
            help.push_str(&format!(
                "; only the pre-releases {} match, and a range includes pre-releases only if one of its comparisons \
                 names one, as in >=1.0.0-0",
                listed(pre_releases.iter().copied())
            ));
        }
        if let Some(elsewhere) = self.in_other_channels() {
            help.push_str(&format!("; {elsewhere}"));
        }
        self.with_olm_message(&NO_BUNDLE_FOUND, help, self.asked.extension.places.version(), "no such version")
    }

    /// The other channels that have a version in the range.
    fn in_other_channels(&self) -> Option<String> {
        let wanted = &self.asked.extension.wanted;
        let range = gantry_catalog::resolve::range_of(&wanted.version).ok()??;
        if wanted.channels.is_empty() {
            return None;
        }
        let mut channels = BTreeSet::new();
        for package in self.selected.iter().filter_map(|selected| selected.package) {
            let fits = |name: &str| {
                let version = package.bundles.get(name).map(PackageBundle::version);
                version.is_some_and(|version| version.is_ok_and(|found| range.matches(&found.version)))
            };
            let has_one = |channel: &&Channel| channel.entries.iter().any(|entry| fits(&entry.name));
            channels.extend(package.channels.values().filter(has_one).map(|channel| channel.name.as_str()));
        }
        (!channels.is_empty()).then(|| format!("these channels have a matching version: {}", listed(channels)))
    }

    fn ambiguous(&self, candidates: &[(&str, &PackageBundle, i32)]) -> Violation {
        let of = |(catalog, bundle, priority): &(&str, &PackageBundle, i32)| {
            format!("{catalog} (priority {priority}) has {}", sanitize(&bundle.version))
        };
        let which: Vec<String> = candidates.iter().map(of).collect();
        let first = candidates.first().map_or("NAME", |(catalog, ..)| catalog);
        let help = format!(
            "{}; give one of them a higher spec.priority, or select one: selector: {{matchLabels: {{{NAME_LABEL}: {first}}}}}",
            which.join(", ")
        );
        self.with_olm_message(
            &AMBIGUOUS_CATALOGS,
            help,
            self.asked.extension.places.selector(),
            "several catalogs have it",
        )
    }

    /// OLM v1 does not resolve dependencies, and does not try another bundle.
    fn unsupported(&self, bundle: &PackageBundle) -> Violation {
        let package = self.selected.iter().filter_map(|selected| selected.package);
        let mut others = package.flat_map(Package::by_version).filter(|other| other.required.is_empty());
        let range = gantry_catalog::resolve::range_of(&self.asked.extension.wanted.version).ok().flatten();
        let other = others.find(|other| {
            let version = other.version();
            version.is_ok_and(|found| range.as_ref().is_none_or(|range| range.matches(&found.version)))
        });
        let help = match other {
            Some(other) => format!(
                "OLM v1 does not try another bundle; {} declares no dependencies: set version to \"{}\"",
                sanitize(&other.name),
                sanitize(&other.version)
            ),
            None => format!("OLM v1 cannot install bundles that declare dependencies ({})", REQUIRED.join(", ")),
        };
        let label = format!("resolves to {}", sanitize(&bundle.name));
        self.with_olm_message(&UNSUPPORTED_BUNDLE, help, self.asked.extension.places.package(), &label)
    }

    /// Whether the range is exactly the installed version, or empty: then OLM keeps what is installed.
    fn is_the_installed_version(&self) -> bool {
        let version = &self.asked.extension.wanted.version;
        version.is_empty() || self.asked.installed.as_ref().is_some_and(|installed| installed.version == *version)
    }

    /// The versions on the shortest upgrade path to the highest version in the range.
    fn path(&self, in_range: &[(&str, &PackageBundle)]) -> Vec<String> {
        let Some((installed, (graph, package, target))) = self.asked.installed.as_ref().zip(self.graph(in_range))
        else {
            return Vec::new();
        };
        let edges =
            graph.find_ways(&installed_ref(installed)).ok().and_then(|ways| ways.edges_to(target)).unwrap_or_default();
        edges.iter().map(|edge| version_at(package, edge)).collect()
    }

    /// The upgrade graph of the named channels, the package, and the bundle with the highest version in the range.
    fn graph<'b>(&'b self, in_range: &[(&str, &'b PackageBundle)]) -> Option<(UpgradeGraph<'b>, &'b Package, &'b str)> {
        let (catalog, bundle) = in_range.first()?;
        let package = self.selected.iter().find(|selected| selected.known.name == *catalog)?.package?;
        Some((UpgradeGraph::new(package, &self.asked.extension.wanted.channels), package, &bundle.name))
    }

    fn no_edge(&self, in_range: &[(&str, &PackageBundle)], path: &[String]) -> Violation {
        let extension = &self.asked.extension;
        let Some(installed) = &self.asked.installed else {
            return self.with_olm_message(&UPGRADE_EDGE_MISSING, String::new(), extension.places.version(), "");
        };
        if extension.wanted.constraints == UpgradeConstraints::Semver {
            return self.not_semver(installed, in_range);
        }
        let at = sanitize(&installed.version);
        let mut has_next = true;
        let mut help = match self.graph(in_range) {
            Some((graph, package, _)) => {
                let mut seen = BTreeSet::new();
                let next = graph.edges(&installed_ref(installed)).into_iter().map(|edge| version_at(package, &edge));
                let next: Vec<String> = next.filter(|version| seen.insert(version.clone())).collect();
                has_next = !next.is_empty();
                match has_next {
                    false => self.no_update(package, installed),
                    true => format!("{at} can be updated to {}", listed(next.iter().map(String::as_str))),
                }
            }
            None => String::new(),
        };
        match path {
            [] if !has_next => {}
            [] => help.push_str("; the edges of the catalog do not lead to the requested version"),
            path => {
                let steps: Vec<String> = path.iter().map(|version| format!("\"{version}\"")).collect();
                help.push_str(&format!(
                    "; the shortest path: {at} -> {}: set version to {}, and wait each time until it is installed",
                    path.join(" -> "),
                    steps.join(", then ")
                ));
            }
        }
        let policy = unconstrained(extension.places);
        help.push_str(&format!("; upgradeConstraintPolicy: {policy} installs it without an edge, at your own risk"));
        let is_pinned = !extension.wanted.version.is_empty();
        let at = if is_pinned { extension.places.version() } else { extension.places.package() };
        let label = format!("no upgrade edge from {}", sanitize(&installed.version));
        self.with_olm_message(&UPGRADE_EDGE_MISSING, help, at, &label)
    }

    /// That the catalog has no update, or none in the channels of the extension, and which other channels have one.
    fn no_update(&self, package: &Package, installed: &InstalledBundle) -> String {
        let (at, channels) = (sanitize(&installed.version), &self.asked.extension.wanted.channels);
        let has_update = |channel: &&String| {
            let graph = UpgradeGraph::new(package, std::slice::from_ref(*channel));
            !graph.edges(&installed_ref(installed)).is_empty()
        };
        let others: Vec<&str> = package.channels.keys().filter(has_update).map(String::as_str).collect();
        if channels.is_empty() || others.is_empty() {
            return format!("the catalog has no update from {at}");
        }
        let named = listed(channels.iter().map(String::as_str));
        let (channel, has) = if channels.len() == 1 { ("channel", "has") } else { ("channels", "have") };
        let (other, have) = if others.len() == 1 { ("channel", "has") } else { ("channels", "have") };
        format!("{channel} {named} {has} no update from {at}, but {other} {} {have} one", listed(others))
    }

    /// `upgradeConstraints: semver`.
    fn not_semver(&self, installed: &InstalledBundle, in_range: &[(&str, &PackageBundle)]) -> Violation {
        let target = in_range.first().and_then(|(_, bundle)| bundle.version().ok());
        let major = |version: &VersionRelease| version.version.major;
        let is_zero = version_of(installed).is_ok_and(|installed| major(&installed) == 0)
            && target.as_ref().is_some_and(|target| major(target) == 0);
        let is_older = version_of(installed)
            .is_ok_and(|before| target.as_ref().is_some_and(|target| target.precedence(&before).is_lt()));
        let (doc, label) = match (is_older, is_zero) {
            (true, _) => (&DOWNGRADE, "an older version"),
            (false, true) => (&MAJOR_ZERO_UPGRADE, "different minor version below 1.0.0"),
            (false, false) => (&MAJOR_UPGRADE, "different major version"),
        };
        let places = self.asked.extension.places;
        let channels = &self.asked.extension.wanted.channels;
        let edge = self.graph(in_range).and_then(|(_, package, to)| has_edge(package, channels, installed, to));
        let way = match edge.is_some() {
            true => "upgradeConstraints: catalog follows the edge of the catalog that leads there".to_owned(),
            false => format!(
                "upgradeConstraintPolicy: {} with exactly this version installs it, at your own risk",
                unconstrained(places)
            ),
        };
        let target = target.map_or("it".to_owned(), |target| target.to_string());
        let help = format!(
            "{target} is not a compatible update of {} in semantic versioning, which the configuration requires \
             (upgradeConstraints: semver); {way}",
            sanitize(&installed.version)
        );
        self.with_olm_message(doc, help, places.version(), label).severity(Severity::Error)
    }
}

/// The policy by which OLM follows no edges.
fn unconstrained(places: ExtensionFieldPaths) -> &'static str {
    if places == ExtensionFieldPaths::V1 { "SelfCertified" } else { "Ignore" }
}

/// The installed bundle, as the start of an upgrade path.
pub fn installed_ref(installed: &InstalledBundle) -> InstalledBundleRef<'_> {
    let version = version_of(installed).ok().map(|found| found.version);
    InstalledBundleRef { name: Some(&installed.name), version }
}

fn version_at(package: &Package, edge: &UpgradeEdge<'_>) -> String {
    package.bundles.get(edge.to).map_or(String::new(), |bundle| sanitize(&bundle.version).into_owned())
}

/// How an edge of these channels leads from the installed bundle to another one, if one does.
pub fn has_edge(package: &Package, channels: &[String], installed: &InstalledBundle, to: &str) -> Option<By> {
    let graph = UpgradeGraph::new(package, channels);
    let edges = graph.edges(&installed_ref(installed));
    edges.iter().find(|edge| edge.to == to).map(|edge| edge.by)
}

/// The versions around the first version of a range, the highest first.
fn nearest<'v>(range: &str, versions: &[&'v str]) -> Vec<&'v str> {
    let digits: String =
        range.chars().skip_while(|c| !c.is_ascii_digit()).take_while(|c| "0123456789.".contains(*c)).collect();
    let mut numbers = digits.split('.').map(|part| part.parse::<u64>().unwrap_or(0));
    let asked = [(); 3].map(|()| numbers.next().unwrap_or(0));
    let is_above = |version: &&str| {
        SemanticVersion::parse(version).is_ok_and(|found| [found.major, found.minor, found.patch] >= asked)
    };
    // `versions` is sorted from the highest to the lowest.
    let below = versions.iter().position(|version| !is_above(version)).unwrap_or(versions.len());
    let first = below.saturating_sub(NAMES_SHOWN / 2).min(versions.len().saturating_sub(NAMES_SHOWN));
    let mut near: Vec<&str> = versions[first..].iter().take(NAMES_SHOWN).copied().collect();
    near.dedup();
    near
}

/// `a, b, c and 4 more`
pub fn listed<'t>(names: impl IntoIterator<Item = &'t str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let shown: Vec<String> = names.iter().take(NAMES_SHOWN).map(|name| sanitize(name).into_owned()).collect();
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
