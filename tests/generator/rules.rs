//! Schemas with CEL rules, from a grammar based on the rules of real CRDs, and values for them.
//!
//! Most expressions are well typed. Some cannot be evaluated for some values: a field is absent, an index is out of
//! range, an int-or-string has the other type. The caller drops rules that the server does not accept.

use serde_json::{Map, Value, json};

use super::Random;
use super::grammar::Grammar;
use super::values;

/// Property names; rules must escape some of them.
pub const NAMES: [(&str, &str); 8] = [
    ("a", "a"),
    ("b", "b"),
    ("c", "c"),
    ("list", "list"),
    ("f-g", "f__dash__g"),
    ("x.y", "x__dot__y"),
    ("namespace", "__namespace__"),
    ("s__t", "s__underscores__t"),
];

pub const TEXTS: [&str; 24] = [
    "",
    "a",
    "b",
    "abc",
    "A-b",
    "é日",
    "x y",
    "1",
    "42",
    "-7",
    "1.5",
    "10Gi",
    "500m",
    "https://a.example:8080/p?q=1",
    "/path",
    "10.0.0.1",
    "::1",
    "10.0.0.0/8",
    "1.2.3",
    "v1.2.3-rc.1",
    "1h30m",
    "2024-02-29T00:00:00Z",
    "a.b.c",
    "true",
];

/// A schema for one field.
pub fn ruled_schema(random: &mut Random) -> Value {
    let mut schema = object(random, 2);
    rules(random, &mut schema);
    schema
}

/// A value for such a schema, usually one of a valid type and within the bounds.
pub fn ruled_value(random: &mut Random, schema: &Value) -> Value {
    let mut value = values::value(random, schema);
    let mut known = Vec::new();
    literals(schema, &mut known);
    fill(random, schema, &known, &mut value);
    if random.chance(15) { values::broken(random, &value) } else { value }
}

/// The literals in the rules of a schema: values should often be equal to what rules compare with.
fn literals(schema: &Value, found: &mut Vec<String>) {
    for rule in schema.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten() {
        let text = rule["rule"].as_str().unwrap_or_default();
        for quote in ['\'', '"'] {
            found.extend(text.split(quote).skip(1).step_by(2).map(str::to_owned));
        }
        found.extend(text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty()).map(str::to_owned));
    }
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let below = ["items", "additionalProperties"].into_iter().filter_map(|keyword| schema.get(keyword));
    properties.chain(below).for_each(|schema| literals(schema, found));
}

/// Replaces strings with texts that string functions can process.
fn fill(random: &mut Random, schema: &Value, literals: &[String], value: &mut Value) {
    let literal = random.chance(50).then(|| literals.get(random.below(literals.len()))).flatten();
    match value {
        Value::Number(number) if number.is_i64() => {
            if let Some(near) = literal.and_then(|literal| literal.parse::<i64>().ok()) {
                *value = json!(near.saturating_add(random.below(3) as i64 - 1));
            }
        }
        Value::String(text) if schema.get("format").is_none() && schema.get("enum").is_none() => {
            *text = literal.cloned().unwrap_or_else(|| (*random.pick(&TEXTS)).to_owned());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(random, &schema["items"], literals, item)),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                let of = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
                fill(random, of, literals, value);
            }
        }
        _ => {}
    }
}

fn leaf(random: &mut Random) -> Value {
    match random.below(11) {
        0..=2 => json!({"type": "string", "maxLength": 24}),
        3 | 4 => json!({"type": "integer"}),
        5 => json!({"type": "number"}),
        6 => json!({"type": "boolean"}),
        7 => json!({"x-kubernetes-int-or-string": true, "maxLength": 20}),
        8 => {
            json!({"type": "string", "format": random.pick(&["date-time", "duration", "byte", "date"]), "maxLength": 24})
        }
        9 => json!({"type": "string", "enum": ["a", "b", "abc"]}),
        _ => json!({"type": "string", "maxLength": 24, "nullable": true}),
    }
}

fn node(random: &mut Random, depth: usize) -> Value {
    if depth == 0 {
        return leaf(random);
    }
    match random.below(9) {
        0 | 1 => object(random, depth - 1),
        2 => json!({"type": "array", "maxItems": 4, "items": leaf(random)}),
        3 => json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "set", "items":
            {"type": random.pick(&["string", "integer"]), "maxLength": 20}}),
        4 => {
            let mut item = object(random, 0);
            item["properties"]["k"] = json!({"type": "string", "maxLength": 20});
            item["required"] = json!(["k"]);
            if random.chance(50) {
                rules(random, &mut item);
            }
            json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                "items": item})
        }
        5 => json!({"type": "array", "maxItems": 4, "items": object(random, 0)}),
        6 => json!({"type": "object", "maxProperties": 4, "additionalProperties": leaf(random)}),
        _ => leaf(random),
    }
}

fn object(random: &mut Random, depth: usize) -> Value {
    let mut properties = Map::new();
    for _ in 0..2 + random.below(4) {
        let mut schema = node(random, depth);
        if random.chance(15) {
            rules(random, &mut schema);
        }
        properties.insert(random.pick(&NAMES).0.to_owned(), schema);
    }
    json!({"type": "object", "properties": properties})
}

/// Gives a node one or two rules.
fn rules(random: &mut Random, schema: &mut Value) {
    let rules: Vec<Value> = (0..1 + random.below(2)).map(|_| rule(random, schema)).collect();
    schema["x-kubernetes-validations"] = Value::Array(rules);
}

fn rule(random: &mut Random, schema: &Value) -> Value {
    let this = ("self".to_owned(), schema.clone());
    let mut scope = vec![this.clone()];
    let mut rule = json!({});
    let (mut transition, mut always) = (None, false);
    match random.below(10) {
        0 | 1 => {
            scope.push(("oldSelf".to_owned(), schema.clone()));
            transition = Some("self == oldSelf || ");
        }
        2 => {
            always = true;
            scope.push(("oldSelf.value()".to_owned(), schema.clone()));
            rule["optionalOldSelf"] = json!(true);
            transition = Some("!oldSelf.hasValue() || ");
        }
        _ => {}
    }
    let body = Grammar { scope: scope.clone(), bound: 0 }.boolean(random, 2);
    rule["rule"] = json!(format!("{}{body}", transition.filter(|_| always || random.chance(60)).unwrap_or("")));
    if random.chance(30) {
        rule["message"] = json!(" must be right ");
    }
    if random.chance(25) {
        let text = Grammar { scope: vec![this], bound: 0 }.text(random, 2);
        rule["messageExpression"] = json!(text);
    }
    if random.chance(30) {
        let reasons = ["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"];
        rule["reason"] = json!(random.pick(&reasons));
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object)
        && random.chance(25)
        && let Some(name) = properties.keys().nth(random.below(properties.len()))
    {
        rule["fieldPath"] =
            if name.contains(['.', '-', '_']) { json!(format!("['{name}']")) } else { json!(format!(".{name}")) };
    }
    rule
}
