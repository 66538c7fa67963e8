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
        so: "the server refuses values that match it",
        help: "leave `not` out of this version, or add it only in a new version that a webhook converts, or after a \
            migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server may refuse objects that were valid until now",
        help: "keep `not` as it is in this version, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NotChange",
        summary: "not of a field is added, changed or removed",
        reports: "Any change of `not` or of anything below it. The documentation of kapp and OLM calls it an unknown \
            change.",
        why: "Objects that match what is now forbidden were valid until now. If all of `not` is removed, nothing is \
            refused.",
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
        what_to_do: "Leave the condition as it is in this version, or change it in a new version that a webhook \
            converts, or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
