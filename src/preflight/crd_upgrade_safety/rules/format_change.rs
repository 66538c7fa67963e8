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
        so: "if the API server knows the format, values without it are refused from now on",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "values that have only the old format may be refused from now on",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "FormatChange",
        summary: "the format of a value is added, changed or removed",
        forbids: "Any change of `format`. The reference documents call it an unknown change.",
        why: "The API server enforces the formats that it knows (`date-time`, `int32`, `uuid`, …) and ignores \
            all others. A value that does not have the new format was valid until now. A format that goes \
            refuses nothing.",
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
            read.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
