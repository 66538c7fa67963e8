//! Apps in several namespaces, and users who lack a right in one of them.

use super::{Shop, names};
use crate::support::rights::grant;
use crate::support::{Gantry, Proxy, control_plane};
use serde_json::{Value, json};

const ALL: [&str; 5] = ["get", "list", "create", "patch", "delete"];

/// An app with two members in each of two namespaces, of which one each has left the manifests.
struct TwoNamespaces {
    shop: Shop,
    other: Shop,
}

impl TwoNamespaces {
    fn new() -> Self {
        let (shop, other) = (Shop::new(), Shop::new());
        let object = |shop: &Shop, name| shop.config_map(name, "1");
        shop.write(&[object(&shop, "a"), object(&shop, "b"), object(&other, "c"), object(&other, "d")]);
        shop.deploy(&[]).code(0).stdout_contains("4 created");
        let two = TwoNamespaces { shop, other };
        two.write("2");
        two
    }

    fn write(&self, value: &str) {
        self.shop.write(&[self.shop.config_map("a", value), self.other.config_map("c", value)]);
    }

    /// A user with all rights in the namespace of the record, and without one verb in the other.
    fn user_without(&self, verb: &str) -> String {
        let cp = control_plane();
        let user = cp.user(&json!([]));
        for (shop, without) in [(&self.shop, ""), (&self.other, verb)] {
            let verbs: Vec<&str> = ALL.into_iter().filter(|one| *one != without).collect();
            let api = "rbac.authorization.k8s.io";
            let metadata = json!({"name": user, "namespace": shop.bed.names.namespace});
            // Revisions are kept in Secrets.
            let rules = [("configmaps", verbs), ("secrets", ALL.to_vec())]
                .map(|(resource, verbs)| json!({"apiGroups": [""], "resources": [resource], "verbs": verbs}));
            let role = json!({"apiVersion": format!("{api}/v1"), "kind": "Role", "metadata": metadata, "rules": rules});
            let binding = json!({"apiVersion": format!("{api}/v1"), "kind": "RoleBinding", "metadata": metadata,
                "roleRef": {"apiGroup": api, "kind": "Role", "name": user},
                "subjects": [{"kind": "User", "apiGroup": api, "name": user}]});
            grant(cp, &user, &format!("{role}\n---\n{binding}"));
        }
        user
    }

    fn deploy(&self, proxy: &Proxy, user: &str, flags: &[&str]) -> Gantry {
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop"];
        self.shop.command(proxy.kubeconfig(user), &[&arguments, flags].concat())
    }

    /// The value of each member, and the version of the record.
    fn state(&self) -> (Vec<Value>, Value) {
        let of =
            |(shop, name): (&Shop, &str)| shop.get(name).map(|object| object["data"]["a"].clone()).unwrap_or_default();
        let members = [(&self.shop, "a"), (&self.shop, "b"), (&self.other, "c"), (&self.other, "d")];
        (members.map(of).to_vec(), self.shop.parent()["metadata"]["resourceVersion"].clone())
    }
}

#[test]
fn a_namespace_that_cannot_be_listed_ends_a_deploy_that_prunes_before_it_writes() {
    let two = TwoNamespaces::new();
    let elsewhere = &two.other.bed.names.namespace;
    let before = two.state();
    let user = two.user_without("list");
    let proxy = Proxy::start(control_plane());
    let missing = format!("not permitted to \"list\" /v1, Resource=configmaps in namespace {elsewhere:?}");
    let unread = "could not look for members of the app shop";
    for (flags, code, message) in [
        (&["--prune=yes"][..], 1, unread),
        (&[], 1, unread),
        (&["--prune=yes", "--preflight", "PermissionValidation"], 3, &missing),
    ] {
        let output = two.deploy(&proxy, &user, flags).run();
        output.code(code).stdout_contains(message);
        output.stdout_contains(elsewhere).stdout_contains("--prune=no");
        assert_eq!((proxy.writes(), two.state()), (vec![], before.clone()), "{output}");
    }
    let output = two.deploy(&proxy, &user, &["--prune=no", "--preflight", "PermissionValidation"]).run();
    output.code(0).stdout_contains("2 updated").stderr_contains("could not look for members of the app shop");
    assert_eq!(two.state().0, ["2", "1", "2", "1"]);
    assert_eq!(two.shop.inventory(), names(["a", "b", "c", "d"]));

    two.shop.deploy(&["--prune=yes"]).code(0).stdout_contains("2 deleted");
    assert_eq!(two.state().0, [json!("2"), Value::Null, json!("2"), Value::Null]);
}

#[test]
fn a_namespace_in_which_nothing_may_be_deleted_ends_a_deploy_that_prunes_before_it_writes() {
    let two = TwoNamespaces::new();
    let elsewhere = &two.other.bed.names.namespace;
    let before = two.state();
    let proxy = Proxy::start(control_plane());
    // Without the right to read an object, a deploy cannot see it go.
    let (no_delete, no_get) = (two.user_without("delete"), two.user_without("get"));
    for (user, verb) in [(&no_delete, "delete"), (&no_get, "get")] {
        let output = two.deploy(&proxy, user, &["--prune=yes"]).run();
        output.code(1).stdout_contains(&format!("not permitted to {verb} configmap/d -n {elsewhere}"));
        output.stdout_contains(&format!("grant the verb {verb} on configmaps")).stdout_contains("--prune=no");
        output.contains_nowhere(&format!("not permitted to {verb} configmap/b"));
        assert_eq!((proxy.writes(), two.state()), (vec![], before.clone()), "{output}");

        let output = two.deploy(&proxy, user, &["--prune=yes", "--preflight", "PermissionValidation"]).run();
        let missing = format!("not permitted to \"{verb}\" /v1, Resource=configmaps in namespace {elsewhere:?}");
        output.code(3).stdout_contains(&missing).stdout_contains(&format!("configmap/d -n {elsewhere}"));
        if verb == "delete" {
            output.stdout_contains("deploy without pruning: --prune=no");
        }
        output.contains_nowhere(&format!("in namespace {:?}", two.shop.bed.names.namespace));
        assert_eq!((proxy.writes(), two.state()), (vec![], before.clone()), "{output}");
    }
    let output = two.deploy(&proxy, &no_delete, &["--prune=no", "--preflight", "PermissionValidation"]).run();
    output.code(0).stdout_contains("2 updated").stderr_contains("left the manifests and stay in the app shop");
    assert_eq!(two.state().0, ["2", "1", "2", "1"]);
}

#[test]
fn the_right_to_write_the_record_is_among_the_permissions_that_are_checked() {
    let two = TwoNamespaces::new();
    let elsewhere = two.other.bed.names.namespace.as_str();
    let deploy = |proxy: &Proxy, user: &str| {
        let arguments =
            ["deploy", "-f", "own.yaml", "-a", "own", "-n", elsewhere, "--preflight", "PermissionValidation"];
        two.shop.bed.gantry(proxy.kubeconfig(user), &arguments).run()
    };
    let write = |value| two.shop.bed.write("own.yaml", &two.shop.config_map("own", value).to_string());
    let proxy = Proxy::start(control_plane());
    let (no_patch, no_create) = (two.user_without("patch"), two.user_without("create"));
    write("1");
    for (user, verb) in [(&no_patch, "patch"), (&no_create, "create")] {
        let output = deploy(&proxy, user);
        output.code(3).stdout_contains(&format!("not permitted to \"{verb}\" /v1, Resource=configmaps"));
        output.stdout_contains(&format!("configmap/own.gantry -n {elsewhere}"));
        assert_eq!(proxy.writes(), [], "{output}");
    }
    deploy(&proxy, "admin").code(0);
    // A record that exists is only patched, and not at all if nothing changes.
    deploy(&proxy, &no_patch).code(0).stdout_contains("1 object unchanged");
    write("2");
    let writes = proxy.writes();
    deploy(&proxy, &no_patch).code(3).stdout_contains("configmap/own.gantry");
    assert_eq!(proxy.writes(), writes);
    deploy(&proxy, &no_create).code(0).stdout_contains("1 updated");
}

/// Each kind is looked for in every namespace of the app, and in that of its record.
#[test]
fn the_printed_rights_are_enough_for_later_deploys_of_kinds_in_different_namespaces() {
    let (cp, shop, other) = (control_plane(), Shop::new(), Shop::new());
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": other.bed.names.namespace}, "spec": {"ports": [{"port": 80}]}});
    let write = |value: &str| shop.write(&[shop.config_map("a", value), service.clone()]);
    write("1");
    let user = cp.user(&json!([]));
    let record = Shop::new().bed.names.namespace.clone();
    let of_app = ["-f", "manifests.yaml", "-a", "shop", "-n", &record];
    let permissions = [&["permissions", "--as", &user], &of_app[..]].concat();
    let printed = shop.bed.gantry(cp.kubeconfig("admin"), &permissions).run();
    grant(cp, &user, &printed.code(0).stdout);
    let deploy = || {
        let flags = ["--prune=yes", "--wait=false", "--preflight", "PermissionValidation"];
        shop.bed.gantry(cp.kubeconfig(&user), &[&["deploy"], &of_app[..], &flags].concat()).run()
    };
    deploy().code(0).stdout_contains("2 created");
    write("2");
    deploy().code(0).stdout_contains("1 updated");
}
