//! `x-kubernetes-list-type` added, changed or removed.

use crate::crd_upgrade_safety::json::{Json, JsonMap};
use crate::crd_upgrade_safety::keyword_change::{self, KeywordEffect};
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::{BeyondProof, ViolationText};
use gantry_core::finding::{Breaks, Verdict};
use gantry_schema::keywords;

const KEYWORD: &str = "x-kubernetes-list-type";

const UNIQUE: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Behaviour],
    verdict: None,
    so: "the server refuses lists with two equal items (for a map: equal keys)",
    help: "look for lists with equal items first, or add it only in a new version that a webhook converts, or after a \
        migration",
};

const OF_STRUCTURES: KeywordEffect = KeywordEffect {
    so: "the server refuses lists with two equal items, and every server-side apply to an object with an object or a \
        list in this list fails",
    help: "keep the list atomic, or make it a map: a set can only contain scalars under server-side apply",
    ..UNIQUE
};

const ATOMIC: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::Behaviour],
    verdict: Some(Verdict::Widening),
    so: "no value is refused; under server-side apply the list has one owner instead of one for each item",
    help: "check managedFields: if several managers apply items of this list, they will conflict, or overwrite each \
        other",
};

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change(KEYWORD)?;
    let desired = change.desired.and_then(Json::text).unwrap_or("atomic");
    let effect = match desired {
        "atomic" => ATOMIC,
        "set" if pair.desired("items").and_then(Json::map).is_some_and(is_structure) => OF_STRUCTURES,
        _ => UNIQUE,
    };
    let was_shared = matches!(change.live.and_then(Json::text), Some("set" | "map"));
    let is_shared = desired != "atomic";
    let mut text = keyword_change::diagnosis(pair, change, &effect);
    text.beyond_proof = (was_shared || is_shared).then_some(BeyondProof::LostOwners);
    if is_shared && !was_shared {
        text.bare = text.bare.map(|change| {
            change.then(
                "; under server-side apply the manager of the list does not own its items: an item that leaves the \
                 manifest stays",
            )
        });
    }
    Some(text)
}

/// Whether items with this schema can be objects or lists.
fn is_structure(items: &JsonMap) -> bool {
    match keywords::get(items, "type").and_then(Json::text) {
        Some(name) => matches!(name, "object" | "array"),
        None => keywords::get(items, "x-kubernetes-preserve-unknown-fields").is_some(),
    }
}
