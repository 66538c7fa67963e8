//! Unknown fields are pruned from now on, in every version.

use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::Verdict;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    if !pair.live.preserve_unknown_fields || pair.desired.preserve_unknown_fields {
        return Vec::new();
    }
    let text = "unable to determine if change is safe: preserveUnknownFields changed from true to false";
    let diagnosis = ViolationText {
        message: "the server prunes unknown fields of every version from now on".into(),
        help: "name every field that is in use in the schemas, or keep unknown fields there with \
            x-kubernetes-preserve-unknown-fields"
            .into(),
        at: steps::spec("preserveUnknownFields"),
        verdict: Some(Verdict::DataLoss),
        ..ViolationText::default()
    }
    .documented(format!("\"ChangeValidator\" validation failed: {text}"))
    .label("the live CRD keeps every field".into());
    vec![CrdRuleViolation { version: None, diagnosis }]
}
