//! A version is marked as deprecated.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    pair.common_versions()
        .filter(|(live, desired)| !live.deprecated && desired.deprecated)
        .map(|(live, desired)| {
            let diagnosis = ViolationText {
                message: format!("version {} is deprecated from now on", live.name).into(),
                help: format!("nothing breaks; the server warns clients that use {}", live.name).into(),
                at: steps::of_version(desired.index, "deprecated"),
                ..ViolationText::default()
            }
            .label("not deprecated in the live CRD".into());
            CrdRuleViolation { version: Some(live.name.to_string()), diagnosis }
        })
        .collect()
}
