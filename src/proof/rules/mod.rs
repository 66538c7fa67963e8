//! CEL rules compared: does a desired rule hold wherever the live schema and its rules do?
//!
//! Most rules look at little of a value: whether a field is there, which of some constants it equals, on which side of a
//! bound it is, whether some item has a property. Values that are alike in all of that are alike to the rule. So a rule
//! is read for what it looks at ([`view`]), one representative is made for each kind of value ([`values`]), and both
//! sides' rules are run on all combinations of them. If no combination passes live and fails desired, none does: that is
//! a proof. If one does, it is filled up to a whole value and shown.
//!
//! A rule that looks at more than a view can say is never proven; its counterexamples are searched in the same way.

mod fill;
mod look;
mod ranges;
pub mod repair;
mod values;
mod view;

use std::cell::OnceCell;

use serde_json::{Value, json};

use super::automaton::Budget as Steps;
use super::cel::{Counterexample, Implied, RuleSet};
use super::keywords::has_defaults;
use super::strings::STEPS_PER_UNIT;
use crate::validation::Schema;
use crate::validation::cel::{Answer, Budget, Rule, compile_rules};
pub use fill::fill;
pub use look::look;
use repair::{Kept, Repairs};
use values::Maker;
use view::Looked;
pub use view::{Key, View};

/// Steps for making texts.
const STEPS: u64 = 1_000_000;
/// Runs of rules for one question that may be proven, and for one that can only be refuted.
const RUNS: usize = 60_000;
const GUESSES: usize = 4_000;
/// What one run costs in the caller's steps.
const RUN: u64 = 8;
/// Values that are made for a question, and for one about the rule alone.
const VALUES: usize = 20_000;
const FEW: usize = 1_500;
/// Counterexamples at most.
const SHOWN: usize = 3;
/// Candidates that are filled up and put to the whole live schema at most.
const TRIED: usize = 100;
/// Of those that live's rules refuse, how many are changed until they pass.
const REPAIRED: usize = 6;
/// What filling one up costs in the caller's steps.
const SHOW: u64 = 50;

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
    /// The whole of desired's schema, where it was needed.
    takes: OnceCell<Option<Schema>>,
    repairs: Repairs,
}

/// One desired rule.
struct Question<'n, 'a> {
    node: &'n Node<'a>,
    looked: Looked,
    desired: Rule,
    /// Live's rules that look at nothing beyond the view: whatever fails one of them needs no thought.
    filters: Vec<Rule>,
    /// Those of them that pass a list without some of its items only if each item passes alone.
    paired: Vec<Rule>,
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
        Ok(Node {
            live,
            desired,
            accepts: wrapped(&live)?,
            defaults,
            takes: OnceCell::new(),
            repairs: Repairs::default(),
        })
    }

    /// Whether `rule`, one of desired's, holds for every value that live's schema and rules accept.
    ///
    /// Most rules follow from the schema alone, or are refuted by one of few values. Live's rules are asked where not.
    pub fn decide(&self, rule: &Value, spend: &dyn Fn(u64) -> bool) -> Implied {
        if ranges::always_holds(source(rule), self.live.schema, self.desired.schema) {
            return Implied::Yes;
        }
        let ask = |live: &[Value], most| match Question::of(self, rule, live) {
            _ if !spend(SHOW) => Implied::Unknown("the limit of steps is reached".to_owned()),
            Ok(question) => question.answer(most, spend),
            Err(why) => Implied::Unknown(why),
        };
        match ask(&[], FEW) {
            Implied::Unknown(_) => ask(self.live.rules, VALUES),
            answer => answer,
        }
    }

    /// Whether desired takes the whole object.
    fn is_taken(&self, object: &Value) -> bool {
        let schema = self.takes.get_or_init(|| wrapped(&self.desired).ok());
        let mut object = object.clone();
        schema.as_ref().is_none_or(|schema| {
            schema.prepare(&mut object).is_ok() && schema.validate(&object, None).errors.is_empty()
        })
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

impl<'n, 'a> Question<'n, 'a> {
    /// The question about `rule` where the rules `known` hold.
    fn of(node: &'n Node<'a>, rule: &Value, known: &[Value]) -> Result<Self, String> {
        let Node { live, desired, .. } = node;
        let mut looked = look(source(rule), live.schema, desired.schema, live.keeps, live.is_root)?;
        let (mut filters, mut paired) = (Vec::new(), Vec::new());
        for other in known {
            let theirs = look(source(other), live.schema, live.schema, live.keeps, live.is_root);
            let Ok(mut theirs) = theirs else { continue };
            if theirs.gaps.is_empty() && theirs.view.meets(&looked.view) {
                if theirs.is_hereditary {
                    // It passes whichever items are kept, and asks for none of its own.
                    theirs.view.kept -= if theirs.is_paired { 2 } else { 1 };
                }
                looked.merge(&theirs);
                let compiled = compile_rules(live.schema, std::slice::from_ref(other), live.is_root);
                if theirs.is_paired {
                    paired.extend(compiled.iter().cloned());
                }
                filters.extend(compiled);
            }
        }
        looked.level();
        let one = compile_rules(desired.schema, std::slice::from_ref(rule), desired.is_root).into_iter().next();
        let desired = one.ok_or("there is no rule")?;
        match desired.problem() {
            Some(problem) => Err(format!("the rule {:?} cannot be evaluated: {problem}", source(rule))),
            None => Ok(Question { node, looked, desired, filters, paired }),
        }
    }

    fn answer(&self, most: usize, spend: &dyn Fn(u64) -> bool) -> Implied {
        let mut steps = Steps::new(STEPS);
        let is_open = !self.looked.gaps.is_empty();
        let most = if is_open { most.min(GUESSES) } else { most };
        let mut maker = Maker::new(&mut steps, &self.looked.texts, is_open, most);
        let values = maker.values(self.node.live.schema, &self.looked.view);
        let open = maker.missing.or_else(|| self.fails_alone(&values));
        spend((STEPS - steps.left()) / STEPS_PER_UNIT);
        // Where nothing can be proven, a look around has to do.
        let runs = if open.is_none() && !is_open { RUNS } else { GUESSES };
        let mut search =
            Search { question: self, spend, open, found: Vec::new(), runs, tried: TRIED, repaired: REPAIRED };
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

    /// That items of a list need others beside them.
    fn fails_alone(&self, values: &[Value]) -> Option<String> {
        let is_alone = |value: &&Value| value.as_array().is_some_and(|items| items.len() == 1);
        // An item with which the rule cannot be evaluated is in no list that passes.
        let fails = |rule: &Rule, value: &Value| match rule.evaluate(value, None, &mut Budget::default()) {
            Answer::Holds => false,
            Answer::Fails(failure) => !failure.is_error,
            Answer::NotApplicable | Answer::Undecided(_) => true,
        };
        let found = values.iter().filter(is_alone).any(|value| self.paired.iter().any(|rule| fails(rule, value)));
        (found && !self.paired.is_empty()).then(|| "items that need others beside them".to_owned())
    }
}

struct Search<'q, 'n, 'a> {
    question: &'q Question<'n, 'a>,
    spend: &'q dyn Fn(u64) -> bool,
    open: Option<String>,
    found: Vec<Counterexample>,
    runs: usize,
    tried: usize,
    repaired: usize,
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
        if !(self.spend)(SHOW) {
            self.runs = 0;
        }
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
        let accepts = |new: &Value, old: Option<&Value>| self.question.node.accepts.validate(new, old).is_accepted();
        // An update shows something only where both sides take what was there before.
        if old.as_ref().is_some_and(|old| !self.question.node.is_taken(old)) {
            self.open.get_or_insert_with(|| "the objects tried are refused before they are updated".to_owned());
            return;
        }
        let accepted = accepts(&new, old.as_ref()) && old.as_ref().is_none_or(|old| accepts(old, None));
        let shown = if accepted {
            Some(Counterexample { value: unwrapped(live, new), old: old.map(|old| unwrapped(live, old)) })
        } else if old.is_none() {
            self.repaired(&unwrapped(live, new)).map(|value| Counterexample { value, old: None })
        } else {
            None
        };
        match shown {
            Some(shown) if self.fails(&shown.value, shown.old.as_ref()) => self.found.push(shown),
            Some(_) => {}
            None => {
                self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
            }
        }
    }

    /// Whether the desired rule refuses the value.
    fn fails(&self, value: &Value, old: Option<&Value>) -> bool {
        let Question { node, desired, .. } = self.question;
        let old = old.map(|old| node.defaulted(old));
        matches!(desired.evaluate(&node.defaulted(value), old.as_ref(), &mut Budget::default()), Answer::Fails(_))
    }

    /// The value, changed so that live takes it and the rule still fails.
    fn repaired(&mut self, value: &Value) -> Option<Value> {
        self.repaired = self.repaired.checked_sub(1)?;
        let Node { live, repairs, accepts, .. } = self.question.node;
        let kept = Kept { pinned: None, serves: &|value: &Value| self.fails(value, None) };
        let value = repairs.run(live.schema, live.is_root, value, &kept, self.spend)?;
        let mut object = resource(live, &value);
        let is_whole = accepts.prepare(&mut object).is_ok_and(|(pruned, _)| pruned.is_empty());
        (is_whole && accepts.validate(&object, None).is_accepted()).then_some(value)
    }
}

#[cfg(test)]
mod tests;
