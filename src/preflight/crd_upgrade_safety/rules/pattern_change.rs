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
        so: "texts that do not match it are refused from now on",
        help: "leave it out of this version, or bring it in a new version only",
    },
    changed: Effect {
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        verdict: None,
        so: "texts that match only the old pattern are refused from now on",
        help: "keep it as it is in this version, or change it in a new version only",
    },
    removed: LOOSENS,
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "PatternChange",
        summary: "the pattern of a text is added, changed or removed",
        forbids: "Any change of `pattern`. The reference documents call it an unknown change.",
        why: "Texts that do not match the new pattern were valid until now: they are in stored objects, and \
            anyone who sends them is refused from now on. A pattern that goes refuses nothing.",
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
        what_to_do: "Make the new pattern match every text that is accepted today, or put it into a new version.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(|pair| judge(pair, &EFFECTS)),
};
