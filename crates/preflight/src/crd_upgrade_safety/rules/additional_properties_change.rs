//! `additionalProperties` added, changed or removed.

use crate::crd_upgrade_safety::json::Json;
use crate::crd_upgrade_safety::keyword_change::{self, Effects, KeywordEffect};
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::finding::Breaks;
use gantry_schema::keywords;

const EFFECTS: Effects = Effects {
    keyword: "additionalProperties",
    added: KeywordEffect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses values that do not match it; where it pruned unknown fields before, it now keeps them",
        help: "leave additionalProperties out of this version, or add it only in a new version that a webhook \
            converts, or after a migration",
    },
    changed: KeywordEffect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        verdict: None,
        so: "the server may refuse or drop values that it kept until now",
        help: "keep additionalProperties as it is in this version, or change it only in a new version that a webhook \
            converts, or after a migration",
    },
    removed: KeywordEffect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "the server drops fields that the schema does not name when an object is next written",
        help: "keep additionalProperties as it is in this version, or change it only in a new version that a webhook \
            converts, or after a migration",
    },
};

/// An object without fields that becomes a map. The server pruned every field that clients sent in it, so stored
/// objects have none.
const NOW_A_MAP: KeywordEffect = KeywordEffect {
    breaks: &[Breaks::Writers],
    verdict: None,
    so: "until now the server pruned every field in it, so stored objects have none; it now keeps values that match, \
         and refuses others",
    help: "stored objects need no change; make sure that what clients send there matches the new schema",
};

/// Whether the live schema prunes every field of this object, and the desired one keeps those that match a schema.
fn was_pruned(pair: &NodePair) -> bool {
    const KEEPS: [&str; 4] = [
        "properties",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ];
    let is_object = keywords::get(pair.live, "type").and_then(Json::text).is_some_and(|kind| kind == "object");
    let gets_a_schema = pair.desired(EFFECTS.keyword).and_then(Json::map).is_some();
    is_object && gets_a_schema && KEEPS.iter().all(|keyword| keywords::get(pair.live, keyword).is_none())
}

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let added = if was_pruned(pair) { NOW_A_MAP } else { EFFECTS.added };
    keyword_change::judge(pair, &Effects { added, ..EFFECTS })
}
