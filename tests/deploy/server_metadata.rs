//! Metadata that belongs to the server: what manifests have of it, and objects that the server is deleting.

use crate::support::{Bed, control_plane};
use serde_json::{Value, json};

#[test]
fn metadata_of_the_server_is_not_sent() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let exported = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "metadata": {
        "name": "exported", "namespace": bed.names.namespace, "finalizers": ["example.com/held"],
        "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0, "generation": 7,
        "selfLink": "/api/v1/namespaces/x/configmaps/exported", "creationTimestamp": "2020-01-01T00:00:00Z",
        "uid": "172f04e5-0bd3-4d4d-ba9b-8115ca0fd4b1", "resourceVersion": "22975"}});
    bed.write("manifests.yaml", &exported.to_string());
    let run = |command: &str| bed.gantry(cp.kubeconfig("admin"), &[command, "-f", "manifests.yaml"]).run();
    run("deploy").code(0).stdout_contains("1 created");
    let metadata = &cp.get(&bed.config_map_path("exported")).1["metadata"];
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        assert_eq!(metadata[key], Value::Null, "{metadata}");
    }
    for command in ["deploy", "check", "diff"] {
        run(command).code(0).stdout_contains("Nothing to do").contains_nowhere("being deleted");
    }
}
