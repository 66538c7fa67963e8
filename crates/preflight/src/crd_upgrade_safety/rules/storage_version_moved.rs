//! The storage version changes.

use super::storage_version_loses_fields;
use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let (Some(was), Some(now)) = (pair.live.storage(), pair.desired.storage()) else {
        return Vec::new();
    };
    // If the old version is removed, another rule reports it.
    if was.name == now.name || pair.desired.version(&was.name).is_none() {
        return Vec::new();
    }
    // If fields are lost, `StorageVersionLosesFields` reports more than this rule.
    if !storage_version_loses_fields::judge(pair).is_empty() {
        return Vec::new();
    }
    let diagnosis = ViolationText {
        message: format!("the storage version changes from {} to {}", was.name, now.name).into(),
        help: format!(
            "existing objects stay stored at {} until they are next written; keep that version until all of them \
                have been written",
            was.name
        )
        .into(),
        at: steps::of_version(now.index, "storage"),
        ..ViolationText::default()
    }
    .label(format!("the live CRD stores at {}", was.name));
    vec![CrdRuleViolation { version: Some(now.name.to_string()), diagnosis }]
}
