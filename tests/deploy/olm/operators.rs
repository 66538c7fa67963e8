//! `OperatorDependencies` on a real API server, with live operators.

use serde_json::{Value, json};

use crate::support::{Bed, CrdBuilder, any_fields, control_plane};

/// The CRDs of classic OLM, with the parts that gantry reads. They stay: other tests of the server use the same.
fn install_olm() {
    for (kind, version) in [
        ("ClusterServiceVersion", "v1alpha1"),
        ("Subscription", "v1alpha1"),
        ("CatalogSource", "v1alpha1"),
        ("OperatorGroup", "v1"),
    ] {
        let mut crd = CrdBuilder::new("operators.coreos.com", kind).version(version, any_fields()).build();
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

#[test]
fn a_subscription_is_foretold_with_the_objects_of_its_namespace() {
    install_olm();
    let (bed, cp) = (Bed::new(), control_plane());
    cp.apply_yaml(&bed.namespace());
    let blobs = [
        json!({"schema": "olm.package", "name": "p", "defaultChannel": "a"}),
        json!({"schema": "olm.channel", "package": "p", "name": "a",
            "entries": [{"name": "p.v1.0.0"}, {"name": "p.v1.1.0", "replaces": "p.v1.0.0"}]}),
    ];
    let bundle = |version: &str| {
        json!({"schema": "olm.bundle", "package": "p", "name": format!("p.v{version}"), "properties": [
            {"type": "olm.package", "value": {"packageName": "p", "version": version}}]})
    };
    let catalog: String =
        blobs.iter().chain(&[bundle("1.0.0"), bundle("1.1.0")]).map(|blob| format!("{blob}\n")).collect();
    bed.write("c.json", &catalog);
    let namespace = &bed.names.namespace;
    let subscription = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"name": "p", "channel": "a", "source": "c", "sourceNamespace": namespace}});
    bed.write("manifests.yaml", &subscription.to_string());
    let check = |user: &str| {
        let arguments =
            ["check", "-f", "manifests.yaml", "--preflight", "OperatorDependencies", "--catalog", "c=c.json"];
        bed.gantry(cp.kubeconfig(user), &arguments).run()
    };
    let nothing = format!("no operators found from catalog c in namespace {namespace} referenced by subscription p");
    check("admin").code(3).stdout_contains(&nothing).stdout_contains("p resolves to nothing");
    let source = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
        "metadata": {"name": "c", "namespace": namespace}, "spec": {}});
    cp.apply_yaml(&source.to_string());
    check("admin")
        .code(3)
        .stdout_contains("error[OperatorGroupInvalid]: expected 1 OperatorGroup in the namespace, found 0");
    let group = json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "g", "namespace": namespace}});
    cp.apply_yaml(&group.to_string());
    check("admin").code(0).stdout_contains(&format!("subscription {namespace}/p: p 1.1.0 (a, c, head of the channel)"));
    // OLM resolves all Subscriptions of the namespace together.
    let mut other = subscription.clone();
    (other["metadata"]["name"], other["spec"]["name"]) = ("other".into(), "nope".into());
    cp.apply_yaml(&other.to_string());
    check("admin")
        .code(3)
        .stdout_contains("no operators found in package nope")
        .stdout_contains("live Subscription other");
    let path = format!("/apis/operators.coreos.com/v1alpha1/namespaces/{namespace}/subscriptions/other");
    assert_eq!(cp.api().delete(&path).0, 200);
    // Without the right to list the OperatorGroups, it is unknown whether OLM resolves the namespace.
    let user = cp.user(&json!([
        {"apiGroups": ["operators.coreos.com"], "verbs": ["get", "list", "create", "patch"],
            "resources": ["clusterserviceversions", "subscriptions", "catalogsources"]},
    ]));
    check(&user).code(1).stdout_contains("the live OperatorGroups are unknown");
    // A ClusterServiceVersion that no Subscription refers to.
    let mut free = csv(&bed, "p.v1.0.0", &[], &[]);
    let properties =
        json!({"properties": [{"type": "olm.package", "value": {"packageName": "p", "version": "1.0.0"}}]});
    free["metadata"]["annotations"] = json!({"operatorframework.io/properties": properties.to_string()});
    cp.apply_yaml(&free.to_string());
    check("admin")
        .code(3)
        .stdout_contains("clusterserviceversion p.v1.0.0 exists and is not referenced by a subscription");
}
