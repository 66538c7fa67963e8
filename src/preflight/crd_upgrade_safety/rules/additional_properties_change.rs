//! `additionalProperties` added, removed or of another kind.

use super::{Claim, Judge, Rule, Weight};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, judge};
use crate::preflight::rule::{Example, RuleDoc};
use crate::report::{Breaks, Severity};

const EFFECTS: Effects = Effects {
    keyword: "additionalProperties",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "values that do not fit it are refused from now on; where unknown fields were pruned, they are \
            kept",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        verdict: None,
        so: "values that were kept until now may be refused or dropped",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: Effect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "fields that the schema does not name are dropped when an object is next written",
        help: "keep it as it is in this version, or change it in a new version only",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "AdditionalPropertiesChange",
        summary: "which unknown fields an object may have changes",
        forbids: "Any change of `additionalProperties`, apart from a schema in it that changes or goes: that is \
            judged field by field. The reference documents call it an unknown change.",
        why: "The values of a map that is no longer one are pruned when an object is next written; values that \
            get a schema are refused where they do not fit it.",
        example: Example::Fields {
            live: "\
labels:
  type: object
  additionalProperties: true
",
            desired: "\
labels:
  type: object
  additionalProperties:
    type: string
",
        },
        what_to_do: "Keep the map as it is in this version and add a field of another name.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
