//! Deploys to a cluster with controllers: workloads, claims and namespaces change as on any cluster.

use std::sync::OnceLock;

use crate::support::{Bed, ControlPlane, CrdBuilder, Gantry, Output, any_fields, eventually};
use serde_json::{Value, json};

/// The control plane with controllers and a network that these tests share.
pub fn cluster() -> &'static ControlPlane {
    static CLUSTER: OnceLock<ControlPlane> = OnceLock::new();
    CLUSTER.get_or_init(ControlPlane::start_with_controllers_and_network)
}

struct Stage(Bed);

impl Stage {
    fn new() -> Self {
        Stage(Bed::on(cluster()))
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
        self.0.object(api_version, kind, name, json!({"spec": spec}))
    }

    /// A workload with two Pods, or one on each node.
    fn workload(&self, kind: &str, name: &str, image: &str) -> Value {
        let labels = json!({"run": name});
        let mut spec = json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod(image, "Always")}});
        if kind != "DaemonSet" {
            spec["replicas"] = 2.into();
        }
        if kind == "StatefulSet" {
            spec["serviceName"] = name.into();
        }
        self.object("apps/v1", kind, name, spec)
    }

    fn job(&self, name: &str, image: &str) -> Value {
        self.object("batch/v1", "Job", name, json!({"backoffLimit": 0, "template": {"spec": pod(image, "Never")}}))
    }

    fn config(&self, name: &str, annotations: Value) -> Value {
        self.0.object("v1", "ConfigMap", name, json!({"metadata": {"annotations": annotations}}))
    }

    fn gantry(&self, arguments: &[&str]) -> Gantry {
        let app = ["-a", "shop", "-n", &self.0.names.namespace];
        self.0.gantry(cluster().kubeconfig("admin"), &[&arguments[..1], &app, &arguments[1..]].concat())
    }

    fn deploy(&self, objects: &[&Value], flags: &[&str]) -> Output {
        self.0.write_objects(objects.iter().copied());
        self.gantry(&[&["deploy", "-f", "manifests.yaml"], flags].concat()).run()
    }

    /// For each member that is not ready: kind and name, and the reason.
    fn unready(&self) -> Vec<(String, String)> {
        let report: Value = serde_json::from_str(&self.gantry(&["inspect", "-o", "json"]).run().stdout).expect("JSON");
        let objects = report["objects"].as_array().expect("objects").clone();
        let entry = |found: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let name = format!("{} {}", text(&found["object"]["kind"]), text(&found["object"]["name"]));
            (name, text(&found["readiness"]["reason"]))
        };
        objects.iter().filter(|found| found["readiness"]["state"] != "ready").map(entry).collect()
    }

    /// Creates a quota, and waits until its controller has brought it into force.
    /// Limits the number of Pods in the namespace, when the API server and the controller manager know the limit.
    fn limit_pods(&self, number: &str) {
        let quota = |number: &str| self.object("v1", "ResourceQuota", "quota", json!({"hard": {"pods": number}}));
        let path = cluster().path_of(&quota(number));
        cluster().apply_yaml(&quota("0").to_string());
        // The API server admits Pods as long as it has not read a quota that exists.
        let pods = format!("/api/v1/namespaces/{}/pods", self.0.names.namespace);
        let probe = self.object("v1", "Pod", "probe", pod("web:1", "Always"));
        eventually("the API server to refuse Pods", || {
            let (_, answer) = cluster().post(&format!("{pods}?dryRun=All"), &probe);
            answer["message"].as_str().filter(|text| text.contains("exceeded quota")).map(drop)
        });
        cluster().apply_yaml(&quota(number).to_string());
        eventually("the quota to count", || {
            let status = &cluster().get(&path).1["status"];
            (status["hard"]["pods"] == number && status["used"].get("pods").is_some()).then_some(())
        });
    }

    fn exists(&self, object: &Value) -> bool {
        cluster().get(&cluster().path_of(object)).0 == 200
    }
}

fn pod(image: &str, restart: &str) -> Value {
    json!({"restartPolicy": restart, "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": image}]})
}

const WORKLOADS: [&str; 4] = ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"];

#[test]
fn workloads_are_awaited_updated_and_deleted_with_their_pods() {
    let stage = Stage::new();
    let objects = |image: &str| {
        let mut objects: Vec<Value> =
            WORKLOADS.iter().map(|kind| stage.workload(kind, &kind.to_lowercase(), image)).collect();
        let mut alone = stage.object("v1", "Pod", "alone", pod("web:1", "Always"));
        alone["metadata"]["labels"] = json!({"run": "alone"});
        let spec =
            json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": pod("web:1", "Never")}}}});
        objects.extend([alone, stage.job("once", "web:1"), stage.object("batch/v1", "CronJob", "yearly", spec)]);
        objects.push(stage.object(
            "policy/v1",
            "PodDisruptionBudget",
            "web",
            json!({"minAvailable": 1, "selector": {"matchLabels": {"run": "deployment"}}}),
        ));
        objects
    };
    let first = objects("web:1");
    stage.deploy(&first.iter().collect::<Vec<_>>(), &[]).code(0).stdout_contains("8 created");
    assert_eq!(stage.unready(), []);
    let second = objects("web:2");
    let output = stage.deploy(&second.iter().collect::<Vec<_>>(), &["-o", "json"]);
    let report = output.code(0).report();
    assert_eq!(report["summary"]["updated"], 4, "{report}");
    let waits = report["waits"].as_array().expect("waits").clone();
    assert!(waits.len() >= 4 && waits.iter().all(|wait| wait["state"] == "ready"), "{waits:?}");
    assert_eq!(stage.unready(), []);
    let images = || {
        let path = format!("/api/v1/namespaces/{}/pods?labelSelector=run=deployment", stage.0.names.namespace);
        let pods = cluster().get(&path).1["items"].as_array().cloned().unwrap_or_default();
        pods.iter().map(|pod| pod["spec"]["containers"][0]["image"].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(images(), ["web:2", "web:2"], "the old Pods are gone when the deploy ends");

    stage.gantry(&["delete", "--yes"]).run().code(0).stdout_contains("8 deleted");
    assert_eq!(images(), Vec::<Value>::new(), "workloads are gone when their Pods are");
    assert!(second.iter().all(|object| !stage.exists(object)));
}

#[test]
fn a_missing_image_is_named_and_the_same_command_waits_again() {
    let stage = Stage::new();
    let broken: Vec<Value> =
        WORKLOADS.iter().map(|kind| stage.workload(kind, &kind.to_lowercase(), "missing")).collect();
    let objects: Vec<&Value> = broken.iter().collect();
    // The first limit leaves the controllers time to create the Pods.
    for (limit, told) in [("15s", "of 4 objects, 4 applied."), ("1s", "Not ready. Nothing had to be written.")] {
        let output = stage.deploy(&objects, &["--wait-timeout", limit]);
        output
            .code(5)
            .stdout_contains("container main: ImagePullBackOff: there is no such image")
            .stdout_contains(&format!("is not ready after {limit}"))
            .stdout_contains(told);
        assert_eq!(output.stdout.matches("; pod/").count(), 4, "{told}: {output}");
    }
    assert_eq!(stage.unready().len(), 4);
    let corrected: Vec<Value> =
        WORKLOADS.iter().map(|kind| stage.workload(kind, &kind.to_lowercase(), "web:1")).collect();
    // A controller replaces no existing Pod of a ReplicaSet, nor the first Pod of a StatefulSet that never became
    // ready.
    let output = stage.deploy(&[&corrected[0], &corrected[2]], &["--prune=yes", "--prune-max=100%"]);
    output.code(0).stdout_contains("2 updated, 2 deleted");
    assert_eq!(stage.unready(), []);
}

#[test]
fn an_object_that_waits_for_a_failed_job_is_not_written() {
    let stage = Stage::new();
    let then = stage.config("then", json!({"gantry.dev/change-rule": "upsert after upserting example.com/job"}));
    let job = |image: &str| {
        let mut job = stage.job("migrate", image);
        job["metadata"]["annotations"] =
            json!({"gantry.dev/change-group": "example.com/job", "gantry.dev/update-strategy": "fallback-on-replace"});
        job
    };
    let output = stage.deploy(&[&then, &job("failing")], &[]);
    output.code(5).stdout_contains("job.batch/migrate").stdout_contains("has failed: ");
    output.stdout_contains("Not reached").stdout_contains("configmap/then");
    assert!(!stage.exists(&then));
    // The template of a Job is immutable: the Job is deleted and created again.
    let output = stage.deploy(&[&then, &job("web:1")], &[]);
    output.code(0).stdout_contains("1 created, 1 replaced");
    assert!(stage.exists(&then));
}

#[test]
fn a_renamed_workload_is_deleted_when_the_new_one_is_ready() {
    let stage = Stage::new();
    let (old, new) = (stage.workload("Deployment", "old", "web:1"), |image| stage.workload("Deployment", "new", image));
    stage.deploy(&[&old], &[]).code(0);
    stage.deploy(&[&new("starting")], &["--wait=false"]).code(0);
    eventually("the Pods of the new workload to run", || {
        let pods = cluster().get(&format!("/api/v1/namespaces/{}/pods", stage.0.names.namespace)).1;
        let is_running = |pod: &&Value| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default();
            name.starts_with("new-") && pod["status"]["phase"] == "Running"
        };
        (pods["items"].as_array()?.iter().filter(is_running).count() == 2).then_some(())
    });
    stage.deploy(&[&new("starting")], &["--prune=yes", "--wait-timeout=1s"]).code(5).stdout_contains("its probe fails");
    assert!(stage.exists(&old));
    stage.deploy(&[&new("web:1")], &["--prune=yes"]).code(0).stdout_contains("1 updated, 1 deleted");
    assert!(!stage.exists(&old));
}

#[test]
fn an_unbound_claim_and_a_pending_load_balancer_delay_nothing() {
    let stage = Stage::new();
    let name = stage.0.names.namespace.clone();
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"});
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "storageClassName": name, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/nowhere"}}});
    let claim = stage.object(
        "v1",
        "PersistentVolumeClaim",
        "data",
        json!({"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
    );
    let mut user = stage.workload("Deployment", "user", "web:1");
    user["spec"]["replicas"] = 1.into();
    user["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
    user["metadata"]["annotations"] = json!({"gantry.dev/change-rule": "upsert after upserting example.com/first"});
    let mut first = claim.clone();
    first["metadata"]["annotations"] = json!({"gantry.dev/change-group": "example.com/first"});
    stage.deploy(&[&class, &volume, &first, &user], &[]).code(0).stdout_contains("4 created");
    assert_eq!(stage.unready(), []);

    let balancer = stage.object("v1", "Service", "web", json!({"type": "LoadBalancer", "ports": [{"port": 80}]}));
    let output = stage.deploy(&[&class, &volume, &first, &user, &balancer], &["--wait-timeout=2s"]);
    output.code(5).stdout_contains("service/web").stdout_contains("load balancer");
    for path in [format!("/apis/storage.k8s.io/v1/storageclasses/{name}"), format!("/api/v1/persistentvolumes/{name}")]
    {
        cluster().delete(&path);
    }
}

#[test]
fn a_namespace_is_gone_when_the_deploy_that_deletes_it_ends() {
    let stage = Stage::new();
    let name = format!("{}-more", stage.0.names.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let mut inner = stage.config("inner", json!({}));
    inner["metadata"]["namespace"] = name.as_str().into();
    let stays = stage.config("stays", json!({}));
    stage.deploy(&[&namespace, &inner, &stays], &[]).code(0);
    // Objects that controllers create in each namespace do not count as a loss.
    eventually("the account of the namespace", || {
        (cluster().get(&format!("/api/v1/namespaces/{name}/serviceaccounts/default")).0 == 200).then_some(())
    });
    let output = stage.deploy(&[&stays], &["--prune=yes", "--prune-max=100%"]);
    output.code(0).stdout_contains("2 deleted");
    assert_eq!(cluster().get(&format!("/api/v1/namespaces/{name}")).0, 404);
}

#[test]
fn a_webhook_with_a_ca_bundle_is_written_after_its_workload() {
    let stage = Stage::new();
    let namespace = stage.0.names.namespace.clone();
    let ports = json!([{"port": 443}]);
    let service = stage.object("v1", "Service", "hook", json!({"selector": {"run": "hook"}, "ports": ports}));
    let hook = |bundle: Value| {
        let client = json!({"service": {"namespace": namespace, "name": "hook"}, "caBundle": bundle});
        let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}});
        let rules =
            json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]);
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace}, "webhooks": [{"name": "hook.example.com", "admissionReviewVersions": ["v1"],
            "sideEffects": "None", "clientConfig": client, "namespaceSelector": selector, "rules": rules}]})
    };
    let workload = |image: &str| stage.workload("Deployment", "hook", image);
    let known = hook(json!("aGVsbG8="));
    stage.deploy(&[&service, &workload("starting"), &known], &["--wait-timeout=1s"]).code(5);
    assert!(!stage.exists(&known));
    stage.deploy(&[&service, &workload("web:1"), &known], &[]).code(0).stdout_contains("1 created, 1 updated");
    stage.gantry(&["delete", "--yes"]).run().code(0);

    // The workload itself can wait for this configuration, in order to write its certificate there.
    let unknown = hook(Value::Null);
    stage.deploy(&[&service, &workload("starting"), &unknown], &["--wait-timeout=1s"]).code(5);
    assert!(stage.exists(&unknown));
    stage.gantry(&["delete", "--yes"]).run().code(0);
}

#[test]
fn a_workload_whose_pods_cannot_be_created_fails_and_keep_going_continues_with_others() {
    let stage = Stage::new();
    stage.limit_pods("0");
    let before = json!({"gantry.dev/change-group": "example.com/web"});
    let mut web = stage.workload("Deployment", "web", "web:1");
    web["metadata"]["annotations"] = before;
    let then = stage.config("then", json!({"gantry.dev/change-rule": "upsert after upserting example.com/web"}));
    let after = stage.config("after", json!({"gantry.dev/change-rule": "upsert after upserting example.com/other"}));
    let other = stage.config("other", json!({"gantry.dev/change-group": "example.com/other"}));
    let output = stage.deploy(&[&web, &then, &other, &after], &["--keep-going", "--wait-timeout=60s"]);
    output
        .code(5)
        .stdout_contains("deployment.apps/web")
        .stdout_contains("exceeded quota")
        .stdout_contains("(for 30s)");
    assert!(stage.exists(&other) && stage.exists(&after) && !stage.exists(&then), "{output}");
    assert_eq!(output.stdout.matches("has failed").count(), 1, "{output}");
}

#[test]
fn a_deployment_may_do_with_fewer_replicas() {
    let stage = Stage::new();
    stage.limit_pods("2");
    let mut web = stage.workload("Deployment", "web", "web:1");
    web["spec"]["replicas"] = 2.into();
    stage.deploy(&[&web], &["--wait-timeout=60s"]).code(0).stdout_contains("1 created");
    // While Pods are created, the quota may lag behind.
    let quota = cluster().path_of(&stage.object("v1", "ResourceQuota", "quota", json!({})));
    eventually("the quota to be used up", || (cluster().get(&quota).1["status"]["used"]["pods"] == "2").then_some(()));
    web["spec"]["replicas"] = 3.into();
    web["metadata"]["annotations"] = json!({"kapp.k14s.io/apps-v1-deployment-wait-minimum-replicas-available": "60%"});
    stage.deploy(&[&web], &["--wait-timeout=60s"]).code(0).stdout_contains("1 updated");
    // The third Pod is never created, and a share is rounded up.
    web["metadata"]["annotations"] = json!({"gantry.dev/wait-minimum-replicas-available": "67%"});
    let output = stage.deploy(&[&web], &["--wait-timeout=2s"]);
    output.code(5).stdout_contains("exceeded quota");
    // Pods of the old template do not count.
    web["metadata"]["annotations"] = json!({"gantry.dev/wait-minimum-replicas-available": "1"});
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2".into();
    stage.deploy(&[&web], &["--wait-timeout=2s"]).code(5);
}

/// The controller manager counts objects of a new kind only after it has read discovery again, every 30 seconds.
#[test]
fn an_object_is_tried_again_until_its_quota_counts_its_new_kind() {
    // It may do so at the very moment at which the kind comes.
    assert!((0..3).any(|_| has_tried_again()), "the quota counted each new kind at once");
}

/// `false` if the quota counted the kind at once.
fn has_tried_again() -> bool {
    let stage = Stage::new();
    let group = &stage.0.names.group;
    let crd = CrdBuilder::samples(group).version("v1", any_fields()).build();
    let counted = format!("count/samples.{group}");
    let quota = stage.object("v1", "ResourceQuota", "few", json!({"hard": {&counted: "1"}}));
    let [first, second] = ["one", "two"].map(|name| stage.object(&format!("{group}/v1"), "Sample", name, json!({})));
    let rule = "gantry.dev/change-rule";
    let later = stage.config("later", json!({rule: format!("upsert after upserting {group}")}));
    let path = cluster().path_of(&quota);
    stage.deploy(&[&quota], &[]).code(0);
    eventually("the quota's limit in its status", || cluster().get(&path).1["status"]["hard"].get(&counted).map(drop));
    let mut grouped = first.clone();
    grouped["metadata"]["annotations"] = json!({"gantry.dev/change-group": group});
    let output = stage.deploy(&[&quota, &crd, &grouped, &later], &["--apply-timeout=1s"]);
    if output.code == Some(0) {
        return false;
    }
    output
        .code(1)
        .stdout_contains(&format!("is forbidden: status unknown for quota: few, resources: {counted}; tried "));
    output.stdout_contains("status.used of the quota has what status.hard limits").stdout_contains("--apply-timeout");
    assert!(!stage.exists(&first) && !stage.exists(&later), "{output}");
    stage.deploy(&[&quota, &crd, &grouped, &later], &[]).code(0).stdout_contains("2 created");
    assert!(stage.exists(&first) && stage.exists(&later));
    // The quota's controller may not have seen the object yet, and then it counts none.
    eventually("the quota counts the object", || {
        (cluster().get(&path).1["status"]["used"][&counted] == "1").then_some(())
    });
    // An exceeded quota is not retried.
    let output = stage.deploy(&[&quota, &crd, &grouped, &later, &second], &[]);
    output.code(1).stdout_contains("exceeded quota: few").contains_nowhere("tried ");
    true
}

/// An object, and the state that its controller brings it to. There is no API service that is down: while there is one,
/// no namespace can be deleted, and other tests wait for that.
fn each_kind(stage: &Stage) -> Vec<(&'static str, Value)> {
    let own = &stage.0.names.namespace;
    let of_cluster = |api_version: &str, kind: &str, name: &str, spec: Value| {
        let mut object = stage.object(api_version, kind, &format!("{own}-{name}"), spec);
        object["metadata"].as_object_mut().expect("metadata").remove("namespace");
        object
    };
    let mut table = Vec::new();
    for (state, suffix, image) in [("ready", "up", "web:1"), ("inProgress", "starts", "starting")] {
        for kind in WORKLOADS {
            table.push((state, stage.workload(kind, &format!("{}-{suffix}", kind.to_lowercase()), image)));
        }
        let selector = json!({"run": format!("controller-{suffix}")});
        let template = json!({"metadata": {"labels": selector}, "spec": pod(image, "Always")});
        let controller = json!({"replicas": 1, "selector": selector, "template": template});
        table.push((state, stage.object("v1", "ReplicationController", &format!("controller-{suffix}"), controller)));
        // In the test bed, a Job's Pod ends as soon as it runs.
        let of_job = if state == "ready" { image } else { "missing" };
        table.push((state, stage.job(&format!("job-{suffix}"), of_job)));
        table.push((state, stage.object("v1", "Pod", &format!("pod-{suffix}"), pod(image, "Always"))));
    }
    let mut parallel = stage.workload("StatefulSet", "statefulset-parallel", "starting");
    parallel["spec"]["podManagementPolicy"] = "Parallel".into();
    table.push(("inProgress", parallel));
    // What starts no Pods, or does not replace them, is not waited for.
    for kind in ["StatefulSet", "DaemonSet"] {
        let mut by_hand = stage.workload(kind, &format!("{}-by-hand", kind.to_lowercase()), "starting");
        by_hand["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        table.push(("ready", by_hand));
    }
    let mut paused = stage.workload("Deployment", "deployment-paused", "starting");
    paused["spec"]["paused"] = true.into();
    table.push(("ready", paused));
    let mut suspended = stage.job("job-suspended", "missing");
    suspended["spec"]["suspend"] = true.into();
    table.push(("ready", suspended));
    let mut late = stage.workload("Deployment", "deployment-late", "starting");
    late["spec"]["progressDeadlineSeconds"] = 1.into();
    table.push(("failed", late));
    table.push(("failed", stage.job("job-fails", "failing")));
    table.push(("failed", stage.object("v1", "Pod", "pod-fails", pod("failing", "Never"))));

    let volume = |claim: &str| {
        let mut spec = json!({"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "storageClassName": "none",
            "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/tmp/none"}});
        spec["claimRef"] = json!({"namespace": own, "name": claim});
        spec
    };
    let claim = |name: &str, volume: &str| {
        let spec = json!({"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "volumeName": volume,
            "resources": {"requests": {"storage": "1Gi"}}});
        stage.object("v1", "PersistentVolumeClaim", name, spec)
    };
    table.push(("ready", of_cluster("v1", "PersistentVolume", "bound", volume("claim-bound"))));
    table.push(("ready", of_cluster("v1", "PersistentVolume", "available", volume("nobody"))));
    // Its claim is gone, and no controller can delete what is outside of /tmp.
    let mut left = volume("claim-gone");
    (left["claimRef"]["uid"], left["persistentVolumeReclaimPolicy"]) = ("gone".into(), "Delete".into());
    left["hostPath"]["path"] = "/none".into();
    table.push(("failed", of_cluster("v1", "PersistentVolume", "left", left)));
    table.push(("ready", claim("claim-bound", &format!("{own}-bound"))));
    table.push(("inProgress", claim("claim-waits", &format!("{own}-none"))));
    let mut lost = claim("claim-lost", &format!("{own}-gone"));
    lost["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    table.push(("failed", lost));

    let ports = json!([{"port": 80}]);
    table.push(("ready", stage.object("v1", "Service", "service", json!({"ports": ports}))));
    table.push(("ready", stage.object("v1", "Service", "headless", json!({"ports": ports, "clusterIP": "None"}))));
    let balanced = json!({"ports": ports, "type": "LoadBalancer"});
    table.push(("inProgress", stage.object("v1", "Service", "balanced", balanced)));
    let named = json!({"type": "ExternalName", "externalName": "web.example.com"});
    table.push(("ready", stage.object("v1", "Service", "named", named)));
    let budget = json!({"minAvailable": 1, "selector": {"matchLabels": {"run": "deployment-up"}}});
    table.push(("ready", stage.object("policy/v1", "PodDisruptionBudget", "budget", budget)));
    let scale = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "deployment-up"});
    let scaled = json!({"maxReplicas": 2, "minReplicas": 2, "scaleTargetRef": scale});
    table.push(("ready", stage.object("autoscaling/v2", "HorizontalPodAutoscaler", "scaled", scaled)));
    let rules = json!([{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "service", "port": {"number": 80}}}}]}}]);
    table.push(("ready", stage.object("networking.k8s.io/v1", "Ingress", "ingress", json!({"rules": rules}))));
    let times =
        json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": pod("web:1", "Never")}}}});
    table.push(("ready", stage.object("batch/v1", "CronJob", "yearly", times)));
    table.push(("ready", stage.config("config", json!({}))));
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": format!("{own}-space")}});
    table.push(("ready", space));
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let mut crd = of_cluster(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        json!({"scope": "Namespaced",
        "group": stage.0.names.group, "names": {"kind": "Thing", "plural": "things"}, "versions": [version]}),
    );
    crd["metadata"]["name"] = format!("things.{}", stage.0.names.group).into();
    table.push(("ready", crd));
    table.push(("ready", stage.object(&format!("{}/v1", stage.0.names.group), "Thing", "thing", json!({}))));
    let policy = json!({"validations": [{"expression": "true"}], "matchConstraints": {"resourceRules": [
        {"apiGroups": [stage.0.names.group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}]}});
    let policy = of_cluster("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "policy", policy);
    table.push(("ready", policy));
    table
}

#[test]
fn each_kind_is_ready_in_progress_or_failed_as_its_controller_makes_it() {
    let stage = Stage::new();
    let table = each_kind(&stage);
    let objects: Vec<&Value> = table.iter().map(|(_, object)| object).collect();
    stage.deploy(&objects, &["--wait=false"]).code(0);
    let expected: Vec<(String, String)> = {
        let name = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "");
        let mut expected: Vec<_> = table.iter().map(|(state, object)| (name(object), (*state).to_owned())).collect();
        expected.sort();
        expected
    };
    let states = || {
        let report: Value = serde_json::from_str(&stage.gantry(&["inspect", "-o", "json"]).run().stdout).expect("JSON");
        let state = |one: &Value| {
            let name = format!("{} {}", one["object"]["kind"], one["object"]["name"]).replace('"', "");
            (name, one["readiness"]["state"].as_str().unwrap_or_default().to_owned())
        };
        let mut states: Vec<(String, String)> =
            report["objects"].as_array().expect("objects").iter().map(state).collect();
        states.sort();
        states
    };
    let differing = || -> Vec<(String, String)> {
        let now = states();
        assert_eq!(now.len(), expected.len(), "{now:?}");
        now.into_iter().zip(&expected).filter(|(now, expected)| now != *expected).map(|(now, _)| now).collect()
    };
    let last = std::cell::RefCell::new(Vec::new());
    eventually("each object to be as its controller makes it", || {
        let left = differing();
        if last.replace(left.clone()) != left {
            println!("not yet: {left:?}");
        }
        left.is_empty().then_some(())
    });
}
