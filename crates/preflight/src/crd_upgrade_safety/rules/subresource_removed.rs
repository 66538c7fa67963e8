//! The status or scale subresource is removed.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::wording::wording;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let mut found = Vec::new();
    for (live, desired) in pair.common_versions() {
        for name in live.subresources_missing_in(desired) {
            let diagnosis = ViolationText {
                message: wording!("the {name} subresource is removed from ", VERSIONS),
                help: wording!("keep subresources.{name} in ", VERSIONS),
                at: steps::subresource(desired.index, name),
                ..ViolationText::default()
            }
            .label(format!("the live CRD has the {name} subresource"));
            found.push(CrdRuleViolation { version: Some(live.name.to_string()), diagnosis });
        }
    }
    found
}
