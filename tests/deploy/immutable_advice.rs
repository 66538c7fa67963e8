//! The commands that gantry prints for an immutable field, run with kubectl on a cluster with controllers: what they keep.

use std::process::Command;

use crate::controllers::cluster;
use crate::support::{Bed, Output, eventually};
use serde_json::{Value, json};

struct Stage(Bed);

impl Stage {
    fn new() -> Self {
        let bed = Bed::new();
        cluster().apply_yaml(&bed.namespace());
        Stage(bed)
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
        let metadata = json!({"name": name, "namespace": self.0.names.namespace});
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    }

    fn deploy(&self, object: &Value) -> Output {
        self.0.write("manifests.yaml", &object.to_string());
        self.0.deploy(cluster().kubeconfig("admin"), &["--force-conflicts", "-q"]).run()
    }

    /// Deploys a change that the server refuses, and runs the command that gantry prints.
    fn follow_advice(&self, change: &Value, command: &str) {
        let said = self.deploy(change);
        said.code(3);
        says(&said, command);
        self.kubectl(command);
    }

    fn kubectl(&self, command: &str) {
        let output = Command::new("sh")
            .args(["-c", &command.replacen("kubectl", "\"$KUBECTL\"", 1)])
            .env("KUBECTL", gantry_testbed::kubectl())
            .env("HOME", self.0.folder.path())
            .env("KUBECONFIG", cluster().kubeconfig("admin"))
            .output()
            .expect("kubectl runs");
        assert!(output.status.success(), "{command}: {output:?}");
    }

    fn uids(&self, kind: &str) -> Vec<String> {
        let list = cluster().get(&format!("/api/v1/namespaces/{}/{kind}", self.0.names.namespace)).1;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let mut uids: Vec<String> = items.iter().map(|item| item["metadata"]["uid"].to_string()).collect();
        uids.sort();
        uids
    }
}

/// Whether the words are on one of the streams, however the lines are wrapped.
fn says(output: &Output, words: &str) {
    let said: Vec<&str> = output.stdout.split_whitespace().chain(output.stderr.split_whitespace()).collect();
    assert!(said.join(" ").contains(words), "expected: {words}\n{output}");
}

fn template(name: &str) -> Value {
    json!({"metadata": {"labels": {"run": name}}, "spec": {"terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "web:1"}]}})
}

#[test]
fn a_recreated_stateful_set_keeps_its_pods_and_claims() {
    let stage = Stage::new();
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
        "resources": {"requests": {"storage": "1Gi"}}}});
    let set = |service: &str| {
        stage.object(
            "apps/v1",
            "StatefulSet",
            "web",
            json!({"replicas": 1, "serviceName": service, "selector": {"matchLabels": {"run": "web"}},
                "template": template("web"), "volumeClaimTemplates": [claim]}),
        )
    };
    cluster().apply_yaml(&set("one").to_string());
    eventually("the claim and the Pod", || (stage.uids("pods").len() == 1).then_some(()));
    let before = (stage.uids("pods"), stage.uids("persistentvolumeclaims"));
    let namespace = &stage.0.names.namespace;
    stage.follow_advice(&set("two"), &format!("kubectl delete statefulset.apps/web -n {namespace} --cascade=orphan"));
    stage.deploy(&set("two")).code(0);
    assert_eq!((stage.uids("pods"), stage.uids("persistentvolumeclaims")), before);
    assert_eq!(cluster().get(&cluster().path_of(&set("two"))).1["spec"]["serviceName"], "two");
}

#[test]
fn the_old_pods_of_a_recreated_deployment_run_on() {
    let stage = Stage::new();
    let deployment = |run: &str| {
        let spec = json!({"replicas": 1, "selector": {"matchLabels": {"run": run}}, "template": template(run)});
        stage.object("apps/v1", "Deployment", "web", spec)
    };
    stage.deploy(&deployment("one")).code(0);
    let before = stage.uids("pods");
    let namespace = &stage.0.names.namespace;
    stage.follow_advice(
        &deployment("two"),
        &format!("kubectl delete deployment.apps/web -n {namespace} --cascade=orphan"),
    );
    stage.deploy(&deployment("two")).code(0);
    let after = stage.uids("pods");
    assert!(after.len() == 2 && before.iter().all(|uid| after.contains(uid)), "{before:?} {after:?}");
}

#[test]
fn the_volume_of_a_claim_is_kept_where_its_data_would_go() {
    let stage = Stage::new();
    let name = format!("v-{}", stage.0.names.namespace);
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
        "persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": format!("/tmp/gantry-{name}")}}});
    let claim = |class: &str| {
        stage.object(
            "v1",
            "PersistentVolumeClaim",
            "data",
            json!({"accessModes": ["ReadWriteOnce"], "storageClassName": class, "volumeName": name,
                "resources": {"requests": {"storage": "1Gi"}}}),
        )
    };
    cluster().apply_yaml(&volume.to_string());
    stage.deploy(&claim("manual")).code(0);
    let path = format!("/api/v1/persistentvolumes/{name}");
    eventually("the claim is bound", || (cluster().get(&path).1["status"]["phase"] == "Bound").then_some(()));
    let command = format!(
        "kubectl patch persistentvolume/{name} -p '{{\"spec\":{{\"persistentVolumeReclaimPolicy\":\"Retain\"}}}}'"
    );
    let said = stage.deploy(&claim("other"));
    said.code(3).contains_nowhere("kubectl delete");
    says(&said, "deleting the claim deletes its data");
    says(&said, &command);
    stage.kubectl(&command);
    assert_eq!(cluster().delete(&cluster().path_of(&claim("manual"))).0, 200);
    eventually("the volume is released", || (cluster().get(&path).1["status"]["phase"] == "Released").then_some(()));
    cluster().delete(&path);
}

#[test]
fn a_recreated_storage_class_keeps_its_volumes_and_claims() {
    let stage = Stage::new();
    let name = stage.0.names.namespace.clone();
    let class = |kind: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": "example.com/none", "parameters": {"kind": kind}})
    };
    stage.deploy(&class("one")).code(0);
    let claim = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": name,
        "resources": {"requests": {"storage": "1Gi"}}});
    cluster().apply_yaml(&stage.object("v1", "PersistentVolumeClaim", "data", claim).to_string());
    let before = stage.uids("persistentvolumeclaims");
    stage.follow_advice(&class("two"), &format!("kubectl delete storageclass.storage.k8s.io/{name}"));
    stage.deploy(&class("two")).code(0);
    assert_eq!(stage.uids("persistentvolumeclaims"), before);
    cluster().delete(&format!("/apis/storage.k8s.io/v1/storageclasses/{name}"));
}
