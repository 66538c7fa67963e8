//! Versioned objects: each new content is a new object, and references to it are updated.

use std::collections::BTreeSet;

use crate::support::{Bed, Gantry, Proxy, When, control_plane, merge};
use serde_json::{Value, json};

struct Stage(Bed);

impl Stage {
    fn new() -> Self {
        Stage(Bed::with_namespace())
    }

    fn object(&self, api_version: &str, kind: &str, name: &str, annotations: Value, rest: Value) -> Value {
        let mut object = self.0.object(api_version, kind, name, json!({"metadata": {"annotations": annotations}}));
        merge(&mut object, rest);
        object
    }

    /// A versioned ConfigMap.
    fn config(&self, value: &str, more: Value) -> Value {
        let mut annotations = json!({"kapp.k14s.io/versioned": ""});
        annotations.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        self.object("v1", "ConfigMap", "config", annotations, json!({"data": {"a": value}}))
    }

    fn deploy(&self, objects: &[Value], flags: &[&str]) -> Gantry {
        self.0.write_objects(objects);
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &self.0.names.namespace, "--wait=false"];
        self.0.gantry(control_plane().kubeconfig("admin"), &[&arguments, flags].concat())
    }

    fn get(&self, object: &Value) -> Value {
        control_plane().get(&control_plane().path_of(object)).1
    }

    /// The ConfigMaps whose names begin with `config`.
    fn versions(&self) -> BTreeSet<String> {
        let (_, list) = control_plane().get(&format!("/api/v1/namespaces/{}/configmaps", self.0.names.namespace));
        let names = list["items"].as_array().expect("items").iter();
        let names = names.map(|item| item["metadata"]["name"].as_str().expect("a name").to_owned());
        names.filter(|name| name.starts_with("config")).collect()
    }
}

fn named<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Each place where a Pod refers to a ConfigMap or a Secret.
fn pod(config: &str, secret: &str, pull: &str) -> Value {
    json!({"restartPolicy": "Always", "imagePullSecrets": [{"name": pull}],
        "initContainers": [{"name": "init", "image": "i", "envFrom": [{"configMapRef": {"name": config}}, {"secretRef": {"name": secret}}]}],
        "containers": [{"name": "web", "image": "web:1", "env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": config, "key": "a"}}},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": secret, "key": "b"}}},
            {"name": "C", "value": config}, {"name": "D", "valueFrom": {"configMapKeyRef": {"name": "other", "key": "a"}}}]}],
        "volumes": [{"name": "c", "configMap": {"name": config}}, {"name": "s", "secret": {"secretName": secret}},
            {"name": "p", "projected": {"sources": [{"configMap": {"name": config}}, {"secret": {"name": secret}}]}}]})
}

/// The names of the ConfigMaps and Secrets in it.
fn names_in(pod: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    fn gather(value: &Value, key: &str, names: &mut BTreeSet<String>) {
        const REFERENCES: [&str; 7] =
            ["configMapRef", "secretRef", "configMapKeyRef", "secretKeyRef", "configMap", "secret", "imagePullSecrets"];
        match value {
            Value::Object(map) => {
                for (member, value) in map {
                    if REFERENCES.contains(&key) && matches!(member.as_str(), "name" | "secretName") {
                        names.insert(value.as_str().expect("a name").to_owned());
                    }
                    gather(value, member, names);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| gather(item, key, names)),
            _ => {}
        }
    }
    gather(pod, "", &mut names);
    names
}

#[test]
fn new_content_is_a_new_object_and_references_follow() {
    let stage = Stage::new();
    let versioned = || json!({"kapp.k14s.io/versioned": ""});
    let secret = stage.object("v1", "Secret", "login", versioned(), json!({"stringData": {"b": "hidden"}}));
    let template = json!({"metadata": {"labels": {"run": "web"}}, "spec": pod("config", "login", "login")});
    let web = stage.object(
        "apps/v1",
        "Deployment",
        "web",
        json!({}),
        json!({"spec": {"selector": {"matchLabels": {"run": "web"}}, "template": template}}),
    );
    let mut job = pod("config", "login", "login");
    job["restartPolicy"] = "Never".into();
    let cron = stage.object(
        "batch/v1",
        "CronJob",
        "nightly",
        json!({}),
        json!({"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": {"spec": job}}}}}),
    );
    let account =
        stage.object("v1", "ServiceAccount", "web", json!({}), json!({"imagePullSecrets": [{"name": "login"}]}));
    let ingress = stage.object(
        "networking.k8s.io/v1",
        "Ingress",
        "web",
        json!({}),
        json!({"spec": {"tls": [{"secretName": "login"}], "defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}}),
    );
    let objects = |value: &str| {
        [web.clone(), cron.clone(), account.clone(), ingress.clone(), stage.config(value, json!({})), secret.clone()]
    };
    let refers = |config: &str| {
        let expected = named([config, "login-ver-1", "other"]);
        let web = stage.get(&web);
        assert_eq!(names_in(&web["spec"]["template"]["spec"]), expected);
        assert_eq!(
            web["spec"]["template"]["spec"]["containers"][0]["env"][2]["value"], "config",
            "that is no reference"
        );
        assert_eq!(names_in(&stage.get(&cron)["spec"]["jobTemplate"]["spec"]["template"]["spec"]), expected);
        assert_eq!(stage.get(&account)["imagePullSecrets"], json!([{"name": "login-ver-1"}]));
        assert_eq!(stage.get(&ingress)["spec"]["tls"][0]["secretName"], "login-ver-1");
    };
    stage.deploy(&objects("1"), &[]).run().code(0).stdout_contains("6 created").contains_nowhere("hidden");
    refers("config-ver-1");
    stage.deploy(&objects("1"), &["--prune=yes"]).run().code(0).stdout_contains("6 objects unchanged");

    let output = stage.deploy(&objects("2"), &["--prune=yes"]).run();
    output.code(0).stdout_contains("1 created, 2 updated, 3 unchanged");
    refers("config-ver-2");
    assert_eq!(stage.versions(), named(["config-ver-1", "config-ver-2"]));
    stage.deploy(&objects("2"), &["--prune=yes"]).run().code(0).stdout_contains("6 objects unchanged");
    // A new version, not the older version with the same content.
    stage.deploy(&objects("1"), &["--prune=yes"]).run().code(0).stdout_contains("1 created, 2 updated, 3 unchanged");
    refers("config-ver-3");

    // Without the manifest all versions leave the app.
    let without = [web.clone(), cron.clone(), account.clone(), ingress.clone(), secret.clone()];
    stage.deploy(&without, &["--prune=yes"]).run().code(0).stdout_contains("2 updated, 3 deleted, 3 unchanged");
    refers("config");
    assert_eq!(stage.versions(), named([]));
}

#[test]
fn as_many_versions_stay_as_the_annotation_says() {
    let stage = Stage::new();
    let few = json!({"kapp.k14s.io/num-versions": "2"});
    for value in ["1", "2", "3"] {
        stage.deploy(&[stage.config(value, few.clone())], &["--prune=yes"]).run().code(0);
    }
    assert_eq!(stage.versions(), named(["config-ver-2", "config-ver-3"]));
    // A deploy needs permissions for objects whose names are not known yet.
    let rights =
        stage.0.gantry(control_plane().kubeconfig("admin"), &["permissions", "-f", "manifests.yaml", "-a", "shop"]);
    rights.run().code(0).stdout_contains("verbs: [get, list, create, patch, delete]");
    let wrong = json!({"kapp.k14s.io/num-versions": "many"});
    let output = stage.deploy(&[stage.config("4", wrong)], &[]).run();
    output.code(2).stderr_contains("manifests.yaml:1").stderr_contains("\"many\" is not a number of versions");
}

#[test]
fn the_original_stays_where_the_annotation_says_so_and_references_may_be_explicit() {
    let stage = Stage::new();
    let kept = json!({"kapp.k14s.io/versioned-keep-original": ""});
    let reference = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name});
    let explicit = json!({"kapp.k14s.io/versioned-explicit-ref": "apiVersion: v1\nkind: ConfigMap\nname: config\n",
        "kapp.k14s.io/versioned-explicit-ref.other": reference("another").to_string()});
    let other = stage.object("v1", "ConfigMap", "reader", explicit, json!({}));
    for (value, count) in [("1", "3 created"), ("2", "1 created, 2 updated")] {
        let run = stage.deploy(&[stage.config(value, kept.clone()), other.clone()], &["--prune=yes"]).run();
        run.code(0).stdout_contains(count);
    }
    assert_eq!(stage.versions(), named(["config", "config-ver-1", "config-ver-2"]));
    assert_eq!(stage.get(&stage.config("2", json!({})))["data"]["a"], "2");
    let annotations = stage.get(&other)["metadata"]["annotations"].clone();
    let read = |key: &str| -> Value { serde_json::from_str(annotations[key].as_str().expect("text")).expect("JSON") };
    assert_eq!(read("kapp.k14s.io/versioned-explicit-ref"), reference("config-ver-2"));
    assert_eq!(read("kapp.k14s.io/versioned-explicit-ref.other"), reference("another"));

    // Also if no versioned object is named.
    let wrong = json!({"kapp.k14s.io/versioned-explicit-ref": "elsewhere"});
    let wrong = stage.object("v1", "ConfigMap", "reader", wrong, json!({}));
    let output = stage.deploy(&[stage.config("3", kept), wrong], &[]).run();
    output.code(2).stderr_contains("not the apiVersion, kind and name of an object");
}

/// The kinds and paths are those of kapp's default configuration; see also `kapp_controller.rs`.
#[test]
fn references_in_kapp_controllers_kinds_follow_and_others_are_named() {
    crate::kapp_controller::ensure_crds();
    let stage = Stage::new();
    let secret = |value: &str| {
        let versioned = json!({"kapp.k14s.io/versioned": ""});
        stage.object("v1", "Secret", "vals", versioned, json!({"stringData": {"a": value}}))
    };
    let reference = json!({"name": "vals"});
    let of = |name: &str| json!({"secretRef": {"name": name}});
    let plain = json!({"kapp.k14s.io/disable-wait": ""});
    let install = |name: &str| {
        let spec = json!({"values": [of(name)], "cluster": {"kubeconfigSecretRef": {"name": name, "key": "a"}}});
        stage.object("packaging.carvel.dev/v1alpha1", "PackageInstall", "install", plain.clone(), json!({"spec": spec}))
    };
    let app = |name: &str| {
        let spec = json!({"fetch": [{"inline": {"pathsFrom": [of(name)]}}, {"git": of(name)}],
            "template": [{"ytt": {"valuesFrom": [of(name)]}}, {"sops": {"age": {"privateKeysSecretRef": {"name": name}}}}]});
        stage.object("kappctrl.k14s.io/v1alpha1", "App", "app", plain.clone(), json!({"spec": spec}))
    };
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["vals"]});
    let rules = json!({"rules": [rule]});
    let role = stage.object("rbac.authorization.k8s.io/v1", "Role", "reader", json!({}), rules);
    let mut repository = install("vals");
    repository["kind"] = "PackageRepository".into();
    repository["spec"] = json!({"fetch": {"image": {"secretRef": reference}}});
    for (value, number) in [("1", "vals-ver-1"), ("2", "vals-ver-2")] {
        let output =
            stage.deploy(&[secret(value), install("vals"), app("vals"), repository.clone(), role.clone()], &[]).run();
        output.code(0).contains_nowhere("seems to refer to");
        assert_eq!(stage.get(&install("vals"))["spec"], install(number)["spec"]);
        assert_eq!(stage.get(&app("vals"))["spec"], app(number)["spec"]);
        assert_eq!(stage.get(&repository)["spec"]["fetch"]["image"]["secretRef"]["name"], number);
    }
    // A kind whose references gantry does not know.
    let mut volume = stage.object("v1", "PersistentVolume", &stage.0.names.namespace, json!({}), json!({}));
    volume["metadata"].as_object_mut().expect("metadata").remove("namespace");
    let driver = json!({"driver": "d.example.com", "volumeHandle": "v",
        "nodePublishSecretRef": {"name": "vals", "namespace": stage.0.names.namespace}});
    volume["spec"] = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "csi": driver});
    let output = stage.deploy(&[secret("2"), volume], &["--dry-run"]).run();
    output.code(0).stderr_contains("seems to refer to secret/vals, which is deployed as vals-ver-2");
}

#[test]
fn a_version_without_a_record_is_not_overwritten() {
    let stage = Stage::new();
    stage.deploy(&[stage.config("1", json!({}))], &[]).run().code(0);
    stage
        .0
        .gantry(
            control_plane().kubeconfig("admin"),
            &["apps", "forget", "-a", "shop", "-n", &stage.0.names.namespace, "--yes"],
        )
        .run()
        .code(0);
    let output = stage.deploy(&[stage.config("2", json!({}))], &[]).run();
    output.code(3).stdout_contains("configmap/config-ver-1").stdout_contains("already exists with different content");
    output.contains_nowhere("kubectl delete");
    // A kapp app that has the version is named, and how to take it over.
    let version = stage.object("v1", "ConfigMap", "config-ver-1", json!({}), json!({}));
    let path = control_plane().path_of(&version);
    let label = |id: Value| json!({"metadata": {"labels": {"kapp.k14s.io/app": id}}});
    assert_eq!(control_plane().patch(&path, &label("170".into())).0, 200);
    let owned = stage.deploy(&[stage.config("2", json!({}))], &[]).run();
    owned.code(3).stdout_contains("a kapp app (kapp.k14s.io/app: 170)").stdout_contains("add --from-kapp");
    owned.contains_nowhere("kubectl delete");
    assert_eq!(control_plane().patch(&path, &label(Value::Null)).0, 200);
    assert_eq!(stage.get(&stage.object("v1", "ConfigMap", "config-ver-1", json!({}), json!({})))["data"]["a"], "1");
    // The same content is the same version.
    stage.deploy(&[stage.config("1", json!({}))], &[]).run().code(0);
    // Without permission to list the members, the versions cannot be counted.
    let proxy = Proxy::start(control_plane());
    let refusal = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "configmaps is forbidden"});
    proxy.answer(When::new("GET", "/configmaps").query("labelSelector"), 403, refusal);
    let run =
        stage.deploy(&[stage.config("2", json!({}))], &["--prune=no"]).kubeconfig(proxy.kubeconfig("admin")).run();
    run.code(1).stderr_contains("cannot be counted");
    assert_eq!(stage.versions(), named(["config-ver-1"]));
}

#[test]
fn an_object_whose_name_has_a_meaning_cannot_have_versions() {
    let stage = Stage::new();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "never", "annotations": {"kapp.k14s.io/versioned": ""}}});
    let output = stage.deploy(&[namespace], &[]).run();
    output.code(2).stderr_contains("cannot have versions").stderr_contains("manifests.yaml:1");
}
