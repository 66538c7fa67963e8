//! The conversion between versions changes.

use crate::crd_upgrade_safety::migration;
use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{ConversionClientConfig, Crd, CrdPair, ServiceReference, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let config = |crd: &Crd| {
        let config = || crd.webhook().map(|webhook| webhook.client_config.clone()).unwrap_or_default();
        crd.converts_by_webhook().then(config)
    };
    if pair.desired.strategy().is_none() && pair.converts_by_webhook() {
        return Vec::new();
    }
    // A CRD with a single version has nothing to convert.
    let converts = |crd: &Crd| crd.versions.len() > 1;
    let (message, help, label) = match (config(&pair.live), config(&pair.desired)) {
        (None, Some(_)) if converts(&pair.desired) => (
            "a conversion webhook is added",
            "make sure that the webhook answers before you deploy this: until it does, versions other than the stored \
                one cannot be read or written"
                .to_owned(),
            "no conversion webhook in the live CRD",
        ),
        (Some(_), None) if converts(&pair.live) => (
            "the conversion webhook is removed",
            format!("make sure that all served versions have the same schema{}", migrated_first(&pair.live)),
            "the live CRD converts with a webhook",
        ),
        (Some(was), Some(now)) if (converts(&pair.live) || converts(&pair.desired)) && !is_same_webhook(&was, &now) => {
            (
                "the conversion webhook changes",
                "make sure that the new webhook answers, and that it can read everything that the old one wrote"
                    .to_owned(),
                "the live CRD has a different webhook",
            )
        }
        _ => return Vec::new(),
    };
    // The desired CRD may have no `conversion` to point at.
    let at = if pair.desired.conversion.is_some() { "conversion" } else { "versions" };
    let diagnosis =
        ViolationText { message: message.into(), help: help.into(), at: steps::spec(at), ..ViolationText::default() }
            .label(label.into());
    vec![CrdRuleViolation { version: None, diagnosis }]
}

/// What to do with objects that only the webhook can read at the storage version.
fn migrated_first(live: &Crd) -> String {
    let is_stored_elsewhere =
        live.storage().is_some_and(|storage| live.stored_versions().iter().any(|v| *v != &*storage.name));
    if !is_stored_elsewhere {
        return String::new();
    }
    format!(", and migrate the objects as long as the webhook converts them: {}", migration::write_stored(live))
}

/// Whether both are the same webhook. The CA bundle is often injected by another tool, and the server defaults the
/// port, so neither is compared.
fn is_same_webhook(was: &ConversionClientConfig, now: &ConversionClientConfig) -> bool {
    let service = |config: &ConversionClientConfig| {
        let service = config.service.clone();
        service.map(|ServiceReference { namespace, name, path, .. }| (namespace, name, path))
    };
    was.url == now.url && service(was) == service(now)
}
