//! CRDs that the server refuses, with its words.

use serde_json::{Value, json};

use super::*;

/// A CRD that is fine, with this schema for `spec`.
fn crd(spec: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Sample", "plural": "samples"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]},
    })
}

fn errors(new: &Value, old: Option<&Value>) -> Vec<String> {
    let judgement = judge(new, old).expect("a CRD that can be read");
    assert_eq!(judgement.undecided, []);
    judgement.refusals.iter().map(|refusal| refusal.error.to_string()).collect()
}

fn errors_of(spec: Value) -> Vec<String> {
    errors(&crd(json!({"type": "object", "properties": {"x": spec}})), None)
}

const X: &str = "spec.validation.openAPIV3Schema.properties[spec].properties[x]";

#[test]
fn a_good_crd_is_taken() {
    let rule = json!([{"rule": "self.size() < 5"}]);
    assert_eq!(errors_of(json!({"type": "string", "pattern": "^a+$", "x-kubernetes-validations": rule})), [""; 0]);
}

#[test]
fn what_is_not_structural_is_refused_where_it_stands() {
    for (schema, wanted) in [
        (json!({}), "type: Required value: must not be empty for specified object fields"),
        (json!({"type": "array"}), "items: Required value: must be specified"),
        (
            json!({"type": "string", "pattern": "["}),
            "pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: error parsing regexp: \
             missing closing ]: `[`",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                "additionalProperties": {"type": "string"}}),
            "additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ),
        (json!({"type": "string", "id": "a"}), "id: Forbidden: id is not supported"),
    ] {
        assert_eq!(errors_of(schema), [format!("{X}.{wanted}")]);
    }
}

/// The server looks for undeclared fields at the root, and nowhere else.
#[test]
fn what_the_root_validates_has_to_be_declared() {
    let mut new = crd(json!({"type": "object"}));
    let schema = &mut new["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["allOf"] = json!([{"properties": {"spec": {"properties": {"a": {"minLength": 1}}}}}]);
    let root = "spec.validation.openAPIV3Schema";
    assert_eq!(
        errors(&new, None),
        [format!(
            "{root}.properties[spec].properties[a]: Required value: because it is defined in \
             {root}.allOf[0].properties[spec].properties[a]"
        )]
    );
}

#[test]
fn rules_that_do_not_compile_are_refused() {
    let of = |rule: &str| errors_of(json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]}));
    for (rule, wanted) in [("self ==", "compilation failed: "), ("self + 1 == 2", "compilation failed: ")] {
        let found = of(rule);
        assert!(found.len() == 1 && found[0].contains(wanted), "{found:?}");
        assert!(found[0].starts_with(&format!("{X}.x-kubernetes-validations[0].rule: Invalid value: {{\"Rule\":")));
    }
    assert!(of("self")[0].ends_with("cel expression must evaluate to a bool"));
    assert!(of("self == oldSelf").is_empty());
}

#[test]
fn defaults_have_to_be_valid_and_pruned() {
    assert_eq!(errors_of(json!({"type": "string", "default": "ab", "maxLength": 1})).len(), 1);
    assert_eq!(
        errors_of(json!({"type": "object", "default": {"a": 1}})),
        [format!("{X}.default: Invalid value: {{\"a\":1}}: must not have unknown fields")]
    );
}

#[test]
fn an_update_may_keep_what_was_wrong_before() {
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}});
    let with = |extra: Value| crd(json!({"type": "object", "properties": {"x": set, "y": extra}}));
    let (old, new) = (with(json!({"type": "string"})), with(json!({"type": "integer"})));
    assert_eq!(errors(&new, None).len(), 1);
    assert_eq!(errors(&new, Some(&old)), [""; 0]);
    let mut renamed = old.clone();
    renamed["spec"]["group"] = "example.org".into();
    assert!(
        errors(&renamed, Some(&old))
            .contains(&"spec.group: Invalid value: \"example.org\": field is immutable".to_owned())
    );
}

#[test]
fn a_stored_version_has_to_stay() {
    let mut old = crd(json!({"type": "object"}));
    old["status"] = json!({"storedVersions": ["v1alpha1", "v1"]});
    let found = errors(&crd(json!({"type": "object"})), Some(&old));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("status.storedVersions[0]: Invalid value: \"v1alpha1\": missing from spec.versions;"));
}
