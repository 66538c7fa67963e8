//! `maximum` added or lowered.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::bounds::{self, Bound, Tighter};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const BOUND: Bound = Bound { keyword: "maximum", words: "maximum", tighter: Tighter::Lower };

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoMaximumTightened",
        summary: "maximum of a field is added or lowered",
        reports: "A `maximum` that is added to a field of an existing version, or lowered. Raising or removing it is \
            fine, except to a number that the type or format of the field cannot represent (`0.5` for an integer, \
            `3000000000` for `int32`): the server accepts such a CRD, but then refuses every number there.",
        why: "A number greater than the new bound was valid until now. Stored objects may contain one, and the server \
            refuses it from now on.",
        example: Example::Fields {
            live: "\
replicas:
  type: integer
  maximum: 10
",
            desired: "\
replicas:
  type: integer
  maximum: 5
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
