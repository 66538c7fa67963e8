//! `x-kubernetes-list-map-keys` changes on a list that keeps its type.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{self, Effect, Effects};
use crate::preflight::crd_upgrade_safety::node::NodePair;
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "x-kubernetes-list-map-keys",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Behaviour],
        verdict: None,
        so: "the server refuses items with equal keys",
        help: "leave x-kubernetes-list-map-keys out of this version, or add it only in a new version that a webhook \
            converts, or after a migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Behaviour],
        verdict: None,
        so: "the server refuses items with equal keys, and under server-side apply the owners of items change",
        help: "keep x-kubernetes-list-map-keys as it is in this version, or change it only in a new version that a \
            webhook converts, or after a migration",
    },
    removed: Effect {
        breaks: &[Breaks::Behaviour],
        verdict: None,
        so: "under server-side apply the owners of items change",
        help: "keep x-kubernetes-list-map-keys as it is in this version, or change it only in a new version that a \
            webhook converts, or after a migration",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ListMapKeysChange",
        summary: "the keys of a list of map type change",
        reports: "A change of `x-kubernetes-list-map-keys` where `x-kubernetes-list-type` stays `map`. The \
            documentation of kapp and OLM calls it an unknown change.",
        why: "The server refuses items with equal keys: with fewer keys, items that were different may become equal. \
            Under server-side apply the keys decide which manager owns an item, so the owners of items change.",
        example: Example::Fields {
            live: "\
ports:
  type: array
  x-kubernetes-list-type: map
  x-kubernetes-list-map-keys: [name, port]
  items:
    type: object
    required: [name, port]
    properties:
      name:
        type: string
      port:
        type: integer
",
            desired: "\
ports:
  type: array
  x-kubernetes-list-type: map
  x-kubernetes-list-map-keys: [name]
  items:
    type: object
    required: [name, port]
    properties:
      name:
        type: string
      port:
        type: integer
",
        },
        what_to_do: "Keep the keys in this version, or add a list with another name.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Behaviour],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    // If the list type changes too, the keys are added or removed with it, and `ListTypeChange` reports both.
    if pair.change("x-kubernetes-list-type").is_some() {
        return None;
    }
    keyword_change::judge(pair, &EFFECTS)
}
