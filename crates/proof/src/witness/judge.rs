//! Whole objects taken through both sides by the validator.

use serde_json::Value;

use super::Judges;
use super::route::Route;
use crate::solve::{LARGEST, STEPS_OF_JUDGES, Solver};
use crate::{Difference, Version, Witness, keywords as kw};
use gantry_schema::Step;
use gantry_schema::{Processed, Schema};

/// So many bytes of an object cost a step: it is copied and gone through some times.
const WEIGHED: u64 = 256;

/// One side: what it makes of objects.
pub struct Side<'v> {
    pub version: &'v Version<'v>,
    pub schema: Schema,
    /// Whether the version has rules, which the solver does not know.
    has_rules: bool,
}

impl<'v> Side<'v> {
    pub fn new(version: &'v Version<'v>, schema: Schema) -> Self {
        Self { version, schema, has_rules: has_rules(version.schema) }
    }
}

fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            map.get("x-kubernetes-validations").is_some_and(Value::is_array) || map.values().any(has_rules)
        }
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

/// A witness, and where the difference is.
pub(super) struct Confirmed {
    pub witness: Witness,
    /// None where that is not known.
    pub at: Option<Vec<Step>>,
    /// Whether the difference is at the end of the way that was asked about, or below; a refusal only where the node at the
    /// end refuses, and none below it.
    pub is_there: bool,
}

impl Judges<'_> {
    fn process(
        &self,
        solver: &Solver,
        side: &Side,
        object: &mut Value,
        old: Option<&Value>,
        via_status: bool,
    ) -> Processed {
        let is_dropped = side.version.status_subresource && !via_status;
        let schema = side.schema.clone().with_status_subresource(is_dropped);
        let most = solver.left().saturating_mul(STEPS_OF_JUDGES);
        let mut left = most;
        let processed = schema.process_within(object, old, &mut left);
        solver.spend((most - left) / STEPS_OF_JUDGES);
        if is_dropped && object.get("status").is_none() {
            // A status that was dropped is filled in again when the object is read.
            side.schema.default(object);
        }
        processed
    }

    /// Takes a candidate through both sides. Of several refusals the one by the node at the end of `way` counts.
    pub(super) fn confirm(
        &self,
        solver: &Solver,
        object: &Value,
        old: Option<&Value>,
        via_status: bool,
        way: &Route<'_>,
    ) -> Result<Confirmed, Unconfirmed> {
        if !solver.spend(if self.source.has_rules || self.target.has_rules { 200 } else { 20 }) {
            return Err(Unconfirmed::Limit);
        }
        // Defaults may fill in far more than is written.
        let filled = [&self.source, &self.target].map(|side| side.schema.filled_weight(object)).into_iter().max();
        if filled.is_some_and(|weight| weight > 4 * LARGEST || !solver.spend(weight / WEIGHED)) {
            return Err(Unconfirmed::TooLarge);
        }
        if let Some(old) = old {
            // The object before is one that both sides take: else the refusal is of that one.
            let (mut before, mut after) = (old.clone(), old.clone());
            if !self.process(solver, &self.source, &mut before, None, via_status).outcome.is_accepted()
                || !self.process(solver, &self.target, &mut after, None, via_status).outcome.errors.is_empty()
            {
                return Err(Unconfirmed::Refused);
            }
        }
        let mut here = object.clone();
        let taken = self.process(solver, &self.source, &mut here, old, via_status);
        if let Some(error) = taken.outcome.errors.first() {
            let by_rules = self.source.has_rules;
            return Err(if by_rules { Unconfirmed::RefusedByRules(error.to_string()) } else { Unconfirmed::Refused });
        }
        if let Some(undecided) = taken.outcome.undecided.first() {
            return Err(Unconfirmed::Undecided(undecided.reason.clone()));
        }
        if !taken.pruned.is_empty() || via_status && !self.is_created(solver, object) {
            return Err(Unconfirmed::Refused);
        }
        // Where a null was dropped, the object was not what the source keeps.
        if !kw::contains_all(&here, object) {
            return Err(Unconfirmed::Refused);
        }
        let mut there = object.clone();
        let judged = self.process(solver, &self.target, &mut there, old, via_status);
        let errors = &judged.outcome.errors;
        let mut is_there = true;
        let (desired, message, at) = if let Some(first) = errors.first() {
            let error = errors.iter().find(|error| way.is_refused_by(error)).unwrap_or(first);
            is_there = way.is_refused_by(error);
            (Difference::Refused, error.to_string(), Some(error.at.clone()))
        } else if let Some(undecided) = judged.outcome.undecided.first() {
            return Err(Unconfirmed::Undecided(undecided.reason.clone()));
        } else if let Some(first) = judged.pruned.first() {
            let pruned = judged.pruned.iter().find(|pruned| way.leads_to(&pruned.at)).unwrap_or(first);
            (Difference::Pruned, format!("{} is dropped", pruned.path), Some(pruned.at.clone()))
        } else if !kw::contains_all(&there, object) {
            (Difference::Pruned, "a value is dropped".to_owned(), None)
        } else if !kw::same_value(&here, &there) {
            let (message, at) = defaulted(&taken, &judged);
            (Difference::Defaulted, message, at)
        } else {
            return Err(Unconfirmed::Taken);
        };
        is_there &= at.as_ref().is_none_or(|at| way.leads_to(at));
        let witness = Witness { object: object.clone(), old_object: old.cloned(), desired, message, via_status };
        Ok(Confirmed { witness, at, is_there })
    }

    /// Whether the object can come to be at all before its status is written.
    fn is_created(&self, solver: &Solver, object: &Value) -> bool {
        let mut created = object.clone();
        self.process(solver, &self.source, &mut created, None, false).outcome.is_accepted()
    }
}

/// What is filled in differently, in words, and where.
fn defaulted(live: &Processed, desired: &Processed) -> (String, Option<Vec<Step>>) {
    let is_in = |processed: &Processed, at: &[Step]| processed.defaulted.iter().any(|known| known.at == at);
    let added = desired.defaulted.iter().find(|after| !is_in(live, &after.at));
    let removed = live.defaulted.iter().find(|before| !is_in(desired, &before.at));
    match (added, removed) {
        (Some(new), _) => (format!("{} is filled in", new.path), Some(new.at.clone())),
        (None, Some(gone)) => (format!("{} is no longer filled in", gone.path), Some(gone.at.clone())),
        (None, None) => {
            let path = desired.defaulted.first().map_or("a field", |known| known.path.as_str());
            (format!("{path} is filled in differently"), None)
        }
    }
}

/// Why a candidate is no witness.
pub(super) enum Unconfirmed {
    Limit,
    TooLarge,
    Refused,
    /// By the source's rules, most likely: what refuses the object, in the server's words.
    RefusedByRules(String),
    Undecided(String),
    Taken,
}

impl Unconfirmed {
    pub fn words(self) -> String {
        match self {
            Self::Limit => "the limit of steps is reached".to_owned(),
            Self::TooLarge => "the objects tried are too large with their defaults".to_owned(),
            Self::Refused => "the objects tried are refused today".to_owned(),
            Self::RefusedByRules(error) => format!("the objects tried are refused by today's rules: {error}"),
            Self::Undecided(reason) => reason,
            Self::Taken => "the objects tried pass".to_owned(),
        }
    }
}
