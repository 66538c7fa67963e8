//! Objects that do not exist yet, that are not written, or that others created do not prevent a deploy.

use crate::support::{Bed, CrdBuilder, Output, Webhook, control_plane, string_fields};
use serde_json::{Value, json};

/// A bed with a namespace, and an operator with a conversion webhook for its kind.
pub struct Operator(pub Bed);

impl Operator {
    fn new() -> Self {
        let bed = Bed::new();
        control_plane().apply_yaml(&bed.namespace());
        Operator(bed)
    }

    /// A CRD that is stored at v1 and also served at v2, converted by the Service `webhook`.
    pub fn crd(&self, ca_bundle: Option<&str>) -> Value {
        let mut client =
            json!({"service": {"namespace": self.0.names.namespace, "name": "webhook", "path": "/convert"}});
        if let Some(bundle) = ca_bundle {
            client["caBundle"] = bundle.into();
        }
        let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": client});
        CrdBuilder::samples(&self.0.names.group)
            .version_of_spec("v1", string_fields(&["size"]))
            .version_of_spec("v2", string_fields(&["size"]))
            .conversion(&json!({"strategy": "Webhook", "webhook": webhook}))
            .build()
    }

    pub fn service(&self, port: u16) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "webhook", "namespace": self.0.names.namespace},
            "spec": {"selector": {"app": "webhook"}, "ports": [{"name": "https", "port": port}]}})
    }

    pub fn deployment(&self, image: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "webhook", "namespace": self.0.names.namespace},
            "spec": {"selector": {"matchLabels": {"app": "webhook"}}, "template": {
                "metadata": {"labels": {"app": "webhook"}}, "spec": {"containers": [{"name": "webhook", "image": image}]}}}})
    }

    pub fn custom(&self, version: &str) -> Value {
        json!({"apiVersion": format!("{}/{version}", self.0.names.group), "kind": "Sample",
            "metadata": {"name": "one", "namespace": self.0.names.namespace}, "spec": {"size": "large"}})
    }

    fn run(&self, command: &str, manifests: &[Value], more: &[&str]) -> Output {
        let manifests: Vec<String> = manifests.iter().map(Value::to_string).collect();
        self.0.write("manifests.yaml", &manifests.join("\n---\n"));
        let arguments = [command, "-f", "manifests.yaml", "--preflight", "CRDUpgradeSafety,ConversionWebhook"];
        self.0.gantry(control_plane().kubeconfig("admin"), &arguments).args(more).run()
    }
}

/// Severity and rule of each finding.
fn found(run: &Output) -> Vec<String> {
    let report = run.report();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let checks = report["checks"].as_array().expect("checks").iter();
    let findings = checks.flat_map(|check| check["findings"].as_array().expect("findings"));
    findings.map(|finding| format!("{} {}", text(&finding["severity"]), text(&finding["rule"]))).collect()
}

#[test]
fn an_operator_that_writes_its_own_ca_bundle_is_installed_and_upgraded() {
    let operator = Operator::new();
    let release = |image: &str| [operator.crd(None), operator.service(443), operator.deployment(image)];
    let first = operator.run("deploy", &release("webhook:1"), &[]);
    first
        .code(0)
        .stdout_contains("warning[ConversionCABundleInvalid]: there is no CA bundle")
        .stdout_contains("until that changes, the server can neither read nor write");
    assert_eq!(control_plane().get(&operator.0.crd_path()).0, 200);
    // No operator runs in this test that could have written the bundle since.
    let again = operator.run("deploy", &release("webhook:1"), &["-o", "json"]);
    assert_eq!(again.code(0).report()["outcome"], "unchanged");
    assert!(found(&again).contains(&"warning ConversionCABundleInvalid".to_owned()), "{again}");
    operator.run("deploy", &release("webhook:2"), &[]).code(0);
    // Its own manifests again, with a changed CRD and the same workload.
    let mut crd = operator.crd(None);
    crd["metadata"]["labels"] = json!({"release": "3"});
    let upgrade =
        operator.run("check", &[crd.clone(), operator.service(443), operator.deployment("webhook:2")], &["-o", "json"]);
    assert!(found(&upgrade).contains(&"warning ConversionCABundleInvalid".to_owned()), "{upgrade}");
    // On its own, the live CRD needs a bundle: nothing in this deploy can write one.
    let alone = operator.run("check", &[crd], &["-o", "json"]);
    assert!(found(alone.code(3)).contains(&"error ConversionCABundleInvalid".to_owned()), "{alone}");
}

/// An invalid bundle is not a placeholder: the server stores the CRD, and never serves it.
#[test]
fn a_bundle_that_cannot_be_read_blocks_a_first_install_too() {
    let operator = Operator::new();
    let crd = operator.crd(Some("Cg=="));
    let release = [crd.clone(), operator.service(443), operator.deployment("webhook:1")];
    operator.run("deploy", &release, &[]).code(3).stdout_contains("the server will not serve the CRD");
    let (status, _) = control_plane().post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    assert_eq!(status, 201);
    crate::support::eventually("the server says why it does not serve it", || {
        let (_, live) = control_plane().get(&operator.0.crd_path());
        let conditions = live["status"]["conditions"].as_array()?.clone();
        conditions.iter().find(|condition| condition["reason"] == "InvalidCABundle").map(|_| ())
    });
}

/// The warning matches the server's behaviour.
#[test]
fn objects_that_a_first_install_writes_at_a_converted_version_are_counted() {
    let operator = Operator::new();
    let release = |version: &str| {
        [operator.crd(None), operator.service(443), operator.deployment("webhook:1"), operator.custom(version)]
    };
    let run = operator.run("check", &release("v1"), &["-o", "json"]);
    assert!(!run.code(0).stdout.contains("this deploy waits"), "{run}");
    operator
        .run("check", &release("v2"), &["-o", "json"])
        .code(0)
        .stdout_contains("and this deploy waits to write 1 object there");
    operator.run("deploy", &release("v1"), &[]).code(0);
    let (status, answer) = control_plane().post(
        &format!("/apis/{}/v2/namespaces/{}/samples", operator.0.names.group, operator.0.names.namespace),
        &json!({"apiVersion": format!("{}/v2", operator.0.names.group), "kind": "Sample", "metadata": {"name": "two"}}),
    );
    assert!(
        status >= 500 && answer["message"].as_str().is_some_and(|said| said.contains("conversion webhook")),
        "{answer}"
    );
}

#[test]
fn invalid_objects_that_do_not_change_do_not_block() {
    let operator = Operator::new();
    let valid = Webhook::with_own_ca(&[], |_| Value::Null);
    let bundle = valid.conversion()["webhook"]["clientConfig"]["caBundle"].as_str().expect("a bundle").to_owned();
    let crd = operator.crd(Some(&bundle));
    let release = |image: &str| [crd.clone(), operator.service(443), operator.deployment(image)];
    operator.run("deploy", &release("webhook:1"), &[]).code(0);
    control_plane().apply_yaml(&operator.custom("v1").to_string());

    // No kubelet runs the Deployment, so no webhook converts the object.
    let again = operator.run("deploy", &release("webhook:1"), &["-o", "json"]);
    assert_eq!(again.code(0).report()["outcome"], "unchanged");
    let of_crd: Vec<String> = found(&again);
    assert!(
        of_crd.contains(&"warning ConversionFails".to_owned()) && !of_crd.iter().any(|one| one.starts_with("error")),
        "{again}"
    );
    let report = again.report();
    let findings = report["checks"][1]["findings"].as_array().expect("findings").clone();
    assert!(findings.iter().all(|finding| finding["notWritten"] == true), "{again}");
    operator
        .run("check", &release("webhook:1"), &[])
        .code(0)
        .stdout_contains("because this deploy does not change the object")
        .stdout_contains("Nothing to do with warnings");

    // The workload, or the Service, is repaired.
    operator.run("deploy", &release("webhook:2"), &[]).code(0).stdout_contains("warning[ConversionFails]");
    let mut moved = crd.clone();
    moved["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"] = 8443.into();
    let repair = [moved.clone(), operator.service(8443), operator.deployment("webhook:2")];
    operator.run("deploy", &repair, &[]).code(0).stdout_contains("warning[ConversionFails]");
    // A deploy that writes the CRD and repairs nothing is blocked.
    moved["metadata"]["labels"] = json!({"a": "b"});
    operator.run("check", &[moved, operator.service(8443)], &["-o", "json"]).code(3);
}

#[test]
fn a_foreign_object_is_unchanged_if_the_manifest_sets_nothing_new() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let (status, answer) = cp
        .post("/api/v1/namespaces", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}));
    assert_eq!(status, 201, "{answer}");
    let plain = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    // In the form of kubectl create --dry-run=client -o yaml.
    let mut written_out = plain.clone();
    written_out["metadata"]["creationTimestamp"] = Value::Null;
    written_out["spec"] = json!({});
    written_out["status"] = json!({});
    let deploy = |manifest: &Value| {
        bed.write("manifests.yaml", &manifest.to_string());
        bed.deploy(cp.kubeconfig("admin"), &["-o", "json"]).run().code(0).report()["outcome"].clone()
    };
    assert_eq!(deploy(&plain), "unchanged");
    deploy(&written_out);
    assert_eq!(deploy(&written_out), "unchanged");
}

/// Another manager creates each object. It is then deployed twice, and the second time there is nothing left to do.
#[test]
fn foreign_objects_are_unchanged_after_one_deploy() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let meta = |name: &str| json!({"name": name, "namespace": bed.names.namespace});
    let core = |kind: &str, rest: Value| {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": meta(&kind.to_lowercase())});
        for (key, value) in rest.as_object().expect("a map") {
            object[key] = value.clone();
        }
        object
    };
    let template = json!({"metadata": {"creationTimestamp": null, "labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {}}], "securityContext": {}}});
    let objects = [
        core("ServiceAccount", json!({})),
        core("ConfigMap", json!({})),
        core("ConfigMap", json!({"metadata": meta("null"), "data": null})),
        core("ConfigMap", json!({"metadata": meta("empty"), "data": {}})),
        core("Secret", json!({})),
        core("Secret", json!({"metadata": meta("typed"), "type": "Opaque", "data": {}})),
        core("ServiceAccount", json!({"metadata": meta("lists"), "secrets": [], "imagePullSecrets": []})),
        core("ResourceQuota", json!({"status": {}})),
        core("LimitRange", json!({"spec": {"limits": []}})),
        core("Endpoints", json!({})),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("set"), "spec": {"updateStrategy": {},
            "selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta("set"), "spec": {"updateStrategy": {},
            "serviceName": "", "selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta("one"), "spec": {"strategy": {},
            "selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": meta("cron"), "spec": {"schedule": "* * * * *",
            "jobTemplate": {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {"restartPolicy": "Never",
                "securityContext": {}, "containers": [{"name": "c", "image": "x", "resources": {}, "securityContext": {}}]}}}}}}),
        core(
            "PersistentVolumeClaim",
            json!({"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1024Mi"}, "limits": {}}}, "status": {}}),
        ),
        core(
            "PodTemplate",
            json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}),
        ),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta("none"), "rules": []}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta("absent")}),
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta("lease")}),
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta("spec"), "spec": {}}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta("pdb"), "spec": {}, "status": {"currentHealthy": 0}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": meta("all"), "spec": {"podSelector": {}}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": meta("slice"), "addressType": "IPv4", "endpoints": [], "ports": []}),
    ];
    let mut phantoms = Vec::new();
    for object in &objects {
        let path = cp.api().path_of(object);
        let (collection, _) = path.rsplit_once('/').expect("a path");
        let (status, answer) = cp.post(collection, object);
        assert!(status == 201 || status == 409, "{object}: {answer}");
        bed.write("manifests.yaml", &object.to_string());
        let deploy = || bed.deploy(cp.kubeconfig("admin"), &["-o", "json", "--force-conflicts"]).run();
        deploy().code(0);
        if deploy().code(0).report()["outcome"] != "unchanged" {
            phantoms.push(format!("{object}: {:#}", cp.get(&path).1));
        }
    }
    assert_eq!(phantoms, [""; 0]);
}
