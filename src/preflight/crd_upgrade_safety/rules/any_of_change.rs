//! `anyOf` added, changed or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{self, Effect, Effects, LOOSENS};
use crate::preflight::crd_upgrade_safety::node::NodePair;
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "anyOf",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses values that match none of it",
        help: "leave anyOf out of this version, or add it only in a new version that a webhook converts, or after a \
            migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server may refuse objects that were valid until now",
        help: "keep every alternative of the live CRD, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "AnyOfChange",
        summary: "anyOf of a field is added, changed or removed",
        reports: "Any change of `anyOf` or of anything below it. The documentation of kapp and OLM calls it an unknown \
            change. `anyOf: [{type: integer}, {type: string}]` on an int-or-string field is redundant and is not \
            reported.",
        why: "Objects that match none of the alternatives were valid until now. An added alternative accepts more \
            objects, a removed one fewer. If all of `anyOf` is removed, nothing is refused.",
        example: Example::Fields {
            live: "\
storage:
  type: object
  properties:
    disk:
      type: string
    bucket:
      type: string
",
            desired: "\
storage:
  type: object
  properties:
    disk:
      type: string
    bucket:
      type: string
  anyOf:
  - required: [disk]
  - required: [bucket]
",
        },
        what_to_do: "Leave the condition as it is in this version, or change it in a new version that a webhook \
            converts, or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change(EFFECTS.keyword)?;
    // The field accepts integers and strings with or without these alternatives.
    let means_nothing = pair.desired("x-kubernetes-int-or-string").is_some()
        && [change.live, change.desired].into_iter().flatten().all(keyword_change::is_int_or_string);
    if means_nothing { None } else { keyword_change::judge(pair, &EFFECTS) }
}
