//! `OperatorDependencies` on a real API server, with live operators.

use serde_json::{Value, json};

use crate::support::{Bed, CrdBuilder, any_fields, control_plane};

/// The CRDs of classic OLM, with the parts that gantry reads. They stay: other tests of the server use the same.
fn install_olm() {
    for kind in ["ClusterServiceVersion", "Subscription"] {
        let mut crd = CrdBuilder::new("operators.coreos.com", kind).version("v1alpha1", any_fields()).build();
        crd["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "https://example.com"});
        control_plane().apply_yaml(&crd.to_string());
    }
}

fn csv(bed: &Bed, name: &str, owned: &[&str], required: &[&str]) -> Value {
    let api = |kind: &&str| json!({"name": format!("{}s.{}", kind.to_lowercase(), bed.names.group), "version": "v1", "kind": kind});
    json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": bed.names.namespace},
        "spec": {"version": name.split_once(".v").expect("a version").1, "customresourcedefinitions": {
            "owned": owned.iter().map(api).collect::<Value>(), "required": required.iter().map(api).collect::<Value>()}}})
}

#[test]
fn an_update_that_removes_an_api_that_a_live_operator_requires_is_blocked() {
    install_olm();
    let (bed, cp) = (Bed::new(), control_plane());
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&csv(&bed, "provider.v1.0.0", &["Sample"], &[]).to_string());
    cp.apply_yaml(&csv(&bed, "dependent.v1.0.0", &[], &["Sample"]).to_string());
    // OLM's copy for another namespace is not a separate operator.
    let mut copy = csv(&bed, "copy.v1.0.0", &["Sample"], &["Nothing"]);
    copy["metadata"]["labels"] = json!({"olm.copiedFrom": "elsewhere"});
    cp.apply_yaml(&copy.to_string());

    let mut next = csv(&bed, "provider.v2.0.0", &["Other"], &[]);
    next["spec"]["replaces"] = "provider.v1.0.0".into();
    bed.write("manifests.yaml", &next.to_string());
    let deploy = |user: &str| {
        let arguments = ["deploy", "--yes", "-f", "manifests.yaml", "--preflight", "OperatorDependencies"];
        bed.gantry(cp.kubeconfig(user), &arguments).run()
    };
    deploy("admin")
        .code(3)
        .stdout_contains("DependentBroken")
        .stdout_contains("dependent.v1.0.0")
        .stdout_contains("provider.v2.0.0");
    // Without permission to see the operators, the check does not pass.
    let user = cp.user(&json!([
        {"apiGroups": ["operators.coreos.com"], "resources": ["clusterserviceversions"], "verbs": ["get", "create", "patch"]},
    ]));
    deploy(&user).code(1).stdout_contains("the live operators are unknown");

    next["spec"]["customresourcedefinitions"] =
        csv(&bed, "x.v1", &["Other", "Sample"], &[])["spec"]["customresourcedefinitions"].clone();
    bed.write("manifests.yaml", &next.to_string());
    deploy("admin").code(0).stdout_contains("1 created");
}

#[test]
fn removing_an_operator_that_another_one_requires_is_reported() {
    install_olm();
    let (bed, cp) = (Bed::new(), control_plane());
    cp.apply_yaml(&bed.namespace());
    cp.apply_yaml(&csv(&bed, "dependent.v1.0.0", &[], &["Sample"]).to_string());
    let app = |arguments: &[&str]| {
        let app = ["-f", "manifests.yaml", "-a", "operators", "-n", &bed.names.namespace, "--wait=false"];
        bed.gantry(cp.kubeconfig("admin"), &[arguments, &app].concat()).run()
    };
    let stays = bed.config_map("stays", "x");
    bed.write("manifests.yaml", &format!("{stays}---\n{}\n", csv(&bed, "provider.v1.0.0", &["Sample"], &[])));
    app(&["deploy"]).code(0);
    bed.write("manifests.yaml", &stays);
    app(&["deploy", "--prune=yes", "--preflight", "OperatorDependencies"])
        .code(3)
        .stdout_contains("DependentBroken")
        .stdout_contains("is deleted");
}
