//! `anyOf` added, changed or removed.

use crate::crd_upgrade_safety::keyword_change::{self, Effects, KeywordEffect, LOOSENS};
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::finding::Breaks;

const EFFECTS: Effects = Effects {
    keyword: "anyOf",
    added: KeywordEffect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses values that match none of it",
        help: "leave anyOf out of this version, or add it only in a new version that a webhook converts, or after a \
            migration",
    },
    changed: KeywordEffect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server may refuse objects that were valid until now",
        help: "keep every alternative of the live CRD, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
    removed: LOOSENS,
};

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change(EFFECTS.keyword)?;
    // The field accepts integers and strings with or without these alternatives.
    let means_nothing = pair.desired("x-kubernetes-int-or-string").is_some()
        && [change.live, change.desired].into_iter().flatten().all(keyword_change::is_int_or_string);
    if means_nothing { None } else { keyword_change::judge(pair, &EFFECTS) }
}
