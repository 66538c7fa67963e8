//! `scope` changed.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let (was, now) = (&pair.live.scope, &pair.desired.scope);
    if was == now {
        return Vec::new();
    }
    let diagnosis = ViolationText {
        message: format!("scope may not be changed from {was} to {now}").into(),
        help: format!("keep scope: {was}, or define a new kind with scope {now} and move the objects").into(),
        at: steps::spec("scope"),
        ..ViolationText::default()
    }
    .documented(format!("\"NoScopeChange\" validation failed: scope changed from \"{was}\" to \"{now}\""))
    .label(format!("was {was} in the live CRD"));
    vec![CrdRuleViolation { version: None, diagnosis }]
}
