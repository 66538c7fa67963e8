//! Validates whole objects against both sides.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::Value;

use super::CompiledSides;
use super::route::Route;
use crate::solve::{MAX_WEIGHT, Solver, VALIDATOR_STEPS_PER_STEP};
use crate::{Difference, ProofWitness, VersionSchema, keywords as kw};
use gantry_schema::Step;
use gantry_schema::ratchet::{self, RatchetingRefusals};
use gantry_schema::typed::{self, Duplicates};
use gantry_schema::{Defaulted, Processed, Schema};

/// The maximum size of a witness as JSON. By default etcd takes requests of 1.5 MiB, and with the object it stores which
/// manager owns which field.
const MAX_STORED: u64 = 1 << 20;
/// The number of bytes of an object that cost one step: it is copied and traversed several times.
const WEIGHED: u64 = 256;

/// The number of missing fields of an object that are reported: a witness has only the fields that it needs, and all
/// that the other side requires are missing.
const MOST_MISSING: usize = 16;

/// One side of the comparison, with its compiled schema.
pub struct ComparedVersion<'v> {
    pub version: &'v VersionSchema<'v>,
    pub schema: Schema,
    /// Whether the version has rules, which the solver ignores.
    pub(super) has_rules: bool,
}

impl<'v> ComparedVersion<'v> {
    pub fn new(version: &'v VersionSchema<'v>, schema: Schema) -> Self {
        Self { version, schema: schema.with_most_missing(MOST_MISSING), has_rules: has_rules(version.schema) }
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

/// What both sides do with an object.
pub struct ObjectRun {
    object: Value,
    via_status: bool,
    here: Value,
    taken: Processed,
    there: Value,
    /// Only if the source accepts the object.
    processed: Processed,
    /// Built when a default is in question.
    defaults: OnceCell<DefaultedFields>,
}

/// The fields that a side fills in, first those of the source, by their names and the number of steps to them: an
/// object can have thousands, and each can be in question.
struct DefaultedFields(HashMap<(usize, Box<str>), Vec<usize>>);

impl DefaultedFields {
    fn new<'d>(defaulted: impl Iterator<Item = &'d Defaulted>) -> Self {
        let mut known: HashMap<(usize, Box<str>), Vec<usize>> = HashMap::new();
        for (number, field) in defaulted.enumerate() {
            for (depth, step) in field.at.iter().enumerate() {
                if let Step::Key(key) = step {
                    known.entry((depth, key.as_str().into())).or_default().push(number);
                }
            }
        }
        Self(known)
    }
}

/// The number of runs that are kept.
const KNOWN_RUNS: usize = 3;
/// The number of errors that are included in the cost of a run; each of the others consists of paths and words, too.
const FREE_ERRORS: usize = 16;
const STEPS_PER_ERROR: u64 = 2;

/// A witness, and where the difference is.
pub(super) struct Confirmed {
    pub witness: ProofWitness,
    /// None if that is unknown.
    pub at: Option<Vec<Step>>,
    /// Whether the difference is at the end of the path in question or below it. A refusal counts only if the node at
    /// the end of the path refuses, not one below it.
    pub is_there: bool,
}

impl CompiledSides<'_> {
    fn process(
        &self,
        solver: &Solver,
        side: &ComparedVersion,
        object: &mut Value,
        old: Option<&Value>,
        via_status: bool,
    ) -> Processed {
        let is_dropped = side.version.status_subresource && !via_status;
        let schema = side.schema.clone().with_status_subresource(is_dropped);
        let most = solver.left().saturating_mul(VALIDATOR_STEPS_PER_STEP);
        let mut left = most;
        let processed = schema.process_within(object, old, &mut left);
        solver.spend((most - left) / VALIDATOR_STEPS_PER_STEP);
        if is_dropped && object.get("status").is_none() {
            // A dropped status is defaulted again when the object is read.
            side.schema.default(object);
        }
        processed
    }

    /// What both sides do with the object. The last runs are known: many changes of one object have the same witness.
    fn run_of(
        &self,
        solver: &Solver,
        object: &Value,
        old: Option<&Value>,
        via_status: bool,
    ) -> Result<Rc<ObjectRun>, Unconfirmed> {
        let is_known = |run: &&Rc<ObjectRun>| run.via_status == via_status && run.object == *object;
        if old.is_none()
            && let Some(run) = self.runs.borrow().iter().find(is_known)
        {
            return Ok(Rc::clone(run));
        }
        // Defaults can add far more than is written.
        let filled = [&self.source, &self.target].map(|side| side.schema.filled_weight(object)).into_iter().max();
        if filled.is_some_and(|weight| weight > MAX_STORED) && json_size(object) > MAX_STORED {
            return Err(Unconfirmed::TooLarge);
        }
        if filled.is_some_and(|weight| weight > 4 * MAX_WEIGHT || !solver.spend(weight / WEIGHED)) {
            return Err(Unconfirmed::TooLarge);
        }
        if let Some(old) = old {
            // Both sides must accept the old object; otherwise the refusal is not caused by the update.
            let (mut before, mut after) = (old.clone(), old.clone());
            if !self.process(solver, &self.source, &mut before, None, via_status).outcome.is_accepted()
                || !self.process(solver, &self.target, &mut after, None, via_status).outcome.errors.is_empty()
            {
                return Err(Unconfirmed::Refused);
            }
        }
        let (mut here, mut there) = (object.clone(), object.clone());
        let taken = self.process(solver, &self.source, &mut here, old, via_status);
        let processed = match taken.outcome.errors.is_empty() {
            true => self.process(solver, &self.target, &mut there, old, via_status),
            false => Processed::default(),
        };
        let errors = taken.outcome.errors.len() + processed.outcome.errors.len();
        solver.spend(errors.saturating_sub(FREE_ERRORS) as u64 * STEPS_PER_ERROR);
        let defaults = OnceCell::new();
        let run = Rc::new(ObjectRun { object: object.clone(), via_status, here, taken, there, processed, defaults });
        if old.is_none() {
            let mut runs = self.runs.borrow_mut();
            runs.truncate(KNOWN_RUNS - 1);
            runs.insert(0, Rc::clone(&run));
        }
        Ok(run)
    }

    /// Validates a candidate against both sides. If there are several errors, the one of the node at the end of `route`
    /// counts.
    pub(super) fn confirm(
        &self,
        solver: &Solver,
        object: &Value,
        old: Option<&Value>,
        via_status: bool,
        route: &Route<'_>,
    ) -> Result<Confirmed, Unconfirmed> {
        if !solver.spend(if self.source.has_rules || self.target.has_rules { 200 } else { 20 }) {
            return Err(Unconfirmed::Limit);
        }
        let run = self.run_of(solver, object, old, via_status)?;
        let ObjectRun { here, taken, there, processed, defaults, .. } = &*run;
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
        // If a null was dropped, the source does not keep the object as it is.
        if !kw::contains_all(here, object) {
            return Err(Unconfirmed::Refused);
        }
        let errors = &processed.outcome.errors;
        let mut is_there = true;
        let (desired, message, at) = if let Some(first) = errors.first() {
            let error = errors.iter().find(|error| route.is_refused_by(error)).unwrap_or(first);
            is_there = route.is_refused_by(error);
            (Difference::Refused, error.to_string(), Some(error.at.clone()))
        } else if let Some(undecided) = processed.outcome.undecided.first() {
            return Err(Unconfirmed::Undecided(undecided.reason.clone()));
        } else if let Some((message, at)) =
            default_in_question(route, [here, there], [&taken.defaulted, &processed.defaulted], defaults)
        {
            (Difference::Defaulted, message, Some(at))
        } else if let Some(first) = processed.pruned.first() {
            let pruned = processed.pruned.iter().find(|pruned| route.leads_to(&pruned.at)).unwrap_or(first);
            (Difference::Pruned, format!("{} is dropped", pruned.path), Some(pruned.at.clone()))
        } else if !kw::contains_all(there, object) {
            (Difference::Pruned, "a value is dropped".to_owned(), None)
        } else if !kw::same_value(here, there) {
            let (message, at) = defaulted(taken, processed);
            (Difference::Defaulted, message, at)
        } else {
            return Err(Unconfirmed::Taken);
        };
        is_there &= at.as_ref().is_none_or(|at| route.leads_to(at));
        let witness = ProofWitness {
            object: object.clone(),
            old_object: old.cloned(),
            desired,
            message,
            via_status,
            is_read_only: false,
            refused_updates: None,
            is_lost_to_another_change: false,
        };
        Ok(Confirmed { witness, at, is_there })
    }

    /// The witness that `refused`, which the target refuses for another reason, is as a stored object: when it is read,
    /// the field whose default is in question is filled in differently. None if both sides read the same there.
    pub(super) fn confirm_read(&self, solver: &Solver, refused: &Confirmed, route: &Route<'_>) -> Option<ProofWitness> {
        let ProofWitness { object, message, .. } = &refused.witness;
        if !solver.spend(20 + kw::weight(object) / WEIGHED) {
            return None;
        }
        let read = |side: &ComparedVersion| {
            let mut object = object.clone();
            side.schema.prepare_stored(&mut object).ok().map(|(_, defaulted)| (object, defaulted))
        };
        let ((here, live), (there, desired)) = (read(&self.source)?, read(&self.target)?);
        let (words, _) = default_in_question(route, [&here, &there], [&live, &desired], &OnceCell::new())?;
        Some(ProofWitness {
            desired: Difference::Defaulted,
            message: format!("{words} when a stored object is read; writing it is refused: {message}"),
            is_read_only: true,
            ..refused.witness.clone()
        })
    }

    /// Which updates the target refuses of a stored object like the witness.
    pub fn refused_updates(&self, solver: &Solver, witness: &ProofWitness) -> Option<RatchetingRefusals> {
        let ComparedVersion { version, schema, .. } = &self.target;
        let is_refused = witness.desired == Difference::Refused && witness.old_object.is_none();
        // The object is validated once for each value around the invalid one.
        if !is_refused || !solver.spend(20 + kw::weight(&witness.object) / WEIGHED) {
            return None;
        }
        let mut object = witness.object.clone();
        schema.prepare(&mut object).ok()?;
        let errors = schema.validate_all(&object, None).errors;
        let error = errors.iter().find(|error| error.to_string() == witness.message)?;
        let mut unreadable = typed::unreadable(version.schema, &object, Duplicates::Allowed, version.release);
        let before =
            typed::unreadable(self.source.version.schema, &witness.object, Duplicates::Allowed, version.release);
        unreadable.retain(|found| !before.iter().any(|known| known.at == found.at && known.kind == found.kind));
        Some(ratchet::refused_updates(
            schema,
            version.schema,
            version.status_subresource,
            error,
            (&object, &object),
            &unreadable,
        ))
    }

    /// Whether the object can be created before its status is written.
    fn is_created(&self, solver: &Solver, object: &Value) -> bool {
        let mut created = object.clone();
        self.process(solver, &self.source, &mut created, None, false).outcome.is_accepted()
    }
}

/// How the field whose default is in question is filled in differently, in words, and where. `None` if no default is in
/// question, or if both sides fill it in alike.
fn default_in_question(
    route: &Route<'_>,
    [here, there]: [&Value; 2],
    [live, desired]: [&[Defaulted]; 2],
    known: &OnceCell<DefaultedFields>,
) -> Option<(String, Vec<Step>)> {
    let question = (route.length(), route.defaulted_field()?.into());
    let DefaultedFields(by_name) = known.get_or_init(|| DefaultedFields::new(live.iter().chain(desired)));
    let defaulted = |number: &usize| live.get(*number).or_else(|| desired.get(*number - live.len()));
    let mut defaulted = by_name.get(&question)?.iter().filter_map(defaulted);
    let known = defaulted.find(|known| {
        let [before, after] = [here, there].map(|object| value_at(object, &known.at));
        let is_same = || before.zip(after).map_or(before == after, |(before, after)| kw::same_value(before, after));
        route.leads_to_default(&known.at) == Some(true) && !is_same()
    })?;
    let words = match (value_at(here, &known.at), value_at(there, &known.at)) {
        (None, _) => "is filled in",
        (_, None) => "is no longer filled in",
        _ => "is filled in differently",
    };
    Some((format!("{} {words}", known.path), known.at.clone()))
}

/// The number of bytes of the value as JSON.
fn json_size(value: &Value) -> u64 {
    struct CountedBytes(u64);
    impl std::io::Write for CountedBytes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = CountedBytes(0);
    match serde_json::to_writer(&mut counted, value) {
        Ok(()) => counted.0,
        Err(_) => u64::MAX,
    }
}

fn value_at<'v>(object: &'v Value, at: &[Step]) -> Option<&'v Value> {
    at.iter().try_fold(object, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

/// Which default differs, in words, and where.
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

/// Why a candidate is not a witness.
pub(super) enum Unconfirmed {
    Limit,
    TooLarge,
    Refused,
    /// Probably refused by the source's rules; with the validation error.
    RefusedByRules(String),
    Undecided(String),
    Taken,
}

impl Unconfirmed {
    pub fn words(self) -> String {
        match self {
            Self::Limit => "the step limit was reached".to_owned(),
            Self::TooLarge => "the objects tried are too large to be stored".to_owned(),
            Self::Refused => "live refuses the objects tried".to_owned(),
            Self::RefusedByRules(error) => format!("live's rules refuse the objects tried: {error}"),
            Self::Undecided(reason) => reason,
            Self::Taken => "the objects tried are still accepted".to_owned(),
        }
    }
}
