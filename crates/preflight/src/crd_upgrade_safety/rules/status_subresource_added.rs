//! The status subresource is added.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{Crd, CrdPair, CrdVersion, steps};
use gantry_core::finding::Severity;
use gantry_core::finding::wording::wording;
use gantry_schema::json::Json;
use gantry_schema::keywords;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    pair.common_versions()
        .filter(|(live, desired)| !live.status_subresource && desired.status_subresource)
        .map(|(live, desired)| {
            let diagnosis = ViolationText {
                message: wording!(
                    "status becomes a subresource of ",
                    VERSIONS,
                    ": writes of the object itself no longer change it"
                ),
                help: "make sure that every client that reports a status writes it through /status".into(),
                at: steps::subresource(desired.index, "status"),
                // Nothing that is sent as status is kept today.
                semantic: (!keeps_status(&pair.live, live)).then_some(Severity::Info),
                ..ViolationText::default()
            }
            .label("no status subresource in the live CRD".into());
            CrdRuleViolation { version: Some(live.name.to_string()), diagnosis }
        })
        .collect()
}

/// Whether an object of the version can have a status.
fn keeps_status(crd: &Crd, version: &CrdVersion) -> bool {
    let root = version.schema().and_then(|schema| Json::parse(schema).ok());
    let Some(root) = root.as_ref().and_then(Json::map).filter(|_| !crd.preserve_unknown_fields) else { return true };
    let has_field =
        keywords::get(root, "properties").and_then(Json::map).is_some_and(|fields| fields.get("status").is_some());
    has_field || keywords::get(root, "x-kubernetes-preserve-unknown-fields").is_some()
}
