//! Repairs values until they satisfy the rules of a schema: the fields around a given part are changed.
//!
//! The footprint of a failing rule is computed, and the value at its place is varied only in what the rule looks at,
//! with the smallest change first. What is repaired for one rule can break another, so several changes are kept, and the
//! search goes on where the fewest rules fail. The result is only a candidate; the validator decides whether it is a
//! witness.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::marker::PhantomData;
use std::rc::Rc;

use serde_json::Value;

use super::budget::BUDGET;
use super::fill::{defaulted, fill};
use super::footprint::footprint;
use super::values::RepresentativeBuilder;
use super::view::{RuleView, ViewStep};
use crate::automaton::SearchBudget;
use crate::keywords as kw;
use gantry_k8s_cel::re2::Patterns;
use gantry_k8s_cel::{CelBudget, CelRuleResult, CompiledRule, KubernetesRelease, compile_rules_sharing};

/// Caches compiled rules by schema node, and the variants for each rule. Nodes are identified by their addresses, so
/// all of them must live as long as this cache.
pub struct Repairs<'s> {
    rules: RefCell<HashMap<*const Value, Rc<Vec<CompiledRule>>>>,
    variants: RefCell<HashMap<RulePlace, Option<Rc<Variants>>>>,
    patterns: Patterns,
    release: KubernetesRelease,
    /// Makes `'s` invariant, so that no schema can be used that lives shorter than an earlier one.
    schemas: PhantomData<Cell<&'s Value>>,
}

/// A schema node and the index of one of its rules.
type RulePlace = (*const Value, usize);

/// Possible values at the place of a rule, as far as the rule looks at them.
struct Variants {
    view: RuleView,
    /// The places that the rule compares with each other.
    pairs: Vec<(Vec<ViewStep>, Vec<ViewStep>)>,
    values: Vec<Value>,
}

/// A place in a value at which a rule fails.
struct RuleFailurePlace<'s> {
    path: Vec<ViewStep>,
    /// The JSON pointer to the value.
    pointer: String,
    schema: &'s Value,
    rule: usize,
}

/// What must stay while a value is changed.
pub struct RepairInvariant<'k> {
    /// The path to a part that must not change, if any. Items on it are the first ones of their lists.
    pub pinned: Option<&'k [ViewStep]>,
    /// Whether a changed value is still useful.
    pub serves: &'k dyn Fn(&Value) -> bool,
}

impl<'s> Repairs<'s> {
    pub fn new(patterns: &Patterns, release: KubernetesRelease) -> Self {
        Self {
            rules: RefCell::default(),
            variants: RefCell::default(),
            patterns: patterns.clone(),
            release,
            schemas: PhantomData,
        }
    }

    /// `value`, of the node `schema`, changed so that all rules in it hold. None if no such change was found.
    pub fn run(
        &self,
        schema: &'s Value,
        is_root: bool,
        value: &Value,
        kept: &RepairInvariant<'_>,
        spend: &dyn Fn(u64) -> bool,
    ) -> Option<Value> {
        let first = self.all_failing(schema, is_root, value, spend);
        // The values to try next: those in which the fewest rules fail, and of these the earliest one.
        let mut open = BinaryHeap::from([Reverse((first.len(), 0))]);
        let mut tried = vec![(value.clone(), first)];
        let mut seen = HashSet::from([value.to_string()]);
        for _ in 0..BUDGET.max_repairs {
            let Reverse((_, at)) = open.pop()?;
            let (mut value, failing) = (tried[at].0.take(), std::mem::take(&mut tried[at].1));
            let Some(first) = failing.first() else { return Some(value) };
            if value.pointer(&first.pointer).is_none() {
                // The rule fails in a default.
                value = defaulted(&value, schema);
            }
            for (value, failing) in self.changed((schema, is_root), first, &value, kept, spend) {
                if seen.insert(value.to_string()) {
                    open.push(Reverse((failing.len(), tried.len())));
                    tried.push((value, failing));
                }
            }
        }
        None
    }

    /// The release of the server that evaluates the rules.
    pub fn release(&self) -> KubernetesRelease {
        self.release
    }

    fn fails(&self, rule: &CompiledRule, value: &Value) -> bool {
        let mut budget = CelBudget::default().with_release(self.release);
        matches!(rule.evaluate(value, None, &mut budget), CelRuleResult::Fails(_))
    }

    /// Whether all rules of this node itself hold for the value after defaulting.
    pub fn is_passed_by(&self, schema: &'s Value, is_root: bool, value: &Value, spend: &dyn Fn(u64) -> bool) -> bool {
        let rules = self.rules_of(schema, is_root);
        let full = defaulted(value, schema);
        rules.iter().all(|rule| spend(BUDGET.steps_per_run) && !self.fails(rule, &full))
    }

    /// The places at which rules fail after defaulting, inner ones first.
    fn all_failing(
        &self,
        schema: &'s Value,
        is_root: bool,
        value: &Value,
        spend: &dyn Fn(u64) -> bool,
    ) -> Vec<RuleFailurePlace<'s>> {
        let mut failing = Vec::new();
        let full = defaulted(value, schema);
        self.failing(schema, is_root, &full, &mut Vec::new(), &mut String::new(), spend, &mut failing);
        failing
    }

    /// The places at which rules fail, inner ones first.
    #[allow(clippy::too_many_arguments)] // A recursive walk: its position and its results.
    fn failing(
        &self,
        schema: &'s Value,
        is_root: bool,
        value: &Value,
        path: &mut Vec<ViewStep>,
        pointer: &mut String,
        spend: &dyn Fn(u64) -> bool,
        found: &mut Vec<RuleFailurePlace<'s>>,
    ) {
        let length = pointer.len();
        match value {
            Value::Object(map) => {
                for (name, inner) in map {
                    let (key, schema) = match kw::property(schema, name) {
                        Some(schema) => (ViewStep::Field(name.clone()), schema),
                        None => match kw::additional(schema) {
                            Some(schema) => (ViewStep::Value, schema),
                            None => continue,
                        },
                    };
                    path.push(key);
                    pointer.push('/');
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                    self.failing(schema, false, inner, path, pointer, spend, found);
                    pointer.truncate(length);
                    path.pop();
                }
            }
            Value::Array(items) => {
                let Some(schema) = kw::get(schema, "items") else { return };
                for (index, inner) in items.iter().enumerate() {
                    path.push(ViewStep::Item);
                    pointer.push_str(&format!("/{index}"));
                    self.failing(schema, false, inner, path, pointer, spend, found);
                    pointer.truncate(length);
                    path.pop();
                }
            }
            _ => {}
        }
        for (rule, compiled) in self.rules_of(schema, is_root).iter().enumerate() {
            if spend(BUDGET.steps_per_run) && self.fails(compiled, value) {
                found.push(RuleFailurePlace { path: path.clone(), pointer: pointer.clone(), schema, rule });
            }
        }
    }

    fn rules_of(&self, schema: &'s Value, is_root: bool) -> Rc<Vec<CompiledRule>> {
        let rules = kw::list(schema, "x-kubernetes-validations");
        let key = std::ptr::from_ref(schema);
        let known = self.rules.borrow().get(&key).cloned();
        known.unwrap_or_else(|| {
            let compiled = match rules {
                [] => Vec::new(),
                _ => compile_rules_sharing(schema, rules, is_root, &self.patterns),
            };
            let compiled = Rc::new(compiled);
            self.rules.borrow_mut().insert(key, Rc::clone(&compiled));
            compiled
        })
    }

    fn variants_of(
        &self,
        failing: &RuleFailurePlace<'s>,
        is_root: bool,
        spend: &dyn Fn(u64) -> bool,
    ) -> Option<Rc<Variants>> {
        let key = (std::ptr::from_ref(failing.schema), failing.rule);
        if let Some(known) = self.variants.borrow().get(&key) {
            return known.clone();
        }
        let rule = kw::list(failing.schema, "x-kubernetes-validations").get(failing.rule);
        let source = rule.and_then(|rule| rule.get("rule")).and_then(Value::as_str).unwrap_or_default();
        let footprint = footprint(source, failing.schema, failing.schema, false, is_root).ok();
        let made = footprint.map(|mut footprint| {
            footprint.level();
            let mut steps = SearchBudget::sharing(BUDGET.max_automaton_steps_per_repair, &self.patterns);
            let mut maker = RepresentativeBuilder::new(&mut steps, &footprint.texts, true, BUDGET.max_variants);
            let mut values = maker.values(failing.schema, &footprint.view);
            spend(BUDGET.max_automaton_steps_per_repair.saturating_sub(steps.left()) / 20);
            values.truncate(BUDGET.max_variants);
            Rc::new(Variants { view: footprint.view, pairs: footprint.pairs, values })
        });
        self.variants.borrow_mut().insert(key, made.clone());
        made
    }

    /// The value, of the node `schema`, with changes after which the failing rule holds, and the rules that fail then.
    /// Of all such changes, these are the ones after which the fewest rules fail anywhere in the value.
    fn changed(
        &self,
        (schema, is_root): (&'s Value, bool),
        failing: &RuleFailurePlace<'s>,
        value: &Value,
        kept: &RepairInvariant<'_>,
        spend: &dyn Fn(u64) -> bool,
    ) -> Vec<(Value, Vec<RuleFailurePlace<'s>>)> {
        let is_here_root = is_root && failing.path.is_empty();
        let Some(variants) = self.variants_of(failing, is_here_root, spend) else { return Vec::new() };
        let rules = self.rules_of(failing.schema, is_here_root);
        let Some(here) = value.pointer(&failing.pointer) else { return Vec::new() };
        // The pinned part is below this place only if all items on the path are first ones.
        let is_first = !failing.pointer.split('/').any(|step| step.parse::<usize>().is_ok_and(|index| index > 0));
        let pinned = kept.pinned.filter(|_| is_first).and_then(|path| path.strip_prefix(&failing.path[..]));
        let mut options: Vec<(usize, Value)> = Vec::new();
        for variant in &variants.values {
            let Some(mut laid) = overlaid(here, variant, &variants.view, pinned) else { continue };
            fill(&mut laid, failing.schema);
            if laid != *here {
                options.push((distance(here, &laid), laid));
            }
        }
        let swapped = variants.pairs.iter().flat_map(|(left, right)| [(left, right), (right, left)]);
        for (from, to) in swapped.filter(|(_, to)| pinned.is_none_or(|pinned| !pinned.starts_with(to))) {
            if let Some(laid) = with_copied(here, from, to) {
                options.push((distance(here, &laid), laid));
            }
        }
        options.sort_by_key(|(distance, _)| *distance);
        let mut found: Vec<(Value, Vec<RuleFailurePlace<'s>>)> = Vec::new();
        for (_, option) in options {
            if !spend(BUDGET.steps_per_run) {
                break;
            }
            if self.fails(&rules[failing.rule], &defaulted(&option, failing.schema)) {
                continue;
            }
            let mut whole = value.clone();
            let Some(place) = whole.pointer_mut(&failing.pointer) else { break };
            *place = option;
            fill(&mut whole, schema);
            if !spend(kw::weight(&whole) / BUDGET.defaulted_bytes_per_step) || !(kept.serves)(&whole) {
                continue;
            }
            let others = self.all_failing(schema, is_root, &whole, spend);
            let is_whole = others.is_empty();
            found.push((whole, others));
            if is_whole {
                break;
            }
        }
        found.sort_by_key(|(_, failing)| failing.len());
        found.truncate(BUDGET.max_changes_per_repair);
        found
    }
}

/// `value` with the part at `to` taken from the part at `from`. None if there is no such part, or if a step is not a
/// field.
fn with_copied(value: &Value, from: &[ViewStep], to: &[ViewStep]) -> Option<Value> {
    let field = |step: &ViewStep| match step {
        ViewStep::Field(name) => Some(name.clone()),
        _ => None,
    };
    let part = from.iter().try_fold(value, |value, step| value.get(field(step)?))?.clone();
    let (last, around) = to.split_last()?;
    let mut changed = value.clone();
    let around = around.iter().try_fold(&mut changed, |value, step| value.get_mut(field(step)?))?;
    around.as_object_mut()?.insert(field(last)?, part);
    Some(changed)
}

/// `value` with the parts that `view` looks at taken from `variant`; the pinned part stays. None if that is impossible.
pub fn overlaid(value: &Value, variant: &Value, view: &RuleView, pinned: Option<&[ViewStep]>) -> Option<Value> {
    if pinned.is_some_and(<[ViewStep]>::is_empty) {
        return Some(value.clone());
    }
    let below = |key: &ViewStep| {
        pinned.and_then(|path| path.split_first()).filter(|(first, _)| *first == key).map(|(_, rest)| rest)
    };
    match (value, variant) {
        (Value::Object(fields), Value::Object(wanted)) if view.values.is_none() && view.keys.is_none() => {
            let mut fields = fields.clone();
            for (name, view) in &view.fields {
                let pinned = below(&ViewStep::Field(name.clone()));
                match (fields.get(name), wanted.get(name)) {
                    (Some(field), Some(wanted)) => {
                        let field = overlaid(field, wanted, view, pinned)?;
                        fields.insert(name.clone(), field);
                    }
                    (None, Some(wanted)) => {
                        fields.insert(name.clone(), wanted.clone());
                    }
                    (Some(_), None) if pinned.is_some() => return None,
                    (Some(_), None) => {
                        fields.shift_remove(name);
                    }
                    (None, None) => {}
                }
            }
            Some(Value::Object(fields))
        }
        // The entries of the variant. If an entry is pinned, its value moves under one of the variant's keys.
        (Value::Object(entries), Value::Object(wanted)) => match below(&ViewStep::Value) {
            Some(_) => {
                let pinned = entries.values().next()?;
                let mut moved = wanted.clone();
                match moved.values_mut().next() {
                    Some(first) => *first = pinned.clone(),
                    None => return None,
                }
                Some(Value::Object(moved))
            }
            None => Some(variant.clone()),
        },
        (Value::Array(items), Value::Array(wanted)) => {
            let nothing = RuleView::default();
            let view = view.items.as_deref().unwrap_or(&nothing);
            let pinned = below(&ViewStep::Item);
            if pinned.is_some() && (wanted.is_empty() || items.is_empty()) {
                return None;
            }
            let laid = wanted.iter().enumerate().map(|(at, wanted)| match items.get(at) {
                Some(item) => overlaid(item, wanted, view, pinned.filter(|_| at == 0)),
                None => Some(wanted.clone()),
            });
            laid.collect::<Option<Vec<Value>>>().map(Value::Array)
        }
        _ if pinned.is_some() => None,
        _ => Some(variant.clone()),
    }
}

/// The number of places in which two values differ.
fn distance(a: &Value, b: &Value) -> usize {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.into_iter()
                .map(|key| match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => distance(a, b),
                    _ => 1,
                })
                .sum()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len().abs_diff(b.len()) + a.iter().zip(b).map(|(a, b)| distance(a, b)).sum::<usize>()
        }
        _ => usize::from(a != b),
    }
}
