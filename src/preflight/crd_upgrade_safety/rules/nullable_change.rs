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
        so: "the server keeps a null that it dropped until now",
        help: "make sure that every reader understands null there, or change it only in a new version that a webhook \
            converts, or after a migration",
    },
    changed: Effect {
        breaks: &[Breaks::Readers, Breaks::Data],
        verdict: None,
        so: "the server drops a null from now on",
        help: "keep nullable as it is in this version, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
    removed: Effect {
        breaks: &[Breaks::Data, Breaks::Behaviour],
        verdict: None,
        so: "the server drops a null from now on and fills in the default",
        help: "keep nullable as it is in this version, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NullableChange",
        summary: "null is allowed in a field, or no longer allowed",
        reports: "Any change of `nullable`. The documentation of kapp and OLM calls it an unknown change.",
        why: "Where null is allowed, the server keeps it and does not fill in the field's default; where it is not \
            allowed, the server drops it and fills in the default. So the meaning of an object that contains null \
            changes, and clients may read a null that they do not expect.",
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
        what_to_do: "Make sure that the controller and its clients treat null and absence alike, or make the change in \
            a new version that a webhook converts, or after a migration.",
        breaks: &[Breaks::Readers, Breaks::Data, Breaks::Behaviour],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
