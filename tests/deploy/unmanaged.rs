//! Objects without managedFields.

use crate::support::{Bed, control_plane};
use serde_json::{Value, json};

#[test]
fn a_key_that_an_atomic_map_loses_is_a_change() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let budget = |labels: Value| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "web", "namespace": bed.names.namespace},
            "spec": {"selector": {"matchLabels": labels}, "minAvailable": 1}})
    };
    cp.apply_yaml(&budget(json!({"app": "web", "tier": "front"})).to_string());
    let path = cp.path_of(&budget(json!({})));
    let (_, mut live) = cp.get(&path);
    live["metadata"]["managedFields"] = json!([{}]);
    assert_eq!(cp.put(&path, &live).0, 200);
    assert_eq!(cp.get(&path).1["metadata"]["managedFields"], Value::Null);
    let deploy = |flags: &[&str]| bed.deploy(cp.kubeconfig("admin"), flags).run();
    bed.write("manifests.yaml", &budget(json!({"app": "web", "tier": "front"})).to_string());
    deploy(&[]).code(0).stdout_contains("1 object unchanged");
    bed.write("manifests.yaml", &budget(json!({"app": "web"})).to_string());
    // As the server itself says.
    let apply = cp.server_side_apply(&path, "gantry", &budget(json!({"app": "web"})));
    assert_eq!(apply.0, 409, "{}", apply.1);
    deploy(&[]).code(3).stdout_contains(".spec.selector").stdout_contains("before-first-apply");
    deploy(&["--force-conflicts"]).code(0);
    assert_eq!(cp.get(&path).1["spec"]["selector"]["matchLabels"], json!({"app": "web"}));
}
