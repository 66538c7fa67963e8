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
        so: "other numbers are refused from now on",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "multiples of the old value may be refused from now on",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "MultipleOfChange",
        summary: "multipleOf of a number is added, changed or removed",
        forbids: "Any change of `multipleOf`. The reference documents call it an unknown change.",
        why: "Numbers that are no multiple of the new value were valid until now. One that goes refuses \
            nothing.",
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
        what_to_do: "Leave it out of this version and let the controller round, or put it into a new version.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
