//! Values that also satisfy the rules of their own node, which the solver otherwise ignores.
//!
//! What is required around a value in question is built from schemas. If their rules refuse what was built, many of
//! them would have to be repaired at once, in every item of a list. So each node is repaired when its value is built.

use serde_json::{Value, json};

use super::{SearchResult, Solver};
use crate::constraints::{SharedSchema, ValueConstraints};
use crate::keywords as kw;
use crate::rules::examples;
use crate::rules::repair::RepairInvariant;
use crate::strings::StringSet;

/// The rules of a schema node.
fn rules_of(schema: &Value) -> impl Iterator<Item = &str> {
    kw::list(schema, "x-kubernetes-validations").iter().filter_map(|rule| rule.get("rule").and_then(Value::as_str))
}

impl<'s> Solver<'s> {
    /// Puts a value first that satisfies the constraints and the rules of its own node, if one is found. This changes
    /// nothing about whether there is a value.
    pub(super) fn prefer_ruled(&self, constraints: &ValueConstraints<'s>, answer: &mut SearchResult) {
        let Some(SharedSchema::Ref(schema)) = constraints.holds.first() else { return };
        let Some(value) = answer.values.first() else { return };
        if rules_of(schema).next().is_none() || value.is_null() || !self.spend(kw::weight(value) / 64) {
            return;
        }
        let spend = |steps| self.spend(steps);
        let is_root = constraints.is_resource;
        if self.repairs.is_passed_by(schema, is_root, value, &spend) {
            return;
        }
        let ruled = self.of_hinted_pattern(constraints, schema).or_else(|| {
            let serves = |value: &Value| self.fits(constraints, &self.defaulted(constraints, value), 0) == Some(true);
            let kept = RepairInvariant { pinned: None, serves: &serves };
            self.repairs.run(schema, is_root, value, &kept, &spend).filter(serves)
        });
        if let Some(ruled) = ruled {
            answer.values.insert(0, ruled);
        }
    }

    /// The item of a list, changed so that the rules of the list accept it, if that is possible.
    pub(super) fn ruled_item(&self, list: &SharedSchema<'s>, each: &[SharedSchema<'s>], item: Value) -> Value {
        let SharedSchema::Ref(list) = list else { return item };
        if rules_of(list).next().is_none() || item.is_null() {
            return item;
        }
        let spend = |steps| self.spend(steps);
        let single = json!([item]);
        if self.repairs.is_passed_by(list, false, &single, &spend) {
            return item;
        }
        let is_single = |value: &Value| match value.as_array().map(Vec::as_slice) {
            Some([item]) => each.iter().all(|part| self.takes(part, item) == Some(true)),
            _ => false,
        };
        let kept = RepairInvariant { pinned: None, serves: &is_single };
        let ruled = self.repairs.run(list, false, &single, &kept, &spend);
        ruled.and_then(|ruled| ruled.as_array()?.first().cloned()).unwrap_or(item)
    }

    /// A string that the node's rules accept, of a pattern of which the functions in them accept every string.
    fn of_hinted_pattern(&self, constraints: &ValueConstraints<'s>, schema: &'s Value) -> Option<Value> {
        if !kw::kinds(schema).contains(kw::JsonTypeSet::STRING) {
            return None;
        }
        let rules: Vec<&str> = rules_of(schema).collect();
        let spend = |steps| self.spend(steps);
        examples::patterns(&rules).into_iter().find_map(|pattern| {
            let mut hinted = constraints.clone();
            hinted.holds.push(SharedSchema::owned(json!({"pattern": pattern})));
            let found = self.by_kind(&hinted, None, 1).values.into_iter().next()?;
            self.repairs.is_passed_by(schema, false, &found, &spend).then_some(found)
        })
    }

    /// Strings that satisfy the constraints and have patterns that the functions in these rules accept. The rules are
    /// those of nodes above.
    pub fn hinted_by(&self, constraints: &ValueConstraints<'s>, rules: &[&str]) -> Vec<Value> {
        let is_text = constraints.holds.first().is_some_and(|own| kw::kinds(own).contains(kw::JsonTypeSet::STRING));
        let patterns = if is_text { examples::patterns(rules) } else { Vec::new() };
        let of_pattern = |pattern: &str| {
            let mut hinted = constraints.clone();
            hinted.holds.push(SharedSchema::owned(json!({"pattern": pattern})));
            self.by_kind(&hinted, None, 1).values.into_iter().next()
        };
        patterns.into_iter().filter_map(of_pattern).collect()
    }

    /// A prefix of keys that the rules of a map accept.
    pub(super) fn key_like(&self, structure: &SharedSchema<'s>) -> Option<String> {
        let SharedSchema::Ref(schema) = structure else { return None };
        rules_of(schema).next()?;
        let entry = kw::additional(schema)?;
        let entry = self.solve(
            &ValueConstraints { holds: vec![SharedSchema::Ref(entry)], ..ValueConstraints::default() },
            None,
            1,
        );
        let value = entry.values.into_iter().next()?;
        let rules: Vec<&str> = rules_of(schema).collect();
        let spend = |steps| self.spend(steps);
        let candidates = ["k".to_owned()].into_iter().chain(examples::words(&rules));
        candidates.take(MAX_KEYS).find(|key| {
            // Several keys, because a rule may ask for a number of them.
            let entries = (1..=3).map(|n| (format!("{key}{n}"), value.clone())).collect();
            self.repairs.is_passed_by(schema, false, &Value::Object(entries), &spend)
        })
    }
}

/// The maximum number of prefixes that are tried for the keys of a map.
const MAX_KEYS: usize = 40;

/// Strings to try where the automata found none. Not all of them are members.
pub(super) fn strings_to_try(set: &StringSet) -> Vec<String> {
    let least = usize::try_from(set.min_length.unwrap_or(0).min(100_000)).unwrap_or(0);
    let long = |text: &str| match least {
        0 | 1 => text.to_owned(),
        least => text.chars().cycle().take(least.max(text.chars().count())).collect(),
    };
    let plain = ["a", "", "A", "0", "-", " ", "\n", "a b", "a.b", "a/b", "é", "_"];
    let of_patterns = set.patterns.iter().flat_map(|pattern| crate::strings::samples_of(pattern));
    plain.iter().map(|text| if text.is_empty() { String::new() } else { long(text) }).chain(of_patterns).collect()
}
