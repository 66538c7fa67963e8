//! Nothing of a CRD is forgotten: the tables of keywords and fields against the API server's own description of them.

mod support;

use std::collections::BTreeSet;

use gantry::preflight::crd_upgrade_safety::crd_fields::{FIELDS, Holder};
use gantry::preflight::crd_upgrade_safety::keywords::KEYWORDS;
use gantry::preflight::crd_upgrade_safety::rules::RULES;
use serde_json::Value;
use support::control_plane;

const PREFIX: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
/// Types of the API that hold no choice of a CRD's author.
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
fn every_keyword_of_the_api_is_known_and_no_other() {
    let schemas = described();
    let properties = schemas[format!("{PREFIX}JSONSchemaProps")]["properties"].as_object().unwrap();
    let api: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
    let known: BTreeSet<&str> = KEYWORDS.iter().map(|(keyword, _)| *keyword).collect();
    assert_eq!(known, api);
}

#[test]
fn every_field_of_the_api_has_a_holder() {
    let schemas = described();
    let mut api: BTreeSet<(String, String)> = BTreeSet::new();
    for (name, schema) in schemas.as_object().unwrap() {
        let Some(name) = name.strip_prefix(PREFIX).filter(|name| !NOT_SPEC.contains(name)) else { continue };
        // Keywords have their own table; what has no fields of its own (any JSON, a list or a map) is part of them.
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
fn every_holder_is_a_rule_or_a_reason() {
    let rules: BTreeSet<&str> = RULES.iter().map(|rule| rule.doc.name).collect();
    for (kind, field, holder) in FIELDS {
        match holder {
            Holder::Rules(names) => {
                assert!(
                    !names.is_empty() && names.iter().all(|name| rules.contains(name)),
                    "{kind}.{field}: {names:?}"
                );
            }
            Holder::Waived(reason) => assert!(!reason.is_empty(), "{kind}.{field}"),
        }
    }
}
