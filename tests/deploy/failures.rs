//! What has failed ends a deploy at once, and what needs more than being written is awaited: kinds that other tests do
//! not cover. The tests act as the controllers.

use crate::support::{control_plane, eventually};
use crate::waiting::{Stage, available, pods, status, widget, widgets};
use serde_json::{Value, json};

fn condition(name: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": name, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// Deploys the object and gives it the status, of which the deploy has to end with this reason, long before its limit.
fn ends_the_deploy(stage: &Stage, object: &Value, written: Value, reason: &str) {
    let name = object["metadata"]["name"].as_str().expect("a name");
    let mut held = stage.config_map("held", json!({"gantry.dev/change-rule": "upsert after upserting first"}));
    held["data"] = json!({"a": "b"});
    let mut first = object.clone();
    first["metadata"]["annotations"] = json!({"gantry.dev/change-group": "first"});
    stage.write(&[&first, &held]);
    let running = stage.deploy(&["--wait-timeout=2m", "-o", "human", "-o", "json=report.json"]).spawn();
    let path = control_plane().path_of(object);
    let is_written = || !control_plane().get(&path).1["metadata"]["annotations"]["gantry.dev/change-group"].is_null();
    eventually("the object is written", || is_written().then_some(()));
    status(object, written);
    let output = running.wait();
    output.code(5).stdout_contains(&format!("{name} -n {} has failed: {reason}", stage.namespace()));
    output.contains_nowhere("is not ready after");
    assert_eq!(control_plane().get(&stage.bed.config_map_path("held")).0, 404, "{output}");
    let report = std::fs::read_to_string(stage.bed.folder.path().join("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let wait = &report["waits"][0];
    assert_eq!(wait["state"], "failed", "{report}");
    assert!(wait["seconds"].as_u64().expect("seconds") < 100, "{report}");
}

#[test]
fn a_deployment_that_misses_its_deadline_ends_the_deploy() {
    let stage = Stage::new();
    let late = condition("Progressing", "False", "ProgressDeadlineExceeded", "it has timed out");
    let mut written = available(1);
    written["conditions"] = json!([late]);
    ends_the_deploy(&stage, &stage.deployment(), written, "ProgressDeadlineExceeded: it has timed out");
}

#[test]
fn a_custom_resource_that_is_stalled_ends_the_deploy() {
    let stage = Stage::new();
    control_plane().apply_yaml(&widgets(&stage).to_string());
    let stalled = json!({"conditions": [condition("Ready", "False", "Stalled", ""),
        condition("Stalled", "True", "BadSpec", "cannot be done")]});
    // It exists, because a new one without a status is soon ready.
    let one = widget(&stage, "one");
    control_plane().apply_yaml(&one.to_string());
    status(&one, json!({"conditions": [condition("Ready", "False", "Working", "")]}));
    ends_the_deploy(&stage, &one, stalled, "BadSpec: cannot be done");
}

#[test]
fn a_claim_without_its_volume_ends_the_deploy() {
    let stage = Stage::new();
    let spec = json!({"storageClassName": "none", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}});
    let claim = stage.object("v1", "PersistentVolumeClaim", "data", json!({}), spec);
    ends_the_deploy(&stage, &claim, json!({"phase": "Lost"}), "Lost: its volume is gone");
}

#[test]
fn a_pod_that_fails_ends_the_deploy() {
    let stage = Stage::new();
    let pod = stage.object("v1", "Pod", "once", json!({}), pods("Never")["spec"].clone());
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
    ends_the_deploy(&stage, &pod, evicted, "Evicted: low on memory");
}

/// Lasts half a minute: a quota may refuse Pods only for a moment.
#[test]
fn a_replica_set_that_cannot_create_its_pods_ends_the_deploy_after_a_while() {
    let stage = Stage::new();
    let mut set = stage.deployment();
    set["kind"] = "ReplicaSet".into();
    let refused =
        json!({"replicas": 0, "conditions": [condition("ReplicaFailure", "True", "FailedCreate", "no quota")]});
    ends_the_deploy(&stage, &set, refused, "FailedCreate: no quota (for 30s)");
}

#[test]
fn controllers_of_replicas_and_volumes_are_awaited() {
    let stage = Stage::new();
    let selector = json!({"run": "web"});
    let spec = json!({"replicas": 2, "selector": selector, "template": pods("Always")});
    let mut controller = stage.object("v1", "ReplicationController", "web", json!({}), spec);
    let mut volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": stage.namespace()}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/none"}}});
    stage.write(&[&controller, &volume]);
    let output = stage.deploy(&["--wait-timeout=1s"]).run();
    output.code(5).stdout_contains("replicationcontroller/web").stdout_contains("its controller has not seen it yet");
    output.stdout_contains(&format!("persistentvolume/{} is not ready after 1s: Pending", stage.namespace()));
    let of_controller =
        |ready: u8| json!({"replicas": 2, "readyReplicas": ready, "availableReplicas": ready, "observedGeneration": 1});
    // It is changed, so it is awaited even if it is ready when it is read.
    for object in [&mut controller, &mut volume] {
        object["metadata"]["labels"] = json!({"changed": "yes"});
    }
    stage.write(&[&controller, &volume]);
    let running = stage.deploy(&["-o", "json"]).spawn();
    eventually("the deploy to start", || (stage.last()["outcome"] == "started").then_some(()));
    status(&controller, of_controller(1));
    status(&volume, json!({"phase": "Available"}));
    let inspect = ["inspect", "-a", "shop", "-n", stage.namespace(), "-o", "json"];
    let state = |kind: &str| {
        let report = stage.bed.gantry(control_plane().kubeconfig("admin"), &inspect).run().code(0).report();
        let objects = report["objects"].as_array().expect("objects");
        objects.iter().find(|one| one["object"]["kind"] == kind).expect("an object")["readiness"].clone()
    };
    assert_eq!(state("PersistentVolume"), json!({"state": "ready"}));
    assert_eq!(state("ReplicationController")["reason"], "1 of 2 replicas available");
    assert_eq!(stage.last()["outcome"], "started");
    status(&controller, of_controller(2));
    let report = running.wait().code(0).report();
    let waits = report["waits"].as_array().expect("waits");
    assert!(waits.len() == 2 && waits.iter().all(|wait| wait["state"] == "ready"), "{report}");
    let path = control_plane().path_of(&volume);
    control_plane().delete(&path);
    control_plane().patch(&path, &json!({"metadata": {"finalizers": null}}));
    eventually("the volume to go", || (control_plane().get(&path).0 == 404).then_some(()));
}

#[test]
fn an_object_that_is_not_waited_for_delays_nothing() {
    let stage = Stage::new();
    let mut web = stage.deployment();
    web["metadata"]["annotations"] = json!({"kapp.k14s.io/disable-wait": "", "gantry.dev/change-group": "web"});
    // It does not hold up others either.
    let then = stage.config_map("then", json!({"gantry.dev/change-rule": "upsert after upserting web"}));
    stage.write(&[&web, &then]);
    stage.deploy(&["--wait-timeout=20s"]).run().code(0).stdout_contains("2 created");
    // Even if it has failed.
    let mut late = available(0);
    late["conditions"] = json!([condition("Progressing", "False", "ProgressDeadlineExceeded", "late")]);
    status(&web, late.clone());
    stage.deploy(&["--wait-timeout=20s"]).run().code(0);
    // Without the annotation it counts.
    web["metadata"]["annotations"] = json!({});
    stage.write(&[&web, &then]);
    stage.deploy(&["--wait=false"]).run().code(0).stdout_contains("1 updated");
    status(&web, late);
    stage.deploy(&["--wait-timeout=20s"]).run().code(5).stdout_contains("ProgressDeadlineExceeded: late");
}
