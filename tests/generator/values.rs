//! Values for a schema, and ways to break them.

use serde_json::{Map, Value, json};

use super::Random;
use super::schemas::{FORMATS, NAMES, PATTERNS};

/// A value that is usually valid.
pub fn value(random: &mut Random, schema: &Value) -> Value {
    if let Some(options) = schema.get("enum").and_then(Value::as_array)
        && random.chance(85)
        && !options.is_empty()
    {
        return random.pick(options).clone();
    }
    if schema.get("nullable") == Some(&json!(true)) && random.chance(10) {
        return Value::Null;
    }
    if schema.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        return if random.chance(50) { number(random, schema, true) } else { json!(string(random, schema)) };
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!(string(random, schema)),
        Some("integer") => number(random, schema, true),
        Some("number") => number(random, schema, false),
        Some("boolean") => json!(random.chance(50)),
        Some("object") => object(random, schema),
        Some("array") => array(random, schema),
        _ => anything(random, 2),
    }
}

fn string(random: &mut Random, schema: &Value) -> String {
    if let Some(format) = schema.get("format").and_then(Value::as_str)
        && let Some((_, texts)) = FORMATS.iter().find(|(name, _)| *name == format)
    {
        return if random.chance(65) { texts[0].to_owned() } else { (*random.pick(texts)).to_owned() };
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Some((_, text)) = PATTERNS.iter().find(|(name, _)| *name == pattern)
        && random.chance(75)
    {
        return (*text).to_owned();
    }
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0) as usize;
    let text = *random.pick(&["a", "abc", "é日", "", "ab\"c<", "x y", "A", "1", "\u{1}\u{200b}"]);
    let mut text = text.to_owned();
    while text.chars().count() < least && random.chance(95) {
        text.push('q');
    }
    text
}

fn number(random: &mut Random, schema: &Value, integer: bool) -> Value {
    let bound = schema.get("minimum").or_else(|| schema.get("maximum")).and_then(Value::as_f64);
    let near = bound.filter(|b| b.abs() < 1e15).unwrap_or(0.0) + random.below(5) as f64 - 2.0;
    if integer || random.chance(40) {
        return match random.below(12) {
            0 => json!(near.trunc()),
            1 => json!(2_147_483_648i64),
            2 => json!(9_007_199_254_740_993i64),
            _ => json!(near.trunc() as i64),
        };
    }
    match random.below(9) {
        0 => json!(0.3),
        1 => json!(1e39),
        2 => json!(near + 0.25),
        3 => json!(1e21),
        4 => json!(-0.7),
        5 => json!(1.5e-7),
        6 => json!(*random.pick(&[0.123_456_71, 0.123_456_72])),
        _ => json!(near + 0.5),
    }
}

fn object(random: &mut Random, schema: &Value) -> Value {
    let mut map = Map::new();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if random.chance(if required.contains(&name.as_str()) { 95 } else { 55 }) {
            map.insert(name.clone(), value(random, child));
        }
    }
    if let Some(entry) = schema.get("additionalProperties") {
        for _ in 0..random.below(3) {
            let name = *random.pick(&NAMES);
            map.insert(name.to_owned(), if entry.is_object() { value(random, entry) } else { anything(random, 2) });
        }
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true)) && random.chance(40) {
        let name = *random.pick(&["unknown", "a", "b", "c", "d", "e", "f-g", "x.y"]);
        map.entry(name).or_insert_with(|| anything(random, 2));
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&json!(true)) {
        resource(random, &mut map);
    }
    Value::Object(map)
}

fn resource(random: &mut Random, map: &mut Map<String, Value>) {
    if random.chance(92) {
        map.insert("apiVersion".into(), json!(random.pick(&["v1", "apps/v1", "v1", "apps/v1", "a/b/c", ""])));
    }
    if random.chance(92) {
        map.insert("kind".into(), json!(random.pick(&["Pod", "Pod", "Deployment", "a_b", ""])));
    }
    if random.chance(60) {
        let mut metadata = json!({"name": random.pick(&["x", "a/b", "..", "A", ""])});
        if random.chance(30) {
            metadata["labels"] = json!({*random.pick(&["a", "b/c", "-", "a/b/c"]): random.pick(&["x", "", "-x", "é"])});
        }
        if random.chance(20) {
            metadata["annotations"] = json!({*random.pick(&["a", "A.b/C", "-"]): "any thing"});
        }
        if random.chance(40) {
            let (field, value) = random.pick(&odd_metadata()).clone();
            metadata[field] = value;
        }
        if random.chance(15) {
            metadata["namespace"] = json!(random.pick(&["x", "X", "a.b"]));
        }
        if random.chance(15) {
            metadata["creationTimestamp"] = random.pick(&[Value::Null, json!("2024-01-01T00:00:00Z")]).clone();
        }
        if random.chance(10) {
            metadata["finalizers"] = json!([random.pick(&["a", "a/b", "a b"])]);
        }
        if random.chance(15) {
            metadata["other"] = json!({"dropped": true});
        }
        map.insert("metadata".into(), metadata);
    }
}

/// Fields of metadata; some are invalid, and some are in a form that the server normalises.
fn odd_metadata() -> [(&'static str, Value); 18] {
    let owner = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true});
    let event = json!({"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1", "blockOwnerDeletion": false});
    [
        ("generation", json!(1.0)),
        ("generation", json!(-1)),
        ("deletionGracePeriodSeconds", json!(0)),
        ("deletionGracePeriodSeconds", json!("0")),
        ("creationTimestamp", json!("2024-01-01T00:00:00.5+01:00")),
        ("deletionTimestamp", json!("2024-01-01T1:02:03Z")),
        ("deletionTimestamp", json!("yesterday")),
        ("labels", json!({"a": 1})),
        ("labels", json!({"a": null})),
        ("annotations", json!({})),
        ("finalizers", json!(["orphan", "foregroundDeletion"])),
        ("finalizers", json!("orphan")),
        ("ownerReferences", json!([owner, owner])),
        ("ownerReferences", json!([event, {"apiVersion": "a/b/c", "kind": "A", "zz": 1}])),
        (
            "managedFields",
            json!([{"operation": "Update", "time": "2024-01-01T00:00:00+02:00", "fieldsV1": {"f:a": {}}}]),
        ),
        ("managedFields", json!([{"operation": "Foo", "fieldsType": "X", "manager": "\u{1}"}, null])),
        ("resourceVersion", json!("7")),
        ("generateName", json!("a/b-")),
    ]
}

fn array(random: &mut Random, schema: &Value) -> Value {
    let Some(item) = schema.get("items") else { return json!([]) };
    let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) as usize;
    let count = least + random.below(4);
    Value::Array((0..count).map(|_| value(random, item)).collect())
}

fn anything(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 7 } else { 9 }) {
        0 => Value::Null,
        1 => json!(random.chance(50)),
        2 => json!(random.below(10)),
        3 => json!(1.5),
        4 => json!("text"),
        5 => json!(2.0),
        6 => json!(-1),
        7 => Value::Array((0..random.below(3)).map(|_| anything(random, depth - 1)).collect()),
        _ => Value::Object(
            (0..random.below(3)).map(|_| ((*random.pick(&NAMES)).to_owned(), anything(random, depth - 1))).collect(),
        ),
    }
}

/// `value` with one change at any depth.
pub fn broken(random: &mut Random, value: &Value) -> Value {
    let mut value = value.clone();
    change(random, &mut value);
    value
}

fn change(random: &mut Random, value: &mut Value) {
    let go_deeper = random.chance(75);
    match value {
        Value::Object(map) if go_deeper && !map.is_empty() => {
            let at = random.below(map.len());
            let key = map.keys().nth(at).cloned().unwrap_or_default();
            if random.chance(12) {
                map.remove(&key);
            } else if let Some(inner) = map.get_mut(&key) {
                change(random, inner);
            }
        }
        Value::Array(items) if go_deeper && !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(6) {
                0 => {
                    items.remove(at);
                }
                1 => items.push(items[at].clone()),
                2 => items.reverse(),
                _ => change(random, &mut items[at]),
            }
        }
        Value::Object(map) if random.chance(50) => {
            let name = *random.pick(&["a", "b", "c", "new", "k"]);
            map.insert(name.to_owned(), anything(random, 1));
        }
        Value::String(text) if random.chance(60) => match random.below(4) {
            0 => text.push('é'),
            1 => text.clear(),
            2 => *text = text.to_uppercase(),
            _ => text.push_str("zzzzzz"),
        },
        Value::Number(number) if random.chance(60) => {
            let n = number.as_f64().unwrap_or(0.0);
            *value = match random.below(4) {
                0 => json!(n + 0.5),
                1 => json!((n.trunc() as i64).saturating_add(1)),
                2 => json!(n.trunc()),
                _ => json!((n.trunc() as i64).saturating_sub(3).saturating_neg()),
            };
        }
        _ => *value = anything(random, 2),
    }
}

/// One of `texts`, with a few characters replaced by characters that occur in any of them.
pub fn text_like(random: &mut Random, texts: &[&str]) -> String {
    const ODD: [char; 14] = ['é', ' ', '\t', '[', ']', '%', '"', '(', ')', '\\', '\u{2028}', 'ſ', 'K', '\u{0}'];
    let mut text: Vec<char> = random.pick(texts).chars().collect();
    let alphabet: Vec<char> = texts.iter().flat_map(|text| text.chars()).collect();
    for _ in 0..random.below(4) {
        let at = random.below(text.len() + 1);
        let c = if random.chance(85) && !alphabet.is_empty() { *random.pick(&alphabet) } else { *random.pick(&ODD) };
        match random.below(3) {
            0 if at < text.len() => text[at] = c,
            1 if at < text.len() => {
                text.remove(at);
            }
            _ => text.insert(at, c),
        }
    }
    text.into_iter().collect()
}
