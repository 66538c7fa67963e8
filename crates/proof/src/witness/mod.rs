//! From a value that may differ to a whole custom resource that does.
//!
//! What the solver finds is a candidate. It becomes a witness when the validator, which judges as the API server does,
//! has taken the whole object through both sides and the difference is there.

mod judge;
mod route;
mod shrink;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::constraints::{Constraints, Part};
use super::product::{Effect, Obligation, Step, ValuePath};
use super::rules::repair::{Kept, Repairs};
use super::solve::{Pin, Solver, is_meta};
use super::{Difference, Witness, keywords as kw};
use gantry_schema::Schema;
pub use judge::Side;
use judge::{Confirmed, Unconfirmed};
use route::Route;

/// Both sides, ready to judge whole objects.
pub struct Judges<'v> {
    pub source: Side<'v>,
    pub target: Side<'v>,
    pub repairs: Repairs<'v>,
}

/// Who has to take what is around a value.
#[derive(Clone, Copy)]
enum Around {
    /// The source.
    Taken,
    /// The target, too, rules apart: then what it refuses is the value.
    TakenByBoth,
}

/// What became of a candidate.
pub enum Tried {
    Confirmed(Box<Witness>),
    /// There is no whole object with this value in it.
    Unreachable,
    Open(String),
}

/// Keys that are tried beside the one that represents all others.
const KEYS: usize = 8;

impl<'v> Judges<'v> {
    /// Tries to make a witness of an obligation.
    pub fn settle<'s>(&self, solver: &Solver<'s>, obligation: &Obligation<'s>) -> Tried {
        let mut open = obligation.open.clone();
        for candidate in &obligation.values {
            let old = candidate
                .old
                .as_ref()
                .map(|old| self.embed(solver, obligation.value_path.as_deref(), old, Around::Taken));
            let old = match old {
                None => None,
                Some(Ok(Some(old))) => Some(old),
                Some(_) => continue,
            };
            match self.try_value(solver, obligation, obligation.value_path.as_deref(), &candidate.value, old) {
                Ok(Some(witness)) => return Tried::Confirmed(Box::new(witness)),
                Ok(None) => {}
                Err(why) => {
                    open.get_or_insert(why);
                }
            }
            if let Some(old) = &candidate.old
                && let Some(witness) = self.try_update(solver, obligation, old, &candidate.value)
            {
                return Tried::Confirmed(Box::new(witness));
            }
        }
        self.settle_from_above(solver, obligation, open)
    }

    /// The values found do not fit into a whole object, or what is around them differs: asks for the value together
    /// with what is around it, level by level up to the whole object.
    fn settle_from_above<'s>(
        &self,
        solver: &Solver<'s>,
        obligation: &Obligation<'s>,
        mut open: Option<String>,
    ) -> Tried {
        let mut wanted = obligation.refused.as_ref().map_or_else(|| json!({}), |refused| json!({"not": refused}));
        let mut level = obligation.value_path.as_deref();
        // What cannot be with some keys may be with others, and metadata has fields that no schema needs to name.
        let mut are_all_keys = !obligation.value_path.as_deref().is_some_and(leads_to_metadata);
        // No schema without a type refuses a null, so that a list is not asked for an item that is one.
        let is_null_item = obligation.values.iter().any(|candidate| candidate.value.is_null())
            && obligation.value_path.as_ref().is_some_and(|value_path| matches!(value_path.step, Step::Item));
        while let Some(value_path) = level {
            let below = wanted;
            // A null would do for all but the last. A type would say so, and be taken for the structure.
            let no_null = json!([{"not": {"enum": [null]}}]);
            let around = |name: &str| json!({"required": [name], "properties": {name: below}, "allOf": no_null});
            wanted = match &value_path.step {
                Step::Field(name) => around(name),
                // One key represents all that nothing mentions.
                Step::Entry(name) => {
                    let named = named(value_path);
                    are_all_keys &= named.len() <= KEYS && !value_path.above.as_deref().is_some_and(leads_to_metadata);
                    let keys = named.iter().take(KEYS).map(String::as_str).filter(|key| key != name);
                    let mut ways: Vec<Value> = [name.as_str()].into_iter().chain(keys).map(around).collect();
                    if ways.len() == 1 { ways.swap_remove(0) } else { json!({ "anyOf": ways }) }
                }
                Step::Item => json!({"minItems": 1, "not": {"items": {"not": below}}, "allOf": no_null}),
            };
            let asked = |wanted: &Value| {
                let mut constraints = Constraints { null: false, ..Constraints::clone(&value_path.constraints) };
                constraints.holds.push(Part::own(wanted.clone()));
                solver.solve(&constraints, None, 2)
            };
            let answer = asked(&wanted);
            // What is not known of the value itself stays unknown, whatever is around it.
            if answer.is_nothing() && is_null_item {
                open.get_or_insert_with(|| "no list around a null was found".to_owned());
                break;
            }
            if answer.is_nothing() {
                if are_all_keys {
                    return Tried::Unreachable;
                }
                open.get_or_insert_with(|| "other keys were not tried".to_owned());
            }
            // Any value will not do where it is not known what the target refuses.
            let is_telling = obligation.refused.is_some() || obligation.effect == Effect::Pruned;
            for value in answer.values.iter().filter(|_| is_telling) {
                match self.try_value(solver, obligation, value_path.above.as_deref(), value, None) {
                    Ok(Some(witness)) => return Tried::Confirmed(Box::new(witness)),
                    Ok(None) => {}
                    Err(why) => {
                        open.get_or_insert(why);
                    }
                }
            }
            open = open.or(answer.open);
            level = value_path.above.as_deref();
        }
        Tried::Open(open.unwrap_or_else(|| "no whole object that shows it was found".to_owned()))
    }

    /// A witness with `value` at the end of `value_path`. None: no object can have it there.
    fn try_value<'s>(
        &self,
        solver: &Solver<'s>,
        obligation: &Obligation<'s>,
        value_path: Option<&ValuePath<'s>>,
        value: &Value,
        old: Option<Value>,
    ) -> Result<Option<Witness>, String> {
        let Some(object) = self.embed(solver, value_path, value, Around::Taken)? else { return Ok(None) };
        let way = Route::of(obligation.value_path.as_deref());
        let is_update = old.is_some();
        let mut found = self.confirm_any(solver, obligation, &way, object, old)?;
        // A refusal for something else says nothing of this node.
        let field = obligation.path.rsplit('.').next().unwrap_or_default();
        let is_else = |found: &Confirmed| {
            found.witness.desired == Difference::Refused
                && match obligation.effect {
                    Effect::Refused => !found.is_there,
                    Effect::Defaulted => found.at.as_ref().is_some_and(|at| !way.leads_through(at, field)),
                    Effect::Pruned => !found.is_there,
                }
        };
        if is_else(&found)
            && !is_update
            && let Ok(Some(object)) = self.embed(solver, value_path, value, Around::TakenByBoth)
            && let Ok(other) = self.confirm_any(solver, obligation, &way, object, None)
        {
            found = other;
        }
        if is_else(&found)
            && let Some(object) = self.repaired(solver, obligation, &way, &found.witness.object, &self.target)
        {
            found = self.confirm_any(solver, obligation, &way, object, None)?;
        }
        // Where the target refuses every object with something that the source asks for, no other witness can be had.
        if is_else(&found) && obligation.effect == Effect::Defaulted {
            return Err(format!("the objects tried are refused for something else: {}", found.witness.message));
        }
        // That something else is filled in does not show that anything is refused or dropped.
        if found.witness.desired == Difference::Defaulted && obligation.effect != Effect::Defaulted {
            return Err("in the objects tried only other values are filled in".to_owned());
        }
        Ok(Some(self.shrunk(solver, found, &way)))
    }

    /// A witness that is an update of nothing but the value at the end of the obligation's way, in an object that both sides
    /// take.
    fn try_update<'s>(
        &self,
        solver: &Solver<'s>,
        obligation: &Obligation<'s>,
        old: &Value,
        value: &Value,
    ) -> Option<Witness> {
        let way = Route::of(obligation.value_path.as_deref());
        for around in [Around::TakenByBoth, Around::Taken] {
            let Ok(Some(mut before)) = self.embed(solver, obligation.value_path.as_deref(), old, around) else {
                continue;
            };
            // What one side's rules ask for, the other side's may undo.
            for side in [None, Some(&self.source), Some(&self.target), Some(&self.source)] {
                if let Some(side) = side {
                    match self.repaired(solver, obligation, &way, &before, side) {
                        Some(repaired) => before = repaired,
                        None => continue,
                    }
                }
                let Some(after) = way.replaced(&before, old, value) else { break };
                let via_status = self.is_via_status(&after, obligation);
                if let Ok(found) = self.confirm(solver, &after, Some(&before), via_status, &way)
                    && found.witness.desired == Difference::Refused
                    && found.is_there
                {
                    return Some(self.shrunk(solver, found, &way));
                }
            }
        }
        None
    }

    /// A whole object that has `value` at the obligation's place. None: the source takes none with this value.
    fn embed<'s>(
        &self,
        solver: &Solver<'s>,
        mut level: Option<&ValuePath<'s>>,
        value: &Value,
        around: Around,
    ) -> Result<Option<Value>, String> {
        let mut value = value.clone();
        while let Some(value_path) = level {
            let pin = match &value_path.step {
                Step::Field(name) | Step::Entry(name) => Pin::Field(name, &value),
                Step::Item => Pin::Item(&value),
            };
            let mut answer = solver.solve(&value_path.constraints, Some(pin), 1);
            if let (Around::TakenByBoth, Some(taken)) = (around, answer.values.first()) {
                let asked = asked_beside(value_path, taken);
                if !solver.spend(kw::size(&asked) as u64) {
                    return Err("the limit of steps is reached".to_owned());
                }
                let mut constraints = Constraints::clone(&value_path.constraints);
                constraints.holds.push(Part::own(asked));
                answer = solver.solve(&constraints, Some(pin), 1);
            }
            match (answer.values.into_iter().next(), answer.open) {
                (Some(around), _) => value = around,
                (None, None) => return Ok(None),
                (None, Some(why)) => return Err(why),
            }
            level = value_path.above.as_deref();
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
        obligation: &Obligation,
        way: &Route<'_>,
        object: Value,
        old: Option<Value>,
    ) -> Result<Confirmed, String> {
        let via_status = self.is_via_status(&object, obligation);
        let why = match self.confirm(solver, &object, old.as_ref(), via_status, way) {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        // A rule of the source refuses it: other fields around the value may satisfy it.
        if old.is_none()
            && matches!(why, Unconfirmed::RefusedByRules(_))
            && let Some(object) = self.repaired(solver, obligation, way, &object, &self.source)
        {
            return self.confirm(solver, &object, None, via_status, way).map_err(Unconfirmed::words);
        }
        Err(why.words())
    }

    /// The object with other fields around the value, so that no rule of `side` refuses it.
    fn repaired(
        &self,
        solver: &Solver,
        obligation: &Obligation,
        way: &Route<'_>,
        object: &Value,
        side: &Side<'v>,
    ) -> Option<Value> {
        let refused =
            obligation.refused.as_ref().map(|refused| Schema::compile_structure(refused, solver.patterns()).ok());
        let field = obligation.path.rsplit('.').next().unwrap_or_default();
        let in_doubt = |value: &Value| match (&refused, obligation.effect) {
            (Some(Some(refused)), _) => refused.accepts_value(value) == Some(false),
            (Some(None), _) => false,
            (None, Effect::Pruned) => true,
            (None, Effect::Defaulted) => value.get(field).is_none(),
            (None, Effect::Refused) => true,
        };
        // What a rule refuses is kept to the letter; else it is enough that some value at the place is refused.
        let is_exact = obligation.refused.is_none() && obligation.effect == Effect::Refused;
        let pinned = is_exact.then(|| way.keys());
        let kept = Kept { pinned: pinned.as_deref(), serves: &|object: &Value| way.ends_at(object, &in_doubt) };
        self.repairs.run(side.version.schema, true, object, &kept, &|steps| solver.spend(steps))
    }

    /// Whether the value is in a status that only the status subresource writes.
    fn is_via_status(&self, object: &Value, obligation: &Obligation) -> bool {
        let both = self.source.version.status_subresource && self.target.version.status_subresource;
        both && object.get("status").is_some()
            && (obligation.path == "^.status"
                || obligation.path.starts_with("^.status.")
                || obligation.path.starts_with("^.status["))
    }
}

/// What the target asks of a value on the way to a node but for what is on that way: of the fields that are there or
/// have to be.
fn asked_beside(around: &ValuePath<'_>, value: &Value) -> Value {
    let target = around.target;
    let pinned = match &around.step {
        Step::Field(name) | Step::Entry(name) => Some(name.as_str()),
        Step::Item => None,
    };
    // Every resource has its kind, version and metadata.
    let is_given = |name: &str| (around.constraints.is_resource || kw::embedded(target)) && is_meta(name);
    let required: Vec<&str> = kw::names(target, "required").filter(|name| !is_given(name)).collect();
    let there = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let names = there.chain(required.iter().copied()).filter(|name| Some(*name) != pinned && !is_given(name));
    let names: BTreeSet<&str> = names.collect();
    let properties: Map<String, Value> =
        names.into_iter().filter_map(|name| Some((name.to_owned(), demands(kw::property(target, name)?)))).collect();
    let own = target.as_object().into_iter().flatten();
    let own = own.filter(|(keyword, _)| !matches!(keyword.as_str(), "properties" | "additionalProperties" | "items"));
    let mut asked = demands(&own.map(|(keyword, value)| (keyword.clone(), value.clone())).collect());
    asked["required"] = json!(required);
    asked["properties"] = Value::Object(properties);
    asked
}

/// The schema as what is asked of a value whose structure another one gives: without what makes it a structure itself.
fn demands(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let is_kept = |keyword: &str, value: &Value| match keyword {
        "type" => !matches!(value.as_str(), Some("object" | "array")),
        "description" | "default" => false,
        keyword => !keyword.starts_with("x-kubernetes-"),
    };
    let kept = schema.iter().filter(|(keyword, value)| is_kept(keyword, value)).map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), demands(field))).collect()
            }
            ("items" | "additionalProperties", value) => demands(value),
            _ => value.clone(),
        };
        (keyword.clone(), value)
    });
    kept.collect()
}

/// Whether the last step of `value_path` is the one to the metadata of a resource.
fn leads_to_metadata(value_path: &ValuePath) -> bool {
    let is_resource = value_path.constraints.is_resource
        || value_path.constraints.holds.first().is_some_and(|part| kw::embedded(part));
    is_resource && matches!(&value_path.step, Step::Field(name) if name == "metadata")
}

/// The keys that an object may have to have for what is known of it, or of what is around it; without the fields of its
/// structure.
fn named(value_path: &ValuePath) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut level = Some(value_path);
    while let Some(at) = level {
        at.constraints.holds.iter().enumerate().for_each(|(n, part)| names_in_schema(part, n == 0, &mut names));
        at.constraints.fails.iter().for_each(|part| names_in_schema(part, false, &mut names));
        level = at.above.as_deref();
    }
    if let Some(structure) = value_path.constraints.holds.first() {
        names.retain(|name| kw::property(structure, name).is_none());
    }
    names
}

fn names_in_schema(schema: &Value, is_structure: bool, names: &mut BTreeSet<String>) {
    names.extend(kw::names(schema, "required").map(str::to_owned));
    kw::list(schema, "enum").iter().for_each(|option| names_in_value(option, names));
    for keyword in ["allOf", "anyOf", "oneOf"] {
        kw::list(schema, keyword).iter().for_each(|branch| names_in_schema(branch, false, names));
    }
    if let Some(not) = kw::get(schema, "not") {
        names_in_schema(not, false, names);
    }
    // What is below a structure is known at its own level.
    if !is_structure {
        for (name, field) in kw::properties(schema).into_iter().flatten() {
            names.insert(name.clone());
            names_in_schema(field, false, names);
        }
        for inner in [kw::get(schema, "items"), kw::additional(schema)].into_iter().flatten() {
            names_in_schema(inner, false, names);
        }
    }
}

fn names_in_value(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (name, field) in map {
                names.insert(name.clone());
                names_in_value(field, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names_in_value(item, names)),
        _ => {}
    }
}
