//! Values filled up with what a schema demands.

use std::collections::BTreeSet;

use serde_json::Value;

use super::values::{ITEMS, Maker, bound};
use super::view::View;
use crate::proof::automaton::Budget;

/// Adds what the schema demands of a value and nothing has given yet.
pub fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
            {
                let of = properties.and_then(|properties| properties.get(name));
                if let Some(of) = of.filter(|of| of.get("default").is_none())
                    && !map.contains_key(name)
                {
                    map.insert(name.to_owned(), simplest(of));
                }
            }
            for (name, value) in map.iter_mut() {
                let of = properties
                    .and_then(|properties| properties.get(name))
                    .or_else(|| schema.get("additionalProperties"));
                if let Some(of) = of {
                    fill(value, of);
                }
            }
        }
        Value::Array(items) => {
            if let Some(of) = schema.get("items") {
                items.iter_mut().for_each(|item| fill(item, of));
            }
        }
        _ => {}
    }
}

fn simplest(schema: &Value) -> Value {
    let mut budget = Budget::new(100_000);
    let nothing = BTreeSet::new();
    let mut maker = Maker::new(&mut budget, &nothing, false, 100);
    let mut value = maker.values(schema, &View::default()).into_iter().next().unwrap_or(Value::Null);
    if let (Value::Array(items), Some(least)) = (&value, bound(schema, "minItems"))
        && items.is_empty()
        && least > 0
    {
        let item = schema.get("items").map_or(Value::Null, simplest);
        value = Value::Array(vec![item; usize::try_from(least.min(ITEMS)).unwrap_or(0)]);
    }
    fill(&mut value, schema);
    value
}
