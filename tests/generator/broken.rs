//! Changes to CRDs, most of which make them invalid: any part of a CRD can be wrong.

use serde_json::{Map, Value, json};

use super::broken_rules::{COSTLY, RULES};
use super::crds::{limit, loosen, schemas};
use super::{PATTERNS, Random, schema};

/// Values for the fields of a CRD outside of its schemas; most of them are invalid.
const NAMES: &[&str] = &["", "samples", "Samples", "a_b", "9a", "a-", "a.b", "ok", "é", "sample", "sampleslist"];
const PATHS: &[&str] = &[
    "",
    ".",
    ".spec",
    ".spec.a",
    ".status.a",
    ".spec.replicas",
    ".status.replicas",
    "spec.a",
    ".metadata.name",
    ".spec.b",
    ".status",
    ".spec.c.d",
    ".spec['a']",
    ".spec..a",
    "a",
    ".kind",
    ".spec.l[0]",
    ".spec.m.x",
];
const TEXTS: &[&str] = &["", "a", " ", "\n", "two\nlines", "é\u{200b}", "plain text", "\u{7}"];
const BROKEN_PATTERNS: &[&str] = &[
    "[",
    "(",
    ")",
    "*a",
    "a**",
    "a{2,1}",
    "a{1001}",
    "(?!a)",
    "(?<n>a)",
    "(?P<n-a>b)",
    r"\1",
    r"\p{Nope}",
    r"\x{}",
    "[b-a]",
    "[[:foo:]]",
    "a\\",
    "((a{100}){100}){100}",
    r"\Qa\E*",
    "(?i-)a",
    "x{,3}",
    "a??+",
    r"[\d-z]",
    "(?z)",
];
const KEYWORDS: &[&str] = &[
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "default",
    "definitions",
    "dependencies",
    "description",
    "enum",
    "example",
    "exclusiveMaximum",
    "externalDocs",
    "format",
    "id",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "multipleOf",
    "not",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    "x-kubernetes-validations",
    "x-kubernetes-validations",
    "default",
    "type",
];

/// Changes something in a CRD; most changes make it invalid.
pub fn break_crd(random: &mut Random, crd: &mut Value) {
    if random.chance(12) {
        let places = schemas(crd);
        if let Some(schema) = places.get(random.below(places.len())).and_then(|place| crd.pointer_mut(place)) {
            loosen(random, schema);
        }
    } else if random.chance(70) {
        break_schema(random, crd);
    } else if random.chance(55) {
        break_version(random, crd);
    } else {
        break_spec(random, crd);
    }
}

fn break_spec(random: &mut Random, crd: &mut Value) {
    let name = json!(random.pick(NAMES));
    let long = "a".repeat(64);
    let spec = &mut crd["spec"];
    match random.below(14) {
        0 => spec["names"]["plural"] = name,
        1 => spec["names"]["kind"] = name,
        2 => spec["names"]["singular"] = if random.chance(20) { json!(long) } else { name },
        3 => spec["names"]["listKind"] = if random.chance(30) { spec["names"]["kind"].clone() } else { name },
        4 => spec["names"]["shortNames"] = json!(["ok", name]),
        5 => spec["names"]["categories"] = json!([name, "all"]),
        6 => {
            spec["group"] =
                json!(random.pick(&["", "nodot", "UPPER.com", "a..b", "x.k8s.io", "-.a", "other.example.com"]))
        }
        7 => spec["scope"] = json!(random.pick(&["", "cluster", "Cluster", "Namespaced"])),
        8 => spec["preserveUnknownFields"] = json!(random.chance(60)),
        9 | 10 => spec["conversion"] = conversion(random),
        11 => crd["metadata"]["name"] = json!(random.pick(&["x", "Samples.example.com", "a.b"])),
        12 => crd["metadata"]["labels"] = json!({"a/b/c": "x", "ok": "-", "fine": "é"}),
        _ => {
            crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io":
                random.pick(&["", "unapproved, test", "https://example.com/1", "nonsense"])});
        }
    }
}

fn conversion(random: &mut Random) -> Value {
    let mut conversion = json!({"strategy": random.pick(&["None", "Webhook", "Webhook", "Webhook", "", "Other"])});
    if random.chance(85) {
        let mut webhook = json!({});
        if random.chance(85) {
            webhook["conversionReviewVersions"] = random
                .pick(&[json!(["v1"]), json!(["v1", "v1"]), json!(["v2"]), json!([]), json!(["V1", "v1beta1"])])
                .clone();
        }
        if random.chance(50) {
            webhook["clientConfig"]["service"] = json!({"name": random.pick(&["a", ""]), "namespace": random.pick(&["b", ""]),
                "port": random.pick(&[443, 0, 70_000]), "path": random.pick(&["/", "", "//", "a", "/a//b", "/A", "/a/b/"])});
        }
        if random.chance(50) {
            webhook["clientConfig"]["url"] = json!(random.pick(&[
                "https://a.example.com/x",
                "http://a",
                "https://",
                "https://u:p@a/",
                "https://a/#f",
                "https://a/?q=1",
                ":",
                "%zz",
                "https://a b",
            ]));
        }
        conversion["webhook"] = webhook;
    }
    conversion
}

fn break_version(random: &mut Random, crd: &mut Value) {
    let Some(versions) = crd["spec"]["versions"].as_array_mut() else { return };
    let at = random.below(versions.len());
    if random.chance(10) {
        let copy = versions[at].clone();
        versions.push(copy);
        return;
    }
    let Some(version) = versions.get_mut(at) else { return };
    let path = json!(random.pick(PATHS));
    match random.below(11) {
        0 => version["name"] = json!(random.pick(&["V1", "", "v1", "v2", "1v", "v1alpha1"])),
        1 => version["storage"] = json!(random.chance(50)),
        2 => version["schema"] = random.pick(&[Value::Null, json!({})]).clone(),
        3 => {
            version["deprecated"] = json!(random.chance(70));
            version["deprecationWarning"] = json!(random.pick(TEXTS));
        }
        4 => version["deprecationWarning"] = json!("a".repeat(250 + random.below(12))),
        5 => version["additionalPrinterColumns"] = json!([column(random), column(random)]),
        6 => {
            let fields: Vec<Value> = (0..random.below(4)).map(|_| json!({"jsonPath": random.pick(PATHS)})).collect();
            version["selectableFields"] = json!(fields);
        }
        7 => {
            let fields: Vec<Value> = (0..10).map(|at| json!({"jsonPath": format!(".spec.f{at}")})).collect();
            version["selectableFields"] = json!(fields);
        }
        8 => version["subresources"]["scale"]["specReplicasPath"] = path,
        9 => version["subresources"]["scale"]["statusReplicasPath"] = path,
        _ => {
            version["subresources"]["scale"] = json!({"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas", "labelSelectorPath": path});
        }
    }
}

fn column(random: &mut Random) -> Value {
    json!({"name": random.pick(&["A", ""]), "type": random.pick(&["string", "", "text", "date", "integer"]),
        "format": random.pick(&["", "int32", "nope", "date-time"]), "jsonPath": random.pick(PATHS)})
}

fn break_schema(random: &mut Random, crd: &mut Value) {
    let places = schemas(crd);
    if places.is_empty() {
        return;
    }
    let place = random.pick(&places).clone();
    let Some(schema) = crd.pointer_mut(&place).and_then(Value::as_object_mut) else { return };
    let keyword = *random.pick(KEYWORDS);
    if random.chance(15) {
        schema.shift_remove(keyword);
        return;
    }
    let value = keyword_value(random, keyword, schema);
    schema.insert(keyword.to_owned(), value);
}

fn branch(random: &mut Random) -> Value {
    let mut branch = json!({});
    for _ in 0..random.below(3) {
        let keyword = *random.pick(&[
            "required",
            "maxLength",
            "pattern",
            "type",
            "properties",
            "not",
            "enum",
            "title",
            "items",
            "nullable",
            "default",
            "minimum",
            "maximum",
        ]);
        branch[keyword] = keyword_value(random, keyword, &Map::new());
    }
    branch
}

fn names_in(random: &mut Random, schema: &Map<String, Value>) -> Value {
    let own = schema.get("properties").or_else(|| schema.get("items").and_then(|items| items.get("properties")));
    let mut names: Vec<&str> =
        own.and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    names.push("k");
    let mut picked = vec![*random.pick(&names)];
    if random.chance(30) {
        picked.push(*random.pick(&names));
    }
    json!(picked)
}

fn keyword_value(random: &mut Random, keyword: &str, schema_of: &Map<String, Value>) -> Value {
    match keyword {
        "type" => json!(random.pick(&["", "null", "foo", "object", "array", "string", "integer", "number", "boolean"])),
        "id" | "$schema" | "$ref" | "description" | "title" => json!(random.pick(&["", "a", "#/definitions/a"])),
        "additionalItems" => random.pick(&[json!(true), json!({"type": "string"})]).clone(),
        "additionalProperties" => match random.below(4) {
            0 => json!(true),
            1 => json!(false),
            2 => json!({}),
            _ => schema(random),
        },
        "allOf" | "anyOf" | "oneOf" => match random.below(4) {
            0 => json!([{"type": "integer"}, {"type": "string"}]),
            _ => json!([branch(random), branch(random)]),
        },
        "not" => branch(random),
        "default" | "example" => default_value(random, schema_of),
        "definitions" | "patternProperties" | "dependencies" => {
            random.pick(&[json!({}), json!({"a": {"type": "string"}}), json!({"a": {}})]).clone()
        }
        "enum" => random.pick(&[json!(["a", "b"]), json!([1, "a", null, {"a": 1}]), json!([])]).clone(),
        "exclusiveMaximum"
        | "uniqueItems"
        | "nullable"
        | "x-kubernetes-embedded-resource"
        | "x-kubernetes-int-or-string" => {
            json!(random.chance(80))
        }
        "x-kubernetes-preserve-unknown-fields" => json!(random.chance(75)),
        "externalDocs" => json!({"url": "a"}),
        "format" => {
            json!(random.pick(&["date", "date-time", "int32", "int64", "uuid", "byte", "duration", "unheard-of"]))
        }
        "items" => match random.below(7) {
            0 => json!([]),
            1 => json!([{"type": "string"}]),
            2 => json!({}),
            3 => json!(true),
            4 => json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            _ => schema(random),
        },
        "maxItems" | "maxLength" | "maxProperties" if random.chance(50) => match random.chance(3) {
            true => random.pick(&[json!(i64::MAX), json!(i64::MIN), json!(i64::MAX / 4 + 1)]).clone(),
            false => json!(limit(random)),
        },
        "maxItems" | "maxLength" | "maxProperties" | "minItems" => json!(random.below(12) as i64 - 1),
        "maximum" | "minimum" | "multipleOf" => random.pick(&[json!(1), json!(0.5), json!(-3)]).clone(),
        "pattern" => json!(match random.chance(60) {
            true => *random.pick(BROKEN_PATTERNS),
            false => random.pick(&PATTERNS).0,
        }),
        "properties" => match random.below(4) {
            0 => json!({}),
            1 => json!({"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}),
            2 => json!({"k": {"type": "string", "nullable": true}, "kind": {"type": "integer"}}),
            _ => json!({"z": schema(random)}),
        },
        "required" => names_in(random, schema_of),
        "x-kubernetes-list-map-keys" => names_in(random, schema_of),
        "x-kubernetes-list-type" => json!(random.pick(&["set", "map", "atomic", "other"])),
        "x-kubernetes-map-type" => json!(random.pick(&["atomic", "granular", "other"])),
        "x-kubernetes-validations" => Value::Array((0..1 + random.below(2)).map(|_| validation(random)).collect()),
        other => panic!("no value for {other}"),
    }
}

fn validation(random: &mut Random) -> Value {
    let rules = if random.chance(60) { RULES } else { COSTLY };
    let mut validation = json!({"rule": random.pick(rules)});
    if random.chance(25) {
        validation["message"] = json!(random.pick(TEXTS));
    }
    if random.chance(25) {
        validation["messageExpression"] = json!(random.pick(&[
            "'a'",
            "self",
            "string(self)",
            "1",
            " ",
            "'a' +",
            "self.a",
            "foo",
            "self.replace('', 'abcdefgh') + self.replace('a', 'b')",
            "self.map(x, x + 'abc').join(', ')",
            "self.map(x, self.map(y, x + y).join('')).join('')",
        ]));
    }
    if random.chance(15) {
        validation["reason"] = json!(random.pick(&["FieldValueInvalid", "FieldValueForbidden", "Other", ""]));
    }
    if random.chance(15) {
        validation["fieldPath"] = json!(random.pick(PATHS));
    }
    if random.chance(15) {
        validation["optionalOldSelf"] = json!(random.chance(60));
    }
    validation
}

fn default_value(random: &mut Random, schema: &Map<String, Value>) -> Value {
    if random.chance(60) {
        return super::value(random, &Value::Object(schema.clone()));
    }
    random
        .pick(&[
            json!("a"),
            json!(1),
            json!(1.5),
            json!(true),
            json!({}),
            json!({"a": 1, "zzz": {}}),
            json!([]),
            json!([1, "a"]),
            Value::Null,
            json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "x", "labels": {"a/b/c": ""}}}),
            json!({"metadata": {"labels": 1}}),
            json!({"kind": 1}),
            json!("2020-01-01"),
        ])
        .clone()
}
