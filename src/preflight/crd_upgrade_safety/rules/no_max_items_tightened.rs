//! `maxItems` added or lowered.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::bounds::{self, Bound, Tighter};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const BOUND: Bound = Bound { keyword: "maxItems", words: "maximum items", tighter: Tighter::Lower };

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoMaxItemsTightened",
        summary: "maxItems of a field is added or lowered",
        reports: "A `maxItems` that is added to a field of an existing version, or lowered. Raising or removing it is \
            fine.",
        why: "A list longer than the new bound was valid until now. Stored objects may contain one, and the server \
            refuses it from now on.",
        example: Example::Fields {
            live: "\
hosts:
  type: array
  items:
    type: string
  maxItems: 10
",
            desired: "\
hosts:
  type: array
  items:
    type: string
  maxItems: 5
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
