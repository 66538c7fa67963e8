//! Random structural schemas.

use serde_json::{Map, Value, json};

use super::Random;
use super::values;

pub const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f-g", "x.y", "kind"];

/// Patterns, each with a text that matches; some use syntax that only RE2 supports.
pub const PATTERNS: [(&str, &str); 14] = [
    ("^[a-z]+$", "abc"),
    (r"^[\w-\.]+$", "a-b.c"),
    (r"\d{2}", "x12"),
    ("^$|^a", "ab"),
    (r"^[[]x$", "[x"),
    ("a{,3}", "a{,3}"),
    (r"^\Qa.b\E", "a.bc"),
    (r"(?i)^abc$", "aBc"),
    (r"^\S+\s\S+$", "a b"),
    (r"^(?P<n>a|b)(?<m>c)?$", "ac"),
    (r"^\pL+$", "éa"),
    (r"\bfoo\b", "a foo"),
    (r"^[^\d]*$", "é-"),
    (r"^(([0-9]+(\.[0-9]+)?)(ms|s|m|h))+$", "1.5h"),
];

/// Formats, enforced and not, with valid and invalid texts.
pub const FORMATS: [(&str, &[&str]); 32] = [
    ("uri", &["http://a/b", "/x", "x", "http://a:b", "http://[::1]/", "mailto:x", "http://a%zz/", "*"]),
    ("email", &["a@b", "A <a@b.c>", "a", "a@b (c)", "\"x y\"@z", "a@[1.2.3.4]", "a@b, c@d"]),
    ("hostname", &["a.b", "a_b", "-a", "a-.b", "1.2.3.4", "é.com", "a..b", "abc"]),
    ("ipv4", &["1.2.3.4", "01.2.3.4", "256.1.1.1", "::1", "::ffff:1.2.3.4"]),
    ("ipv6", &["::1", "1.2.3.4", "::ffff:1.2.3.4", "1::2::3", "fe80::1%e"]),
    ("cidr", &["10.0.0.0/8", "10.0.0.0", "::/0", "1.2.3.4/33", "010.0.0.0/08"]),
    ("mac", &["00:00:5e:00:53:01", "0000.5e00.5301", "00005e005301", "00:00", "00-00:5e-00-53-01"]),
    ("uuid", &["123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000", "123e4567"]),
    ("uuid3", &["123e4567-e89b-32d3-a456-426614174000", "123e4567-e89b-12d3-a456-426614174000"]),
    ("uuid4", &["123e4567-e89b-42d3-a456-426614174000", "123e4567-e89b-42d3-1456-426614174000"]),
    ("uuid5", &["123e4567-e89b-52d3-B456-426614174000", "123e4567-e89b-42d3-a456-426614174000"]),
    ("isbn", &["978-0321751041", "3 401 01319 X", "123"]),
    ("isbn10", &["3836221195", "3423214121", "978-0321751041"]),
    ("isbn13", &["9784873113685", "9784873113686"]),
    ("creditcard", &["4220 8554 2622 2389", "4220855426213389", "x"]),
    ("ssn", &["123-45-6789", "123456789", "123 45 6789"]),
    ("hexcolor", &["#FFF", "fff0", "abcdef", "#"]),
    ("rgbcolor", &["rgb(0,31,255)", "rgb(256,0,0)", "rgb(0, 1 , 2)", "rgb( 01,0,0)"]),
    ("byte", &["YQ==", "YQ", "", "YWFh", "_-=="]),
    ("password", &["x"]),
    ("date", &["2024-02-29", "2023-02-29", "2024-1-1", "2024-01-01T00:00:00Z"]),
    ("date-time", &["2024-01-01T00:00:00Z", "2024-01-01t23:59:59.9+01:00", "2024-01-01", "2024-01-01T24:00:00Z"]),
    ("datetime", &["2024-01-01T00:00:00Z", "2024-01-01T00:00:60Z"]),
    ("duration", &["1h", "1.5s", "2 days", "1", "-3m", "5 parsecs", "1µs", "3wk"]),
    ("bsonobjectid", &["507f1f77bcf86cd799439011", "507f"]),
    ("k8s-short-name", &["a-b", "A", "a.b", "-a"]),
    ("k8s-long-name", &["a.b", "a..b", "A.b"]),
    ("quantity", &["1Gi", "nonsense"]),
    ("int32", &["x"]),
    ("unknown", &["x"]),
    ("date-t-ime", &["2024-01-01T00:00:00Z", "x"]),
    ("ipv-4", &["1.2.3.4", "x"]),
];

/// The formats that real CRDs use; the most common ones occur more than once.
pub const EVERYDAY_FORMATS: [&str; 12] = [
    "date-time",
    "date-time",
    "date-time",
    "byte",
    "byte",
    "uuid",
    "ipv4",
    "ipv6",
    "uri",
    "email",
    "hostname",
    "duration",
];

/// A schema for one field.
pub fn schema(random: &mut Random) -> Value {
    let depth = 1 + random.below(3);
    node(random, depth)
}

pub(super) fn node(random: &mut Random, depth: usize) -> Value {
    let kind = if depth == 0 { random.below(6) } else { random.below(15) };
    let mut node = match kind {
        0 | 1 => with(json!({"type": "string"}), strings(random)),
        2 => with(json!({"type": "integer"}), numbers(random, true)),
        3 => with(json!({"type": "number"}), numbers(random, false)),
        4 => json!({"type": "boolean"}),
        5 => int_or_string(random),
        6..=8 => object(random, depth),
        9 | 10 => array(random, depth),
        11 => map(random, depth),
        12 => preserving(random, depth),
        13 => embedded(random, depth),
        _ => object(random, depth),
    };
    if random.chance(20) {
        node["nullable"] = json!(true);
    }
    let is_listed = match node.get("type").and_then(Value::as_str) {
        None => false,
        Some("object" | "array" | "boolean" | "number") => random.rare(12),
        Some(_) => random.chance(12),
    };
    if is_listed && node.get("x-kubernetes-embedded-resource").is_none() {
        let count = 1 + random.below(3);
        let mut options: Vec<Value> = Vec::new();
        for _ in 0..count {
            let option = values::value(random, &node);
            if !options.contains(&option) {
                options.push(option);
            }
        }
        node["enum"] = Value::Array(options);
    }
    if random.chance(30) {
        combine(random, &mut node);
    }
    if random.rare(10) {
        foreign(random, &mut node);
    }
    if random.chance(20) {
        let default = match node.get("enum").and_then(Value::as_array) {
            Some(options) => random.pick(options).clone(),
            None => values::value(random, &node),
        };
        if !default.is_null() {
            node["default"] = default;
        }
    }
    node
}

/// Adds keywords for values of other types than the node's.
fn foreign(random: &mut Random, node: &mut Value) {
    let keywords: [(&str, Value); 9] = [
        ("maxLength", json!(1)),
        ("minLength", json!(2)),
        ("pattern", json!("^x")),
        ("minimum", json!(3)),
        ("multipleOf", json!(2)),
        ("minItems", json!(1)),
        ("maxItems", json!(-1)),
        ("maxProperties", json!(0)),
        ("required", json!(["a", "zz"])),
    ];
    let (keyword, value) = random.pick(&keywords);
    if node.get(keyword).is_none() {
        node[*keyword] = value.clone();
    }
}

/// `schema` with additional keywords.
fn with(mut schema: Value, keywords: Value) -> Value {
    if let (Some(schema), Value::Object(keywords)) = (schema.as_object_mut(), keywords) {
        schema.extend(keywords);
    }
    schema
}

fn strings(random: &mut Random) -> Value {
    let mut keywords = Map::new();
    match random.below(5) {
        0 => {
            keywords.insert("pattern".into(), json!(random.pick(&PATTERNS).0));
        }
        1 | 2 => {
            keywords.insert("format".into(), json!(random.format()));
        }
        _ => {}
    }
    if random.chance(20) {
        keywords.insert("maxLength".into(), json!(random.below(6)));
    }
    if random.chance(20) {
        keywords.insert("minLength".into(), json!(random.below(4)));
    }
    Value::Object(keywords)
}

fn numbers(random: &mut Random, integers: bool) -> Value {
    let mut keywords = Map::new();
    let bounds: &[Value] =
        &[json!(0), json!(1), json!(10), json!(-3), json!(1.5), json!(0.1), json!(1e19), json!(-1e30), json!(5.0)];
    let whole: &[Value] = &[json!(0), json!(1), json!(10), json!(-3), json!(100), json!(2147483648i64)];
    let from = if integers && random.chance(90) { whole } else { bounds };
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if random.chance(25) {
            keywords.insert(bound.into(), random.pick(from).clone());
            if random.chance(30) {
                keywords.insert(exclusive.into(), json!(true));
            }
        }
    }
    if random.rare(20) {
        let factors: &[Value] = if integers {
            &[json!(2), json!(3), json!(5)]
        } else {
            &[json!(0.1), json!(0.5), json!(2), json!(1.5), json!(0.01)]
        };
        keywords.insert("multipleOf".into(), random.pick(factors).clone());
    }
    if random.chance(30) {
        keywords.insert("format".into(), json!(random.pick(&["int32", "int64", "float", "double", "uint8"])));
    }
    Value::Object(keywords)
}

fn int_or_string(random: &mut Random) -> Value {
    let mut node = json!({"x-kubernetes-int-or-string": true});
    let types = json!([{"type": "integer"}, {"type": "string"}]);
    match random.below(10) {
        0..=4 => node["anyOf"] = types,
        5 => node["allOf"] = json!([{"anyOf": types}, {"pattern": random.pick(&PATTERNS).0}]),
        _ => {}
    }
    if random.chance(30) {
        node["pattern"] = json!(random.pick(&PATTERNS).0);
    }
    if random.chance(20) {
        node["maximum"] = json!(random.below(10));
    }
    if random.chance(15) {
        node["format"] = json!(random.format());
    }
    node
}

fn properties(random: &mut Random, depth: usize) -> Map<String, Value> {
    let count = 1 + random.below(4);
    (0..count).map(|_| ((*random.pick(&NAMES)).to_owned(), node(random, depth - 1))).collect()
}

fn object(random: &mut Random, depth: usize) -> Value {
    let mut node = json!({"type": "object"});
    let properties = properties(random, depth);
    if random.chance(40) {
        let mut required: Vec<&str> = vec![*random.pick::<&str>(&NAMES)];
        required.extend(properties.keys().take(random.below(3)).map(String::as_str));
        required.dedup();
        node["required"] = json!(required);
    }
    node["properties"] = Value::Object(properties);
    for (bound, percent) in [("minProperties", 10), ("maxProperties", 12)] {
        if random.chance(percent) {
            node[bound] = json!(1 + random.below(3));
        }
    }
    node
}

fn map(random: &mut Random, depth: usize) -> Value {
    let entry = if random.chance(20) { json!(true) } else { node(random, depth - 1) };
    let mut node = json!({"type": "object", "additionalProperties": entry});
    if random.chance(20) {
        node["maxProperties"] = json!(1 + random.below(3));
    }
    node
}

fn array(random: &mut Random, depth: usize) -> Value {
    let mut node = json!({"type": "array"});
    match random.below(4) {
        0 => {
            node["x-kubernetes-list-type"] = json!("set");
            let is_odd = random.rare(30);
            node["items"] = match random.below(3) {
                0 if is_odd => json!({"x-kubernetes-int-or-string": true}),
                1 if is_odd => json!({"type": "object", "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "number"}, "b": {"type": "string"}}}),
                _ if is_odd => {
                    json!({"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "number"}})
                }
                _ => json!({"type": random.pick(&["string", "integer", "number", "boolean"])}),
            };
            if random.chance(30) {
                node["items"]["nullable"] = json!(true);
            }
        }
        1 => {
            let mut item = object(random, depth);
            let keys: &[&str] = random.pick::<&[&str]>(&[&["k"], &["k"], &["k", "l"], &["k", "l", "m"]]);
            for key in keys {
                item["properties"][key] = json!({"type": random.pick(&["string", "integer", "number", "boolean"])});
            }
            if random.chance(30) {
                item["properties"]["k"]["default"] = match item["properties"]["k"]["type"].as_str() {
                    Some("string") => json!("z"),
                    Some("boolean") => json!(true),
                    _ => json!(7),
                };
                item["required"] = json!(&keys[1..]);
            } else {
                item["required"] = json!(keys);
            }
            if item["required"].as_array().is_some_and(Vec::is_empty) {
                item.as_object_mut().map(|item| item.remove("required"));
            }
            if random.chance(20) {
                item["nullable"] = json!(true);
            }
            node["x-kubernetes-list-type"] = json!("map");
            node["x-kubernetes-list-map-keys"] = json!(keys);
            node["items"] = item;
        }
        _ => {
            node["items"] = self::node(random, depth - 1);
            if random.chance(10) {
                node["x-kubernetes-list-type"] = json!("atomic");
            }
        }
    }
    for (bound, percent) in [("minItems", 12), ("maxItems", 15)] {
        if random.chance(percent) {
            node[bound] = json!(random.below(4));
        }
    }
    node
}

fn preserving(random: &mut Random, depth: usize) -> Value {
    let mut node = json!({"x-kubernetes-preserve-unknown-fields": true});
    if random.chance(60) {
        node["type"] = json!("object");
        if random.chance(60) {
            node["properties"] = Value::Object(properties(random, depth));
        }
    } else if random.chance(30) {
        node["type"] = json!("array");
        node["items"] = match random.chance(50) {
            true => json!({"x-kubernetes-preserve-unknown-fields": true, "type": "object"}),
            false => self::node(random, depth - 1),
        };
    } else if random.chance(20) {
        node["type"] = json!("object");
        node["additionalProperties"] = self::node(random, depth - 1);
    } else if random.chance(20) {
        node["properties"] = Value::Object(properties(random, depth));
    } else if random.chance(30) {
        node["format"] = json!(random.format());
    }
    node
}

fn embedded(random: &mut Random, depth: usize) -> Value {
    let mut node = json!({"type": "object", "x-kubernetes-embedded-resource": true});
    if random.chance(50) {
        node["x-kubernetes-preserve-unknown-fields"] = json!(true);
    } else {
        node["properties"] = Value::Object(properties(random, depth));
    }
    if random.rare(40) {
        described(random, &mut node);
    }
    node
}

/// Adds constraints for the fields that every resource has.
fn described(random: &mut Random, node: &mut Value) {
    if random.chance(50) {
        node["properties"]["apiVersion"] = with(json!({"type": "string"}), strings(random));
    }
    if random.chance(50) {
        let kinds =
            [json!({"enum": ["Pod"]}), json!({"maxLength": 4}), json!({"default": "Pod"}), json!({"nullable": true})];
        node["properties"]["kind"] = with(json!({"type": "string"}), random.pick(&kinds).clone());
    }
    if node["properties"].get("kind").is_some_and(|kind| kind["type"] != "string") {
        node["properties"]["kind"] = json!({"type": "string"});
    }
    if random.chance(30) {
        return;
    }
    let texts = json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 2}});
    let mut metadata = json!({"type": "object", "properties": {}});
    for (name, schema) in [
        ("name", with(json!({"type": "string"}), strings(random))),
        ("labels", with(texts.clone(), random.pick(&[json!({}), json!({"default": {"a": "b"}})]).clone())),
        ("annotations", with(texts, json!({"nullable": true}))),
        ("creationTimestamp", json!({"type": "string", "format": "date-time"})),
        ("deletionTimestamp", json!({"type": "string", "pattern": "Z$"})),
        ("generation", json!({"type": "integer", "maximum": 1, "default": 1})),
        ("finalizers", json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})),
    ] {
        if random.chance(40) {
            metadata["properties"][name] = schema;
        }
    }
    if random.chance(30) {
        metadata["required"] = json!([random.pick(&["name", "labels"])]);
    }
    if random.chance(20) {
        metadata["default"] = json!({});
    }
    node["properties"]["metadata"] = metadata;
}

/// Adds `allOf`, `anyOf`, `oneOf` or `not`.
pub(super) fn combine(random: &mut Random, node: &mut Value) {
    let count = 1 + random.below(3);
    let branches: Vec<Value> = (0..count).map(|_| branch(random, node, 2)).collect();
    match random.below(7) {
        0 => node["not"] = branches[0].clone(),
        1 | 2 if node.get("anyOf").is_none() => node["anyOf"] = json!(branches),
        3 | 4 => node["oneOf"] = json!(branches),
        _ => node["allOf"] = json!(branches),
    }
}

/// Value validations that are valid for `node`; they must not define structure.
fn branch(random: &mut Random, node: &Value, depth: usize) -> Value {
    let mut branch = match node.get("type").and_then(Value::as_str) {
        Some("string") => strings(random),
        Some("integer") => numbers(random, true),
        Some("number") => numbers(random, false),
        Some("object") => {
            let mut branch = json!({});
            let properties = node.get("properties").and_then(Value::as_object);
            if let (Some(properties), true) = (properties, random.chance(60))
                && let Some((name, child)) = properties.iter().nth(random.below(properties.len()))
                && child.get("x-kubernetes-int-or-string").is_none()
            {
                let mut inner = if depth > 0 { self::branch(random, child, depth - 1) } else { json!({}) };
                if random.chance(20) {
                    inner = with(inner, json!({"enum": [values::value(random, child)]}));
                }
                branch["properties"] = json!({name: inner});
            }
            if random.chance(50) {
                branch["required"] = json!([random.pick(&NAMES)]);
            }
            if random.chance(20) {
                branch["minProperties"] = json!(random.below(4));
            }
            branch
        }
        Some("array") => {
            let mut branch = json!({});
            if random.chance(50) {
                branch["minItems"] = json!(random.below(3));
            } else {
                branch["items"] = self::branch(random, &node["items"], depth.saturating_sub(1));
            }
            branch
        }
        _ => match random.below(4) {
            0 => json!({"pattern": random.pick(&PATTERNS).0}),
            1 => json!({"minimum": random.below(5)}),
            2 => json!({"enum": [values::value(random, node)]}),
            _ => json!({"format": random.format()}),
        },
    };
    if depth == 2 && random.chance(15) {
        combine_branch(random, node, &mut branch);
    }
    branch
}

fn combine_branch(random: &mut Random, node: &Value, branch: &mut Value) {
    let inner = vec![self::branch(random, node, 1), self::branch(random, node, 0)];
    branch[*random.pick(&["allOf", "anyOf", "oneOf"])] = json!(inner);
}
