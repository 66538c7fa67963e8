//! Causes that are named: an API that the server no longer serves, a StorageClass that does not exist, a suspended
//! object of Flux, an autoscaler.

use crate::support::{Bed, Output, control_plane, create_as};
use serde_json::{Value, json};

struct Stage(Bed);

impl Stage {
    fn new() -> Self {
        Stage(Bed::with_namespace())
    }

    fn object(&self, api_version: &str, kind: &str, rest: Value) -> Value {
        self.0.object(api_version, kind, "web", rest)
    }

    fn run(&self, command: &str, objects: &[&Value], more: &[&str]) -> Output {
        self.0.write_objects(objects.iter().copied());
        let arguments = [&[command, "-f", "manifests.yaml"], more].concat();
        self.0.gantry(control_plane().kubeconfig("admin"), &arguments).run()
    }

    fn deployment(&self, replicas: u32) -> Value {
        let labels = json!({"run": "web"});
        let pod = json!({"containers": [{"name": "main", "image": "web:1"}]});
        self.object(
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod}}}),
        )
    }

    fn autoscaler(&self) -> Value {
        self.object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {"maxReplicas": 9,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
        )
    }

    fn create(&self, object: &Value) {
        create_as(control_plane(), "tool", object);
    }
}

/// What is on both streams, however the lines are wrapped.
fn said(output: &Output) -> String {
    let words: Vec<&str> = output.stdout.split_whitespace().chain(output.stderr.split_whitespace()).collect();
    words.join(" ")
}

fn says(output: &Output, words: &str) {
    assert!(said(output).contains(words), "expected: {words}\n{output}");
}

#[test]
fn a_removed_api_is_reported_with_the_versions_that_are_served() {
    let stage = Stage::new();
    let budget = |version: &str| {
        let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"run": "web"}}});
        stage.object(version, "PodDisruptionBudget", json!({"spec": spec}))
    };
    for command in ["check", "deploy"] {
        let output = stage.run(command, &[&budget("policy/v1beta1")], &[]);
        output.code(3);
        says(&output, "the target serves PodDisruptionBudget at policy/v1: change apiVersion");
    }
    // Kinds that moved to another group.
    let ingress = stage.object("extensions/v1beta1", "Ingress", json!({"spec": {}}));
    let output = stage.run("deploy", &[&ingress], &[]);
    output.code(3);
    says(&output, "the target serves Ingress at networking.k8s.io/v1: change apiVersion");
    // A kind of that name in a group of somebody else is another kind.
    let other = stage.object("unknown.example.com/v1", "Ingress", json!({"spec": {}}));
    let output = stage.run("deploy", &[&other], &[]);
    output.code(3);
    assert!(!said(&output).contains("the target serves"), "{output}");
    stage.run("deploy", &[&budget("policy/v1")], &["--wait=false"]).code(0);
}

#[test]
fn a_storage_class_that_does_not_exist_is_named() {
    let stage = Stage::new();
    let class = format!("fast-{}", stage.0.names.namespace);
    let claim = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "1Gi"}}});
    let of_claim = stage.object("v1", "PersistentVolumeClaim", json!({"spec": claim}));
    let mut of_set = stage.deployment(1);
    of_set["kind"] = json!("StatefulSet");
    of_set["spec"]["serviceName"] = json!("web");
    of_set["spec"]["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": claim}]);
    let missing = format!("there is no StorageClass \"{class}\"");
    for manifest in [&of_claim, &of_set] {
        let output = stage.run("check", &[manifest], &[]);
        output.code(0);
        says(&output, &missing);
    }
    let output = stage.run("deploy", &[&of_claim], &["--wait", "--wait-timeout=2s"]);
    output.code(5);
    says(&output, &format!("bound when a Pod uses it; {missing}"));

    // With the class, or a volume of it, nothing is missing.
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": class},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "hostPath": {"path": "/data"}}});
    let of_plan = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class},
        "provisioner": "example.com/none"});
    for with in [&volume, &of_plan] {
        let output = stage.run("check", &[with, &of_set], &[]);
        output.code(0);
        assert!(!said(&output).contains("there is no StorageClass"), "{output}");
    }
    control_plane().apply_yaml(&of_plan.to_string());
    let output = stage.run("check", &[&of_set], &[]);
    output.code(0);
    assert!(!said(&output).contains("there is no StorageClass"), "{output}");
    assert_eq!(control_plane().delete(&control_plane().path_of(&of_plan)).0, 200);
}

#[test]
fn a_suspended_object_of_flux_is_awaited_with_the_reason() {
    let stage = Stage::new();
    let group = format!("{}.toolkit.fluxcd.io", stage.0.names.namespace);
    let crd = stage.0.crd(
        "spec: {type: object, x-kubernetes-preserve-unknown-fields: true}, status: {type: object, \
                           x-kubernetes-preserve-unknown-fields: true}",
    );
    let crd = crd
        .replace(&stage.0.names.group, &group)
        .replace("    storage: true\n", "    storage: true\n    subresources: {status: {}}\n");
    let first = crd.clone();
    control_plane().apply_yaml(&first);
    let release = |spec: Value| stage.object(&format!("{group}/v1"), "Sample", json!({"spec": spec}));
    let deploy =
        |spec: Value, seconds: &str| stage.run("deploy", &[&release(spec)], &["--wait", "--wait-timeout", seconds]);
    deploy(json!({"chart": "1"}), "20s").code(0);
    let path = control_plane().path_of(&release(json!({})));
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let observed = |generation: u64| {
        let status = json!({"status": {"observedGeneration": generation, "conditions": ready}});
        assert_eq!(control_plane().patch(&format!("{path}/status"), &status).0, 200);
    };
    observed(1);
    // As `flux suspend` does.
    let suspended = json!({"spec": {"suspend": true}});
    assert_eq!(control_plane().patch(&format!("{path}?fieldManager=flux"), &suspended).0, 200);
    let output = deploy(json!({"chart": "2"}), "2s");
    output.code(5);
    says(&output, "suspended: Flux does not reconcile it while spec.suspend is true");
    // What Flux had reconciled before it was suspended is ready.
    let generation = control_plane().get(&path).1["metadata"]["generation"].as_u64().expect("a generation");
    observed(generation);
    deploy(json!({"chart": "2"}), "20s").code(0);
}

#[test]
fn an_autoscaler_of_an_object_whose_manifest_sets_the_replicas_is_named() {
    let stage = Stage::new();
    let named = format!("horizontalpodautoscaler.autoscaling/web -n {} scales it", stage.0.names.namespace);
    let output = stage.run("deploy", &[&stage.deployment(2), &stage.autoscaler()], &["--wait=false"]);
    output.code(0);
    says(&output, &named);
    says(&output, "remove spec.replicas from the manifest");
    // Following it leaves the number to the autoscaler.
    let scale = format!("{}/scale", control_plane().path_of(&stage.deployment(0)));
    let five = json!({"spec": {"replicas": 5}});
    let (status, answer) = control_plane().patch(&format!("{scale}?fieldManager=kube-controller-manager"), &five);
    assert_eq!(status, 200, "{answer:#}");
    let mut without = stage.deployment(0);
    without["spec"].as_object_mut().expect("a spec").remove("replicas");
    let output = stage.run("deploy", &[&without, &stage.autoscaler()], &["--wait=false"]);
    output.code(0);
    assert!(!said(&output).contains("scales it"), "{output}");
    assert_eq!(control_plane().get(&control_plane().path_of(&without)).1["spec"]["replicas"], 5);
}

#[test]
fn a_live_autoscaler_that_has_set_the_replicas_is_named_at_the_first_deploy() {
    let stage = Stage::new();
    stage.create(&stage.deployment(2));
    stage.create(&stage.autoscaler());
    let scale = format!("{}/scale", control_plane().path_of(&stage.deployment(0)));
    let five = json!({"spec": {"replicas": 5}});
    let (status, answer) = control_plane().patch(&format!("{scale}?fieldManager=kube-controller-manager"), &five);
    assert_eq!(status, 200, "{answer:#}");
    let output = stage.run("deploy", &[&stage.deployment(2)], &["--wait=false"]);
    output.code(3);
    says(&output, "field manager \"kube-controller-manager\" owns");
    says(&output, &format!("horizontalpodautoscaler.autoscaling/web -n {} scales it", stage.0.names.namespace));
}
