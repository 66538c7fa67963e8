//! Apps of kapp that are taken over: further kinds with kapp's label in their selector, and the copies that controllers
//! make of the label.

use std::collections::BTreeSet;

use crate::controllers::cluster;
use crate::kapp::{APP, Stage};
use crate::support::{ControlPlane, control_plane, eventually};
use serde_json::{Value, json};

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"run": "x"}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}

fn selector() -> Value {
    json!({"matchLabels": {"run": "x"}})
}

/// The objects with kapp's label, of all kinds and in all namespaces.
fn labelled(cp: &ControlPlane, id: &str) -> Vec<Value> {
    let groups = cp.get("/apis").1["groups"].as_array().cloned().unwrap_or_default();
    let versions = groups.iter().filter_map(|group| group["preferredVersion"]["groupVersion"].as_str());
    let versions: Vec<String> =
        versions.map(|version| format!("/apis/{version}")).chain(["/api/v1".to_owned()]).collect();
    let mut found = Vec::new();
    for version in versions {
        let resources = cp.get(&version).1["resources"].as_array().cloned().unwrap_or_default();
        for resource in resources {
            let can_list = resource["verbs"].as_array().is_some_and(|verbs| verbs.contains(&json!("list")));
            let plural = resource["name"].as_str().expect("a plural").to_owned();
            if can_list {
                let list = cp.get(&format!("{version}/{plural}?labelSelector={APP}%3D{id}")).1;
                let items = list["items"].as_array().cloned().unwrap_or_default();
                found.extend(items.into_iter().map(|mut item| {
                    item["kind"] = resource["kind"].clone();
                    item
                }));
            }
        }
    }
    found
}

fn kinds(objects: &[Value]) -> BTreeSet<&str> {
    objects.iter().filter_map(|object| object["kind"].as_str()).collect()
}

#[test]
fn selectors_of_further_kinds_keep_the_label_of_kapp() {
    let stage = Stage::on(control_plane());
    let objects = |image: &str| {
        [
            stage.object("apps/v1", "DaemonSet", "agent", json!({"selector": selector(), "template": template(image)})),
            stage.object("apps/v1", "ReplicaSet", "web", json!({"selector": selector(), "template": template(image)})),
            stage.object("policy/v1", "PodDisruptionBudget", "web", json!({"minAvailable": 1, "selector": selector()})),
        ]
    };
    let first = objects("example.com/web:1");
    stage.kapp_deploys(&first);
    stage.kapp_records(&[("apps", "DaemonSet"), ("apps", "ReplicaSet"), ("policy", "PodDisruptionBudget")]);
    let before = stage.insides(&first);
    assert!(before.values().all(|inside| inside.to_string().contains(&stage.id())), "{before:#?}");
    stage.write(&first);
    let output = stage.app("deploy", &["--from-kapp"]);
    output.code(0).stdout_contains("3 adopted").stderr_contains("keep the label kapp.k14s.io/app");
    for name in ["daemonset.apps/agent", "replicaset.apps/web", "poddisruptionbudget.policy/web"] {
        output.stderr_contains(name);
    }
    assert_eq!(stage.insides(&first), before);
    assert_eq!(labelled(stage.cp, &stage.id()), [Value::Null; 0]);
    stage.app("deploy", &[]).code(0).stdout_contains("Nothing to do").contains_nowhere("rebase");

    // An update changes the image only.
    stage.write(&objects("example.com/web:2"));
    stage.app("deploy", &[]).code(0).stdout_contains("2 updated");
    let updated = stage.insides(&first);
    for (name, inside) in &updated {
        let expected = before[name].to_string().replace("example.com/web:1", "example.com/web:2");
        assert_eq!(inside.to_string(), expected, "{name}");
    }
    // The selector of a budget can change.
    stage.app("deploy", &["--drop-kapp-selector"]).code(0).stdout_contains("1 updated");
    for (name, inside) in stage.insides(&first) {
        let expected = match name.contains("PodDisruptionBudget") {
            true => json!([selector(), null, null]),
            false => updated[&name].clone(),
        };
        assert_eq!(inside, expected, "{name}");
    }
    stage.app("deploy", &[]).code(0).stdout_contains("Nothing to do");
}

#[test]
fn only_copies_that_controllers_make_carry_the_label_of_kapp_after_a_takeover() {
    let stage = Stage::on(cluster());
    let (cp, id) = (stage.cp, stage.id());
    let web = json!({"replicas": 2, "selector": selector(), "template": template("web:1")});
    let database = json!({"serviceName": "db", "selector": {"matchLabels": {"run": "db"}},
        "template": {"metadata": {"labels": {"run": "db"}}, "spec": template("web:1")["spec"]}});
    let objects = [
        stage.object("apps/v1", "Deployment", "web", web),
        stage.object("apps/v1", "StatefulSet", "db", database),
        stage.object("v1", "Service", "web", json!({"selector": {"run": "x"}, "ports": [{"port": 80}]})),
    ];
    stage.kapp_deploys(&objects);
    stage.kapp_records(&[("apps", "Deployment"), ("apps", "StatefulSet"), ("", "Service")]);
    // Controllers copy the labels of a pod template, and those of a Service.
    let copies = ["ControllerRevision", "EndpointSlice", "Endpoints", "Pod", "ReplicaSet"];
    eventually("the copies of the controllers", || {
        let found = labelled(cp, &id);
        copies.iter().all(|kind| kinds(&found).contains(kind)).then_some(())
    });
    let pods = || {
        let found = labelled(cp, &id);
        let uid = |pod: &Value| pod["metadata"]["uid"].as_str().expect("a uid").to_owned();
        found.iter().filter(|object| object["kind"] == "Pod").map(uid).collect::<BTreeSet<String>>()
    };
    eventually("the Pods", || (pods().len() == 3).then_some(()));
    let before = pods();
    stage.write(&objects);
    stage.app("deploy", &["--from-kapp"]).code(0).stdout_contains("3 adopted");
    // The controllers of the Service remove the label where the Service no longer has it.
    let left = eventually("the labels of the Service to go", || {
        let found = labelled(cp, &id);
        let is_owned = |object: &Value| !object["metadata"]["ownerReferences"].is_null();
        let of_service = ["Endpoints", "EndpointSlice"];
        (found.iter().all(is_owned) && kinds(&found).is_disjoint(&BTreeSet::from(of_service))).then_some(found)
    });
    assert_eq!(kinds(&left), BTreeSet::from(["ControllerRevision", "Pod", "ReplicaSet"]));
    assert_eq!(pods(), before, "no Pod was replaced");
}
