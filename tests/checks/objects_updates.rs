//! `CustomResourceValidation` on problems that another one hides: rules behind errors that an update tolerates, and
//! versions that were not served so far. Each claim is verified with a real API server.

use std::collections::BTreeSet;

use crate::support::{
    CrdBuilder, FindingId, Gantry, Isolated, control_plane, eventually, finding_id, finding_ids, isolated,
};
use serde_json::{Value, json};

/// A cluster-scoped CRD with these versions: name, served, schema of `spec`. The first is the storage version.
fn crd(names: &Isolated, versions: &[(&str, bool, Value)]) -> Value {
    let add = |crd: CrdBuilder, (name, served, spec): &(&str, bool, Value)| {
        crd.version_of_spec(name, spec.clone()).served(*served)
    };
    versions.iter().fold(CrdBuilder::samples(&names.group).cluster_scoped(), add).build()
}

fn sample(names: &Isolated, version: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{}/{version}", names.group), "kind": "Sample", "metadata": {"name": name}, "spec": spec})
}

fn collection(names: &Isolated, version: &str) -> String {
    format!("/apis/{}/{version}/samples", names.group)
}

fn create(names: &Isolated, version: &str, name: &str, spec: &Value) -> u16 {
    control_plane().post(&collection(names, version), &sample(names, version, name, spec)).0
}

/// The findings for the CRD.
fn found(crd: &Value) -> BTreeSet<FindingId> {
    let arguments = ["check", "-f", "-", "--preflight", "CustomResourceValidation", "-o", "json"];
    let gantry = Gantry::new().kubeconfig(control_plane().kubeconfig("admin")).args(arguments);
    let report = gantry.stdin(crd.to_string()).run().report();
    assert_eq!(report["checks"][0]["unchecked"], Value::Null, "{report}");
    finding_ids(&report).into_iter().collect()
}

#[test]
fn transition_rules_are_reported_beside_ratcheted_values() {
    let cp = control_plane();
    let fields = |x: Value, rules: Value| {
        json!({"type": "object", "x-kubernetes-validations": rules,
            "properties": {"x": x, "y": {"type": "string"}, "z": {"type": "integer"}}})
    };
    let integer = || json!({"type": "integer"});
    let (touched, on_update) = ("ExistingObjectRefusedWhenTouched", "ExistingObjectRefusedOnUpdate");
    // The new schema, the findings, and whether a label and another field of `spec` can then be written.
    let cases = [
        // A rule on `spec` behind a wrong type; for a new object the server reports only the type.
        (
            fields(json!({"type": "string"}), json!([{"rule": "!has(self.z) || self.z < 5"}])),
            vec![finding_id(on_update, "v1", "spec.x"), finding_id(on_update, "v1", "spec")],
            [true, false],
        ),
        // A rule that cannot be evaluated on the existing value is never tolerated.
        (
            fields(json!({"type": "string", "x-kubernetes-validations": [{"rule": "self.size() < 3"}]}), json!([])),
            vec![finding_id(on_update, "v1", "spec.x")],
            [false, false],
        ),
        // A transition rule that never holds, next to a bound.
        (
            fields(
                json!({"type": "integer", "maximum": 5, "x-kubernetes-validations": [{"rule": "self > oldSelf"}]}),
                json!([]),
            ),
            vec![finding_id(touched, "v1", "spec.x"), finding_id(on_update, "v1", "spec.x")],
            [false, false],
        ),
    ];
    for (spec, expected, takes) in cases {
        let names = isolated();
        cp.apply_yaml(&crd(&names, &[("v1", true, fields(integer(), json!([])))]).to_string());
        let object = json!({"x": 7, "z": 7});
        assert_eq!(create(&names, "v1", "one", &object), 201);
        let desired = crd(&names, &[("v1", true, spec)]);
        assert_eq!(found(&desired), BTreeSet::from_iter(expected), "{desired}");
        cp.apply_yaml(&desired.to_string());
        eventually("the new schema is in force", || (create(&names, "v1", "two", &object) == 422).then_some(()));
        let path = format!("{}/one", collection(&names, "v1"));
        let writes = [json!({"metadata": {"labels": {"a": "b"}}}), json!({"spec": {"y": "set"}})];
        assert_eq!(writes.map(|change| cp.patch(&path, &change).0 == 200), takes, "{desired}");
    }
}

/// Items of a list stay as they are, or a rule stays and only what is around it changes.
#[test]
fn rules_on_lists_of_unchanged_items_and_rules_that_begin_to_count_are_evaluated() {
    let cp = control_plane();
    let text = json!({"type": "string", "maxLength": 9});
    let with_rule = |mut schema: Value| {
        schema["x-kubernetes-validations"] = json!([{"rule": "self.size() < 2"}]);
        schema
    };
    let list = json!({"type": "array", "maxItems": 9, "items": text});
    let map = json!({"type": "object", "maxProperties": 9, "additionalProperties": text});
    let around = |kind: Option<&str>, schema: &Value| {
        let mut around = json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {"a": schema}});
        if let Some(kind) = kind {
            around["type"] = kind.into();
        }
        around
    };
    let ruled = with_rule(text.clone());
    // The live schema of `x`, the desired one, and a value.
    for (live, desired, value, path) in [
        (list.clone(), with_rule(list), json!(["a", "b"]), "spec.x"),
        (map.clone(), with_rule(map), json!({"a": "a", "b": "b"}), "spec.x"),
        (around(None, &ruled), around(Some("object"), &ruled), json!({"a": "aa"}), "spec.x.a"),
        (
            json!({"type": "array", "maxItems": 9, "items": around(None, &ruled)}),
            json!({"type": "array", "maxItems": 9, "items": around(Some("object"), &ruled)}),
            json!([{"a": "aa"}]),
            "spec.x[*].a",
        ),
    ] {
        let names = isolated();
        let of = |x: Value| crd(&names, &[("v1", true, json!({"type": "object", "properties": {"x": x}}))]);
        cp.apply_yaml(&of(live).to_string());
        assert_eq!(create(&names, "v1", "one", &json!({"x": value})), 201);
        let desired = of(desired);
        let expected = BTreeSet::from([finding_id("ExistingObjectRefusedWhenTouched", "v1", path)]);
        assert_eq!(found(&desired), expected, "{desired}");
        cp.apply_yaml(&desired.to_string());
        eventually("the new schema is in force", || {
            (create(&names, "v1", "two", &json!({"x": value})) == 422).then_some(())
        });
    }
}

/// What a change does to objects although the schema of what they contain stays as it is.
#[test]
fn a_change_around_an_unchanged_value_counts_as_on_the_server() {
    let cp = control_plane();
    let (on_update, touched, created) =
        ("ExistingObjectRefusedOnUpdate", "ExistingObjectRefusedWhenTouched", "ExistingObjectRefused");
    let text = json!({"type": "string"});
    let root = |keyword: &str, value: Value, spec: Value| {
        let status = json!({"type": "object", "properties": {"b": text}});
        let mut root = json!({"type": "object", "properties": {"spec": spec, "status": status}});
        root[keyword] = value;
        root
    };
    let plain = |spec: Value| root("description", json!("d"), spec);
    let spec = json!({"type": "object", "properties": {"a": text}});
    let ruled = |rule: Value| root("x-kubernetes-validations", json!([rule]), spec.clone());
    let fixed = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]});
    let keyed = |keys: Value| {
        json!({"type": "object", "properties": {"l": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": keys, "items": {"type": "object", "required": ["a", "b"],
            "properties": {"a": text, "b": text, "v": fixed}}}}})
    };
    let set = |least: u64| {
        json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "set", "items": {
            "type": "object", "x-kubernetes-map-type": "atomic", "minProperties": least, "properties": {"a": text, "b": text}}}}})
    };
    let pairs = json!({"l": [{"a": "x", "b": "1", "v": "q"}, {"a": "x", "b": "2", "v": "r"}]});
    // The root schemas, whether the status becomes a subresource, the spec of the object, the findings, and whether a
    // label can then be set.
    let cases = [
        (
            plain(spec.clone()),
            ruled(json!({"rule": "size(self.metadata.name) <= 8"})),
            false,
            json!({"a": "x"}),
            vec![(on_update, "")],
            false,
        ),
        (
            plain(spec.clone()),
            ruled(json!({"rule": "self == oldSelf"})),
            false,
            json!({"a": "x"}),
            vec![(on_update, "")],
            false,
        ),
        (
            plain(keyed(json!(["a", "b"]))),
            plain(keyed(json!(["a"]))),
            false,
            pairs,
            vec![(on_update, "spec.l[*].v"), (created, "spec.l[*]")],
            false,
        ),
        (plain(set(1)), plain(set(2)), false, json!({"l": [{"a": "x"}]}), vec![(touched, "spec.l[*]")], true),
        (
            root("required", json!(["status"]), spec.clone()),
            root("required", json!(["status"]), spec.clone()),
            true,
            json!({"a": "x"}),
            vec![(created, "status")],
            true,
        ),
    ];
    for (live, desired, status, spec, expected, is_labelled) in cases {
        let names = isolated();
        let of = |root: &Value, status: bool| {
            let mut crd = crd(&names, &[("v1", true, json!({}))]);
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = root.clone();
            crd["spec"]["versions"][0]["subresources"] = if status { json!({"status": {}}) } else { json!({}) };
            // Shows when the new definition is effective.
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["effective"] =
                json!({"type": if root == &live && !status { "string" } else { "integer" }});
            crd
        };
        let object = |name: &str| {
            let mut object = sample(&names, "v1", name, &spec);
            object["status"] = json!({"b": "y"});
            object
        };
        cp.apply_yaml(&of(&live, false).to_string());
        let collection = collection(&names, "v1");
        assert_eq!(cp.post(&collection, &object("a-long-name")).0, 201);
        let desired = of(&desired, status);
        let expected = expected.into_iter().map(|(rule, path)| finding_id(rule, "v1", path));
        assert_eq!(found(&desired), BTreeSet::from_iter(expected), "{desired}");
        cp.apply_yaml(&desired.to_string());
        let probe = |value: Value| {
            let mut probe = object("probe");
            probe["effective"] = value;
            cp.post(&format!("{collection}?dryRun=All"), &probe).1.to_string()
        };
        eventually("the new definition is effective", || probe(json!("x")).contains("effective").then_some(()));
        let label = json!({"metadata": {"labels": {"a": "b"}}});
        assert_eq!(cp.patch(&format!("{collection}/a-long-name"), &label).0 == 200, is_labelled, "{desired}");
        if status {
            assert_eq!(cp.post(&collection, &object("other")).0, 422, "{desired}");
        }
    }
}

/// Outside of `spec`, an object can hold its content in several fields. An update of one leaves an invalid other one
/// unchanged, and the server tolerates it.
#[test]
fn an_invalid_field_beside_spec_refuses_only_updates_of_that_field() {
    let cp = control_plane();
    let (touched, on_update) = ("ExistingObjectRefusedWhenTouched", "ExistingObjectRefusedOnUpdate");
    let open = || json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let strict = |keyword: &str, value: Value| {
        let mut schema = open();
        schema[keyword] = value;
        schema
    };
    let (few, needs, never) = (
        strict("maxProperties", json!(1)),
        strict("required", json!(["c"])),
        strict("not", json!({"required": ["a", "b"]})),
    );
    let other = || json!({"type": "string"});
    // The fields of the desired schema, the finding, and whether `other` and another value in `part` can be written.
    let cases = [
        (json!({"part": few, "other": other()}), finding_id(touched, "v1", "part"), [true, false]),
        (json!({"part": needs, "other": other()}), finding_id(touched, "v1", "part.c"), [true, false]),
        (json!({"part": never, "other": other()}), finding_id(touched, "v1", "part"), [true, false]),
        // A field that holds the whole content is like `spec`.
        (json!({"part": needs}), finding_id(on_update, "v1", "part.c"), [true, false]),
    ];
    for (fields, expected, takes) in cases {
        let names = isolated();
        let of = |fields: &Value| {
            let mut crd = crd(&names, &[("v1", true, json!({}))]);
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = fields.clone();
            crd
        };
        let mut live = fields.clone();
        live["part"] = open();
        cp.apply_yaml(&of(&live).to_string());
        let object = |name: &str| {
            let mut object = sample(&names, "v1", name, &Value::Null);
            object["part"] = json!({"a": "x", "b": "x"});
            object.as_object_mut().expect("an object").remove("spec");
            object
        };
        let create = |name: &str| cp.post(&collection(&names, "v1"), &object(name)).0;
        assert_eq!(create("one"), 201);
        let desired = of(&fields);
        assert_eq!(found(&desired), BTreeSet::from([expected]), "{desired}");
        cp.apply_yaml(&desired.to_string());
        eventually("the new schema is in force", || (create("two") == 422).then_some(()));
        let path = format!("{}/one", collection(&names, "v1"));
        let writes = [json!({"other": "set"}), json!({"part": {"a": "y"}})];
        assert_eq!(writes.map(|change| cp.patch(&path, &change).0 == 200), takes, "{desired}");
    }
}

#[test]
fn a_rule_that_already_refuses_every_update_is_not_attributed_to_the_upgrade() {
    let names = isolated();
    let of = |maximum: u64| {
        let x =
            json!({"type": "integer", "maximum": maximum, "x-kubernetes-validations": [{"rule": "self > oldSelf"}]});
        crd(&names, &[("v1", true, json!({"type": "object", "properties": {"x": x}}))])
    };
    control_plane().apply_yaml(&of(9).to_string());
    assert_eq!(create(&names, "v1", "one", &json!({"x": 7})), 201);
    assert_eq!(found(&of(8)), BTreeSet::new());
}

#[test]
fn a_version_applies_to_objects_from_when_it_is_served() {
    let cp = control_plane();
    let names = isolated();
    let of = |served: bool| {
        let open = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
        let strict = json!({"type": "object", "required": ["c"], "properties": {"a": {"type": "string"},
            "c": {"type": "string"}}});
        crd(&names, &[("v1", true, open), ("v2", served, strict)])
    };
    cp.apply_yaml(&of(false).to_string());
    let object = json!({"a": "x", "b": "y"});
    assert_eq!(create(&names, "v1", "one", &object), 201);
    let expected =
        [finding_id("ExistingObjectRefusedOnUpdate", "v2", "spec.c"), finding_id("ExistingDataPruned", "v2", "spec.b")];
    assert_eq!(found(&of(true)), BTreeSet::from(expected));
    cp.apply_yaml(&of(true).to_string());
    let read = eventually("v2 is served", || {
        let (status, read) = cp.get(&format!("{}/one", collection(&names, "v2")));
        (status == 200).then_some(read)
    });
    assert_eq!(read["spec"], json!({"a": "x"}));
    assert_eq!(create(&names, "v2", "two", &object), 422);
}

#[test]
fn an_object_is_validated_as_converted_to_each_version() {
    let cp = control_plane();
    let names = isolated();
    let of = |limit: Value| {
        let spec = |b: Value, limit: Value| {
            let mut x = json!({"type": "object", "properties": {"b": b, "n": {"type": "integer"}}});
            x.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
            json!({"type": "object", "properties": {"x": x, "y": {"type": "string"}}})
        };
        let with_c = json!({"type": "object", "properties": {"c": {"type": "integer"}}});
        crd(&names, &[("v1", true, spec(with_c, json!({}))), ("v2", true, spec(json!({"type": "object"}), limit))])
    };
    cp.apply_yaml(&of(json!({})).to_string());
    let object = json!({"x": {"b": {"c": 2}, "n": 7}});
    assert_eq!(create(&names, "v1", "one", &object), 201);
    let path = format!("{}/one", collection(&names, "v2"));
    assert_eq!(cp.get(&path).1["spec"], json!({"x": {"b": {}, "n": 7}}));
    let desired = of(json!({"maxProperties": 1}));
    assert_eq!(found(&desired), BTreeSet::from([finding_id("ExistingObjectRefusedWhenTouched", "v2", "spec.x")]));
    cp.apply_yaml(&desired.to_string());
    eventually("the new schema is in force", || (create(&names, "v2", "two", &object) == 422).then_some(()));
    assert_eq!(cp.patch(&path, &json!({"spec": {"y": "set"}})).0, 200);
}

#[test]
fn an_invalid_value_that_ratcheting_will_no_longer_tolerate_is_reported() {
    let cp = control_plane();
    let names = isolated();
    let of = |limit: Value, n: Value| {
        let spec = |more: Value| {
            let mut spec = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
            spec["properties"]["n"] = n.clone();
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            spec
        };
        crd(&names, &[("v1", true, spec(json!({}))), ("v2", true, spec(limit))])
    };
    let limit = || json!({"maxProperties": 1});
    cp.apply_yaml(&of(limit(), json!({"type": "integer"})).to_string());
    assert_eq!(create(&names, "v1", "one", &json!({"a": "x", "b": "y"})), 201);
    let path = format!("{}/one", collection(&names, "v2"));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(cp.patch(&path, &label).0, 200);
    // In a version other than the storage version, defaults are added on every write, so every update changes the
    // value.
    let mut desired = of(limit(), json!({"type": "integer"}));
    desired["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["n"]["default"] =
        json!(3);
    let refused = finding_id("ExistingObjectRefusedOnUpdate", "v2", "spec");
    assert!(found(&desired).contains(&refused), "{:?}", found(&desired));
    cp.apply_yaml(&desired.to_string());
    let label = json!({"metadata": {"labels": {"a": "c"}}});
    eventually("every update is refused", || (cp.patch(&format!("{path}?dryRun=All"), &label).0 == 422).then_some(()));
}

#[test]
fn a_value_of_another_kind_refuses_every_apply_of_its_object() {
    let cp = control_plane();
    let names = isolated();
    let of = |x: Value| {
        let fields = json!({"x": x, "y": {"type": "string"}});
        crd(&names, &[("v1", true, json!({"type": "object", "properties": fields}))])
    };
    cp.apply_yaml(&of(json!({"type": "integer"})).to_string());
    assert_eq!(create(&names, "v1", "one", &json!({"x": 7})), 201);
    let path = format!("{}/one", collection(&names, "v1"));
    let other_field = sample(&names, "v1", "one", &json!({"y": "set"}));
    assert_eq!(cp.server_side_apply(&path, "other", &other_field).0, 200);
    let number = json!({"type": "number", "maximum": 5});
    let touched = finding_id("ExistingObjectRefusedWhenTouched", "v1", "spec.x");
    assert_eq!(found(&of(number)), BTreeSet::from([touched]), "a number is no other kind than an integer");
    let desired = of(json!({"type": "string"}));
    assert_eq!(found(&desired), BTreeSet::from([finding_id("ExistingObjectRefusedOnUpdate", "v1", "spec.x")]));
    cp.apply_yaml(&desired.to_string());
    eventually("an apply is refused", || {
        let (status, answer) = cp.server_side_apply(&path, "other", &other_field);
        (status == 500 && answer["message"].as_str()?.contains("typed live object")).then_some(())
    });
    assert_eq!(cp.patch(&path, &json!({"spec": {"y": "more"}})).0, 200, "another update");
    let manifest = sample(&names, "v1", "one", &json!({"y": "set"}));
    assert_eq!(found(&manifest), BTreeSet::from([finding_id("ManifestObjectRefused", "v1", "spec.x")]));
}
