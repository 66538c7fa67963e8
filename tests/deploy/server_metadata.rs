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

#[test]
fn an_object_that_is_being_deleted_is_named_before_it_is_written() {
    let cp = control_plane();
    let bed = Bed::new();
    cp.apply_yaml(&bed.namespace());
    let config_map = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value}, "metadata": {
            "name": "held", "namespace": bed.names.namespace, "finalizers": ["example.com/stuck"]}})
    };
    let run = |command: &str, flags: &[&str]| {
        bed.gantry(cp.kubeconfig("admin"), &[&[command, "-f", "manifests.yaml"], flags].concat()).run()
    };
    bed.write("manifests.yaml", &config_map("1").to_string());
    run("deploy", &[]).code(0).contains_nowhere("being deleted");
    cp.delete(&bed.config_map_path("held"));
    let object = format!("configmap/held -n {}", bed.names.namespace);
    let says = |command: &str, what: &str| {
        let output = run(command, &[]);
        output.code(0).stderr_contains(&object).stderr_contains("is being deleted (since 20").stderr_contains(what);
        output.stderr_contains("its finalizer \"example.com/stuck\" is removed");
        output.stderr_contains(&format!("kubectl wait --for=delete {object}"));
        let report = run(command, &["-o", "json"]).report();
        assert!(report["notices"].to_string().contains("is being deleted"), "{report}");
    };
    says("check", "is removed");
    bed.write("manifests.yaml", &config_map("2").to_string());
    says("check", "with everything that is written to it");
    says("deploy", &object);
    assert_eq!(cp.get(&bed.config_map_path("held")).1["data"]["a"], "2");
    cp.patch(&bed.config_map_path("held"), &json!({"metadata": {"finalizers": null}}));
    run("deploy", &[]).code(0).stdout_contains("1 created").contains_nowhere("being deleted");
}
