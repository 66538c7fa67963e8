//! Tests of single objects with pairs of CRDs.

mod folder;

use serde_json::{Value, json};

use super::super::objects::group::{Groups, ObjectName};
use super::super::objects::object::ProjectedObject;
use super::super::objects::pass;
use super::super::objects::validator::ObjectValidator;
use super::*;
use crate::Violation;
use crate::proofs::{Prover, VersionPairQuestion, VersionProof};
use gantry_core::crd::CrdSides;
use gantry_core::crd::builder::CrdBuilder;
use gantry_core::finding::{Breaks, Severity};
use gantry_core::resource::{RawObject, Step};

/// A complete CRD from the given parts, such as `spec.versions`.
fn crd(part: Value) -> Value {
    let mut crd = CrdBuilder::samples("test.example.com").set("versions", json!([{"name": "v1"}])).build();
    for (key, value) in part["spec"].as_object().into_iter().flatten() {
        crd["spec"][key] = value.clone();
    }
    if let Some(status) = part.get("status") {
        crd["status"] = status.clone();
    }
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        for key in ["served", "storage"] {
            if version.get(key).is_none() {
                version[key] = true.into();
            }
        }
        version["schema"]["openAPIV3Schema"]["type"] = "object".into();
        if version["schema"]["openAPIV3Schema"].get("properties").is_none() {
            version["schema"]["openAPIV3Schema"]["properties"] = json!({"spec": {"type": "object"}});
        }
    }
    crd
}

/// A CRD with one version that has this schema of `spec`.
fn with_spec(spec: Value) -> Value {
    let schema = json!({"openAPIV3Schema": {"properties": {"spec": spec}}});
    crd(json!({"spec": {"versions": [{"name": "v1", "schema": schema}]}}))
}

/// A CRD with several versions: name, whether it is the storage version, and schema of `spec`.
fn with_versions(versions: &[(&str, bool, Value)]) -> Value {
    let version = |(name, storage, spec): &(&str, bool, Value)| json!({"name": name, "storage": storage, "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}});
    crd(json!({"spec": {"versions": versions.iter().map(version).collect::<Vec<_>>()}}))
}

fn object(part: Value) -> Value {
    let mut object =
        json!({"apiVersion": "test.example.com/v1", "kind": "Sample", "metadata": {"name": "a", "namespace": "n"}});
    for (key, value) in part.as_object().unwrap() {
        match (key.as_str(), value) {
            ("metadata", Value::Object(more)) => object["metadata"].as_object_mut().unwrap().extend(more.clone()),
            _ => object[key] = value.clone(),
        }
    }
    object
}

/// Proves nothing, so that objects are read.
#[derive(Debug)]
struct Unproven;

impl Prover for Unproven {
    fn prove(&self, _: &VersionPairQuestion<'_>, _: gantry_proof::Limits) -> Option<VersionProof> {
        None
    }
}

fn upgrade(live: &Value, desired: &Value) -> Option<Upgrade> {
    let raw = |crd: &Value| RawObject::from_value(crd);
    let pair = UpgradedCrd {
        change: 0,
        name: "samples.test.example.com".into(),
        sides: CrdSides::new(raw(desired), Some(raw(live))).into(),
    };
    objects::compare(&pair, &Proofs::new(Unproven, 1)).expect("both are CRDs")
}

fn validated(validator: &ObjectValidator) -> Vec<Arc<str>> {
    validator.desired.0.iter().map(|compiled| compiled.name.clone()).collect()
}

fn about<'a>(upgrade: &'a Upgrade, validated: &'a [Arc<str>]) -> About<'a> {
    About { name: &upgrade.name, live: &upgrade.live, desired: &upgrade.desired, validated, examples: 10 }
}

/// The violations for these objects.
fn findings(live: &Value, desired: &Value, objects: &[Value]) -> Vec<Violation> {
    let Some(upgrade) = upgrade(live, desired) else { return Vec::new() };
    let mut violations = Vec::new();
    for pass in pass::passes(&upgrade, false).expect("both compile").passes {
        let mut groups = Groups::default();
        for object in objects {
            let item = ProjectedObject::parse(&object.to_string(), &pass.validator.parts()).unwrap();
            groups.total += 1;
            let effects = pass.validator.effects(&item);
            let quiet = pass.validator.is_unaffected(&item);
            assert!(!quiet || effects.is_empty(), "the fast path must not miss anything: {effects:?}");
            groups.add(&ObjectName::of_object(&item), effects);
        }
        violations.extend(diagnosis::violations(groups, 0, &about(&upgrade, &validated(&pass.validator))).0);
    }
    violations
}

/// The rule, version, path and number of objects of each violation.
fn said(live: &Value, desired: &Value, objects: &[Value]) -> Vec<String> {
    let say = |violation: &Violation| {
        let count = violation.body.affected.as_ref().map_or(0, |affected| affected.count);
        let version = violation.body.version.as_deref().unwrap_or_default();
        format!("{} {version} {} {count}", violation.rule, violation.body.path.as_deref().unwrap_or("-"))
    };
    findings(live, desired, objects).iter().map(say).collect()
}

/// The violations for one object with this `spec` and two schemas of `spec`.
fn of_spec(live: Value, desired: Value, spec: Value) -> Vec<String> {
    said(&with_spec(live), &with_spec(desired), &[object(json!({"spec": spec}))])
}

fn fields(fields: Value) -> Value {
    json!({"type": "object", "properties": fields})
}

#[test]
fn a_new_description_or_order_needs_no_list_of_objects() {
    let live = with_spec(
        json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
    );
    let mut desired = live.clone();
    let spec = &mut desired["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["required"] = json!(["b", "a"]);
    spec["description"] = "new words".into();
    spec["properties"]["a"]["nullable"] = false.into();
    assert!(upgrade(&live, &desired).is_none());
    spec_of(&mut desired)["properties"]["a"]["maxLength"] = 3.into();
    assert!(upgrade(&live, &desired).is_some());
}

fn spec_of(crd: &mut Value) -> &mut Value {
    &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
}

#[test]
fn refusals_of_any_update_and_of_updates_of_a_field_are_distinguished() {
    let number = |more: Value| {
        let mut schema = json!({"type": "integer"});
        schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields(json!({"n": schema, "deep": {"type": "object", "properties": {"x": {"type": "string"}}}}))
    };
    let live = || number(json!({}));
    assert_eq!(
        of_spec(live(), number(json!({"maximum": 5})), json!({"n": 7})),
        ["ExistingObjectRefusedWhenTouched v1 spec.n 1"]
    );
    assert_eq!(of_spec(live(), number(json!({"maximum": 5})), json!({"n": 3})), Vec::<String>::new());
    let mut required = live();
    required["required"] = json!(["n"]);
    assert_eq!(of_spec(live(), required, json!({})), ["ExistingObjectRefusedOnUpdate v1 spec.n 1"]);
    // A field that a part of spec requires is checked when that part changes.
    let mut deep = live();
    deep["properties"]["deep"]["required"] = json!(["x"]);
    assert_eq!(of_spec(live(), deep, json!({"deep": {}})), ["ExistingObjectRefusedWhenTouched v1 spec.deep.x 1"]);
    // A rule that demands a change refuses any update that does not make it, and never a create.
    let moves = number(json!({"x-kubernetes-validations": [{"rule": "self > oldSelf"}]}));
    let found = findings(&with_spec(live()), &with_spec(moves), &[object(json!({"spec": {"n": 7}}))]);
    assert_eq!(found[0].rule, "ExistingObjectRefusedOnUpdate");
    assert!(found[0].body.message.contains("on any update, even of labels"), "{}", found[0].body.message);
    let once = number(
        json!({"x-kubernetes-validations": [{"rule": "oldSelf.hasValue() || self < 5", "optionalOldSelf": true}]}),
    );
    assert_eq!(of_spec(live(), once, json!({"n": 7})), ["ExistingObjectRefused v1 spec.n 1"]);
}

#[test]
fn map_keys_with_dots_brackets_and_quotes_are_not_taken_for_paths() {
    let map = |b: Value| fields(json!({"map": {"type": "object", "additionalProperties": fields(json!({"b": b}))}}));
    let (live, desired) = (map(json!({"type": "string"})), map(json!({"type": "string", "maxLength": 2})));
    for key in ["a", "a.b", "a]b", "a[0]", "[0]", "\"", "a\"].b", ".", "b"] {
        // The other keys look like the path of the refused value.
        let spec = json!({"map": {key: {"b": "long"}, format!("{key}.b"): {"b": "ok"}, format!("{key}.b.b"): {}}});
        let refused = ["ExistingObjectRefusedWhenTouched v1 spec.map[*].b 1"];
        assert_eq!(of_spec(live.clone(), desired.clone(), spec), refused, "{key}");
    }
}

#[test]
fn a_value_that_is_already_invalid_is_not_reported() {
    let limit = |most: u64| fields(json!({"s": {"type": "string", "maxLength": most}, "t": {"type": "string"}}));
    assert_eq!(of_spec(limit(3), limit(2), json!({"s": "long"})), Vec::<String>::new());
    assert_eq!(of_spec(limit(4), limit(2), json!({"s": "long"})), ["ExistingObjectRefusedWhenTouched v1 spec.s 1"]);
    // A different reason at the same place is a new problem.
    let mut other = limit(3);
    other["properties"]["s"]["pattern"] = "^x".into();
    other["properties"]["s"].as_object_mut().unwrap().remove("maxLength");
    assert_eq!(of_spec(limit(3), other, json!({"s": "long"})), ["ExistingObjectRefusedWhenTouched v1 spec.s 1"]);
}

#[test]
fn paths_of_lost_fields_have_no_indices_and_keys() {
    let live = fields(
        json!({"list": {"type": "array", "items": fields(json!({"a": {"type": "string"}, "b": {"type": "string"}}))},
        "map": {"type": "object", "additionalProperties": fields(json!({"c": {"type": "string"}}))}}),
    );
    let desired = fields(json!({"list": {"type": "array", "items": fields(json!({"a": {"type": "string"}}))},
        "map": {"type": "object", "additionalProperties": {"type": "object"}}}));
    let spec = json!({"list": [{"b": "x"}, {"a": "y"}, {"b": "z"}], "map": {"k.8": {"c": "x"}}});
    let found =
        findings(&with_spec(live), &with_spec(desired), &[object(json!({"spec": spec})), object(json!({"spec": {}}))]);
    let paths: Vec<_> =
        found.iter().map(|violation| (&*violation.rule, violation.body.path.clone().unwrap())).collect();
    assert_eq!(
        paths,
        [("ExistingDataPruned", "spec.list[*].b".to_owned()), ("ExistingDataPruned", "spec.map[*].c".to_owned())]
    );
    let affected = found[0].body.affected.as_ref().unwrap();
    assert_eq!((affected.count, affected.of, affected.objects.len()), (1, 2, 2));
    assert_eq!(affected.objects[1].path.as_deref(), Some("spec.list[2].b"));
    assert_eq!(affected.objects[1].value.as_deref(), Some("\"z\""));
}

#[test]
fn new_defaults_and_old_ones_that_may_not_be_stored_are_reported() {
    let with = |default: Value| fields(json!({"n": {"type": "integer", "default": default}}));
    let without = fields(json!({"n": {"type": "integer"}}));
    let rule = "ExistingObjectDefaultedDifferently v1 spec.n 1";
    assert_eq!(of_spec(without.clone(), with(json!(1)), json!({})), [rule]);
    assert_eq!(of_spec(without.clone(), with(json!(1)), json!({"n": 2})), Vec::<String>::new());
    assert_eq!(of_spec(with(json!(1)), with(json!(2)), json!({"n": 1})), [rule]);
    assert_eq!(of_spec(with(json!(1)), with(json!(2)), json!({"n": 3})), Vec::<String>::new());
    assert_eq!(of_spec(with(json!(1)), without, json!({"n": 1})), [rule]);
    let managed = json!([{"manager": "m", "apiVersion": "test.example.com/v1", "fieldsV1": {"f:spec": {"f:n": {}}}}]);
    let owned = object(json!({"metadata": {"managedFields": managed}, "spec": {"n": 1}}));
    assert_eq!(said(&with_spec(with(json!(1))), &with_spec(with(json!(2))), &[owned]), Vec::<String>::new());
}

#[test]
fn each_version_is_judged_by_its_own_schema() {
    let old = || fields(json!({"a": {"type": "string"}, "b": {"type": "string"}}));
    let new = || json!({"type": "object", "required": ["c"], "properties": {"a": {"type": "string"}, "c": {"type": "string"}}});
    let live = with_versions(&[("v1", true, old())]);
    let objects = [object(json!({"spec": {"a": "x", "b": "y"}}))];
    // An object loses the fields that a new served version does not have when it is written there.
    assert_eq!(
        said(&live, &with_versions(&[("v1", true, old()), ("v2", false, new())]), &objects),
        ["ExistingObjectRefusedOnUpdate v2 spec.c 1", "ExistingDataPruned v2 spec.b 1"]
    );
    // If it becomes the storage version, every write loses them.
    let moved = findings(&live, &with_versions(&[("v1", false, old()), ("v2", true, new())]), &objects);
    let lost: Vec<&str> =
        moved.iter().filter(|v| v.rule == "ExistingDataPruned").map(|v| v.body.message.as_str()).collect();
    assert_eq!(lost.len(), 1, "{lost:?}");
    assert!(lost[0].contains("becomes the storage version"), "{lost:?}");
    // A version that existed before with the same schema is not reported.
    let both = with_versions(&[("v1", true, old()), ("v2", false, new())]);
    let wider = with_versions(&[
        ("v1", true, fields(json!({"a": {"type": "string"}, "b": {"type": "string"}, "z": {"type": "string"}}))),
        ("v2", false, new()),
    ]);
    assert_eq!(said(&both, &wider, &objects), Vec::<String>::new());
}

#[test]
fn removed_versions_are_reported_with_the_managers_that_use_them() {
    let two = |served: bool| {
        crd(json!({"spec": {"versions": [{"name": "v1"}, {"name": "v1alpha1", "served": served, "storage": false}]}}))
    };
    let one = crd(json!({}));
    let managed = |manager: &str, version: &str, time: &str| json!({"manager": manager, "apiVersion": format!("test.example.com/{version}"), "time": time, "operation": "Update"});
    let metadata = json!({"managedFields": [
        managed("old", "v1alpha1", "2024-01-01T00:00:00Z"), managed("old", "v1alpha1", "2025-01-01T00:00:00Z"),
        managed("new", "v1", "2026-01-01T00:00:00Z")]});
    let objects = [object(json!({"metadata": metadata})), object(json!({"metadata": {"name": "b"}}))];
    let written = "1 of 2 objects was written at v1alpha1, which is no longer served, by old";
    let lost = "1 of 2 objects can no longer be written by server-side apply once v1alpha1 is removed: managedFields have \
        an entry of old at v1alpha1";
    for (served, desired, severity, message) in [
        (true, two(false), Severity::Warning, written),
        (true, one.clone(), Severity::Error, lost),
        (false, one.clone(), Severity::Error, lost),
    ] {
        let found = findings(&two(served), &desired, &objects);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (&*found[0].rule, found[0].severity, &*found[0].body.message),
            ("ObjectInRemovedVersion", severity, message)
        );
        // What was only written at a version is read and written at every other one.
        assert_eq!(found[0].body.breaks == [Breaks::Writers], severity == Severity::Warning);
        assert_eq!(
            found[0].body.affected.as_ref().unwrap().objects[0].value.as_deref(),
            Some("last 2025-01-01T00:00:00Z")
        );
    }
    let moved = crd(json!({"spec": {"versions": [{"name": "v2"}]}}));
    let found = findings(&one, &moved, &objects);
    let is_stored = |violation: &Violation| {
        violation.rule == "ObjectInRemovedVersion"
            && violation.severity == Severity::Error
            && violation.body.message.starts_with("all 2 objects may be stored at v1")
    };
    assert!(found.iter().any(is_stored), "{found:?}");
}

#[test]
fn unknown_fields_are_lost_when_the_crd_stops_preserving_them() {
    let mut live = with_spec(fields(json!({"a": {"type": "string"}})));
    let desired = live.clone();
    live["spec"]["preserveUnknownFields"] = true.into();
    let objects = [object(json!({"spec": {"a": "x", "extra": 1}}))];
    assert_eq!(said(&live, &desired, &objects), ["ExistingDataPruned v1 spec.extra 1"]);
    assert_eq!(said(&live, &live, &objects), Vec::<String>::new());
}

#[test]
fn a_status_is_validated_although_a_create_cannot_set_it() {
    let with = |status: Value| {
        let schema = json!({"openAPIV3Schema": {"properties": {"status": fields(status)}}});
        crd(json!({"spec": {"versions": [{"name": "v1", "schema": schema, "subresources": {"status": {}}}]}}))
    };
    let live = with(json!({"phase": {"type": "string"}}));
    let objects = [object(json!({"status": {"phase": ""}}))];
    assert_eq!(
        said(&live, &with(json!({"phase": {"type": "string", "minLength": 1}})), &objects),
        ["ExistingObjectRefusedWhenTouched v1 status.phase 1"]
    );
}

#[test]
fn many_causes_and_objects_stay_bounded() {
    let live = fields(json!({"m": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}));
    let desired = fields(json!({"m": {"type": "object"}}));
    let spec: serde_json::Map<String, Value> = (0..2000).map(|i| (format!("k{i:04}"), json!(i))).collect();
    let objects: Vec<Value> =
        (0..3).map(|i| object(json!({"metadata": {"name": format!("o{i}")}, "spec": {"m": spec}}))).collect();
    let found = findings(&with_spec(live), &with_spec(desired), &objects);
    assert!(found.len() <= 501, "{}", found.len());
    assert!(found.iter().all(|violation| violation.body.affected.as_ref().unwrap().count == 3));
}

#[test]
fn objects_beyond_the_limit_are_counted_and_not_named() {
    let (live, desired) = (
        fields(json!({"a": {"type": "array", "items": fields(json!({"b": {"type": "string"}}))}})),
        fields(json!({"a": {"type": "array", "items": {"type": "object"}}})),
    );
    let upgrade = upgrade(&with_spec(live), &with_spec(desired)).unwrap();
    let pass = pass::passes(&upgrade, false).unwrap().passes.remove(0);
    let mut groups = Groups::with_room(3);
    for number in 0..4 {
        let object =
            object(json!({"metadata": {"name": format!("o{number}")}, "spec": {"a": [{"b": "x"}, {"b": "y"}]}}));
        let item = ProjectedObject::parse(&object.to_string(), &pass.validator.parts()).unwrap();
        groups.total += 1;
        groups.add(&ObjectName::of_object(&item), pass.validator.effects(&item));
    }
    let found = diagnosis::violations(groups, 0, &about(&upgrade, &validated(&pass.validator))).0;
    let affected = found.into_iter().next().unwrap().body.affected.unwrap();
    assert_eq!((affected.count, affected.unlisted, affected.objects.len()), (4, 2, 3));
}

#[test]
fn objects_that_may_be_stored_at_an_unserved_version_are_read_by_its_schema() {
    let wide = || fields(json!({"a": {"type": "string"}, "b": {"type": "string"}}));
    let crd = |old: Value| {
        let mut crd = with_versions(&[("v1", true, wide()), ("v1alpha1", false, old)]);
        crd["spec"]["versions"][1]["served"] = false.into();
        crd
    };
    let mut live = crd(wide());
    let desired = crd(fields(json!({"a": {"type": "string"}})));
    let objects = [object(json!({"spec": {"a": "x", "b": "y"}}))];
    assert_eq!(said(&live, &desired, &objects), Vec::<String>::new(), "nothing is stored at it");
    live["status"] = json!({"storedVersions": ["v1alpha1", "v1"]});
    assert_eq!(said(&live, &desired, &objects), ["ExistingDataPruned v1alpha1 spec.b 1"]);
}

#[test]
fn a_new_storage_version_behind_a_webhook_is_requested_from_the_server() {
    let versions = |storage: &str, names: &[&str]| {
        let versions: Vec<_> = names.iter().map(|name| (*name, *name == storage, fields(json!({})))).collect();
        let mut crd = with_versions(&versions);
        crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
        crd
    };
    let passes = |live: &Value, desired: &Value| {
        let upgrade = upgrade(live, desired).expect("something moves");
        let passes = pass::passes(&upgrade, false).expect("both compile");
        let listed = passes.passes.iter().map(|pass| pass.version.to_string()).collect::<Vec<_>>();
        (listed, passes.not_validated.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let both = ["v1", "v2"];
    assert_eq!(passes(&versions("v1", &both), &versions("v2", &both)), (vec!["v2".to_owned()], vec![]));
    // A version cannot be read before it is served.
    let (_, not_validated) = passes(&versions("v1", &["v1"]), &versions("v2", &both));
    assert_eq!(not_validated, ["v2"]);
}
