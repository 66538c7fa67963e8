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
        so: "what fits none of it is refused from now on",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "objects that were valid until now may be refused",
        help: "keep every alternative that is there today, or change it in a new version only",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "AnyOfChange",
        summary: "anyOf of a field is added, changed or removed",
        forbids: "Any change of `anyOf` or of anything below it. The reference documents call it an unknown change. \
            `anyOf: [{type: integer}, {type: string}]` on an int-or-string field says what that says and is passed over.",
        why: "Objects that fit none of the alternatives were valid until now. One alternative more lets more through, \
            one less does not. If it goes as a whole, nothing is refused.",
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
        what_to_do: "Leave the condition as it is in this version, or change it in a new one.",
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
    // The field takes integers and strings with these alternatives and without them.
    let means_nothing = pair.desired("x-kubernetes-int-or-string").is_some()
        && [change.live, change.desired].into_iter().flatten().all(keyword_change::is_int_or_string);
    if means_nothing { None } else { keyword_change::judge(pair, &EFFECTS) }
}
