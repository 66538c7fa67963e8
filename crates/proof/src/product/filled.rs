//! Restates a schema's constraints for objects before the target fills in its new defaults.
//!
//! The server validates an object after defaulting. If a field gets a new default, an unchanged constraint such as
//! `maxProperties` has a new meaning for objects without that field. So it is rewritten as a constraint on the object
//! before defaulting.

use serde_json::{Map, Value, json};

use crate::constraints::SharedSchema;
use crate::keywords as kw;
use crate::solve::Solver;

/// Up to this many new defaults, every combination of missing fields is considered.
const MAX_COMBINED: usize = 5;

/// The fields that the target defaults and the source does not, with their defaults.
fn added<'t>(source: Option<&Value>, target: &'t Value) -> Vec<(&'t str, Value)> {
    let fields = kw::properties(target).into_iter().flatten();
    let new = fields.filter(|(name, _)| {
        let known = source.and_then(|source| kw::property(source, name));
        known.is_none_or(|known| kw::default_of(known).is_none())
    });
    new.filter_map(|(name, field)| Some((name.as_str(), with_defaults(kw::default_of(field)?, field)))).collect()
}

/// A value with the defaults of its own fields.
fn with_defaults(value: &Value, schema: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut map = map.clone();
            for (name, field) in kw::properties(schema).into_iter().flatten() {
                let value = map.get(name).or_else(|| kw::default_of(field)).map(|value| with_defaults(value, field));
                value.map(|value| map.insert(name.clone(), value));
            }
            Value::Object(map)
        }
        Value::Array(items) => match kw::get(schema, "items") {
            Some(item) => items.iter().map(|value| with_defaults(value, item)).collect(),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

/// Rewrites `asked`, a schema for values after the target's defaulting, as a schema for values before it. None if the
/// new defaults make no difference to it.
pub(super) fn before_filling(solver: &Solver, asked: &Value, source: &Value, target: &Value) -> Option<Value> {
    let before = rewritten(solver, asked, Some(source), target);
    (before != *asked).then_some(before)
}

fn rewritten(solver: &Solver, asked: &Value, source: Option<&Value>, target: &Value) -> Value {
    let Some(keywords) = asked.as_object() else { return asked.clone() };
    let added = added(source, target);
    solver.spend(1 + added.len() as u64);
    let mut words = Map::new();
    let mut to_be_written: Vec<&str> = Vec::new();
    let mut also: Vec<Value> = Vec::new();
    for (keyword, value) in keywords {
        let value = match (keyword.as_str(), value) {
            ("required", Value::Array(names)) => {
                let is_left = |name: &&Value| !added.iter().any(|(filled, _)| *name == filled);
                names.iter().filter(is_left).cloned().collect()
            }
            ("properties", Value::Object(fields)) => {
                let below = |(name, asked): (&String, &Value)| {
                    let known = source.and_then(|source| kw::property(source, name).or_else(|| kw::additional(source)));
                    let field = kw::property(target, name).or_else(|| kw::additional(target));
                    (name.clone(), field.map_or_else(|| asked.clone(), |field| rewritten(solver, asked, known, field)))
                };
                for (name, default) in &added {
                    let refuses =
                        |asked: &Value| solver.takes(&SharedSchema::owned(asked.clone()), default) == Some(false);
                    if fields.get(*name).is_some_and(refuses) {
                        to_be_written.push(name);
                    }
                }
                Value::Object(fields.iter().map(below).collect())
            }
            ("items", asked) => match kw::get(target, "items") {
                Some(item) => rewritten(solver, asked, source.and_then(|source| kw::get(source, "items")), item),
                None => asked.clone(),
            },
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                branches.iter().map(|branch| rewritten(solver, branch, source, target)).collect()
            }
            ("not", asked) => rewritten(solver, asked, source, target),
            ("maxProperties" | "minProperties", _) if !added.is_empty() => {
                match kw::count(asked, keyword) {
                    Some(bound) if keyword == "maxProperties" => also.extend(at_most(bound, &added)),
                    Some(bound) => also.push(at_least(bound, &added)),
                    None => {}
                }
                continue;
            }
            ("enum", Value::Array(options)) if !added.is_empty() => with_less(options, &added),
            _ => value.clone(),
        };
        words.insert(keyword.clone(), value);
    }
    if !to_be_written.is_empty() {
        also.push(json!({"required": to_be_written}));
    }
    match words.get_mut("allOf").and_then(Value::as_array_mut) {
        Some(all) => all.extend(also),
        None if also.is_empty() => {}
        None => drop(words.insert("allOf".to_owned(), Value::Array(also))),
    }
    Value::Object(words)
}

/// Every subset of the fields; for many fields only the empty and the full set.
fn choices<'t>(added: &[(&'t str, Value)]) -> Vec<Vec<&'t str>> {
    let names: Vec<&str> = added.iter().map(|(name, _)| *name).collect();
    if names.len() > MAX_COMBINED {
        return vec![Vec::new(), names];
    }
    let chosen = |choice: usize| {
        let is_in = |(at, _): &(usize, &&str)| choice >> at & 1 == 1;
        names.iter().enumerate().filter(is_in).map(|(_, name)| *name).collect()
    };
    (0..1 << names.len()).map(chosen).collect()
}

/// `maxProperties: bound` before defaulting: each missing field counts as well.
fn at_most(bound: i64, added: &[(&str, Value)]) -> Vec<Value> {
    let of_choice = |missing: Vec<&str>| {
        let mut ways: Vec<Value> = missing.iter().map(|name| json!({"required": [name]})).collect();
        let left = bound - missing.len() as i64;
        ways.push(if left < 0 { json!({"not": {}}) } else { json!({"maxProperties": left}) });
        json!({"anyOf": ways})
    };
    choices(added).into_iter().map(of_choice).collect()
}

/// `minProperties: bound` before defaulting: each missing field counts as well.
fn at_least(bound: i64, added: &[(&str, Value)]) -> Value {
    let of_choice = |missing: Vec<&str>| {
        let ways: Vec<Value> = missing.iter().map(|name| json!({"required": [name]})).collect();
        let left = (bound - missing.len() as i64).max(0);
        if ways.is_empty() {
            json!({"minProperties": left})
        } else {
            json!({"minProperties": left, "not": {"anyOf": ways}})
        }
    };
    json!({"anyOf": choices(added).into_iter().map(of_choice).collect::<Vec<_>>()})
}

/// The objects that equal one of the options after defaulting.
fn with_less(options: &[Value], added: &[(&str, Value)]) -> Value {
    let mut found: Vec<Value> = Vec::new();
    for option in options {
        let Some(object) = option.as_object() else {
            found.push(option.clone());
            continue;
        };
        if added.iter().any(|(name, _)| !object.contains_key(*name)) {
            continue;
        }
        let is_filled =
            |name: &&str| added.iter().any(|(known, default)| known == name && object.get(*name) == Some(default));
        for missing in choices(added).into_iter().filter(|missing| missing.iter().all(is_filled)) {
            let mut object = object.clone();
            missing.into_iter().for_each(|name| drop(object.shift_remove(name)));
            found.push(Value::Object(object));
        }
    }
    Value::Array(found)
}
