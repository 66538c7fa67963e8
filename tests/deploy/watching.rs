//! How a deploy notices that an object is ready: with one watch for each kind and namespace, and by polling without
//! one. The tests act as the controllers.

use crate::support::{Bed, ControlPlane, CrdBuilder, Proxy, Recorded, When, control_plane, eventually, rights};
use crate::waiting::{Stage, available, status};
use serde_json::{Value, json};

fn lists<'a>(requests: &'a [Recorded], plural: &str) -> Vec<&'a Recorded> {
    let is_list = |request: &&Recorded| request.method == "GET" && request.path.ends_with(plural);
    requests.iter().filter(is_list).collect()
}

fn is_watch(request: &Recorded) -> bool {
    request.query.contains("watch=true")
}

/// How often single objects of a kind were read.
fn reads(requests: &[Recorded], plural: &str) -> usize {
    let place = format!("{plural}/");
    requests.iter().filter(|request| request.method == "GET" && request.path.contains(&place)).count()
}

/// Waits until this many watches have started.
fn watched(proxy: &Proxy, number: usize) {
    eventually("the watch", || (proxy.requests().iter().filter(|one| is_watch(one)).count() >= number).then_some(()));
}

/// An answer to a watch: one line for each event.
fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

#[test]
fn objects_of_a_kind_are_watched_together_and_none_is_read_again() {
    let stage = Stage::new();
    let names = ["a", "b", "c"].map(|name| stage.deployment_named(name));
    let config = stage.config_map("config", json!({}));
    stage.write(&[&names[0], &names[1], &names[2], &config]);
    let proxy = Proxy::start(control_plane());
    let running = stage.deploy_as(proxy.kubeconfig("admin"), &[]).spawn();
    watched(&proxy, 1);
    names.iter().for_each(|name| status(name, available(2)));
    running.wait().code(0).stdout_contains("4 created");
    let requests = proxy.requests();
    let deployments = lists(&requests, "/deployments");
    let of_wait: Vec<bool> = deployments.iter().map(|request| is_watch(request)).collect();
    assert_eq!(of_wait, [false, true], "{deployments:?}");
    // The watch does not return objects of others.
    assert!(deployments.iter().all(|request| request.query.contains("labelSelector=applyset")), "{deployments:?}");
    assert!(deployments[1].query.contains("allowWatchBookmarks=true"), "{deployments:?}");
    assert!(!deployments[1].query.contains("resourceVersion=&") && deployments[1].query.contains("resourceVersion="));
    // Each was read for the plan; an object that is ready as soon as it is written is not read at all.
    assert_eq!((reads(&requests, "/deployments"), reads(&requests, "/configmaps/config")), (3, 0), "{requests:?}");
    assert_eq!(lists(&requests, "/configmaps"), Vec::<&Recorded>::new());

    // A single object is watched by its name, also without an app.
    stage.write(&[&stage.deployment_named("d")]);
    let proxy = Proxy::start(control_plane());
    let kubeconfig = proxy.kubeconfig("admin");
    let running =
        stage.bed.gantry(kubeconfig, &["deploy", "-f", "manifests.yaml", "-n", stage.namespace(), "--wait"]).spawn();
    watched(&proxy, 1);
    status(&stage.deployment_named("d"), available(2));
    running.wait().code(0);
    let requests = proxy.requests();
    assert!(
        lists(&requests, "/deployments")
            .iter()
            .all(|request| request.query.contains("fieldSelector=metadata.name%3Dd")),
        "{requests:?}"
    );
}

#[test]
fn a_watch_that_ends_expires_or_breaks_is_restarted() {
    let stage = Stage::new();
    let web = stage.deployment();
    stage.write(&[&web]);
    let proxy = Proxy::start(control_plane());
    let watch = |nth: usize| When::new("GET", "/deployments").query("watch=true").nth(nth);
    let gone = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old"});
    let json = "application/json";
    // Its resourceVersion is too old at the start, or later; the connection breaks off; the watch ends.
    proxy.answer(watch(1), 410, gone.clone());
    proxy.answer_as(watch(2), 200, json, &events(&[json!({"type": "ERROR", "object": gone})]));
    proxy.cut(watch(3));
    proxy.answer_as(watch(4), 200, json, &events(&[json!({"type": "ANY", "object": {}}), bookmark("1")]));
    let running = stage.deploy_as(proxy.kubeconfig("admin"), &[]).spawn();
    watched(&proxy, 5);
    status(&web, available(2));
    running.wait().code(0);
    let requests = proxy.requests();
    let lists = lists(&requests, "/deployments");
    // A list before the first watch, and after each one that had expired; the last one continues at the bookmark.
    let kinds: Vec<bool> = lists.iter().map(|request| is_watch(request)).collect();
    assert_eq!(kinds[..7], [false, true, false, true, false, true, true], "{lists:?}");
    let last = lists.iter().rev().find(|request| is_watch(request)).expect("a watch");
    assert!(last.query.contains("resourceVersion=1&") || kinds[7..].contains(&false), "{lists:?}");
}

fn bookmark(version: &str) -> Value {
    json!({"type": "BOOKMARK", "object": {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"resourceVersion": version}}})
}

#[test]
fn objects_that_cannot_be_watched_are_read_until_they_are_ready() {
    let cp = control_plane();
    let no_watch = json!([
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "create", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "patch", "update", "delete"]}]);
    let no_list = json!([
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "update", "delete"]}]);
    for rules in [no_watch, no_list] {
        let stage = Stage::new();
        let web = stage.deployment();
        stage.write(&[&web]);
        let proxy = Proxy::start(cp);
        let running = stage.deploy_as(proxy.kubeconfig(&cp.user(&rules)), &[]).spawn();
        eventually("it is read again", || (reads(&proxy.requests(), "/deployments") >= 3).then_some(()));
        status(&web, available(2));
        running.wait().code(0);
        // A forbidden request is not repeated.
        let asked = proxy.requests();
        assert!(lists(&asked, "/deployments").len() <= 2, "{asked:?}");
    }
    // The answer can come from something that is not an API server, or that does not support watches.
    for (kind, text) in [("text/html", "<html>log in</html>"), ("application/json", "{\"kind\":\"DeploymentList\"}\n")]
    {
        let stage = Stage::new();
        let web = stage.deployment();
        stage.write(&[&web]);
        let proxy = Proxy::start(cp);
        proxy.answer_as(When::new("GET", "/deployments").query("watch=true"), 200, kind, text);
        let running = stage.deploy_as(proxy.kubeconfig("admin"), &[]).spawn();
        eventually("it is read again", || (reads(&proxy.requests(), "/deployments") >= 3).then_some(()));
        status(&web, available(2));
        running.wait().code(0);
    }
}

#[test]
fn an_object_that_is_deleted_or_replaced_during_the_wait_has_failed() {
    for again in [false, true] {
        let stage = Stage::new();
        let web = stage.deployment();
        stage.write(&[&web]);
        let proxy = Proxy::start(control_plane());
        let running = stage.deploy_as(proxy.kubeconfig("admin"), &[]).spawn();
        watched(&proxy, 1);
        control_plane().delete(&control_plane().path_of(&web));
        if again {
            control_plane().apply_yaml(&web.to_string());
        }
        running.wait().code(5).stdout_contains("deployment.apps/web").stdout_contains("it was deleted");
    }
}

#[test]
fn an_object_that_loses_the_label_of_the_app_is_still_waited_for() {
    let stage = Stage::new();
    let (web, other) = (stage.deployment(), stage.deployment_named("other"));
    stage.write(&[&web, &other]);
    let proxy = Proxy::start(control_plane());
    let running = stage.deploy_as(proxy.kubeconfig("admin"), &[]).spawn();
    watched(&proxy, 1);
    let unlabelled = json!({"metadata": {"labels": {"applyset.kubernetes.io/part-of": null}}});
    assert_eq!(control_plane().patch(&control_plane().path_of(&web), &unlabelled).0, 200);
    eventually("it is read", || (reads(&proxy.requests(), "/deployments") >= 4).then_some(()));
    status(&other, available(2));
    status(&web, available(2));
    running.wait().code(0);
}

#[test]
fn a_server_that_is_restarted_is_watched_again() {
    let cp = ControlPlane::start();
    let stage = Stage::on(&cp);
    let web = stage.deployment();
    stage.write(&[&web]);
    let running = stage.deploy_as(cp.kubeconfig("admin"), &[]).spawn();
    eventually("the object", || (cp.get(&cp.path_of(&web)).0 == 200).then_some(()));
    cp.kill_api_server();
    cp.restart_api_server();
    crate::waiting::status_on(&cp, &web, available(2));
    running.wait().code(0);
}

#[test]
fn the_rights_to_watch_are_printed_and_block_nothing_if_missing() {
    let cp = control_plane();
    let stage = Stage::new();
    let web = stage.deployment();
    stage.write(&[&web, &stage.config_map("config", json!({}))]);
    let user = cp.user(&json!([]));
    let arguments = ["permissions", "-f", "manifests.yaml", "-a", "shop", "-n", stage.namespace(), "--as", &user];
    let printed = stage.bed.gantry(cp.kubeconfig("admin"), &arguments).run();
    printed.code(0);
    let roles = rights::grant(cp, &user, &printed.stdout);
    let of_kind = |plural: &str| {
        let rules = roles.iter().flat_map(|role| role["rules"].as_array().cloned().unwrap_or_default());
        let verbs = rules.filter(|rule| rule["resources"] == json!([plural])).map(|rule| rule["verbs"].to_string());
        verbs.collect::<String>()
    };
    assert!(of_kind("deployments").contains("watch"), "{printed}");
    assert!(!of_kind("configmaps").contains("watch"), "{printed}");

    let deploy = |user: &str, proxy: &Proxy, until: &dyn Fn()| {
        let running =
            stage.deploy_as(proxy.kubeconfig(user), &["--preflight", "PermissionValidation", "-o", "json"]).spawn();
        until();
        status(&web, available(2));
        let report = running.wait().code(0).report();
        let findings = report["checks"][0]["findings"].as_array().cloned().unwrap_or_default();
        let finding = |finding: &Value| (finding["rule"].clone(), finding["severity"].clone());
        (report["checks"][0]["status"].clone(), findings.iter().map(finding).collect::<Vec<_>>())
    };
    let proxy = Proxy::start(cp);
    // An object that is ready before the wait is not watched.
    assert_eq!(deploy(&user, &proxy, &|| watched(&proxy, 1)), (json!("passed"), Vec::new()));

    cp.delete(&cp.path_of(&web));
    let rule =
        |group: &str, plural: &str, verbs: Value| json!({"apiGroups": [group], "resources": [plural], "verbs": verbs});
    let verbs = json!(["get", "list", "create", "patch", "delete"]);
    // Revisions are kept in Secrets.
    let core = ["configmaps", "secrets"].map(|plural| rule("", plural, verbs.clone()));
    let blind = cp.user(&json!([rule("apps", "deployments", verbs), core[0], core[1]]));
    let proxy = Proxy::start(cp);
    let noted = vec![(json!("WatchNotPermitted"), json!("info"))];
    assert_eq!(deploy(&blind, &proxy, &|| ()), (json!("passed"), noted));
}

#[test]
fn crds_are_watched_from_their_write_and_read_once_more() {
    let cp = control_plane();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let own = json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
        "verbs": ["get", "create", "patch"]});
    for user in ["admin".to_owned(), cp.user(&json!([own]))] {
        // With other names each time: a server under load takes minutes to remove a CRD.
        let bed = Bed::new();
        let crds: Vec<Value> = ["Apple", "Pear", "Plum"].map(|kind| crd(&bed, kind)).into();
        bed.write("manifests.yaml", &crds.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n"));
        let proxy = Proxy::start(cp);
        bed.deploy(proxy.kubeconfig(&user), &[]).run().code(0).stdout_contains("3 created");
        let requests = proxy.requests();
        let of_kind = lists(&requests, path);
        let watches: Vec<&&Recorded> = of_kind.iter().filter(|request| is_watch(request)).collect();
        assert!(watches.iter().all(|request| request.query.contains("resourceVersion=")), "{of_kind:?}");
        assert_eq!((watches.len(), of_kind.len()), (1, 1), "no list of all that there are: {of_kind:?}");
        for crd in &crds {
            let path = cp.path_of(crd);
            let reads = requests.iter().filter(|request| request.method == "GET" && request.path == path).count();
            // For the plan, and when it is served. A user who may not watch polls.
            match user.as_str() {
                "admin" => assert!(reads <= 3, "{requests:#?}"),
                _ => assert!(reads >= 2, "{requests:#?}"),
            }
            cp.delete(&path);
        }
    }
}

#[test]
fn a_silent_watch_of_crds_costs_no_requests_and_fails_no_deploy() {
    let cp = control_plane();
    let bed = Bed::new();
    let crds: Vec<Value> = ["Apple", "Pear", "Plum", "Fig", "Date"].map(|kind| crd(&bed, kind)).into();
    bed.write("manifests.yaml", &crds.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n"));
    let proxy = Proxy::start(cp);
    let held = proxy.hold(When::new("GET", "/customresourcedefinitions").query("watch=true"));
    let deploy = bed.deploy(proxy.kubeconfig("admin"), &[]).env("GANTRY_TIMEOUTS__ESTABLISHED", "2s");
    deploy.run().code(0).stdout_contains("5 created");
    held.reached();
    for crd in &crds {
        let path = cp.path_of(crd);
        let requests = proxy.requests();
        let reads = requests.iter().filter(|request| request.method == "GET" && request.path == path).count();
        assert_eq!(reads, 2, "for the plan, and when time is over: {requests:#?}");
        cp.delete(&path);
    }
}

#[test]
fn the_time_limit_for_crds_starts_again_with_each_one_that_is_served() {
    let cp = control_plane();
    let bed = Bed::new();
    let crds: Vec<Value> = ["Apple", "Pear", "Plum"].map(|kind| crd(&bed, kind)).into();
    bed.write("manifests.yaml", &crds.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n"));
    let proxy = Proxy::start(cp);
    let watch = When::new("GET", "/customresourcedefinitions").query("watch=true");
    proxy.answer(watch, 403, json!({"kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden"}));
    // Without a watch, each is read again after pauses of 0.05 s, then twice as long each time, up to 1 s: these are
    // served about 1.5 s, 2.5 s and 3.5 s after they are written.
    for (crd, served_at) in crds.iter().zip([7, 8, 9]) {
        for nth in 2..served_at {
            proxy.answer(When::new("GET", &cp.path_of(crd)).nth(nth), 200, crd.clone());
        }
    }
    let deploy = bed.deploy(proxy.kubeconfig("admin"), &[]).env("GANTRY_TIMEOUTS__ESTABLISHED", "2s");
    deploy.run().code(0).stdout_contains("3 created");
    for crd in &crds {
        cp.delete(&cp.path_of(crd));
    }
}

fn crd(bed: &Bed, kind: &str) -> Value {
    CrdBuilder::new(&bed.names.group, kind).version("v1", json!({"type": "object"})).build()
}

#[test]
fn objects_in_deletion_are_watched_and_not_polled() {
    let cp = control_plane();
    let verbs = json!(["get", "list", "create", "patch", "update", "delete"]);
    let no_watch = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
    for user in ["admin".to_owned(), cp.user(&no_watch)] {
        let stage = Stage::new();
        let mut held = ["a", "b", "c"].map(|name| stage.config_map(name, json!({})));
        for object in &mut held {
            object["metadata"]["finalizers"] = json!(["shop.example.com/held"]);
        }
        let stays = stage.config_map("stays", json!({}));
        stage.write(&[&stays, &held[0], &held[1], &held[2]]);
        stage.deploy_as(cp.kubeconfig("admin"), &[]).run().code(0);
        stage.write(&[&stays]);
        let proxy = Proxy::start(cp);
        let running = stage.deploy_as(proxy.kubeconfig(&user), &["--prune=yes"]).spawn();
        watched(&proxy, 1);
        let reads = || -> usize { ["a", "b", "c"].map(|name| reads_of(&proxy.requests(), name)).iter().sum() };
        if user == "admin" {
            let before = reads();
            // Later changes arrive through the watch, without requests.
            for turn in 0..100 {
                let touched = json!({"metadata": {"annotations": {"turn": turn.to_string()}}});
                assert_eq!(cp.patch(&cp.path_of(&held[0]), &touched).0, 200);
            }
            // One round of requests can have been in progress.
            assert!(reads() <= before + held.len(), "{:#?}", proxy.requests());
        } else {
            let before = reads();
            eventually("they are read again", || (reads() >= before + 2 * held.len()).then_some(()));
        }
        let free = json!({"metadata": {"finalizers": null}});
        held.iter().for_each(|object| assert_eq!(cp.patch(&cp.path_of(object), &free).0, 200));
        running.wait().code(0).stdout_contains("3 deleted");
    }
}

/// How often a ConfigMap was read.
fn reads_of(requests: &[Recorded], name: &str) -> usize {
    let end = format!("/configmaps/{name}");
    requests.iter().filter(|request| request.method == "GET" && request.path.ends_with(&end)).count()
}

#[test]
fn an_object_that_others_wait_for_is_reported_once() {
    let stage = Stage::new();
    let mut web = stage.deployment();
    web["metadata"]["annotations"] = json!({"kapp.k14s.io/change-group": "g.example.com/web"});
    let after = json!({"kapp.k14s.io/change-rule": "upsert after upserting g.example.com/web"});
    stage.write(&[&web, &stage.config_map("after", after)]);
    for flags in [&["--wait-timeout=1s"][..], &["--wait-resource-timeout=1s"]] {
        let output = stage.deploy(&[flags, &["--keep-going", "-o", "json"]].concat()).run();
        let report = output.code(5).report();
        assert_eq!(report["errors"].as_array().map(Vec::len), Some(1), "{}", report["errors"]);
        assert!(
            report["errors"][0]["message"].as_str().is_some_and(|it| it.contains("deployment.apps/web")),
            "{report}"
        );
    }
}
