//! A deploy of an app waits until everything that it wrote is ready. The tests act as the controllers.

use std::path::PathBuf;

use crate::support::{
    Bed, ControlPlane, CrdBuilder, Gantry, Output, Proxy, any_fields, control_plane, eventually, fields, results,
};
use serde_json::{Value, json};

pub struct Stage {
    pub bed: Bed,
}

impl Stage {
    pub fn new() -> Self {
        Stage::on(control_plane())
    }

    pub fn on(control_plane: &ControlPlane) -> Self {
        Stage { bed: Bed::on(control_plane) }
    }

    pub fn namespace(&self) -> &str {
        &self.bed.names.namespace
    }

    pub fn object(&self, api_version: &str, kind: &str, name: &str, annotations: Value, spec: Value) -> Value {
        self.bed.object(api_version, kind, name, json!({"metadata": {"annotations": annotations}, "spec": spec}))
    }

    pub fn config_map(&self, name: &str, annotations: Value) -> Value {
        self.bed.object("v1", "ConfigMap", name, json!({"metadata": {"annotations": annotations}}))
    }

    pub fn deployment(&self) -> Value {
        self.deployment_named("web")
    }

    pub fn deployment_named(&self, name: &str) -> Value {
        let spec = json!({"replicas": 2, "selector": {"matchLabels": {"run": "web"}}, "template": pods("Always")});
        self.object("apps/v1", "Deployment", name, json!({}), spec)
    }

    fn job(&self, annotations: Value) -> Value {
        self.object("batch/v1", "Job", "migrate", annotations, json!({"template": pods("Never")}))
    }

    pub fn write(&self, objects: &[&Value]) {
        self.bed.write_objects(objects.iter().copied());
    }

    pub fn deploy(&self, flags: &[&str]) -> Gantry {
        self.deploy_as(control_plane().kubeconfig("admin"), flags)
    }

    pub fn deploy_as(&self, kubeconfig: PathBuf, flags: &[&str]) -> Gantry {
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &self.bed.names.namespace];
        self.bed.gantry(kubeconfig, &[&arguments, flags].concat())
    }

    fn exists(&self, name: &str) -> bool {
        control_plane().get(&self.bed.config_map_path(name)).0 == 200
    }

    /// The result of the last run in the record.
    pub fn last(&self) -> Value {
        let (_, record) = control_plane().get(&self.bed.config_map_path("shop.gantry"));
        serde_json::from_str(record["data"]["last"].as_str().expect("a last run")).expect("JSON")
    }
}

pub fn pods(restart: &str) -> Value {
    let containers = json!([{"name": "web", "image": "web:1"}]);
    json!({"metadata": {"labels": {"run": "web"}}, "spec": {"restartPolicy": restart, "containers": containers}})
}

/// Creates an object that another one owns, once the owner exists.
fn owned(owner: &Value, mut object: Value) -> Value {
    let path = control_plane().path_of(owner);
    let live = eventually("the owner", || Some(control_plane().get(&path)).filter(|(code, _)| *code == 200)).1;
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": owner["apiVersion"], "kind": owner["kind"],
        "controller": true, "name": owner["metadata"]["name"], "uid": live["metadata"]["uid"]}]);
    control_plane().apply_yaml(&object.to_string()).remove(0)
}

/// Writes the status of an object once it exists.
pub fn status(object: &Value, status: Value) {
    status_on(control_plane(), object, status);
}

pub fn status_on(control_plane: &ControlPlane, object: &Value, mut status: Value) {
    let path = control_plane.path_of(object);
    let live = eventually("the object", || Some(control_plane.get(&path)).filter(|(code, _)| *code == 200)).1;
    if object["apiVersion"] == "apps/v1" {
        status["observedGeneration"] = live["metadata"]["generation"].clone();
    }
    let (code, answer) = control_plane.patch(&format!("{path}/status"), &json!({ "status": status }));
    assert_eq!(code, 200, "{answer}");
}

pub fn available(number: u32) -> Value {
    json!({"replicas": 2, "updatedReplicas": 2, "readyReplicas": number, "availableReplicas": number})
}

pub fn ended(kind: &str, reason: &str) -> Value {
    let of = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "too often",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": "2026-01-01T00:00:00Z"})
    };
    match kind {
        "Failed" => {
            json!({"startTime": "2026-01-01T00:00:00Z", "active": 0, "failed": 7, "conditions": [of("FailureTarget"), of("Failed")]})
        }
        _ => {
            json!({"startTime": "2026-01-01T00:00:00Z", "active": 0, "completionTime": "2026-01-01T00:00:01Z", "succeeded": 1,
            "conditions": [of("SuccessCriteriaMet"), of("Complete")]})
        }
    }
}

#[test]
fn a_deploy_ends_when_what_it_wrote_is_ready_and_deletes_only_then() {
    let stage = Stage::new();
    let old = stage.config_map("old", json!({}));
    stage.write(&[&old]);
    stage.deploy(&[]).run().code(0);
    stage.write(&[&stage.deployment()]);
    let running = stage.deploy(&["--prune=yes"]).spawn();
    status(&stage.deployment(), available(1));
    assert!(stage.exists("old"), "it is deleted only when the new one is ready");
    assert_eq!(stage.last()["outcome"], "started");
    status(&stage.deployment(), available(2));
    running.wait().code(0).stdout_contains("1 created, 1 deleted");
    assert!(!stage.exists("old"));
    assert_eq!(stage.last()["outcome"], "applied");
}

#[test]
fn an_object_that_is_not_ready_in_time_is_named_and_the_next_run_waits_again() {
    let stage = Stage::new();
    let old = stage.config_map("old", json!({}));
    stage.write(&[&old]);
    stage.deploy(&[]).run().code(0);
    stage.write(&[&stage.deployment()]);
    for flags in [&["--wait-timeout=1s", "--prune=yes"], &["--wait-timeout=1s", "--prune=no"]] {
        let output = stage.deploy(flags).run();
        output.code(5).stdout_contains("deployment.apps/web").stdout_contains("is not ready after 1s: ");
        output.stdout_contains("kubectl describe deployment.apps/web").stdout_contains("to keep waiting, run the same");
        assert!(stage.exists("old"), "{output}");
        assert_eq!(stage.last()["outcome"], "failed", "{output}");
    }
    // Nothing is left to write, but the deploy still waits for it.
    let running = stage.deploy(&[]).spawn();
    status(&stage.deployment(), available(2));
    running.wait().code(0).stdout_contains("1 object unchanged");
    let waits = stage.deploy(&["-o", "json"]).run().code(0).report()["waits"].clone();
    assert_eq!(waits, Value::Null, "what was ready when it was read is not awaited");
    assert_eq!(stage.last()["outcome"], "applied");
    // `--wait=false` does not wait.
    status(&stage.deployment(), available(0));
    stage.deploy(&["--wait=false"]).run().code(0);
    stage.deploy(&["--wait-timeout=soon"]).run().code(2).stderr_contains("is not a duration");
}

#[test]
fn an_object_that_waits_for_a_job_is_written_only_if_it_succeeds() {
    for (state, code) in [("Complete", 0), ("Failed", 5)] {
        let stage = Stage::new();
        let job = stage.job(json!({"kapp.k14s.io/change-group": "migrate"}));
        let then = stage.config_map("then", json!({"kapp.k14s.io/change-rule": "upsert after upserting migrate"}));
        stage.write(&[&then, &job]);
        let running = stage.deploy(&["-o", "human", "-o", "json=report.json"]).spawn();
        // The Job is running.
        status(&job, json!({"active": 1, "startTime": "2026-01-01T00:00:00Z"}));
        assert!(!stage.exists("then"));
        status(&job, ended(state, "BackoffLimitExceeded"));
        let output = running.wait();
        output.code(code);
        assert_eq!(stage.exists("then"), code == 0, "{output}");
        if code == 5 {
            output.stdout_contains("job.batch/migrate").stdout_contains("BackoffLimitExceeded: too often");
            output.stdout_contains("configmap/then");
            let report = std::fs::read_to_string(stage.bed.folder.path().join("report.json")).expect("a report");
            let report: Value = serde_json::from_str(&report).expect("JSON");
            let wait = &report["waits"][0];
            let awaited = &report["changes"][wait["change"].as_u64().expect("an index") as usize]["object"]["name"];
            assert_eq!((&wait["state"], awaited), (&json!("failed"), &json!("migrate")));
            assert_eq!(wait["reason"], "BackoffLimitExceeded: too often");
            let mut results = results(&report);
            results.sort();
            let results: Vec<&str> = results.iter().map(|(_, result)| result.as_str()).collect();
            assert_eq!(results, ["notReached", "applied"], "{output}");
        }
    }
}

#[test]
fn an_object_that_waits_for_an_unchanged_one_is_written_only_when_that_is_ready() {
    let rule = || json!({"kapp.k14s.io/change-rule": "upsert after upserting first"});
    let is_held = |stage: &Stage, output: &Output| {
        output.code(5).stdout_contains("job.batch/migrate").stdout_contains("BackoffLimitExceeded: too often");
        output.stdout_contains("configmap/then");
        assert_eq!(output.stdout.matches("has failed").count(), 1, "{output}");
        assert!(!stage.exists("then"), "{output}");
    };
    let stage = Stage::new();
    let job = stage.job(json!({"kapp.k14s.io/change-group": "first"}));
    // Nothing between them is written: it is passed through.
    let between =
        json!({"kapp.k14s.io/change-group": "second", "kapp.k14s.io/change-rule": "upsert after upserting first"});
    let between = stage.config_map("between", between);
    stage.write(&[&job, &between]);
    stage.deploy(&["--wait=false"]).run().code(0);
    status(&job, ended("Failed", "BackoffLimitExceeded"));
    let then = stage.config_map("then", json!({"kapp.k14s.io/change-rule": "upsert after upserting second"}));
    stage.write(&[&job, &between, &then]);
    is_held(&stage, &stage.deploy(&[]).run());
    let other = stage.config_map("other", json!({}));
    stage.write(&[&job, &between, &then, &other]);
    is_held(&stage, &stage.deploy(&["--keep-going"]).run());
    assert!(stage.exists("other"), "only a written rule makes an object wait for an unchanged one");

    let stage = Stage::new();
    let job = stage.job(json!({"kapp.k14s.io/change-group": "first"}));
    let without_app = |flags: &[&str]| {
        let arguments = [&["deploy", "-f", "manifests.yaml"], flags].concat();
        stage.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run()
    };
    stage.write(&[&job]);
    without_app(&[]).code(0);
    status(&job, ended("Failed", "BackoffLimitExceeded"));
    stage.write(&[&job, &stage.config_map("then", rule())]);
    is_held(&stage, &without_app(&[]));

    // A workload that is not ready yet.
    let stage = Stage::new();
    let mut db = stage.deployment_named("db");
    db["metadata"]["annotations"] = json!({"kapp.k14s.io/change-group": "first"});
    stage.write(&[&db]);
    stage.deploy(&["--wait=false"]).run().code(0);
    let then = stage.config_map("then", rule());
    stage.write(&[&db, &then]);
    let output = stage.deploy(&["--wait-timeout=1s"]).run();
    output.code(5).stdout_contains("deployment.apps/db").stdout_contains("configmap/then");
    assert!(!stage.exists("then"), "{output}");
    stage.deploy(&["--wait=false"]).run().code(0);
    assert!(stage.exists("then"), "without waiting, it is written");
}

#[test]
fn a_claim_that_its_first_pod_binds_is_not_waited_for() {
    let stage = Stage::new();
    let class = format!("late-{}", stage.bed.names.namespace);
    let storage = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
        "provisioner": "example.com/none", "volumeBindingMode": "WaitForFirstConsumer"});
    let claim = |name: &str, class: &str| {
        let spec = json!({"storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}});
        stage.object("v1", "PersistentVolumeClaim", name, json!({}), spec)
    };
    stage.write(&[&storage, &claim("late", &class)]);
    stage.deploy(&[]).run().code(0);
    stage.write(&[&storage, &claim("late", &class), &claim("early", "none")]);
    let output = stage.deploy(&["--wait-timeout=1s"]).run();
    output.code(5).stdout_contains("persistentvolumeclaim/early").contains_nowhere("persistentvolumeclaim/late -n");
    control_plane().delete(&control_plane().path_of(&storage));
}

#[test]
fn the_pod_that_does_not_start_says_why_its_workload_is_not_ready() {
    let stage = Stage::new();
    let (web, job) = (stage.deployment(), stage.job(json!({})));
    stage.write(&[&web, &job]);
    let running = stage.deploy(&["--wait-timeout=2m"]).spawn();
    let pod = |name: &str| stage.object("v1", "Pod", name, json!({}), pods("Never")["spec"].clone());
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"run": "web"}}, "template": pods("Always")});
    let set = owned(&web, stage.object("apps/v1", "ReplicaSet", "web-1", json!({}), spec));
    let waiting = |reason: &str, message: &str| {
        json!({"phase": "Pending", "containerStatuses": [{"name": "web", "image": "web:1", "imageID": "", "ready": false,
            "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}]})
    };
    status(
        &owned(&set, pod("web-1-a")),
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}),
    );
    status(&owned(&set, pod("web-1-b")), waiting("ImagePullBackOff", "no such image"));
    let lost = owned(&job, pod("migrate-1"));
    status(&lost, json!({"phase": "Failed", "reason": "Evicted", "message": "no space"}));
    status(&web, available(1));
    status(&job, ended("Failed", "BackoffLimitExceeded"));
    let output = running.wait();
    output.code(5).stdout_contains("job.batch/migrate").stdout_contains("; pod/migrate-1: Evicted: no space");

    // The same command waits again, and ends with the same report.
    control_plane().delete(&control_plane().path_of(&job));
    stage.write(&[&web]);
    let output = stage.deploy(&["--wait-timeout=1s", "--prune=no"]).run();
    output.code(5).stdout_contains("pod/web-1-b: container web: ImagePullBackOff: no such image");
}

#[cfg(unix)]
#[test]
fn a_terminal_shows_waits_with_their_reasons_and_what_follows() {
    let stage = Stage::new();
    let mut web = stage.deployment();
    web["metadata"]["annotations"] = json!({"kapp.k14s.io/change-group": "web"});
    let then = stage.config_map("then", json!({"kapp.k14s.io/change-rule": "upsert after upserting web"}));
    let job = stage.job(json!({}));
    stage.write(&[&web, &then, &job]);
    let mut terminal = stage.deploy(&["-y"]).on_terminal();
    status(&web, available(1));
    let set = stage.object("apps/v1", "ReplicaSet", "web-1", json!({}), web["spec"].clone());
    let set = owned(&web, set);
    let pod = owned(&set, stage.object("v1", "Pod", "web-1-a", json!({}), pods("Never")["spec"].clone()));
    let waiting = json!({"waiting": {"reason": "ImagePullBackOff", "message": "no such \u{1b}[2Jimage"}});
    let container =
        json!({"name": "web", "image": "web:1", "imageID": "", "ready": false, "restartCount": 0, "state": waiting});
    status(&pod, json!({"phase": "Pending", "containerStatuses": [container]}));
    let object = format!("deployment.apps/web -n {}", stage.namespace());
    terminal.wait_for(&format!("then configmap/then -n {}", stage.namespace()));
    terminal.wait_for(&format!("{object}: 1 of 2 replicas available; pod/web-1-a: container web: ImagePullBackOff"));
    status(&web, available(2));
    terminal.wait_for(&format!("job.batch/migrate -n {}: ", stage.namespace()));
    status(&job, json!({"active": 1, "startTime": "2026-01-01T00:00:00Z"}));
    status(&job, ended("Complete", ""));
    terminal.wait().code(0).contains_nowhere("\u{1b}[2Jimage");
    // Where nothing is shown, no Pod is requested.
    let proxy = Proxy::start(control_plane());
    status(&web, available(1));
    let running = stage.deploy_as(proxy.kubeconfig("admin"), &["--wait-timeout=6s", "-q"]).spawn();
    running.wait().code(5);
    let of_pods = proxy.requests().iter().filter(|request| request.path.ends_with("/pods")).count();
    assert_eq!(of_pods, 1, "to explain it at the end");
}

#[test]
fn a_log_file_gets_a_line_when_a_wait_starts_changes_and_ends() {
    let stage = Stage::new();
    let web = stage.deployment();
    let kept = stage.config_map("kept", json!({}));
    let mut held = stage.config_map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    stage.write(&[&web, &kept, &held]);
    let object = format!("deployment.apps/web -n {}", stage.namespace());
    let mut running = stage.deploy(&[]).spawn();
    status(&web, available(0));
    running.wait_for_stderr(&format!("waiting for {object}: 0 of 2 replicas available\n"));
    status(&web, available(1));
    running.wait_for_stderr(&format!("waiting for {object}: 1 of 2 replicas available\n"));
    status(&web, available(2));
    running.wait().code(0).stderr_contains(&format!("{object} is ready after "));
    // Deletions, too.
    stage.write(&[&web, &kept]);
    let held_name = format!("configmap/held -n {}", stage.namespace());
    let mut running = stage.deploy(&["--prune=yes"]).spawn();
    running.wait_for_stderr(&format!("waiting for {held_name}: it is being deleted\n"));
    let path = stage.bed.config_map_path("held");
    assert_eq!(control_plane().patch(&path, &json!({"metadata": {"finalizers": null}})).0, 200);
    running.wait().code(0).stderr_contains(&format!("{held_name} is gone after "));
    // Quiet means quiet.
    status(&web, available(1));
    stage.deploy(&["-q", "--wait-timeout=3s"]).run().code(5).contains_nowhere("waiting for");
}

#[test]
fn an_object_that_is_ready_but_does_not_work_is_a_notice() {
    let stage = Stage::new();
    let name = stage.namespace().to_owned();
    let matches = json!({"resourceRules": [{"apiGroups": ["none.example.com"], "apiVersions": ["v1"], "operations": ["*"],
        "resources": ["*"]}]});
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": {"matchConstraints": matches, "validations": [{"expression": "true"}]}});
    let scaler = |most: u8| {
        let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
        stage.object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "web",
            json!({}),
            json!({"maxReplicas": most, "scaleTargetRef": target}),
        )
    };
    stage.write(&[&policy, &scaler(2)]);
    let running = stage.deploy(&[]).spawn();
    let warning = json!({"fieldRef": "spec.validations[0].expression", "warning": "undefined field 'x'"});
    status(&policy, json!({"observedGeneration": 1, "typeChecking": {"expressionWarnings": [warning]}}));
    let output = running.wait();
    output.code(0).contains_nowhere("ScalingActive");
    output.stderr_contains(&format!(
        "validatingadmissionpolicy.admissionregistration.k8s.io/{name}: type checking: spec.validations[0]"
    ));
    let inactive = json!({"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", "message": "no metrics"});
    status(&scaler(2), json!({"currentReplicas": 0, "desiredReplicas": 0, "conditions": [inactive]}));
    stage.write(&[&policy, &scaler(3)]);
    let output = stage.deploy(&[]).run();
    output.code(0).stderr_contains("FailedGetResourceMetric: no metrics").contains_nowhere("type checking");
    control_plane().delete(&control_plane().path_of(&policy));
}

#[test]
fn an_object_that_takes_too_long_ends_the_wait_unless_others_may_continue() {
    let stage = Stage::new();
    let (slow, other) = (stage.deployment(), stage.deployment_named("other"));
    stage.write(&[&slow, &other]);
    let output = stage.deploy(&["--wait-resource-timeout=1s"]).run();
    output.code(5).stdout_contains("deployment.apps/web").stdout_contains("is not ready after 1s: ");
    assert_eq!(stage.last()["outcome"], "failed", "{output}");

    // The other object becomes ready in time, at once by its wait rule.
    let config =
        "waitRules: [{cel: {success: 'object.metadata.name == \"other\"'}, resourceMatchers: [{allMatcher: {}}]}]";
    let config = format!(
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntimeouts: {{resource: 1s}}\nkeepGoing: true\n{config}\n"
    );
    stage.bed.write("limits.yaml", &config);
    let output = stage.deploy(&["-c", "limits.yaml", "-o", "json"]).run();
    let report = output.code(5).report();
    let errors = report["errors"].as_array().expect("errors");
    assert_eq!(errors.len(), 1, "{output}");
    assert!(errors[0]["message"].as_str().expect("a text").contains("web -n"), "{output}");
    stage.deploy(&["--wait-resource-timeout=0s"]).run().code(2).stderr_contains("longer than zero");
}

/// A kind whose objects can have any status.
pub fn widgets(stage: &Stage) -> Value {
    let schema = fields(json!({"spec": any_fields(), "status": any_fields()}));
    CrdBuilder::new(&stage.bed.names.group, "Widget").version("v1", schema).status_subresource().build()
}

pub fn widget(stage: &Stage, name: &str) -> Value {
    stage.object(&format!("{}/v1", stage.bed.names.group), "Widget", name, json!({}), json!({"size": 1}))
}

fn is_ready(status: &str) -> Value {
    json!({"conditions": [{"type": "Ready", "status": status, "reason": "ByTest", "message": "building"}]})
}

#[test]
fn a_new_resource_is_given_time_for_a_status_if_others_of_its_kind_have_one() {
    let stage = Stage::new();
    control_plane().apply_yaml(&widgets(&stage).to_string());
    let [old, first, second, third] = ["old", "first", "second", "third"].map(|name| widget(&stage, name));
    // No object has a status, so none is expected.
    stage.write(&[&old]);
    let report = stage.deploy(&["-o", "json"]).run().code(0).report();
    assert_eq!(
        (&report["waits"][0]["state"], &report["waits"][0]["seconds"]),
        (&json!("ready"), &json!(0)),
        "{report}"
    );
    // A status without readiness conditions does not count either.
    status(&old, json!({"phase": "Done"}));
    stage.write(&[&old, &first]);
    stage.deploy(&[]).run().code(0);

    status(&old, is_ready("True"));
    stage.write(&[&old, &first, &second]);
    let output = stage.deploy(&["--wait-timeout=2s"]).run();
    output.code(5).stdout_contains("is not ready after 2s: it has no status yet, unlike other objects of its kind");
    // It is no longer new: it counts as a resource whose controller does not exist.
    stage.deploy(&[]).run().code(0);

    stage.write(&[&old, &first, &second, &third]);
    let running = stage.deploy(&["--wait-timeout=10s"]).spawn();
    status(&third, is_ready("False"));
    running.wait().code(5).stdout_contains("is not ready after 10s: ByTest: building");
    status(&third, is_ready("True"));
    stage.deploy(&[]).run().code(0);
}

#[test]
fn a_new_resource_without_a_status_is_ready_after_a_while() {
    let stage = Stage::new();
    control_plane().apply_yaml(&widgets(&stage).to_string());
    let [old, new, ruled] = ["old", "new", "ruled"].map(|name| widget(&stage, name));
    stage.write(&[&old]);
    stage.deploy(&[]).run().code(0);
    status(&old, is_ready("True"));
    // A wait rule takes precedence.
    let rules = "waitRules: [{cel: {success: 'object.spec.size == 1'}, resourceMatchers: [{allMatcher: {}}]}]";
    stage.bed.write("rules.yaml", &format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{rules}\n"));
    stage.write(&[&old, &ruled]);
    stage.deploy(&["-c", "rules.yaml"]).run().code(0);

    stage.write(&[&old, &ruled, &new]);
    let report = stage.deploy(&["--wait-timeout=1m", "-o", "json"]).run().code(0).report();
    let wait = &report["waits"][0];
    let seconds = wait["seconds"].as_u64().expect("seconds");
    assert!(wait["state"] == "ready" && (10..30).contains(&seconds), "{report}");
}
