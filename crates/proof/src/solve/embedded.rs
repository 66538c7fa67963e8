//! What the server asks of every embedded resource (`x-kubernetes-embedded-resource`), in words of a schema.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// Whatever the server takes as an embedded resource passes this. Not all that passes is taken: lengths in bytes,
/// labels and annotations are left to the validator, which sees every witness.
///
/// The source is `apiextensions-apiserver/pkg/apiserver/schema/objectmeta`: the values are those that are stored, with
/// times in UTC and to the second.
pub static ASKED: LazyLock<Value> = LazyLock::new(|| {
    // Go makes a Kelvin sign and a capital I with a dot small as ASCII letters.
    let letter = r"a-zA-Z\x{212A}\x{130}";
    let time = r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$";
    let finalizer = "^([^/]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";
    // A null is dropped, or refused.
    let there = |mut asked: Value| {
        asked["not"] = json!({"enum": [null]});
        asked
    };
    json!({
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": there(json!({"pattern": "^([^/]+|[^/]*/[^/]*)$"})),
            "kind": there(json!({"pattern": format!("^[{letter}]([-0-9{letter}]*[0-9{letter}])?$"), "maxLength": 63})),
            // What is empty is as good as absent, and not stored.
            "metadata": there(json!({"properties": {
                "name": there(json!({"pattern": "^[^/%]+$"})),
                "generateName": there(json!({"pattern": "^[^/%]+$"})),
                "namespace": there(json!({"pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63})),
                "generation": there(json!({"minimum": 1})),
                "creationTimestamp": there(json!({"pattern": time})),
                "deletionTimestamp": there(json!({"pattern": time})),
                "labels": there(json!({"minProperties": 1})),
                "annotations": there(json!({"minProperties": 1})),
                "finalizers": there(json!({"minItems": 1, "items": {"pattern": finalizer}})),
            }})),
        },
    })
});
