//! `multipleOf` added, changed or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, LOOSENS, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "multipleOf",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses numbers that are not a multiple of it",
        help: "leave multipleOf out of this version, or add it only in a new version that a webhook converts, or \
            after a migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server may refuse multiples of the old value",
        help: "keep multipleOf as it is in this version, or change it only in a new version that a webhook converts, \
            or after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "MultipleOfChange",
        summary: "multipleOf of a number is added, changed or removed",
        reports: "Any change of `multipleOf`. The documentation of kapp and OLM calls it an unknown change.",
        why: "Numbers that are not a multiple of the new value were valid until now. Removing it refuses nothing.",
        example: Example::Fields {
            live: "\
size:
  type: integer
",
            desired: "\
size:
  type: integer
  multipleOf: 8
",
        },
        what_to_do: "Leave it out of this version and let the controller round, or add it in a new version that a \
            webhook converts, or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
