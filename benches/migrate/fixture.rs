//! The CRD, and its objects as etcd has them before the migration.

use serde_json::{Value, json};

pub const GROUP: &str = "bench.example.com";
pub const KIND: &str = "Sample";
pub const PLURAL: &str = "samples";
pub const NAME: &str = "samples.bench.example.com";
pub const NAMESPACES: usize = 20;

const TIME: &str = "2026-01-01T00:00:00Z";

pub fn namespace(number: usize) -> String {
    format!("bench-{}", number % NAMESPACES)
}

/// Both versions have the same fields; v2 is stored.
pub fn crd() -> Value {
    let version = |name: &str| {
        json!({"name": name, "served": true, "storage": name == "v2", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object",
                    "x-kubernetes-validations": [{"rule": "!has(self.image) || self.image.size() < 200"}],
                    "properties": {
                        "image": {"type": "string", "maxLength": 200},
                        "text": {"type": "string"},
                        "replicas": {"type": "integer", "minimum": 0},
                        "selector": {"type": "object", "additionalProperties": {"type": "string"}}}},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": NAME},
        "spec": {"group": GROUP, "scope": "Namespaced",
            "names": {"plural": PLURAL, "singular": "sample", "kind": KIND, "listKind": "SampleList"},
            "versions": [version("v1"), version("v2")]},
    })
}

/// The key of the object `number` in etcd, and the object, stored at v1.
pub fn stored(number: usize) -> (String, Value) {
    let (namespace, name) = (namespace(number), format!("sample-{number:07}"));
    let key = format!("/registry/{GROUP}/{PLURAL}/{namespace}/{name}");
    let owned = json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:image": {}, "f:text": {}, "f:replicas": {},
        "f:selector": {"f:app": {}}}});
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": KIND,
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("{number:08x}-0000-4000-8000-000000000000"),
            "generation": 1, "creationTimestamp": TIME, "labels": {"app": format!("app-{}", number % 7)},
            "managedFields": [{"manager": "owner", "operation": "Apply", "apiVersion": format!("{GROUP}/v1"),
                "time": TIME, "fieldsType": "FieldsV1", "fieldsV1": owned}],
        },
        "spec": {
            "image": format!("registry.example.com/team/app-{number}:v1"), "text": "x".repeat(60),
            "replicas": number % 100, "selector": {"app": format!("app-{number}")},
        },
    });
    (key, object)
}
