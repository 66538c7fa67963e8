//! `minProperties` added or raised.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::bounds::{self, Bound, Tighter};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const BOUND: Bound = Bound { keyword: "minProperties", words: "minimum properties", tighter: Tighter::Higher };

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoMinPropertiesTightened",
        summary: "minProperties of a field is added or raised",
        reports: "A `minProperties` that is added to a field of an existing version, or raised. Lowering or removing \
            it is fine.",
        why: "A map with fewer entries than the new bound was valid until now. Stored objects may contain one, and the \
            server refuses it from now on.",
        example: Example::Fields {
            live: "\
labels:
  type: object
  additionalProperties:
    type: string
  minProperties: 1
",
            desired: "\
labels:
  type: object
  additionalProperties:
    type: string
  minProperties: 3
",
        },
        what_to_do: "Keep the bound of the live CRD in this version and use the tighter one only in a new version \
            that a webhook converts, or \
            let the controller report values that it cannot handle.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[Claim::all(BOUND.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| bounds::judge(pair, &BOUND)),
};
