//! Compares CEL rules: does a desired rule hold wherever the live schema and its rules hold?
//!
//! Most rules look at few parts of a value: whether a field is present, which of several constants it equals, on which
//! side of a bound it lies, whether some item has a property. The rule cannot distinguish values that agree in all of
//! these. So the rule's footprint is computed ([`view`]), one representative is built for each kind of value
//! ([`values`]), and both sides' rules are run on all combinations. If no combination passes live and fails desired,
//! that is a proof. If one does, it is completed to a whole value and becomes a counterexample.
//!
//! A rule that looks at more than a view can express is proven only if it follows from live's rules by logic alone
//! ([`logic`]). Counterexamples are searched in the same way.

mod alike;
mod budget;
pub mod cost;
pub mod examples;
mod fill;
mod footprint;
mod logic;
mod ranges;
pub mod repair;
pub mod restated;
mod values;
mod view;

use std::cell::OnceCell;

use serde_json::{Value, json};

use super::automaton::SearchBudget;
use super::cel::{Counterexample, Implied, RuleSet};
use super::keywords::{self as kw, has_defaults};
use super::solve::MAX_WEIGHT;
use super::strings::STEPS_PER_UNIT;
use super::text::shorten;
use budget::BUDGET;
pub use fill::fill;
pub use footprint::footprint;
use gantry_k8s_cel::re2::Patterns;
use gantry_k8s_cel::{CelBudget, CelRuleResult, CompiledRule, KubernetesRelease, compile_rules_sharing};
use gantry_schema::Schema;
use logic::LiveLogic;
use repair::{RepairInvariant, Repairs, overlaid};
use values::RepresentativeBuilder;
use view::Footprint;
pub use view::{RuleView, ViewStep};

fn source(rule: &Value) -> &str {
    rule.get("rule").and_then(Value::as_str).unwrap_or_default()
}

/// Live's rules, and rules for what its keywords and the nodes below guarantee. None if that adds nothing, or if both
/// sides see different values.
pub fn with_premises(
    live: RuleSet<'_>,
    desired: RuleSet<'_>,
    asked: &[&str],
    means: &RuleProofResources<'_>,
) -> Option<Vec<Value>> {
    if !means.spend((kw::size(live.schema) + kw::size(desired.schema)) as u64) {
        return None;
    }
    let added = restated::premises(&live, asked);
    if added.is_empty() || !alike::see_the_same_values(&live, &desired) {
        return None;
    }
    Some(live.rules.iter().cloned().chain(added).collect())
}

/// The resources for questions about rules.
#[derive(Clone, Copy)]
pub struct RuleProofResources<'m> {
    /// Takes steps, and returns whether any are left.
    pub spend: &'m dyn Fn(u64) -> bool,
    /// A shared cache of compiled patterns.
    pub patterns: &'m Patterns,
    /// The release of the server that evaluates the rules.
    pub release: KubernetesRelease,
}

impl RuleProofResources<'_> {
    pub fn spend(&self, steps: u64) -> bool {
        (self.spend)(steps)
    }
}

/// One of live's rules.
struct LiveRule {
    footprint: Footprint,
    rule: CompiledRule,
}

/// A schema node on both sides, ready for questions about single rules.
pub struct RuleNode<'a> {
    live: RuleSet<'a>,
    desired: RuleSet<'a>,
    /// Live's whole schema, with the node at `value`.
    accepts: Schema,
    /// Desired's whole schema, which is used only to fill in defaults; None if it has none.
    defaults: Option<Schema>,
    /// Desired's whole schema, compiled when it is needed.
    takes: OnceCell<Option<Schema>>,
    /// Live's rules whose footprints are fully supported, and all of desired's rules, compiled when they are needed.
    known: OnceCell<Vec<LiveRule>>,
    asked: OnceCell<Vec<CompiledRule>>,
    /// All of live's rules as formulas.
    logic: LiveLogic<'a>,
    patterns: &'a Patterns,
    repairs: Repairs<'a>,
}

/// Which of live's rules are used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those that look only at what the desired rule looks at.
    Covered,
}

/// One desired rule.
struct RuleQuestion<'n, 'a> {
    node: &'n RuleNode<'a>,
    footprint: Footprint,
    desired: &'n CompiledRule,
    /// Live's rules that look only at the view: a value that fails one of them is skipped.
    filters: Vec<&'n CompiledRule>,
    /// The filters that compare the items of a list with each other. They pass every part of a list that they pass only
    /// if each item passes alone.
    paired: Vec<&'n CompiledRule>,
}

/// The node's schema, embedded in the schema of a custom resource.
fn wrapped(set: &RuleSet<'_>, patterns: &Patterns, release: KubernetesRelease) -> Result<Schema, String> {
    let schema =
        if set.is_root { set.schema.clone() } else { json!({"type": "object", "properties": {"value": set.schema}}) };
    let compiled = Schema::compile_sharing(&schema, patterns).map_err(|error| error.to_string())?;
    Ok(compiled.with_release(release))
}

fn resource(set: &RuleSet<'_>, value: &Value) -> Value {
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Sample", "metadata": {"name": "x"}});
    if !set.is_root {
        object["value"] = value.clone();
    } else if let (Some(object), Some(fields)) = (object.as_object_mut(), value.as_object()) {
        let is_named = |metadata: &Value| metadata.get("name").is_some_and(Value::is_string);
        let fields = fields.iter().filter(|(name, value)| *name != "metadata" || is_named(value));
        object.extend(fields.map(|(k, v)| (k.clone(), v.clone())));
    }
    object
}

fn unwrapped(set: &RuleSet<'_>, mut object: Value) -> Value {
    if set.is_root { object } else { object.get_mut("value").map(Value::take).unwrap_or_default() }
}

impl<'a> RuleNode<'a> {
    /// # Errors
    /// A schema does not compile.
    pub fn new(live: RuleSet<'a>, desired: RuleSet<'a>, means: &RuleProofResources<'a>) -> Result<Self, String> {
        let RuleProofResources { patterns, release, .. } = *means;
        let defaults = if has_defaults(desired.schema) { Some(wrapped(&desired, patterns, release)?) } else { None };
        Ok(RuleNode {
            live,
            desired,
            accepts: wrapped(&live, patterns, release)?,
            defaults,
            takes: OnceCell::new(),
            known: OnceCell::new(),
            asked: OnceCell::new(),
            logic: LiveLogic::default(),
            patterns,
            repairs: Repairs::new(patterns, release),
        })
    }

    fn known(&self) -> &[LiveRule] {
        self.known.get_or_init(|| {
            let live = self.live;
            let compiled = compile_rules_sharing(live.schema, live.rules, live.is_root, self.patterns);
            let read = |(written, rule): (&Value, CompiledRule)| {
                let mut footprint =
                    footprint(source(written), live.schema, live.schema, live.keeps, live.is_root).ok()?;
                if footprint.is_hereditary {
                    // It passes whichever items are kept, so it needs none of its own.
                    footprint.view.kept -= if footprint.is_paired { 2 } else { 1 };
                }
                footprint.unsupported.is_empty().then_some(LiveRule { footprint, rule })
            };
            live.rules.iter().zip(compiled).filter_map(read).collect()
        })
    }

    /// The compiled form of `rule`, one of desired's.
    fn compiled_rule(&self, rule: &Value) -> Result<&CompiledRule, String> {
        let Self { desired, patterns, .. } = self;
        let compiled =
            self.asked.get_or_init(|| compile_rules_sharing(desired.schema, desired.rules, desired.is_root, patterns));
        let at = desired.rules.iter().position(|own| std::ptr::eq(own, rule));
        let compiled = at.and_then(|at| compiled.get(at)).ok_or("there is no rule")?;
        match compiled.problem() {
            Some(problem) => Err(format!("the rule {:?} cannot be evaluated: {problem}", shorten(source(rule)))),
            None => Ok(compiled),
        }
    }

    /// Whether `rule`, one of desired's, holds for every value that live's schema and rules accept.
    ///
    /// Most rules follow from the schema alone or are refuted by one of a few values. Live's rules are used only for
    /// the others.
    pub fn decide(&self, rule: &Value, means: &RuleProofResources<'_>) -> Implied {
        let limit = || Implied::Unknown("the step limit was reached".to_owned());
        if !means.spend(BUDGET.steps_per_completion + source(rule).len() as u64 / BUDGET.rule_bytes_per_step) {
            return limit();
        }
        if ranges::always_holds(source(rule), self.live.schema, self.desired.schema) {
            return Implied::Yes;
        }
        // Logic costs least, if live has any rules.
        if !self.live.rules.is_empty() && self.follows_by_logic(rule, means) {
            return Implied::Yes;
        }
        self.decide_by_values(rule, true, means)
    }

    /// Like [`RuleNode::decide`], but without the questions that live's rules are not used for.
    pub fn decide_by_rules(&self, rule: &Value, means: &RuleProofResources<'_>) -> Implied {
        match self.follows_by_logic(rule, means) {
            true => Implied::Yes,
            false => self.decide_by_values(rule, false, means),
        }
    }

    fn decide_by_values(&self, rule: &Value, is_alone: bool, means: &RuleProofResources<'_>) -> Implied {
        let limit = || Implied::Unknown("the step limit was reached".to_owned());
        let ask = |live: &[LiveRule], which, most| {
            if !means.spend(live.len() as u64 / BUDGET.live_rules_per_step) {
                return limit();
            }
            match RuleQuestion::new(self, rule, live, which) {
                // This would repeat the question without live's rules.
                Ok(question) if which == Which::Covered && question.filters.is_empty() => {
                    Implied::Unknown(String::new())
                }
                Ok(question) => question.answer(most, means),
                Err(why) => Implied::Unknown(why),
            }
        };
        // Rules that look at nothing else need no additional values; other rules may.
        let answer = match is_alone {
            true => ask(&[], Which::All, BUDGET.max_values_of_rule_alone),
            false => Implied::Unknown(String::new()),
        };
        let answer = match answer {
            Implied::Unknown(_) if !self.known().is_empty() => ask(self.known(), Which::Covered, BUDGET.max_values),
            answer => answer,
        };
        match answer {
            Implied::Unknown(_) => ask(self.known(), Which::All, BUDGET.max_values),
            answer => answer,
        }
    }

    /// Whether desired accepts the whole object.
    fn is_taken(&self, object: &Value) -> bool {
        let schema = self.takes.get_or_init(|| wrapped(&self.desired, self.patterns, self.repairs.release()).ok());
        let mut object = object.clone();
        schema.as_ref().is_none_or(|schema| {
            schema.prepare(&mut object).is_ok() && schema.validate(&object, None).errors.is_empty()
        })
    }

    /// The weight of the value with desired's defaults.
    fn filled_weight(&self, value: &Value) -> u64 {
        let filled = |schema: &Schema| schema.filled_weight(&resource(&self.live, value));
        self.defaults.as_ref().map_or(0, filled)
    }

    /// The value with desired's defaults.
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

impl<'n, 'a> RuleQuestion<'n, 'a> {
    /// The question whether `rule` holds where the selected rules of `known` hold.
    fn new(node: &'n RuleNode<'a>, rule: &Value, known: &'n [LiveRule], which: Which) -> Result<Self, String> {
        let RuleNode { live, desired, .. } = node;
        let asked = node.compiled_rule(rule)?;
        let mut footprint = footprint(source(rule), live.schema, desired.schema, live.keeps, live.is_root)?;
        let (mut filters, mut paired) = (Vec::new(), Vec::new());
        let own = footprint.view.clone();
        for LiveRule { footprint: theirs, rule } in known {
            let is_wanted = which == Which::All || own.covers(&theirs.view);
            if filters.len() < BUDGET.max_live_rules && is_wanted && theirs.view.meets(&footprint.view) {
                footprint.merge(theirs);
                if theirs.is_paired {
                    paired.push(rule);
                }
                filters.push(rule);
            }
        }
        footprint.level();
        Ok(RuleQuestion { node, footprint, desired: asked, filters, paired })
    }

    fn answer(&self, most: usize, means: &RuleProofResources<'_>) -> Implied {
        let mut steps = SearchBudget::sharing(BUDGET.max_automaton_steps, self.node.patterns);
        let is_open = !self.footprint.unsupported.is_empty();
        let most = if is_open { most.min(BUDGET.max_runs_to_refute) } else { most };
        let mut maker = RepresentativeBuilder::new(&mut steps, &self.footprint.texts, is_open, most);
        let values = maker.values(self.node.live.schema, &self.footprint.view);
        let open = maker.missing.or_else(|| self.fails_alone(&values));
        means.spend((BUDGET.max_automaton_steps - steps.left()) / STEPS_PER_UNIT);
        // If nothing can be proven, a shorter search has to do.
        let runs = if open.is_none() && !is_open { BUDGET.max_runs_to_prove } else { BUDGET.max_runs_to_refute };
        let mut search = CounterexampleSearch {
            question: self,
            means,
            open,
            found: Vec::new(),
            runs,
            tried: BUDGET.max_completed_candidates,
            repaired: BUDGET.max_repaired_candidates,
        };
        search.run(&values);
        let CounterexampleSearch { found, open, .. } = search;
        if !found.is_empty() {
            return Implied::No(found);
        }
        match open.or_else(|| self.footprint.unsupported.first().map(|gap| format!("the rule uses {gap}"))) {
            Some(why) => Implied::Unknown(why),
            None => Implied::Yes,
        }
    }

    /// A reason, if there is an item that passes only together with other items.
    fn fails_alone(&self, values: &[Value]) -> Option<String> {
        let is_alone = |value: &&Value| value.as_array().is_some_and(|items| items.len() == 1);
        // An item on which the rule cannot be evaluated is in no list that passes.
        let budget = || CelBudget::default().with_release(self.node.repairs.release());
        let fails = |rule: &CompiledRule, value: &Value| match rule.evaluate(value, None, &mut budget()) {
            CelRuleResult::Holds => false,
            CelRuleResult::Fails(failure) => !failure.is_error,
            CelRuleResult::NotApplicable | CelRuleResult::Undecided(_) => true,
        };
        let found = values.iter().filter(is_alone).any(|value| self.paired.iter().any(|rule| fails(rule, value)));
        (found && !self.paired.is_empty()).then(|| "items that are valid only together with others".to_owned())
    }
}

struct CounterexampleSearch<'q, 'n, 'a> {
    question: &'q RuleQuestion<'n, 'a>,
    means: &'q RuleProofResources<'q>,
    open: Option<String>,
    found: Vec<Counterexample>,
    runs: usize,
    tried: usize,
    repaired: usize,
}

impl CounterexampleSearch<'_, '_, '_> {
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
        self.runs == 0 || self.found.len() >= BUDGET.max_counterexamples
    }

    /// Whether live's filters let the value pass.
    fn passes(&self, value: &Value, old: Option<&Value>) -> bool {
        let mut budget = CelBudget::default().with_release(self.means.release);
        let most = budget.remaining();
        let fails = |rule: &&CompiledRule| matches!(rule.evaluate(value, old, &mut budget), CelRuleResult::Fails(_));
        let passes = !self.question.filters.iter().any(fails);
        self.means.spend((most - budget.remaining()) / BUDGET.cel_cost_per_step);
        passes
    }

    /// The result of the desired rule for a value that has desired's defaults.
    fn evaluate_desired(&self, value: &Value, old: Option<&Value>) -> CelRuleResult {
        let mut budget = CelBudget::default().with_release(self.means.release);
        let most = budget.remaining();
        let answer = self.question.desired.evaluate(value, old, &mut budget);
        self.means.spend((most - budget.remaining()) / BUDGET.cel_cost_per_step);
        answer
    }

    fn try_one(&mut self, value: &Value, old: Option<&Value>) {
        self.runs -= 1;
        if !self.means.spend(BUDGET.steps_per_run) {
            self.runs = 0;
        }
        if !self.passes(value, old) {
            return;
        }
        // Defaulting can add far more than what was built.
        let filled = self.question.node.filled_weight(value);
        if filled > MAX_WEIGHT || !self.means.spend(filled / BUDGET.defaulted_bytes_per_step) {
            self.open.get_or_insert_with(|| "values too large after defaulting".to_owned());
            return;
        }
        let seen = self.question.node.defaulted(value);
        let old_seen = old.map(|old| self.question.node.defaulted(old));
        match self.evaluate_desired(&seen, old_seen.as_ref()) {
            CelRuleResult::Holds | CelRuleResult::NotApplicable => {}
            CelRuleResult::Undecided(why) => {
                self.open.get_or_insert(why);
            }
            CelRuleResult::Fails(_) => self.show(value, old),
        }
    }

    /// Completes a counterexample to a value that the whole live schema accepts, if possible.
    fn show(&mut self, value: &Value, old: Option<&Value>) {
        if self.tried == 0 {
            self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
            return;
        }
        self.tried -= 1;
        if !self.means.spend(BUDGET.steps_per_completion) {
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
        let weight = objects.0.as_ref().map_or(0, kw::weight);
        if !self.means.spend(weight / BUDGET.defaulted_bytes_per_step) {
            self.runs = 0;
        }
        let (new, old) = match objects {
            (Some(new), None) => (new, None),
            (Some(new), Some(Some(old))) => (new, Some(old)),
            _ => {
                self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
                return;
            }
        };
        let accepts = |new: &Value, old: Option<&Value>| self.question.node.accepts.validate(new, old).is_accepted();
        // An update shows something only if both sides accept the old object.
        let old = match old {
            Some(old) if !self.question.node.is_taken(&old) => {
                let as_written = |object: &Value| unwrapped(live, object.clone());
                match self.repair_old_object(&new, old.clone()) {
                    Some(old) => Some(old),
                    None => match self.repaired_update(&as_written(&new), &as_written(&old)) {
                        Some(shown) => return self.found.push(shown),
                        None => {
                            let why = || "the objects tried are refused before they are updated".to_owned();
                            self.open.get_or_insert_with(why);
                            return;
                        }
                    },
                }
            }
            old => old,
        };
        let accepted = accepts(&new, old.as_ref()) && old.as_ref().is_none_or(|old| accepts(old, None));
        let shown = match old {
            old if accepted => {
                Some(Counterexample { value: unwrapped(live, new), old: old.map(|old| unwrapped(live, old)) })
            }
            None => self.repaired(&unwrapped(live, new)).map(|value| Counterexample { value, old: None }),
            Some(old) => self.repaired_update(&unwrapped(live, new), &unwrapped(live, old)),
        };
        match shown {
            Some(shown) if self.fails(&shown.value, shown.old.as_ref()) => self.found.push(shown),
            Some(_) => {}
            None => {
                self.open.get_or_insert_with(|| "no whole example could be built".to_owned());
            }
        }
    }

    /// The old object of an update, changed so that desired's rules accept it and the update still fails.
    fn repair_old_object(&mut self, new: &Value, old: Value) -> Option<Value> {
        self.repaired = self.repaired.checked_sub(1)?;
        let RuleNode { live, desired, repairs, .. } = self.question.node;
        let new = unwrapped(live, new.clone());
        let kept = RepairInvariant { pinned: None, serves: &|old: &Value| self.fails(&new, Some(old)) };
        let old = repairs.run(desired.schema, desired.is_root, &unwrapped(live, old), &kept, self.means.spend)?;
        Some(resource(live, &old)).filter(|old| self.question.node.is_taken(old))
    }

    /// The update from `old` to `new` within values that both sides accept: both are changed in the same way, except
    /// for what the rule looks at.
    fn repaired_update(&mut self, new: &Value, old: &Value) -> Option<Counterexample> {
        self.repaired = self.repaired.checked_sub(1)?;
        let RuleNode { live, desired, repairs, accepts, .. } = self.question.node;
        let view = &self.question.footprint.view;
        let updated = |old: &Value| overlaid(old, new, view, None);
        let is_refused = |old: &Value| updated(old).is_some_and(|new| self.fails(&new, Some(old)));
        let kept = RepairInvariant { pinned: None, serves: &is_refused };
        let mut old = old.clone();
        // Repairs for one side's rules can break the other side's.
        for side in [live, desired, live] {
            old = repairs.run(side.schema, side.is_root, &old, &kept, self.means.spend)?;
        }
        let still_fails = |new: &Value| self.fails(new, Some(&old));
        let kept = RepairInvariant { pinned: None, serves: &still_fails };
        let new = repairs.run(live.schema, live.is_root, &updated(&old)?, &kept, self.means.spend)?;
        let whole = |value: &Value| {
            let mut object = resource(live, value);
            accepts.prepare(&mut object).is_ok_and(|(pruned, _)| pruned.is_empty()).then_some(object)
        };
        let (before, after) = (whole(&old)?, whole(&new)?);
        let is_taken = accepts.validate(&before, None).is_accepted()
            && accepts.validate(&after, Some(&before)).is_accepted()
            && self.question.node.is_taken(&before);
        (is_taken && self.fails(&new, Some(&old))).then_some(Counterexample { value: new, old: Some(old) })
    }

    /// Whether the desired rule refuses the value.
    fn fails(&self, value: &Value, old: Option<&Value>) -> bool {
        let node = self.question.node;
        let old = old.map(|old| node.defaulted(old));
        matches!(self.evaluate_desired(&node.defaulted(value), old.as_ref()), CelRuleResult::Fails(_))
    }

    /// The value, changed so that live accepts it and the rule still fails.
    fn repaired(&mut self, value: &Value) -> Option<Value> {
        self.repaired = self.repaired.checked_sub(1)?;
        let RuleNode { live, repairs, accepts, .. } = self.question.node;
        let kept = RepairInvariant { pinned: None, serves: &|value: &Value| self.fails(value, None) };
        let value = repairs.run(live.schema, live.is_root, value, &kept, self.means.spend)?;
        let mut object = resource(live, &value);
        let is_whole = accepts.prepare(&mut object).is_ok_and(|(pruned, _)| pruned.is_empty());
        (is_whole && accepts.validate(&object, None).is_accepted()).then_some(value)
    }
}

#[cfg(test)]
mod tests;
