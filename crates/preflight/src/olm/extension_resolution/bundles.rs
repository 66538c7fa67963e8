//! Checks whether OLM v1 can install the bundles among the manifests.

use gantry_catalog::VersionRelease;
use gantry_catalog::bundle::{self, BundleDetail, OlmRelease, Profile, UnsupportedKind, check_support};
use gantry_catalog::resolve::{ResolvedCatalogBundle, range_of};
use serde_json::Value;

use super::RequestedExtension;
use super::rules::{BUNDLE_NOT_RESOLVED, OWNED_VERSION_MISMATCH, UNSUPPORTED_BUNDLE};
use crate::{Context, Violation, ViolationSubject};
use gantry_core::resource::Step;
use gantry_core::text::sanitize;
use gantry_deploy::plan::planned_bundle::PlannedBundle;

pub fn check(asked: &[RequestedExtension], olm: OlmRelease, context: &Context<'_>) -> Vec<Violation> {
    let bundles = context.plan.bundles.iter().enumerate();
    bundles.flat_map(|(index, bundle)| check_bundle(index, bundle, asked, olm, context)).collect()
}

/// The bundle of the manifests with this version of a package. It contains more than a catalog does.
pub fn find<'a>(context: &'a Context<'_>, package: &str, version: &str) -> Option<&'a PlannedBundle> {
    let is_version = |text: &str| {
        let [one, other] = [text, version].map(VersionRelease::parse);
        text == version || one.is_ok_and(|one| other.is_ok_and(|other| one.precedence(&other).is_eq()))
    };
    context.plan.bundles.iter().find(|bundle| bundle.package() == package && is_version(bundle.version()))
}

/// Reports the bundles of the manifests that the extension does not install, because it resolves to another version.
pub fn report_other_versions(
    asked: &RequestedExtension,
    resolved: &ResolvedCatalogBundle<'_>,
    context: &Context<'_>,
) -> Vec<Violation> {
    let bundles = context.plan.bundles.iter().enumerate();
    let of_package = bundles.filter(|(_, bundle)| bundle.package() == resolved.package.name);
    let report = |(index, bundle): (usize, &PlannedBundle)| {
        let (name, version) = (sanitize(&asked.extension.name), sanitize(&resolved.bundle.version));
        let message = format!(
            "bundle {} is not the version that ClusterExtension {name} resolves to, which is {version} (catalog {}): what OLM \
             installs was not checked",
            bundle.to_text(),
            sanitize(resolved.catalog)
        );
        let help = format!(
            "add the directory of {version} in its place (gantry catalog {} {version} --bundle says how to get it), or set \
             version of the ClusterExtension to {}",
            sanitize(&resolved.package.name),
            sanitize(bundle.version())
        );
        Violation::new(&BUNDLE_NOT_RESOLVED, ViolationSubject::Bundle(index), None, message, help, Vec::new())
    };
    of_package.map(report).collect()
}

/// The bundles whose version the range of their ClusterExtension excludes, whatever the catalogs contain, unless that is
/// reported already.
pub fn outside_range(context: &Context<'_>, reported: &[Violation]) -> Vec<Violation> {
    let is_reported = |index: usize| {
        let of = ViolationSubject::Bundle(index);
        reported.iter().any(|violation| violation.rule == BUNDLE_NOT_RESOLVED.name && violation.subject == of)
    };
    let bundles = context.plan.bundles.iter().enumerate().filter(|(index, _)| !is_reported(*index));
    let report = |(index, bundle): (usize, &PlannedBundle)| {
        let extension = bundle.extension()?;
        let range = range_of(&extension.wanted.version).ok()??;
        let found = VersionRelease::parse(bundle.version()).ok()?;
        if range.matches(&found.version) {
            return None;
        }
        let message = format!(
            "bundle {} is not a version that ClusterExtension {} installs, whose version is {:?}: what OLM installs was not \
             checked",
            bundle.to_text(),
            sanitize(&extension.name),
            extension.wanted.version
        );
        let help = format!(
            "add the directory of such a version in its place (gantry catalog {} VERSION --bundle says how to get it), or set \
             version of the ClusterExtension to {}",
            sanitize(bundle.package()),
            sanitize(bundle.version())
        );
        Some(Violation::new(&BUNDLE_NOT_RESOLVED, ViolationSubject::Bundle(index), None, message, help, Vec::new()))
    };
    bundles.filter_map(report).collect()
}

/// Reports the bundles of the manifests that a live ClusterExtension does not install.
pub fn report_unresolved(asked: &RequestedExtension, text: &str, context: &Context<'_>) -> Vec<Violation> {
    let bundles = context.plan.bundles.iter().enumerate();
    let of_package = bundles.filter(|(_, bundle)| bundle.package() == asked.extension.wanted.package);
    let report = |(index, bundle): (usize, &PlannedBundle)| {
        let name = sanitize(&asked.extension.name);
        let message = format!(
            "bundle {}: the live ClusterExtension {name} resolves to no bundle: {}",
            bundle.to_text(),
            sanitize(text)
        );
        let help = format!("OLM installs nothing; add ClusterExtension {name} to the manifests, corrected");
        Violation::new(&BUNDLE_NOT_RESOLVED, ViolationSubject::Bundle(index), None, message, help, Vec::new())
    };
    of_package.map(report).collect()
}

fn check_bundle(
    index: usize,
    bundle: &PlannedBundle,
    asked: &[RequestedExtension],
    olm: OlmRelease,
    context: &Context<'_>,
) -> Vec<Violation> {
    let extension = asked.iter().map(|asked| &asked.extension).find(|asked| asked.wanted.package == bundle.package());
    let nothing = Value::Null;
    let config = extension.map_or(&nothing, |extension| &extension.config);
    let profile = Profile {
        olm,
        install_namespace: bundle.namespace().unwrap_or_default(),
        config: Some(config).filter(|config| !config.is_null()),
        ..Profile::default()
    };
    let support = check_support(BundleDetail::Bundle(&bundle.content), &profile);
    for unchecked in &support.unchecked {
        context.notices.add(format!("bundle {}: could not check {unchecked}", bundle.to_text()));
    }
    if names_operator_conditions(bundle) {
        context.notices.add(format!(
            "bundle {} has permissions for OperatorConditions, which OLM v1 does not support: the operator cannot \
             block updates with them; pin its version instead",
            bundle.to_text()
        ));
    }
    let violations = support.unsupported.into_iter().map(|unsupported| {
        let (doc, help) = match unsupported.reason {
            UnsupportedKind::Olm => (&UNSUPPORTED_BUNDLE, "OLM v1 does not install the bundle until this is fixed"),
            UnsupportedKind::OwnedVersionMismatch => (
                &OWNED_VERSION_MISMATCH,
                "name a version that the CRD serves and that the operator watches, and the kind of the CRD",
            ),
        };
        let place = unsupported.place.filter(|place| place.object.0 == "ClusterServiceVersion");
        let steps = place.map(|place| place.steps).unwrap_or_default();
        let step = |step: &bundle::CsvStep| match step {
            bundle::CsvStep::Key(key) => Step::from(*key),
            bundle::CsvStep::Index(index) => Step::from(*index),
        };
        let message = format!("bundle {}: {}", bundle.to_text(), sanitize(&unsupported.text));
        Violation::new(
            doc,
            ViolationSubject::Bundle(index),
            None,
            message,
            help.into(),
            steps.iter().map(step).collect(),
        )
    });
    violations.collect()
}

fn names_operator_conditions(bundle: &PlannedBundle) -> bool {
    let csv = bundle.content.csv.iter().map(|(csv, _)| csv);
    let permissions = csv.flat_map(|csv| csv.permissions.iter().chain(&csv.cluster_permissions));
    permissions.flat_map(|permissions| &permissions.rules).any(|rule| {
        rule.api_groups.iter().any(|group| group == "operators.coreos.com")
            && rule.resources.iter().any(|resource| resource.starts_with("operatorconditions"))
    })
}
