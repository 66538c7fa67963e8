//! `pattern` added, changed or removed.

use crate::finding::{Breaks, Severity};
use crate::preflight::crd_upgrade_safety::keyword_change::{Effect, Effects, LOOSENS, judge};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "pattern",
    added: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses strings that do not match it",
        help: "leave pattern out of this version, or add it only in a new version that a webhook converts, or after a \
            migration",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "the server refuses strings that match only the old pattern",
        help: "keep pattern as it is in this version, or change it only in a new version that a webhook converts, or \
            after a migration",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "PatternChange",
        summary: "the pattern of a string is added, changed or removed",
        reports: "Any change of `pattern`. The documentation of kapp and OLM calls it an unknown change.",
        why: "Strings that do not match the new pattern were valid until now: stored objects may have them, and the \
            server refuses them from now on. Removing a pattern refuses nothing.",
        example: Example::Fields {
            live: "\
host:
  type: string
",
            desired: "\
host:
  type: string
  pattern: ^[a-z.]+$
",
        },
        what_to_do: "Make the new pattern match every string that is accepted today, or use it only in a new version \
            that a webhook converts, or after a migration.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
