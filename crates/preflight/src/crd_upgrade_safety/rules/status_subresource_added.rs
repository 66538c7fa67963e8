//! The status subresource is added.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::wording::wording;

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
                ..ViolationText::default()
            }
            .label("no status subresource in the live CRD".into());
            CrdRuleViolation { version: Some(live.name.to_string()), diagnosis }
        })
        .collect()
}
