//! What remains of the errors of one object after updates from other old objects.
//!
//! Each error is tried with a change of its own, but an object can have a hundred thousand errors. So one old object
//! has the changes for many errors, and is validated once. The answer for an error is the same as with its own change
//! alone, because changes at the same depth are not on the way to each other:
//!
//! - A value is validated against its schema alone, and its errors are tolerated if it or a value around it is
//!   unchanged. All values around a changed one are changed by it already, and nothing further inside changes.
//! - A rule that compares with the old value sees a value with its own change only, unless it blames a field inside that
//!   value. Errors of each such rule are tried separately: the values that it belongs to are not inside each other.
//! - Items of a list of type `map` are paired by their keys. A changed key has no counterpart; in a list in which keys
//!   occur twice, the first items are tried separately from the others, which are paired with nothing.
//!
//! Where changes can matter to each other all the same, each error is tried alone, within a limit of work.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Value, json};

use super::{change_around, change_value, is_empty, value_at, value_at_mut};
use crate::correlate::{ItemKey, key_of};
use crate::node::{ListType, SchemaNode};
use crate::{FieldError, FieldErrorKind, ObjectValidationResult, RefusedBy, Schema, Step, is_path_of_rule};
use gantry_k8s_cel::EXHAUSTED;

/// The number of values that are validated for errors that have to be tried alone.
const MOST_VALUES: u64 = 1_000_000;

/// What makes an error the same one in two validations.
type ErrorIdentity<'e> = (&'e str, &'e [Step], FieldErrorKind, &'e RefusedBy);

fn identity(error: &FieldError) -> ErrorIdentity<'_> {
    (&error.path, &error.at, error.kind, &error.by)
}

/// What differs between the new and the old object, besides a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TriedChange {
    /// Something in the old value at this many steps on the way to the invalid one.
    Around(usize),
    /// The invalid value.
    Value,
}

/// The errors of one object that are tried.
pub(super) struct Trials<'o> {
    schema: &'o Schema,
    new: &'o Value,
    old: Value,
    errors: &'o [&'o FieldError],
    numbers: HashMap<ErrorIdentity<'o>, Vec<usize>>,
    paths: Vec<TrialPath<'o>>,
    /// The number of duplicates in the lists of the old object. If there is any, no duplicates are reported.
    duplicates: usize,
    /// The remaining work for errors that are tried alone, and that for one validation.
    work: u64,
    weight: u64,
}

/// The values on the way to an invalid one, as far as they decide which errors are tried together.
#[derive(Debug, Clone, Default)]
struct TrialPath<'o> {
    is_alone: bool,
    /// The rule, if it blames a field inside the value that it belongs to and may compare with the old value.
    rule: Option<&'o [Step]>,
    /// The depths of items that are paired with nothing, because an item before them has the same key.
    shadowed: Vec<usize>,
    /// The key of a list item, if the invalid value is one, and all keys of the list.
    key: Option<(&'o str, &'o [String])>,
}

/// Errors with equal groups are tried together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct TrialGroup<'o> {
    depth: usize,
    /// Whether the change is in the new object.
    is_of_new: bool,
    rule: Option<&'o [Step]>,
    shadowed: &'o [usize],
    key: Option<&'o str>,
    alone: Option<usize>,
}

/// The keys of the items of a list of type `map`.
struct PairedItems {
    /// Whether the old item has the key of the new one with the same index.
    has_same_key: Vec<bool>,
    is_shadowed: Vec<bool>,
}

impl PairedItems {
    fn new(new: &[Value], old: &[Value], keys: &[String]) -> Self {
        let of_old: Vec<Option<ItemKey>> = old.iter().map(|item| key_of(item, keys)).collect();
        let has_same_key = new.iter().zip(&of_old).map(|(item, key)| key_of(item, keys) == *key).collect();
        let mut seen = HashSet::new();
        let is_shadowed = of_old.iter().map(|key| key.as_ref().is_some_and(|key| !seen.insert(key))).collect();
        PairedItems { has_same_key, is_shadowed }
    }
}

impl<'o> Trials<'o> {
    /// `old` is the old object with another label.
    pub fn new(schema: &'o Schema, errors: &'o [&'o FieldError], new: &'o Value, old: Value) -> Self {
        let mut numbers: HashMap<ErrorIdentity, Vec<usize>> = HashMap::new();
        for (number, error) in errors.iter().enumerate() {
            numbers.entry(identity(error)).or_default().push(number);
        }
        let weight = count_values(new);
        let mut trials = Trials {
            schema,
            new,
            errors,
            numbers,
            paths: Vec::new(),
            duplicates: if errors.iter().any(|error| is_of_list_type(error)) {
                schema.count_duplicates(&old)
            } else {
                0
            },
            // Enough for a single error, however large the object is.
            work: MOST_VALUES.max(weight * 8),
            weight,
            old,
        };
        trials.paths = trials.trial_paths();
        trials
    }

    fn trial_paths(&self) -> Vec<TrialPath<'o>> {
        let mut lists = HashMap::new();
        // Of two errors with the same text only the first is reported, so the second depends on the first.
        let mut texts = HashSet::new();
        let paths = self.errors.iter().map(|error| {
            let mut path = self.trial_path(error, &mut lists);
            if self.schema.looks_back() {
                path.is_alone |= !texts.insert((error.kind, &*error.path, &*error.detail));
                path.rule = rule(error).filter(|rule| depth_of_node(rule) < error.at.len());
            }
            path.is_alone |= is_of_list_type(error);
            path
        });
        paths.collect()
    }

    fn trial_path(&self, error: &'o FieldError, lists: &mut HashMap<*const Value, PairedItems>) -> TrialPath<'o> {
        let mut path = TrialPath::default();
        let paired = |node: &'o SchemaNode| node.pairing.as_deref().unwrap_or(node);
        let (mut node, mut new, mut old) = (paired(self.schema.root()), self.new, &self.old);
        let mut keys: Option<&'o [String]> = None;
        for (depth, step) in error.at.iter().enumerate() {
            let below = match step {
                Step::Key(name) => {
                    let is_last = depth + 1 == error.at.len();
                    path.key = keys.filter(|keys| is_last && keys.contains(name)).map(|keys| (name.as_str(), keys));
                    keys = None;
                    node.child(name).zip(new.get(name)).zip(old.get(name))
                }
                Step::Index(index) => {
                    let is_map = node.list_type == ListType::Map;
                    if let (true, Value::Array(items), Value::Array(before)) = (is_map, new, old) {
                        let pairs = lists
                            .entry(std::ptr::from_ref(new))
                            .or_insert_with(|| PairedItems::new(items, before, &node.map_keys));
                        path.is_alone |= !pairs.has_same_key.get(*index).copied().unwrap_or(true);
                        if pairs.is_shadowed.get(*index).copied().unwrap_or(false) {
                            path.shadowed.push(depth);
                        }
                    }
                    keys = is_map.then_some(&node.map_keys);
                    node.items.as_deref().zip(new.get(index)).zip(old.get(index))
                }
            };
            let Some(((below, new_below), old_below)) = below else { break };
            (node, new, old) = (paired(below), new_below, old_below);
        }
        path
    }

    /// Which errors an update has that changes a label only, with `schema`.
    pub fn remain_with(&self, schema: &Schema) -> Vec<bool> {
        self.found(&schema.validate_all(self.new, Some(&self.old)))
    }

    fn found(&self, outcome: &ObjectValidationResult) -> Vec<bool> {
        let mut found = vec![false; self.errors.len()];
        for error in &outcome.errors {
            for number in self.numbers.get(&identity(error)).into_iter().flatten() {
                found[*number] = true;
            }
        }
        found
    }

    /// Which of the errors `tried` an update has that makes this change for each: for the error number 3, the fourth
    /// answer. `None` if that is unknown, because it would be too much work. None of the errors may remain without the
    /// change.
    pub fn remain_after(&mut self, change: TriedChange, tried: &[usize]) -> Vec<Option<bool>> {
        let mut remain = vec![Some(false); self.errors.len()];
        let mut groups: BTreeMap<TrialGroup, Vec<usize>> = BTreeMap::new();
        let paths = std::mem::take(&mut self.paths);
        for number in tried {
            groups.entry(self.group(&paths[*number], change, *number)).or_default().push(*number);
        }
        for (group, members) in groups {
            self.try_group(&group, change, &members, &paths, &mut remain);
        }
        self.paths = paths;
        remain
    }

    fn group<'w>(&self, path: &'w TrialPath<'o>, change: TriedChange, number: usize) -> TrialGroup<'w> {
        let error = self.errors[number];
        let is_of_value = change == TriedChange::Value;
        // There is only one empty list: a change adds something to the new one.
        let is_of_new = is_of_value && value_at(self.new, &error.at).is_some_and(is_empty);
        // What else changes in the new object can decide about an error of a value around it.
        let depends = || {
            let by = match &error.by {
                RefusedBy::Keyword(by) | RefusedBy::Evaluation(by) => by,
                _ => return true,
            };
            depth_of_node(by) != error.at.len() || error.path == "<nil>" && !error.at.iter().all(has_plain_path)
        };
        let is_alone = path.is_alone || is_of_new && depends();
        TrialGroup {
            depth: if let TriedChange::Around(depth) = change { depth } else { error.at.len() },
            is_of_new,
            rule: path.rule,
            shadowed: &path.shadowed,
            key: path.key.filter(|_| is_of_value && !is_of_new).map(|(key, _)| key),
            alone: is_alone.then_some(number),
        }
    }

    fn try_group(
        &mut self,
        group: &TrialGroup,
        change: TriedChange,
        members: &[usize],
        paths: &[TrialPath],
        remain: &mut [Option<bool>],
    ) {
        let is_alone = members.len() == 1;
        if group.alone.is_some() {
            // One change takes at most one duplicate from each list around it.
            if is_of_list_type(self.errors[members[0]]) && self.duplicates > group.depth {
                return;
            }
            match self.work.checked_sub(self.weight) {
                Some(rest) => self.work = rest,
                None => return members.iter().for_each(|number| remain[*number] = None),
            }
        }
        let mut changed = if group.is_of_new { self.new.clone() } else { self.old.clone() };
        let mut changes: HashMap<&[Step], bool> = HashMap::new();
        let mut tried = Vec::with_capacity(members.len());
        for number in members {
            let at = &self.errors[*number].at;
            let is_changed = *changes.entry(&at[..group.depth]).or_insert_with(|| match (change, paths[*number].key) {
                (TriedChange::Around(depth), _) => change_around(&mut changed, at, depth),
                (TriedChange::Value, Some((_, keys))) if !is_alone && !group.is_of_new => {
                    change_key(&mut changed, at, keys)
                }
                (TriedChange::Value, _) => change_value(&mut changed, at),
            });
            if is_changed {
                tried.push(*number);
            }
        }
        if tried.is_empty() {
            return;
        }
        let outcome = match group.is_of_new {
            true => self.schema.validate_all(&changed, Some(&self.old)),
            false => self.schema.validate_all(self.new, Some(&changed)),
        };
        let found = self.found(&outcome);
        // All rules share one budget.
        let is_exhausted = !is_alone
            && (group.is_of_new || self.schema.looks_back())
            && outcome.undecided.iter().any(|undecided| undecided.reason == EXHAUSTED);
        // Of errors with the same text only the first is reported, and maps with dots in their keys have paths with the
        // same text.
        let texts: HashSet<_> = match group.is_of_new && !is_alone {
            true => outcome.errors.iter().map(|error| (error.kind, &*error.path)).collect(),
            false => HashSet::new(),
        };
        for number in tried {
            let error = self.errors[number];
            let is_hidden = || !found[number] && error.path != "<nil>" && texts.contains(&(error.kind, &*error.path));
            if is_exhausted && rule(error).is_some() || is_hidden() {
                let alone = TrialGroup { alone: Some(number), ..group.clone() };
                self.try_group(&alone, change, &[number], paths, remain);
            } else {
                remain[number] = Some(found[number]);
            }
        }
    }
}

/// Changes a key of a list item. The item of which the key is another has no counterpart, not even among the items
/// whose keys change as well.
fn change_key(object: &mut Value, at: &[Step], keys: &[String]) -> bool {
    let key_of_item = |object: &Value| value_at(object, &at[..at.len() - 1]).and_then(|item| key_of(item, keys));
    let before = key_of_item(object);
    if !change_value(object, at) {
        return false;
    }
    if key_of_item(object) != before
        && let Some(value) = value_at_mut(object, at)
    {
        *value = json!({});
    }
    true
}

/// The steps to the rule that an error is of.
fn rule(error: &FieldError) -> Option<&[Step]> {
    match &error.by {
        RefusedBy::Keyword(by) if is_path_of_rule(by) => Some(by),
        RefusedBy::Evaluation(by) => Some(by),
        _ => None,
    }
}

fn is_of_list_type(error: &FieldError) -> bool {
    let is_name = |step: &Step| matches!(step, Step::Key(key) if key == "x-kubernetes-list-type");
    matches!(&error.by, RefusedBy::Keyword(by) if by.last().is_some_and(is_name))
}

/// The number of steps in the object to the value that a keyword belongs to, or, if the keyword is in a branch, to the
/// value with the branches.
fn depth_of_node(by: &[Step]) -> usize {
    let mut depth = 0;
    let mut steps = by.split_last().map(|(_, steps)| steps.iter()).unwrap_or_default();
    while let Some(Step::Key(keyword)) = steps.next() {
        match keyword.as_str() {
            "properties" => drop(steps.next()),
            "items" | "additionalProperties" => {}
            _ => return depth,
        }
        depth += 1;
    }
    depth
}

/// Whether the server's text of a path shows where this step begins and ends.
fn has_plain_path(step: &Step) -> bool {
    !matches!(step, Step::Key(key) if key.contains(['.', '[']))
}

fn count_values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(count_values).sum(),
        Value::Object(fields) => fields.values().map(count_values).sum::<u64>(),
        _ => 0,
    }
}
