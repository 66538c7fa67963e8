//! Objects that kapp deployed, of the shape in which kapp 0.60 leaves them, with its default configuration.

use std::collections::BTreeMap;

use crate::support::rights::{grant, printed_with};
use crate::support::{Bed, Output, Proxy, When, control_plane};
use serde_json::{Value, json};

const APP: &str = "kapp.k14s.io/app";

/// A namespace in which kapp has deployed.
struct Stage {
    bed: Bed,
}

fn child<'v>(value: &'v mut Value, path: &[&str]) -> &'v mut Value {
    path.iter().fold(value, |value, key| &mut value[*key])
}

/// The object with what kapp adds to it.
fn as_kapp(object: &Value, id: &str) -> Value {
    let mut object = object.clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (namespace, name) = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let identity = format!("v1;{namespace}/{group}/{kind}/{name};{api_version}");
    let association = format!("v1.{:032x}", identity.len());
    let mut label = |path: &[&str]| {
        let labels = child(&mut object, path);
        labels[APP] = id.into();
        labels["kapp.k14s.io/association"] = association.clone().into();
    };
    label(&["metadata", "labels"]);
    if matches!(kind.as_str(), "Deployment" | "StatefulSet" | "Job") {
        label(&["spec", "template", "metadata", "labels"]);
    }
    for claim in object["spec"]["volumeClaimTemplates"].as_array_mut().into_iter().flatten() {
        claim["metadata"]["labels"] = json!({APP: id, "kapp.k14s.io/association": association});
    }
    match kind.as_str() {
        "Deployment" | "StatefulSet" => object["spec"]["selector"]["matchLabels"][APP] = id.into(),
        "Service" => object["spec"]["selector"][APP] = id.into(),
        _ => {}
    }
    let original = object.to_string();
    object["metadata"]["annotations"]["kapp.k14s.io/identity"] = identity.into();
    object["metadata"]["annotations"]["kapp.k14s.io/original"] = original.into();
    object["metadata"]["annotations"]["kapp.k14s.io/original-diff-md5"] = "c6e94dc94aed3401b5d0f26ed6c0bff3".into();
    object
}

impl Stage {
    fn new() -> Self {
        let bed = Bed::new();
        control_plane().apply_yaml(&bed.namespace());
        Stage { bed }
    }

    /// The label of the app, as kapp makes it up: kapp lists it in all namespaces.
    fn id(&self) -> String {
        format!("17000{}", self.bed.names.namespace.replace(|letter: char| !letter.is_ascii_digit(), "0"))
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
        let metadata = json!({"name": name, "namespace": self.bed.names.namespace});
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    }

    fn config_map(&self, name: &str, value: &str) -> Value {
        let mut object = self.object("v1", "ConfigMap", name, Value::Null);
        object["data"] = json!({"a": value});
        object.as_object_mut().expect("a mapping").remove("spec");
        object
    }

    /// One object of each kind that kapp changes inside.
    fn workloads(&self, image: &str) -> Vec<Value> {
        let template = json!({"metadata": {"labels": {"run": "x"}}, "spec": {
            "containers": [{"name": "main", "image": image}]}});
        let pods = || json!({"selector": {"matchLabels": {"run": "x"}}, "template": template});
        let mut database = pods();
        database["serviceName"] = "db".into();
        database["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]);
        let mut job = template.clone();
        job["spec"]["restartPolicy"] = "Never".into();
        // The template of a Job cannot change.
        job["spec"]["containers"][0]["image"] = "example.com/job:1".into();
        let mut once = self.object("batch/v1", "Job", "once", json!({ "template": job }));
        // A Job without any label gets those of its template from the server.
        once["metadata"]["labels"] = json!({"run": "once"});
        vec![
            self.object("apps/v1", "Deployment", "web", pods()),
            self.object("apps/v1", "StatefulSet", "db", database),
            once,
            self.object("v1", "Service", "web", json!({"selector": {"run": "x"}, "ports": [{"port": 80}]})),
        ]
    }

    /// What kapp does to deploy the objects.
    fn kapp_deploys(&self, objects: &[Value]) {
        for object in objects {
            let path = control_plane().api().path_of(object);
            let (collection, _) = path.rsplit_once('/').expect("a path");
            let (code, answer) =
                control_plane().post(&format!("{collection}?fieldManager=kapp"), &as_kapp(object, &self.id()));
            assert_eq!(code, 201, "{answer}");
        }
    }

    fn write(&self, objects: &[Value]) {
        let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.bed.write("manifests.yaml", &texts.join("\n---\n"));
    }

    fn deploy(&self, flags: &[&str]) -> Output {
        self.bed.deploy(control_plane().kubeconfig("admin"), flags).run()
    }

    fn live(&self, object: &Value) -> Value {
        let (code, answer) = control_plane().get(&control_plane().api().path_of(object));
        assert_eq!(code, 200, "{answer}");
        answer
    }

    /// Selectors, pod templates and claims of the objects, with their labels.
    fn insides(&self, objects: &[Value]) -> BTreeMap<String, Value> {
        let inside = |object: &Value| {
            let spec = &self.live(object)["spec"];
            let inside = ["selector", "template", "volumeClaimTemplates"].map(|key| spec[key].clone());
            (format!("{}/{}", object["kind"], object["metadata"]["name"]), json!(inside))
        };
        objects.iter().map(inside).collect()
    }
}

#[test]
fn what_is_taken_from_kapp_keeps_its_selector_and_its_pods() {
    let stage = Stage::new();
    let objects = stage.workloads("example.com/web:1");
    stage.kapp_deploys(&objects);
    let before = stage.insides(&objects);
    assert!(before.values().all(|inside| inside.to_string().contains(&stage.id())), "{before:#?}");
    stage.write(&objects);
    stage.deploy(&["--force-conflicts"]).code(3).stdout_contains("OwnedByOther");
    assert_eq!(stage.insides(&objects), before);

    let output = stage.deploy(&["--take-ownership", "--force-conflicts"]);
    output
        .code(0)
        .stdout_contains("4 adopted")
        .stderr_contains("rebase: service/web")
        .stderr_contains("deployment.apps/web");
    output.stderr_contains("keep the label kapp.k14s.io/app").stderr_contains("--drop-kapp-selector");
    assert_eq!(stage.insides(&objects), before);
    for object in &objects {
        let metadata = &stage.live(object)["metadata"];
        assert!(!metadata["labels"].to_string().contains("kapp.k14s.io"), "{metadata}");
        assert!(!metadata["annotations"].to_string().contains("kapp.k14s.io"), "{metadata}");
    }
    // A later deploy has nothing to add, and says nothing of it.
    let output = stage.deploy(&[]);
    output.code(0).stdout_contains("Nothing to do").contains_nowhere("rebase");
    assert_eq!(stage.insides(&objects), before);

    // An update changes what it says and nothing else.
    let newer = stage.workloads("example.com/web:2");
    stage.write(&newer);
    stage.deploy(&[]).code(0).stdout_contains("2 updated");
    for (name, inside) in stage.insides(&objects) {
        let expected = before[&name].to_string().replace("example.com/web:1", "example.com/web:2");
        assert_eq!(inside.to_string(), expected, "{name}");
    }
}

#[test]
fn a_service_no_longer_selects_by_the_label_where_the_user_says_so() {
    let stage = Stage::new();
    let objects = stage.workloads("example.com/web:1");
    stage.kapp_deploys(&objects);
    let before = stage.insides(&objects);
    stage.write(&objects);
    stage.deploy(&["--take-ownership", "--force-conflicts", "--drop-kapp-selector"]).code(0);
    for (name, inside) in stage.insides(&objects) {
        let expected = if name.contains("Service") { json!([{"run": "x"}, null, null]) } else { before[&name].clone() };
        assert_eq!(inside, expected, "{name}");
    }
    // It is gone for good.
    stage.deploy(&[]).code(0).stdout_contains("Nothing to do");
}

impl Stage {
    /// kapp's record of the app `shop` and one of its changes.
    fn kapp_records(&self, kinds: &[(&str, &str)]) {
        let namespace = &self.bed.names.namespace;
        let kinds: Vec<Value> = kinds.iter().map(|(group, kind)| json!({"Group": group, "Kind": kind})).collect();
        let change = json!({"startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:01:00Z", "successful": true,
            "description": "update: Op: 1 create", "namespaces": [namespace]});
        let spec = json!({"labelKey": APP, "labelValue": self.id(), "lastChangeName": "shop-change-x7s2k", "lastChange": change,
            "usedGVs": [], "usedGKs": kinds});
        let mut record = self.config_map("shop.apps.k14s.io", "");
        record["metadata"]["labels"] = json!({"kapp.k14s.io/is-app": ""});
        record["data"] = json!({"spec": spec.to_string()});
        let mut first = self.config_map("shop-change-x7s2k", "");
        first["metadata"]["labels"] =
            json!({"kapp.k14s.io/is-app-change": "", "kapp.k14s.io/app-change-app-label": self.id()});
        first["data"] = json!({"spec": change.to_string()});
        let mut old = self.config_map("shop-change-old", "");
        old["metadata"]["labels"] = json!({"kapp.k14s.io/is-app-change": "", "kapp.k14s.io/app-change-app": "shop"});
        let mut of_another = old.clone();
        of_another["metadata"]["name"] = "shop-change-another".into();
        of_another["metadata"]["labels"]["kapp.k14s.io/app-change-app-label"] = "18".into();
        for object in [record, first, old, of_another] {
            control_plane().apply_yaml(&object.to_string());
        }
    }

    fn app(&self, command: &str, flags: &[&str]) -> Output {
        self.bed.gantry(control_plane().kubeconfig("admin"), &self.arguments(command, flags)).run()
    }

    fn arguments<'a>(&'a self, command: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
        let namespace = &self.bed.names.namespace;
        [&[command, "-f", "manifests.yaml", "-a", "shop", "-n", namespace, "--wait=false"], flags].concat()
    }

    fn config_map_is_there(&self, name: &str) -> bool {
        control_plane().get(&self.bed.config_map_path(name)).0 == 200
    }
}

const KINDS: [(&str, &str); 5] =
    [("apps", "Deployment"), ("apps", "StatefulSet"), ("batch", "Job"), ("", "Service"), ("", "ConfigMap")];

#[test]
fn an_app_of_kapp_is_taken_over_as_a_whole() {
    let stage = Stage::new();
    let mut objects = stage.workloads("example.com/web:1");
    objects.push(stage.config_map("settings", "1"));
    let gone = stage.config_map("gone", "1");
    stage.kapp_deploys(&objects);
    stage.kapp_deploys(std::slice::from_ref(&gone));
    // A controller copies labels and annotations of what it works for.
    let mut copy = as_kapp(&stage.config_map("settings", "1"), &stage.id());
    copy["metadata"]["name"] = "copy".into();
    control_plane().apply_yaml(&copy.to_string());
    stage.kapp_records(&KINDS);
    let before = stage.insides(&objects);
    let versions = |objects: &[Value]| -> Vec<Value> {
        objects.iter().map(|object| stage.live(object)["metadata"]["resourceVersion"].clone()).collect()
    };
    let untouched = versions(&objects);
    objects[4] = stage.config_map("settings", "2");
    stage.write(&objects);

    // Without a word about kapp nothing is written, whatever is forced.
    for flags in [&["--force-conflicts"][..], &["--force-conflicts", "--prune=yes", "--yes"]] {
        let output = stage.app("deploy", flags);
        output.code(3).stdout_contains("OwnedByOther").stdout_contains("--from-kapp");
    }
    let output = stage.app("check", &["--from-kapp", "--prune=kapp"]);
    output
        .code(0)
        .stderr_contains("5 objects of kapp's app shop join the app shop")
        .stdout_contains("delete    1 (1 ConfigMap)");
    assert_eq!(versions(&objects), untouched);
    assert!(!stage.config_map_is_there("shop.gantry"));

    // `--prune=yes` is about the app, not about that of kapp.
    for flags in [&["--from-kapp"][..], &["--from-kapp", "shop", "--prune=yes", "--yes"]] {
        let output = stage.app("deploy", flags);
        output.code(0).stderr_contains("configmap/gone").stderr_contains("--prune=kapp");
        assert_eq!(stage.insides(&objects), before);
        for object in &objects {
            let metadata = &stage.live(object)["metadata"];
            assert!(metadata["labels"]["applyset.kubernetes.io/part-of"].is_string(), "{metadata}");
            for marks in ["labels", "annotations"] {
                assert!(!metadata[marks].to_string().contains("kapp.k14s.io"), "{metadata}");
            }
        }
        assert_eq!(stage.live(&objects[4])["data"]["a"], "2");
        // What kapp would still delete is what has left the manifests.
        assert_eq!(stage.live(&gone)["metadata"]["labels"][APP], stage.id());
        assert!(stage.config_map_is_there("shop.apps.k14s.io"));
    }
    stage.app("deploy", &["--from-kapp", "--prune=kapp"]).code(0).stdout_contains("1 deleted");
    for name in ["gone", "shop.apps.k14s.io", "shop-change-x7s2k", "shop-change-old"] {
        assert!(!stage.config_map_is_there(name), "{name}");
    }
    for name in ["copy", "settings", "shop-change-another"] {
        assert!(stage.config_map_is_there(name), "{name}");
    }
    stage.app("deploy", &[]).code(0).stdout_contains("Nothing to do");
    stage.app("deploy", &["--from-kapp"]).code(0).stdout_contains("Nothing to do").stderr_contains("any more");
    assert_eq!(stage.insides(&objects), before);

    // The fields are the app's now, and so are the objects: no conflict, and no `--prune-adopted`.
    stage.write(&objects[..4]);
    stage.app("deploy", &["--prune=yes"]).code(0).stdout_contains("1 deleted");
    let newer = stage.workloads("example.com/web:2");
    stage.write(&newer);
    stage.app("deploy", &[]).code(0).stdout_contains("2 updated");
}

#[cfg(unix)]
#[test]
fn the_rights_to_take_over_an_app_of_kapp_are_printed() {
    let stage = Stage::new();
    let (cp, namespace) = (control_plane(), &stage.bed.names.namespace);
    let objects = stage.workloads("example.com/web:1");
    // Of the others nobody here would collect the Pods.
    stage.kapp_deploys(&[objects[0].clone(), objects[3].clone(), stage.config_map("settings", "1")]);
    stage.kapp_records(&KINDS);
    // The Service leaves; its kind is in the record of kapp alone.
    let staying = [objects[0].clone(), stage.config_map("settings", "1")];
    stage.write(&staying);
    let arguments = ["permissions", "-f", "manifests.yaml", "-n", namespace, "--from-kapp"];
    stage.bed.gantry(cp.kubeconfig("admin"), &arguments).run().code(2).stderr_contains("--app");
    let of_app = ["-a", "shop", "-n", namespace];
    let print = |flags: &[&str]| printed_with(&stage.bed, cp, "nobody-yet", &[&of_app, flags].concat());
    assert!(!print(&[]).contains("services"), "the manifests have none");

    let user = cp.user(&json!([]));
    grant(cp, &user, &printed_with(&stage.bed, cp, &user, &[&of_app[..], &["--from-kapp"]].concat()));
    let deploy = stage.arguments("deploy", &["--from-kapp", "--prune=kapp", "--prune-max=100%"]);
    let output = stage.bed.gantry(cp.kubeconfig(&user), &deploy).run();
    output.code(0).stdout_contains("2 adopted").stdout_contains("1 deleted");
    assert!(!stage.config_map_is_there("shop.apps.k14s.io") && !stage.config_map_is_there("shop-change-x7s2k"));
}

#[test]
fn the_rights_to_let_go_of_what_kapp_had_are_named_before_anything_is_written() {
    let stage = Stage::new();
    let (cp, namespace) = (control_plane(), &stage.bed.names.namespace);
    let mut kept = stage.object("v1", "Service", "kept", json!({"ports": [{"port": 80}]}));
    kept["metadata"]["annotations"] = json!({"gantry.dev/prune": "keep"});
    stage.kapp_deploys(&[stage.config_map("settings", "1"), kept]);
    stage.kapp_records(&KINDS);
    stage.write(&[stage.config_map("settings", "1")]);
    let arguments = ["permissions", "-f", "manifests.yaml", "-a", "shop", "-n", namespace, "--from-kapp"];
    let needed = stage.bed.gantry(cp.kubeconfig("admin"), &arguments).run();
    needed.code(0).stdout_contains("services");
    let lists: Vec<Value> = KINDS
        .iter()
        .map(|(group, _)| json!({"apiGroups": [group], "resources": ["*"], "verbs": ["get", "list"]}))
        .collect();
    let own = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]});
    let user = cp.user(&json!([&lists[..], &[own]].concat()));
    let deploy = stage.arguments("deploy", &["--from-kapp", "--prune=kapp", "--preflight", "PermissionValidation"]);
    let output = stage.bed.gantry(cp.kubeconfig(&user), &deploy).run();
    output.code(3).stdout_contains("RequestNotPermitted").stdout_contains("\"patch\" /v1, Resource=services");
    output.stdout_contains("needed for service/kept");
    assert!(stage.config_map_is_there("shop.apps.k14s.io") && !stage.config_map_is_there("shop.gantry"));
    stage.app("deploy", &["--from-kapp", "--prune=kapp"]).code(0).stdout_contains("1 adopted");
}

#[test]
fn on_a_terminal_the_question_counts_what_kapp_would_have_deleted() {
    let stage = Stage::new();
    let objects = [stage.config_map("stays", "1")];
    stage.kapp_deploys(&objects);
    stage.kapp_deploys(&[stage.config_map("gone", "1")]);
    stage.kapp_records(&KINDS);
    stage.write(&objects);
    let start = || {
        let arguments = stage.arguments("deploy", &["--from-kapp"]);
        stage.bed.gantry(control_plane().kubeconfig("admin"), &arguments).on_terminal()
    };
    for (key, code) in [("n\n", 1), ("y\n", 0)] {
        let mut terminal = start();
        terminal.wait_for("adopt 1 and update 0 and DELETE 1 in");
        assert!(stage.config_map_is_there("gone"));
        terminal.press(key);
        terminal.wait().code(code);
        assert_eq!(stage.config_map_is_there("gone"), code == 1);
        assert_eq!(stage.config_map_is_there("shop.apps.k14s.io"), code == 1);
    }
}

#[test]
fn fields_of_other_managers_are_not_taken_along_with_those_of_kapp() {
    let stage = Stage::new();
    let mut object = stage.config_map("settings", "1");
    object["data"]["b"] = "1".into();
    stage.kapp_deploys(std::slice::from_ref(&object));
    stage.kapp_records(&KINDS);
    let path = stage.bed.config_map_path("settings");
    let (code, _) = control_plane().patch(&format!("{path}?fieldManager=somebody"), &json!({"data": {"b": "theirs"}}));
    assert_eq!(code, 200);
    object["data"] = json!({"a": "2", "b": "2"});
    stage.write(&[object.clone()]);
    let output = stage.app("deploy", &["--from-kapp"]);
    output.code(1).stdout_contains("\"somebody\"").stdout_contains(".data.b");
    assert_eq!(stage.live(&object)["data"], json!({"a": "1", "b": "theirs"}));
    object["data"] = json!({"a": "2"});
    stage.write(&[object.clone()]);
    stage.app("deploy", &["--from-kapp"]).code(0);
    assert_eq!(stage.live(&object)["data"], json!({"a": "2", "b": "theirs"}));
}

#[test]
fn what_is_no_app_of_kapp_ends_before_anything_is_written() {
    let stage = Stage::new();
    stage.write(&[stage.config_map("settings", "1")]);
    stage.app("deploy", &["--from-kapp", "other"]).code(1).stderr_contains("there is no app other of kapp");
    control_plane().apply_yaml(&stage.config_map("other", "1").to_string());
    stage.app("deploy", &["--from-kapp", "other"]).code(1).stderr_contains("is not the record of a kapp app");
    stage.deploy(&["--from-kapp"]).code(2).stderr_contains("--app");
    stage.app("deploy", &["--prune=kapp"]).code(2).stderr_contains("--from-kapp");
    assert!(!stage.config_map_is_there("settings"));
    // A kind of the app that cannot be listed may hide members.
    stage.kapp_deploys(&[stage.config_map("hidden", "1")]);
    stage.kapp_records(&KINDS);
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"],
        "verbs": ["get", "list", "create", "patch", "delete"]});
    let user = control_plane().user(&json!([rule]));
    let deploy =
        |flags: &[&str]| stage.bed.gantry(control_plane().kubeconfig(&user), &stage.arguments("deploy", flags)).run();
    let output = deploy(&["--from-kapp", "--prune=kapp"]);
    output.code(1).stdout_contains("could not look for members of kapp's app shop").stdout_contains("--prune=no");
    assert!(!stage.config_map_is_there("settings"));
    deploy(&["--from-kapp", "--prune=no"]).code(0);
    assert!(stage.config_map_is_there("shop.apps.k14s.io") && stage.config_map_is_there("hidden"));
}

#[test]
fn a_takeover_that_is_killed_at_any_write_is_finished_by_the_same_command() {
    // The record, three members, one deletion; three times the marks, the record of kapp with two changes, the record.
    let cuts: Vec<(&str, usize)> =
        (1..=8).map(|nth| ("PATCH", nth)).chain((1..=4).map(|nth| ("DELETE", nth))).collect();
    std::thread::scope(|scope| {
        for some in cuts.chunks(4) {
            scope.spawn(|| some.iter().for_each(|(method, nth)| killed_at(method, *nth)));
        }
    });
}

fn killed_at(method: &str, nth: usize) {
    let case = format!("killed at {method} {nth}");
    let stage = Stage::new();
    let objects = ["a", "b", "c"].map(|name| stage.config_map(name, "1"));
    stage.kapp_deploys(&objects);
    stage.kapp_deploys(&[stage.config_map("gone", "1")]);
    stage.kapp_records(&KINDS);
    stage.write(&objects);
    let proxy = Proxy::start(control_plane());
    let path = format!("/namespaces/{}/configmaps", stage.bed.names.namespace);
    let held = proxy.hold(When::new(method, &path).nth(nth));
    let flags = ["--from-kapp", "--prune=kapp"];
    let mut running = stage.bed.gantry(proxy.kubeconfig("admin"), &stage.arguments("deploy", &flags)).spawn();
    held.reached();
    running.kill();
    drop(running);
    proxy.refuse();
    for object in &objects {
        // Either kapp has it, or the app, or both.
        let labels = &stage.live(object)["metadata"]["labels"];
        let is_ours = labels["applyset.kubernetes.io/part-of"].is_string();
        assert!(is_ours || labels[APP] == stage.id(), "{case}: {labels}");
        assert!(labels[APP] != stage.id() || stage.config_map_is_there("shop.apps.k14s.io"), "{case}");
    }
    let output = stage.app("deploy", &flags);
    output.code(0);
    for name in ["gone", "shop.apps.k14s.io", "shop-change-x7s2k", "shop-change-old"] {
        assert!(!stage.config_map_is_there(name), "{case}: {name}: {output}");
    }
    let (_, parent) = control_plane().get(&stage.bed.config_map_path("shop.gantry"));
    let inventory = parent["data"]["inventory"].as_str().expect("an inventory");
    assert_eq!(inventory.lines().count(), 3, "{case}: {inventory}");
    for object in &objects {
        let metadata = &stage.live(object)["metadata"];
        assert!(inventory.contains(metadata["uid"].as_str().expect("a uid")), "{case}: {inventory}");
        assert!(metadata["labels"][APP].is_null() && metadata["annotations"].is_null(), "{case}: {metadata}");
    }
    stage.app("deploy", &[]).code(0).stdout_contains("Nothing to do");
}
