//! The checks that run without a flag, on a real API server, for users with and without rights to read for them.

use serde_json::{Value, json};

use crate::support::{Bed, control_plane, eventually};

/// What a deployer needed before custom resources were validated by default.
fn rights_to_write(group: &str) -> Vec<Value> {
    let verbs = json!(["get", "create", "patch"]);
    vec![
        json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": verbs}),
        json!({"apiGroups": [group], "resources": ["samples"], "verbs": verbs}),
        json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": verbs}),
    ]
}

#[test]
fn a_user_who_may_not_list_still_deploys_and_sees_which_right_is_missing() {
    let (cp, bed) = (control_plane(), Bed::new());
    let first = [bed.namespace(), bed.crd("first: {type: string}"), bed.sample()].join("---\n");
    bed.write("manifests.yaml", &first);
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    let group = &bed.names.group;
    let user = cp.user(&rights_to_write(group).into());
    // Not proven harmless for every object, so the objects are listed; by its effect it is a warning.
    let changed = bed.crd("first: {type: string}, second: {type: string, default: a}");
    bed.write("manifests.yaml", &changed);
    let output = bed.deploy(cp.kubeconfig(&user), &["--preset", "semantic", "-o", "json=report.json"]).run();
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(bed.folder.path().join("report.json")).expect("a report"))
            .expect("JSON");
    assert_eq!(report["outcome"], "deployed", "{report:#}");
    output.code(0);
    output.stderr_contains("CustomResourceValidation did not check everything");
    output.stderr_contains(&format!("apiGroups: [{group:?}]")).stderr_contains("verbs: [\"list\"]");
    let live = cp.get(&bed.crd_path()).1;
    let schema = &live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
    assert_eq!(schema["second"]["type"], "string", "{live}");

    // If the check is named, what it may not list is not checked.
    let changed =
        bed.crd("first: {type: string}, second: {type: string, default: a}, third: {type: string, default: a}");
    bed.write("manifests.yaml", &changed);
    let named = ["--preset", "semantic", "--preflight", "CRDUpgradeSafety,CustomResourceValidation"];
    bed.deploy(cp.kubeconfig(&user), &named).run().code(1);
    bed.write(
        "gantry.yaml",
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CustomResourceValidation\n",
    );
    bed.deploy(cp.kubeconfig(&user), &["--preset", "semantic"]).run().code(1);
}

#[test]
fn a_user_who_may_not_get_crds_still_deploys_custom_resources() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&bed.crd("first: {type: string}"));
    let user = cp.user(&json!([rights_to_write(&bed.names.group)[1]]));
    bed.write("manifests.yaml", &bed.sample());
    let output = bed.deploy(cp.kubeconfig(&user), &[]).run();
    output.code(0).stderr_contains("custom resources cannot be validated without their CRDs");
    output.stderr_contains("resources: [\"customresourcedefinitions\"]");
    assert_eq!(cp.get(&bed.sample_path()).1["first"], "x");
    bed.deploy(cp.kubeconfig(&user), &["--preflight", "CustomResourceValidation"]).run().code(1);
}

#[test]
fn objects_that_an_upgrade_breaks_block_it_without_any_flag() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&bed.crd("first: {type: string}"));
    eventually("the kind is served", || (cp.get(&bed.sample_path()).0 == 404).then_some(()));
    cp.apply_yaml(&bed.sample());
    bed.write("manifests.yaml", &bed.crd("second: {type: string}"));
    let report = bed.deploy(cp.kubeconfig("admin"), &["-o", "json"]).run().code(3).report();
    let names: Vec<&str> = report["checks"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(names, ["CRDUpgradeSafety", "CustomResourceValidation"]);
    assert_eq!(report["checks"][1]["findings"][0]["rule"], "ExistingDataPruned");
    assert_eq!(cp.get(&bed.sample_path()).1["first"], "x");
}
