//! `exclusiveMinimum` added or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, LOOSENS, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "exclusiveMinimum",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the minimum itself is refused from now on",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the minimum itself is refused from now on",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ExclusiveMinimumChange",
        summary: "the minimum of a number itself is excluded, or no longer",
        forbids: "Any change of `exclusiveMinimum`. The reference documents call it an unknown change.",
        why: "The smallest number that was valid until now is the bound itself: it may be in stored objects, \
            and anyone who sends it is refused from now on. Where the flag goes, nothing is refused.",
        example: Example::Fields {
            live: "\
share:
  type: integer
  minimum: 0
",
            desired: "\
share:
  type: integer
  minimum: 0
  exclusiveMinimum: true
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
