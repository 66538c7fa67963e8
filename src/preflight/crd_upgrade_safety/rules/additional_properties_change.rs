//! `additionalProperties` added, removed or of another kind.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::json::Json;
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, judge};
use crate::preflight::crd_upgrade_safety::node::NodePair;
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};
use gantry_schema::keywords;

const EFFECTS: Effects = Effects {
    keyword: "additionalProperties",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "values that do not fit it are refused from now on; where unknown fields were pruned, they are \
            kept",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        verdict: None,
        so: "values that were kept until now may be refused or dropped",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: Effect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "fields that the schema does not name are dropped when an object is next written",
        help: "keep it as it is in this version, or change it in a new version only",
    },
};

/// An object without fields that becomes a map. What writers sent in it was pruned, so that no stored object has any.
const NOW_A_MAP: Effect = Effect {
    breaks: &[Breaks::Writers],
    verdict: None,
    so: "until now the server pruned every field in it, so that stored objects have none; from now on it keeps values \
         that fit, and refuses others",
    help: "nothing has to be done for stored objects; make sure that what writers send there fits the new schema",
};

/// Whether the server prunes everything in such an object today, and no longer those values that fit a schema.
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

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "AdditionalPropertiesChange",
        summary: "which unknown fields an object may have changes",
        forbids: "Any change of `additionalProperties`, apart from a schema in it that changes or goes: that is \
            judged field by field. The reference documents call it an unknown change.",
        why: "The values of a map that is no longer one are pruned when an object is next written; values that \
            get a schema are refused where they do not fit it.",
        example: Example::Fields {
            live: "\
labels:
  type: object
  additionalProperties: true
",
            desired: "\
labels:
  type: object
  additionalProperties:
    type: string
",
        },
        what_to_do: "Keep the map as it is in this version and add a field of another name.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| match was_pruned(pair) {
        true => judge(pair, &Effects { added: NOW_A_MAP, ..EFFECTS }),
        false => judge(pair, &EFFECTS),
    }),
};
