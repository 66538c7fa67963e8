//! Constraints on a value, and the values found.

use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Value, json};

use super::{PinnedPart, Solver};
use crate::constraints::{SharedSchema, ValueConstraints};
use gantry_k8s_cel::re2::Patterns;
use gantry_schema::Schema;

/// Constraints from a schema that accepts a value and one that refuses it.
fn constraints<'s>(holds: &'s Value, fails: &'s Value) -> ValueConstraints<'s> {
    let null = holds["nullable"] == json!(true);
    ValueConstraints {
        holds: vec![SharedSchema::Ref(holds)],
        fails: vec![SharedSchema::Ref(fails)],
        null,
        ..ValueConstraints::default()
    }
}

fn accepts(schema: &Value, value: &Value) -> bool {
    Schema::compile_structure(schema, &Patterns::default()).unwrap().accepts_value(value).unwrap()
}

fn text(more: Value) -> Value {
    typed("string", more)
}

fn object(more: Value) -> Value {
    typed("object", more)
}

fn typed(name: &str, mut schema: Value) -> Value {
    schema["type"] = json!(name);
    schema
}

#[test]
fn a_value_is_found_if_one_exists() {
    let fields = json!({"a": {"type": "string"}, "b": {"type": "integer"}});
    let rows = [
        (text(json!({"minLength": 1})), text(json!({"minLength": 2}))),
        (text(json!({"pattern": "^[ab]+$"})), text(json!({"pattern": "^a+$"}))),
        (text(json!({"pattern": "^[ab]{4}$", "not": {"enum": ["aaaa"]}})), text(json!({"pattern": "bb"}))),
        (text(json!({"enum": ["a", "b"]})), text(json!({"enum": ["a"]}))),
        (text(json!({"nullable": true})), text(json!({}))),
        (typed("integer", json!({"maximum": 9})), typed("integer", json!({"maximum": 5}))),
        (typed("integer", json!({"multipleOf": 3})), typed("integer", json!({"multipleOf": 6}))),
        (typed("number", json!({"minimum": 1, "maximum": 1.5})), typed("integer", json!({}))),
        (typed("boolean", json!({})), json!({"enum": [false]})),
        (typed("array", json!({"items": text(json!({})), "maxItems": 2})), typed("array", json!({"maxItems": 1}))),
        (object(json!({"properties": fields, "required": ["a"]})), object(json!({"required": ["b"]}))),
        (
            object(json!({"properties": fields, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]})),
            object(json!({"required": ["a"]})),
        ),
        (
            object(json!({"properties": {"o": object(json!({"properties": fields}))}})),
            object(json!({"properties": {"o": object(json!({"properties": {"b": {"maximum": 7}}}))}})),
        ),
        (object(json!({"additionalProperties": text(json!({}))})), object(json!({"maxProperties": 2}))),
    ];
    for (holds, fails) in &rows {
        let solver = Solver::new(100_000, &Patterns::default(), KubernetesRelease::default());
        let answer = solver.solve(&constraints(holds, fails), None, 1);
        let [value] = &answer.values[..] else { panic!("{holds} and not {fails}: {answer:?}") };
        assert!(accepts(holds, value) && !accepts(fails, value), "{holds} and not {fails}: {value}");
    }
}

#[test]
fn that_no_value_exists_is_certain() {
    let rows = [
        (text(json!({"minLength": 2})), text(json!({"minLength": 1}))),
        (text(json!({"pattern": "^a+$"})), text(json!({"pattern": "^[ab]+$"}))),
        (text(json!({"enum": ["a"]})), text(json!({"maxLength": 1}))),
        (text(json!({})), text(json!({}))),
        (typed("integer", json!({"maximum": 5})), typed("integer", json!({"maximum": 9}))),
        (typed("integer", json!({"multipleOf": 6})), typed("integer", json!({"multipleOf": 3}))),
        (typed("integer", json!({"minimum": 1})), typed("integer", json!({"minimum": 0, "exclusiveMinimum": true}))),
        (typed("integer", json!({})), typed("number", json!({}))),
        (typed("boolean", json!({})), json!({"enum": [false, true]})),
        (typed("array", json!({"items": text(json!({})), "maxItems": 1})), typed("array", json!({"maxItems": 2}))),
        (object(json!({"required": ["a", "b"]})), object(json!({"required": ["b"]}))),
        // A default is always present when the object is validated.
        (object(json!({"properties": {"a": text(json!({"default": "x"}))}})), object(json!({"required": ["a"]}))),
        (
            object(json!({"allOf": [{"required": ["a"]}, {"not": {"required": ["a"]}}]})),
            object(json!({"maxProperties": 2})),
        ),
    ];
    for (holds, fails) in &rows {
        let solver = Solver::new(100_000, &Patterns::default(), KubernetesRelease::default());
        let answer = solver.solve(&constraints(holds, fails), None, 1);
        assert!(answer.is_nothing(), "{holds} and not {fails}: {answer:?}");
    }
}

#[test]
fn a_search_that_runs_out_of_steps_is_undecided() {
    let (holds, fails) = (text(json!({"pattern": "^[ab]+$"})), text(json!({"pattern": "^a+$"})));
    for steps in [0, 1, 20] {
        let answer = Solver::new(steps, &Patterns::default(), KubernetesRelease::default()).solve(
            &constraints(&holds, &fails),
            None,
            1,
        );
        assert!(!answer.is_nothing(), "{steps}: {answer:?}");
        assert!(answer.values.is_empty() && answer.open.is_some(), "{steps}: {answer:?}");
    }
}

#[test]
fn the_wanted_number_of_values_is_found_and_null_only_if_it_is_accepted() {
    let options = typed("boolean", json!({"nullable": true}));
    let fails = text(json!({}));
    let solver = Solver::new(100_000, &Patterns::default(), KubernetesRelease::default());
    let values = |null: bool, want: usize| {
        solver.solve(&ValueConstraints { null, ..constraints(&options, &fails) }, None, want).values
    };
    assert_eq!(values(true, 9), [json!(false), json!(true), json!(null)]);
    assert_eq!(values(false, 9), [json!(false), json!(true)]);
    assert_eq!(values(true, 1), [json!(false)]);
}

#[test]
fn a_part_that_is_given_is_in_the_value() {
    let fields = json!({"a": {"type": "string"}, "b": {"type": "integer", "minimum": 3}});
    let holds = object(json!({"properties": fields, "required": ["b"]}));
    let (list, nothing) =
        (typed("array", json!({"items": text(json!({})), "minItems": 2})), object(json!({"required": ["c"]})));
    let solver = Solver::new(100_000, &Patterns::default(), KubernetesRelease::default());
    let given = json!("x");
    let [value] = &solver.solve(&constraints(&holds, &nothing), Some(PinnedPart::Field("a", &given)), 1).values[..]
    else {
        panic!()
    };
    assert_eq!(value["a"], given);
    assert!(accepts(&holds, value), "{value}");
    let longer = typed("array", json!({"maxItems": 1}));
    let [value] = &solver.solve(&constraints(&list, &longer), Some(PinnedPart::Item(&given)), 1).values[..] else {
        panic!()
    };
    assert!(value.as_array().unwrap().contains(&given) && accepts(&list, value), "{value}");
}
