//! What a version does to objects that are stored at another version, where no webhook converts.
//!
//! The server reads an object at the version at which it is stored: it fills in the defaults of that version, drops what
//! the version of the request does not describe, and fills in the defaults of that one when the object is written back.
//! So a default of the storage version appears at every other version, a field that a version gains may already have
//! values, and what only the version of the request fills in is new in every update.

use serde_json::{Map, Value, json};

/// The fields that every resource has.
const OF_RESOURCES: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// Up to this many gained fields, every combination of present fields is considered, and beyond it no bound.
const MAX_COMBINED: usize = 4;

/// The schema of a version as objects that are read from storage meet it: with the defaults of the storage version.
pub(super) fn with_stored_defaults(version: &Value, storage: &Value) -> Value {
    let mut version = version.clone();
    overlay(&mut version, storage, true);
    version
}

fn overlay(node: &mut Value, storage: &Value, is_root: bool) {
    for keyword in ["items", "additionalProperties"] {
        if let (Some(below), Some(stored)) = (node.get_mut(keyword), storage.get(keyword)) {
            overlay(below, stored, false);
        }
    }
    let fields = node.get_mut("properties").and_then(Value::as_object_mut);
    for (name, field) in fields.into_iter().flatten() {
        let Some(stored) = storage.get("properties").and_then(|fields| fields.get(name)) else { continue };
        if is_root && OF_RESOURCES.contains(&name.as_str()) {
            continue;
        }
        if let (Some(default), Some(keywords)) = (stored.get("default"), field.as_object_mut()) {
            keywords.insert("default".to_owned(), default.clone());
        }
        overlay(field, stored, false);
    }
}

/// Adds to `live` the fields that only `desired` and `storage` have: objects have values there that live drops. What
/// live asks of the objects around them is asked of what it keeps. Returns whether there are such fields.
pub(super) fn add_gained_fields(live: &mut Value, desired: &Value, storage: &Value) -> bool {
    gain(live, desired, storage, true)
}

fn gain(live: &mut Value, desired: &Value, storage: &Value, is_root: bool) -> bool {
    if live == desired {
        return false;
    }
    let Some(keywords) = live.as_object_mut() else { return false };
    let mut has_gained = false;
    for keyword in ["items", "additionalProperties"] {
        if let (Some(live), Some(desired), Some(stored)) =
            (keywords.get_mut(keyword), desired.get(keyword), storage.get(keyword))
        {
            has_gained |= gain(live, desired, stored, false);
        }
    }
    let keeps_all = keywords.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let is_object = keywords.get("type").is_some_and(|kind| kind == "object");
    let is_closed = is_object && !keeps_all && !keywords.contains_key("additionalProperties");
    let mut gained: Vec<&str> = Vec::new();
    let known = storage.get("properties").and_then(Value::as_object);
    for (name, desired) in desired.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(stored) = known.and_then(|known| known.get(name)) else { continue };
        if is_root && OF_RESOURCES.contains(&name.as_str()) {
            continue;
        }
        let fields = keywords.entry("properties").or_insert_with(|| json!({}));
        let Some(fields) = fields.as_object_mut() else { continue };
        match fields.get_mut(name) {
            Some(live) => has_gained |= gain(live, desired, stored, false),
            None if is_closed => {
                fields.insert(name.clone(), stored.clone());
                gained.push(name);
            }
            None => {}
        }
    }
    if gained.is_empty() {
        return has_gained;
    }
    let mut all = match keywords.shift_remove("allOf") {
        Some(Value::Array(all)) => all,
        _ => Vec::new(),
    };
    all.extend(bounds_of_kept(keywords, &gained));
    all.extend(asked_by_storage(keywords, storage));
    if !all.is_empty() {
        keywords.insert("allOf".to_owned(), Value::Array(all));
    }
    true
}

/// `maxProperties` and `minProperties` of live, which do not count the gained fields.
fn bounds_of_kept(keywords: &mut Map<String, Value>, gained: &[&str]) -> Option<Value> {
    let bounds =
        ["maxProperties", "minProperties"].map(|keyword| Some((keyword, keywords.shift_remove(keyword)?.as_u64()?)));
    if bounds.iter().all(Option::is_none) {
        return None;
    }
    let choices: Vec<Vec<&str>> = match gained.len() {
        ..=MAX_COMBINED => {
            let chosen = |choice: usize| {
                let is_in = |(at, _): &(usize, &&str)| choice >> at & 1 == 1;
                gained.iter().enumerate().filter(is_in).map(|(_, name)| *name).collect()
            };
            (0..1 << gained.len()).map(chosen).collect()
        }
        // Live accepts more without the bounds, and what it does not accept is tried later.
        _ => return None,
    };
    let of_choice = |present: &Vec<&str>| {
        let mut asked = Map::new();
        for (keyword, bound) in bounds.into_iter().flatten() {
            asked.insert(keyword.to_owned(), bound.saturating_add(present.len() as u64).into());
        }
        if !present.is_empty() {
            asked.insert("required".to_owned(), json!(present));
        }
        let absent = gained.iter().filter(|name| !present.contains(name));
        let absent: Vec<Value> = absent.map(|name| json!({"required": [name]})).collect();
        if !absent.is_empty() {
            asked.insert("not".to_owned(), json!({"anyOf": absent}));
        }
        Value::Object(asked)
    };
    Some(json!({"anyOf": choices.iter().map(of_choice).collect::<Vec<_>>()}))
}

/// What the storage version asks of an object as a whole, as far as it concerns fields that the version has too.
fn asked_by_storage(keywords: &Map<String, Value>, storage: &Value) -> Option<Value> {
    let fields = keywords.get("properties").and_then(Value::as_object)?;
    let is_known = |name: &str| fields.contains_key(name);
    let mut asked = Map::new();
    for (keyword, value) in storage.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "required" => {
                let names = value.as_array().into_iter().flatten();
                let names = names.filter(|name| name.as_str().is_some_and(is_known)).cloned().collect();
                asked.insert(keyword.clone(), names);
            }
            "allOf" | "anyOf" | "oneOf" | "not" if names_only(value, &is_known) => {
                asked.insert(keyword.clone(), value.clone());
            }
            _ => {}
        }
    }
    (!asked.is_empty()).then_some(Value::Object(asked))
}

/// Whether conditions on an object name only fields for which `is_known` holds.
fn names_only(conditions: &Value, is_known: &dyn Fn(&str) -> bool) -> bool {
    match conditions {
        Value::Array(all) => all.iter().all(|one| names_only(one, is_known)),
        Value::Object(keywords) => keywords.iter().all(|(keyword, value)| match (keyword.as_str(), value) {
            ("required", Value::Array(names)) => names.iter().all(|name| name.as_str().is_some_and(is_known)),
            ("properties", Value::Object(fields)) => fields.keys().all(|name| is_known(name)),
            ("allOf" | "anyOf" | "oneOf" | "not", below) => names_only(below, is_known),
            _ => true,
        }),
        _ => true,
    }
}
