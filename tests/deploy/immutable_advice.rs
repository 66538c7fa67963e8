//! The commands that gantry prints for an immutable field, and to keep a volume, run with kubectl on a cluster with controllers: what they keep.

use std::collections::BTreeSet;

use crate::controllers::cluster;
use crate::support::{Bed, Output, eventually, printed_command, run_printed};
use serde_json::{Value, json};

struct Stage(Bed);

impl Stage {
    fn new() -> Self {
        Stage(Bed::on(cluster()))
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
        self.0.object(api_version, kind, name, json!({"spec": spec}))
    }

    fn deploy(&self, object: &Value) -> Output {
        // The claim of the StatefulSet is never bound.
        let wait = if object["kind"] == "StatefulSet" { "--wait=false" } else { "--wait" };
        self.0.write("manifests.yaml", &object.to_string());
        self.0.deploy(cluster().kubeconfig("admin"), &["--force-conflicts", wait, "-q"]).run()
    }

    /// Deploys a change that the server refuses, and runs the command that gantry prints, which is to be this one.
    fn follow_advice(&self, change: &Value, command: &str) {
        let said = self.deploy(change);
        said.code(3);
        let printed =
            printed_command(&said, "kubectl ", if change["kind"] == "Job" { " when " } else { " and deploy" });
        assert_eq!(printed, command);
        self.run(&printed);
    }

    fn run(&self, command: &str) {
        run_printed(command, &cluster().kubeconfig("admin"), self.0.folder.path());
    }

    fn uids(&self, kind: &str) -> BTreeSet<String> {
        let list = cluster().get(&format!("/api/v1/namespaces/{}/{kind}", self.0.names.namespace)).1;
        let items = list["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["metadata"]["uid"].to_string()).collect()
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

/// A workload with one Pod, which is selected by this label.
fn workload(stage: &Stage, kind: &str, run: &str) -> Value {
    let mut spec = json!({"selector": {"matchLabels": {"run": run}}, "template": template(run)});
    if kind != "DaemonSet" {
        spec["replicas"] = 1.into();
    }
    stage.object("apps/v1", kind, "web", spec)
}

#[test]
fn the_old_pods_of_recreated_sets_run_until_they_are_deleted() {
    for kind in ["DaemonSet", "ReplicaSet"] {
        let stage = Stage::new();
        stage.deploy(&workload(&stage, kind, "one")).code(0);
        let before = stage.uids("pods");
        let namespace = &stage.0.names.namespace;
        let command = format!("kubectl delete {}.apps/web -n {namespace} --cascade=orphan", kind.to_lowercase());
        stage.follow_advice(&workload(&stage, kind, "two"), &command);
        stage.deploy(&workload(&stage, kind, "two")).code(0);
        let after = stage.uids("pods");
        assert!(after.len() == 2 * before.len() && after.is_superset(&before), "{kind}: {before:?} {after:?}");

        // Nothing creates the old ones again.
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector=run%3Done");
        assert_eq!(cluster().delete(&path).0, 200);
        let new: BTreeSet<String> = after.difference(&before).cloned().collect();
        eventually("only the new Pods are left", || (stage.uids("pods") == new).then_some(()));
        stage.deploy(&workload(&stage, kind, "two")).code(0);
        assert_eq!(stage.uids("pods"), new, "{kind}");
    }
}

#[test]
fn the_pods_of_a_finished_job_go_with_it_when_it_is_recreated() {
    let stage = Stage::new();
    let job = |image: &str| {
        let container = json!({"name": "main", "image": image});
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [container]}});
        stage.object("batch/v1", "Job", "once", json!({"backoffLimit": 0, "template": template}))
    };
    stage.deploy(&job("job:1")).code(0);
    let before = stage.uids("pods");
    assert_eq!(before.len(), 1);
    let namespace = &stage.0.names.namespace;
    stage.follow_advice(&job("job:2"), &format!("kubectl delete job.batch/once -n {namespace}"));
    stage.deploy(&job("job:2")).code(0);
    eventually("only the new Pod is left", || {
        let pods = stage.uids("pods");
        (pods.len() == 1 && pods.is_disjoint(&before)).then_some(())
    });
}

#[test]
fn the_old_pods_of_a_recreated_deployment_run_on() {
    let stage = Stage::new();
    stage.deploy(&workload(&stage, "Deployment", "one")).code(0);
    let before = stage.uids("pods");
    let namespace = &stage.0.names.namespace;
    let changed = workload(&stage, "Deployment", "two");
    stage.follow_advice(&changed, &format!("kubectl delete deployment.apps/web -n {namespace} --cascade=orphan"));
    stage.deploy(&changed).code(0);
    let after = stage.uids("pods");
    assert!(after.len() == 2 && after.is_superset(&before), "{before:?} {after:?}");

    // The Pods alone would be created again.
    let sets = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
    assert_eq!(cluster().delete(&format!("{sets}?labelSelector=run%3Done")).0, 200);
    let new: BTreeSet<String> = after.difference(&before).cloned().collect();
    eventually("only the new Pods are left", || (stage.uids("pods") == new).then_some(()));
    stage.deploy(&changed).code(0);
    assert_eq!(stage.uids("pods"), new);
}

#[test]
fn objects_that_refer_to_a_recreated_class_stay() {
    let stage = Stage::new();
    let name = stage.0.names.namespace.clone();
    let pod = |key: &str| {
        let mut pod = stage.object("v1", "Pod", &key.to_lowercase(), template("x")["spec"].clone());
        pod["spec"][key] = name.as_str().into();
        pod
    };
    let class = |group: &str, kind: &str| json!({"apiVersion": format!("{group}.k8s.io/v1"), "kind": kind, "metadata": {"name": name}});
    let ingress =
        json!({"ingressClassName": name, "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}});
    let ingress = stage.object("networking.k8s.io/v1", "Ingress", "web", ingress);
    for (group, kind, key, values, user) in [
        ("networking", "IngressClass", "controller", ["example.com/a", "example.com/b"].map(Value::from), ingress),
        ("node", "RuntimeClass", "handler", ["a", "b"].map(Value::from), pod("runtimeClassName")),
        ("scheduling", "PriorityClass", "value", [1, 2].map(Value::from), pod("priorityClassName")),
    ] {
        let with = |value: &Value| {
            let mut class = class(group, kind);
            let of = if kind == "IngressClass" { &mut class["spec"] } else { &mut class };
            of[key] = value.clone();
            class
        };
        stage.deploy(&with(&values[0])).code(0);
        cluster().apply_yaml(&user.to_string());
        let uid = || cluster().get(&cluster().path_of(&user)).1["metadata"]["uid"].clone();
        let before = uid();
        let command = format!("kubectl delete {}.{group}.k8s.io/{name}", kind.to_lowercase());
        stage.follow_advice(&with(&values[1]), &command);
        stage.deploy(&with(&values[1])).code(0);
        let path = cluster().path_of(&class(group, kind));
        let live = cluster().get(&path).1;
        assert_eq!(if kind == "IngressClass" { &live["spec"][key] } else { &live[key] }, &values[1]);
        assert_eq!(uid(), before, "{kind}");
        assert!(before.is_string());
        cluster().delete(&path);
    }
}

/// A volume whose data goes with the claim that is bound to it, such a claim, and the path of the volume.
fn volume_and_claim(stage: &Stage) -> (Value, Value, String) {
    let name = format!("v-{}", stage.0.names.namespace);
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
        "persistentVolumeReclaimPolicy": "Delete", "hostPath": {"path": format!("/tmp/gantry-{name}")}}});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "manual", "volumeName": name,
        "resources": {"requests": {"storage": "1Gi"}}});
    let path = format!("/api/v1/persistentvolumes/{name}");
    (volume, stage.object("v1", "PersistentVolumeClaim", "data", claim), path)
}

fn is_released_and_retained(path: &str) {
    eventually("the volume is released", || (cluster().get(path).1["status"]["phase"] == "Released").then_some(()));
    assert_eq!(cluster().get(path).1["spec"]["persistentVolumeReclaimPolicy"], "Retain");
    cluster().delete(path);
}

#[test]
fn the_volume_of_a_claim_is_kept_where_its_data_would_go() {
    let stage = Stage::new();
    let (volume, claim, path) = volume_and_claim(&stage);
    let changed = {
        let mut changed = claim.clone();
        changed["spec"]["storageClassName"] = "other".into();
        changed
    };
    cluster().apply_yaml(&volume.to_string());
    stage.deploy(&claim).code(0);
    eventually("the claim is bound", || (cluster().get(&path).1["status"]["phase"] == "Bound").then_some(()));
    let said = stage.deploy(&changed);
    said.code(3).contains_nowhere("kubectl delete");
    says(&said, "deleting the claim deletes its data");
    stage.run(&printed_command(&said, "kubectl patch persistentvolume/", "'"));
    assert_eq!(cluster().delete(&cluster().path_of(&claim)).0, 200);
    is_released_and_retained(&path);
}

#[test]
fn a_volume_stays_whose_claim_is_pruned_after_the_printed_patch() {
    let stage = Stage::new();
    let (volume, claim, path) = volume_and_claim(&stage);
    cluster().apply_yaml(&volume.to_string());
    let stays = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "stays", "namespace": stage.0.names.namespace}});
    let deploy = |objects: &[&Value]| {
        let objects: Vec<String> = objects.iter().map(ToString::to_string).collect();
        stage.0.write("manifests.yaml", &objects.join("\n---\n"));
        let app = ["-a", "shop", "-n", &stage.0.names.namespace, "--prune=yes"];
        stage.0.deploy(cluster().kubeconfig("admin"), &app).run()
    };
    deploy(&[&stays, &claim]).code(0);
    eventually("the claim is bound", || (cluster().get(&path).1["status"]["phase"] == "Bound").then_some(()));
    let said = deploy(&[&stays]);
    said.code(3).stdout_contains("its data is deleted, too");
    stage.run(&printed_command(&said, "kubectl patch pv ", "'"));
    deploy(&[&stays]).code(0).stdout_contains("1 deleted");
    assert_eq!(cluster().get(&cluster().path_of(&claim)).0, 404);
    is_released_and_retained(&path);
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
