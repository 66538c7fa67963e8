//! Inputs for the benchmarks, made from a seed: the same seed gives the same CRDs on every machine.

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

fn sentence(random: &mut Random) -> String {
    let words: Vec<&str> =
        (0..8 + random.below(16)).map(|_| WORDS[random.below(WORDS.len() as u64) as usize]).collect();
    format!("The {}.", words.join(" "))
}

fn leaf(random: &mut Random) -> Value {
    let description = sentence(random);
    match random.below(6) {
        0 => json!({"description": description, "type": "integer", "format": "int32", "minimum": 0, "maximum": 100}),
        1 => json!({"description": description, "type": "string", "maxLength": 63, "pattern": "^[a-z0-9-]*$"}),
        2 => json!({"description": description, "type": "string", "enum": ["Always", "IfNotPresent", "Never"]}),
        3 => json!({"description": description, "type": "boolean"}),
        4 => json!({"description": description, "type": "array", "items": {"type": "string"}, "maxItems": 64}),
        _ => json!({"description": description, "type": "object", "additionalProperties": {"type": "string"}}),
    }
}

/// A node of about `bytes` bytes of YAML.
fn object(random: &mut Random, bytes: usize, depth: usize) -> Value {
    let mut properties = Map::new();
    let mut left = bytes as i64;
    let indent = 4 * depth as i64;
    while left > 0 {
        let name = format!("{}{}", WORDS[random.below(WORDS.len() as u64) as usize], properties.len());
        let child = if depth < 12 && left > 600 && random.below(3) == 0 {
            object(random, (left / 2) as usize, depth + 1)
        } else {
            leaf(random)
        };
        left -= child.to_string().len() as i64 + 8 * indent;
        properties.insert(name, child);
    }
    json!({"description": sentence(random), "type": "object", "properties": properties})
}

/// One CRD of about `bytes` bytes of YAML in the group `group`.
pub fn crd(seed: u64, number: usize, group: &str, bytes: usize) -> Value {
    let mut random = Random::new(seed ^ (number as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
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
                        "spec": object(&mut random, bytes * 7 / 10, 1),
                    },
                }},
                "subresources": {"status": {}},
            }],
        },
    })
}

/// What an upgrade makes of it, as releases do: of every ten CRDs six have descriptions in other words, three a new
/// optional field, and one a new field, a lower bound for one of its integers and a field less.
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
