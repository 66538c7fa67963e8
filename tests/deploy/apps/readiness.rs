//! `gantry inspect` and the readiness of members: the test acts as the controllers and writes their status.

use std::collections::BTreeMap;

use crate::support::{Bed, Output, Proxy, control_plane, eventually};
use serde_json::{Value, json};

/// A namespace with an app in it.
struct Stage {
    bed: Bed,
}

impl Stage {
    fn new() -> Self {
        Stage { bed: Bed::with_namespace() }
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
        self.bed.object(api_version, kind, name, json!({"spec": spec}))
    }

    /// A workload that runs Pods.
    fn workload(&self, kind: &str, name: &str) -> Value {
        let mut spec = pods(name);
        match kind {
            "DaemonSet" => {}
            "StatefulSet" => spec["serviceName"] = name.into(),
            _ => spec["replicas"] = 2.into(),
        }
        self.object("apps/v1", kind, name, spec)
    }

    fn deploy(&self, objects: &[Value], crds: &str) {
        let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.bed.write("manifests.yaml", &format!("{crds}\n---\n{}", texts.join("\n---\n")));
        self.run(&["deploy", "-f", "manifests.yaml", "--wait=false"]).code(0);
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let of_app = ["-a", "stage", "-n", &self.bed.names.namespace];
        self.bed.gantry(control_plane().kubeconfig("admin"), &[arguments, &of_app].concat()).run()
    }

    /// The objects of the JSON output by `kind/name`.
    fn inspect(&self, flags: &[&str]) -> BTreeMap<String, Value> {
        let output = self.run(&[&["inspect", "-o", "json"], flags].concat());
        let report: Value = serde_json::from_str(&output.code(0).stdout).expect("JSON");
        let objects = report["objects"].as_array().expect("a list of objects");
        let key = |entry: &Value| {
            let text = |field: &str| entry["object"][field].as_str().expect("a text").to_owned();
            format!("{}/{}", text("kind"), text("name"))
        };
        objects.iter().map(|entry| (key(entry), entry.clone())).collect()
    }
}

fn pods(name: &str) -> Value {
    json!({"selector": {"matchLabels": {"run": name}}, "template": {"metadata": {"labels": {"run": name}}, "spec": pod()}})
}

fn pod() -> Value {
    json!({"containers": [{"name": "main", "image": "example.com/image:1"}]})
}

/// Writes a controller's status for the latest generation.
fn status(object: &Value, mut status: Value) {
    let path = control_plane().api().path_of(object);
    if status.get("observedGeneration").is_none() && object["apiVersion"] == "apps/v1" {
        let (_, live) = control_plane().get(&path);
        status["observedGeneration"] = live["metadata"]["generation"].clone();
    }
    let (code, answer) = control_plane().patch(&format!("{path}/status"), &json!({ "status": status }));
    assert_eq!(code, 200, "{answer}");
}

fn condition(name: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": name, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

/// An object, the status that its controller wrote, `yes`, `no` or `failed`, and the reason.
type Case = (Value, Value, &'static str, &'static str);

#[test]
fn members_are_ready_in_progress_or_failed_as_their_status_says() {
    let stage = Stage::new();
    let group = &stage.bed.names.group;
    let status_type = "status: {type: object, x-kubernetes-preserve-unknown-fields: true}, spec: {type: object}";
    let crd = stage.bed.crd(status_type).replace("served: true", "served: true\n    subresources: {status: {}}");
    let custom = |name: &str| stage.object(&format!("{group}/v1"), "Sample", name, json!({}));
    let job = |name: &str| {
        let mut template = pod();
        template["restartPolicy"] = "Never".into();
        stage.object("batch/v1", "Job", name, json!({"template": {"spec": template}}))
    };
    let service = |name: &str, kind: &str| {
        stage.object("v1", "Service", name, json!({"type": kind, "ports": [{"port": 80}], "selector": {"run": name}}))
    };
    let claim = |name: &str| {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        stage.object("v1", "PersistentVolumeClaim", name, spec)
    };
    let rolled = json!({"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
    let mut failed = json!({"replicas": 2, "updatedReplicas": 2});
    failed["conditions"] = json!([condition("Progressing", "False", "ProgressDeadlineExceeded", "it has timed out")]);
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such \u{1b}[31mimage"}});
    let container =
        json!({"name": "main", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": waiting});
    let times = json!({"startTime": "2026-01-01T00:00:00Z"});
    let mut done = times.clone();
    done["completionTime"] = "2026-01-01T00:01:00Z".into();
    done["succeeded"] = 1.into();
    done["conditions"] = json!(["SuccessCriteriaMet", "Complete"].map(|name| condition(name, "True", "Done", "")));
    let mut broke = times.clone();
    broke["failed"] = 7.into();
    broke["conditions"] =
        json!(["FailureTarget", "Failed"].map(|name| condition(name, "True", "BackoffLimitExceeded", "too often")));
    let mut running = times;
    running["active"] = 1.into();
    let budget = json!({"minAvailable": 1, "selector": {"matchLabels": {"run": "x"}}});
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "config", "namespace": stage.bed.names.namespace}, "data": {"a": "1"}});
    let set = |number: i64, revision: &str| {
        json!({"replicas": 1, "updatedReplicas": number, "readyReplicas": number, "currentRevision": revision,
            "updateRevision": "b"})
    };
    let nodes = |updated: i64, unavailable: i64| {
        json!({"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 3,
            "updatedNumberScheduled": updated, "numberUnavailable": unavailable})
    };
    let ready = |status: &str| json!({"conditions": [condition("Ready", status, "Why", "text")]});
    let stalled = json!({"conditions": [condition("Stalled", "True", "BadSpec", "cannot be done")]});
    let none = Value::Null;
    let cases: Vec<Case> = vec![
        (stage.workload("Deployment", "rolled"), rolled, "yes", ""),
        (stage.workload("Deployment", "late"), failed, "failed", "ProgressDeadlineExceeded: it has timed out"),
        (
            stage.workload("Deployment", "half"),
            json!({"replicas": 3, "updatedReplicas": 1}),
            "no",
            "1 of 2 replicas updated",
        ),
        (
            stage.workload("Deployment", "stale"),
            json!({"observedGeneration": 0}),
            "no",
            // The server omits a generation of 0.
            "its controller has not seen it yet",
        ),
        (stage.workload("StatefulSet", "set"), set(1, "b"), "yes", ""),
        (stage.workload("StatefulSet", "moving"), set(1, "a"), "no", "moving from revision a to b"),
        (stage.workload("DaemonSet", "agent"), nodes(3, 0), "yes", ""),
        (stage.workload("DaemonSet", "few"), nodes(3, 2), "no", "2 of 3 Pods not available"),
        (
            stage.workload("ReplicaSet", "bare"),
            json!({"replicas": 2, "readyReplicas": 1, "availableReplicas": 1}),
            "no",
            "1 of 2 replicas available",
        ),
        (job("done"), done, "yes", ""),
        (job("broke"), broke, "failed", "BackoffLimitExceeded: too often"),
        (job("running"), running, "no", "1 active, 0 of 1 succeeded, 0 failed"),
        (stage.object("v1", "Pod", "over", pod()), json!({"phase": "Succeeded"}), "yes", ""),
        (
            stage.object("v1", "Pod", "evicted", pod()),
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
            "failed",
            "Evicted: low on memory",
        ),
        (
            stage.object("v1", "Pod", "image", pod()),
            json!({"phase": "Pending", "containerStatuses": [container]}),
            "no",
            "container main: ImagePullBackOff: no such \\u{1b}[31mimage",
        ),
        (claim("bound"), json!({"phase": "Bound"}), "yes", ""),
        (claim("lost"), json!({"phase": "Lost"}), "failed", "Lost: its volume is gone"),
        (
            claim("pending"),
            none.clone(),
            "no",
            "Pending, not bound; with WaitForFirstConsumer it is bound when a Pod uses it",
        ),
        (service("inside", "ClusterIP"), none.clone(), "yes", ""),
        (service("outside", "LoadBalancer"), none.clone(), "no", "it has no load balancer address yet"),
        (service("balanced", "LoadBalancer"), json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}), "yes", ""),
        (
            stage.object("policy/v1", "PodDisruptionBudget", "budget", budget),
            none.clone(),
            "no",
            "its controller has not seen it yet",
        ),
        (config, none.clone(), "yes", ""),
        (custom("fine"), ready("True"), "yes", ""),
        (custom("working"), ready("False"), "no", "Why: text"),
        (custom("stuck"), stalled, "failed", "BadSpec: cannot be done"),
        (custom("quiet"), none, "yes", ""),
    ];
    let found = stage.are_as_their_status_says(&cases, &crd);
    assert_eq!(found[&format!("CustomResourceDefinition/samples.{group}")]["readiness"], json!({"state": "ready"}));
}

impl Stage {
    /// Deploys the objects and writes their status. `inspect` has to report the state and the reason of each; returns
    /// its objects.
    fn are_as_their_status_says(&self, cases: &[Case], crds: &str) -> BTreeMap<String, Value> {
        let objects: Vec<Value> = cases.iter().map(|(object, ..)| object.clone()).collect();
        self.deploy(&objects, crds);
        for (object, written, ..) in cases.iter().filter(|(_, written, ..)| !written.is_null()) {
            status(object, written.clone());
        }

        let found = self.inspect(&[]);
        let shown = self.run(&["inspect"]);
        shown.code(0).stdout_contains("READY").stdout_contains("REASON").contains_nowhere("\u{1b}");
        for (object, _, word, reason) in cases {
            let (kind, name) = (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
            let case = format!("{kind}/{name}");
            let states = [("yes", "ready"), ("no", "inProgress"), ("failed", "failed")];
            let (_, state) = states.into_iter().find(|(shown, _)| shown == word).unwrap();
            let readiness = &found[&case]["readiness"];
            let said = readiness["reason"].as_str().unwrap_or_default();
            assert_eq!((&readiness["state"], said), (&json!(state), *reason), "{case}");
            // NAMESPACE OBJECT STATE READY CREATED REASON
            let lines = shown.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let is_it = |line: &Vec<&str>| {
                line.get(1).and_then(|object| object.split_once('/')).is_some_and(|(shown, of)| {
                    of == name && shown.split('.').next() == Some(kind.to_lowercase().as_str())
                })
            };
            let line = lines.into_iter().find(is_it).unwrap_or_else(|| panic!("{case} in {shown}"));
            assert_eq!((line[2], line[3], line[5..].join(" ").as_str()), ("member", *word, *reason), "{case}");
        }
        found
    }
}

/// More of them: states in which only one count, or one condition, is different.
#[test]
fn members_have_the_readiness_of_their_counts_and_conditions() {
    let stage = Stage::new();
    let group = &stage.bed.names.group;
    let status_type = "status: {type: object, x-kubernetes-preserve-unknown-fields: true}, spec: {type: object}";
    let crd = stage.bed.crd(status_type).replace("served: true", "served: true\n    subresources: {status: {}}");
    let custom = |name: &str| stage.object(&format!("{group}/v1"), "Sample", name, json!({}));
    let set = |name: &str, partition: Option<u8>| {
        let mut set = stage.workload("StatefulSet", name);
        set["spec"]["replicas"] = 3.into();
        if let Some(partition) = partition {
            set["spec"]["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        }
        set
    };
    let of_set = |all: u8, updated: u8, ready: u8| {
        json!({"replicas": all, "updatedReplicas": updated, "readyReplicas": ready, "currentRevision": "a",
            "updateRevision": if updated == 3 { "a" } else { "b" }})
    };
    let nodes = |updated: u8| {
        json!({"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberMisscheduled": 0, "numberReady": 3,
            "updatedNumberScheduled": updated})
    };
    let told = |name: &str, status: &str| condition(name, status, "Why", name);
    let conditions = |all: &[Value]| json!({ "conditions": all });
    let behind = |mut status: Value| {
        status["observedGeneration"] = 7.into();
        status
    };
    let mut template = pod();
    template["restartPolicy"] = "Never".into();
    let job = stage.object("batch/v1", "Job", "enough", json!({"template": {"spec": template}}));
    let of_cluster = |api_version: &str, kind: &str, spec: Value| {
        let metadata = json!({"name": stage.bed.names.namespace});
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    };
    let matches = json!({"resourceRules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["*"],
        "resources": ["*"]}]});
    let policy = json!({"matchConstraints": matches, "validations": [{"expression": "true"}]});
    let policy = of_cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", policy);
    let volume =
        json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/none"}});
    let volume = of_cluster("v1", "PersistentVolume", volume);
    let refused = json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 1,
        "conditions": [condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota")]});
    let counted = json!({"startTime": "2026-01-01T00:00:00Z", "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet", "True", "SuccessPolicy", "")]});
    let cases: Vec<Case> = vec![
        (set("held-back", Some(2)), of_set(3, 1, 3), "yes", "partition 2: Pods below it are not updated"),
        (set("not-yet", Some(1)), of_set(3, 1, 3), "no", "1 of 2 replicas updated"),
        (set("unready", Some(2)), of_set(3, 1, 2), "no", "2 of 3 replicas ready"),
        (set("surplus", None), of_set(4, 3, 3), "no", "1 of 4 replicas still to be terminated"),
        (stage.workload("DaemonSet", "rolling"), nodes(2), "no", "2 of 3 Pods updated"),
        (stage.workload("ReplicaSet", "refused"), refused, "no", "FailedCreate: exceeded quota"),
        (job, counted, "yes", ""),
        (stage.object("v1", "Pod", "lost", pod()), json!({"phase": "Unknown"}), "no", "its node does not respond"),
        (policy.clone(), Value::Null, "no", "its controller has not seen it yet"),
        (volume.clone(), json!({"phase": "Pending"}), "no", "Pending"),
        (
            custom("reconciling"),
            conditions(&[told("Reconciling", "True"), told("Ready", "True")]),
            "no",
            "Why: Reconciling",
        ),
        (custom("settled"), conditions(&[told("Reconciling", "False"), told("Ready", "True")]), "yes", ""),
        (custom("available"), conditions(&[told("Available", "True")]), "yes", ""),
        (custom("unavailable"), conditions(&[told("Available", "False")]), "no", "Why: Available"),
        (custom("succeeded"), conditions(&[told("Succeeded", "True")]), "yes", ""),
        (custom("not-succeeded"), conditions(&[told("Succeeded", "False")]), "no", "Why: Succeeded"),
        // The first of Ready, Available and Succeeded decides, in whatever order they are written.
        (custom("first"), conditions(&[told("Succeeded", "False"), told("Ready", "True")]), "yes", ""),
        (
            custom("stale"),
            behind(conditions(&[told("Ready", "True")])),
            "no",
            "its controller has seen generation 7 of 1",
        ),
        (custom("given-up"), conditions(&[told("Ready", "False"), told("Stalled", "True")]), "failed", "Why: Stalled"),
    ];
    stage.are_as_their_status_says(&cases, &crd);
    control_plane().delete(&control_plane().path_of(&policy));
    let path = control_plane().path_of(&volume);
    control_plane().delete(&path);
    control_plane().patch(&path, &json!({"metadata": {"finalizers": null}}));
}

#[test]
fn members_that_are_deleted_or_not_waited_for_are_marked() {
    let stage = Stage::new();
    let mut held = stage.object("apps/v1", "Deployment", "held", pods("held"));
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let mut unawaited = stage.object("apps/v1", "Deployment", "unawaited", pods("unawaited"));
    unawaited["metadata"]["annotations"] = json!({"kapp.k14s.io/disable-wait": ""});
    let mut paused = stage.object("apps/v1", "Deployment", "paused", pods("paused"));
    paused["spec"]["paused"] = true.into();
    stage.deploy(&[held.clone(), unawaited, paused.clone()], "");
    status(&paused, json!({}));
    let path = control_plane().api().path_of(&held);
    control_plane().delete(&path);
    let found = stage.inspect(&[]);
    let readiness = |name: &str| found[&format!("Deployment/{name}")]["readiness"].clone();
    assert_eq!(
        readiness("held"),
        json!({"state": "inProgress", "reason": "terminating, finalizers: example.com/held"})
    );
    assert_eq!(readiness("unawaited"), json!({"state": "ready", "reason": "not awaited (kapp.k14s.io/disable-wait)"}));
    assert_eq!(readiness("paused")["state"], "ready");
    assert!(readiness("paused")["reason"].as_str().unwrap().starts_with("paused"), "{}", readiness("paused"));
    stage.run(&["inspect"]).code(0).stdout_contains("terminating  no");
    control_plane().patch(&path, &json!({"metadata": {"finalizers": null}}));
    eventually("it to go", || (control_plane().get(&path).0 == 404).then_some(()));
}

#[test]
fn a_tree_shows_owned_objects_with_one_list_for_each_kind() {
    let stage = Stage::new();
    let names = ["a", "b", "c", "d", "e", "f"];
    let deployments = names.map(|name| stage.workload("Deployment", name));
    stage.deploy(&deployments, "");
    let owned = |owner: &Value, mut object: Value| {
        let reference = json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": true,
            "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]});
        object["metadata"]["ownerReferences"] = json!([reference]);
        control_plane().apply_yaml(&object.to_string()).remove(0)
    };
    for deployment in &deployments {
        let (_, live) = control_plane().get(&control_plane().api().path_of(deployment));
        let name = deployment["metadata"]["name"].as_str().unwrap();
        let set = owned(&live, stage.workload("ReplicaSet", &format!("{name}-1")));
        status(&set, json!({"replicas": 2, "readyReplicas": 1, "availableReplicas": 1}));
        let child = owned(&set, stage.object("v1", "Pod", &format!("{name}-1-x"), pod()));
        let unscheduled = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available");
        status(&child, json!({"phase": "Pending", "conditions": [unscheduled]}));
    }
    // No object of the app owns this one.
    control_plane().apply_yaml(&stage.object("v1", "Pod", "stranger", pod()).to_string());

    let found = stage.inspect(&["--tree"]);
    assert_eq!(found.len(), names.len());
    let set = &found["Deployment/b"]["owned"][0];
    assert_eq!((&set["object"]["kind"], &set["object"]["name"]), (&json!("ReplicaSet"), &json!("b-1")));
    assert_eq!(set["readiness"]["reason"], "1 of 2 replicas available");
    let child = &set["owned"][0];
    assert_eq!((&child["object"]["name"], &child["owned"]), (&json!("b-1-x"), &json!([])));
    assert_eq!(child["readiness"]["reason"], "Unschedulable: 0/3 nodes are available");

    let proxy = Proxy::start(control_plane());
    let arguments = ["inspect", "-a", "stage", "-n", &stage.bed.names.namespace, "--tree"];
    let inspect = |kubeconfig, flags: &[&str]| stage.bed.gantry(kubeconfig, flags).run();
    let output = inspect(proxy.kubeconfig("admin"), &arguments);
    output.code(0).contains_nowhere("stranger");
    let shown: Vec<&str> =
        output.stdout.lines().skip_while(|line| !line.contains("deployment.apps/b")).take(3).collect();
    assert!(shown[1].contains(" └─ replicaset.apps/b-1 ") && shown[1].contains(" owned "), "{output}");
    assert!(
        shown[2].contains("    └─ pod/b-1-x ") && shown[2].ends_with("Unschedulable: 0/3 nodes are available"),
        "{output}"
    );
    let asked = |plural: &str| proxy.requests().iter().filter(|request| request.path.contains(plural)).count();
    assert_eq!((asked("/deployments"), asked("/replicasets"), asked("/pods"), asked("/jobs")), (1, 1, 1, 0));

    // Without the flag they are not requested and not shown.
    let proxy = Proxy::start(control_plane());
    inspect(proxy.kubeconfig("admin"), &arguments[..5]).code(0).contains_nowhere("replicaset");
    assert!(!proxy.requests().iter().any(|request| request.path.contains("/replicasets")));
    assert_eq!(stage.inspect(&[])["Deployment/a"].get("owned"), None);

    // A user who may not list Pods sees the rest.
    let cp = control_plane();
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["deployments", "replicasets"], "verbs": ["list"]}]);
    let output = inspect(cp.kubeconfig(&cp.user(&rules)), &arguments);
    output.code(0).stdout_contains("replicaset.apps/b-1").stderr_contains("could not list pods of the app in");
    output.contains_nowhere("pod/b-1-x");
}
