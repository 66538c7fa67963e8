//! `--logs`: the last lines of a container's log, which the API server gets from the kubelet of its node.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};

use crate::support::https::{self, Answers};
use crate::support::rights::{grant, printed_with};
use crate::support::{ControlPlane, Output};
use crate::waiting::{Stage, available, status_on};

/// The address of the node, as the API server sees it.
const ADDRESS: &str = "192.0.2.20";

/// A Deployment that does not become ready, on a node whose kubelet is the test.
struct Failing {
    stage: Stage,
    cp: ControlPlane,
    kubelet: Answers,
}

impl Failing {
    fn new() -> Self {
        let cp = ControlPlane::start_with_network();
        let kubelet = Answers::default();
        cp.route(&format!("{ADDRESS}:10250"), https::listen(ADDRESS, Arc::clone(&kubelet)));
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}});
        cp.apply_yaml(&node.to_string());
        status_on(
            &cp,
            &node,
            json!({"addresses": [{"type": "InternalIP", "address": ADDRESS}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}),
        );
        let stage = Stage::on(&cp);
        let deployment = stage.deployment();
        stage.write(&[&deployment]);
        let failing = Failing { stage, cp, kubelet };
        failing.deploy("admin", &["--wait=false"]).code(0);
        let path = failing.cp.path_of(&deployment);
        let (_, live) = failing.cp.get(&path);
        let spec = json!({"replicas": 2, "selector": deployment["spec"]["selector"], "template": deployment["spec"]["template"]});
        let set = failing.owned(&live, failing.stage.object("apps/v1", "ReplicaSet", "web-1", json!({}), spec));
        let mut spec = deployment["spec"]["template"]["spec"].clone();
        spec["nodeName"] = json!("node");
        let pod = failing.owned(&set, failing.stage.object("v1", "Pod", "web-1-a", json!({}), spec));
        let ended = json!({"exitCode": 1, "reason": "Error", "containerID": "a://b"});
        let waiting = json!({"reason": "CrashLoopBackOff", "message": "back-off 5m0s"});
        let container = json!({"name": "web", "image": "web:1", "imageID": "", "ready": false, "restartCount": 7,
            "state": {"waiting": waiting}, "lastState": {"terminated": ended}});
        status_on(&failing.cp, &pod, json!({"phase": "Running", "containerStatuses": [container]}));
        status_on(&failing.cp, &deployment, available(1));
        failing
    }

    fn owned(&self, owner: &Value, mut object: Value) -> Value {
        object["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": owner["kind"],
            "controller": true, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
        self.cp.apply_yaml(&object.to_string()).remove(0)
    }

    /// Sets the kubelet's answer to the request for the last lines.
    fn answer(&self, head: &str, body: &[u8]) {
        let path = format!("/containerLogs/{}/web-1-a/web?tailLines=10", self.stage.namespace());
        let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let mut answers = self.kubelet.lock().unwrap_or_else(PoisonError::into_inner);
        answers.insert(path, ([head.as_bytes(), body].concat(), false));
    }

    fn deploy(&self, user: &str, flags: &[&str]) -> Output {
        self.stage.deploy_as(self.cp.kubeconfig(user), flags).run()
    }

    fn report(&self) -> PathBuf {
        self.stage.bed.folder.path().join("report.json")
    }
}

#[test]
fn the_last_lines_of_the_worst_pod_are_shown_and_kept_nowhere() {
    let failing = Failing::new();
    let lines: String = (0..10).map(|number| format!("line {number}\n")).collect();
    failing
        .answer("200 OK\r\nContent-Type: text/plain", &[lines.as_bytes(), b"panic: \x1b[2Jno \xffdatabase\n"].concat());
    let flags = ["--logs", "--wait-timeout=1s", "-o", "human", "-o", "json=report.json"];
    // There is something to write, so that the record is written, too.
    failing.stage.write(&[&failing.stage.deployment(), &failing.stage.config_map("more", json!({}))]);
    let output = failing.deploy("admin", &flags);
    output.code(5).stdout_contains("pod/web-1-a: container web: CrashLoopBackOff (exit code 1)");
    output.stdout_contains("| the last lines of container web in pod/web-1-a:\n");
    output.stdout_contains("|   line 9\n").stdout_contains("|   panic: \\u{1b}[2Jno \u{fffd}database\n");
    output.contains_nowhere("line 0").contains_nowhere("cannot be read");
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(failing.report()).expect("a report")).expect("JSON");
    let log = &report["errors"][0]["log"];
    assert_eq!((&log["pod"], &log["container"]), (&json!("web-1-a"), &json!("web")));
    assert_eq!(log["lines"].as_array().map(Vec::len), Some(10));
    // More people can read the record than the log.
    let (_, record) = failing.cp.get(&failing.stage.bed.config_map_path("shop.gantry"));
    assert!(record["data"]["last"].to_string().contains("CrashLoopBackOff"), "{record}");
    assert!(!record.to_string().contains("panic"), "{record}");

    // Logs are not requested.
    failing.deploy("admin", &["--wait-timeout=1s"]).code(5).contains_nowhere("panic");
    let output = failing.deploy("admin", &["--logs", "--redact", "--wait-timeout=1s"]);
    output.code(5).contains_nowhere("panic").stderr_contains("the logs of Pods are not shown");

    // An endless line is cut off, and a log that cannot be read is only a notice.
    failing.answer("200 OK\r\nContent-Type: text/plain", &b"x".repeat(4 << 20));
    let output = failing.deploy("admin", &flags);
    output.code(5).stdout_contains(&format!("|   {}…\n", "x".repeat(399)));
    failing.answer("500 Internal Server Error", b"the runtime is gone");
    let output = failing.deploy("admin", &flags);
    output.code(5).stderr_contains("notice: the log of pod/web-1-a").stderr_contains("cannot be read: ");
}

#[test]
fn a_deploy_without_the_right_to_logs_reports_that_and_continues() {
    let failing = Failing::new();
    failing.answer("200 OK\r\nContent-Type: text/plain", b"panic: no database\n");
    let (bed, cp) = (&failing.stage.bed, &failing.cp);
    let app = ["-a", "shop", "-n", failing.stage.namespace()];
    let user = cp.user(&json!([]));
    grant(cp, &user, &printed_with(bed, cp, &user, &app));
    let flags = ["--logs", "--wait-timeout=1s", "--preflight=PermissionValidation", "-v"];
    let output = failing.deploy(&user, &flags);
    output.code(5).contains_nowhere("panic: no").stdout_contains("LogNotPermitted");
    let narrow = json!([
        {"apiGroups": ["apps"], "resources": ["replicasets"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]},
    ]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "pods"}, "rules": narrow});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "pods"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "pods"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]});
    grant(cp, &user, &format!("{role}\n---\n{binding}"));
    let output = failing.deploy(&user, &flags);
    output.code(5).contains_nowhere("panic: no").stdout_contains("pod/web-1-a: container web: CrashLoopBackOff");
    output.stderr_contains("the log of pod/web-1-a").stderr_contains("resources: [\"pods/log\"]");

    grant(cp, &user, &printed_with(bed, cp, &user, &[&app[..], &["--logs"]].concat()));
    failing.deploy(&user, &flags).code(5).stdout_contains("|   panic: no database").contains_nowhere("LogNotPermitted");
}
