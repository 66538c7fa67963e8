//! Completes values with the fields that a schema requires.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::values::{ITEMS, RepresentativeBuilder, bound};
use super::view::RuleView;
use crate::automaton::SearchBudget;
use crate::keywords as kw;

/// The maximum weight of what is added to one value. Anything beyond it is left out, and validation reports it as
/// missing.
const ROOM: u64 = 512 << 10;

/// Adds the required fields that the value lacks and that have no default.
pub fn fill(value: &mut Value, schema: &Value) {
    fill_within(value, schema, &mut { ROOM });
}

/// Takes the weight of the value from `room`, and returns whether there was enough.
fn fits(value: &Value, room: &mut u64) -> bool {
    let left = room.checked_sub(kw::weight(value));
    *room = left.unwrap_or(0);
    left.is_some()
}

fn fill_within(value: &mut Value, schema: &Value, room: &mut u64) {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
            {
                let of = properties.and_then(|properties| properties.get(name));
                if let Some(of) = of.filter(|of| of.get("default").is_none())
                    && !map.contains_key(name)
                    && *room > 0
                {
                    let value = simplest(of, room);
                    if fits(&value, room) {
                        map.insert(name.to_owned(), value);
                    }
                }
            }
            for (name, value) in map.iter_mut() {
                let of = properties
                    .and_then(|properties| properties.get(name))
                    .or_else(|| schema.get("additionalProperties"));
                if let Some(of) = of {
                    fill_within(value, of, room);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = schema.get("items") {
                items.iter_mut().for_each(|item| fill_within(item, of, room));
            }
        }
        _ => {}
    }
}

/// The value with the defaults of all missing fields, as rules see it.
pub fn defaulted(value: &Value, schema: &Value) -> Value {
    defaulted_within(value, schema, &mut { ROOM })
}

fn defaulted_within(value: &Value, schema: &Value, room: &mut u64) -> Value {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let of = |name: &str| {
                let own = properties.and_then(|properties| properties.get(name));
                own.or_else(|| schema.get("additionalProperties").filter(|of| of.is_object()))
            };
            let known = |(name, inner): (&String, &Value)| {
                (name.clone(), of(name).map_or_else(|| inner.clone(), |of| defaulted_within(inner, of, room)))
            };
            let mut full: Map<String, Value> = map.iter().map(known).collect();
            for (name, of) in properties.into_iter().flatten().filter(|(name, _)| !map.contains_key(*name)) {
                if let Some(default) = kw::default_of(of)
                    && fits(default, room)
                {
                    full.insert(name.clone(), defaulted_within(default, of, room));
                }
            }
            Value::Object(full)
        }
        Value::Array(items) => match schema.get("items") {
            Some(of) => items.iter().map(|item| defaulted_within(item, of, room)).collect(),
            None => value.clone(),
        },
        _ => value.clone(),
    }
}

fn simplest(schema: &Value, room: &mut u64) -> Value {
    let mut budget = SearchBudget::new(100_000);
    let nothing = BTreeSet::new();
    let mut maker = RepresentativeBuilder::new(&mut budget, &nothing, false, 100);
    let mut value = maker.values(schema, &RuleView::default()).into_iter().next().unwrap_or(Value::Null);
    if let (Value::Array(items), Some(least)) = (&value, bound(schema, "minItems"))
        && items.is_empty()
        && least > 0
    {
        let item = schema.get("items").map_or(Value::Null, |items| simplest(items, room));
        // Lists in lists multiply.
        let least = least.min(ITEMS);
        if kw::weight(&item).saturating_mul(least) <= *room {
            value = Value::Array(vec![item; usize::try_from(least).unwrap_or(0)]);
        }
    }
    fill_within(&mut value, schema, room);
    value
}
