//! Events while a deploy writes: objects that change, CRDs that are never served, a server that dies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use crate::support::{Bed, ControlPlane, CrdBuilder, Proxy, When, control_plane, string_fields};
use serde_json::{Value, json};

/// A CRD with these fields, all strings.
fn crd(bed: &Bed, fields: &[&str]) -> Value {
    CrdBuilder::samples(&bed.names.group).version("v1", string_fields(fields)).build()
}

fn sample(bed: &Bed, first: &str) -> Value {
    bed.object(&format!("{}/v1", bed.names.group), "Sample", "one", json!({"first": first}))
}

fn deployment(bed: &Bed, replicas: u32) -> Value {
    let spec = json!({
        "replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    });
    bed.object("apps/v1", "Deployment", "web", json!({"spec": spec}))
}

fn deployment_path(bed: &Bed) -> String {
    format!("/apis/apps/v1/namespaces/{}/deployments/web", bed.names.namespace)
}

/// Each change's kind with its result, in the order of the plan.
fn results(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let changes = report["changes"].as_array().expect("a list of changes");
    changes.iter().map(|change| (text(&change["object"]["kind"]), text(&change["result"]))).collect()
}

fn expected(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(kind, result)| ((*kind).to_owned(), (*result).to_owned())).collect()
}

/// Like a controller: writes the status subresource and nothing else.
fn write_status(path: &str, status: &Value) {
    let (code, answer) = control_plane().patch(&format!("{path}/status"), &json!({"status": status}));
    assert_eq!(code, 200, "{answer:#}");
}

#[test]
fn an_object_of_which_only_the_status_changed_is_written() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write_objects(&[deployment(&bed, 1)]);
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    bed.write_objects(&[deployment(&bed, 2)]);
    let proxy = Proxy::start(control_plane());
    let path = deployment_path(&bed);
    // Twice: it changes again before it is pinned again.
    for (nth, replicas) in [(1, 7), (2, 8)] {
        let path = path.clone();
        proxy.before(When::new("PATCH", &path).nth(nth), move || {
            write_status(&path, &json!({"replicas": replicas, "observedGeneration": 1}));
        });
    }
    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0);
    let live = control_plane().get(&path).1;
    assert_eq!((&live["spec"]["replicas"], &live["status"]["replicas"]), (&json!(2), &json!(8)));
}

#[test]
fn an_object_whose_status_keeps_changing_ends_the_deploy() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write_objects(&[deployment(&bed, 1)]);
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    bed.write_objects(&[deployment(&bed, 2)]);
    let proxy = Proxy::start(control_plane());
    let (path, count) = (deployment_path(&bed), Mutex::new(0));
    proxy.before(When::new("PATCH", &path.clone()), move || {
        let mut count = count.lock().expect("one at a time");
        *count += 1;
        write_status(&path, &json!({"replicas": *count}));
    });
    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(1).stdout_contains("kept changing");
    assert_eq!(control_plane().get(&deployment_path(&bed)).1["spec"]["replicas"], 1);
}

#[test]
fn an_object_that_changed_after_the_check_is_not_written() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write_objects(&[deployment(&bed, 1)]);
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    bed.write_objects(&[deployment(&bed, 2)]);
    let proxy = Proxy::start(control_plane());
    let path = deployment_path(&bed);
    proxy.before(When::new("PATCH", &path.clone()).nth(1), move || {
        assert_eq!(control_plane().patch(&path, &json!({"spec": {"paused": true}})).0, 200);
    });
    let run = bed.deploy(proxy.kubeconfig("admin"), &[]).run();
    run.code(1).stdout_contains("changed in the target after it was checked; it was not written");
    assert_eq!(control_plane().get(&deployment_path(&bed)).1["spec"]["replicas"], 1);
}

#[test]
fn conditions_of_a_crd_may_change_after_the_check_but_not_its_stored_versions() {
    let bed = Bed::new();
    bed.write_objects(&[crd(&bed, &["first"])]);
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);

    let deploy = |fields: &[&str], change: fn(&mut Value)| {
        bed.write_objects(&[crd(&bed, fields)]);
        let proxy = Proxy::start(control_plane());
        let path = bed.crd_path();
        proxy.before(When::new("PATCH", &path.clone()).nth(1), move || {
            let mut live = control_plane().get(&path).1;
            change(&mut live["status"]);
            let (code, answer) = control_plane().put(&format!("{path}/status"), &live);
            assert_eq!(code, 200, "{answer:#}");
        });
        bed.deploy(proxy.kubeconfig("admin"), &[]).run()
    };
    let condition = |status: &mut Value| {
        let conditions = status["conditions"].as_array_mut().expect("conditions");
        let condition = json!({"type": "NonStructuralSchema", "status": "False", "reason": "Test", "message": "test"});
        conditions.push(condition);
    };
    deploy(&["first", "second"], condition).code(0);
    // The server allows a stored version to be added only if the CRD has it; here the same one is listed twice.
    let stored = |status: &mut Value| status["storedVersions"] = json!(["v1", "v1"]);
    deploy(&["first", "second", "third"], stored).code(1).stdout_contains("changed in the target");
    let live = control_plane().get(&bed.crd_path()).1;
    let fields = &live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(fields.as_object().map(serde_json::Map::len), Some(2), "{fields}");
}

#[test]
fn a_crd_that_was_deleted_or_recreated_after_the_check_is_not_written() {
    for anew in [false, true] {
        let bed = Bed::new();
        bed.write_objects(&[crd(&bed, &["first"])]);
        bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
        bed.write_objects(&[crd(&bed, &["first", "second"])]);
        let proxy = Proxy::start(control_plane());
        let (path, again) = (bed.crd_path(), crd(&bed, &["first"]));
        proxy.before(When::new("PATCH", &path.clone()).nth(1), move || {
            assert_eq!(control_plane().delete(&path).0, 200);
            crate::support::eventually("the CRD is gone", || (control_plane().get(&path).0 == 404).then_some(()));
            if anew {
                control_plane().apply_yaml(&again.to_string());
            }
        });
        let message = if anew { "was deleted and created again" } else { "was deleted in the target" };
        bed.deploy(proxy.kubeconfig("admin"), &["--force-conflicts"]).run().code(1).stdout_contains(message);
        let (code, live) = control_plane().get(&bed.crd_path());
        assert_eq!(code, if anew { 200 } else { 404 });
        let fields = &live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        assert!(fields["second"].is_null(), "{fields}");
    }
}

#[test]
fn a_crd_whose_names_are_taken_fails_and_its_objects_are_not_sent() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let taken = CrdBuilder::samples(&bed.names.group).plural("others").version("v1", string_fields(&[]));
    control_plane().apply_yaml(&taken.build().to_string());
    bed.write_objects(&[crd(&bed, &["first"]), sample(&bed, "x")]);
    let proxy = Proxy::start(control_plane());
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "human", "-o", "json=report.json"]).run();
    run.code(1).stdout_contains("the server will not serve it").stdout_contains("already in use");
    run.stdout_contains(&format!("samples.{}", bed.names.group)).stdout_contains("Not reached  sample.");
    let report = std::fs::read_to_string(bed.folder.path().join("report.json")).expect("the report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(results(&report), expected(&[("CustomResourceDefinition", "applied"), ("Sample", "notReached")]));
    assert_eq!(proxy.writes().len(), 1, "{:?}", proxy.writes());
}

#[test]
fn a_crd_that_is_not_served_in_time_ends_the_deploy() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write_objects(&[crd(&bed, &["first"]), sample(&bed, "x")]);
    let config = "{apiVersion: gantry.dev/v1alpha1, kind: Config, timeouts: {established: 1s}}";
    std::fs::write(bed.folder.path().join("gantry.yaml"), config).expect("write the configuration");
    let proxy = Proxy::start(control_plane());
    // Once it is written, every read returns a CRD in its first state, which no controller has seen.
    let written = Arc::new(AtomicBool::new(false));
    let mut unseen = crd(&bed, &["first"]);
    unseen["metadata"]["uid"] = json!("u");
    unseen["metadata"]["resourceVersion"] = json!("2");
    proxy.before(When::new("PATCH", &bed.crd_path()), {
        let written = Arc::clone(&written);
        move || written.store(true, Ordering::SeqCst)
    });
    // The first GET is from the plan, when the CRD does not exist.
    for nth in 2..200 {
        proxy.answer(When::new("GET", &bed.crd_path()).nth(nth), 200, unseen.clone());
    }
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    let report = run.code(1).report();
    assert!(written.load(Ordering::SeqCst));
    assert_eq!(results(&report), expected(&[("CustomResourceDefinition", "applied"), ("Sample", "notReached")]));
    let message = report["errors"][0]["message"].as_str().expect("an error");
    assert!(message.contains("is not served after 1s"), "{message}");
    let help = report["errors"][0]["help"].as_str().expect("a next step");
    assert!(help.contains("timeouts.established"), "{help}");
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
}

#[test]
fn a_crd_that_the_server_refuses_keeps_its_objects_from_being_sent() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let mut crd = crd(&bed, &["first"]);
    crd["spec"]["names"]["listKind"] = json!("not a kind");
    bed.write_objects(&[crd, sample(&bed, "x")]);
    // The server would refuse the CRD, so nothing is sent, whatever the configuration makes of the finding.
    let run = bed.deploy(control_plane().kubeconfig("admin"), &["-o", "json", "--warn-only"]).run();
    assert_eq!(run.code(3).report()["outcome"], "blocked");
    assert_eq!(control_plane().get(&bed.crd_path()).0, 404);
}

#[test]
fn a_killed_api_server_leaves_an_exact_report_and_the_next_run_finishes() {
    let cp = Arc::new(ControlPlane::start());
    for (path, applied) in [("/serviceaccounts/", 2), ("/samples/", 4)] {
        let bed = Bed::new();
        let mut account = bed.object("v1", "ServiceAccount", "account", json!({}));
        // By default at the same time as the CRD.
        account["metadata"]["annotations"] =
            json!({"gantry.dev/change-rule": "upsert after upserting change-groups.kapp.k14s.io/crds"});
        let config = bed.object("v1", "ConfigMap", "config", json!({"data": {"a": "b"}}));
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.names.namespace}});
        let objects = [namespace, crd(&bed, &["first"]), account, config, sample(&bed, "x")];
        bed.write_objects(&objects);
        let proxy = Proxy::start(&cp);
        let (killed, is_killed) = mpsc::channel();
        let server = Arc::clone(&cp);
        proxy.before(When::new("PATCH", path).nth(1), move || {
            server.kill_api_server();
            killed.send(()).expect("the test waits");
        });
        let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
        is_killed.try_recv().expect("the server was killed");
        let results = results(&run.code(1).report());
        let kinds = ["Namespace", "CustomResourceDefinition", "ServiceAccount", "ConfigMap", "Sample"];
        let mut pairs = kinds.map(|kind| (kind, "notReached"));
        pairs[applied].1 = "failed";
        pairs[..applied].iter_mut().for_each(|(_, result)| *result = "applied");
        assert_eq!(results, expected(&pairs), "{run}");

        cp.restart_api_server();
        for (object, (_, result)) in objects.iter().zip(&results) {
            assert_eq!(cp.get(&cp.path_of(object)).0 == 200, result == "applied", "{object}");
        }
        let again = bed.deploy(cp.kubeconfig("admin"), &["-o", "json"]).run();
        let summary = &again.code(0).report()["summary"];
        assert_eq!(summary["unchanged"], json!(applied), "{again}");
        assert_eq!(summary["created"], json!(5 - applied), "{again}");
        for object in &objects {
            assert_eq!(cp.get(&cp.path_of(object)).0, 200, "{object}");
        }
    }
}
