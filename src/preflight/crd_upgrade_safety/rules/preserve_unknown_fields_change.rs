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
        so: "the server keeps unknown fields that it dropped until now",
        help: "this alone breaks nothing; waive the finding or set the rule's enforcement",
    },
    changed: Effect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "the server may drop unknown fields",
        help: "keep x-kubernetes-preserve-unknown-fields as it is in this version, or change it only in a new version \
            that a webhook converts, or after a migration",
    },
    removed: Effect {
        breaks: &[Breaks::Data, Breaks::Readers],
        verdict: None,
        so: "the server drops fields that the schema does not name when an object is next written",
        help: "keep x-kubernetes-preserve-unknown-fields as it is in this version, or change it only in a new version \
            that a webhook converts, or after a migration",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "PreserveUnknownFieldsChange",
        summary: "unknown fields of an object are kept, or no longer kept",
        reports: "Any change of `x-kubernetes-preserve-unknown-fields`. The documentation of kapp and OLM calls it an \
            unknown change.",
        why: "Where unknown fields are no longer kept, the API server drops them from every object when it is next \
            written, and clients that write them get no error. Where they are newly kept, nothing is refused.",
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
        what_to_do: "Name every field that is in use in the schema before you remove the flag, or remove it only in a \
            new version that a webhook converts, or after a migration.",
        breaks: &[Breaks::Data, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
