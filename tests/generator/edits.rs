//! Edits of schemas, weighted like the edits of CRD upgrades.

use serde_json::{Map, Value, json};

use super::Random;
use super::reshapes::reshape;
use super::schemas::{self, NAMES, PATTERNS};
use super::values;

/// `schema` with one or two edits somewhere inside.
pub fn edited(random: &mut Random, schema: &Value) -> Value {
    let mut schema = schema.clone();
    for _ in 0..1 + random.below(2) {
        // Some edits do not apply to the node that they are tried on.
        for _ in 0..8 {
            let before = schema.clone();
            let at = random.below(nodes(&schema));
            if let Some(node) = nth(&mut schema, &mut { at }) {
                edit(random, node);
            }
            if schema != before {
                break;
            }
        }
    }
    schema
}

/// The nodes of the schema's structure.
fn nodes(schema: &Value) -> usize {
    let properties = schema.get("properties").and_then(Value::as_object);
    1 + properties.into_iter().flat_map(Map::values).map(nodes).sum::<usize>()
        + ["items", "additionalProperties"]
            .into_iter()
            .filter_map(|keyword| schema.get(keyword))
            .filter(|below| below.is_object())
            .map(nodes)
            .sum::<usize>()
}

fn nth<'v>(schema: &'v mut Value, at: &mut usize) -> Option<&'v mut Value> {
    if *at == 0 {
        return Some(schema);
    }
    *at -= 1;
    for (keyword, below) in schema.as_object_mut()? {
        let found = match (keyword.as_str(), below) {
            ("properties", Value::Object(properties)) => properties.values_mut().find_map(|kid| nth(kid, at)),
            ("items" | "additionalProperties", below @ Value::Object(_)) => nth(below, at),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

fn edit(random: &mut Random, node: &mut Value) {
    let kind = node.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match random.below(26) {
        20.. => reshape(random, node),
        0 => node["description"] = json!("what it is for"),
        1 | 2 => toggle(node, "nullable", json!(true), random),
        3 => default(random, node),
        4 | 5 => enumeration(random, node),
        6 => combine(random, node),
        7 => change_type(random, node),
        8 => rules(random, node),
        _ => match kind.as_str() {
            "string" => string(random, node),
            "integer" | "number" => number(random, node),
            "object" => object(random, node),
            "array" => array(random, node),
            _ => toggle(node, "pattern", json!(random.pick(&PATTERNS).0), random),
        },
    }
}

/// Adds a keyword if it is absent, and otherwise removes or changes it.
fn toggle(node: &mut Value, keyword: &str, value: Value, random: &mut Random) {
    if node.get(keyword).is_some() && random.chance(60) {
        node.as_object_mut().map(|node| node.remove(keyword));
    } else {
        node[keyword] = value;
    }
}

fn default(random: &mut Random, node: &mut Value) {
    let value = values::value(random, node);
    if !value.is_null() {
        toggle(node, "default", value, random);
    }
}

fn enumeration(random: &mut Random, node: &mut Value) {
    if node.get("type").is_none() || node.get("x-kubernetes-embedded-resource").is_some() {
        return;
    }
    let is_usual = matches!(node.get("type").and_then(Value::as_str), Some("string" | "integer"));
    if !is_usual && !random.rare(100) {
        return;
    }
    let value = {
        let mut free = node.clone();
        free.as_object_mut().map(|free| free.remove("enum"));
        values::value(random, &free)
    };
    match node.get_mut("enum").and_then(Value::as_array_mut) {
        Some(options) if random.chance(40) && options.len() > 1 => {
            options.pop();
        }
        Some(options) if random.chance(70) => {
            if !options.contains(&value) {
                options.push(value);
            }
        }
        Some(_) => {
            node.as_object_mut().map(|node| node.remove("enum"));
        }
        None => node["enum"] = json!([value]),
    }
}

fn combine(random: &mut Random, node: &mut Value) {
    let keyword = *random.pick(&["anyOf", "oneOf", "allOf"]);
    match node.get_mut(keyword).and_then(Value::as_array_mut) {
        Some(branches) if random.chance(50) && branches.len() > 1 => {
            branches.pop();
        }
        Some(branches) if random.chance(50) => branches.reverse(),
        Some(_) => {
            node.as_object_mut().map(|node| node.remove(keyword));
        }
        None => schemas::combine(random, node),
    }
}

fn change_type(random: &mut Random, node: &mut Value) {
    let Some(kind) = node.get("type").and_then(Value::as_str) else { return };
    match kind {
        "integer" => node["type"] = json!("number"),
        "number" => node["type"] = json!("integer"),
        "string" if random.chance(60) => {
            node.as_object_mut().map(|node| node.remove("type"));
            node["x-kubernetes-int-or-string"] = json!(true);
        }
        "boolean" => node["type"] = json!("string"),
        "object" => toggle(node, "x-kubernetes-preserve-unknown-fields", json!(true), random),
        _ => {}
    }
}

fn string(random: &mut Random, node: &mut Value) {
    match random.below(4) {
        0 => toggle(node, "pattern", json!(random.pick(&PATTERNS).0), random),
        1 => toggle(node, "format", json!(random.format()), random),
        2 => toggle(node, "maxLength", json!(random.below(8)), random),
        _ => toggle(node, "minLength", json!(random.below(4)), random),
    }
}

fn number(random: &mut Random, node: &mut Value) {
    match random.below(5) {
        0 => toggle(node, "minimum", json!(random.below(10)), random),
        1 => toggle(node, "maximum", json!(random.below(20)), random),
        2 => toggle(node, "exclusiveMinimum", json!(true), random),
        3 if random.rare(100) => toggle(node, "multipleOf", json!(random.pick(&[2, 3, 4, 6])), random),
        _ => toggle(node, "format", json!(random.pick(&["int32", "int64", "float", "double"])), random),
    }
}

fn object(random: &mut Random, node: &mut Value) {
    match random.below(12) {
        0..=3 if node.get("additionalProperties").is_none() => {
            let field = schemas::node(random, 1);
            node["properties"][*random.pick(&NAMES)] = field;
        }
        4 => {
            let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) else { return };
            if let Some(name) = properties.keys().nth(random.below(properties.len())).cloned() {
                properties.remove(&name);
            }
        }
        5..=7 => {
            let mut names: Vec<Value> = node.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
            if random.chance(50) && !names.is_empty() {
                names.remove(0);
            } else {
                let known =
                    node.get("properties").and_then(Value::as_object).map(|p| p.keys().cloned().collect::<Vec<_>>());
                let name = known.and_then(|known| known.get(random.below(known.len())).cloned());
                let name = json!(name.unwrap_or_else(|| (*random.pick(&NAMES)).to_owned()));
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            match names.is_empty() {
                true => {
                    node.as_object_mut().map(|node| node.remove("required"));
                }
                false => node["required"] = Value::Array(names),
            }
        }
        8 => toggle(node, "maxProperties", json!(1 + random.below(3)), random),
        9 => toggle(node, "minProperties", json!(random.below(3)), random),
        10 => toggle(node, "x-kubernetes-map-type", json!("atomic"), random),
        _ => {
            let Some(Value::Object(properties)) = node.get("properties").cloned() else { return };
            if node.get("x-kubernetes-embedded-resource").is_some() {
                return;
            }
            if let Some(entry) = properties.values().next() {
                node["additionalProperties"] = entry.clone();
                node.as_object_mut().map(|node| node.remove("properties"));
            }
        }
    }
}

fn array(random: &mut Random, node: &mut Value) {
    match random.below(4) {
        0 => toggle(node, "maxItems", json!(random.below(4)), random),
        1 => toggle(node, "minItems", json!(random.below(3)), random),
        _ => {
            let scalar = node["items"].get("type").is_some_and(|kind| kind != "object" && kind != "array");
            let known = node.get("x-kubernetes-list-type").cloned();
            if let Some(node) = node.as_object_mut() {
                node.remove("x-kubernetes-list-type");
                node.remove("x-kubernetes-list-map-keys");
            }
            if known.is_none() {
                node["x-kubernetes-list-type"] =
                    json!(if scalar { *random.pick(&["set", "atomic"]) } else { "atomic" });
            }
        }
    }
}

/// Adds, removes or rewrites a rule.
fn rules(random: &mut Random, node: &mut Value) {
    if node.get("x-kubernetes-validations").is_some() && random.chance(50) {
        node.as_object_mut().map(|node| node.remove("x-kubernetes-validations"));
        return;
    }
    if let Some(rule) = rule(random, node) {
        node["x-kubernetes-validations"] = json!([{"rule": rule, "message": "no"}]);
    }
}

/// A rule that is valid for the node.
pub fn rule(random: &mut Random, node: &Value) -> Option<String> {
    let names: Vec<&String> = node.get("properties").and_then(Value::as_object)?.keys().collect();
    let names: Vec<&str> = names.into_iter().map(String::as_str).filter(|name| !name.contains(['-', '.'])).collect();
    if names.is_empty() {
        return None;
    }
    let (a, b) = (*random.pick(&names), *random.pick(&names));
    Some(match random.below(6) {
        0 => format!("has(self.{a})"),
        1 => format!("!has(self.{a})"),
        2 => format!("!(has(self.{a}) && has(self.{b}))"),
        3 => format!("has(self.{a}) || has(self.{b})"),
        4 => format!("has(self.{a}) == has(self.{b})"),
        _ => format!("(has(self.{a}) ? 1 : 0) + (has(self.{b}) ? 1 : 0) == 1"),
    })
}
