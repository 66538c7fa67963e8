//! Unknown fields are pruned from now on, in every version.

use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::crd::{CrdPair, steps};
use gantry_core::finding::Verdict;

pub fn judge(pair: &CrdPair) -> Vec<ViolationText> {
    if !pair.live.preserve_unknown_fields || pair.desired.preserve_unknown_fields {
        return Vec::new();
    }
    let text = "unable to determine if change is safe: preserveUnknownFields changed from true to false";
    let prunes = ViolationText::at(steps::spec("preserveUnknownFields"))
        .message("the server prunes unknown fields of every version from now on")
        .help(
            "name every field that is in use in the schemas, or keep unknown fields there with \
             x-kubernetes-preserve-unknown-fields",
        )
        .documented(format!("\"ChangeValidator\" validation failed: {text}"))
        .label("the live CRD keeps every field");
    vec![ViolationText { verdict: Some(Verdict::DataLoss), ..prunes }]
}
