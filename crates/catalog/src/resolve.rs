//! Finds the bundle that OLM v1 installs for a ClusterExtension, or the reason why there is none.
//!
//! The steps, their order and the texts are those of operator-controller's resolver. The caller selects the catalogs
//! and passes only those that are selected, available and served.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use gantry_k8s_cel::gotext::quote;

use crate::constraint::Constraint;
use crate::error::OlmError;
use crate::graph::{InstalledBundleRef, UpgradeGraph};
use crate::package::{Package, PackageBundle};
use crate::version::{SemanticVersion, VersionRelease, release};

/// What a ClusterExtension requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionRequest {
    /// The package.
    pub package: String,
    /// The range of versions; empty for any version, which is not the same as `*`.
    pub version: String,
    /// The channels; empty for all.
    pub channels: Vec<String>,
    /// The constraint on updates of the installed bundle.
    pub constraints: UpgradeConstraints,
}

/// The constraint on updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpgradeConstraints {
    /// Only along the edges of the catalog (`CatalogProvided`, `Enforce`).
    #[default]
    Catalog,
    /// Only by the rules of semantic versions: within the same major version, below 1.0.0 within the same minor
    /// version.
    Semver,
    /// No constraint (`SelfCertified`, `Ignore`).
    Any,
}

/// The installed bundle, from the status of a ClusterExtension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstalledBundle {
    /// Its name.
    pub name: String,
    /// The text of its version.
    pub version: String,
    /// Its release, if the status has a separate field for it.
    pub release: Option<String>,
}

/// A catalog that is selected, available and served.
#[derive(Debug, Clone, Copy)]
pub struct ServedCatalog<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its priority.
    pub priority: i32,
    /// The package, if the catalog contains it.
    pub package: Option<&'a Package>,
}

/// The bundle that a ClusterExtension resolves to.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedCatalogBundle<'a> {
    /// The catalog that it is from.
    pub catalog: &'a str,
    /// The package in that catalog.
    pub package: &'a Package,
    /// The bundle.
    pub bundle: &'a PackageBundle,
    /// Its version.
    pub version: VersionRelease,
    /// Other bundles of the catalog with the same version: which of them OLM takes is undefined.
    pub tied: Vec<&'a str>,
}

/// Why nothing is resolved. Displays OLM's text.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{text}")]
#[non_exhaustive]
pub struct ResolutionError<'a> {
    /// OLM's error text.
    pub text: String,
    /// The reason.
    pub reason: NoCandidateReason<'a>,
}

/// The step that left no candidate.
#[derive(Debug, Clone, PartialEq)]
pub enum NoCandidateReason<'a> {
    /// The range of versions is invalid.
    RangeInvalid,
    /// A catalog contains the package, but it cannot be read.
    BrokenPackage,
    /// The version of the installed or of the resolved bundle cannot be parsed.
    NoVersionToRead,
    /// No catalog contains the package.
    NoPackage,
    /// The package has none of the requested channels; with the channels that it has.
    NoChannel(Vec<&'a str>),
    /// No version of the channels is in the range.
    NoVersion {
        /// The versions of the channels, highest first.
        versions: Vec<&'a str>,
        /// Those of them that the range would match if it allowed pre-releases.
        pre_releases: Vec<&'a str>,
    },
    /// There are such versions, but no edge from the installed bundle to any of them; as catalog and bundle, highest
    /// first.
    NoEdge(Vec<(&'a str, &'a PackageBundle)>),
    /// Several catalogs of the same priority have a candidate; as catalog, bundle and priority.
    Ambiguous(Vec<(&'a str, &'a PackageBundle, i32)>),
    /// OLM does not support this bundle, and tries no other.
    Unsupported(&'a PackageBundle),
}

/// The candidate of one catalog.
struct Candidate<'a> {
    source: ServedCatalog<'a>,
    package: &'a Package,
    bundle: &'a PackageBundle,
    is_deprecated: bool,
    tied: Vec<&'a str>,
}

/// Resolves a ClusterExtension.
///
/// # Errors
/// Why nothing is resolved.
pub fn resolve<'a>(
    wanted: &ExtensionRequest,
    installed: Option<&InstalledBundle>,
    sources: &[ServedCatalog<'a>],
) -> Result<ResolvedCatalogBundle<'a>, ResolutionError<'a>> {
    Resolver::new(wanted, sources)?.resolve(installed)
}

/// Resolves one ClusterExtension repeatedly, for different installed bundles.
pub struct Resolver<'w, 'a> {
    wanted: &'w ExtensionRequest,
    range: Option<Constraint>,
    sources: &'w [ServedCatalog<'a>],
    packages: Vec<(ServedCatalog<'a>, &'a Package, PreparedResolution<'a>)>,
}

/// The part of the resolution that does not depend on the installed bundle.
struct PreparedResolution<'a> {
    /// The bundles in the channels and the range, the preferred one first.
    ranked: Vec<RankedBundle<'a>>,
    graph: OnceCell<UpgradeGraph<'a>>,
}

impl<'w, 'a> Resolver<'w, 'a> {
    /// A resolver for this ClusterExtension and these catalogs.
    ///
    /// # Errors
    /// The range of versions is invalid.
    pub fn new(
        wanted: &'w ExtensionRequest,
        sources: &'w [ServedCatalog<'a>],
    ) -> Result<Resolver<'w, 'a>, ResolutionError<'a>> {
        let range = range_of(&wanted.version)
            .map_err(|error| ResolutionError { text: error.into(), reason: NoCandidateReason::RangeInvalid })?;
        let prepare = |source: &ServedCatalog<'a>| {
            let package = source.package?;
            Some((*source, package, PreparedResolution::new(wanted, range.as_ref(), package)))
        };
        let packages = sources.iter().filter_map(prepare).collect();
        Ok(Resolver { wanted, range, sources, packages })
    }

    /// Resolves the ClusterExtension for this installed bundle.
    ///
    /// # Errors
    /// Why nothing is resolved.
    pub fn resolve(
        &self,
        installed: Option<&InstalledBundle>,
    ) -> Result<ResolvedCatalogBundle<'a>, ResolutionError<'a>> {
        let Resolver { wanted, range, sources, packages } = self;
        let mut candidates: Vec<Candidate> = Vec::new();
        for (source, package, prepared) in packages {
            let walking =
                |why: String, reason| ResolutionError { text: format!("error walking catalogs: {why}"), reason };
            if let Some(broken) = &package.broken {
                let (name, catalog) = (quote(&wanted.package), quote(source.name));
                let why = format!(
                    "error getting package {name} from catalog {catalog}: error loading package {name}: {broken}"
                );
                return Err(walking(why, NoCandidateReason::BrokenPackage));
            }
            let successors = Successors::new(wanted, installed, package, prepared).map_err(|why| {
                walking(format!("error finding upgrade edges: {why}"), NoCandidateReason::NoVersionToRead)
            })?;
            let mut taken = prepared.ranked.iter().filter(|ranked| successors.has(ranked));
            let Some(first) = taken.next() else { continue };
            let tied = taken.take_while(|other| first.precedence(other).is_eq());
            candidates.push(Candidate {
                source: *source,
                package,
                bundle: first.bundle,
                is_deprecated: first.is_deprecated,
                tied: tied.map(|other| other.bundle.name.as_str()).collect(),
            });
        }
        choose(candidates, wanted, installed, || reason(wanted, range.as_ref(), sources))
    }
}

impl<'a> PreparedResolution<'a> {
    fn new(wanted: &ExtensionRequest, range: Option<&Constraint>, package: &'a Package) -> PreparedResolution<'a> {
        let (in_channels, deprecated) = (InChannels::new(wanted, package), deprecated(package));
        let bundles = package.bundles.values().filter(|bundle| in_channels.has(bundle));
        let ranked = bundles.map(|bundle| RankedBundle {
            is_deprecated: deprecated.contains(bundle.name.as_str()),
            version: bundle.version().ok(),
            bundle,
        });
        let mut ranked: Vec<RankedBundle> = ranked.filter(|ranked| ranked.is_in(range)).collect();
        ranked.sort_by(RankedBundle::precedence);
        PreparedResolution { ranked, graph: OnceCell::new() }
    }
}

/// Chooses between the candidates of the catalogs. `reason` computes the reason if there is none.
fn choose<'a>(
    mut candidates: Vec<Candidate<'a>>,
    wanted: &ExtensionRequest,
    installed: Option<&InstalledBundle>,
    reason: impl Fn() -> NoCandidateReason<'a>,
) -> Result<ResolvedCatalogBundle<'a>, ResolutionError<'a>> {
    // A bundle that is not deprecated wins over deprecated ones, regardless of priorities.
    if candidates.iter().any(|candidate| !candidate.is_deprecated) {
        candidates.retain(|candidate| !candidate.is_deprecated);
    }
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.source.priority));
    if let [first, second, ..] = candidates.as_slice()
        && first.source.priority != second.source.priority
    {
        candidates.truncate(1);
    }
    let names: BTreeSet<&str> = candidates.iter().map(|candidate| candidate.source.name).collect();
    if candidates.len() > 1 {
        let text = error_text(wanted, installed, &names);
        let of = |candidate: &Candidate<'a>| (candidate.source.name, candidate.bundle, candidate.source.priority);
        return Err(ResolutionError {
            text,
            reason: NoCandidateReason::Ambiguous(candidates.iter().map(of).collect()),
        });
    }
    let Some(Candidate { source, package, bundle, tied, .. }) = candidates.pop() else {
        let text = error_text(wanted, installed, &names);
        return Err(ResolutionError { text, reason: reason() });
    };
    let version = bundle.version().map_err(|why| ResolutionError {
        text: format!("error getting resolved bundle version for bundle {}: {why}", quote(&bundle.name)),
        reason: NoCandidateReason::NoVersionToRead,
    })?;
    if let Some(property) = bundle.required.first() {
        let (name, property) = (quote(&bundle.name), quote(property));
        let text = format!(
            "validating bundle {name}: bundle {name} has a dependency declared via property {property} which is currently \
             not supported"
        );
        return Err(ResolutionError { text, reason: NoCandidateReason::Unsupported(bundle) });
    }
    Ok(ResolvedCatalogBundle { catalog: source.name, package, bundle, version, tied })
}

/// Parses `version` of a ClusterExtension; `None` if it is empty.
///
/// # Errors
/// OLM's text.
pub fn range_of(text: &str) -> Result<Option<Constraint>, OlmError> {
    match text {
        "" => Ok(None),
        text => Constraint::parse(text)
            .map(Some)
            .map_err(|error| format!("desired version range {} is invalid: {error}", quote(text)).into()),
    }
}

/// Whether `candidate` is an automatic update of `installed` by the rules of semantic versions: the same major version,
/// below 1.0.0 the same minor version, and never from one 0.0.z to another.
pub fn is_semver_update(installed: &SemanticVersion, candidate: &SemanticVersion) -> bool {
    semver_updates(installed).is_some_and(|updates| updates.matches(candidate))
}

/// The library's caret operator, which earlier releases of OLM v1 used.
fn semver_updates(installed: &SemanticVersion) -> Option<Constraint> {
    Constraint::parse(&format!("^{installed}, !={installed}")).ok()
}

/// The bundles that the installed bundle can be updated to, including itself.
enum Successors<'a> {
    All,
    Some { names: BTreeSet<&'a str>, installed: VersionRelease },
    Semver { updates: Option<Constraint>, installed: VersionRelease },
}

impl<'a> Successors<'a> {
    fn new(
        wanted: &ExtensionRequest,
        installed: Option<&InstalledBundle>,
        package: &'a Package,
        prepared: &PreparedResolution<'a>,
    ) -> Result<Successors<'a>, String> {
        let Some(bundle) = installed.filter(|_| wanted.constraints != UpgradeConstraints::Any) else {
            return Ok(Successors::All);
        };
        let installed = version_of(bundle)
            .map_err(|why| format!("failed to get version and release of installed bundle: {why}"))?;
        if wanted.constraints == UpgradeConstraints::Semver {
            return Ok(Successors::Semver { updates: semver_updates(&installed.version), installed });
        }
        let graph = prepared.graph.get_or_init(|| UpgradeGraph::new(package, &wanted.channels));
        let known = package.bundles.get(&bundle.name).map(|known| known.name.as_str());
        let from = InstalledBundleRef { name: known, version: Some(installed.version.clone()) };
        let mut names: BTreeSet<&str> = graph.successors(&from).iter().map(|next| next.name.as_str()).collect();
        names.extend(known.filter(|_| graph.leads_to_itself(&from)));
        if known.is_none() {
            // The catalog no longer contains the bundle, but entries can still replace or skip it.
            names.extend(graph.named(&bundle.name));
        }
        Ok(Successors::Some { names, installed })
    }

    fn has(&self, ranked: &RankedBundle<'_>) -> bool {
        let is_installed = |installed: &VersionRelease| {
            ranked.version.as_ref().is_some_and(|version| version.precedence(installed).is_eq())
        };
        match self {
            Successors::All => true,
            Successors::Some { names, installed } => {
                names.contains(ranked.bundle.name.as_str()) || is_installed(installed)
            }
            Successors::Semver { updates, installed } => {
                is_installed(installed) || updates.as_ref().is_some_and(|updates| ranked.is_in(Some(updates)))
            }
        }
    }
}

/// The version of the installed bundle.
///
/// # Errors
/// The library's text.
pub fn version_of(installed: &InstalledBundle) -> Result<VersionRelease, OlmError> {
    match &installed.release {
        None => VersionRelease::parse(&installed.version),
        Some(text) => {
            Ok(VersionRelease { version: SemanticVersion::parse(&installed.version)?, release: release(text)? })
        }
    }
}

/// The bundles in the requested channels.
enum InChannels<'a> {
    All,
    Some(BTreeSet<&'a str>),
}

impl<'a> InChannels<'a> {
    fn new(wanted: &ExtensionRequest, package: &'a Package) -> Self {
        if wanted.channels.is_empty() {
            return InChannels::All;
        }
        let named = package.channels.values().filter(|channel| wanted.channels.contains(&channel.name));
        InChannels::Some(named.flat_map(|channel| &channel.entries).map(|entry| entry.name.as_str()).collect())
    }

    fn has(&self, bundle: &PackageBundle) -> bool {
        match self {
            InChannels::All => true,
            InChannels::Some(names) => names.contains(bundle.name.as_str()),
        }
    }
}

fn is_in_range(range: Option<&Constraint>, bundle: &PackageBundle) -> bool {
    let Some(range) = range else { return true };
    bundle.version().is_ok_and(|found| range.matches(&found.version))
}

/// The names of the deprecated bundles.
fn deprecated(package: &Package) -> BTreeSet<&str> {
    let bundles = package.deprecations.iter().filter(|deprecation| deprecation.schema == "olm.bundle");
    bundles.map(|deprecation| deprecation.name.as_str()).collect()
}

/// A bundle with the properties that determine its rank.
struct RankedBundle<'a> {
    is_deprecated: bool,
    /// `None` if it cannot be parsed.
    version: Option<VersionRelease>,
    bundle: &'a PackageBundle,
}

impl RankedBundle<'_> {
    /// Whether the range contains its version; true without a range.
    fn is_in(&self, range: Option<&Constraint>) -> bool {
        let Some(range) = range else { return true };
        self.version.as_ref().is_some_and(|found| range.matches(&found.version))
    }

    /// Bundles that are not deprecated first, then by version, highest first; bundles without a version come last.
    fn precedence(&self, other: &Self) -> Ordering {
        self.is_deprecated.cmp(&other.is_deprecated).then_with(|| match (&self.version, &other.version) {
            (Some(one), Some(other)) => other.precedence(one),
            (one, other) => other.is_some().cmp(&one.is_some()),
        })
    }
}

fn error_text(wanted: &ExtensionRequest, installed: Option<&InstalledBundle>, catalogs: &BTreeSet<&str>) -> String {
    let mut text = String::new();
    if let Some(installed) = installed {
        text.push_str(&format!("error upgrading from currently installed version {}: ", quote(&installed.version)));
    }
    let found = if catalogs.len() > 1 { "found bundles" } else { "no bundles found" };
    text.push_str(&format!("{found} for package {}", quote(&wanted.package)));
    if !wanted.version.is_empty() {
        text.push_str(&format!(" matching version {}", quote(&wanted.version)));
    }
    if !wanted.channels.is_empty() {
        text.push_str(&format!(" in channels [{}]", wanted.channels.join(" ")));
    }
    if catalogs.len() > 1 {
        let catalogs: Vec<&str> = catalogs.iter().copied().collect();
        text.push_str(&format!(" in multiple catalogs with the same priority [{}]", catalogs.join(" ")));
    }
    text
}

/// The first step that leaves no candidate in all catalogs together.
fn reason<'a>(
    wanted: &ExtensionRequest,
    range: Option<&Constraint>,
    sources: &[ServedCatalog<'a>],
) -> NoCandidateReason<'a> {
    let packages = || sources.iter().filter_map(|source| Some((source.name, source.package?)));
    if packages().next().is_none() {
        return NoCandidateReason::NoPackage;
    }
    let mut in_channels: Vec<(&str, &Package, &PackageBundle)> = Vec::new();
    for (catalog, package) in packages() {
        let named = InChannels::new(wanted, package);
        let bundles = package.by_version().into_iter().filter(|bundle| named.has(bundle));
        in_channels.extend(bundles.map(|bundle| (catalog, package, bundle)));
    }
    if in_channels.is_empty() {
        let known: BTreeSet<&str> =
            packages().flat_map(|(_, package)| package.channels.keys().map(String::as_str)).collect();
        return NoCandidateReason::NoChannel(known.into_iter().collect());
    }
    let in_range: Vec<(&str, &PackageBundle)> = in_channels
        .iter()
        .filter(|(_, _, bundle)| is_in_range(range, bundle))
        .map(|(catalog, _, bundle)| (*catalog, *bundle))
        .collect();
    if in_range.is_empty() {
        let is_pre_release = |bundle: &PackageBundle| {
            range.is_some_and(|range| {
                bundle.version().is_ok_and(|found| range.matches_but_for_pre_release(&found.version))
            })
        };
        let (mut versions, mut pre_releases) = (Vec::new(), Vec::new());
        for (_, _, bundle) in &in_channels {
            if is_pre_release(bundle) {
                pre_releases.push(bundle.version.as_str());
            }
            versions.push(bundle.version.as_str());
        }
        return NoCandidateReason::NoVersion { versions, pre_releases };
    }
    NoCandidateReason::NoEdge(in_range)
}
