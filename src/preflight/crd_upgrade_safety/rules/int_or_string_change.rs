//! `x-kubernetes-int-or-string` added or removed.

use crate::finding::{Breaks, Severity, Verdict};
use crate::preflight::crd_upgrade_safety::keyword_change::{self, Effect, Effects};
use crate::preflight::crd_upgrade_safety::node::{NodePair, Transition};
use crate::preflight::crd_upgrade_safety::rule::{Claim, Diagnosis, Judge, Rule, Weight};
use crate::preflight::rule::{Example, RuleDoc};

const EFFECTS: Effects = Effects {
    keyword: "x-kubernetes-int-or-string",
    added: Effect {
        breaks: &[Breaks::Readers],
        verdict: None,
        so: "the field takes integers and texts from now on",
        help: "make sure that every reader understands both, or change it in a new version only",
    },
    changed: NO_LONGER,
    removed: NO_LONGER,
};

const NO_LONGER: Effect = Effect {
    breaks: &[Breaks::StoredObjects, Breaks::Writers],
    verdict: None,
    so: "values of the other type are refused from now on",
    help: "keep it as it is in this version, or change it in a new version only",
};

pub const RULE: Rule = Rule {
    doc: RuleDoc {
        name: "IntOrStringChange",
        summary: "a field takes integers and texts alike, or no longer",
        forbids: "Any change of `x-kubernetes-int-or-string`. The reference documents call it an unknown change.",
        why: "Where it comes, every value of before stays valid, but readers meet a type that they did not expect. \
            Where it goes, integers or texts that were valid are refused.",
        example: Example::Fields {
            live: "\
port:
  type: integer
",
            desired: "\
port:
  x-kubernetes-int-or-string: true
",
        },
        what_to_do: "Teach the readers both types before the change, or make it in a new version.",
        breaks: &[Breaks::StoredObjects, Breaks::Writers, Breaks::Readers],
        severity: Severity::Error,
    },
    weight: Weight::Unknown,
    claims: &[Claim::all(EFFECTS.keyword)],
    hides_others: false,
    judge: Judge::Node(judge),
};

fn judge(pair: &NodePair) -> Option<Diagnosis> {
    let change = pair.change(EFFECTS.keyword)?;
    let mut said = keyword_change::judge(pair, &EFFECTS)?;
    let from_one_type = pair.change("type").is_some_and(|kind| kind.desired.is_none());
    // Anything else that changed beside may narrow the field.
    let alone =
        pair.changes.iter().all(|change| matches!(change.keyword, "type" | "anyOf" | "x-kubernetes-int-or-string"));
    if change.transition() == Transition::Added && from_one_type && alone {
        said.verdict = Some(Verdict::Widening);
    }
    Some(said)
}
