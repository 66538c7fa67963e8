//! Validation of only the changed parts of a schema gives the same result as validation of all of it, for every object
//! that the schema before the change accepts and keeps.

use crate::generator::{self, Random};
use gantry_schema::Schema;
use serde_json::{Value, json};

const PAIRS: usize = 1500;
const VALUES: usize = 6;

fn around(schema: &Value) -> Value {
    let beside = json!({"type": "object", "properties": {"x": {"type": "string", "default": "d"}}});
    json!({"type": "object", "properties": {"status": {"type": "object", "properties": {"v": {"type": "string"}}}, "spec": {"type": "object", "properties": {"v": schema, "beside": beside}}}})
}

/// The result of a schema for an object: dropped, defaulted and refused values, as text.
fn made(schema: &Schema, object: &Value) -> (Value, Vec<String>) {
    let mut object = object.clone();
    let (pruned, defaulted) = match schema.prepare(&mut object) {
        Ok(prepared) => prepared,
        Err(error) => return (object, vec![format!("undecodable {error}")]),
    };
    let outcome = schema.validate(&object, None);
    let pruned = pruned.into_iter().map(|pruned| format!("pruned {}", pruned.path));
    let defaulted = defaulted.into_iter().map(|defaulted| format!("defaulted {}", defaulted.path));
    let errors = outcome.errors.iter().map(|error| format!("refused {error}"));
    let undecided = outcome.undecided.iter().map(|undecided| format!("undecided {undecided:?}"));
    let words = pruned.chain(defaulted).chain(errors).chain(undecided).collect();
    (object, words)
}

/// Whether every default is valid for its own node: the server refuses all other CRDs.
fn defaults_hold(schema: &Value) -> bool {
    let own = schema.get("default").is_none_or(|default| {
        let mut filled = json!({"v": default});
        let around = json!({"type": "object", "properties": {"v": schema}});
        Schema::compile(&around)
            .is_ok_and(|around| around.prepare(&mut filled).is_ok() && around.validate(&filled, None).is_accepted())
    });
    let properties = schema.get("properties").and_then(Value::as_object);
    let below = ["items", "additionalProperties"].into_iter().filter_map(|keyword| schema.get(keyword));
    own && properties.into_iter().flat_map(|kids| kids.values()).chain(below).all(defaults_hold)
}

#[test]
fn validation_by_changed_parts_equals_validation_by_the_whole_schema() {
    let mut random = Random::new(11);
    let (mut alone, mut touched) = (0, 0);
    for _ in 0..PAIRS {
        let mut live = generator::schema(&mut random);
        if random.chance(15)
            && let Some(rule) = generator::rule(&mut random, &live)
        {
            live["x-kubernetes-validations"] = json!([{"rule": rule}]);
        }
        let desired = generator::edited(&mut random, &live);
        if !defaults_hold(&desired) {
            continue;
        }
        let (before, after) = (around(&live), around(&desired));
        let (Ok(there), Ok(whole)) = (Schema::compile(&before), Schema::compile(&after)) else { continue };
        let changes = Schema::compile_beside(&after, &before).expect("what compiles compiles beside another");
        for attempt in 0..VALUES {
            let mut value = generator::value(&mut random, &live);
            if attempt % 2 == 1 {
                value = generator::broken(&mut random, &value);
            }
            let written = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"}, "spec": {"v": value}, "status": {"v": "x"}});
            let (stored, _) = made(&there, &written);
            // An existing object: the live definition accepts it and keeps it unchanged.
            if made(&there, &stored) != (stored.clone(), Vec::new()) {
                continue;
            }
            let expected = made(&whole, &stored);
            let pair = || format!("{stored}\n  live {live}\n  desired {desired}");
            assert_eq!(made(&changes, &stored), expected, "{}", pair());
            let is_settled = expected.0 == stored;
            let mut part = stored.clone();
            part.as_object_mut().expect("an object").retain(|field, _| changes.looks_at(field));
            part["metadata"] = stored["metadata"].clone();
            assert_eq!(made(&changes, &part).1, expected.1, "in part: {}", pair());
            let has_metadata = after.to_string().contains("embedded-resource");
            let said = changes.is_settled(&stored);
            assert!(said == is_settled || is_settled && has_metadata, "{said}: {}", pair());
            if is_settled && expected.1.is_empty() { alone += 1 } else { touched += 1 }
        }
    }
    assert!(alone > 1000 && touched > 300, "{alone} left alone, {touched} not");
}
