//! CEL: the input is an expression over a fixed object, or generated rules and values.

use gantry_k8s_cel::{CelBudget, CelExpression, compile_rules};
use gantry_schema::Schema;
use serde_json::{Value, json};

use super::generator::{Random, ruled_schema, ruled_value};

const STEPS: u64 = 200_000;

/// The first byte selects the rest: decisions of the generator, or text.
pub fn run(data: &[u8]) {
    match data {
        [0, decisions @ ..] => generated(&mut Random::deciding(decisions)),
        [_, text @ ..] => {
            if let Ok(text) = std::str::from_utf8(text) {
                written(text);
            }
        }
        [] => {}
    }
}

fn written(rule: &str) {
    let schema = json!({"type": "object", "properties": {
        "n": {"type": "integer"}, "d": {"type": "number"}, "s": {"type": "string", "maxLength": 20}, "b": {"type": "boolean"},
        "t": {"type": "string", "format": "date-time"}, "w": {"type": "string", "format": "duration"},
        "i": {"x-kubernetes-int-or-string": true}, "f-g": {"type": "integer"},
        "l": {"type": "array", "maxItems": 5, "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "o": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}},
    }});
    let object = json!({"n": 7, "d": -0.5, "s": "é-b", "b": true, "t": "2024-02-29T00:00:00Z", "w": "1h30m", "i": "10%",
        "f-g": -1, "l": ["a", "", "b"], "m": {"x": 1, "y.z": 2}, "o": [{"k": "a", "v": 1}, {"k": "b"}]});
    for rule in compile_rules(&schema, &[json!({"rule": rule, "messageExpression": rule})], false) {
        for old in [None, Some(&object)] {
            let answers: Vec<_> = (0..2).map(|_| rule.evaluate(&object, old, &mut CelBudget::new(STEPS))).collect();
            assert_eq!(answers[0], answers[1], "{rule:?}");
        }
    }
    if let Ok(expression) = CelExpression::condition(rule, &["object", "oldObject"]) {
        let mut budget = CelBudget::new(STEPS);
        let _ = expression.holds(&[("object", &object), ("oldObject", &Value::Null)], &mut budget);
    }
}

fn generated(random: &mut Random) {
    let schema = ruled_schema(random);
    let root = json!({"type": "object", "properties": {"spec": schema}});
    let Ok(compiled) = Schema::compile(&root) else { return };
    let mut object =
        json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": ruled_value(random, &schema)});
    let first = compiled.process(&mut object, None);
    // An update that changes nothing is not refused if the object was accepted.
    let second = compiled.process(&mut object.clone(), Some(&object));
    if first.outcome.is_accepted() && compiled.looks_back() {
        return;
    }
    if first.outcome.is_accepted() {
        assert!(second.outcome.errors.is_empty(), "{root} {object} {second:?}");
    }
}
