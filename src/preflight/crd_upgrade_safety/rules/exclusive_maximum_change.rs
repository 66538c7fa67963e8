//! `exclusiveMaximum` added or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, LOOSENS, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "exclusiveMaximum",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the maximum itself is refused from now on",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the maximum itself is refused from now on",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ExclusiveMaximumChange",
        summary: "the maximum of a number itself is excluded, or no longer",
        forbids: "Any change of `exclusiveMaximum`. The reference documents call it an unknown change.",
        why: "The greatest number that was valid until now is the bound itself: it may be in stored objects, \
            and anyone who sends it is refused from now on. Where the flag goes, nothing is refused.",
        example: Example::Fields {
            live: "\
share:
  type: integer
  maximum: 0
",
            desired: "\
share:
  type: integer
  maximum: 0
  exclusiveMaximum: true
",
        },
        what_to_do: "Leave the bound as it is in this version, or change it in a new one.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
