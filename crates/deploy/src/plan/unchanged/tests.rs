use serde_json::json;

use super::*;
use gantry_core::crd::CrdSides;

fn object(kind: &str) -> ObjectRef {
    ObjectRef { api_version: "v1".into(), kind: kind.into(), namespace: None, name: "x".into() }
}

fn unchanged(kind: &str, desired: &Value, live: &Value, facts: &ComparisonContext<'_>) -> bool {
    compare(&object(kind), &RawObject::from_value(desired), &RawObject::from_value(live), None, facts) == Unchanged
}

const BUILT_IN: ComparisonContext<'static> =
    ComparisonContext { field_manager: "gantry", schema: None, built_in: true };

fn live(fields: &Value, spec: &Value) -> Value {
    json!({"metadata": {"name": "x", "managedFields": [
        {"manager": "gantry", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields}
    ]}, "spec": spec})
}

#[test]
fn server_defaults_beside_owned_fields_are_no_change() {
    let record = json!({"f:spec": {"f:ports": {
        ".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}});
    let live = live(&record, &json!({"ports": [{"port": 80, "protocol": "TCP"}], "type": "ClusterIP"}));
    assert!(unchanged("Service", &json!({"spec": {"ports": [{"port": 80}]}}), &live, &BUILT_IN));
    assert!(!unchanged("Service", &json!({"spec": {"ports": [{"port": 81}]}}), &live, &BUILT_IN));
    assert!(!unchanged("Service", &json!({"spec": {"ports": []}}), &live, &BUILT_IN));
}

#[test]
fn a_field_that_the_manifest_no_longer_has_is_a_change() {
    let live = live(&json!({"f:spec": {"f:a": {}, "f:b": {}}}), &json!({"a": 1, "b": 2}));
    assert!(unchanged("X", &json!({"spec": {"a": 1, "b": 2}}), &live, &BUILT_IN));
    assert!(!unchanged("X", &json!({"spec": {"a": 1}}), &live, &BUILT_IN));
}

#[test]
fn a_field_that_someone_else_took_over_is_a_change() {
    let live = live(&json!({"f:spec": {"f:a": {}}}), &json!({"a": 1, "b": 2}));
    assert!(!unchanged("X", &json!({"spec": {"a": 1, "b": 2}}), &live, &BUILT_IN));
}

#[test]
fn inside_an_atomic_map_an_extra_key_is_a_change_unless_it_is_a_default() {
    let record = json!({"f:spec": {"f:selector": {}}});
    let with_extra = live(&record, &json!({"selector": {"a": "1", "b": "2"}}));
    assert!(!unchanged("X", &json!({"spec": {"selector": {"a": "1"}}}), &with_extra, &BUILT_IN));
    let with_default = live(&record, &json!({"selector": {"a": "1", "protocol": "TCP"}}));
    assert!(unchanged("X", &json!({"spec": {"selector": {"a": "1"}}}), &with_default, &BUILT_IN));
}

#[test]
fn defaults_of_the_schema_are_no_change_of_a_custom_resource() {
    let schema = r#"{"properties": {"spec": {"properties": {"routes": {"items": {"properties": {
        "port": {"default": 80}}}}}}}}"#;
    let schema = Json::parse(schema).unwrap();
    let facts = ComparisonContext { schema: Some(&schema), built_in: false, ..BUILT_IN };
    let live = live(&json!({"f:spec": {"f:routes": {}}}), &json!({"routes": [{"host": "a", "port": 80}]}));
    let desired = json!({"spec": {"routes": [{"host": "a"}]}});
    assert!(unchanged("X", &desired, &live, &facts));
    assert!(!unchanged("X", &desired, &live, &ComparisonContext { schema: None, ..facts }));
}

#[test]
fn an_empty_value_is_a_change_until_it_is_on_record() {
    let desired = json!({"spec": {"a": 1, "hostNetwork": false, "hostname": "", "volumes": []}});
    let before = live(&json!({"f:spec": {"f:a": {}}}), &json!({"a": 1}));
    assert!(!unchanged("X", &desired, &before, &BUILT_IN));
    let record = json!({"f:spec": {"f:a": {}, "f:hostNetwork": {}, "f:hostname": {}, "f:volumes": {}}});
    let after = live(&record, &json!({"a": 1}));
    assert!(unchanged("X", &desired, &after, &BUILT_IN));
    assert!(!unchanged("X", &desired, &after, &ComparisonContext { built_in: false, ..BUILT_IN }));
}

#[test]
fn an_empty_value_that_the_api_distinguishes_from_an_absent_one_is_a_change() {
    let record = json!({"f:spec": {"f:a": {}, "f:automountServiceAccountToken": {}}});
    let desired = json!({"spec": {"a": 1, "automountServiceAccountToken": false}});
    assert!(!unchanged("X", &desired, &live(&record, &json!({"a": 1})), &BUILT_IN));
    let without_records = json!({"metadata": {"name": "x"}, "spec": {"a": 1}});
    assert!(!unchanged("X", &desired, &without_records, &BUILT_IN));
}

#[test]
fn inside_an_atomic_list_only_what_the_server_drops_may_be_missing() {
    let live = live(&json!({"f:spec": {"f:ingress": {}}}), &json!({"ingress": [{"from": [{"podSelector": {}}]}]}));
    let is_unchanged =
        |peer: Value| unchanged("X", &json!({"spec": {"ingress": [{"from": [peer]}]}}), &live, &BUILT_IN);
    assert!(is_unchanged(json!({"podSelector": {"matchLabels": {}, "matchExpressions": []}})));
    assert!(is_unchanged(json!({"podSelector": {}, "ipBlock": null})));
    // In this namespace, or in every namespace.
    assert!(!is_unchanged(json!({"podSelector": {}, "namespaceSelector": {}})));
    assert!(!is_unchanged(json!({"podSelector": {}, "tolerationSeconds": 0})));
    assert!(!is_unchanged(json!({"podSelector": {}, "optional": false})));
    assert!(!is_unchanged(json!({"podSelector": {}, "storageClassName": ""})));
}

#[test]
fn a_selector_that_the_manifest_no_longer_has_is_a_change_but_for_the_kinds_that_default_it() {
    let record = json!({"f:spec": {"f:matchConstraints": {}}});
    let live = live(&record, &json!({"matchConstraints": {"namespaceSelector": {}}}));
    let desired = RawObject::from_value(&json!({"spec": {"matchConstraints": {}}}));
    let of = |api_version: &str| {
        let object = ObjectRef { api_version: api_version.into(), ..object("X") };
        let live = live.to_string().replace("\"apiVersion\":\"v1\"", &format!("\"apiVersion\":\"{api_version}\""));
        compare(&object, &desired, &RawObject::new(live), None, &BUILT_IN) == Unchanged
    };
    assert!(of("admissionregistration.k8s.io/v1"));
    assert!(!of("networking.k8s.io/v1"));
}

#[test]
fn a_zero_that_means_something_in_a_crd_is_a_change() {
    let crd = ObjectRef::crd("x");
    let live = json!({"metadata": {"managedFields": [{"manager": "gantry", "operation": "Apply",
        "apiVersion": "apiextensions.k8s.io/v1", "fieldsV1": {"f:spec": {"f:versions": {}}}}]},
        "spec": {"versions": [{"name": "v1", "schema": {"type": "object"}}]}});
    let is_unchanged = |version: Value| {
        let desired = RawObject::from_value(&json!({"spec": {"versions": [version]}}));
        let live = RawObject::from_value(&live);
        let sides = CrdSides::new(desired.clone(), Some(live.clone()));
        let with_sides = compare(&crd, &desired, &live, Some(&sides), &BUILT_IN);
        assert_eq!(with_sides == Unchanged, compare(&crd, &desired, &live, None, &BUILT_IN) == Unchanged);
        with_sides == Unchanged
    };
    assert!(is_unchanged(json!({"name": "v1", "deprecated": false, "schema":
        {"type": "object", "nullable": false, "description": "", "required": [], "properties": {}}})));
    for version in [
        json!({"name": "v1", "schema": {"type": "object"}, "subresources": {"status": {}}}),
        json!({"name": "v1", "schema": {"type": "object"}, "subresources": {}}),
        json!({"name": "v1", "schema": {"type": "object", "minimum": 0}}),
        json!({"name": "v1", "schema": {"type": "object", "default": false}}),
        json!({"name": "v1", "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": false}}),
        json!({"name": "v1", "schema": {"type": "object", "additionalProperties": false}}),
        json!({"name": "v1", "schema": {"type": "object", "additionalProperties": {}}}),
    ] {
        assert!(!is_unchanged(version.clone()), "{version}");
    }
}

#[test]
fn quantities_are_compared_by_value_and_nothing_else_is() {
    let live = live(&json!({"f:spec": {"f:limits": {}}}), &json!({"limits": {"cpu": "1"}}));
    let is_unchanged = |cpu: Value| unchanged("X", &json!({"spec": {"limits": {"cpu": cpu}}}), &live, &BUILT_IN);
    assert!(is_unchanged(json!("1000m")));
    assert!(is_unchanged(json!(1)));
    assert!(!is_unchanged(json!("100m")));
    assert!(!is_unchanged(json!("x1")));
    assert!(!is_unchanged(json!("1.000000000000000001")), "it is rounded up, to more than 1");
    let large = json!({"limits": {"memory": "9007199254740992"}});
    let large = self::live(&json!({"f:spec": {"f:limits": {}}}), &large);
    let is_unchanged =
        |memory: &str| unchanged("X", &json!({"spec": {"limits": {"memory": memory}}}), &large, &BUILT_IN);
    assert!(is_unchanged("8Pi"));
    assert!(!is_unchanged("9007199254740993"), "more than a float tells apart");
    let config = json!({"metadata": {"managedFields": [{"manager": "gantry", "operation": "Apply", "apiVersion": "v1",
        "fieldsV1": {"f:data": {"f:version": {}}}}]}, "data": {"version": "1.10"}});
    assert!(!unchanged("ConfigMap", &json!({"data": {"version": "1.1"}}), &config, &BUILT_IN));
    assert!(!unchanged("ConfigMap", &json!({"data": {"version": "1100m"}}), &config, &BUILT_IN));
}

#[test]
fn a_secret_in_plain_text_equals_its_stored_form() {
    let live = json!({"metadata": {"managedFields": [{"manager": "gantry", "operation": "Apply",
        "apiVersion": "v1", "fieldsV1": {"f:stringData": {"f:p": {}}, "f:data": {"f:q": {}}}}]},
        "data": {"p": "aGk=", "q": "eA=="}});
    assert!(unchanged("Secret", &json!({"stringData": {"p": "hi"}, "data": {"q": "eA=="}}), &live, &BUILT_IN));
    assert!(!unchanged("Secret", &json!({"stringData": {"p": "ho"}, "data": {"q": "eA=="}}), &live, &BUILT_IN));
}

#[test]
fn without_any_record_the_values_decide_and_with_anothers_it_is_an_update() {
    let exported = json!({"metadata": {"name": "x", "uid": "1"}, "spec": {"a": 1, "b": 2}});
    assert!(unchanged("X", &json!({"spec": {"a": 1}}), &exported, &BUILT_IN));
    let others = json!({"metadata": {"managedFields": [{"manager": "kubectl", "operation": "Apply",
        "apiVersion": "v1", "fieldsV1": {"f:spec": {"f:a": {}}}}]}, "spec": {"a": 1}});
    assert!(!unchanged("X", &json!({"spec": {"a": 1}}), &others, &BUILT_IN));
}

#[test]
fn a_field_that_the_next_version_of_a_manifest_lacks_is_a_change() {
    let manifest = json!({"metadata": {"name": "x", "labels": {"l": "1"}}, "spec": {"a": 1, "list": [], "none": null},
        "status": {"ready": true}});
    let with = |spec: Value, labels: Value| json!({"metadata": {"labels": labels}, "spec": spec});
    let same = json!({"l": "1"});
    assert!(unchanged("X", &with(json!({"a": 1}), same.clone()), &manifest, &BUILT_IN), "what it lacks says nothing");
    assert!(!unchanged("X", &with(json!({}), same), &manifest, &BUILT_IN));
    assert!(!unchanged("X", &with(json!({"a": 1}), json!({})), &manifest, &BUILT_IN));
    let secret = json!({"metadata": {"name": "x"}, "data": {"p": "aGk="}});
    assert!(unchanged("Secret", &json!({"stringData": {"p": "hi"}}), &secret, &BUILT_IN));
    assert!(!unchanged("Secret", &json!({"stringData": {"q": "hi"}}), &secret, &BUILT_IN));
    // A CRD has the defaults of the server, also in a folder.
    let crd = |conversion: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"},
            "spec": {"names": {"kind": "Ab", "listKind": "AbList", "singular": "ab"}, "conversion": conversion}})
    };
    let desired = json!({"spec": {"names": {"kind": "Ab"}}});
    assert!(unchanged("CustomResourceDefinition", &desired, &crd(json!({"strategy": "None"})), &BUILT_IN));
    assert!(!unchanged("CustomResourceDefinition", &desired, &crd(json!({"strategy": "Webhook"})), &BUILT_IN));
}

#[test]
fn only_differences_that_the_server_may_cause_are_doubtful() {
    let record = |fields: Value| json!({"f:spec": fields});
    let of = |fields: Value, desired: Value, live_spec: Value, facts: &ComparisonContext<'_>| {
        let desired = RawObject::from_value(&json!({"spec": desired}));
        compare(&object("X"), &desired, &RawObject::from_value(&live(&record(fields), &live_spec)), None, facts)
    };
    let custom = ComparisonContext { built_in: false, ..BUILT_IN };
    for (fields, desired, live, of_built_in, of_custom) in [
        // Dropped, defaulted, normalised.
        (json!({"f:a": {}}), json!({"a": {}}), json!({}), Doubtful, Doubtful),
        (json!({"f:a": {}}), json!({"a": {}}), json!({"a": {"b": 1}}), Doubtful, Doubtful),
        (json!({"f:a": {}}), json!({"a": ""}), json!({"a": "Always"}), Doubtful, Doubtful),
        (json!({"f:a": {}}), json!({"a": 0}), json!({"a": 10}), Doubtful, Doubtful),
        (json!({"f:a": {}}), json!({"a": "1h"}), json!({"a": "60m0s"}), Doubtful, Doubtful),
        (json!({"f:a": {}}), json!({"a": "eA\n=="}), json!({"a": "eA=="}), Doubtful, Doubtful),
        (
            json!({"f:a": {}}),
            json!({"a": "2024-01-01T01:00:00.000000+01:00"}),
            json!({"a": "2024-01-01T00:00:00.000000Z"}),
            Doubtful,
            Doubtful,
        ),
        (json!({"f:a": {}}), json!({"a": [1]}), json!({"a": [1, 2]}), Doubtful, Doubtful),
        (json!({"f:a": {}}), json!({"a": {"b": 1}}), json!({"a": {}}), Doubtful, Changed),
        // A field in our entry that does not exist was dropped.
        (json!({"f:a": {}}), json!({"a": true}), json!({}), Doubtful, Doubtful),
        (json!({"f:x": {}}), json!({"x": 1, "a": true}), json!({"x": 1}), Changed, Changed),
        (json!({"f:a": {}}), json!({"a": "x"}), json!({"a": "y"}), Changed, Changed),
        (json!({"f:a": {}}), json!({"a": 2}), json!({"a": 1}), Changed, Changed),
        (json!({"f:a": {}}), json!({"a": [1, 2]}), json!({"a": [1]}), Changed, Changed),
        // One certain change decides.
        (json!({"f:a": {}, "f:b": {}}), json!({"a": {}, "b": 2}), json!({"b": 1}), Changed, Changed),
    ] {
        assert_eq!(of(fields.clone(), desired.clone(), live.clone(), &BUILT_IN), of_built_in, "{desired} over {live}");
        assert_eq!(of(fields, desired.clone(), live.clone(), &custom), of_custom, "{desired} over {live}");
    }
}
