//! Manifests that were exported from the live object, such as those of a snapshot.
//!
//! They have everything that the server, controllers and other field managers added, which our entry in
//! `metadata.managedFields` lacks. If nothing of it has changed, an apply would only make gantry an owner of all of it.
//! If the object is gone, it is created again without the values that were assigned to the former one: the server
//! refuses them, or they lead to objects that are gone as well.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Change;
use gantry_core::managed_fields::ManagerEntry;
use gantry_core::resource::{ObjectRef, RawObject, SERVER_METADATA, Step};
use gantry_schema::scan;

/// The field managers of the control plane.
const CONTROL_PLANE: [&str; 2] = ["kube-controller-manager", "kube-scheduler"];

/// In a path: every item of a list.
const EACH: &str = "[*]";

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The keys before Kubernetes 1.27, which are still set beside the new ones.
const LEGACY_CONTROLLER_UID: &str = "controller-uid";
const LEGACY_JOB_NAME: &str = "job-name";

/// Values that the control plane assigns to each object.
struct AssignedFields {
    paths: &'static [&'static [&'static str]],
    /// Whether manifests may set them, too.
    can_be_set: bool,
}

/// The fields of an object whose values the control plane assigns.
///
/// Source: `pkg/registry/core/service/storage` (addresses and ports), `pkg/registry/batch/job/strategy.go`
/// (`generateSelector`), `pkg/controller/volume/persistentvolume` (binding) and the binding of Pods in Kubernetes.
fn assigned_fields(object: &ObjectRef) -> Option<AssignedFields> {
    let (paths, can_be_set): (&[&[&str]], bool) = match (object.group(), object.kind.as_str()) {
        ("", "Service") => (
            &[
                &["spec", "clusterIP"],
                &["spec", "clusterIPs"],
                &["spec", "ipFamilies"],
                &["spec", "healthCheckNodePort"],
                &["spec", "ports", EACH, "nodePort"],
            ],
            true,
        ),
        ("batch", "Job") => (
            &[
                &["spec", "selector"],
                &["spec", "template", "metadata", "labels", CONTROLLER_UID],
                &["spec", "template", "metadata", "labels", LEGACY_CONTROLLER_UID],
                &["spec", "template", "metadata", "labels", JOB_NAME],
                &["spec", "template", "metadata", "labels", LEGACY_JOB_NAME],
                &["metadata", "labels", CONTROLLER_UID],
                &["metadata", "labels", LEGACY_CONTROLLER_UID],
                &["metadata", "labels", JOB_NAME],
                &["metadata", "labels", LEGACY_JOB_NAME],
            ],
            false,
        ),
        ("", "PersistentVolumeClaim") => (
            &[
                &["spec", "volumeName"],
                &["metadata", "annotations", "pv.kubernetes.io/bind-completed"],
                &["metadata", "annotations", "pv.kubernetes.io/bound-by-controller"],
                &["metadata", "annotations", "volume.kubernetes.io/selected-node"],
            ],
            true,
        ),
        // A provisioner of volumes writes them. A volume for the claim of a former uid is never bound, and may be
        // reclaimed.
        ("", "PersistentVolume") => (&[&["spec", "claimRef", "uid"], &["spec", "claimRef", "resourceVersion"]], false),
        ("", "Pod") => (&[&["spec", "nodeName"]], true),
        _ => return None,
    };
    Some(AssignedFields { paths, can_be_set })
}

/// Prepares each export whose object does not exist any more for its creation: without assigned values and without
/// owners that are gone. What somebody else than the control plane set stays: `metadata.managedFields` of the export
/// says so.
pub(super) fn prepare_creations(changes: &mut [Change]) {
    let is_gone = |change: &Change| {
        let exported = uid(&change.desired.raw).filter(|_| change.unread.is_none());
        exported.is_some_and(|exported| change.live.as_ref().is_none_or(|live| live.uid != exported))
    };
    // Most manifests are no exports, which shows without parsing them.
    let may_be_export = |change: &Change| change.desired.metadata_may_contain(&["uid"]);
    let gone: Vec<usize> =
        (0..changes.len()).filter(|index| may_be_export(&changes[*index]) && is_gone(&changes[*index])).collect();
    if gone.is_empty() {
        return;
    }
    let living: BTreeSet<String> =
        changes.iter().filter_map(|change| change.live.as_ref()).map(|live| live.uid.clone()).collect();
    for index in gone {
        let change = &mut changes[index];
        let before = change.desired.raw.value();
        let mut after = before.clone();
        if let Some(fields) = assigned_fields(&change.desired.object) {
            leave_out_assigned(&mut after, &before, &fields);
        }
        leave_out_owners(&mut after, &living);
        if after != before {
            change.desired.raw = RawObject::from_value(&after);
        }
    }
}

fn leave_out_assigned(object: &mut Value, export: &Value, fields: &AssignedFields) {
    // A Job with a selector of its own has the labels of its author.
    if export.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    // `kubectl get -o yaml` leaves managedFields out: then nobody knows who set a value.
    if fields.can_be_set && ManagerEntry::all(export).next().is_none() {
        return;
    }
    let by_others = |entry: &ManagerEntry| entry.subresource().is_empty() && !CONTROL_PLANE.contains(&entry.manager());
    let entries = ManagerEntry::all(export).filter(by_others).filter(|_| fields.can_be_set);
    let set_by_others: Vec<_> = entries.map(ManagerEntry::fields).collect();
    let is_set = |at: &[Step]| set_by_others.iter().any(|fields| fields.owns(at, Some(export)));
    for path in fields.paths {
        remove_unless(object, path, &mut Vec::new(), &is_set);
    }
}

/// Leaves out references to owners that are not known to exist: the garbage collector deletes an object none of whose
/// owners exists.
fn leave_out_owners(object: &mut Value, living: &BTreeSet<String>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(owners) = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut) else { return };
    owners.retain(|owner| owner["uid"].as_str().is_some_and(|uid| living.contains(uid)));
    if owners.is_empty() {
        metadata.shift_remove("ownerReferences");
    }
}

/// Removes what is at the path, and maps that are empty then, except where `is_set`.
fn remove_unless(value: &mut Value, path: &[&str], at: &mut Vec<Step>, is_set: &dyn Fn(&[Step]) -> bool) {
    let Some((name, rest)) = path.split_first() else { return };
    match value {
        Value::Array(items) if *name == EACH => {
            for (index, item) in items.iter_mut().enumerate() {
                at.push(index.into());
                remove_unless(item, rest, at, is_set);
                at.pop();
            }
        }
        Value::Object(map) => {
            at.push((*name).into());
            match map.get_mut(*name) {
                Some(below) if !rest.is_empty() => {
                    remove_unless(below, rest, at, is_set);
                    if below.as_object().is_some_and(Map::is_empty) {
                        map.shift_remove(*name);
                    }
                }
                // The server assigns no `None`: a Service without an address has it from its author.
                Some(below) if *below != "None" && !is_set(at) => drop(map.shift_remove(*name)),
                _ => {}
            }
            at.pop();
        }
        _ => {}
    }
}

/// Whether a manifest is an export of the live object, and the live object still has the same content.
pub fn is_current(desired: &RawObject, live: &RawObject, is_built_in: bool) -> bool {
    let Some(exported) = uid(desired) else { return false };
    if uid(live).is_none_or(|live| live != exported) {
        return false;
    }
    let (desired, live) = (desired.value(), live.value());
    let ignores_status = is_built_in || has_status_subresource(&live);
    content(desired, ignores_status) == content(live, ignores_status)
}

/// The uid that an object has. Few manifests have one, which shows without parsing the rest.
fn uid(object: &RawObject) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct ExportedMetadata {
        #[serde(default)]
        uid: String,
    }
    let json = object.json();
    let metadata: ExportedMetadata = serde_json::from_str(scan::member(&json, "metadata")?).ok()?;
    Some(metadata.uid).filter(|uid| !uid.is_empty())
}

/// Whether somebody wrote the status on its own. Then a write of the object leaves it as it is.
fn has_status_subresource(live: &Value) -> bool {
    ManagerEntry::all(live).any(|entry| entry.subresource() == "status")
}

/// The object without what the server ignores in a write.
fn content(mut object: Value, ignores_status: bool) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
    }
    if let Some(object) = object.as_object_mut().filter(|_| ignores_status) {
        object.remove("status");
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compare(change: impl FnOnce(&mut Value), is_built_in: bool) -> bool {
        let live = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "uid": "u", "resourceVersion": "9",
            "generation": 3, "managedFields": [{"manager": "m"}], "labels": {"a": "b"}}, "spec": {"default": 1},
            "status": {"ready": true}});
        let mut exported = live.clone();
        exported["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        change(&mut exported);
        is_current(&RawObject::from_value(&exported), &RawObject::from_value(&live), is_built_in)
    }

    #[test]
    fn an_export_is_current_as_long_as_its_content_is() {
        assert!(compare(|_| (), true) && compare(|_| (), false));
        assert!(compare(|it| it["metadata"]["generation"] = 2.into(), true));
        assert!(!compare(|it| it["spec"]["default"] = 2.into(), true));
        assert!(!compare(|it| it["spec"]["more"] = 2.into(), true));
        assert!(!compare(|it| it["metadata"]["labels"]["c"] = "d".into(), true));
        assert!(!compare(|it| drop(it["spec"].as_object_mut().unwrap().remove("default")), true));
        assert!(!compare(|it| it["metadata"]["uid"] = "other".into(), true), "it was created again");
        assert!(!compare(|it| it["metadata"]["uid"] = "".into(), true), "a manifest that is no export");
    }

    #[test]
    fn assigned_values_are_left_out_unless_somebody_set_them() {
        let service = ObjectRef {
            api_version: "v1".into(),
            kind: "Service".into(),
            namespace: Some("n".into()),
            name: "a".into(),
        };
        let entry = |manager: &str, fields: Value| {
            json!({"manager": manager, "operation": "Update",
            "fieldsV1": {"f:spec": fields}})
        };
        let port = |port: u16, fields: Value| json!({format!(r#"k:{{"port":{port},"protocol":"TCP"}}"#): fields});
        let export = |address: &str, managed: Value| {
            json!({"metadata": {"managedFields": managed}, "spec": {"clusterIP": address,
            "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}, {"port": 81, "protocol": "TCP", "nodePort": 30081}]}})
        };
        let left = |export: &Value| {
            let mut left = export.clone();
            leave_out_assigned(&mut left, export, &assigned_fields(&service).unwrap());
            let ports = left["spec"]["ports"].as_array().unwrap().iter();
            (left["spec"]["clusterIP"].clone(), ports.map(|port| port["nodePort"].clone()).collect::<Vec<_>>())
        };
        let by_the_control_plane = entry("kube-controller-manager", json!({"f:clusterIP": {}}));
        let one_port = entry("kubectl", json!({"f:ports": port(81, json!({"f:nodePort": {}}))}));
        let mixed = export("10.0.0.1", json!([by_the_control_plane, one_port]));
        assert_eq!(left(&mixed), (Value::Null, vec![Value::Null, json!(30081)]));
        let set = export("10.0.0.1", json!([entry("kubectl", json!({"f:clusterIP": {}}))]));
        assert_eq!(left(&set).0, "10.0.0.1");
        let unset = |address: &str| export(address, json!([entry("kubectl", json!({"f:type": {}}))]));
        assert_eq!((left(&unset("10.0.0.1")).0, left(&unset("None")).0), (Value::Null, json!("None")));
        let unknown = export("10.0.0.1", json!([]));
        assert_eq!(left(&unknown), (json!("10.0.0.1"), vec![json!(30080), json!(30081)]));
    }

    #[test]
    fn a_status_counts_only_where_a_write_of_the_object_writes_it() {
        let change = |it: &mut Value| it["status"]["ready"] = false.into();
        assert!(compare(change, true));
        assert!(!compare(change, false));
        let entry = |subresource: &str| json!({"metadata": {"managedFields": [{"subresource": subresource}]}});
        assert!(has_status_subresource(&entry("status")) && !has_status_subresource(&entry("scale")));
    }
}
