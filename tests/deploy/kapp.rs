//! Objects that kapp deployed, of the shape in which kapp 0.60 leaves them, with its default configuration.

use std::collections::BTreeMap;

use crate::support::{Bed, Output, control_plane};
use serde_json::{Value, json};

/// The label of the app, as kapp makes it up.
const ID: &str = "1700000000123456789";
const APP: &str = "kapp.k14s.io/app";

/// A namespace in which kapp has deployed.
struct Stage {
    bed: Bed,
}

fn child<'v>(value: &'v mut Value, path: &[&str]) -> &'v mut Value {
    path.iter().fold(value, |value, key| &mut value[*key])
}

/// The object with what kapp adds to it.
fn as_kapp(object: &Value) -> Value {
    let mut object = object.clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let (namespace, name) = (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let identity = format!("v1;{namespace}/{group}/{kind}/{name};{api_version}");
    let association = format!("v1.{:032x}", identity.len());
    let mut label = |path: &[&str]| {
        let labels = child(&mut object, path);
        labels[APP] = ID.into();
        labels["kapp.k14s.io/association"] = association.clone().into();
    };
    label(&["metadata", "labels"]);
    if matches!(kind.as_str(), "Deployment" | "StatefulSet" | "Job") {
        label(&["spec", "template", "metadata", "labels"]);
    }
    for claim in object["spec"]["volumeClaimTemplates"].as_array_mut().into_iter().flatten() {
        claim["metadata"]["labels"] = json!({APP: ID, "kapp.k14s.io/association": association});
    }
    match kind.as_str() {
        "Deployment" | "StatefulSet" => object["spec"]["selector"]["matchLabels"][APP] = ID.into(),
        "Service" => object["spec"]["selector"][APP] = ID.into(),
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
            let (code, answer) = control_plane().post(&format!("{collection}?fieldManager=kapp"), &as_kapp(object));
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
    assert!(before.values().all(|inside| inside.to_string().contains(ID)), "{before:#?}");
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
