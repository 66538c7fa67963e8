//! CEL rules (`x-kubernetes-validations`) added, changed or removed.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::crd_upgrade_safety::compare::RuleViolation;
use crate::crd_upgrade_safety::json::{Json, JsonMap};
use crate::crd_upgrade_safety::keyword_change::{self, KeywordEffect};
use crate::crd_upgrade_safety::node::NodePair;
use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use gantry_core::finding::wording::wording;
use gantry_core::finding::{Breaks, Verdict};
use gantry_schema::Sense;
use gantry_schema::meaning_of_rule;

const KEYWORD: &str = "x-kubernetes-validations";

/// Says of rules that refuse no valid object which objects they may refuse nevertheless.
pub fn note_invalid_objects(violation: &mut RuleViolation) {
    let diagnosis = &mut violation.diagnosis;
    if violation.rule.doc.name == "ValidationRuleChange" && diagnosis.verdict.is_none() {
        diagnosis.help =
            "nothing, unless stored objects are invalid already: the server tolerates an invalid value that \
            does not change, but a new rule about what is around it may refuse the object; the check \
            CustomResourceValidation reads them"
                .into();
    }
}

/// The changes to the rules of a node. Each rule is named by its expression.
#[derive(Debug, Default)]
struct Changes {
    added: Vec<String>,
    removed: Vec<String>,
    /// The same expression, with a different message, reason or fieldPath.
    reworded: Vec<String>,
    /// The same expression, with a different `optionalOldSelf`: the rule is evaluated in other cases.
    other_cases: Vec<String>,
}

pub fn judge(pair: &NodePair) -> Option<ViolationText> {
    let change = pair.change(KEYWORD)?;
    let (live, desired) = (list(change.live), list(change.desired));
    let changes = compare(&live, &desired);
    let transition = changes.added.iter().any(|rule| rule.contains("oldSelf"));
    let is_about_updates = transition || changes.other_cases.iter().any(|rule| rule.contains("oldSelf"));
    let harmless = changes.added.is_empty() && changes.other_cases.is_empty();
    let verdict = match (harmless, changes.removed.is_empty()) {
        (true, true) => Some(Verdict::Equal),
        (true, false) => Some(Verdict::Widening),
        (false, _) => None,
    };
    let effect = KeywordEffect {
        breaks: if harmless { &[] } else { &[Breaks::StoredObjects, Breaks::Writers] },
        verdict,
        so: match (harmless, transition) {
            (true, _) => "this refuses nothing",
            (false, true) => "the server refuses what the new rules do not allow, including updates",
            (false, false) => "the server refuses what the new rules do not allow",
        },
        help: if harmless {
            "this alone breaks nothing; waive the finding or set the rule's enforcement"
        } else {
            "make the new rules accept what is accepted today, or add them only in a new version that a webhook \
                converts, or after a migration"
        },
    };
    let parts: Vec<String> = [
        ("added", &changes.added),
        ("removed", &changes.removed),
        ("evaluated in other cases (optionalOldSelf)", &changes.other_cases),
        ("with a different message, reason or fieldPath", &changes.reworded),
    ]
    .into_iter()
    .filter(|(_, rules)| !rules.is_empty())
    .map(|(what, rules)| format!("{what}: {}", words::listed(rules)))
    .collect();
    let fact = format!("{KEYWORD} changed: {}", parts.join("; "));
    let (field, parts, so) = (pair.place.field(), parts.join("; "), effect.so);
    let message = wording!("CEL rules of {field} change in ", VERSIONS, ": {parts}; {so}");
    let diagnosis = keyword_change::unknown(pair, change, &fact, &effect).message(message);
    Some(ViolationText { is_about_updates, ..diagnosis })
}

fn list<'n, 'a>(rules: Option<&'n Json<'a>>) -> Vec<&'n JsonMap<'a>> {
    rules.and_then(Json::list).unwrap_or_default().iter().filter_map(Json::map).collect()
}

fn compare(live: &[&JsonMap], desired: &[&JsonMap]) -> Changes {
    let mut changes = Changes::default();
    let meanings = |rules: &[&JsonMap]| -> Vec<String> {
        rules.iter().map(|rule| meaning_of_rule(&Json::Map((*rule).clone()), Sense::Everything)).collect()
    };
    let (of_live, of_desired) = (meanings(live), meanings(desired));
    let (known, kept): (HashSet<&String>, HashSet<&String>) = (of_live.iter().collect(), of_desired.iter().collect());
    // Desired rules with no equal live rule, by expression; the first one is last, so that `pop` finds it. Those that
    // match no live rule by expression are new.
    let mut unmatched: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, rule) in desired.iter().enumerate().rev().filter(|(at, _)| !known.contains(&of_desired[*at])) {
        unmatched.entry(expression(rule)).or_default().push(at);
    }
    for (_, rule) in live.iter().enumerate().filter(|(at, _)| !kept.contains(&of_live[*at])) {
        match unmatched.get_mut(expression(rule)).and_then(Vec::pop) {
            Some(at) => {
                let other = desired[at];
                let cases =
                    |rule: &JsonMap| rule.get("optionalOldSelf").is_some_and(|flag| matches!(flag, Json::Bool(true)));
                let list = if cases(rule) == cases(other) { &mut changes.reworded } else { &mut changes.other_cases };
                list.push(expression(rule).to_owned());
            }
            None => changes.removed.push(expression(rule).to_owned()),
        }
    }
    let new: BTreeSet<usize> = unmatched.into_values().flatten().collect();
    changes.added.extend(new.into_iter().map(|at| expression(desired[at]).to_owned()));
    changes
}

fn expression<'n>(rule: &'n JsonMap<'_>) -> &'n str {
    rule.get("rule").and_then(Json::text).unwrap_or_default()
}
