//! `minLength` added or raised.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::bounds::{self, Bound, Tighter};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const BOUND: Bound = Bound { keyword: "minLength", words: "minimum length", tighter: Tighter::Higher };

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "NoMinLengthTightened",
        summary: "minLength added to a field, or raised",
        forbids: "A `minLength` on a field of an existing version that had none, or one that is raised. One that is \
            lowered or taken away is fine.",
        why: "A text shorter than the new bound was valid until now. It is still there in stored objects, and anyone who \
            sends it is refused from now on.",
        example: Example::Fields {
            live: "\
name:
  type: string
  minLength: 1
",
            desired: "\
name:
  type: string
  minLength: 3
",
        },
        what_to_do: "Keep the bound of the live CRD in this version and put the tighter one into a new version, or \
            leave it to the controller to report values that it cannot work with.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Forbidden,
    claims: &[Claim::all(BOUND.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| bounds::judge(pair, &BOUND)),
};
