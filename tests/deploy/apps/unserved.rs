//! Members of kinds that the server does not serve for now, and records that lead elsewhere.

use super::{Shop, names};
use crate::support::{Proxy, When, control_plane, eventually};
use serde_json::{Value, json};

/// An app with one custom resource. Its CRD is not part of the app.
fn with_custom_resource() -> Shop {
    let shop = Shop::new();
    control_plane().apply_yaml(&shop.bed.crd("first: {type: string}"));
    let served = format!("/apis/{}/v1", shop.bed.names.group);
    eventually("the CRD is served", || (control_plane().get(&served).0 == 200).then_some(()));
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "role"},
        "rules": []});
    shop.bed.write("manifests.yaml", &[shop.bed.sample(), role.to_string()].join("\n---\n"));
    shop.deploy(&["--wait=false"]).code(0).stdout_contains("2 created");
    shop
}

fn sample(shop: &Shop) -> u16 {
    control_plane().get(&shop.bed.sample_path()).0
}

fn serve(shop: &Shop, served: bool) {
    let (status, mut crd) = control_plane().get(&shop.bed.crd_path());
    assert_eq!(status, 200);
    crd["spec"]["versions"].as_array_mut().expect("versions").iter_mut().for_each(|version| {
        version["served"] = served.into();
    });
    crd["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    crd["metadata"].as_object_mut().expect("metadata").remove("managedFields");
    let (status, answer) = control_plane().patch(&shop.bed.crd_path(), &json!({"spec": crd["spec"]}));
    assert_eq!(status, 200, "{answer}");
    let path = format!("/apis/{}/v1", shop.bed.names.group);
    let expected = if served { 200 } else { 404 };
    eventually("the server notices it", || (control_plane().get(&path).0 == expected).then_some(()));
}

#[test]
fn members_of_a_crd_without_served_versions_are_not_forgotten() {
    let shop = with_custom_resource();
    let before = shop.inventory();
    serve(&shop, false);
    let crd = format!("although the CRD samples.{} exists", shop.bed.names.group);
    shop.admin(&["delete", "-a", "shop", "--yes"]).code(1).stdout_contains(&crd);
    shop.config_maps(&["a"]);
    shop.deploy(&["--prune=yes"]).code(1).stdout_contains(&crd);
    shop.deploy(&["--prune=no"]).code(0).stderr_contains(&crd);
    assert!(before.is_subset(&shop.inventory()));
    serve(&shop, true);
    shop.admin(&["delete", "-a", "shop", "--yes"]).code(0);
    assert_eq!((sample(&shop), shop.get("shop.gantry")), (404, None));
}

#[test]
fn members_of_kinds_that_discovery_lacks_once_are_not_forgotten() {
    let shop = with_custom_resource();
    let version = shop.parent()["metadata"]["resourceVersion"].clone();
    let nothing = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": []});
    for command in [&["delete", "-a", "shop", "--yes"][..], &["deploy", "-f", "manifests.yaml", "-a", "shop"]] {
        let proxy = Proxy::start(control_plane());
        proxy.answer(When::new("GET", "/apis").ending().nth(1), 200, nothing.clone());
        let output = shop.command(proxy.kubeconfig("admin"), command).run();
        output.code(1).stdout_contains("Role.rbac.authorization.k8s.io").stdout_contains("it is a built-in kind");
        output.stdout_contains(&format!("although the CRD samples.{} exists", shop.bed.names.group));
        assert_eq!(shop.parent()["metadata"]["resourceVersion"], version, "{output}");
    }
    shop.admin(&["delete", "-a", "shop", "--yes"]).code(0).stdout_contains("2 deleted");
    assert_eq!((sample(&shop), shop.get("shop.gantry")), (404, None));
}

#[test]
fn members_leave_the_record_when_their_crd_is_deleted() {
    let shop = with_custom_resource();
    control_plane().delete(&shop.bed.crd_path());
    eventually("the CRD to go", || (control_plane().get(&shop.bed.crd_path()).0 == 404).then_some(()));
    shop.config_maps(&["a"]);
    shop.deploy(&["--prune=yes", "--prune-max=9"]).code(0);
    assert_eq!(shop.inventory(), names(["a"]));
}

#[test]
fn a_record_whose_names_lead_to_other_paths_is_refused_without_a_request() {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    let whole = shop.parent();
    let namespace = &shop.bed.names.namespace;
    let line = |namespace: &str, name: &str| {
        json!({"data": {"inventory-sum": null,
        "inventory": format!("- ConfigMap {namespace} {name} u\n")}})
    };
    let annotation =
        |key: &str, value: &str| json!({"metadata": {"annotations": {format!("applyset.kubernetes.io/{key}"): value}}});
    for patch in [
        line(namespace, "../services/http:x:80/proxy/admin"),
        line(namespace, "x/proxy/admin"),
        line(namespace, "x%2fproxy"),
        line(namespace, ".."),
        line("x/pods/y", "a"),
        line("..", "a"),
        annotation("additional-namespaces", "x/pods/y/proxy"),
        annotation("additional-namespaces", ".."),
        annotation("contains-group-kinds", "../ConfigMap"),
    ] {
        shop.patch("shop.gantry", &patch);
        for command in [
            &["delete", "-a", "shop", "--yes"][..],
            &["inspect", "-a", "shop"],
            &["deploy", "-f", "manifests.yaml", "-a", "shop"],
        ] {
            let proxy = Proxy::start(control_plane());
            let output = shop.command(proxy.kubeconfig("admin"), command).run();
            output.code(1).stderr_contains("is damaged");
            let own = shop.bed.config_map_path("shop.gantry");
            let others: Vec<String> =
                proxy.requests().into_iter().map(|request| request.path).filter(|path| *path != own).collect();
            assert!(
                others.iter().all(|path| !path.contains("proxy") && !path.contains("%2") && !path.contains("..")),
                "{others:?}"
            );
        }
        let restored = json!({"data": whole["data"], "metadata": {"annotations": whole["metadata"]["annotations"]}});
        shop.patch("shop.gantry", &restored);
    }
    assert_eq!(shop.inventory(), names(["a"]));
    assert_ne!(shop.get("a").map(|object| object["metadata"]["uid"].clone()), Some(Value::Null));
}
