//! Rules of a deploy that does not wait until objects are ready: what waits by a rule is written as soon as the others
//! are written.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{OrderGroup, OrderRule, OrderRuleSource, OrderSide, RuleOperation};
use super::written::Ordering;
use super::{Change, Manifest, place};
use crate::readiness;
use gantry_core::matcher;
use gantry_core::problem::Problem;

/// A warning for each change group for whose objects, or for the objects after which, a deploy would have to wait.
pub fn rules(changes: &[Change], orderings: &BTreeMap<usize, Ordering>) -> Vec<Problem> {
    let mut members: BTreeMap<&OrderGroup, Vec<usize>> = BTreeMap::new();
    for (index, ordering) in orderings {
        ordering.groups.iter().for_each(|group| members.entry(group).or_default().push(*index));
    }
    let mut said = BTreeSet::new();
    let mut problems = Vec::new();
    for (index, ordering) in orderings.iter().filter(|(index, _)| changes[**index].desired.bundle.is_none()) {
        let is_about =
            |rule: &&OrderRule| (rule.operation, rule.other) == (RuleOperation::Upsert, RuleOperation::Upsert);
        for rule in ordering.rules.iter().filter(is_about) {
            // Rules of a configuration that are about kapp's groups by kind are general.
            let is_general = matches!(rule.source, OrderRuleSource::Binding(..)) && rule.group.is_by_kind();
            if is_general || said.contains(&(rule.side, &rule.group)) {
                continue;
            }
            let those = members.get(&rule.group).map(Vec::as_slice).unwrap_or_default();
            let own = std::slice::from_ref(index);
            let (later, earlier) = if rule.side == OrderSide::After { (own, those) } else { (those, own) };
            let slow: Vec<&Change> =
                earlier.iter().map(|index| &changes[*index]).filter(|other| is_slow(other)).collect();
            let later = later.iter().map(|index| &changes[*index]);
            let mut later =
                later.filter(|change| change.is_written() && !slow.iter().any(|other| std::ptr::eq(*other, *change)));
            let (Some(first), Some(then)) = (slow.first(), later.next()) else { continue };
            said.insert((rule.side, &rule.group));
            let Manifest { object, origin, .. } = &changes[*index].desired;
            let more = if slow.len() > 1 { format!(" and {} more", slow.len() - 1) } else { String::new() };
            let message = format!(
                "{object}: {}: {} is written when {}{more} is written, not when it is ready: this deploy waits only for CRDs",
                rule.source, then.desired.object, first.desired.object
            );
            let problem = Problem { at: place(&rule.source, Some(origin)), ..Problem::new(message) };
            problems
                .push(problem.help("deploy as an app (-a NAME) or with --wait, and the rule waits until it is ready"));
        }
    }
    problems
}

/// Whether the object is written and may not be ready then. An unchanged one is awaited in any case.
fn is_slow(change: &Change) -> bool {
    let object = &change.desired.object;
    let is_ours = change.is_written() && change.desired.bundle.is_none() && !object.is_crd();
    is_ours && readiness::takes_time(object, matcher::is_custom(object), || change.desired.raw.value())
}
