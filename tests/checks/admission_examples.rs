//! The examples of the rules of `AdmissionDryRun`: on a real server each example breaks only its own rule.

use std::collections::BTreeSet;

use crate::support::admission::{Admission, comes_into_force, findings, only, quota, rule};
use crate::support::{Bed, control_plane, sentences};
use gantry_preflight::registry;
use serde::Deserialize as _;
use serde_json::{Value, json};

/// The objects of an example, which shows only the relevant fields, completed to objects that a server accepts.
fn objects(bed: &Bed, example: &str) -> Vec<Value> {
    let documents =
        serde_yaml::Deserializer::from_str(example).map(|document| Value::deserialize(document).expect("YAML"));
    documents.filter(|document| !document.is_null()).map(|document| complete(bed, document)).collect()
}

fn complete(bed: &Bed, mut object: Value) -> Value {
    let namespace = &bed.names.namespace;
    let kind = object["kind"].as_str().expect("a kind").to_owned();
    let (api_version, is_namespaced) = match kind.as_str() {
        "ConfigMap" | "LimitRange" | "Pod" | "ResourceQuota" => ("v1", true),
        "Namespace" => ("v1", false),
        "Deployment" => ("apps/v1", true),
        "ClusterRole" => ("rbac.authorization.k8s.io/v1", false),
        "RoleBinding" => ("rbac.authorization.k8s.io/v1", true),
        "ValidatingWebhookConfiguration" => ("admissionregistration.k8s.io/v1", false),
        other => panic!("{other} is new: say here at which version it is served"),
    };
    object["apiVersion"] = api_version.into();
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.remove("managedFields");
    // `team-a` exists, other namespaces do not.
    let own = |name: &str| if name == "team-a" { namespace.clone() } else { format!("{name}-{namespace}") };
    if is_namespaced {
        let name = metadata.get("namespace").and_then(Value::as_str).map_or_else(|| namespace.clone(), own);
        metadata.insert("namespace".into(), name.into());
    } else {
        let name = own(metadata["name"].as_str().expect("a name"));
        metadata.insert("name".into(), name.into());
    }
    if kind == "Deployment" && object["spec"].get("template").is_none() {
        object["spec"]["selector"] = json!({"matchLabels": {"app": "web"}});
        object["spec"]["template"] = json!({"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "web"}]}});
    }
    for webhook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        let more = json!({"admissionReviewVersions": ["v1"], "sideEffects": "None", "namespaceSelector": only(bed),
            "rules": [rule("configmaps")]});
        webhook.as_object_mut().expect("a webhook").extend(more.as_object().expect("an object").clone());
    }
    object
}

/// Creates it on the server.
fn create(bed: &Bed, object: &Value, admission: &mut Admission) {
    let cp = control_plane();
    match object["kind"].as_str() {
        Some("ResourceQuota") => {
            let used = object["spec"]["hard"].as_object().expect("limits").keys().map(|key| (key.clone(), "0".into()));
            let name = object["metadata"]["name"].as_str().expect("a name");
            quota(bed, name, &object["spec"], &Value::Object(used.collect()));
        }
        Some("ValidatingWebhookConfiguration") => {
            admission.configure("validatingwebhookconfigurations", object);
            comes_into_force(bed, "configmaps", "failed calling webhook");
        }
        // Another manager owns it.
        Some("Deployment") => {
            let path = cp.path_of(object);
            let (collection, _) = path.rsplit_once('/').expect("a path");
            assert_eq!(cp.post(&format!("{collection}?fieldManager=autoscaler"), object).0, 201);
        }
        _ => {
            let (status, answer) = cp.server_side_apply(&cp.path_of(object), "gantry", object);
            assert_eq!(status, 201, "{answer}");
        }
    }
}

#[test]
fn each_example_breaks_its_rule_and_no_other() {
    let cp = control_plane();
    let rbac = ["clusterroles", "rolebindings", "roles"];
    let limited = cp.user(&json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": rbac, "verbs": ["get", "create", "patch"]},
    ]));
    let check = registry::find("AdmissionDryRun").expect("the check");
    let mut all = String::new();
    for doc in (check.rules)() {
        let bed = Bed::new();
        cp.apply_yaml(&bed.namespace());
        let mut admission = Admission::default();
        for object in objects(&bed, doc.example().live()) {
            create(&bed, &object, &mut admission);
        }
        let desired: Vec<String> = objects(&bed, doc.example().desired()).iter().map(Value::to_string).collect();
        bed.write("manifests.yaml", &desired.join("\n---\n"));
        // A user who may do everything may also grant everything to anyone.
        let user = if ["ApplyForbidden", "RefusedByServer"].contains(&doc.name) { limited.as_str() } else { "admin" };
        let arguments = ["check", "-f", "manifests.yaml", "--preflight", "AdmissionDryRun", "-o", "json"];
        let output = bed.gantry(cp.kubeconfig(user), &arguments).run();
        let found: BTreeSet<String> = findings(&output).into_iter().map(|(rule, ..)| rule).collect();
        assert_eq!(found, BTreeSet::from([doc.name.to_owned()]), "{output}");
        all.push_str(&sentences(&output.report()));
        output.code(if doc.name == "JudgedWithoutServer" { 0 } else { 3 });
    }
    // The diff of this file shows the effect of a changed message: INSTA_UPDATE=always cargo test --test checks
    // examples
    insta::assert_snapshot!(all);
}
