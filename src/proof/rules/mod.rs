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
/// Runs of rules for one question.
const RUNS: usize = 60_000;
/// Counterexamples at most.
const SHOWN: usize = 3;
/// Candidates that are filled up and put to the whole live schema at most.
const TRIED: usize = 200;

/// Whether `rule`, one of `desired`, holds for every value that live's schema and rules accept.
pub fn decide(live: RuleSet<'_>, desired: RuleSet<'_>, rule: &Value) -> Implied {
    match Question::of(live, desired, rule) {
        Ok(question) => question.answer(),
        Err(why) => Implied::Unknown(why),
    }
}

fn source(rule: &Value) -> &str {
    rule.get("rule").and_then(Value::as_str).unwrap_or_default()
}

struct Question<'a> {
    live: RuleSet<'a>,
    looked: Looked,
    desired: Rule,
    /// Live's rules that look at nothing beyond the view: whatever fails one of them needs no thought.
    filters: Vec<Rule>,
    /// The whole of live's schema with `value` as the place of the node, and desired's, which only fills in defaults.
    accepts: Schema,
    defaults: Option<Schema>,
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

impl<'a> Question<'a> {
    fn of(live: RuleSet<'a>, desired: RuleSet<'a>, rule: &Value) -> Result<Self, String> {
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
        let desired_rule = one.ok_or("there is no rule")?;
        if let Some(problem) = desired_rule.problem() {
            return Err(format!("the rule {:?} cannot be evaluated: {problem}", source(rule)));
        }
        let has_defaults = desired.schema.to_string().contains("\"default\":");
        Ok(Question {
            live,
            looked,
            desired: desired_rule,
            filters,
            accepts: wrapped(&live)?,
            defaults: if has_defaults { Some(wrapped(&desired)?) } else { None },
        })
    }

    fn answer(&self) -> Implied {
        let mut steps = Steps::new(STEPS);
        let none = BTreeSet::new();
        let texts = if self.looked.gaps.is_empty() { &none } else { &self.looked.texts };
        let mut maker = Maker { budget: &mut steps, texts, missing: None };
        let values = maker.values(self.live.schema, &self.looked.view);
        let mut search = Search { question: self, open: maker.missing, found: Vec::new(), runs: RUNS, tried: TRIED };
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

struct Search<'q, 'a> {
    question: &'q Question<'a>,
    open: Option<String>,
    found: Vec<Counterexample>,
    runs: usize,
    tried: usize,
}

impl Search<'_, '_> {
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
        if !self.passes(value, old) {
            return;
        }
        let seen = self.defaulted(value);
        let old_seen = old.map(|old| self.defaulted(old));
        match self.question.desired.evaluate(&seen, old_seen.as_ref(), &mut Budget::default()) {
            Answer::Holds | Answer::NotApplicable => {}
            Answer::Undecided(why) => {
                self.open.get_or_insert(why);
            }
            Answer::Fails(_) => self.show(value, old),
        }
    }

    /// The value as desired reads it.
    fn defaulted(&self, value: &Value) -> Value {
        match &self.question.defaults {
            None => value.clone(),
            Some(schema) => {
                let mut object = resource(&self.question.live, value);
                schema.default(&mut object);
                unwrapped(&self.question.live, object)
            }
        }
    }

    /// Fills a counterexample up to a value that the whole live schema accepts, if it can.
    fn show(&mut self, value: &Value, old: Option<&Value>) {
        if self.tried == 0 {
            self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
            return;
        }
        self.tried -= 1;
        let live = &self.question.live;
        let filled = |value: &Value| {
            let mut value = value.clone();
            fill(&mut value, live.schema);
            let mut object = resource(live, &value);
            let prepared = self.question.accepts.prepare(&mut object).is_ok_and(|(pruned, _)| pruned.is_empty());
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
        let accepted = self.question.accepts.validate(&new, old.as_ref()).is_accepted()
            && old.as_ref().is_none_or(|old| self.question.accepts.validate(old, None).is_accepted());
        if !accepted {
            self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
            return;
        }
        let value = unwrapped(live, new);
        let old = old.map(|old| unwrapped(live, old));
        let still_fails = matches!(
            self.question.desired.evaluate(
                &self.defaulted(&value),
                old.as_ref().map(|old| self.defaulted(old)).as_ref(),
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
