//! Annotations of kapp in a deploy: objects that it does not write, and what it does not support.

use crate::support::{Bed, Proxy, When, control_plane, eventually, results};
use serde_json::{Value, json};

/// A ConfigMap with these annotations, as YAML.
fn config_map(bed: &Bed, name: &str, value: &str, annotations: &Value) -> String {
    let metadata = json!({"name": name, "namespace": bed.names.namespace, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}).to_string()
}

fn live(bed: &Bed, name: &str) -> Option<String> {
    let (status, answer) = control_plane().get(&bed.config_map_path(name));
    (status == 200).then(|| answer["data"]["a"].as_str().expect("a value").to_owned())
}

#[test]
fn an_object_that_its_annotation_excludes_is_never_written() {
    let cp = control_plane();
    let bed = Bed::new();
    let admin = || cp.kubeconfig("admin");
    let kapp = |name: &str, value: &str| json!({format!("kapp.k14s.io/{name}"): value});
    let manifests = |value: &str| {
        let objects = [
            bed.namespace(),
            config_map(&bed, "noop", value, &kapp("noop", "")),
            config_map(&bed, "exists", value, &kapp("exists", "")),
            config_map(&bed, "once", value, &kapp("update-strategy", "skip")),
            config_map(&bed, "usual", value, &kapp("disable-wait", "")),
        ];
        bed.write("manifests.yaml", &objects.join("\n---\n"));
    };

    // Nothing exists: objects that are only created are created, the others remain missing.
    manifests("first");
    let output = bed.deploy(admin(), &[]).run();
    output.code(0).stderr_contains("configmap/exists").stderr_contains("does not exist yet");
    output.stdout_contains("3 created, 2 skipped");
    assert_eq!(["noop", "exists", "once", "usual"].map(|name| live(&bed, name).is_some()), [false, false, true, true]);

    // Everything exists, with differences.
    for name in ["noop", "exists"] {
        cp.apply_yaml(&config_map(&bed, name, "theirs", &json!({})));
    }
    manifests("second");
    let output = bed.deploy(admin(), &["--force-conflicts", "-o", "json"]).run();
    output.code(0).contains_nowhere("does not exist yet");
    let report = output.report();
    let mut results = results(&report);
    results.sort();
    let result =
        |name: &str| results.iter().find(|(object, _)| object.contains(name)).map(|(_, result)| result.as_str());
    assert_eq!(["noop", "exists", "once", "usual"].map(result), ["skipped", "skipped", "skipped", "applied"].map(Some));
    assert_eq!(report["summary"]["skipped"], 3);
    let now = ["noop", "exists", "once", "usual"].map(|name| live(&bed, name).expect("it is there"));
    assert_eq!(now, ["theirs", "theirs", "first", "second"]);

    // Nothing is left to do, and the output says so.
    bed.deploy(admin(), &[]).run().code(0).stdout_contains("2 objects unchanged, 3 skipped");
}

#[test]
fn a_missing_namespace_that_others_create_ends_the_deploy_before_it_writes() {
    let bed = Bed::new();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.names.namespace,
        "annotations": {"kapp.k14s.io/exists": ""}}});
    bed.write("manifests.yaml", &format!("{namespace}\n---\n{}", config_map(&bed, "a", "1", &json!({}))));
    let output = bed.deploy(control_plane().kubeconfig("admin"), &[]).run();
    output.code(3).stdout_contains("there is no namespace");
}

#[test]
fn a_versioned_object_blocks_a_deploy_without_an_app() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let objects = [
        config_map(&bed, "plain", "1", &json!({})),
        config_map(&bed, "config", "1", &json!({"kapp.k14s.io/versioned": ""})),
    ];
    bed.write("manifests.yaml", &objects.join("\n---\n"));
    for more in [&["deploy"][..], &["check"], &["deploy", "--dry-run"]] {
        let arguments = [more, &["-f", "manifests.yaml", "--force-conflicts"]].concat();
        let output = bed.gantry(cp.kubeconfig("admin"), &arguments).run();
        output.code(3).stdout_contains("configmap/config").stdout_contains("kapp.k14s.io/versioned: ");
        output.stdout_contains("--> manifests.yaml:3:").stdout_contains("1 error. Nothing was written.");
    }
    assert_eq!(live(&bed, "plain"), None);
}

#[test]
fn an_empty_nonce_changes_its_object_in_each_deploy() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let nonce = |value: &str| json!({"kapp.k14s.io/nonce": value});
    let objects = [config_map(&bed, "each", "1", &nonce("")), config_map(&bed, "fixed", "1", &nonce("7"))];
    bed.write("manifests.yaml", &objects.join("\n---\n"));
    let value = |name: &str| {
        let annotations = cp.get(&bed.config_map_path(name)).1["metadata"]["annotations"].clone();
        annotations["kapp.k14s.io/nonce"].as_str().expect("a nonce").to_owned()
    };
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0).stdout_contains("2 created");
    let first = value("each");
    assert!(!first.is_empty());
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0).stdout_contains("1 updated, 1 unchanged");
    assert_ne!(first, value("each"));
    assert_eq!(value("fixed"), "7");
}

/// An immutable ConfigMap.
fn immutable(bed: &Bed, name: &str, value: &str, annotations: &Value) -> String {
    let mut object: Value = serde_json::from_str(&config_map(bed, name, value, annotations)).expect("JSON");
    object["immutable"] = true.into();
    object.to_string()
}

fn uid(bed: &Bed, name: &str) -> String {
    control_plane().get(&bed.config_map_path(name)).1["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

#[test]
fn objects_are_deleted_and_created_again_where_their_annotation_says_so() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let always = json!({"kapp.k14s.io/update-strategy": "always-replace"});
    let refused = json!({"gantry.dev/update-strategy": "fallback-on-replace"});
    let write = |value: &str| {
        let objects = [
            config_map(&bed, "always", value, &always),
            config_map(&bed, "accepted", value, &refused),
            immutable(&bed, "refused", value, &json!({"kapp.k14s.io/update-strategy": "fallback-on-replace"})),
            config_map(&bed, "plain", value, &json!({"kapp.k14s.io/update-strategy": ""})),
        ];
        bed.write("manifests.yaml", &objects.join("\n---\n"));
    };
    let names = ["always", "accepted", "refused", "plain"];
    write("1");
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0).stdout_contains("4 created");
    let before = names.map(|name| uid(&bed, name));
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0).stdout_contains("4 objects unchanged");

    write("2");
    let planned =
        bed.gantry(cp.kubeconfig("admin"), &["check", "-f", "manifests.yaml", "-o", "json"]).run().code(0).report();
    let actions = |report: &Value| -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let changes = report["changes"].as_array().expect("changes").clone();
        changes.iter().map(|change| (text(&change["object"]["name"]), text(&change["action"]))).collect()
    };
    let expected = [("always", "replace"), ("accepted", "update"), ("refused", "replace"), ("plain", "update")];
    assert_eq!(actions(&planned), expected.map(|(name, action)| (name.to_owned(), action.to_owned())));
    assert_eq!(planned["summary"]["replaced"], 2);
    let proxy = Proxy::start(cp);
    let output =
        bed.deploy(proxy.kubeconfig("admin"), &["-v", "--preflight", "AdmissionDryRun,CRDUpgradeSafety"]).run();
    output.code(0).stdout_contains("2 updated, 2 replaced").stdout_contains("AdmissionDryRun   passed");
    let after = names.map(|name| uid(&bed, name));
    let is_same: Vec<bool> = before.iter().zip(&after).map(|(before, after)| before == after).collect();
    assert_eq!(is_same, [false, true, false, true]);
    assert_eq!(names.map(|name| live(&bed, name).expect("it is there")), ["2"; 4]);
    let deleted: Vec<String> =
        proxy.requests().into_iter().filter(|request| request.method == "DELETE").map(|request| request.path).collect();
    assert_eq!(deleted.len(), 2, "{deleted:?}");
}

#[test]
fn an_object_that_the_server_would_not_recreate_is_not_deleted() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let service = |name: &str, strategy: &str, port: u32, target: &str| {
        let metadata = json!({"name": name, "namespace": bed.names.namespace,
            "annotations": {"kapp.k14s.io/update-strategy": strategy}});
        let ports = json!([{"port": port, "targetPort": target}]);
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}}).to_string()
    };
    let uid = |name: &str| {
        cp.get(&format!("/api/v1/namespaces/{}/services/{name}", bed.names.namespace)).1["metadata"]["uid"].clone()
    };
    let write = |port: u32, target: &str| {
        let strategies = ["always-replace", "fallback-on-replace"];
        bed.write("manifests.yaml", &strategies.map(|name| service(name, name, port, target)).join("\n---\n"));
    };
    let names = ["always-replace", "fallback-on-replace"];
    write(80, "http");
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    let before = names.map(uid);
    write(80, "NOT-A-PORT");
    for preflight in ["CRDUpgradeSafety", "AdmissionDryRun"] {
        for command in ["check", "deploy"] {
            let arguments = [command, "-f", "manifests.yaml", "--preflight", preflight];
            let output = bed.gantry(cp.kubeconfig("admin"), &arguments).run();
            output.code(3).stdout_contains("spec.ports[0].targetPort: Invalid value: \"NOT-A-PORT\"");
            for name in names.iter().filter(|_| preflight == "CRDUpgradeSafety") {
                let expected = format!(
                    "service/{name} -n {} would be deleted, and could not be created again",
                    bed.names.namespace
                );
                output.stdout_contains(&expected);
            }
        }
    }
    assert_eq!(names.map(uid), before);
    // Its own ports are no reason.
    write(81, "http");
    let output = bed.deploy(cp.kubeconfig("admin"), &["--preflight", "AdmissionDryRun"]).run();
    output.code(0).stdout_contains("1 updated, 1 replaced");
}

#[test]
fn a_replaced_object_that_is_not_deleted_in_time_is_not_ready() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let object = |value: &str| {
        let metadata = json!({"name": "held", "namespace": bed.names.namespace, "finalizers": ["example.com/hold"],
            "annotations": {"kapp.k14s.io/update-strategy": "always-replace"}});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}).to_string()
    };
    bed.write("manifests.yaml", &object("1"));
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    bed.write("manifests.yaml", &object("2"));
    let output = bed.deploy(cp.kubeconfig("admin"), &[]).env("GANTRY_TIMEOUTS__DELETE", "1s").run();
    output.code(5).stdout_contains("it waits for example.com/hold");
    let freed = json!({"metadata": {"finalizers": null}});
    cp.patch(&bed.config_map_path("held"), &freed);
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0).stdout_contains("1 created");
}

#[test]
fn an_object_that_cannot_be_recreated_is_reported_as_deleted_and_the_next_run_continues() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let always = json!({"kapp.k14s.io/update-strategy": "always-replace"});
    bed.write("manifests.yaml", &config_map(&bed, "a", "1", &always));
    bed.deploy(cp.kubeconfig("admin"), &["-a", "shop", "-n", &bed.names.namespace]).run().code(0);
    bed.write("manifests.yaml", &config_map(&bed, "a", "2", &always));
    let proxy = Proxy::start(cp);
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "no more today"});
    proxy.answer(When::new("PATCH", "/configmaps/a").query("force=false&fieldValidation=Strict"), 403, refusal);
    let arguments = ["-a", "shop", "-n", &bed.names.namespace];
    let output = bed.deploy(proxy.kubeconfig("admin"), &arguments).run();
    output.code(1).stdout_contains("was deleted and could not be created again").stdout_contains("no more today");
    assert_eq!(live(&bed, "a"), None);
    bed.deploy(cp.kubeconfig("admin"), &arguments).run().code(0).stdout_contains("1 created");
    bed.deploy(cp.kubeconfig("admin"), &arguments).run().code(0).stdout_contains("1 object unchanged");
}

#[test]
fn a_crd_with_objects_is_not_replaced() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&format!("{}---\n{}", bed.namespace(), bed.crd("spec: {type: object}")));
    eventually("the kind is served", || {
        let body = json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample",
            "metadata": {"name": "one", "namespace": bed.names.namespace}});
        let path = format!("/apis/{}/v1/namespaces/{}/samples", bed.names.group, bed.names.namespace);
        (cp.post(&path, &body).0 == 201).then_some(())
    });
    let annotated = bed
        .crd("spec: {type: object}, status: {type: object}")
        .replace("metadata: {", "metadata: {annotations: {kapp.k14s.io/update-strategy: always-replace}, ");
    bed.write("manifests.yaml", &annotated);
    let output = bed.deploy(cp.kubeconfig("admin"), &["--force-conflicts"]).run();
    output.code(3).stdout_contains("CRDDeletionLosesObjects").stdout_contains("replace");
    let crd = cp.get(&bed.crd_path()).1;
    assert!(crd["metadata"]["deletionTimestamp"].is_null(), "{crd}");
}

#[test]
fn a_deploy_that_waits_also_waits_for_objects_that_others_create() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let objects = [
        config_map(&bed, "ours", "1", &json!({})),
        config_map(&bed, "theirs", "1", &json!({"kapp.k14s.io/exists": ""})),
    ];
    bed.write("manifests.yaml", &objects.join("\n---\n"));
    let late = bed.deploy(cp.kubeconfig("admin"), &["--wait", "--wait-timeout=1s"]).run();
    late.code(5).stdout_contains("configmap/theirs").stdout_contains("it does not exist yet");

    // Nothing is left to write, but the next run still waits.
    let proxy = Proxy::start(cp);
    let theirs = config_map(&bed, "theirs", "2", &json!({}));
    let watch = When::new("GET", "/configmaps").query("watch=true").nth(1);
    proxy.before(watch, move || drop(control_plane().apply_yaml(&theirs)));
    bed.deploy(proxy.kubeconfig("admin"), &["--wait"]).run().code(0).contains_nowhere("does not exist yet");
    assert_eq!(live(&bed, "theirs").as_deref(), Some("2"));
}

#[test]
fn an_object_that_appears_after_the_checks_is_handled_by_its_create_strategy() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let named = |name: &str| json!({"kapp.k14s.io/create-strategy": name});
    let cases = [
        ("none", json!({})),
        ("update", named("fallback-on-update")),
        ("owned", named("fallback-on-update")),
        ("or-noop", named("fallback-on-update-or-noop")),
    ];
    let objects = cases.clone().map(|(name, annotations)| config_map(&bed, name, "ours", &annotations));
    bed.write("manifests.yaml", &objects.join("\n---\n"));
    let proxy = Proxy::start(cp);
    for (name, _) in cases {
        let labels = if name == "owned" { json!({"applyset.kubernetes.io/part-of": "other"}) } else { json!({}) };
        let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"b": "theirs"},
            "metadata": {"name": name, "namespace": bed.names.namespace, "labels": labels}});
        let collection = format!("/api/v1/namespaces/{}/configmaps", bed.names.namespace);
        let write = When::new("PATCH", &format!("/configmaps/{name}")).query("force=false&fieldValidation=Strict");
        proxy.before(write, move || drop(control_plane().post(&collection, &theirs)));
    }
    let arguments = ["-a", "shop", "-n", &bed.names.namespace, "--keep-going", "-o", "json"];
    let output = bed.deploy(proxy.kubeconfig("admin"), &arguments).run();
    let report = output.code(1).report();
    let mut results = results(&report);
    results.sort();
    let results: Vec<&str> = results.iter().map(|(_, result)| result.as_str()).collect();
    assert_eq!(results, ["failed", "applied", "failed", "applied"], "{output}");
    let data = |name: &str| cp.get(&bed.config_map_path(name)).1["data"].clone();
    for name in ["update", "or-noop"] {
        assert_eq!(data(name), json!({"a": "ours", "b": "theirs"}), "{name}");
    }
    for name in ["none", "owned"] {
        assert_eq!(data(name), json!({"b": "theirs"}), "{name}");
    }
    let summary = &report["summary"];
    let counts = ["created", "adopted", "skipped"].map(|action| summary[action].as_u64());
    assert_eq!(counts, [Some(0), Some(2), Some(0)], "{summary}");
    let errors = report["errors"].to_string();
    assert_eq!(errors.matches("was created in the target after the checks ran").count(), 2, "{errors}");
    // The app did not create it, so it does not delete it either.
    output.stderr_contains("configmap/update").stderr_contains("was created by something else after the checks");
    let (_, record) = cp.get(&bed.config_map_path("shop.gantry"));
    let inventory = record["data"]["inventory"].as_str().unwrap_or_default();
    let line = inventory.lines().find(|line| line.contains(" update ")).unwrap_or_default();
    assert!(line.ends_with(" adopted"), "{inventory}");
    bed.write("manifests.yaml", &config_map(&bed, "new", "1", &json!({})));
    let deploy = |flags: &[&str]| {
        bed.deploy(
            cp.kubeconfig("admin"),
            &[&["-a", "shop", "-n", &bed.names.namespace, "--prune=yes"], flags].concat(),
        )
    };
    deploy(&[]).run().code(0).stderr_contains("--prune-adopted");
    assert_eq!(data("update"), json!({"a": "ours", "b": "theirs"}));
    deploy(&["--prune-adopted"]).run().code(0);
    assert_eq!(cp.get(&bed.config_map_path("update")).0, 404);

    bed.write("manifests.yaml", &config_map(&bed, "new", "1", &named("fallback")));
    let output = bed.deploy(cp.kubeconfig("admin"), &[]).run();
    output.code(3).stdout_contains("kapp.k14s.io/create-strategy: the strategy is unknown");
    output.stdout_contains("known: fallback-on-update, fallback-on-update-or-noop");
}

#[test]
fn a_member_that_the_app_no_longer_writes_leaves_the_app_and_stays() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let run = |arguments: &[&str]| {
        bed.gantry(cp.kubeconfig("admin"), &[arguments, &["-a", "shop", "-n", &bed.names.namespace]].concat()).run()
    };
    let deploy = || run(&["deploy", "-f", "manifests.yaml", "--prune=yes"]);
    let write = |objects: &[String]| bed.write("manifests.yaml", &objects.join("\n---\n"));
    let map = |name: &str, annotations: Value| config_map(&bed, name, "1", &annotations);
    let other = map("other", json!({}));
    cp.apply_yaml(&other);
    write(&[map("mine", json!({})), other.clone()]);
    run(&["deploy", "-f", "manifests.yaml", "--force-conflicts"]).code(0).stdout_contains("1 created");

    write(&[map("mine", json!({"kapp.k14s.io/noop": ""})), other.clone()]);
    let output = deploy();
    output.code(0).stderr_contains("configmap/mine -n").stderr_contains("leaves the app shop and stays in the cluster");
    output.stderr_contains(&format!(
        "kubectl label configmap/mine -n {} applyset.kubernetes.io/part-of-",
        bed.names.namespace
    ));
    deploy().code(0).contains_nowhere("leaves the app");
    write(&[map("third", json!({}))]);
    let output = deploy();
    output.code(0).stderr_contains("its uid is not in the record of the app");
    output
        .stderr_contains("configmap/other")
        .stderr_contains("left the manifests and stays: it existed before the app shop");
    assert!(live(&bed, "mine").is_some() && live(&bed, "other").is_some());

    let output = run(&["delete", "--yes"]);
    output
        .code(0)
        .stderr_contains("stays in the cluster, and so does the record of the app: it existed before the app shop");
    output.stderr_contains("--prune-adopted; to remove only the record: gantry apps forget -a shop");
    assert_eq!(cp.get(&bed.config_map_path("shop.gantry")).0, 200);
    let output = run(&["delete", "--yes", "--prune-adopted"]);
    // The object that left the app still has its label, so the record stays with it until it is told to go.
    output.code(0).stderr_contains("configmap/mine -n").stderr_contains("still carries the label of the app");
    output.stderr_contains("gantry apps forget -a shop");
    assert!(live(&bed, "other").is_none() && cp.get(&bed.config_map_path("shop.gantry")).0 == 200);
    run(&["apps", "forget", "--yes"]).code(0);
    let mine = cp.get(&bed.config_map_path("mine")).1;
    assert!(mine["metadata"]["uid"].is_string() && !mine.to_string().contains("applyset"), "{mine}");
    assert_eq!(cp.get(&bed.config_map_path("shop.gantry")).0, 404);
}

#[test]
fn an_excluded_object_is_a_member_only_if_the_app_created_it() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let exists = json!({"kapp.k14s.io/exists": ""});
    let skip = json!({"kapp.k14s.io/update-strategy": "skip"});
    let deploy = |objects: &[String]| {
        bed.write("manifests.yaml", &objects.join("\n---\n"));
        let flags = ["-a", "shop", "-n", &bed.names.namespace, "--prune=yes"];
        bed.deploy(cp.kubeconfig("admin"), &flags).run()
    };
    for name in ["theirs", "skipped"] {
        cp.apply_yaml(&config_map(&bed, name, "theirs", &json!({})));
    }
    let stays = config_map(&bed, "stays", "1", &json!({}));
    let output = deploy(&[
        stays.clone(),
        config_map(&bed, "theirs", "1", &exists),
        config_map(&bed, "skipped", "1", &skip),
        config_map(&bed, "created", "1", &skip),
    ]);
    output.code(0).stdout_contains("2 created, 2 skipped");
    let inventory = || {
        let (_, record) = cp.get(&bed.config_map_path("shop.gantry"));
        let lines = record["data"]["inventory"].as_str().expect("an inventory").lines();
        lines.map(|line| line.split(' ').nth(3).expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(inventory(), ["created", "stays"]);
    let is_labelled = |name: &str| {
        cp.get(&bed.config_map_path(name)).1["metadata"]["labels"]["applyset.kubernetes.io/part-of"].is_string()
    };
    assert_eq!(["stays", "created", "theirs", "skipped"].map(is_labelled), [true, true, false, false]);

    // Another content is not written; the object is still a member.
    let output = deploy(&[
        stays.clone(),
        config_map(&bed, "theirs", "2", &exists),
        config_map(&bed, "skipped", "2", &skip),
        config_map(&bed, "created", "2", &skip),
    ]);
    output.code(0).stdout_contains("3 skipped");
    assert_eq!(inventory(), ["created", "stays"]);
    assert_eq!(live(&bed, "created").as_deref(), Some("1"));

    let output = deploy(&[stays]);
    output.code(0).stdout_contains("1 deleted");
    let left = ["stays", "created", "theirs", "skipped"].map(|name| live(&bed, name));
    let left = left.each_ref().map(Option::as_deref);
    assert_eq!(left, [Some("1"), None, Some("theirs"), Some("theirs")], "{output}");
    assert_eq!(inventory(), ["stays"]);
}

#[test]
fn a_minimum_of_replicas_that_is_no_number_blocks_a_deploy_that_waits() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    for key in [
        "kapp.k14s.io/apps-v1-deployment-wait-minimum-replicas-available",
        "gantry.dev/wait-minimum-replicas-available",
    ] {
        let labels = "labels: {run: web}";
        let template = format!("metadata: {{{labels}}}, spec: {{containers: [{{name: web, image: 'web:1'}}]}}");
        let deployment = format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: {}\n  annotations:\n    {key}: most\n\
             spec: {{selector: {{matchL{}}}, template: {{{template}}}}}\n",
            bed.names.namespace,
            &labels[1..]
        );
        bed.write("manifests.yaml", &deployment);
        let deploy = |flags: &[&str]| bed.deploy(cp.kubeconfig("admin"), flags).run();
        let message = format!("{key}: the value is not a number of replicas or a percentage");
        let output = deploy(&["--wait"]);
        output.code(3).stdout_contains(&message).stdout_contains("manifests.yaml:7:");
        deploy(&["--dry-run"]).code(0).stderr_contains(&message);
    }
}

#[test]
fn an_unknown_delete_strategy_never_deletes() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let deploy = |objects: &[String]| {
        bed.write("manifests.yaml", &objects.join("\n---\n"));
        let arguments = ["-a", "shop", "-n", &bed.names.namespace, "--prune=yes", "--prune-max=9"];
        bed.deploy(cp.kubeconfig("admin"), &arguments).run()
    };
    let unknown = json!({"kapp.k14s.io/delete-strategy": "Orphan"});
    let stays = || config_map(&bed, "stays", "1", &json!({}));
    let output = deploy(&[stays(), config_map(&bed, "precious", "1", &unknown)]);
    output.code(3).stdout_contains("kapp.k14s.io/delete-strategy: the strategy is unknown");
    output.stdout_contains("known: orphan");

    deploy(&[stays(), config_map(&bed, "precious", "1", &json!({}))]).code(0);
    cp.patch(&bed.config_map_path("precious"), &json!({"metadata": {"annotations": unknown}}));
    let output = deploy(&[stays()]);
    output.code(0).stderr_contains("configmap/precious").stderr_contains("\"Orphan\"");
    assert!(live(&bed, "precious").is_some(), "{output}");
}

#[test]
fn a_deploy_that_waits_waits_for_the_namespace_of_its_objects() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.names.namespace,
        "annotations": {"kapp.k14s.io/exists": ""}}});
    bed.write("manifests.yaml", &format!("{namespace}\n---\n{}", config_map(&bed, "a", "1", &json!({}))));
    let flags = ["--wait", "--preflight", "AdmissionDryRun,CRDUpgradeSafety"];
    let proxy = Proxy::start(cp);
    for more in ["", "--keep-going"] {
        let flags: Vec<&str> =
            flags.into_iter().chain(["--wait-timeout=1s", more]).filter(|flag| !flag.is_empty()).collect();
        let late = bed.deploy(proxy.kubeconfig("admin"), &flags).run();
        late.code(5).stdout_contains("namespace/").stdout_contains("it does not exist yet");
        assert_eq!(proxy.writes(), [], "{late}");
    }
    let created = bed.namespace();
    let watch = When::new("GET", "/api/v1/namespaces").query("watch=true");
    proxy.before(watch, move || drop(control_plane().apply_yaml(&created)));
    bed.deploy(proxy.kubeconfig("admin"), &flags).run().code(0);
    assert_eq!(live(&bed, "a").as_deref(), Some("1"));
}
