//! `format` added, changed or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, LOOSENS, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "format",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "if the API server knows the format, it refuses values that do not have it",
        help: "leave format out of this version, or add it only in a new version that a webhook converts, or after a \
            migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server may refuse values that have only the old format",
        help: "keep format as it is in this version, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "FormatChange",
        summary: "the format of a value is added, changed or removed",
        reports: "Any change of `format`. The documentation of kapp and OLM calls it an unknown change.",
        why: "The API server enforces the formats that it knows (`date-time`, `int32`, `uuid`, …) and ignores all \
            others. A value that does not have the new format was valid until now. Removing a format refuses nothing.",
        example: Example::Fields {
            live: "\
since:
  type: string
",
            desired: "\
since:
  type: string
  format: date-time
",
        },
        what_to_do: "Leave the format as it is in this version, and let the controller report values that it cannot \
            parse.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
