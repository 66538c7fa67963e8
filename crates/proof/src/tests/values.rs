//! The values of one node: types, bounds, texts and enums.

use serde_json::{Value, json};

use super::*;

#[test]
fn changes_of_types_have_their_verdicts() {
    both_ways(&[
        (json!({"type": "integer"}), json!({"type": "number"}), Widening, Narrowing),
        (json!({"type": "integer"}), json!({"type": "string"}), Incomparable, Incomparable),
        (json!({"type": "integer"}), json!({"x-kubernetes-int-or-string": true}), Widening, Narrowing),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            Equal,
            Equal,
        ),
        (json!({"type": "string"}), json!({"type": "string", "nullable": true}), Widening, DataLoss),
        (json!({"type": "string"}), json!({"x-kubernetes-preserve-unknown-fields": true}), Widening, Narrowing),
        (json!({"type": "object"}), json!({"type": "object", "description": "x"}), Equal, Equal),
    ]);
}

/// A bound beside a factor decides only the multiples between both bounds.
#[test]
fn bounds_with_multiple_of_are_compared_as_integers() {
    let of = |kind: &str, factor: &Value, more: Value| {
        let mut schema = json!({"type": kind, "multipleOf": factor});
        schema.as_object_mut().expect("a schema").extend(more.as_object().expect("keywords").clone());
        schema
    };
    let fives = |more: Value| of("integer", &json!(5), more);
    let numbers = |more: Value| of("number", &json!(5), more);
    let tenths = |more: Value| of("number", &json!(0.1), more);
    both_ways(&[
        (fives(json!({"maximum": 12})), fives(json!({"maximum": 10})), Equal, Equal),
        (fives(json!({"maximum": 14})), fives(json!({"maximum": 9})), Narrowing, Widening),
        (fives(json!({"maximum": 10})), fives(json!({"maximum": 15, "exclusiveMaximum": true})), Equal, Equal),
        (fives(json!({"maximum": 10})), fives(json!({"maximum": 10, "exclusiveMaximum": true})), Narrowing, Widening),
        (fives(json!({"maximum": -1})), fives(json!({"maximum": -5})), Equal, Equal),
        (fives(json!({"maximum": -5})), fives(json!({"maximum": -6})), Narrowing, Widening),
        (fives(json!({"minimum": -12})), fives(json!({"minimum": -10})), Equal, Equal),
        (fives(json!({"minimum": -12})), fives(json!({"minimum": -10, "exclusiveMinimum": true})), Narrowing, Widening),
        (fives(json!({"maximum": 0})), fives(json!({"maximum": 5, "exclusiveMaximum": true})), Equal, Equal),
        (fives(json!({"minimum": 1, "maximum": 4})), fives(json!({"minimum": 6, "maximum": 9})), Equal, Equal),
        // Larger factors are not decided.
        (
            of("integer", &json!(1000), json!({"maximum": 1999})),
            of("integer", &json!(1000), json!({"maximum": 1000})),
            Undecided,
            Widening,
        ),
        (
            of("integer", &json!(6), json!({"maximum": 10})),
            of("integer", &json!(3), json!({"maximum": 8})),
            Widening,
            Narrowing,
        ),
        // The server takes 10.000000005 for a multiple of 5, and compares the number itself with the bound.
        (numbers(json!({"maximum": 12})), numbers(json!({"maximum": 10})), Narrowing, Widening),
        (numbers(json!({"maximum": 12})), numbers(json!({"maximum": 9.5})), Narrowing, Widening),
        (tenths(json!({"maximum": 0.35})), tenths(json!({"maximum": 0.3})), Narrowing, Widening),
        (tenths(json!({"maximum": 0.35})), tenths(json!({"maximum": 0.25})), Narrowing, Widening),
    ]);
}

#[test]
fn changes_of_bounds_have_their_verdicts() {
    both_ways(&[
        (json!({"type": "integer", "maximum": 5}), json!({"type": "integer", "maximum": 9}), Widening, Narrowing),
        (json!({"type": "integer", "maximum": 5}), json!({"type": "integer"}), Widening, Narrowing),
        (
            json!({"type": "integer", "minimum": 1}),
            json!({"type": "integer", "minimum": 0, "exclusiveMinimum": true}),
            Equal,
            Equal,
        ),
        (
            json!({"type": "number", "minimum": 1}),
            json!({"type": "number", "minimum": 1, "exclusiveMinimum": true}),
            Narrowing,
            Widening,
        ),
        (json!({"type": "integer", "multipleOf": 6}), json!({"type": "integer", "multipleOf": 3}), Widening, Narrowing),
        // Beyond every int64: numbers near these bounds do not overflow.
        (json!({"type": "integer"}), json!({"type": "integer", "multipleOf": 1e19}), Narrowing, Widening),
        (
            json!({"type": "number", "minimum": -1e19, "multipleOf": 7}),
            json!({"type": "number", "minimum": -1e19, "allOf": [{"multipleOf": 7}, {"multipleOf": 9e18}]}),
            Narrowing,
            Undecided,
        ),
        (
            json!({"type": "integer", "enum": [1, 2]}),
            json!({"type": "integer", "maximum": 2, "minimum": 1}),
            Equal,
            Equal,
        ),
        // The server truncates a fraction before it compares it with an integer: -0.5 counts as 0, and 98.5 as 98.
        (
            json!({"type": "number", "enum": [0, 2]}),
            json!({"type": "number", "enum": [0, 2], "minimum": 0}),
            Narrowing,
            Widening,
        ),
        (json!({"type": "integer", "enum": [98.0]}), json!({"type": "number", "enum": [98.0]}), Widening, Narrowing),
        (
            json!({"type": "integer", "enum": [1, 3]}),
            json!({"type": "integer", "maximum": 2}),
            Incomparable,
            Incomparable,
        ),
        (
            json!({"type": "integer", "format": "int32"}),
            json!({"type": "integer", "format": "int64"}),
            Widening,
            Narrowing,
        ),
        (
            json!({"type": "integer", "minimum": 3, "maximum": 2}),
            json!({"type": "integer", "minimum": 9, "maximum": 10}),
            Widening,
            Narrowing,
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 2}),
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            Narrowing,
            Widening,
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 3, "minProperties": 1}),
            Narrowing,
            Widening,
        ),
    ]);
}

#[test]
fn changes_of_strings_and_enums_have_their_verdicts() {
    let text = |more: Value| {
        let mut schema = json!({"type": "string"});
        schema.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        schema
    };
    both_ways(&[
        (text(json!({"maxLength": 5})), text(json!({"maxLength": 3})), Narrowing, Widening),
        (text(json!({"minLength": 1})), text(json!({"minLength": 0})), Widening, Narrowing),
        (text(json!({"pattern": "^a+$"})), text(json!({})), Widening, Narrowing),
        (text(json!({"enum": ["a", "b"]})), text(json!({"enum": ["a", "b", "c"]})), Widening, Narrowing),
        (text(json!({"enum": ["a"]})), text(json!({"pattern": "^a+$"})), Widening, Narrowing),
        (text(json!({"enum": ["a", "B"]})), text(json!({"pattern": "^[a-z]$"})), Incomparable, Incomparable),
        (text(json!({"format": "date-time"})), text(json!({})), Widening, Narrowing),
        (text(json!({"format": "quantity"})), text(json!({"format": "unknown"})), Equal, Equal),
        (text(json!({"enum": ["10.0.0.1"]})), text(json!({"format": "ipv4"})), Widening, Narrowing),
    ]);
}
