//! `x-kubernetes-int-or-string` added or removed.

use crate::crd_upgrade_safety::keyword_change::{self, Effects, KeywordEffect};
use crate::crd_upgrade_safety::node::{NodePair, Transition};
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::finding::{Breaks, Verdict};

const EFFECTS: Effects = Effects {
    keyword: "x-kubernetes-int-or-string",
    added: KeywordEffect {
        breaks: &[Breaks::Readers],
        verdict: None,
        so: "the field now accepts both integers and strings",
        help: "make sure that every reader understands both, or change it only in a new version that a webhook \
            converts, or after a migration",
    },
    changed: NO_LONGER,
    removed: NO_LONGER,
};

const NO_LONGER: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    verdict: None,
    so: "the server refuses values of the other type",
    help: "keep x-kubernetes-int-or-string as it is in this version, or change it only in a new version that a \
        webhook converts, or after a migration",
};

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change(EFFECTS.keyword)?;
    let mut diagnosis = keyword_change::judge(pair, &EFFECTS)?;
    let from_one_type = pair.change("type").is_some_and(|kind| kind.desired.is_none());
    // Any other change of the node may narrow the field.
    let alone =
        pair.changes.iter().all(|change| matches!(change.keyword, "type" | "anyOf" | "x-kubernetes-int-or-string"));
    if change.transition() == Transition::Added && from_one_type && alone {
        diagnosis.verdict = Some(Verdict::Widening);
    }
    Some(diagnosis)
}
