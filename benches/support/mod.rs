//! Inputs for the benchmarks, generated from a seed: the same seed gives the same CRDs on every machine.
//!
//! They resemble the CRDs of 40 operators in everything that affects the run time: the distribution of sizes, the
//! depth, the share of descriptions, and the layout of the YAML.

#![allow(dead_code, reason = "each benchmark uses its own part")]

use serde_json::{Map, Value, json};

/// SplitMix64: small, and good enough to vary schemas.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

const WORDS: &[&str] = &[
    "replicas",
    "selector",
    "template",
    "interval",
    "endpoint",
    "storage",
    "secret",
    "policy",
    "timeout",
    "region",
    "volume",
    "labels",
    "target",
    "source",
    "schedule",
    "retention",
    "backup",
    "version",
    "image",
    "config",
];

/// The sizes of the CRDs of 40 operators as YAML, in percent of their mean; equally many are between each two.
const SIZES: [usize; 20] = [29, 33, 36, 39, 41, 44, 47, 50, 54, 58, 63, 70, 78, 90, 99, 120, 150, 200, 290, 640];

/// The length of a description in words: half of them are short, a tenth is a paragraph.
const LENGTHS: [u64; 10] = [4, 6, 8, 9, 11, 14, 18, 25, 35, 60];

fn sentence(random: &mut Random) -> String {
    let count = LENGTHS[random.below(LENGTHS.len() as u64) as usize];
    let words: Vec<&str> = (0..count).map(|_| WORDS[random.below(WORDS.len() as u64) as usize]).collect();
    let text = words.join(" ");
    // Like controller-gen's: most are plain, some must be quoted, few have several lines.
    match random.below(20) {
        0 => format!("The {text}.\n\nMore of the {}.", WORDS[random.below(WORDS.len() as u64) as usize]),
        1 | 2 => format!("The {text}. More info: https://example.com/{}", random.below(99)),
        _ => format!("The {text}."),
    }
}

fn leaf(random: &mut Random) -> Value {
    let description = sentence(random);
    match random.below(6) {
        0 => json!({"description": description, "format": "int32", "maximum": 100, "minimum": 0, "type": "integer"}),
        1 => json!({"description": description, "maxLength": 63, "pattern": "^[a-z0-9-]*$", "type": "string"}),
        2 => json!({"description": description, "enum": ["Always", "IfNotPresent", "Never"], "type": "string"}),
        3 => json!({"description": description, "type": "boolean"}),
        4 => json!({"description": description, "items": {"type": "string"}, "maxItems": 64, "type": "array"}),
        _ => json!({"additionalProperties": {"type": "string"}, "description": description, "type": "object"}),
    }
}

/// A node of about `bytes` bytes of YAML. Real schemas are up to ten objects and lists deep.
fn object(random: &mut Random, bytes: usize, depth: usize) -> Value {
    let mut properties = Map::new();
    let mut left = bytes as i64;
    // For each of its lines: two levels of the schema and two of the CRD for each level of an object.
    let indent = 4 * depth as i64 + 10;
    while left > 0 {
        let name = format!("{}{}", WORDS[random.below(WORDS.len() as u64) as usize], properties.len());
        let child = if depth < 10 && left > 1_500 && random.below(2) == 0 {
            let inner = object(random, (left * 2 / 3) as usize, depth + 1);
            let is_list = random.below(3) == 0;
            if is_list { json!({"description": sentence(random), "items": inner, "type": "array"}) } else { inner }
        } else {
            leaf(random)
        };
        left -= measured(&child, indent);
        properties.insert(name, child);
    }
    json!({"description": sentence(random), "properties": properties, "type": "object"})
}

/// The approximate length of a node as YAML, indented by `indent` spaces.
fn measured(node: &Value, indent: i64) -> i64 {
    match node {
        Value::Object(map) => {
            map.iter().map(|(key, value)| indent + key.len() as i64 + 3 + measured(value, indent + 2)).sum()
        }
        Value::Array(list) => list.iter().map(|item| indent + 2 + measured(item, indent + 2)).sum(),
        Value::String(text) => text.len() as i64 * (80 + indent) / 80,
        other => other.to_string().len() as i64,
    }
}

/// One CRD of the group `group`; all of them have about `mean` bytes of YAML on average.
pub fn crd(seed: u64, number: usize, group: &str, mean: usize) -> Value {
    let mut random = Random::new(seed ^ (number as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let bytes = mean * SIZES[number * 7 % SIZES.len()] / 100;
    let kind = format!("Bench{number}");
    let plural = kind.to_lowercase() + "s";
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": object(&mut random, bytes.saturating_sub(900), 1),
                    },
                }},
                "subresources": {"status": {}},
            }],
        },
    })
}

/// The CRD after a typical upgrade: of every ten CRDs six have reworded descriptions, three a new optional field, and
/// one a new field, a lower bound for one of its integers and a removed field.
pub fn upgraded(crd: &Value, number: usize) -> Value {
    let mut crd = crd.clone();
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let spec = spec.as_object_mut().expect("the generator makes an object");
    if number % 10 > 3 {
        for node in spec.values_mut() {
            let reworded = format!("As of this release: {}", node["description"].as_str().unwrap_or_default());
            node["description"] = json!(reworded);
        }
        return crd;
    }
    if number.is_multiple_of(10) {
        if let Some(integer) = spec.values_mut().find(|node| node["type"] == "integer") {
            integer["maximum"] = json!(50);
        }
        let first = spec.keys().next().cloned();
        first.map(|first| spec.shift_remove(&first));
    }
    spec.insert("addedByTheUpgrade".into(), json!({"type": "string"}));
    crd
}

/// The object in the layout of controller-gen and Go's YAML library: long text folded at 80 columns, multi-line text as
/// a block.
pub fn yaml(object: &Value) -> String {
    let mut out = String::new();
    block(object, 0, &mut out);
    out
}

/// A non-empty map or list, on its own lines.
fn block(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                out.push_str(&format!("{:indent$}{key}:", ""));
                below(value, indent, out);
            }
        }
        Value::Array(list) => {
            for item in list {
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        let start = out.len();
                        block(item, indent + 2, out);
                        out.replace_range(start + indent..start + indent + 1, "-");
                    }
                    item => {
                        out.push_str(&format!("{:indent$}-", ""));
                        below(item, indent, out);
                    }
                }
            }
        }
        _ => {}
    }
}

/// The value after a key or a dash.
fn below(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            block(value, indent + 2, out);
        }
        Value::Array(list) if !list.is_empty() => {
            out.push('\n');
            block(value, indent, out);
        }
        Value::String(text) => self::text(text, indent + 2, out),
        other => out.push_str(&format!(" {other}\n")),
    }
}

fn text(text: &str, indent: usize, out: &mut String) {
    if text.contains('\n') {
        out.push_str(" |-\n");
        for line in text.lines() {
            let line = if line.is_empty() { String::new() } else { format!("{:indent$}{line}", "") };
            out.push_str(&format!("{line}\n"));
        }
        return;
    }
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.contains(": ")
        && !matches!(text, "true" | "false" | "null");
    let quote = if is_plain { "" } else { "'" };
    let text = if is_plain { text.to_owned() } else { text.replace('\'', "''") };
    out.push_str(&format!(" {quote}"));
    let mut column = out.len() - out.rfind('\n').map_or(0, |at| at + 1);
    for (at, word) in text.split(' ').enumerate() {
        if at > 0 && column > 80 {
            out.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push_str(&format!("{quote}\n"));
}
