//! A version that is no longer served.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let served = pair.live.served_versions();
    served
        .filter_map(|live| {
            let name = &live.name;
            let desired = pair.desired.version(name).filter(|desired| !desired.served)?;
            let diagnosis = ViolationText {
                message: format!("version {name} is no longer served").into(),
                help: format!("make sure that no client uses {name} any more; served: true brings it back").into(),
                at: steps::of_version(desired.index, "served"),
                ..ViolationText::default()
            }
            .label(format!("the live CRD serves {name}"));
            Some(CrdRuleViolation { version: Some(name.to_string()), diagnosis })
        })
        .collect()
}
