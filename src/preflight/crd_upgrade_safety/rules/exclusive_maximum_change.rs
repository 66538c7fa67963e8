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
        so: "the server refuses the maximum itself",
        help: "leave exclusiveMaximum out of this version, or add it only in a new version that a webhook converts, \
            or after a migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses the maximum itself",
        help: "keep exclusiveMaximum as it is in this version, or change it only in a new version that a webhook \
            converts, or after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "ExclusiveMaximumChange",
        summary: "the maximum of a number is itself excluded, or no longer excluded",
        reports: "Any change of `exclusiveMaximum`. The documentation of kapp and OLM calls it an unknown change.",
        why: "The largest number that was valid until now is the bound itself: stored objects may have it, and the \
            server refuses it from now on. If the flag is removed, nothing is refused.",
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
