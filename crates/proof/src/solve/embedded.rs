//! The server's constraints on every embedded resource (`x-kubernetes-embedded-resource`), as a schema.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// A schema that accepts every embedded resource that the server accepts. It accepts more than the server: lengths in
/// bytes, labels and annotations are left to the validator, which checks every witness.
///
/// It follows `apiextensions-apiserver/pkg/apiserver/schema/objectmeta` and describes stored values, with times in UTC
/// and whole seconds.
pub static CONSTRAINTS: LazyLock<Value> = LazyLock::new(|| {
    // Go lowercases the Kelvin sign and the capital I with a dot to ASCII letters.
    let letter = r"a-zA-Z\x{212A}\x{130}";
    let time = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$";
    let finalizer = "^([^/]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";
    // A null is dropped or refused.
    let non_null = |mut asked: Value| {
        asked["not"] = json!({"enum": [null]});
        asked
    };
    json!({
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": non_null(json!({"pattern": "^([^/]+|[^/]*/[^/]*)$"})),
            "kind": non_null(json!({"pattern": format!("^[{letter}]([-0-9{letter}]*[0-9{letter}])?$"), "maxLength": 63})),
            // The server does not store empty values.
            "metadata": non_null(json!({"properties": {
                "name": non_null(json!({"pattern": "^[^/%]+$"})),
                "generateName": non_null(json!({"pattern": "^[^/%]+$"})),
                "namespace": non_null(json!({"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63})),
                "generation": non_null(json!({"minimum": 1})),
                "creationTimestamp": non_null(json!({"pattern": time})),
                "deletionTimestamp": non_null(json!({"pattern": time})),
                "labels": non_null(json!({"minProperties": 1})),
                "annotations": non_null(json!({"minProperties": 1})),
                "finalizers": non_null(json!({"minItems": 1, "items": {"pattern": finalizer}})),
            }})),
        },
    })
});
