//! `x-kubernetes-preserve-unknown-fields` added or removed.

use crate::finding::{Breaks, Severity, Verdict};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "x-kubernetes-preserve-unknown-fields",
    added: Effect {
        breaks: &[],
        verdict: Some(Verdict::Widening),
        so: "unknown fields that were dropped until now are kept",
        help: "this alone breaks nothing; a waiver or the rule's enforcement lets it pass",
    },
    changed: Effect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "unknown fields may be dropped",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: Effect {
        breaks: &[Breaks::Data, Breaks::Readers],
        verdict: None,
        so: "fields that the schema does not name are dropped when an object is next written",
        help: "keep it as it is in this version, or change it in a new version only",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "PreserveUnknownFieldsChange",
        summary: "unknown fields of an object are kept, or no longer",
        forbids: "Any change of `x-kubernetes-preserve-unknown-fields`. The reference documents call it an unknown \
            change.",
        why: "Where unknown fields are no longer kept, the API server drops them from every object when it is \
            next written, and anyone who writes them gets no error. Where they are kept from now on, nothing \
            is refused.",
        example: Example::Fields {
            live: "\
config:
  type: object
  x-kubernetes-preserve-unknown-fields: true
",
            desired: "\
config:
  type: object
",
        },
        what_to_do: "Name every field that is in use in the schema before the flag goes, or let it go in a new \
            version only.",
        breaks: &[Breaks::Data, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
