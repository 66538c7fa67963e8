//! CEL rules compared: does a desired rule hold wherever the live schema and its rules do?
//!
//! Most rules look at little of a value: whether a field is there, which of some constants it equals, on which side of a
//! bound it is, whether some item has a property. Values that are alike in all of that are alike to the rule. So a rule
//! is read for what it looks at ([`view`]), one representative is made for each kind of value ([`values`]), and both
//! sides' rules are run on all combinations of them. If no combination passes live and fails desired, none does: that is
//! a proof. If one does, it is filled up to a whole value and shown.
//!
//! A rule that looks at more than a view can say is never proven; its counterexamples are searched in the same way.

mod values;
mod view;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::automaton::Budget as Steps;
use super::cel::{Counterexample, Implied, RuleSet};
use crate::validation::Schema;
use crate::validation::cel::{Answer, Budget, Rule, compile_rules};
use values::{Maker, fill};
use view::{Looked, look};

/// Steps for making texts.
const STEPS: u64 = 1_000_000;
/// How many of them take as long as one of the caller's.
const STEPS_PER_UNIT: u64 = 20;
/// Runs of rules for one question that may be proven, and for one that can only be refuted.
const RUNS: usize = 60_000;
const GUESSES: usize = 4_000;
/// What one run costs in the caller's steps.
const RUN: u64 = 8;
/// Counterexamples at most.
const SHOWN: usize = 3;
/// Candidates that are filled up and put to the whole live schema at most.
const TRIED: usize = 200;

fn source(rule: &Value) -> &str {
    rule.get("rule").and_then(Value::as_str).unwrap_or_default()
}

/// A schema node on both sides, ready for questions about single rules.
pub struct Node<'a> {
    live: RuleSet<'a>,
    desired: RuleSet<'a>,
    /// The whole of live's schema with `value` as the place of the node, and desired's, which only fills in defaults.
    accepts: Schema,
    defaults: Option<Schema>,
}

/// One desired rule.
struct Question<'n, 'a> {
    node: &'n Node<'a>,
    looked: Looked,
    desired: Rule,
    /// Live's rules that look at nothing beyond the view: whatever fails one of them needs no thought.
    filters: Vec<Rule>,
}

/// The node's schema in a custom resource.
fn wrapped(set: &RuleSet<'_>) -> Result<Schema, String> {
    let schema =
        if set.is_root { set.schema.clone() } else { json!({"type": "object", "properties": {"value": set.schema}}) };
    Schema::compile(&schema).map_err(|error| error.to_string())
}

fn resource(set: &RuleSet<'_>, value: &Value) -> Value {
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Sample", "metadata": {"name": "x"}});
    if !set.is_root {
        object["value"] = value.clone();
    } else if let (Some(object), Some(fields)) = (object.as_object_mut(), value.as_object()) {
        object.extend(fields.iter().filter(|(name, _)| *name != "metadata").map(|(k, v)| (k.clone(), v.clone())));
    }
    object
}

fn unwrapped(set: &RuleSet<'_>, mut object: Value) -> Value {
    if set.is_root { object } else { object.get_mut("value").map(Value::take).unwrap_or_default() }
}

impl<'a> Node<'a> {
    /// # Errors
    /// A schema that does not compile.
    pub fn of(live: RuleSet<'a>, desired: RuleSet<'a>) -> Result<Self, String> {
        let defaults = if has_defaults(desired.schema) { Some(wrapped(&desired)?) } else { None };
        Ok(Node { live, desired, accepts: wrapped(&live)?, defaults })
    }

    /// Whether `rule`, one of desired's, holds for every value that live's schema and rules accept.
    pub fn decide(&self, rule: &Value, spend: &dyn Fn(u64) -> bool) -> Implied {
        match Question::of(self, rule) {
            Ok(question) => question.answer(spend),
            Err(why) => Implied::Unknown(why),
        }
    }

    /// The value as desired reads it.
    fn defaulted(&self, value: &Value) -> Value {
        match &self.defaults {
            None => value.clone(),
            Some(schema) => {
                let mut object = resource(&self.live, value);
                schema.default(&mut object);
                unwrapped(&self.live, object)
            }
        }
    }
}

/// Whether a default stands anywhere in the schema.
fn has_defaults(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("default") || map.values().any(has_defaults),
        Value::Array(items) => items.iter().any(has_defaults),
        _ => false,
    }
}

impl<'n, 'a> Question<'n, 'a> {
    fn of(node: &'n Node<'a>, rule: &Value) -> Result<Self, String> {
        let Node { live, desired, .. } = node;
        let mut looked = look(source(rule), live.schema, live.is_root)?;
        let mut filters = Vec::new();
        for other in live.rules {
            let Ok(theirs) = look(source(other), live.schema, live.is_root) else { continue };
            if theirs.gaps.is_empty() && theirs.view.meets(&looked.view) {
                looked.merge(&theirs);
                filters.extend(compile_rules(live.schema, std::slice::from_ref(other), live.is_root));
            }
        }
        looked.level();
        let one = compile_rules(desired.schema, std::slice::from_ref(rule), desired.is_root).into_iter().next();
        let desired = one.ok_or("there is no rule")?;
        match desired.problem() {
            Some(problem) => Err(format!("the rule {:?} cannot be evaluated: {problem}", source(rule))),
            None => Ok(Question { node, looked, desired, filters }),
        }
    }

    fn answer(&self, spend: &dyn Fn(u64) -> bool) -> Implied {
        let mut steps = Steps::new(STEPS);
        let none = BTreeSet::new();
        let texts = if self.looked.gaps.is_empty() { &none } else { &self.looked.texts };
        let mut maker = Maker { budget: &mut steps, texts, missing: None };
        let values = maker.values(self.node.live.schema, &self.looked.view);
        let open = maker.missing;
        spend((STEPS - steps.left()) / STEPS_PER_UNIT);
        // Where nothing can be proven, a look around has to do.
        let runs = if open.is_none() && self.looked.gaps.is_empty() { RUNS } else { GUESSES };
        let mut search = Search { question: self, spend, open, found: Vec::new(), runs, tried: TRIED };
        search.run(&values);
        let Search { found, open, .. } = search;
        if !found.is_empty() {
            return Implied::No(found);
        }
        match open.or_else(|| self.looked.gaps.first().map(|gap| format!("the rule looks at {gap}"))) {
            Some(why) => Implied::Unknown(why),
            None => Implied::Yes,
        }
    }
}

struct Search<'q, 'n, 'a> {
    question: &'q Question<'n, 'a>,
    spend: &'q dyn Fn(u64) -> bool,
    open: Option<String>,
    found: Vec<Counterexample>,
    runs: usize,
    tried: usize,
}

impl Search<'_, '_, '_> {
    fn run(&mut self, values: &[Value]) {
        if self.question.desired.is_transition() {
            // Only what live accepts can be an old value.
            let alone: Vec<&Value> = values.iter().filter(|value| self.passes(value, None)).collect();
            for old in &alone {
                for new in values {
                    if self.is_over() {
                        return;
                    }
                    self.try_one(new, Some(old));
                }
            }
        } else {
            for value in values {
                if self.is_over() {
                    return;
                }
                self.try_one(value, None);
            }
        }
    }

    fn is_over(&mut self) -> bool {
        if self.runs == 0 {
            self.open.get_or_insert_with(|| "too many combinations of values".to_owned());
        }
        self.runs == 0 || self.found.len() >= SHOWN
    }

    /// Whether live's filters let the value pass.
    fn passes(&self, value: &Value, old: Option<&Value>) -> bool {
        let mut budget = Budget::default();
        self.question.filters.iter().all(|rule| !matches!(rule.evaluate(value, old, &mut budget), Answer::Fails(_)))
    }

    fn try_one(&mut self, value: &Value, old: Option<&Value>) {
        self.runs -= 1;
        if !(self.spend)(RUN) {
            self.runs = 0;
        }
        if !self.passes(value, old) {
            return;
        }
        let seen = self.question.node.defaulted(value);
        let old_seen = old.map(|old| self.question.node.defaulted(old));
        match self.question.desired.evaluate(&seen, old_seen.as_ref(), &mut Budget::default()) {
            Answer::Holds | Answer::NotApplicable => {}
            Answer::Undecided(why) => {
                self.open.get_or_insert(why);
            }
            Answer::Fails(_) => self.show(value, old),
        }
    }

    /// Fills a counterexample up to a value that the whole live schema accepts, if it can.
    fn show(&mut self, value: &Value, old: Option<&Value>) {
        if self.tried == 0 {
            self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
            return;
        }
        self.tried -= 1;
        let live = &self.question.node.live;
        let filled = |value: &Value| {
            let mut value = value.clone();
            fill(&mut value, live.schema);
            let mut object = resource(live, &value);
            let prepared = self.question.node.accepts.prepare(&mut object).is_ok_and(|(pruned, _)| pruned.is_empty());
            prepared.then_some(object)
        };
        let objects = (filled(value), old.map(filled));
        let (new, old) = match objects {
            (Some(new), None) => (new, None),
            (Some(new), Some(Some(old))) => (new, Some(old)),
            _ => {
                self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
                return;
            }
        };
        let accepted = self.question.node.accepts.validate(&new, old.as_ref()).is_accepted()
            && old.as_ref().is_none_or(|old| self.question.node.accepts.validate(old, None).is_accepted());
        if !accepted {
            self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
            return;
        }
        let value = unwrapped(live, new);
        let old = old.map(|old| unwrapped(live, old));
        let still_fails = matches!(
            self.question.desired.evaluate(
                &self.question.node.defaulted(&value),
                old.as_ref().map(|old| self.question.node.defaulted(old)).as_ref(),
                &mut Budget::default()
            ),
            Answer::Fails(_)
        );
        if still_fails {
            self.found.push(Counterexample { value, old });
        }
    }
}

#[cfg(test)]
mod tests;
