//! One table for each group of keywords: what the change of a field is, both ways.

use serde_json::{Value, json};

use super::*;

pub fn version(schema: &Value) -> Version<'_> {
    Version { schema, status_subresource: false, api_version: "example.com/v1", kind: "Sample" }
}

fn whole(field: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"f": field}}}})
}

fn judge(live: &Value, desired: &Value) -> Proof {
    prove(&version(live), &version(desired), Limits::default())
}

/// Judges a field's change, and its change back.
fn both_ways(rows: &[(Value, Value, Verdict, Verdict)]) {
    let mut wrong = Vec::new();
    for (live, desired, there, back) in rows {
        for (from, to, expected) in [(live, desired, there), (desired, live, back)] {
            let proof = judge(&whole(from), &whole(to));
            if proof.verdict != *expected {
                wrong.push(format!("{from} → {to}: {:?}, not {expected:?}: {proof:#?}", proof.verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

use Verdict::{DataLoss, Equal, Incomparable, Narrowing, Undecided, Widening};

#[test]
fn types() {
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
