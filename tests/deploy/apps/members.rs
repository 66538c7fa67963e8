//! How the members of an app are read, and what happens if they change before they are deleted.

use super::{PART_OF, Shop, names};
use crate::support::{Proxy, When, control_plane};
use serde_json::{Value, json};

#[test]
fn members_are_read_by_lists_and_not_one_by_one() {
    let shop = Shop::new();
    let many: Vec<String> = (0..30).map(|index| format!("c{index}")).collect();
    shop.config_maps(&many.iter().map(String::as_str).collect::<Vec<_>>());
    shop.deploy(&[]).code(0);
    let proxy = Proxy::start(control_plane());
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &shop.bed.names.namespace];
    let run = || shop.bed.gantry(proxy.kubeconfig("admin"), &arguments).run();
    run().code(0).stdout_contains("30 objects unchanged");
    // One kind in one namespace: the record, two discovery requests for the members, two for the manifests, one list.
    let requests = proxy.requests();
    assert!(requests.len() <= 6, "{requests:#?}");
    // The listed objects are those that are compared and pinned.
    shop.patch("c7", &json!({"data": {"a": "2"}}));
    let output = run();
    output.code(3).stdout_contains(".data.a");
    assert_eq!(shop.get("c7").unwrap()["data"]["a"], "2");
}

#[test]
fn a_record_of_many_namespaces_costs_few_requests_and_never_thousands() {
    let shop = Shop::new();
    let namespace = &shop.bed.names.namespace;
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    let also_in = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("{namespace}-{n}")).collect();
        let annotations = json!({"applyset.kubernetes.io/additional-namespaces": names.join(",")});
        shop.patch("shop.gantry", &json!({"metadata": {"annotations": annotations}}));
    };
    let inspect = |proxy: &Proxy| {
        let output = shop.bed.gantry(proxy.kubeconfig("admin"), &["inspect", "-a", "shop", "-n", namespace]).run();
        (output, proxy.requests().iter().filter(|request| request.path.ends_with("/configmaps")).count())
    };
    also_in(3_000);
    let proxy = Proxy::start(control_plane());
    let (output, lists) = inspect(&proxy);
    output.code(0).stdout_contains("configmap/a");
    assert!(lists <= 2, "{lists} lists");
    // Who may not list all namespaces lists each of them, up to a limit.
    let forbidden = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "configmaps is forbidden: User \"x\" cannot list resource \"configmaps\" at the cluster scope"});
    for (count, fewest, most) in [(3_000, 0, 2), (40, 41, 43)] {
        also_in(count);
        let proxy = Proxy::start(control_plane());
        proxy.answer(When::new("GET", "/api/v1/configmaps"), 403, forbidden.clone());
        let (output, lists) = inspect(&proxy);
        output.code(0).stdout_contains("configmap/a");
        assert_eq!(output.stderr.contains("configmaps is forbidden"), count == 3_000, "{output}");
        assert!((fewest..=most).contains(&lists), "{count}: {lists} lists\n{output}");
    }
}

#[test]
fn a_member_of_which_only_the_status_changes_before_its_deletion_is_deleted() {
    let shop = Shop::new();
    let namespace = &shop.bed.names.namespace;
    let controller = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "a"},
        "spec": {"replicas": 0, "selector": {"app": "a"}, "template": {"metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "a", "image": "a"}]}}}});
    shop.write(&[controller]);
    shop.deploy(&["--wait=false"]).code(0);
    let proxy = Proxy::start(control_plane());
    let path = format!("/api/v1/namespaces/{namespace}/replicationcontrollers/a");
    for nth in 1..=2 {
        let path = path.clone();
        proxy.before(When::new("DELETE", &path.clone()).nth(nth), move || {
            let patch = json!({"status": {"replicas": nth}});
            let (status, answer) = control_plane().patch(&format!("{path}/status"), &patch);
            assert_eq!(status, 200, "{answer}");
        });
    }
    let arguments = ["delete", "-a", "shop", "-n", namespace, "--yes"];
    shop.bed.gantry(proxy.kubeconfig("admin"), &arguments).run().code(0);
    assert_eq!(control_plane().get(&path).0, 404);
    let deletions = proxy.requests().into_iter().filter(|request| request.method == "DELETE" && request.path == path);
    assert_eq!(deletions.count(), 3, "two of them met another version");
}

#[test]
fn a_member_whose_content_or_finalizers_change_before_its_deletion_is_checked_again() {
    let with = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let cases =
        [(json!({"data": {"changed": "1"}}), json!({})), (with(json!(["shop.example.com/hold"])), with(json!([])))];
    for (change, restore) in cases {
        let shop = Shop::new();
        shop.config_maps(&["a", "b"]);
        shop.deploy(&[]).code(0);
        shop.config_maps(&["b"]);
        let proxy = Proxy::start(control_plane());
        let path = shop.bed.config_map_path("a");
        let patch = change.clone();
        proxy.before(When::new("DELETE", &path.clone()).nth(1), move || {
            let (status, answer) = control_plane().patch(&path, &patch);
            assert_eq!(status, 200, "{answer}");
        });
        let flags = ["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes"];
        let output = shop.command(proxy.kubeconfig("admin"), &flags).run();
        output.code(1).stdout_contains("changed after it was checked; it was not deleted");
        let live = shop.get("a").unwrap_or_else(|| panic!("{change}: it is deleted\n{output}"));
        assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{change}");
        shop.patch("a", &restore);
        shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
        assert_eq!(shop.get("a"), None, "{change}");
    }
}

#[test]
fn a_member_whose_finalizer_is_removed_before_its_deletion_is_deleted() {
    let shop = Shop::new();
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(0);
    shop.patch("a", &json!({"metadata": {"finalizers": ["shop.example.com/hold"]}}));
    let proxy = Proxy::start(control_plane());
    let path = shop.bed.config_map_path("a");
    proxy.before(When::new("DELETE", &path.clone()).nth(1), move || {
        let (status, answer) = control_plane().patch(&path, &json!({"metadata": {"finalizers": null}}));
        assert_eq!(status, 200, "{answer}");
    });
    let arguments = ["delete", "-a", "shop", "-n", &shop.bed.names.namespace, "--yes"];
    shop.bed.gantry(proxy.kubeconfig("admin"), &arguments).run().code(0);
    assert_eq!((shop.get("a"), shop.get("b")), (None, None));
}

#[test]
fn a_member_that_is_another_object_before_its_deletion_is_kept() {
    let shop = Shop::new();
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(0);
    let proxy = Proxy::start(control_plane());
    let path = shop.bed.config_map_path("a");
    let mut other = shop.get("a").unwrap();
    other["metadata"] = json!({"name": "a", "labels": other["metadata"]["labels"]});
    proxy.before(When::new("DELETE", &path.clone()).nth(1), move || {
        control_plane().delete(&path);
        let (status, answer) = control_plane().post(path.trim_end_matches("/a"), &other);
        assert_eq!(status, 201, "{answer}");
    });
    let arguments = ["delete", "-a", "shop", "-n", &shop.bed.names.namespace, "--yes"];
    let output = shop.bed.gantry(proxy.kubeconfig("admin"), &arguments).run();
    output.code(1).stdout_contains("was deleted and created again after it was checked");
    assert!(shop.get("a").is_some());
}

#[test]
fn a_member_whose_reason_for_deletion_ends_before_its_deletion_is_kept() {
    let controller = |shop: &Shop| {
        let uid = shop.get("b").expect("it is there")["metadata"]["uid"].clone();
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "controller": true, "uid": uid}])
    };
    type Patch<'a> = &'a dyn Fn(&Shop) -> Value;
    let cases: [(Patch<'_>, &str); 3] = [
        (&|_| json!({"labels": {PART_OF: null}}), "is not deleted: it no longer carries the label of the app"),
        (
            &|_| json!({"annotations": {"gantry.dev/prune": "keep"}}),
            "leaves the app and stays in the cluster: its annotation says gantry.dev/prune: keep",
        ),
        (
            &|shop| json!({"ownerReferences": controller(shop)}),
            "leaves the app and stays in the cluster: ConfigMap b controls it",
        ),
    ];
    for (metadata, why) in cases {
        let shop = Shop::new();
        shop.config_maps(&["a", "b"]);
        shop.deploy(&[]).code(0);
        shop.config_maps(&["b"]);
        let (path, patch) = (shop.bed.config_map_path("a"), json!({"metadata": metadata(&shop)}));
        let proxy = Proxy::start(control_plane());
        proxy.before(When::new("DELETE", &path.clone()).nth(1), move || {
            let (status, answer) = control_plane().patch(&path, &patch);
            assert_eq!(status, 200, "{answer}");
        });
        let flags = ["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes"];
        let output = shop.command(proxy.kubeconfig("admin"), &flags).run();
        let message = "changed after it was checked; it was not deleted";
        let said = format!("configmap/a -n {} {message}", shop.bed.names.namespace);
        output.code(1).stdout_contains(&said).stdout_contains("run the same command again");
        let stays = |output| {
            let live = shop.get("a").unwrap_or_else(|| panic!("{why}: it is deleted\n{output}"));
            assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{why}");
        };
        stays(&output);
        assert_eq!((&shop.last()["outcome"], &shop.last()["reasons"]), (&json!("failed"), &json!([said])));

        // The same command checks again.
        let output = shop.deploy(&["--prune=yes"]);
        output.code(0).stderr_contains(&format!("configmap/a -n {} {why}", shop.bed.names.namespace));
        stays(&output);
        assert_eq!((shop.inventory(), &shop.last()["outcome"]), (names(["b"]), &json!("applied")), "{why}");
    }
}

#[test]
fn a_thousand_unchanged_members_need_one_list_for_each_kind_and_namespace() {
    let (shop, other) = (Shop::new(), Shop::new());
    let namespaces = [&shop.bed.names.namespace, &other.bed.names.namespace];
    const RBAC: &str = "rbac.authorization.k8s.io";
    let object = |kind: &str, namespace: &str, index: usize| {
        let api_version = if kind.starts_with("Role") { format!("{RBAC}/v1") } else { "v1".to_owned() };
        let metadata = json!({"name": format!("m{index}"), "namespace": namespace});
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata});
        match kind {
            "Role" => object["rules"] = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            "RoleBinding" => {
                object["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": "m0"});
                object["subjects"] = json!([{"apiGroup": RBAC, "kind": "Group", "name": "team"}]);
            }
            "Secret" => object["data"] = json!({"a": "Yg=="}),
            "ConfigMap" => object["data"] = json!({"a": "b"}),
            _ => {}
        }
        object.to_string()
    };
    let kinds = ["ConfigMap", "Secret", "ServiceAccount", "Role", "RoleBinding"];
    let mut texts = Vec::new();
    for kind in kinds {
        for namespace in namespaces {
            texts.extend((0..100).map(|index| object(kind, namespace, index)));
        }
    }
    let manifests = texts.join("\n---\n");
    shop.bed.write("manifests.yaml", &manifests);
    shop.deploy(&[]).code(0).stdout_contains("1000 created");
    // The same files, and files that differ only in comments.
    for text in [manifests.clone(), format!("# A comment.\n{manifests}")] {
        shop.bed.write("manifests.yaml", &text);
        let proxy = Proxy::start(control_plane());
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", namespaces[0]];
        let output = shop.bed.gantry(proxy.kubeconfig("admin"), &arguments).run();
        output.code(0).stdout_contains("1000 objects unchanged");
        let requests = proxy.requests();
        // The lists, and others whose number does not depend on the members.
        assert!(requests.len() <= kinds.len() * namespaces.len() + 6, "{}: {requests:#?}", requests.len());
        assert_eq!(proxy.writes(), []);
    }
}

#[test]
fn an_object_with_a_space_in_its_name_is_a_member_like_others() {
    let shop = Shop::new();
    let name = format!("reader of {}", shop.bed.names.group);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": []});
    shop.write(&[shop.config_map("a", "1"), role]);
    shop.deploy(&[]).code(0).stdout_contains("2 created");
    shop.deploy(&[]).code(0).stdout_contains("2 objects unchanged");
    shop.config_maps(&["a"]);
    shop.deploy(&["--prune=yes", "--prune-max=9"]).code(0).stdout_contains("1 deleted");
    let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{}", name.replace(' ', "%20"));
    assert_eq!(control_plane().get(&path).0, 404);
}

#[test]
fn an_object_that_the_manifests_name_under_another_group_is_not_deleted() {
    let shop = Shop::new();
    let namespace = &shop.bed.names.namespace;
    let common = json!({"metadata": {"name": "said", "namespace": namespace}, "kind": "Event", "reason": "Tested",
        "type": "Normal", "action": "Test", "eventTime": "2026-01-01T00:00:00.000000Z", "reportingInstance": "test-1"});
    let about = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": namespace});
    let with = |fields: Value| {
        let mut event = common.clone();
        event.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        event
    };
    let core = json!({"apiVersion": "v1", "involvedObject": about, "message": "so", "reportingComponent": "test"});
    let moved =
        json!({"apiVersion": "events.k8s.io/v1", "regarding": about, "note": "so", "reportingController": "test"});
    let uid = || control_plane().get(&control_plane().path_of(&with(core.clone()))).1["metadata"]["uid"].clone();
    shop.write(&[with(core.clone()), shop.config_map("a", "1")]);
    shop.deploy(&[]).code(0).stdout_contains("2 created");
    let before = uid();
    shop.write(&[with(moved), shop.config_map("a", "1")]);
    let report = shop.deploy(&["--prune=yes", "-o", "json"]).code(0).report();
    assert_eq!((&report["summary"]["deleted"], &report["summary"]["created"]), (&json!(0), &json!(0)), "{report}");
    assert_eq!(uid(), before);
    // It is still one member, which is deleted when it leaves the manifests.
    assert_eq!(shop.parent()["data"]["inventory"].as_str().expect("an inventory").lines().count(), 2);
    shop.config_maps(&["a"]);
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
    assert_eq!(uid(), Value::Null);
}

#[test]
fn a_list_of_members_that_fails_ends_a_deploy_that_prunes_before_it_writes() {
    let shop = Shop::new();
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(0);
    shop.write(&[shop.config_map("a", "2")]);
    let status = |code: u16, reason: &str, message: &str| {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
            "message": message})
    };
    let expired = status(410, "Expired", "the provided resource version is too old");
    let members = || When::new("GET", "/configmaps").query("labelSelector=");
    type Fault<'a> = &'a dyn Fn(&Proxy);
    let faults: [(Fault<'_>, &str); 3] = [
        (&|proxy| proxy.answer(members(), 500, status(500, "InternalError", "no leader")), "no leader"),
        (&|proxy| proxy.answer(members(), 410, expired.clone()), "dropped the list of configmaps twice"),
        (&|proxy| proxy.cut(members()), "closed the connection before the response was complete"),
    ];
    for (set, message) in faults {
        let run = |arguments: &[&str]| {
            let proxy = Proxy::start(control_plane());
            set(&proxy);
            let output = shop.command(proxy.kubeconfig("admin"), arguments).run();
            output.code(1).stdout_contains("could not look for members of the app shop").stdout_contains(message);
            assert_eq!((proxy.writes(), shop.inventory()), (vec![], names(["a", "b"])), "{output}");
            assert!(shop.get("b").is_some(), "{output}");
            assert_eq!(shop.get("a").expect("it is there")["data"]["a"], "1", "{output}");
        };
        let deploy = ["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes"];
        run(&deploy);
        run(&[&deploy[..], &["--yes", "--force-conflicts"]].concat());
        run(&["delete", "-a", "shop", "--yes"]);
    }
    // A list that expires once starts over.
    let proxy = Proxy::start(control_plane());
    proxy.answer(members().nth(1), 410, expired.clone());
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes"];
    let output = shop.command(proxy.kubeconfig("admin"), &arguments).run();
    output.code(0).stdout_contains("1 updated").stdout_contains("1 deleted");
}
