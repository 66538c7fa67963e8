//! Schemas and values: pruning and defaulting a value a second time changes nothing.
//!
//! The input is a list of a schema and a value, or decisions of the generator.

use gantry_schema::Schema;
use serde_json::Value;

use super::Input;
use super::generator::{broken, schema, value};

pub fn run(data: &[u8]) {
    match super::input(data) {
        Some(Input::Written(values)) => {
            if let [schema, value] = &values[..] {
                judge(schema, value);
            }
        }
        Some(Input::Generated(mut random)) => {
            let schema = schema(&mut random);
            let mut value = value(&mut random, &schema);
            if random.chance(50) {
                value = broken(&mut random, &value);
            }
            judge(&super::of_spec(&schema), &super::object(value));
        }
        None => {}
    }
}

fn judge(schema: &Value, value: &Value) {
    let Ok(schema) = Schema::compile(schema) else { return };
    let mut object = value.clone();
    let first = schema.process(&mut object, None);
    let mut again = object.clone();
    let second = schema.process(&mut again, None);
    assert_eq!(object, again, "{schema:?}");
    if first.outcome.is_accepted() {
        assert!(second.outcome.is_accepted(), "{schema:?} {object} {second:?}");
    }
    assert!(second.pruned.is_empty() && second.defaulted.is_empty(), "{schema:?} {second:?}");
}
