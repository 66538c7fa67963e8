//! Compares the tables of CRD keywords and fields with the API server's own description, so that none is missing.

use std::collections::BTreeSet;

use crate::support::{control_plane, isolated};
use gantry_preflight::crd_upgrade_safety::crd_fields::{FIELDS, FieldCoverage};
use gantry_preflight::crd_upgrade_safety::rules::RULES;
use gantry_schema::keywords::{self, Absent, KEYWORDS};
use serde_json::{Map, Value, json};

const PREFIX: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
/// API types without anything that a CRD's author chooses.
const NOT_SPEC: &[&str] = &[
    "CustomResourceDefinition",
    "CustomResourceDefinitionCondition",
    "CustomResourceDefinitionList",
    "CustomResourceDefinitionStatus",
];

fn described() -> Value {
    let (status, document) = control_plane().get("/openapi/v3/apis/apiextensions.k8s.io/v1");
    assert_eq!(status, 200);
    document["components"]["schemas"].clone()
}

#[test]
fn the_table_has_exactly_the_keywords_of_the_api() {
    let schemas = described();
    let properties = schemas[format!("{PREFIX}JSONSchemaProps")]["properties"].as_object().unwrap();
    let api: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
    let known: BTreeSet<&str> = KEYWORDS.iter().map(|keyword| keyword.name).collect();
    assert_eq!(known, api);
}

#[test]
fn every_field_of_the_api_is_covered() {
    let schemas = described();
    let mut api: BTreeSet<(String, String)> = BTreeSet::new();
    for (name, schema) in schemas.as_object().unwrap() {
        let Some(name) = name.strip_prefix(PREFIX).filter(|name| !NOT_SPEC.contains(name)) else { continue };
        // Keywords have their own table; types without their own fields (any JSON, a list or a map) are part of them.
        if name.starts_with("JSON") || name == "ExternalDocumentation" {
            continue;
        }
        let properties = schema["properties"].as_object();
        api.extend(properties.into_iter().flatten().map(|(field, _)| (name.to_owned(), field.clone())));
    }
    let held: BTreeSet<(String, String)> =
        FIELDS.iter().map(|(kind, field, _)| ((*kind).to_owned(), (*field).to_owned())).collect();
    assert_eq!(held, api);
    assert_eq!(held.len(), FIELDS.len(), "a field is listed twice");
}

#[test]
fn every_field_is_covered_by_a_rule_or_a_reason() {
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.doc.name).collect();
    for (kind, field, holder) in FIELDS {
        match holder {
            FieldCoverage::Rules(names) => {
                assert!(
                    !names.is_empty() && names.iter().all(|name| rules.contains(name)),
                    "{kind}.{field}: {names:?}"
                );
            }
            FieldCoverage::Waived(reason) => assert!(!reason.is_empty(), "{kind}.{field}"),
        }
    }
}

/// A value that the table calls equivalent to absence must be equivalent for the server, too. The test compares a field
/// with and without it: both accept the same values, and two appliers share ownership of both in the same way.
#[test]
fn a_keyword_with_its_default_value_changes_nothing_on_the_server() {
    let text = json!({"type": "string"});
    let list = |items: Value| json!({"type": "array", "items": items});
    let entry = json!({"type": "object", "properties": {"k": text}});
    let fields = json!({"type": "object", "properties": {"a": text, "b": text}});
    let map = json!({"type": "object", "additionalProperties": text});
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    // A keyword, a schema without it, a value, and the value that another manager applies.
    let rows = [
        ("minLength", text.clone(), json!(""), json!("")),
        ("minItems", list(text.clone()), json!([]), json!([])),
        ("minProperties", map.clone(), json!({}), json!({})),
        ("x-kubernetes-list-type", list(text.clone()), json!(["a"]), json!(["b"])),
        ("x-kubernetes-list-type", list(entry), json!([{"k": "a"}]), json!([{"k": "b"}])),
        ("x-kubernetes-list-type", list(open.clone()), json!([{"k": "a"}]), json!([{"k": "b"}])),
        ("x-kubernetes-map-type", fields, json!({"a": "x"}), json!({"b": "x"})),
        ("x-kubernetes-map-type", map, json!({"a": "x"}), json!({"b": "x"})),
        ("x-kubernetes-map-type", open, json!({"a": {"c": "x"}}), json!({"a": {"d": "x"}})),
    ];
    let asked: BTreeSet<&str> = rows.iter().map(|(keyword, ..)| *keyword).collect();
    let table = KEYWORDS.iter().filter(|keyword| keyword.absent != Absent::None).map(|keyword| keyword.name);
    assert_eq!(asked, table.collect::<BTreeSet<_>>());

    let (mut properties, mut first, mut second) = (Map::new(), Map::new(), Map::new());
    for (at, (keyword, bare, one, other)) in rows.iter().enumerate() {
        let mut said = bare.clone();
        said[*keyword] = match keywords::find(keyword).expect("a keyword").absent {
            Absent::Zero => json!(0),
            Absent::Text(text) => json!(text),
            Absent::None => unreachable!("compared above"),
        };
        for (name, schema) in [(format!("bare{at}"), bare.clone()), (format!("said{at}"), said)] {
            properties.insert(name.clone(), schema);
            first.insert(name.clone(), one.clone());
            second.insert(name, other.clone());
        }
    }
    let (cp, names) = (control_plane(), isolated());
    let spec = json!({"type": "object", "properties": properties});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("samples.{}", names.group)},
        "spec": {"group": names.group, "scope": "Cluster", "names": {"kind": "Sample", "plural": "samples"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}});
    cp.apply_yaml(&crd.to_string());
    let path = format!("/apis/{}/v1/samples/x", names.group);
    for (manager, spec) in [("one", first), ("other", second)] {
        let object = json!({"apiVersion": format!("{}/v1", names.group), "kind": "Sample", "metadata": {"name": "x"}, "spec": spec});
        let (status, answer) = cp.apply_to(&format!("{path}?fieldManager={manager}&force=true"), &object);
        assert!(status < 300, "{answer:#}");
    }
    let (_, object) = cp.get(&path);
    let managers = object["metadata"]["managedFields"].as_array().expect("managed fields");
    assert_eq!(managers.len(), 2, "{object:#}");
    for (at, (keyword, ..)) in rows.iter().enumerate() {
        let (bare, said) = (format!("bare{at}"), format!("said{at}"));
        assert_eq!(object["spec"][&bare], object["spec"][&said], "{keyword}");
        for manager in managers {
            let owned = |field: &str| manager["fieldsV1"]["f:spec"][format!("f:{field}")].clone();
            assert_eq!(owned(&bare), owned(&said), "{keyword}");
        }
    }
}
