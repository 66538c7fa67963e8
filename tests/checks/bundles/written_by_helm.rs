//! Objects that OLM v1 has written with Helm: fields that the new version of a bundle no longer has are removed, although
//! no server-side apply would remove them.

use super::*;
use crate::support::create_as;

/// The field manager with which operator-controller writes, which is Helm's in its process.
const OPERATOR_CONTROLLER: &str = "operator-controller";

/// An object of the bundle as Helm creates it.
fn create_as_helm(bed: &Bed, object: &Value) {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.insert("namespace".to_owned(), bed.names.namespace.clone().into());
    metadata.insert("labels".to_owned(), json!({"app.kubernetes.io/managed-by": "Helm"}));
    metadata.insert(
        "annotations".to_owned(),
        json!({"meta.helm.sh/release-name": "example", "meta.helm.sh/release-namespace": bed.names.namespace}),
    );
    create_as(control_plane(), OPERATOR_CONTROLLER, &object);
}

fn config(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "immutable": true, "data": data})
}

fn ports(name: &str, ports: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"selector": {"app": name}, "ports": ports}})
}

fn deployment(name: &str, strategy: &Value, container: &Value) -> Value {
    let mut manager = json!({"name": "manager", "image": "manager:1"});
    manager.as_object_mut().unwrap().extend(container.as_object().cloned().unwrap());
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"strategy": strategy, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}}, "spec": {"containers": [manager]}}}})
}

/// A probe of this kind.
fn probe(kind: &str) -> Value {
    json!({"livenessProbe": {kind: match kind {
        "exec" => json!({"command": ["true"]}),
        _ => json!({"port": 8080}),
    }}})
}

#[test]
fn what_a_bundle_drops_is_judged_as_helm_removes_it() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2}});
    let recreate = json!({"type": "Recreate"});
    let cases = [
        // A key that leaves an immutable ConfigMap: a server-side apply would leave it there.
        (config("fixed", &json!({"a": "1", "b": "2"})), config("fixed", &json!({"a": "1"})), Some("immutable")),
        (config("same", &json!({"a": "1"})), config("same", &json!({"a": "1"})), None),
        // The old port would stay beside the new one, and two ports need names.
        (ports("port", &json!([{"port": 80}])), ports("port", &json!([{"port": 81}])), None),
        (
            deployment("kind", &rolling, &json!({"ports": [{"containerPort": 1, "name": "web"}]})),
            deployment("kind", &recreate, &json!({"ports": [{"containerPort": 2, "name": "web"}]})),
            None,
        ),
        // What the server filled in leaves with what it belongs to.
        (deployment("filled", &json!(null), &json!({})), deployment("filled", &recreate, &json!({})), None),
        (deployment("probe", &recreate, &probe("httpGet")), deployment("probe", &recreate, &probe("exec")), None),
        (
            deployment("both", &recreate, &probe("exec")),
            deployment("both", &rolling, &json!({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": 1}}})),
            Some("must be less than or equal to cpu limit"),
        ),
    ];
    for (old, new, refusal) in &cases {
        let name = old["metadata"]["name"].as_str().expect("a name");
        create_as_helm(&bed, old);
        let text = serde_yaml::to_string(new).expect("YAML");
        bundle(&bed, name, &bed.crd("first: {type: string}"), &[("object.yaml", text)]);
        let checks = ["check", "-n", &bed.names.namespace, "--preflight=AdmissionDryRun", "-f", name];
        let output = bed.gantry(cp.kubeconfig("admin"), &checks).run();
        match refusal {
            None => drop(output.code(0)),
            Some(refusal) => drop(output.code(3).stdout_contains(refusal).contains_nowhere("update-strategy")),
        }
        // Nothing has recorded the release.
        output.stderr_contains("the record of the Helm release example cannot be read");
    }
}
