//! From a value that may differ to a whole custom resource that does.
//!
//! What the solver finds is a candidate. It becomes a witness when the validator, which judges as the API server does,
//! has taken the whole object through both sides and the difference is there.

use serde_json::{Map, Value, json};

use super::facts::{Facts, Part};
use super::lockstep::{Doubt, Effect, Step, Trail};
use super::rules::Key;
use super::rules::repair::{Kept, Repairs};
use super::solve::{NoRules, Pin, Solver, is_meta};
use super::{Difference, Version, Witness, keywords as kw};
use crate::validation::{Processed, Schema};

/// Both sides, ready to judge whole objects.
pub struct Judges<'v> {
    pub source: Side<'v>,
    pub target: Side<'v>,
    pub repairs: Repairs,
}

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

/// What became of a candidate.
pub enum Tried {
    Confirmed(Box<Witness>),
    /// There is no whole object with this value in it.
    Unreachable,
    Open(String),
}

/// Attempts to make a witness smaller.
const SHRINKS: usize = 40;

impl Judges<'_> {
    /// Tries to make a witness of a doubt.
    pub fn settle<'s>(&self, solver: &Solver<'s>, doubt: &Doubt<'s>) -> Tried {
        let mut open = doubt.open.clone();
        for candidate in &doubt.values {
            let old = candidate.old.as_ref().map(|old| self.embed(solver, doubt.trail.as_deref(), old));
            let old = match old {
                None => None,
                Some(Ok(Some(old))) => Some(old),
                Some(_) => continue,
            };
            match self.try_value(solver, doubt, doubt.trail.as_deref(), &candidate.value, old) {
                Ok(Some(witness)) => return Tried::Confirmed(Box::new(witness)),
                Ok(None) => {}
                Err(why) => {
                    open.get_or_insert(why);
                }
            }
        }
        self.settle_from_above(solver, doubt, open)
    }

    /// The values found do not fit into a whole object, or what is around them differs: asks for the value together
    /// with what is around it, level by level up to the whole object.
    fn settle_from_above<'s>(&self, solver: &Solver<'s>, doubt: &Doubt<'s>, mut open: Option<String>) -> Tried {
        let mut wanted = doubt.refused.as_ref().map_or_else(|| json!({}), |refused| json!({"not": refused}));
        let mut level = doubt.trail.as_deref();
        // What cannot be with one key may be with another.
        let mut is_any_key = false;
        // No schema without a type refuses a null, so that a list is not asked for an item that is one.
        let is_null_item = doubt.values.iter().any(|candidate| candidate.value.is_null())
            && doubt.trail.as_ref().is_some_and(|trail| matches!(trail.step, Step::Item));
        while let Some(trail) = level {
            is_any_key |= matches!(trail.step, Step::Entry(_));
            wanted = match &trail.step {
                Step::Field(name) | Step::Entry(name) => json!({"required": [name], "properties": {name: wanted}}),
                Step::Item => json!({"minItems": 1, "not": {"items": {"not": wanted}}}),
            };
            let mut facts = Facts { null: false, ..trail.facts.clone() };
            facts.holds.push(Part::own(wanted.clone()));
            let answer = solver.solve(&facts, None, 2);
            // What is not known of the value itself stays unknown, whatever is around it.
            if answer.is_nothing() && is_null_item {
                open.get_or_insert_with(|| "no list around a null was found".to_owned());
                break;
            }
            if answer.is_nothing() {
                if !is_any_key || self.has_no_entries(solver, trail) {
                    return Tried::Unreachable;
                }
                open.get_or_insert_with(|| "other keys were not tried".to_owned());
            }
            // Any value will not do where it is not known what the target refuses.
            let is_telling = doubt.refused.is_some() || doubt.effect == Effect::Pruned;
            for value in answer.values.iter().filter(|_| is_telling) {
                match self.try_value(solver, doubt, trail.above.as_deref(), value, None) {
                    Ok(Some(witness)) => return Tried::Confirmed(Box::new(witness)),
                    Ok(None) => {}
                    Err(why) => {
                        open.get_or_insert(why);
                    }
                }
            }
            open = open.or(answer.open);
            level = trail.above.as_deref();
        }
        Tried::Open(open.unwrap_or_else(|| "no whole object that shows it was found".to_owned()))
    }

    /// Whether the object at the end of `trail` is always empty.
    fn has_no_entries<'s>(&self, solver: &Solver<'s>, trail: &Trail<'s>) -> bool {
        let mut facts = Facts { null: false, ..trail.facts.clone() };
        facts.holds.push(Part::own(json!({"minProperties": 1})));
        matches!(trail.step, Step::Entry(_)) && solver.solve(&facts, None, 1).is_nothing()
    }

    /// A witness with `value` at the end of `trail`. None: no object can have it there.
    fn try_value<'s>(
        &self,
        solver: &Solver<'s>,
        doubt: &Doubt<'s>,
        trail: Option<&Trail<'s>>,
        value: &Value,
        old: Option<Value>,
    ) -> Result<Option<Witness>, String> {
        let Some(object) = self.embed(solver, trail, value)? else { return Ok(None) };
        let mut witness = self.confirm_any(solver, doubt, object, old)?;
        // A refusal for something else says nothing of what is filled in.
        let field = doubt.path.rsplit('.').next().unwrap_or_default();
        let is_else = |witness: &Witness| {
            doubt.effect == Effect::Defaulted
                && witness.desired == Difference::Refused
                && !witness.message.contains(field)
        };
        if is_else(&witness)
            && let Some(object) = self.repaired(solver, doubt, &witness.object, &self.target)
        {
            witness = self.confirm_any(solver, doubt, object, None)?;
        }
        if is_else(&witness) {
            return Err(format!("the objects tried are refused for something else: {}", witness.message));
        }
        Ok(Some(self.shrunk(solver, witness)))
    }

    /// A whole object that has `value` at the doubt's place. None: the source takes none with this value.
    fn embed<'s>(
        &self,
        solver: &Solver<'s>,
        mut level: Option<&Trail<'s>>,
        value: &Value,
    ) -> Result<Option<Value>, String> {
        let mut value = value.clone();
        while let Some(trail) = level {
            let pin = match &trail.step {
                Step::Field(name) | Step::Entry(name) => Pin::Field(name, &value),
                Step::Item => Pin::Item(&value),
            };
            let answer = solver.solve(&trail.facts, Some(pin), 1);
            match (answer.values.into_iter().next(), answer.open) {
                (Some(around), _) => value = around,
                (None, None) => return Ok(None),
                (None, Some(why)) => return Err(why),
            }
            level = trail.above.as_deref();
        }
        Ok(Some(self.resource(value)))
    }

    /// The object as one would write it: kind, version and name first.
    fn resource(&self, value: Value) -> Value {
        let mut map = Map::new();
        map.insert("apiVersion".to_owned(), json!(self.source.version.api_version));
        map.insert("kind".to_owned(), json!(self.source.version.kind));
        let Value::Object(fields) = value else { return Value::Object(map) };
        let mut metadata = fields.get("metadata").cloned().unwrap_or_else(|| json!({}));
        if let Some(metadata) = metadata.as_object_mut()
            && !metadata.contains_key("name")
        {
            metadata.insert("name".to_owned(), json!("x"));
        }
        map.insert("metadata".to_owned(), metadata);
        map.extend(fields.into_iter().filter(|(key, _)| !is_meta(key)));
        Value::Object(map)
    }

    fn confirm_any(
        &self,
        solver: &Solver,
        doubt: &Doubt,
        object: Value,
        old: Option<Value>,
    ) -> Result<Witness, String> {
        let via_status = self.is_via_status(&object, doubt);
        let why = match self.confirm(solver, &object, old.as_ref(), via_status) {
            Ok(witness) => return Ok(witness),
            Err(why) => why,
        };
        // A rule of the source stands in the way: other fields around the value may satisfy it.
        if old.is_none()
            && matches!(why, Unconfirmed::RefusedByRules)
            && let Some(object) = self.repaired(solver, doubt, &object, &self.source)
        {
            return self.confirm(solver, &object, None, via_status).map_err(Unconfirmed::words);
        }
        Err(why.words())
    }

    /// The object with other fields around the value in doubt, so that no rule of `side` refuses it.
    fn repaired(&self, solver: &Solver, doubt: &Doubt, object: &Value, side: &Side) -> Option<Value> {
        let mut steps: Vec<&Step> = Vec::new();
        let mut level = doubt.trail.as_deref();
        while let Some(trail) = level {
            steps.push(&trail.step);
            level = trail.above.as_deref();
        }
        steps.reverse();
        let refused = doubt.refused.as_ref().map(|refused| Schema::compile_with(refused, &NoRules).ok());
        let field = doubt.path.rsplit('.').next().unwrap_or_default();
        let in_doubt = |value: &Value| match (&refused, doubt.effect) {
            (Some(Some(refused)), _) => refused.accepts_value(value) == Some(false),
            (Some(None), _) => false,
            (None, Effect::Pruned) => true,
            (None, Effect::Defaulted) => value.get(field).is_none(),
            (None, Effect::Refused) => true,
        };
        // What a rule refuses is kept to the letter; else it is enough that some value at the place is in doubt.
        let is_exact = doubt.refused.is_none() && doubt.effect == Effect::Refused;
        let keys = steps.iter().map(|step| match step {
            Step::Field(name) => Key::Field(name.clone()),
            Step::Entry(_) => Key::Value,
            Step::Item => Key::Item,
        });
        let pinned: Option<Vec<Key>> = is_exact.then(|| keys.collect());
        let kept = Kept { pinned: pinned.as_deref(), serves: &|object: &Value| any_at(object, &steps, &in_doubt) };
        self.repairs.run(side.version.schema, true, object, &kept, &|steps| solver.spend(steps))
    }

    /// Whether the value is in a status that only the status subresource writes.
    fn is_via_status(&self, object: &Value, doubt: &Doubt) -> bool {
        let both = self.source.version.status_subresource && self.target.version.status_subresource;
        both && object.get("status").is_some()
            && (doubt.path == "^.status" || doubt.path.starts_with("^.status.") || doubt.path.starts_with("^.status["))
    }

    fn process(&self, side: &Side, object: &mut Value, old: Option<&Value>, via_status: bool) -> Processed {
        let is_dropped = side.version.status_subresource && !via_status;
        let processed = side.schema.clone().with_status_subresource(is_dropped).process(object, old);
        if is_dropped && object.get("status").is_none() {
            // A status that was dropped is filled in again when the object is read.
            side.schema.default(object);
        }
        processed
    }

    /// Takes a candidate through both sides.
    fn confirm(
        &self,
        solver: &Solver,
        object: &Value,
        old: Option<&Value>,
        via_status: bool,
    ) -> Result<Witness, Unconfirmed> {
        if !solver.spend(if self.source.has_rules || self.target.has_rules { 200 } else { 20 }) {
            return Err(Unconfirmed::Limit);
        }
        if let Some(old) = old {
            // The object before is one that both sides take: else the refusal is of that one.
            let (mut before, mut after) = (old.clone(), old.clone());
            if !self.process(&self.source, &mut before, None, via_status).outcome.is_accepted()
                || !self.process(&self.target, &mut after, None, via_status).outcome.errors.is_empty()
            {
                return Err(Unconfirmed::Refused);
            }
        }
        let mut here = object.clone();
        let taken = self.process(&self.source, &mut here, old, via_status);
        if !taken.outcome.errors.is_empty() {
            return Err(if self.source.has_rules { Unconfirmed::RefusedByRules } else { Unconfirmed::Refused });
        }
        if let Some(undecided) = taken.outcome.undecided.first() {
            return Err(Unconfirmed::Undecided(undecided.reason.clone()));
        }
        if !taken.pruned.is_empty() || via_status && !self.is_created(object) {
            return Err(Unconfirmed::Refused);
        }
        // Where a null was dropped, the object was not what the source keeps.
        if !contains_all(&here, object) {
            return Err(Unconfirmed::Refused);
        }
        let mut there = object.clone();
        let judged = self.process(&self.target, &mut there, old, via_status);
        let (desired, message) = if let Some(error) = judged.outcome.errors.first() {
            (Difference::Refused, error.to_string())
        } else if let Some(undecided) = judged.outcome.undecided.first() {
            return Err(Unconfirmed::Undecided(undecided.reason.clone()));
        } else if let Some(pruned) = judged.pruned.first() {
            (Difference::Pruned, format!("{} is dropped", pruned.path))
        } else if !contains_all(&there, object) {
            (Difference::Pruned, "a value is dropped".to_owned())
        } else if !kw::same_value(&here, &there) {
            let places = |processed: &Processed| -> Vec<String> {
                processed.defaulted.iter().map(|defaulted| defaulted.path.clone()).collect()
            };
            let (before, after) = (places(&taken), places(&judged));
            let message = match (
                after.iter().find(|path| !before.contains(path)),
                before.iter().find(|path| !after.contains(path)),
            ) {
                (Some(path), _) => format!("{path} is filled in"),
                (None, Some(path)) => format!("{path} is no longer filled in"),
                (None, None) => format!("{} is filled in differently", after.first().map_or("a field", String::as_str)),
            };
            (Difference::Defaulted, message)
        } else {
            return Err(Unconfirmed::Taken);
        };
        Ok(Witness { object: object.clone(), old_object: old.cloned(), desired, message, via_status })
    }

    /// Whether the object can come to be at all before its status is written.
    fn is_created(&self, object: &Value) -> bool {
        let mut created = object.clone();
        self.process(&self.source, &mut created, None, false).outcome.is_accepted()
    }

    /// The witness without what it does not need.
    fn shrunk(&self, solver: &Solver, mut witness: Witness) -> Witness {
        if witness.old_object.is_some() {
            return witness;
        }
        let mut tries = SHRINKS;
        let mut at = 0;
        while tries > 0 {
            let mut places = Vec::new();
            removable(&witness.object, &mut String::new(), true, &mut places);
            let Some((around, key)) = places.get(at).cloned() else { break };
            let mut smaller = witness.object.clone();
            match smaller.pointer_mut(&around) {
                Some(Value::Object(map)) => {
                    map.shift_remove(&key);
                }
                Some(Value::Array(items)) => {
                    key.parse::<usize>().ok().filter(|at| *at < items.len()).map(|at| items.remove(at));
                }
                _ => {}
            }
            tries -= 1;
            match self.confirm(solver, &smaller, None, witness.via_status) {
                Ok(found) if found.desired == witness.desired && found.message == witness.message => witness = found,
                _ => at += 1,
            }
        }
        witness
    }
}

/// Whether a value at the end of the way is as wanted, whichever item or key it stands under.
fn any_at(value: &Value, way: &[&Step], wanted: &dyn Fn(&Value) -> bool) -> bool {
    let Some((step, way)) = way.split_first() else { return wanted(value) };
    match (step, value) {
        (Step::Field(name), Value::Object(map)) => map.get(name).is_some_and(|value| any_at(value, way, wanted)),
        (Step::Entry(_), Value::Object(map)) => map.values().any(|value| any_at(value, way, wanted)),
        (Step::Item, Value::Array(items)) => items.iter().any(|value| any_at(value, way, wanted)),
        _ => false,
    }
}

/// Why a candidate is no witness.
enum Unconfirmed {
    Limit,
    Refused,
    RefusedByRules,
    Undecided(String),
    Taken,
}

impl Unconfirmed {
    fn words(self) -> String {
        match self {
            Self::Limit => "the limit of steps is reached".to_owned(),
            Self::Refused => "the objects tried are refused today".to_owned(),
            Self::RefusedByRules => "the objects tried are refused by today's rules".to_owned(),
            Self::Undecided(reason) => reason,
            Self::Taken => "the objects tried pass".to_owned(),
        }
    }
}

/// Whether all that `written` says is in `stored` as well, which may have more.
fn contains_all(stored: &Value, written: &Value) -> bool {
    match (stored, written) {
        (Value::Object(stored), Value::Object(written)) => {
            written.iter().all(|(key, value)| stored.get(key).is_some_and(|kept| contains_all(kept, value)))
        }
        (Value::Array(stored), Value::Array(written)) => {
            stored.len() == written.len() && stored.iter().zip(written).all(|(a, b)| contains_all(a, b))
        }
        _ => kw::same_value(stored, written),
    }
}

/// The fields and items that might be left out, outer ones first.
fn removable(value: &Value, at: &mut String, is_root: bool, places: &mut Vec<(String, String)>) {
    let mut below = |key: &str, inner: &Value, places: &mut Vec<(String, String)>| {
        let length = at.len();
        at.push('/');
        at.push_str(&key.replace('~', "~0").replace('/', "~1"));
        removable(inner, at, false, places);
        at.truncate(length);
    };
    match value {
        Value::Object(map) => {
            let keys = || map.iter().filter(|(key, _)| !(is_root && is_meta(key)));
            let around = places.len();
            for (key, inner) in keys() {
                below(key, inner, places);
            }
            let own: Vec<_> = keys().map(|(key, _)| (at.clone(), key.clone())).collect();
            places.splice(around..around, own);
        }
        Value::Array(items) => {
            let around = places.len();
            for (index, inner) in items.iter().enumerate() {
                below(&index.to_string(), inner, places);
            }
            let own: Vec<_> = (0..items.len()).map(|index| (at.clone(), index.to_string())).collect();
            places.splice(around..around, own);
        }
        _ => {}
    }
}
