//! `oneOf` added, changed or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, LOOSENS, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "oneOf",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses values that match none of it, or more than one",
        help: "leave oneOf out of this version, or add it only in a new version that a webhook converts, or after a \
            migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server may refuse objects that were valid until now",
        help: "keep oneOf as it is in this version, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "OneOfChange",
        summary: "oneOf of a field is added, changed or removed",
        reports: "Any change of `oneOf` or of anything below it. The documentation of kapp and OLM calls it an unknown \
            change.",
        why: "Objects that match none of the alternatives, or more than one, were valid until now. An added \
            alternative can refuse objects that also match an old one. If all of `oneOf` is removed, nothing is \
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
  oneOf:
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
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
