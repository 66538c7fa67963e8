//! `ExtensionResolution`: what OLM v1 will install for the ClusterExtensions of the manifests, or why it cannot.
//!
//! ```text
//! ClusterExtensions ─► the catalogs that they select ─► resolve ─► findings and entries of the report
//! ```
//!
//! `gantry_catalog::resolve` reproduces OLM's steps and texts; this module turns them into findings.

mod bundles;
mod failure;
mod owners;
mod ownership;
mod release;
mod resolved;
mod rules;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gantry_catalog::bundle::UncheckedBundlePart;
use gantry_catalog::mistakes::mistakes;
use gantry_catalog::resolve::{ExtensionRequest, ServedCatalog, UpgradeConstraints, range_of, resolve};
use gantry_catalog::{NamedRelease, Package, crd_rule};

use self::owners::BundleContent;
use super::catalogs::{self, CatalogContentSource, SelectableCatalog};
use super::{OfPlan, OlmState, RequestedExtension, Selected, contents_of, has_catalogs, matching, selected};
use crate::entry::CheckEntry;
use crate::olm_release::{self, JudgedRelease};
use crate::proofs::Proofs;
use crate::rule::RuleDoc;
use crate::{
    Check, CheckFuture, CheckLookup, Context, CouldNotCheck, FindLookups, LiveLookups, Violation, ViolationSubject,
    ViolationsFound,
};
use gantry_cluster::service::ServiceUrl;
use gantry_core::finding::{ExtensionEntry, Severity};
use gantry_core::problem::Problem;
use gantry_core::resource::{Resource, Step};
use gantry_core::text::sanitize;
use gantry_deploy::config::ConfigReader;
use gantry_deploy::plan::{Change, Plan};
use gantry_olm::cluster_catalog;
use gantry_olm::cluster_extension;

pub(crate) const NAME: &str = "ExtensionResolution";

/// The registry's entry of the check.
pub const ENTRY: CheckEntry = CheckEntry {
    guards_bundles: true,
    configure: |reader| {
        options(reader);
    },
    ..CheckEntry::new(
        NAME,
        "ClusterExtensions must resolve to a bundle that OLM v1 can install",
        rules::docs,
        |config| Box::new(ExtensionResolution { options: options(&mut ConfigReader::new(NAME, config)) }),
    )
};

/// The maximum number of mistakes of a package that are reported; further ones are only counted.
const MISTAKES_SHOWN: usize = 10;

/// The configuration of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ResolutionOptions {
    constraints: UpgradeConstraints,
    /// The configured release; `None` for that of the cluster.
    olm: Option<NamedRelease>,
}

/// Reads the configuration.
fn options(reader: &mut ConfigReader<'_>) -> ResolutionOptions {
    let constraints = reader.choice(
        "upgradeConstraints",
        "The limit of updates of extensions without SelfCertified. catalog: the upgrade edges of the catalog, as in \
            OLM v1; semver: the same major version, and below 1.0.0 the same minor version; any: no limit.",
        &[
            ("semver", UpgradeConstraints::Semver),
            ("catalog", UpgradeConstraints::Catalog),
            ("any", UpgradeConstraints::Any),
        ],
        UpgradeConstraints::Catalog,
    );
    let olm = reader.parsed(
        "olm",
        "The release of OLM v1 that installs, unless --olm or olm of the configuration names one. auto, the default: that \
            of the cluster, if the image of operator-controller names it, else the newest, with warnings about what other \
            releases decide differently; current: the newest; v1.0, v1.1 and so on, or 4.16 and later for OpenShift. \
            Webhooks need v1.6; up to v1.10, the ServiceAccount of the extension must exist.",
        |text| NamedRelease::parse(text).map(drop),
    );
    let olm = olm.and_then(|text| NamedRelease::parse(&text).ok()?);
    ResolutionOptions { constraints, olm }
}

#[derive(Debug, Clone)]
struct ExtensionResolution {
    options: ResolutionOptions,
}

impl Check for ExtensionResolution {
    fn reads_catalogs(&self) -> bool {
        true
    }

    fn olm_release(&self) -> Option<NamedRelease> {
        self.options.olm
    }

    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let mut found = check(self.options, &context).await?;
            found.violations.extend(bundles::outside_range(&context, &found.violations));
            if context.by_default {
                found.unchecked.drain(..).for_each(|left_out| context.notices.not_checked(NAME, left_out));
            }
            Ok(found.into())
        })
    }

    fn lookups(&self, plan: &Plan, _: &Arc<Proofs>) -> FindLookups {
        let found = lookups(plan);
        Box::new(move || found)
    }

    fn live_lookups<'a>(&'a self, _: &'a Plan, olm: &'a OlmState<'a>) -> LiveLookups<'a> {
        Box::pin(live_lookups(olm))
    }
}

/// The lookups that do not depend on the catalogs.
fn lookups(plan: &Plan) -> Vec<CheckLookup> {
    let mut found = Vec::new();
    for asked in OfPlan::read(plan, Change::desired_value).asked {
        if found.is_empty() {
            let version = plan.changes[asked.change].resource.version.as_str();
            let catalogs = Resource { version: version.into(), ..cluster_catalogs() };
            found.push(CheckLookup::list(asked.change, catalogs));
            found.push(CheckLookup::list(asked.change, cluster_extension::resource(version)));
        }
        if !asked.extension.namespace.is_empty() {
            let namespace = asked.extension.namespace.clone();
            found.push(CheckLookup::get(
                asked.change,
                Resource::built_in("", "Namespace", "namespaces", false),
                Some(namespace.clone()),
                namespace,
            ));
        }
    }
    found
}

/// The content of the selected catalogs that catalogd serves. A folder has no catalogd, so its usual address is used.
async fn live_lookups(olm: &OlmState<'_>) -> Result<Vec<CheckLookup>, Problem> {
    let asked = &olm.of_plan().asked;
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let known = olm.known().await?;
    let mut found: Vec<CheckLookup> = match olm.knows_release() {
        true => Vec::new(),
        false => olm_release::lookups(olm.target(), asked[0].change).await,
    };
    for asked in asked {
        for known in selected(asked, known).unwrap_or_default() {
            let url = match &known.content {
                CatalogContentSource::Live(catalog) => catalog.service().ok(),
                CatalogContentSource::Unknown(_) if !olm.is_of_server() => {
                    ServiceUrl::parse(cluster_catalog::USUAL_BASE)
                }
                _ => None,
            };
            let lookup = url.map(|url| CheckLookup::get_content(asked.change, &url));
            // One Service serves all catalogs.
            found.extend(lookup.filter(|new| {
                !found.iter().any(|known| (&known.namespace, &known.name) == (&new.namespace, &new.name))
            }));
        }
    }
    Ok(found)
}

fn cluster_catalogs() -> Resource {
    Resource {
        group: cluster_catalog::GROUP.into(),
        version: "v1".into(),
        kind: cluster_catalog::KIND.into(),
        plural: cluster_catalog::PLURAL.into(),
        namespaced: false,
    }
}

async fn check(options: ResolutionOptions, context: &Context<'_>) -> Result<ViolationsFound, CouldNotCheck> {
    let of_plan = context.olm.of_plan();
    if of_plan.asked.is_empty() && context.plan.bundles.is_empty() {
        return Ok(ViolationsFound { violations: invalid(of_plan), unchecked: Vec::new() });
    }
    let judged = context.olm_release.get().await;
    let mut found = ViolationsFound { violations: invalid(of_plan), unchecked: Vec::new() };
    let is_valid = |asked: &&RequestedExtension| of_plan.wrong.iter().all(|(change, ..)| *change != asked.change);
    let asked: Vec<RequestedExtension> =
        of_plan.asked.iter().filter(is_valid).map(|asked| constrained(asked, options.constraints)).collect();
    found.violations.extend(asked.iter().filter_map(|asked| without_config(asked, judged)));
    found.violations.extend(bundles::check(&asked, judged.olm, context));
    found.violations.extend(owners::of_bundles(&asked, context).await);
    let installers = match context.olm.installers().await {
        Ok(installers) => installers,
        Err(problem) => {
            found.unchecked.push(problem.into());
            &[]
        }
    };
    if asked.is_empty() && installers.is_empty() {
        return Ok(found);
    }
    let known = match context.olm.known().await {
        Ok(known) => known,
        Err(problem) => {
            found.unchecked.push(problem.into());
            return Ok(found);
        }
    };
    let mut selections = Vec::new();
    for asked in &asked {
        match selected(asked, known) {
            Ok(selected) => selections.push((asked, selected)),
            Err(text) => {
                context.notices.add_resolution(entry(asked, Err(&text), Vec::new()));
                let help = "keys and values must be valid labels; operators are In, NotIn, Exists and DoesNotExist";
                let at = asked.extension.places.selector();
                found.violations.push(violation(&rules::NO_BUNDLE_FOUND, asked.change, text, help.into(), at));
            }
        }
    }
    let contents = context.olm.contents(context).await?;
    // A catalog that cannot be read affects every extension that selects it, but is reported once.
    let of_live: Vec<(&RequestedExtension, Vec<_>)> =
        installers.iter().filter_map(|asked| Some((asked, selected(asked, known).ok()?))).collect();
    let wanted: BTreeSet<&str> =
        selections.iter().chain(&of_live).flat_map(|(_, selected)| selected).map(|known| known.name.as_str()).collect();
    let read = wanted.iter().filter_map(|name| contents.get(*name));
    found.unchecked.extend(read.filter_map(|read| read.as_ref().err().cloned()));
    let (mut reported, mut bundle_contents) = (BTreeSet::new(), Vec::new());
    for (asked, selected) in &selections {
        let Some(selected) = contents_of(asked, selected, contents) else { continue };
        if lacks_catalogs(known, context) {
            found.unchecked.push(no_catalog(asked));
            continue;
        }
        // Available or not: see `CheckCatalogsExist` in OLM's clusterextension_reconcile_steps.go.
        let has_catalog = matching(asked, known).is_ok_and(|matching| !matching.is_empty());
        bundle_contents.extend(resolve_one(asked, &selected, has_catalog, judged, context, &mut found).await);
        for selected in &selected {
            if let Some(package) = selected.package
                && reported.insert((&selected.known.name, &package.name))
            {
                found.violations.extend(catalog_violations(asked, &selected.known.name, package));
            }
        }
    }
    for (asked, selected) in &of_live {
        let Some(selected) = contents_of(asked, selected, contents) else { continue };
        if lacks_catalogs(known, context) {
            found.unchecked.push(no_catalog(asked));
            continue;
        }
        found.violations.extend(check_directories(&constrained(asked, options.constraints), &selected, context));
    }
    note_unchecked(&bundle_contents, context);
    found.extend(owners::check(&asked, &bundle_contents, judged.olm, context).await);
    if changes_catalogs(context.plan) {
        found.violations.iter_mut().for_each(|violation| attribute_to_object(violation, context.plan));
    }
    Ok(found)
}

/// Whether no catalog is known from which a ClusterExtension could be resolved. A server without any may get them later,
/// so that counts only if the user has asked for the check.
fn lacks_catalogs(known: &[SelectableCatalog], context: &Context<'_>) -> bool {
    known.is_empty() && (!has_catalogs(context) || context.by_default)
}

fn no_catalog(asked: &RequestedExtension) -> CouldNotCheck {
    let message = format!("there is no catalog from which ClusterExtension {} could be resolved", asked.extension.name);
    let help = "add one with --catalog NAME=PATH, or with catalogs in gantry.yaml";
    CouldNotCheck { message, help: Some(help.into()) }
}

/// Whether the bundles among the manifests are what their live ClusterExtension resolves to.
fn check_directories(asked: &RequestedExtension, selected: &[Selected<'_>], context: &Context<'_>) -> Vec<Violation> {
    let sources: Vec<ServedCatalog<'_>> = selected.iter().map(Selected::source).collect();
    match resolve(&asked.extension.wanted, asked.installed.as_ref(), &sources) {
        Ok(resolved) => match bundles::find(context, &resolved.package.name, &resolved.bundle.version) {
            Some(_) => Vec::new(),
            None => bundles::report_other_versions(asked, &resolved, context),
        },
        Err(failure) => bundles::report_unresolved(asked, &failure.text, context),
    }
}

/// Whether the deploy writes or deletes a ClusterCatalog: then it also affects extensions that it does not write.
fn changes_catalogs(plan: &Plan) -> bool {
    let written = plan.changes.iter().filter(|change| change.is_written()).map(|change| &change.desired.object);
    written.chain(plan.removals.iter().map(|removal| &removal.object)).any(|object| catalogs::is_catalog(object))
}

/// Changes the subject of a violation from an unchanged object's change to the object, so that it counts as caused by
/// the deploy.
fn attribute_to_object(violation: &mut Violation, plan: &Plan) {
    if let ViolationSubject::Change(index) = violation.subject
        && plan.changes[index].action.leaves_alone()
    {
        violation.subject = ViolationSubject::Object((*plan.changes[index].desired.object).clone());
    }
}

/// The extension with these constraints, unless it sets its own.
fn constrained(asked: &RequestedExtension, constraints: UpgradeConstraints) -> RequestedExtension {
    let mut asked = asked.clone();
    if asked.extension.wanted.constraints == UpgradeConstraints::Catalog {
        asked.extension.wanted.constraints = constraints;
    }
    asked
}

/// Fields of ClusterExtensions that have the wrong type.
fn invalid(of_plan: &OfPlan) -> Vec<Violation> {
    let help = "see the CRD: kubectl explain clusterextension.spec";
    let wrong = of_plan.wrong.iter();
    wrong
        .map(|(change, at, message)| {
            violation(&rules::EXTENSION_INVALID, *change, message.clone(), help.into(), at.clone())
        })
        .collect()
}

/// A warning about configuration that this OLM does not have, so that nothing of it takes effect.
fn without_config(asked: &RequestedExtension, judged: JudgedRelease) -> Option<Violation> {
    if asked.extension.config.is_null() || judged.olm.has_config() {
        return None;
    }
    let message = format!(
        "ClusterExtension {} has spec.config, which {} does not have: the API server drops it, and the bundle is installed \
         without it",
        sanitize(&asked.extension.name),
        judged.olm
    );
    let help = "remove it, or upgrade OLM: what is rendered and checked here has this configuration";
    let at = vec!["spec".into(), "config".into()];
    Some(violation(&rules::EXTENSION_INVALID, asked.change, message, help.into(), at).severity(Severity::Warning))
}

/// The errors that `opm validate` reports for the package.
fn catalog_violations(asked: &RequestedExtension, catalog: &str, package: &Package) -> Vec<Violation> {
    if package.broken.is_some() {
        return Vec::new();
    }
    let found = mistakes(package);
    let more = found.len().saturating_sub(MISTAKES_SHOWN);
    let mut messages: Vec<String> = found.into_iter().take(MISTAKES_SHOWN).collect();
    if more > 0 {
        messages.push(format!("{more} more mistakes"));
    }
    let of_message = |message: String| {
        let message = format!("catalog {catalog}, package {}: {}", sanitize(&package.name), sanitize(&message));
        let help = "opm validate refuses such a catalog, but OLM uses it anyway; ask its publisher to fix it";
        violation(&rules::CATALOG_INVALID, asked.change, message, help.into(), asked.extension.places.package())
    };
    messages.into_iter().map(of_message).collect()
}

/// Resolves one extension. Returns what its bundle contains, if it resolves to one.
async fn resolve_one(
    asked: &RequestedExtension,
    selected: &[Selected<'_>],
    has_catalog: bool,
    judged: JudgedRelease,
    context: &Context<'_>,
    found: &mut ViolationsFound,
) -> Option<BundleContent> {
    let (extension, installed) = (&asked.extension, asked.installed.as_ref());
    let wanted = &extension.wanted;
    let refusal = Some(wanted.version.as_str()).filter(|range| !range.is_empty()).and_then(crd_rule::refusal);
    if let Some(why) = refusal.filter(|_| range_of(&wanted.version).is_ok()) {
        let message = format!("version {:?} is refused by the API server: {why}", wanted.version);
        let help = "the CRD of ClusterExtension does not accept every range that OLM parses: no hyphen ranges, no \
            leading zeros, at most 64 characters; write >=1.2, <1.5 instead of 1.2 - 1.4, and x instead of *";
        found.violations.push(violation(
            &rules::VERSION_RANGE_INVALID,
            asked.change,
            message,
            help.into(),
            extension.places.version(),
        ));
    }
    let sources: Vec<ServedCatalog<'_>> = selected.iter().map(Selected::source).collect();
    match resolve(wanted, installed, &sources) {
        Ok(resolved) => {
            found.violations.extend(release::differences(judged, asked, Some(&resolved), context).await);
            Some(resolved::report_resolution(asked, &resolved, &sources, judged.olm, context, found))
        }
        Err(failure) => {
            found.violations.extend(release::differences(judged, asked, None, context).await);
            failure::report_failure(asked, &failure, selected, has_catalog, context, found);
            None
        }
    }
}

/// Notes what the catalogs do not say about the bundles, but decides whether OLM installs them.
fn note_unchecked(bundle_contents: &[BundleContent], context: &Context<'_>) {
    let mut bundles: BTreeMap<&[UncheckedBundlePart], Vec<&str>> = BTreeMap::new();
    for content in bundle_contents.iter().filter(|content| !content.unchecked.is_empty()) {
        bundles.entry(&content.unchecked).or_default().push(&content.bundle);
    }
    for (unchecked, bundles) in bundles {
        let unchecked: Vec<String> = unchecked.iter().map(UncheckedBundlePart::to_string).collect();
        let bundles = failure::listed(bundles);
        context.notices.add(format!(
            "the catalog does not say about {bundles} {}; to check that, add the bundle's directory with -f",
            unchecked.join(", ")
        ));
    }
}

fn violation(doc: &RuleDoc, change: usize, message: String, help: String, at: Vec<Step>) -> Violation {
    Violation::new(doc, change, None, message, help, at)
}

/// The report entry of an extension that does not resolve, or the parts that all entries have in common.
fn entry(asked: &RequestedExtension, error: Result<(), &str>, path: Vec<String>) -> ExtensionEntry {
    let ExtensionRequest { package, version, .. } = &asked.extension.wanted;
    ExtensionEntry {
        name: asked.extension.name.clone(),
        package: package.clone(),
        installed: asked.installed.as_ref().map(|installed| installed.version.clone()),
        resolved: None,
        path,
        pinned: range_of(version).is_ok_and(|range| range.is_some_and(|range| range.is_one_version())),
        error: error.err().map(str::to_owned),
    }
}
