//! Checks whether OLM v1 installs a bundle, and reports problems in OLM's own words.
//!
//! OLM first checks the ClusterServiceVersion and stops at the first unsupported feature. Only if there is none, it
//! runs all validators and reports everything they find.

use gantry_k8s_cel::gotext::quote;

use super::Bundle;
use super::config;
use super::support::{
    BundleDetail, BundlePlace, CsvStep, Profile, Support, UncheckedBundlePart, Unsupported, UnsupportedKind, csv_place,
};
use super::validators::{self, VALIDATORS};

/// The problems of a whole bundle; empty if OLM installs it and there are no mismatches.
pub fn unsupported(bundle: &Bundle, profile: &Profile<'_>) -> Vec<Unsupported> {
    check_support(BundleDetail::Bundle(bundle), profile).unsupported
}

/// Checks a bundle, as far as it is known.
pub fn check_support(known: BundleDetail<'_>, profile: &Profile<'_>) -> Support {
    let mut support = Support::default();
    if let Some(first) = refused(known, profile, &mut support.unchecked) {
        support.unsupported.push(first);
    } else {
        validate(known, &mut support);
    }
    if let BundleDetail::Bundle(bundle) = known {
        support.unsupported.extend(validators::owned_versions(bundle));
    }
    support.unchecked.sort();
    support
}

/// The first problem for which OLM refuses the bundle before it runs the validators.
fn refused(
    known: BundleDetail<'_>,
    profile: &Profile<'_>,
    unchecked: &mut Vec<UncheckedBundlePart>,
) -> Option<Unsupported> {
    let (csv, file) = match known {
        BundleDetail::Bundle(bundle) => {
            if let Some(found) = bundle.subdirectories.first() {
                let text = format!(
                    "subdirectories are not allowed within the \"manifests\" directory of the bundle image filesystem: \
                     found {}",
                    quote(found)
                );
                return Some(Unsupported { reason: UnsupportedKind::Olm, text, place: None });
            }
            match &bundle.csv {
                Some((csv, file)) => (csv, Some(file)),
                None => {
                    let text = "no ClusterServiceVersion found in \"manifests\"".to_owned();
                    return Some(Unsupported { reason: UnsupportedKind::Olm, text, place: None });
                }
            }
        }
        BundleDetail::Csv(csv) | BundleDetail::Metadata(csv) => (csv, None),
    };
    let at = |text: String, steps: &[CsvStep]| {
        let place = file.map(|file| csv_place(csv, file, steps));
        Some(Unsupported { reason: UnsupportedKind::Olm, text, place })
    };
    let spec = CsvStep::Key("spec");
    if !csv.owned_api_services.is_empty() {
        // Upstream's spelling.
        let text = "unsupported bundle: apiServiceDefintions are not supported".to_owned();
        return at(text, &[spec, CsvStep::Key("apiservicedefinitions"), CsvStep::Key("owned")]);
    }
    if matches!(known, BundleDetail::Metadata(_)) {
        unchecked.push(UncheckedBundlePart::Webhooks);
    } else if !csv.webhooks.is_empty() && !profile.olm.supports_webhooks() {
        let text = "unsupported bundle: webhookDefinitions are not supported".to_owned();
        return at(text, &[spec, CsvStep::Key("webhookdefinitions")]);
    }
    let modes = [spec, CsvStep::Key("installModes")];
    let one_namespace = profile.single_own_namespace && profile.olm.can_watch_one_namespace();
    if !csv.supports("AllNamespaces") && !one_namespace {
        return at("unsupported bundle: bundle does not support AllNamespaces install mode".to_owned(), &modes);
    }
    if !["AllNamespaces", "SingleNamespace", "OwnNamespace"].iter().any(|mode| csv.supports(mode)) {
        let text = "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace \
                    OwnNamespace] install modes";
        return at(text.to_owned(), &modes);
    }
    if profile.olm.has_config()
        && let Some(text) = config::refused(csv, profile, unchecked)
    {
        return Some(Unsupported { reason: UnsupportedKind::Olm, text, place: None });
    }
    None
}

fn validate(known: BundleDetail<'_>, support: &mut Support) {
    let partial;
    let bundle = match known {
        BundleDetail::Bundle(bundle) => bundle,
        BundleDetail::Csv(csv) => {
            support.unchecked.push(UncheckedBundlePart::Objects);
            partial = Bundle { csv: Some((csv.clone(), String::new())), ..Bundle::default() };
            &partial
        }
        BundleDetail::Metadata(_) => {
            support.unchecked.extend([UncheckedBundlePart::Install, UncheckedBundlePart::Objects]);
            return;
        }
    };
    let Some((csv, file)) = &bundle.csv else { return };
    let is_whole = matches!(known, BundleDetail::Bundle(_));
    for validator in VALIDATORS.iter().filter(|validator| is_whole || !validator.needs_bundle) {
        for validators::BundleViolation { text, at } in (validator.run)(bundle, csv) {
            let place = at.filter(|_| is_whole).map(|at| match at {
                validators::ValidationPlace::Csv(steps) => csv_place(csv, file, &steps),
                validators::ValidationPlace::Object { file, kind, name } => {
                    BundlePlace { file, object: (kind, name), steps: Vec::new() }
                }
            });
            support.unsupported.push(Unsupported { reason: UnsupportedKind::Olm, text, place });
        }
    }
}
