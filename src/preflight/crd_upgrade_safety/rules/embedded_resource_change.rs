//! `x-kubernetes-embedded-resource` added or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "x-kubernetes-embedded-resource",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        verdict: None,
        so: "values without apiVersion and kind are refused from now on, and unknown metadata is dropped",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "values may be refused from now on",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: Effect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "apiVersion, kind and metadata are dropped unless the schema names or keeps them",
        help: "keep it as it is in this version, or change it in a new version only",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "EmbeddedResourceChange",
        summary: "a field becomes a whole Kubernetes object, or is none any more",
        forbids: "Any change of `x-kubernetes-embedded-resource`. The reference documents call it an unknown \
            change.",
        why: "A whole object must have `apiVersion` and `kind`, and its `metadata` is validated and pruned: \
            values without them are refused. Where the flag goes, `apiVersion`, `kind` and `metadata` are no \
            longer known by themselves, and are dropped unless the schema names or keeps them.",
        example: Example::Fields {
            live: "\
template:
  type: object
  x-kubernetes-preserve-unknown-fields: true
",
            desired: "\
template:
  type: object
  x-kubernetes-preserve-unknown-fields: true
  x-kubernetes-embedded-resource: true
",
        },
        what_to_do: "Keep the field as it is in this version and add one of another name.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
