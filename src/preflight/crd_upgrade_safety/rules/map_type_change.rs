//! `x-kubernetes-map-type` added, changed or removed.

use crate::finding::{Breaks, Severity, Verdict};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "x-kubernetes-map-type",
    added: Effect {
        breaks: &[Breaks::Behaviour],
        verdict: Some(Verdict::Equal),
        so: "nothing is refused; under server-side apply it changes who owns the fields",
        help: "look at managedFields: where several managers apply this object, they will conflict or overwrite \
            each other",
    },
    changed: Effect {
        breaks: &[Breaks::Behaviour],
        verdict: Some(Verdict::Equal),
        so: "nothing is refused; under server-side apply it changes who owns the fields",
        help: "look at managedFields: where several managers apply this object, they will conflict or overwrite \
            each other",
    },
    removed: Effect {
        breaks: &[Breaks::Behaviour],
        verdict: Some(Verdict::Equal),
        so: "nothing is refused; under server-side apply it changes who owns the fields",
        help: "look at managedFields: where several managers apply this object, they will conflict or overwrite \
            each other",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "MapTypeChange",
        summary: "who owns the fields of an object under server-side apply changes",
        forbids: "Any change of `x-kubernetes-map-type`. The reference documents call it an unknown change.",
        why: "Nothing is refused and nothing is lost. But under server-side apply an `atomic` object has one \
            owner, who replaces it as a whole, while each field of a `granular` one (the default) has its \
            own.",
        example: Example::Fields {
            live: "\
selector:
  type: object
  properties:
    app:
      type: string
",
            desired: "\
selector:
  type: object
  x-kubernetes-map-type: atomic
  properties:
    app:
      type: string
",
        },
        what_to_do: "Make sure that one manager alone applies the object before it becomes atomic.",
        breaks: &[Breaks::Behaviour],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
