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
        so: "the server refuses the minimum itself",
        help: "leave exclusiveMinimum out of this version, or add it only in a new version that a webhook converts, \
            or after a migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses the minimum itself",
        help: "keep exclusiveMinimum as it is in this version, or change it only in a new version that a webhook \
            converts, or after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ExclusiveMinimumChange",
        summary: "the minimum of a number is itself excluded, or no longer excluded",
        reports: "Any change of `exclusiveMinimum`. The documentation of kapp and OLM calls it an unknown change.",
        why: "The smallest number that was valid until now is the bound itself: stored objects may have it, and the \
            server refuses it from now on. If the flag is removed, nothing is refused.",
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
        what_to_do: "Leave the bound as it is in this version, or change it in a new version that a webhook converts, \
            or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
