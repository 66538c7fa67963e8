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
        so: "the server refuses values without apiVersion and kind, and drops unknown metadata",
        help: "leave x-kubernetes-embedded-resource out of this version, or add it only in a new version that a \
            webhook converts, or after a migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server may refuse values",
        help: "keep x-kubernetes-embedded-resource as it is in this version, or change it only in a new version that \
            a webhook converts, or after a migration",
    },
    removed: Effect {
        breaks: &[Breaks::Data],
        verdict: None,
        so: "the server drops apiVersion, kind and metadata unless the schema names or keeps them",
        help: "keep x-kubernetes-embedded-resource as it is in this version, or change it only in a new version that \
            a webhook converts, or after a migration",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "EmbeddedResourceChange",
        summary: "a field becomes, or no longer is, a whole Kubernetes object",
        reports: "Any change of `x-kubernetes-embedded-resource`. The documentation of kapp and OLM calls it an \
            unknown change.",
        why: "A whole object must have `apiVersion` and `kind`, and the server validates and prunes its `metadata`: \
            values without them are refused. If the flag is removed, the server drops `apiVersion`, `kind` and \
            `metadata` unless the schema names or keeps them.",
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
        what_to_do: "Keep the field as it is in this version and add one with another name.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Data],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
