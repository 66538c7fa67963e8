//! Changes that no object can show, because live's rules of a node above exclude the values: `!has(self.a.t)` makes a
//! new `pattern` of `t` void.

use serde_json::{Value, json};

use super::CompiledSides;
use crate::cel::{self, Implied, RuleSet};
use crate::constraints::SharedSchema;
use crate::keywords as kw;
use crate::product::{ExpectedEffect, Obligation, ValuePath, ValueStep};
use crate::rules::restated::{self, absence};
use crate::solve::Solver;

/// A value that the source's rules pass, and the path to it.
pub(super) type PassingValue<'o, 's> = (Option<&'o ValuePath<'s>>, Value);

impl CompiledSides<'_> {
    /// Whether the source's rules of some node above refuse every object with a value that the obligation is about.
    ///
    /// That is asked as a rule of the node above: that there is no such value, or that it is one that the target accepts.
    ///
    /// What a rule of the source passes although the target refuses it is added to `passing`, with the path around it.
    pub(super) fn is_excluded_by_rules<'o, 's>(
        &self,
        solver: &Solver<'s>,
        obligation: &'o Obligation<'s>,
        passing: &mut Vec<PassingValue<'o, 's>>,
    ) -> bool {
        if !self.source.has_rules || obligation.effect == ExpectedEffect::Defaulted {
            return false;
        }
        let mut steps: Vec<&ValueStep> = Vec::new();
        let mut level = obligation.value_path.as_deref();
        let own = match level {
            None => Some(self.source.version.schema),
            Some(above) => match above.constraints.holds.first() {
                Some(SharedSchema::Ref(around)) => described(around, &[&above.step]),
                _ => None,
            },
        };
        if let Some(own) = own {
            let mut found = Vec::new();
            if self.rules_exclude_values(solver, obligation, (own, &[]), level.is_none(), &mut found) {
                return true;
            }
            passing.extend(found.into_iter().map(|value| (level, value)));
        }
        while let Some(value_path) = level {
            steps.insert(0, &value_path.step);
            level = value_path.above.as_deref();
            let Some(SharedSchema::Ref(around)) = value_path.constraints.holds.first() else { return false };
            let mut found = Vec::new();
            if self.rules_exclude_values(solver, obligation, (around, &steps), value_path.above.is_none(), &mut found) {
                return true;
            }
            passing.extend(found.into_iter().map(|value| (level, value)));
        }
        false
    }

    /// Whether the rules of the schema `around` refuse every value, at the end of `steps` below it, that the obligation is
    /// about.
    fn rules_exclude_values<'s>(
        &self,
        solver: &Solver<'s>,
        obligation: &Obligation<'s>,
        (around, steps): (&Value, &[&ValueStep]),
        is_root: bool,
        passing: &mut Vec<Value>,
    ) -> bool {
        let rules = kw::list(around, "x-kubernetes-validations");
        let is_named = |step: &&ValueStep| match step {
            ValueStep::Field(name) => rules.iter().any(|rule| rule.to_string().contains(name.as_str())),
            ValueStep::Entry(_) | ValueStep::Item => true,
        };
        if rules.is_empty() || !steps.first().is_none_or(is_named) {
            return false;
        }
        let Some(end) = described(around, steps) else { return false };
        // Rules see no values before defaults are filled in, and no unknown fields.
        let accepted = obligation.refused.as_ref().filter(|_| !kw::has_defaults(end));
        let accepted = accepted.filter(|refused| {
            let levels = std::iter::successors(obligation.value_path.as_deref(), |level| level.above.as_deref());
            let mut around = levels.filter_map(|level| level.constraints.holds.first());
            let is_list = |schema: &Value| kw::type_name(schema) == Some("array");
            !refused.to_string().contains("Properties\"") || !around.any(|part| is_list(part) && kw::preserves(part))
        });
        let whole = accepted.and_then(|refused| absence("self", steps, &|at| restated::condition(refused, end, at), 0));
        // Without what is above it, there is no value either.
        let named = steps.iter().take_while(|step| is_named(step)).count();
        let parts =
            (1..=named).rev().filter_map(|length| absence("self", &steps[..length], &|_| Some("false".to_owned()), 0));
        whole.into_iter().chain(parts).any(|rule| {
            let asked = [json!({"rule": rule})];
            let live = RuleSet { schema: around, rules, is_root, keeps: false };
            let desired = RuleSet { rules: &asked, ..live };
            match solver.with_means(|means| cel::implied(live, desired, means)) {
                Implied::Yes => true,
                Implied::No(found) => {
                    passing.extend(found.into_iter().map(|found| found.value));
                    false
                }
                Implied::Unknown(_) => false,
            }
        })
    }
}

/// The schema at the end of the path. None if one is not described, or if the value can be null, for which the
/// server evaluates no rule.
fn described<'v>(around: &'v Value, steps: &[&ValueStep]) -> Option<&'v Value> {
    let mut schema = around;
    for step in steps {
        let below = match step {
            ValueStep::Field(name) => kw::property(schema, name),
            ValueStep::Entry(_) => kw::get(schema, "additionalProperties").filter(|values| values.is_object()),
            ValueStep::Item => kw::get(schema, "items"),
        }?;
        if kw::flag(below, "nullable") || !kw::has_type(below) {
            return None;
        }
        schema = below;
    }
    Some(schema)
}
