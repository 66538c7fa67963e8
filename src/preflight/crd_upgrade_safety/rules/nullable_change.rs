//! `nullable` added or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "nullable",
    added: Effect {
        breaks: &[Breaks::Readers, Breaks::Behaviour],
        verdict: None,
        so: "a null that was dropped until now is kept",
        help: "make sure that every reader understands null there, or change it in a new version",
    },
    changed: Effect {
        breaks: &[Breaks::Readers, Breaks::Data],
        verdict: None,
        so: "a null is dropped from now on",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: Effect {
        breaks: &[Breaks::Data, Breaks::Behaviour],
        verdict: None,
        so: "a null is dropped from now on, and the default takes its place",
        help: "keep it as it is in this version, or change it in a new version only",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NullableChange",
        summary: "null is allowed in a field, or no longer",
        forbids: "Any change of `nullable`. The reference documents call it an unknown change.",
        why: "Where null is allowed it is kept, and the default of the field does not apply to it; where it is \
            not, the API server drops it, and the default applies. So an object that says null means \
            something else afterwards, and clients may read a null that they have never met.",
        example: Example::Fields {
            live: "\
limit:
  type: integer
",
            desired: "\
limit:
  type: integer
  nullable: true
",
        },
        what_to_do: "Make sure that the controller and its clients take null and absence for the same, or make the \
            change in a new version.",
        breaks: &[Breaks::Readers, Breaks::Data, Breaks::Behaviour],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
