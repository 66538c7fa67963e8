//! What older and unknown releases decide differently.

use serde_json::{Value, json};

use super::*;
use crate::typed::unreadable_crd;

/// A valid CRD with this schema for `spec.x`.
fn crd(x: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Sample", "plural": "samples"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties":
                    {"spec": {"type": "object", "properties": {"x": x}}}}}}]},
    })
}

fn result(new: &Value, old: Option<&Value>, minor: u32) -> CrdValidationResult {
    validate(new, old, KubernetesRelease::minor(minor)).expect("a CRD that can be read")
}

fn errors(new: &Value, old: Option<&Value>, minor: u32) -> Vec<String> {
    result(new, old, minor).refusals.iter().map(ToString::to_string).collect()
}

fn dropped(new: &Value, old: Option<&Value>, minor: u32) -> Vec<String> {
    result(new, old, minor).dropped.into_iter().map(|field| field.path).collect()
}

fn unreadable(crd: &Value, minor: u32) -> Vec<String> {
    unreadable_crd(crd, KubernetesRelease::minor(minor)).iter().map(ToString::to_string).collect()
}

#[test]
fn a_field_is_unknown_then_dropped_then_kept() {
    let mut selectable = crd(json!({"type": "string"}));
    selectable["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.missing"}]);
    let path = "spec.versions[0].selectableFields";
    for minor in [28, 29] {
        assert_eq!(unreadable(&selectable, minor), [format!(".{path}: field not declared in schema")]);
        assert_eq!(result(&selectable, None, minor), CrdValidationResult::default());
    }
    assert_eq!(unreadable(&selectable, 30), [""; 0]);
    assert_eq!(dropped(&selectable, None, 30), [path]);
    assert_eq!(errors(&selectable, None, 30), [""; 0]);
    // A live CRD of a server that does not know the field cannot have it.
    assert_eq!(errors(&selectable, Some(&selectable), 28), [""; 0]);
    // The feature is enabled if the live CRD has the field.
    assert_eq!(dropped(&selectable, Some(&selectable), 30), [""; 0]);
    assert!(!errors(&selectable, Some(&selectable), 30).is_empty());
    assert_eq!(dropped(&selectable, None, 31), [""; 0]);
    assert!(!errors(&selectable, None, 31).is_empty());

    let optional = crd(json!({"type": "string",
        "x-kubernetes-validations": [{"rule": "true"}, {"rule": "self == 'a'", "optionalOldSelf": true}]}));
    let schema = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.x";
    let path = format!("{schema}.x-kubernetes-validations[1].optionalOldSelf");
    assert!(unreadable(&optional, 28)[0].ends_with("optionalOldSelf: field not declared in schema"));
    assert_eq!(dropped(&optional, None, 28), [""; 0]);
    assert_eq!(dropped(&optional, None, 29), [path]);
    assert_eq!(errors(&optional, None, 29), [""; 0]);
    assert_eq!(dropped(&optional, None, 30), [""; 0]);
    assert!(errors(&optional, None, 30)[0].contains("may not be set if oldSelf is not used in rule"));
}

#[test]
fn a_field_of_the_status_is_unknown_before_its_release() {
    let mut crd = crd(json!({"type": "string"}));
    crd["status"] = json!({"observedGeneration": 1});
    assert_eq!(unreadable(&crd, 34), [".status.observedGeneration: field not declared in schema"]);
    assert_eq!(unreadable(&crd, 35), [""; 0]);
}

#[test]
fn unknown_fields_are_undecided_for_a_release_that_is_newer_than_the_known_ones() {
    let mut crd = crd(json!({"type": "string", "x-new": 1}));
    crd["spec"]["newest"] = json!(true);
    assert_eq!(unreadable(&crd, 36).len(), 2);
    assert_eq!(unreadable(&crd, 38), [""; 0]);
    let CrdValidationResult { refusals, undecided, .. } = result(&crd, None, 38);
    assert_eq!(refusals, []);
    let paths: Vec<&str> = undecided.iter().map(|open| open.path.as_str()).collect();
    let schema = ".spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.x";
    assert_eq!(paths, [format!("{schema}.x-new"), ".spec.newest".to_owned()]);
    assert!(undecided[0].reason.contains("1.38"), "{}", undecided[0].reason);
    crd["spec"]["scope"] = json!("Galaxy");
    assert_eq!(result(&crd, None, 38).refusals.len(), 1);
}

#[test]
fn an_invalid_ca_bundle_is_refused_on_update_from_1_31() {
    let mut old = crd(json!({"type": "string"}));
    old["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "a", "namespace": "b", "port": 443}}}});
    old["status"] = json!({"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]});
    let mut new = old.clone();
    new["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!("Cg==");
    assert_eq!(errors(&new, Some(&old), 30), [""; 0]);
    assert!(errors(&new, Some(&old), 31)[0].contains("unable to load root certificates"));
    // A manifest stands for a CRD that is established.
    let mut manifest = old.clone();
    manifest["status"] = json!({"storedVersions": ["v1"]});
    assert!(errors(&new, Some(&manifest), 31)[0].contains("unable to load root certificates"));
    old["status"]["conditions"][0]["status"] = json!("False");
    assert_eq!(errors(&new, Some(&old), 31), [""; 0]);
}

#[test]
fn nine_selectable_fields_that_stay_are_accepted_from_1_35() {
    let names: Vec<String> = (0..9).map(|at| format!("f{at}")).collect();
    let fields = names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect::<serde_json::Map<_, _>>();
    let mut crd = crd(json!({"type": "object", "properties": fields}));
    crd["spec"]["versions"][0]["selectableFields"] =
        names.iter().map(|name| json!({"jsonPath": format!(".spec.x.{name}")})).collect();
    assert_eq!(errors(&crd, Some(&crd), 35), [""; 0]);
    assert!(errors(&crd, Some(&crd), 34)[0].contains("must have at most 8 items"));
}

#[test]
fn a_costly_rule_in_an_unchanged_schema_is_accepted_from_1_29() {
    let rule = json!([{"rule": "self.all(a, self.all(b, a == b))"}]);
    let crd = crd(json!({"type": "array", "items": {"type": "string"}, "maxItems": 100,
        "x-kubernetes-validations": rule}));
    let is_of_rule = |error: &String| error.contains("estimated rule cost exceeds budget");
    assert!(errors(&crd, Some(&crd), 28).iter().any(is_of_rule));
    assert!(!errors(&crd, Some(&crd), 29).iter().any(is_of_rule));
}

#[test]
fn a_function_is_for_new_rules_one_release_after_it_is_for_those_of_the_live_crd() {
    let with = |rule: Value| crd(json!({"type": "string", "maxLength": 64, "x-kubernetes-validations": [rule]}));
    let ip = with(json!({"rule": "isIP(self)"}));
    assert!(errors(&ip, None, 30)[0].contains("undeclared reference to 'isIP'"));
    assert_eq!(errors(&ip, Some(&ip), 30), [""; 0]);
    assert_eq!(errors(&ip, None, 31), [""; 0]);
    // Before 1.31, message expressions of the live CRD are not recognized.
    let message = with(json!({"rule": "self != ''", "messageExpression": "sets.contains([1], [1]) ? 'a' : 'b'"}));
    assert!(errors(&message, Some(&message), 29)[0].contains("messageExpression compilation failed"));
    let message = with(json!({"rule": "self != ''", "messageExpression": "string(ip('::1'))"}));
    assert!(errors(&message, Some(&message), 30)[0].contains("messageExpression compilation failed"));
    let message =
        with(json!({"rule": "self != ''", "messageExpression": "format.named('uri').hasValue() ? 'a' : 'b'"}));
    assert!(errors(&message, None, 31)[0].contains("messageExpression compilation failed"));
    assert_eq!(errors(&message, Some(&message), 31), [""; 0]);
}

#[test]
fn rules_with_functions_that_no_known_release_has_are_undecided_in_newer_ones() {
    let crd = crd(json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.shiny()"}]}));
    assert_eq!(errors(&crd, None, 36).len(), 1);
    let CrdValidationResult { refusals, undecided, .. } = result(&crd, None, 38);
    assert_eq!(refusals, []);
    assert!(undecided[0].reason.contains("undeclared reference to 'shiny'"), "{undecided:?}");
}

#[test]
fn an_enum_limits_the_cost_from_1_29_and_the_length_of_an_int_or_string_from_1_34() {
    let limits_cost = |mut part: Value, minor| {
        part["x-kubernetes-validations"] = json!([{"rule": "self.matches('^a+$')"}]);
        let crd = crd(json!({"type": "array", "maxItems": 10_000, "items": part}));
        !errors(&crd, None, minor).iter().any(|error| error.contains("exceeds budget"))
    };
    let choice = json!({"type": "string", "enum": ["a"]});
    assert!(!limits_cost(choice.clone(), 28));
    assert!(limits_cost(choice, 29));
    let port = json!({"x-kubernetes-int-or-string": true, "maxLength": 5});
    assert!(!limits_cost(port.clone(), 33));
    assert!(limits_cost(port, 34));
}

#[test]
fn additional_properties_that_are_false_in_a_value_validation_are_accepted_from_1_31() {
    let crd = crd(json!({"type": "object", "properties": {"a": {"type": "string"}},
        "items": {"type": "object", "anyOf": [{"not": {"additionalProperties": false}}]}}));
    let path = "spec.validation.openAPIV3Schema.properties[spec].properties[x].items.anyOf[0].not.additionalProperties";
    let message = format!("{path}: Forbidden: must be undefined to be structural");
    assert_eq!(errors(&crd, None, 30), [message]);
    assert_eq!(errors(&crd, None, 31), [""; 0]);
}

#[test]
fn the_format_of_a_default_is_enforced_from_the_release_that_introduces_it() {
    let name = crd(json!({"type": "string", "format": "k8s-short-name", "default": "A"}));
    assert_eq!(errors(&name, None, 33), [""; 0]);
    assert!(errors(&name, None, 34)[0].contains("must be of type k8s-short-name"));
    let number = crd(json!({"type": "integer", "format": "int32", "default": 3_000_000_000_u64}));
    assert_eq!(errors(&number, None, 35), [""; 0]);
    assert_eq!(errors(&number, None, 36).len(), 1);
}

#[test]
fn documentation_of_the_metadata_is_accepted_before_1_36() {
    let mut crd = crd(json!({"type": "string"}));
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] =
        json!({"type": "object", "externalDocs": {"url": "https://example.com"}});
    assert_eq!(errors(&crd, None, 35), [""; 0]);
    assert!(errors(&crd, None, 36)[0].contains("must not specify anything other than name and generateName"));
}
