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
        so: "no value is refused; under server-side apply the owners of the fields change",
        help: "check managedFields: if several managers apply this object, they will conflict or overwrite \
            each other",
    },
    changed: Effect {
        breaks: &[Breaks::Behaviour],
        verdict: Some(Verdict::Equal),
        so: "no value is refused; under server-side apply the owners of the fields change",
        help: "check managedFields: if several managers apply this object, they will conflict or overwrite \
            each other",
    },
    removed: Effect {
        breaks: &[Breaks::Behaviour],
        verdict: Some(Verdict::Equal),
        so: "no value is refused; under server-side apply the owners of the fields change",
        help: "check managedFields: if several managers apply this object, they will conflict or overwrite \
            each other",
    },
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "MapTypeChange",
        summary: "the owners of an object's fields under server-side apply change",
        reports: "Any change of `x-kubernetes-map-type`. The documentation of kapp and OLM calls it an unknown change.",
        why: "No value is refused. But under server-side apply an `atomic` object has one owner, which replaces it as a \
            whole, while each field of a `granular` object (the default) has its own. Managers that share an object that \
            becomes atomic conflict; if they apply with force, each drops the fields of the others.",
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
        what_to_do: "Make sure that only one manager applies the object before it becomes atomic.",
        breaks: &[Breaks::Behaviour],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
