//! Edits of structure: the type of value that a node accepts, which fields it keeps, and how it identifies items.

use serde_json::{Map, Value, json};

use super::Random;
use super::schemas::{self, NAMES};
use super::values;

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const LIST_TYPE: &str = "x-kubernetes-list-type";
const LIST_KEYS: &str = "x-kubernetes-list-map-keys";

/// Changes a node's structure.
pub(super) fn reshape(random: &mut Random, node: &mut Value) {
    match random.below(16) {
        0 => into_map(random, node),
        1 => into_object(random, node),
        2 => {
            // An open object: no field is described, so all fields are dropped.
            if node["type"] == "object" {
                remove(node, &["properties", "additionalProperties", "required", PRESERVE, "default", "enum"]);
            }
        }
        3 | 4 => keep_or_drop(random, node),
        5 => opened(random, node),
        6 => describe(random, node),
        7 => embed(random, node),
        8 => int_or_string(random, node),
        9 | 10 => list_type(random, node),
        11 => {
            let with = schemas::node(random, 1);
            *node = with;
        }
        12 => field_default(random, node),
        13 => negate(random, node),
        14 => {
            remove(node, &["enum", "default", "format"]);
            node["type"] = json!(random.pick(&["string", "integer", "number", "boolean", "object", "array"]));
            if node["type"] == "array" && node.get("items").is_none() {
                node["items"] = schemas::node(random, 0);
            }
        }
        _ => inner(random, node),
    }
}

fn remove(node: &mut Value, keywords: &[&str]) {
    if let Some(node) = node.as_object_mut() {
        keywords.iter().for_each(|keyword| drop(node.shift_remove(*keyword)));
    }
}

/// Turns fields into entries of a map, or changes the schema of a map's entries.
fn into_map(random: &mut Random, node: &mut Value) {
    if node["type"] != "object" || node.get(EMBEDDED).is_some() {
        return;
    }
    let field = node["properties"].as_object().and_then(|fields| fields.values().next()).cloned();
    let entry = match random.below(6) {
        0 => json!(true),
        1 => json!({}),
        2 => json!({PRESERVE: true}),
        3 => json!({"type": "string", "nullable": true}),
        4 => json!({"type": "object"}),
        _ => field.unwrap_or_else(|| schemas::node(random, 1)),
    };
    remove(node, &["properties", "default", "enum"]);
    node["additionalProperties"] = entry;
    if random.chance(70) {
        remove(node, &[PRESERVE]);
    }
}

/// Turns entries of a map into fields.
fn into_object(random: &mut Random, node: &mut Value) {
    let Some(entry) = node.get("additionalProperties").cloned() else { return };
    remove(node, &["additionalProperties", "default", "enum"]);
    let field = if entry.is_object() { entry } else { schemas::node(random, 1) };
    if random.chance(80) {
        node["properties"] = json!({*random.pick(&NAMES): field, *random.pick(&NAMES): schemas::node(random, 0)});
    }
    if random.chance(40) {
        node[PRESERVE] = json!(true);
    }
}

/// Starts to preserve unknown fields, or stops it.
fn keep_or_drop(random: &mut Random, node: &mut Value) {
    if node.get(PRESERVE).is_some() {
        remove(node, &[PRESERVE]);
        if node.get("type").is_none() {
            node["type"] = json!(random.pick(&["object", "string"]));
        }
    } else {
        node[PRESERVE] = json!(true);
        if random.chance(30) {
            remove(node, &["type", "enum"]);
        }
    }
}

/// Removes every constraint on a value.
fn opened(random: &mut Random, node: &mut Value) {
    let nullable = node.get("nullable").cloned();
    *node = json!({PRESERVE: true});
    if random.chance(40) {
        node["type"] = json!("object");
    }
    if let Some(nullable) = nullable.filter(|_| random.chance(70)) {
        node["nullable"] = nullable;
    }
}

/// Adds a schema for a field that was unknown before; some of these schemas accept every existing value.
fn describe(random: &mut Random, node: &mut Value) {
    if node.get(PRESERVE).is_none() || node.get("type").is_some_and(|kind| kind != "object") {
        return;
    }
    let anything = json!({PRESERVE: true, "nullable": true});
    let field = match random.below(8) {
        0 | 1 => anything,
        2 => json!({PRESERVE: true, "nullable": true, "properties": {*random.pick(&NAMES): schemas::node(random, 1)}}),
        3 => json!({PRESERVE: true, "nullable": true, "properties": {*random.pick(&NAMES): anything}}),
        4 => json!({PRESERVE: true, "type": "object"}),
        _ => schemas::node(random, 1),
    };
    if random.chance(80) {
        node["properties"][*random.pick(&NAMES)] = field;
    } else if node.get("properties").is_none() {
        node["additionalProperties"] = field;
    }
}

fn embed(random: &mut Random, node: &mut Value) {
    if node.get(EMBEDDED).is_some() {
        remove(node, &[EMBEDDED]);
        if node.get("properties").is_none() && random.chance(50) {
            node["properties"] = json!({"kind": {"type": "string"}, "metadata": {"type": "object"}});
        }
    } else if node["type"] == "object" && node.get("additionalProperties").is_none() {
        node[EMBEDDED] = json!(true);
        if node.get("properties").is_none() {
            node[PRESERVE] = json!(true);
        }
        if node["properties"].get("kind").is_some() {
            node["properties"]["kind"] = json!({"type": "string"});
        }
        remove(node, &["default", "enum"]);
    }
}

fn int_or_string(random: &mut Random, node: &mut Value) {
    if node.get(INT_OR_STRING).is_some() {
        remove(node, &[INT_OR_STRING, "anyOf", "allOf", "default", "enum"]);
        node["type"] = json!(random.pick(&["string", "integer", "number"]));
    } else if matches!(node["type"].as_str(), Some("string" | "integer")) {
        remove(node, &["type", "anyOf", "allOf"]);
        node[INT_OR_STRING] = json!(true);
        if random.chance(50) {
            node["anyOf"] = json!([{"type": "integer"}, {"type": "string"}]);
        }
    }
}

/// Changes how items of a list are identified.
fn list_type(random: &mut Random, node: &mut Value) {
    if node["type"] != "array" {
        return;
    }
    let fields: Vec<String> = match node["items"]["properties"].as_object() {
        Some(fields) => {
            let is_scalar =
                |field: &Value| matches!(field["type"].as_str(), Some("string" | "integer" | "boolean" | "number"));
            fields.iter().filter(|(_, field)| is_scalar(field)).map(|(name, _)| name.clone()).collect()
        }
        None => Vec::new(),
    };
    if random.chance(25) {
        return remove(node, &[LIST_TYPE, LIST_KEYS]);
    }
    if fields.is_empty() {
        node[LIST_TYPE] = json!(random.pick(&["set", "atomic"]));
        return remove(node, &[LIST_KEYS]);
    }
    let mut keys: Vec<String> = fields.iter().filter(|_| random.chance(50)).cloned().collect();
    if keys.is_empty() {
        keys.push(random.pick(&fields).clone());
    }
    let mut required: Vec<String> = node["items"]["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    for key in &keys {
        let has_default = node["items"]["properties"][key].get("default").is_some();
        if !has_default && random.chance(30) {
            node["items"]["properties"][key]["default"] = match node["items"]["properties"][key]["type"].as_str() {
                Some("string") => json!("z"),
                Some("boolean") => json!(true),
                _ => json!(7),
            };
        } else if !has_default && !required.contains(key) {
            required.push(key.clone());
        }
        remove(&mut node["items"]["properties"][key], &["nullable"]);
    }
    if !required.is_empty() {
        node["items"]["required"] = json!(required);
    }
    node[LIST_TYPE] = json!("map");
    node[LIST_KEYS] = json!(keys);
}

/// A default nested in another default: of the object, of one of its fields, or of both.
fn field_default(random: &mut Random, node: &mut Value) {
    let Some(fields) = node.get("properties").and_then(Value::as_object) else { return };
    let names: Vec<String> = fields.keys().cloned().collect();
    if names.is_empty() {
        return;
    }
    let name = random.pick(&names).clone();
    if random.chance(50) {
        let value = values::value(random, &node["properties"][&name]);
        if !value.is_null() {
            node["properties"][&name]["default"] = value;
        }
    }
    if random.chance(40) {
        node["default"] = json!({});
    }
    if random.chance(30) {
        let mut required: Vec<Value> = node["required"].as_array().cloned().unwrap_or_default();
        if !required.contains(&json!(name)) {
            required.push(json!(name));
            node["required"] = json!(required);
        }
    }
}

fn negate(random: &mut Random, node: &mut Value) {
    if node.get("not").is_some() && random.chance(60) {
        return remove(node, &["not"]);
    }
    let names: Vec<String> =
        node.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect();
    let not = match node["type"].as_str() {
        Some("object") if !names.is_empty() => match random.below(3) {
            0 => json!({"required": [random.pick(&names)]}),
            1 => json!({"anyOf": [{"required": [random.pick(&names)]}, {"required": [random.pick(&names)]}]}),
            _ => json!({"required": [random.pick(&names), random.pick(&names)]}),
        },
        Some("array") => json!({"minItems": random.below(4)}),
        Some("integer" | "number") => json!({"maximum": random.below(4)}),
        Some("string") => match random.below(3) {
            0 => json!({"pattern": "^a"}),
            1 => json!({"enum": ["a", ""]}),
            _ => json!({"maxLength": random.below(3)}),
        },
        _ => json!({"enum": [values::value(random, node)]}),
    };
    node["not"] = not;
}

/// Changes something in one branch of `anyOf` or a similar keyword, at any depth.
fn inner(random: &mut Random, node: &mut Value) {
    let keyword = *random.pick(&["anyOf", "oneOf", "allOf"]);
    let Some(branches) = node.get_mut(keyword).and_then(Value::as_array_mut) else { return };
    if branches.is_empty() {
        return;
    }
    let at = random.below(branches.len());
    let branch = &mut branches[at];
    match branch.get_mut("properties").and_then(Value::as_object_mut).and_then(|fields| fields.values_mut().next()) {
        Some(field) if random.chance(50) => field["minLength"] = json!(random.below(3)),
        _ => match random.below(5) {
            0 => remove(branch, &["required", "pattern", "enum"]),
            1 => branch["required"] = json!([random.pick(&NAMES)]),
            2 => branch["minimum"] = json!(random.below(5)),
            3 => branch["not"] = json!({"required": [random.pick(&NAMES)]}),
            _ => branch["maxLength"] = json!(random.below(6)),
        },
    }
}
