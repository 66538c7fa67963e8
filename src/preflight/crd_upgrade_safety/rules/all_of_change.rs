//! `allOf` added, changed or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, LOOSENS, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "allOf",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses values that do not match all of it",
        help: "leave allOf out of this version, or add it only in a new version that a webhook converts, or after a \
            migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server may refuse objects that were valid until now",
        help: "keep allOf as it is in this version, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "AllOfChange",
        summary: "allOf of a field is added, changed or removed",
        reports: "Any change of `allOf` or of anything below it. The documentation of kapp and OLM calls it an unknown \
            change.",
        why: "`allOf` adds conditions: objects that do not meet a new one were valid until now. If all of `allOf` is \
            removed, nothing is refused.",
        example: Example::Fields {
            live: "\
size:
  type: integer
",
            desired: "\
size:
  type: integer
  allOf:
  - multipleOf: 8
",
        },
        what_to_do: "Leave the condition as it is in this version, or change it in a new version that a webhook \
            converts, or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
