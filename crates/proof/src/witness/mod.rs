//! Turns a value that may differ into a whole custom resource that does.
//!
//! The values that the solver finds are candidates. A candidate becomes a witness when the validator, which validates
//! as the API server does, has run the whole object through both sides and confirmed the difference.

mod confirm;
mod excluded;
mod long_lists;
mod route;
mod shrink;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::constraints::{SharedSchema, ValueConstraints};
use super::product::{ExpectedEffect, Obligation, ValuePath, ValueStep};
use super::rules::repair::{RepairInvariant, Repairs};
use super::solve::{PinnedPart, Solver, TOO_LARGE};
use super::{Difference, ProofWitness, keywords as kw};
pub use confirm::ComparedVersion;
use confirm::{Confirmed, ObjectRun, Unconfirmed};
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::Schema;
use long_lists::LongLists;
use route::Route;

/// Both sides, compiled to validate whole objects.
pub struct CompiledSides<'v> {
    pub source: ComparedVersion<'v>,
    pub target: ComparedVersion<'v>,
    repairs: Repairs<'v>,
    /// The last objects that were validated.
    runs: RefCell<Vec<Rc<ObjectRun>>>,
    /// An object and what was left of it when it was made smaller.
    shrunk: RefCell<Option<(Value, Value)>>,
}

impl<'v> CompiledSides<'v> {
    pub fn new(source: ComparedVersion<'v>, target: ComparedVersion<'v>, patterns: &Patterns) -> Self {
        let repairs = Repairs::new(patterns, source.version.release);
        Self { source, target, repairs, runs: RefCell::default(), shrunk: RefCell::default() }
    }
}

/// Which sides must accept what surrounds a value.
#[derive(Clone, Copy)]
enum EnclosingAcceptance {
    /// Only the source.
    Taken,
    /// The target as well, ignoring rules: then it is the value that the target refuses.
    TakenByBoth,
}

/// The result of settling an obligation.
pub enum Settled {
    Confirmed(Box<ProofWitness>),
    /// No whole object can contain such a value.
    Unreachable,
    Open(String),
}

/// The maximum number of keys that are tried in addition to the representative one.
const KEYS: usize = 8;

impl<'v> CompiledSides<'v> {
    /// Tries to build a witness for an obligation.
    pub fn settle_obligation<'s>(&self, solver: &Solver<'s>, obligation: &Obligation<'s>) -> Settled {
        let mut open = obligation.open.clone();
        if solver.is_too_large_around(obligation.value_path.as_deref()) {
            return match self.is_excluded_by_rules(solver, obligation, &mut Vec::new()) {
                true => Settled::Unreachable,
                false => Settled::Open(open.unwrap_or_else(|| TOO_LARGE.to_owned())),
            };
        }
        for candidate in &obligation.values {
            let old = candidate
                .old
                .as_ref()
                .map(|old| self.embed(solver, obligation.value_path.as_deref(), old, EnclosingAcceptance::Taken));
            let old = match old {
                None => None,
                Some(Ok(Some(old))) => Some(old),
                Some(_) => continue,
            };
            match self.try_value(solver, obligation, obligation.value_path.as_deref(), &candidate.value, old) {
                Ok(Some(witness)) => return Settled::Confirmed(Box::new(witness)),
                Ok(None) => {}
                Err(why) => {
                    open.get_or_insert(why);
                }
            }
            if let Some(old) = &candidate.old
                && let Some(witness) = self.try_update(solver, obligation, old, &candidate.value)
            {
                return Settled::Confirmed(Box::new(witness));
            }
        }
        self.settle_from_above(solver, obligation, open)
    }

    /// Called if no whole object contains the values found, or if such objects show no difference: solves for the value
    /// together with what surrounds it, level by level up to the whole object.
    fn settle_from_above<'s>(
        &self,
        solver: &Solver<'s>,
        obligation: &Obligation<'s>,
        mut open: Option<String>,
    ) -> Settled {
        let mut wanted = obligation.refused.as_ref().map_or_else(|| json!({}), |refused| json!({"not": refused}));
        let mut level = obligation.value_path.as_deref();
        // What is impossible with some keys may be possible with others, and metadata has fields that no schema has to
        // name.
        let mut are_all_keys = !obligation.value_path.as_deref().is_some_and(leads_to_metadata);
        // A schema without a type cannot refuse a null, so the search cannot require a list with a null item.
        let is_null_item = obligation.values.iter().any(|candidate| candidate.value.is_null())
            && obligation.value_path.as_ref().is_some_and(|value_path| matches!(value_path.step, ValueStep::Item));
        while let Some(value_path) = level {
            let below = wanted;
            // A null satisfies everything except the last constraint. A `type` would exclude it too, but would be taken
            // for the structure.
            let no_null = json!([{"not": {"enum": [null]}}]);
            let around = |name: &str| json!({"required": [name], "properties": {name: below}, "allOf": no_null});
            wanted = match &value_path.step {
                ValueStep::Field(name) => around(name),
                // One key represents all keys that nothing mentions.
                ValueStep::Entry(name) => {
                    let named = named(value_path);
                    are_all_keys &= named.len() <= KEYS && !value_path.above.as_deref().is_some_and(leads_to_metadata);
                    let keys = named.iter().take(KEYS).map(String::as_str).filter(|key| key != name);
                    let mut ways: Vec<Value> = [name.as_str()].into_iter().chain(keys).map(around).collect();
                    if ways.len() == 1 { ways.swap_remove(0) } else { json!({ "anyOf": ways }) }
                }
                ValueStep::Item => json!({"minItems": 1, "not": {"items": {"not": below}}, "allOf": no_null}),
            };
            let asked = |wanted: &Value| {
                let mut constraints =
                    ValueConstraints { null: false, ..ValueConstraints::clone(&value_path.constraints) };
                constraints.holds.push(SharedSchema::owned(wanted.clone()));
                solver.solve(&constraints, None, 2)
            };
            let answer = asked(&wanted);
            // What is unknown about the value itself stays unknown, whatever surrounds it.
            if answer.is_nothing() && is_null_item {
                open.get_or_insert_with(|| "no list with a null item was found".to_owned());
                break;
            }
            if answer.is_nothing() {
                if are_all_keys {
                    return Settled::Unreachable;
                }
                open.get_or_insert_with(|| "other keys were not tried".to_owned());
            }
            // If it is unknown what the target refuses, an arbitrary value shows nothing.
            let is_telling = obligation.refused.is_some() || obligation.effect == ExpectedEffect::Pruned;
            for value in answer.values.iter().filter(|_| is_telling) {
                match self.try_value(solver, obligation, value_path.above.as_deref(), value, None) {
                    Ok(Some(witness)) => return Settled::Confirmed(Box::new(witness)),
                    Ok(None) => {}
                    Err(why) => {
                        open.get_or_insert(why);
                    }
                }
            }
            open = open.or(answer.open);
            level = value_path.above.as_deref();
        }
        let mut passing = Vec::new();
        if self.is_excluded_by_rules(solver, obligation, &mut passing) {
            return Settled::Unreachable;
        }
        // The values found before fail rules; these do not.
        for (value_path, value) in passing.iter().filter(|_| obligation.refused.is_some()) {
            if let Ok(Some(witness)) = self.try_value(solver, obligation, *value_path, value, None) {
                return Settled::Confirmed(Box::new(witness));
            }
        }
        Settled::Open(open.unwrap_or_else(|| "no whole object was found that shows it".to_owned()))
    }

    /// A witness with `value` at the end of `value_path`. None: no object can have the value there.
    fn try_value<'s>(
        &self,
        solver: &Solver<'s>,
        obligation: &Obligation<'s>,
        value_path: Option<&ValuePath<'s>>,
        value: &Value,
        old: Option<Value>,
    ) -> Result<Option<ProofWitness>, String> {
        let Some(object) = self.embed(solver, value_path, value, EnclosingAcceptance::Taken)? else { return Ok(None) };
        let route = Route::for_obligation(obligation);
        let is_update = old.is_some();
        let mut found = self.confirm_any(solver, obligation, &route, object, old)?;
        // A refusal for another reason shows nothing about this node.
        let field = obligation.path.rsplit('.').next().unwrap_or_default();
        let is_refused = |found: &Confirmed| found.witness.desired == Difference::Refused;
        let is_else = |found: &Confirmed| match obligation.effect {
            ExpectedEffect::Refused => !found.is_there || found.witness.desired == Difference::Pruned,
            ExpectedEffect::Defaulted => {
                is_refused(found) && found.at.as_ref().is_some_and(|at| !route.leads_through(at, field))
            }
            ExpectedEffect::Pruned => is_refused(found) && !found.is_there,
        };
        if is_else(&found)
            && !is_update
            && let Ok(Some(object)) = self.embed(solver, value_path, value, EnclosingAcceptance::TakenByBoth)
            && let Ok(other) = self.confirm_any(solver, obligation, &route, object, None)
        {
            found = other;
        }
        if is_else(&found)
            && let Some(object) = self.repaired(solver, obligation, &route, &found.witness.object, &self.target)
        {
            found = self.confirm_any(solver, obligation, &route, object, None)?;
        }
        // If every object is refused elsewhere, that refusal still serves as a witness. The default is different: it is
        // read from a stored object, whether or not the object could still be written.
        if is_else(&found) && obligation.effect == ExpectedEffect::Defaulted {
            let stored = self.confirm_read(solver, &found, &route);
            return stored.map(Some).ok_or_else(|| "the objects tried are refused for another reason".to_owned());
        }
        // A different default does not show that anything is refused or dropped.
        if found.witness.desired == Difference::Defaulted && obligation.effect != ExpectedEffect::Defaulted {
            return Err("the objects tried only get different defaults".to_owned());
        }
        let is_else = is_else(&found);
        let mut witness = self.shrink(solver, found, &route);
        // The words about another node say nothing about this one.
        if is_else && obligation.effect == ExpectedEffect::Refused {
            witness.message.clone_from(&obligation.reason);
            return Ok(Some(ProofWitness {
                is_lost_to_another_change: witness.desired == Difference::Pruned,
                ..witness
            }));
        }
        Ok(Some(witness))
    }

    /// A witness that is an update: it changes only the value at the end of the obligation's path, in an object that
    /// both sides accept.
    fn try_update<'s>(
        &self,
        solver: &Solver<'s>,
        obligation: &Obligation<'s>,
        old: &Value,
        value: &Value,
    ) -> Option<ProofWitness> {
        let route = Route::for_obligation(obligation);
        for around in [EnclosingAcceptance::TakenByBoth, EnclosingAcceptance::Taken] {
            let Ok(Some(mut before)) = self.embed(solver, obligation.value_path.as_deref(), old, around) else {
                continue;
            };
            // Repairs for one side's rules can break the other side's, so both are repaired in turn.
            for side in [None, Some(&self.source), Some(&self.target), Some(&self.source)] {
                if let Some(side) = side {
                    match self.repaired(solver, obligation, &route, &before, side) {
                        Some(repaired) => before = repaired,
                        None => continue,
                    }
                }
                let Some(after) = route.replaced(&before, old, value) else { break };
                let via_status = self.is_via_status(&after, obligation);
                if let Ok(found) = self.confirm(solver, &after, Some(&before), via_status, &route)
                    && found.witness.desired == Difference::Refused
                    && found.is_there
                {
                    return Some(self.shrink(solver, found, &route));
                }
            }
        }
        None
    }

    /// A whole object that has `value` at the end of the path `level`. None: the source accepts no such object.
    fn embed<'s>(
        &self,
        solver: &Solver<'s>,
        mut level: Option<&ValuePath<'s>>,
        value: &Value,
        around: EnclosingAcceptance,
    ) -> Result<Option<Value>, String> {
        let mut value = value.clone();
        while let Some(value_path) = level {
            let pin = match &value_path.step {
                ValueStep::Field(name) | ValueStep::Entry(name) => PinnedPart::Field(name, &value),
                ValueStep::Item => PinnedPart::Item(&value),
            };
            let mut answer = solver.solve(&value_path.constraints, Some(pin), 1);
            if let (EnclosingAcceptance::TakenByBoth, Some(taken)) = (around, answer.values.first()) {
                let asked = target_constraints(value_path, taken);
                if !solver.spend(kw::size(&asked) as u64) {
                    return Err("the step limit was reached".to_owned());
                }
                let mut constraints = ValueConstraints::clone(&value_path.constraints);
                constraints.holds.push(SharedSchema::owned(asked));
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

    /// The object as a user would write it: version, kind and name first.
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
        map.extend(fields.into_iter().filter(|(key, _)| !kw::is_meta(key)));
        Value::Object(map)
    }

    fn confirm_any(
        &self,
        solver: &Solver,
        obligation: &Obligation,
        route: &Route<'_>,
        object: Value,
        old: Option<Value>,
    ) -> Result<Confirmed, String> {
        let via_status = self.is_via_status(&object, obligation);
        let why = match self.confirm(solver, &object, old.as_ref(), via_status, route) {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        // If a rule of the source refuses the object, other values around the candidate may satisfy the rule.
        if old.is_some() || !matches!(why, Unconfirmed::RefusedByRules(_)) {
            return Err(why.words());
        }
        if let Some(repaired) = self.repaired(solver, obligation, route, &object, &self.source) {
            return self.confirm(solver, &repaired, None, via_status, route).map_err(Unconfirmed::words);
        }
        // Rules about the items of a long list are repaired for one item.
        let long = LongLists::shorten(object);
        let anything = RepairInvariant { pinned: None, serves: &|_: &Value| true };
        if !long.is_empty()
            && let Some(short) =
                self.repairs.run(self.source.version.schema, true, &long.short, &anything, &|steps| solver.spend(steps))
        {
            let whole = long.lengthened(short);
            return self.confirm(solver, &whole, None, via_status, route).map_err(Unconfirmed::words);
        }
        Err(why.words())
    }

    /// The object with changes around the value that make it pass all rules of `side`.
    fn repaired(
        &self,
        solver: &Solver,
        obligation: &Obligation,
        route: &Route<'_>,
        object: &Value,
        side: &ComparedVersion<'v>,
    ) -> Option<Value> {
        let refused =
            obligation.refused.as_ref().map(|refused| Schema::compile_structure(refused, solver.patterns()).ok());
        let field = obligation.path.rsplit('.').next().unwrap_or_default();
        let still_differs = |value: &Value| match (&refused, obligation.effect) {
            (Some(Some(refused)), _) => refused.accepts_value(value) == Some(false),
            (Some(None), _) => false,
            (None, ExpectedEffect::Pruned) => true,
            (None, ExpectedEffect::Defaulted) => value.get(field).is_none(),
            (None, ExpectedEffect::Refused) => true,
        };
        // A value that a rule refuses is kept exactly; otherwise it is enough that some value at this place is refused.
        let is_exact = obligation.refused.is_none() && obligation.effect == ExpectedEffect::Refused;
        let pinned = is_exact.then(|| route.keys());
        let kept = RepairInvariant {
            pinned: pinned.as_deref(),
            serves: &|object: &Value| route.ends_at(object, &still_differs),
        };
        self.repairs.run(side.version.schema, true, object, &kept, &|steps| solver.spend(steps))
    }

    /// Whether the value is in a status that the source lets nobody write except through the status subresource. The
    /// target may have no such subresource: then it treats the stored status as a part of the object.
    fn is_via_status(&self, object: &Value, obligation: &Obligation) -> bool {
        self.source.version.status_subresource
            && object.get("status").is_some()
            && (obligation.path == "^.status"
                || obligation.path.starts_with("^.status.")
                || obligation.path.starts_with("^.status["))
    }
}

/// The target's constraints on a value on the path to a node, except on what the path leads to. Only fields that are
/// present or required are included.
fn target_constraints(around: &ValuePath<'_>, value: &Value) -> Value {
    let target = around.target;
    let pinned = match &around.step {
        ValueStep::Field(name) | ValueStep::Entry(name) => Some(name.as_str()),
        ValueStep::Item => None,
    };
    // Every resource has a kind, a version and metadata.
    let is_given = |name: &str| (around.constraints.is_resource || kw::embedded(target)) && kw::is_meta(name);
    let required: Vec<&str> = kw::names(target, "required").filter(|name| !is_given(name)).collect();
    let there = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let names = there.chain(required.iter().copied()).filter(|name| Some(*name) != pinned && !is_given(name));
    let names: BTreeSet<&str> = names.collect();
    let properties: Map<String, Value> = names
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), without_structure(kw::property(target, name)?))))
        .collect();
    let own = target.as_object().into_iter().flatten();
    let own = own.filter(|(keyword, _)| !matches!(keyword.as_str(), "properties" | "additionalProperties" | "items"));
    let mut asked = without_structure(&own.map(|(keyword, value)| (keyword.clone(), value.clone())).collect());
    asked["required"] = json!(required);
    asked["properties"] = Value::Object(properties);
    asked
}

/// The schema as a constraint on a value whose structure another schema determines: without the keywords that would
/// make it a structure itself.
fn without_structure(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let is_kept = |keyword: &str, value: &Value| match keyword {
        "type" => !matches!(value.as_str(), Some("object" | "array")),
        "description" | "default" => false,
        keyword => !keyword.starts_with("x-kubernetes-"),
    };
    let kept = schema.iter().filter(|(keyword, value)| is_kept(keyword, value)).map(|(keyword, value)| {
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                fields.iter().map(|(name, field)| (name.clone(), without_structure(field))).collect()
            }
            ("items" | "additionalProperties", value) => without_structure(value),
            _ => value.clone(),
        };
        (keyword.clone(), value)
    });
    kept.collect()
}

/// Whether the last step of `value_path` leads to the metadata of a resource.
fn leads_to_metadata(value_path: &ValuePath) -> bool {
    let is_resource = value_path.constraints.is_resource
        || value_path.constraints.holds.first().is_some_and(|part| kw::embedded(part));
    is_resource && matches!(&value_path.step, ValueStep::Field(name) if name == "metadata")
}

/// The keys that the constraints on an object, or on a value around it, mention, except the fields of its structure.
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
    // The names below a structure are collected at their own level.
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
