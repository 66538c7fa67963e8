//! `not` added, changed or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, LOOSENS, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "not",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "what fits it is refused from now on",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "objects that were valid until now may be refused",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NotChange",
        summary: "not of a field is added, changed or removed",
        forbids: "Any change of `not` or of anything below it. The reference documents call it an unknown change.",
        why: "Objects that fit what is forbidden from now on were valid until now. If it goes as a whole, \
            nothing is refused.",
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
  not:
    required: [disk, bucket]
",
        },
        what_to_do: "Leave the condition as it is in this version, or change it in a new one.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
