//! `x-kubernetes-list-map-keys` changes on a list that keeps its type.

use crate::crd_upgrade_safety::keyword_change::{self, Effects, KeywordEffect};
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::{BeyondProof, ViolationText};
use gantry_core::finding::Breaks;

const EFFECTS: Effects = Effects {
    keyword: "x-kubernetes-list-map-keys",
    added: KeywordEffect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Behaviour],
        verdict: None,
        so: "the server refuses items with equal keys",
        help: "leave x-kubernetes-list-map-keys out of this version, or add it only in a new version that a webhook \
            converts, or after a migration",
    },
    changed: KeywordEffect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Behaviour],
        verdict: None,
        so: "the server refuses items with equal keys, and under server-side apply the owners of items change",
        help: "keep x-kubernetes-list-map-keys as it is in this version, or change it only in a new version that a \
            webhook converts, or after a migration",
    },
    removed: KeywordEffect {
        breaks: &[Breaks::Behaviour],
        verdict: None,
        so: "under server-side apply the owners of items change",
        help: "keep x-kubernetes-list-map-keys as it is in this version, or change it only in a new version that a \
            webhook converts, or after a migration",
    },
};

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    // If the list type changes too, the keys are added or removed with it, and `ListTypeChange` reports both.
    if pair.change("x-kubernetes-list-type").is_some() {
        return None;
    }
    let mut text = keyword_change::judge(pair, &EFFECTS)?;
    text.beyond_proof = Some(BeyondProof::LostOwners);
    text.bare = text.bare.map(|change| {
        change
            .then("; under server-side apply the owners of items change, and an item with another key is another item")
    });
    Some(text)
}
