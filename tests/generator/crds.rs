//! CRDs that a server accepts.

use serde_json::{Map, Value, json};

use super::{Random, schema};

/// A CRD of this group and kind, with one to three versions. A server accepts most of these.
pub fn crd(random: &mut Random, group: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let count = 1 + random.below(3).saturating_sub(random.below(3));
    let storage = random.below(count);
    let common = root(random);
    let versions: Vec<Value> = (0..count)
        .map(|at| {
            let schema = if random.chance(50) { common.clone() } else { root(random) };
            let mut version = json!({"name": format!("v{}", at + 1), "served": true, "storage": at == storage,
                "schema": {"openAPIV3Schema": schema}});
            if random.chance(40) {
                version["subresources"] = json!({"status": {}});
            }
            if random.chance(20) {
                version["subresources"]["scale"] =
                    json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
            }
            if random.chance(20) {
                version["additionalPrinterColumns"] = json!([{"name": "A", "type": "string", "jsonPath": ".spec.a"}]);
            }
            if random.chance(15) {
                version["selectableFields"] = json!([{"jsonPath": ".spec.a"}]);
            }
            version
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": if random.chance(50) { "Namespaced" } else { "Cluster" },
            "names": {"kind": kind, "plural": plural}, "versions": versions},
    })
}

fn root(random: &mut Random) -> Value {
    let mut fields = Map::new();
    for at in 0..1 + random.below(4) {
        fields.insert(format!("f{at}"), schema(random));
    }
    fields.insert("a".to_owned(), json!({"type": "string"}));
    fields.insert("replicas".to_owned(), json!({"type": "integer"}));
    if random.chance(40) {
        fields.insert("l".to_owned(), list(random));
    }
    if random.chance(30) {
        fields.insert("m".to_owned(), json!({"type": "object", "additionalProperties": schema(random)}));
    }
    if random.chance(40) {
        let mut ruled = super::ruled_schema(random);
        loosen(random, &mut ruled);
        fields.insert("r".to_owned(), ruled);
    }
    if random.chance(15) {
        fields.insert(
            "e".to_owned(),
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true}),
        );
    }
    let mut root = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}}}});
    if random.chance(30) {
        root["properties"]["metadata"] = json!({"type": "object"});
        root["properties"]["kind"] = json!({"type": "string"});
    }
    root
}

/// Removes limits or raises them, so that rules can cost more, and changes the size of some values with a default.
pub(super) fn loosen(random: &mut Random, schema: &mut Value) {
    let Some(keywords) = schema.as_object_mut() else { return };
    for keyword in ["maxItems", "maxLength", "maxProperties"] {
        if keywords.contains_key(keyword) && random.chance(70) {
            match random.chance(35) {
                true => keywords.shift_remove(keyword),
                false => keywords.insert(keyword.to_owned(), json!(limit(random))),
            };
        }
    }
    if let Some(properties) = keywords.get("properties").and_then(Value::as_object).cloned()
        && random.chance(40)
    {
        let required: Vec<&String> = properties.keys().filter(|_| random.chance(60)).collect();
        let mut all = keywords.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        all.extend(required.into_iter().map(|name| json!(name)));
        keywords.insert("required".to_owned(), json!(all));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(below) = keywords.get_mut(keyword) {
            loosen(random, below);
        }
    }
    for below in keywords.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
        loosen(random, below);
    }
}

/// Maximum sizes of every order of magnitude.
pub(super) fn limit(random: &mut Random) -> i64 {
    let scale = 10_i64.pow(random.below(7) as u32);
    scale * (1 + random.below(9) as i64)
}

fn list(random: &mut Random) -> Value {
    match random.below(3) {
        0 => json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        1 => json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}}),
        _ => json!({"type": "array", "maxItems": random.below(30), "items": schema(random)}),
    }
}

/// The positions of all schemas in a CRD, as JSON pointers.
pub fn schemas(crd: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for at in 0..crd["spec"]["versions"].as_array().map_or(0, Vec::len) {
        let pointer = format!("/spec/versions/{at}/schema/openAPIV3Schema");
        if let Some(schema) = crd.pointer(&pointer) {
            collect(schema, pointer, &mut found);
        }
    }
    found
}

fn collect(schema: &Value, pointer: String, found: &mut Vec<String>) {
    if !schema.is_object() {
        return;
    }
    for (name, below) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        collect(below, format!("{pointer}/properties/{}", name.replace('~', "~0").replace('/', "~1")), found);
    }
    for keyword in ["items", "additionalProperties", "not"] {
        collect(&schema[keyword], format!("{pointer}/{keyword}"), found);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (at, below) in schema[keyword].as_array().into_iter().flatten().enumerate() {
            collect(below, format!("{pointer}/{keyword}/{at}"), found);
        }
    }
    found.push(pointer);
}
