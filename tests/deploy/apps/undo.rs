//! Revisions of an app: what each deploy keeps, and going back to one.

use super::{PART_OF, Shop, names};
use crate::support::{Bed, Output, Proxy, When, control_plane, results};
use serde_json::{Value, json};

impl Shop {
    pub fn rollback(&self, flags: &[&str]) -> Output {
        self.admin(&[&["rollback", "-a", "shop", "--yes"], flags].concat())
    }

    /// The entries of `gantry history`.
    pub fn history(&self) -> Vec<Value> {
        let output = self.admin(&["history", "-a", "shop", "-o", "json"]);
        let history: Value = serde_json::from_str(&output.code(0).stdout).expect("JSON");
        history["revisions"].as_array().expect("a list").clone()
    }

    /// The number and the outcome of each revision.
    pub fn outcomes(&self) -> Vec<(u64, String)> {
        let entry = |it: &Value| {
            (it["revision"].as_u64().expect("a number"), it["outcome"].as_str().expect("an outcome").to_owned())
        };
        self.history().iter().map(entry).collect()
    }

    /// The Secrets of the namespace whose name begins with this.
    pub fn secrets(&self, prefix: &str) -> Vec<Value> {
        let path = format!("/api/v1/namespaces/{}/secrets", self.bed.names.namespace);
        let (_, list) = control_plane().get(&path);
        let is_one = |secret: &&Value| secret["metadata"]["name"].as_str().is_some_and(|name| name.starts_with(prefix));
        list["items"].as_array().expect("items").iter().filter(is_one).cloned().collect()
    }

    fn secret(&self, name: &str) -> Option<Value> {
        self.secrets(name).into_iter().find(|secret| secret["metadata"]["name"] == name)
    }

    /// Deploys ConfigMap `a` with this value.
    pub fn deploy_value(&self, value: &str, flags: &[&str]) -> Output {
        self.write(&[self.config_map("a", value)]);
        self.deploy(flags)
    }

    pub fn value(&self) -> Value {
        self.get("a").expect("a")["data"]["a"].clone()
    }
}

pub fn deployment(bed: &Bed, image: &str) -> Value {
    let labels = json!({"app": "web"});
    let container = json!({"name": "c", "image": image});
    bed.object(
        "apps/v1",
        "Deployment",
        "web",
        json!({"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [container]}}}}),
    )
}

#[test]
fn a_rollback_restores_values_and_removed_objects_and_prunes_added_ones() {
    let shop = Shop::new();
    let image = || {
        let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", shop.bed.names.namespace);
        control_plane().get(&path).1["spec"]["template"]["spec"]["containers"][0]["image"].clone()
    };
    let wait = ["--wait=false", "--prune=yes"];
    shop.write(&[deployment(&shop.bed, "web:1"), shop.config_map("a", "1"), shop.config_map("removed", "1")]);
    shop.deploy(&wait).code(0);
    shop.write(&[deployment(&shop.bed, "web:2"), shop.config_map("a", "2"), shop.config_map("added", "2")]);
    shop.deploy(&wait).code(0);
    assert_eq!((image(), shop.value()), (json!("web:2"), json!("2")));
    let history = shop.history();
    let counts = |it: &Value| ["created", "updated", "deleted"].map(|what| it["changes"][what]["count"].clone());
    assert_eq!(counts(&history[1]), [json!(1), json!(2), json!(1)]);
    let deleted = history[1]["changes"]["deleted"]["names"][0].as_str().unwrap().to_owned();
    assert!(deleted.starts_with("configmap/removed"), "{deleted}");
    assert_eq!((&history[1]["user"], &history[1]["current"]), (&json!("admin"), &json!(true)));

    // What it would change, without changing it.
    let diff = shop.admin(&["diff", "-a", "shop", "--to", "1"]);
    diff.code(0).stdout_contains("web:1").stderr_contains("configmap/added");
    shop.rollback(&["--dry-run", "--wait=false"]).code(0).stdout_contains("dry run");
    assert_eq!((image(), shop.outcomes().len()), (json!("web:2"), 2));

    let output = shop.rollback(&[&wait[..], &["-o", "json"]].concat());
    let report = output.code(0).report();
    let changed = results(&report);
    assert!(changed.iter().any(|(name, result)| name.ends_with("added") && result == "deleted"), "{changed:?}");
    assert_eq!((image(), shop.value()), (json!("web:1"), json!("1")));
    assert_eq!(shop.inventory(), names(["web", "a", "removed"]));
    assert!(shop.get("added").is_none() && shop.get("removed").is_some());
    let last = shop.history().pop().unwrap();
    assert_eq!((&last["revision"], &last["rollbackTo"], &last["current"]), (&json!(3), &json!(1), &json!(true)));

    // It is the state of the first manifests, so a rollback to it has nothing to do, and the default is the other one.
    shop.rollback(&[&wait[..], &["1"]].concat()).code(0).stdout_contains("Nothing to do");
    shop.write(&[deployment(&shop.bed, "web:1"), shop.config_map("a", "1"), shop.config_map("removed", "1")]);
    shop.deploy(&wait).code(0).stdout_contains("Nothing to do");
    assert_eq!(shop.outcomes().len(), 3);
    shop.rollback(&wait).code(0);
    assert_eq!((image(), shop.value()), (json!("web:2"), json!("2")));
}

#[test]
fn a_revision_takes_three_requests_and_none_where_nothing_is_written() {
    let shop = Shop::new();
    shop.deploy_value("1", &[]).code(0);
    let proxy = Proxy::start(control_plane());
    let deploy = |flags: &[&str]| {
        let arguments = [&["deploy", "-f", "manifests.yaml", "-a", "shop"], flags].concat();
        shop.command(proxy.kubeconfig("admin"), &arguments).run().code(0);
    };
    let of_secrets = || {
        let all = proxy.requests().into_iter().filter(|it| it.path.contains("/secrets")).map(|it| it.method);
        all.collect::<Vec<_>>()
    };
    deploy(&[]);
    shop.write(&[shop.config_map("a", "2")]);
    deploy(&["--dry-run"]);
    assert_eq!(of_secrets(), Vec::<String>::new());
    deploy(&["--history=0"]);
    assert_eq!(of_secrets(), Vec::<String>::new());
    shop.write(&[shop.config_map("a", "3")]);
    deploy(&[]);
    assert_eq!(of_secrets(), ["GET", "PATCH", "PATCH"]);
}

#[test]
fn only_the_last_revisions_are_kept() {
    let shop = Shop::new();
    for value in 1..=4 {
        shop.deploy_value(&value.to_string(), &["--history=2"]).code(0);
    }
    assert_eq!(shop.outcomes().iter().map(|it| it.0).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(shop.secrets("shop.gantry.r").len(), 2);
    let gone = shop.rollback(&["1"]);
    gone.code(1).stderr_contains("has no revision 1").stderr_contains("revisions 3, 4 are kept");
    // The number of a configuration file and of a variable count, too.
    shop.bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\nhistory: 1\n");
    shop.deploy_value("5", &[]).code(0);
    assert_eq!(shop.outcomes().iter().map(|it| it.0).collect::<Vec<_>>(), [5]);
    shop.write(&[shop.config_map("a", "6")]);
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop"];
    shop.command(control_plane().kubeconfig("admin"), &arguments).env("GANTRY_HISTORY", "0").run().code(0);
    assert_eq!(shop.outcomes().iter().map(|it| it.0).collect::<Vec<_>>(), [5]);
    assert!(shop.history().iter().all(|it| it["current"] == false), "the manifests of this deploy are not kept");
    shop.deploy(&["--history=101"]).code(2).stderr_contains("not a number from 0 to 100");
}

#[test]
fn the_values_of_secrets_are_kept_only_there_or_not_at_all() {
    let shop = Shop::new();
    let write = |value: &str| {
        let secret = shop.bed.object("v1", "Secret", "key", json!({"stringData": {"k": value}}));
        shop.write(&[secret, shop.config_map("a", value)]);
    };
    let live = || shop.secret("key").expect("the Secret")["data"]["k"].clone();
    write("one");
    shop.deploy(&[]).code(0);
    write("two");
    shop.deploy(&["--history-secrets=false"]).code(0);
    write("three");
    shop.deploy(&[]).code(0);
    let kept = shop.secrets("shop.gantry.r");
    assert_eq!(kept.len(), 3);
    // Nothing in their metadata, and nothing in the record.
    for object in kept.iter().chain([&shop.parent()]) {
        let metadata = object["metadata"].to_string();
        assert!(!metadata.contains("one") && !metadata.contains("b25l"), "{metadata}");
        assert!(object["metadata"]["labels"].get(PART_OF).is_none());
    }

    // The second revision does not have the value: what is live stays.
    let output = shop.rollback(&["2"]);
    output.code(0).stderr_contains("secret/key").stderr_contains("does not keep its values, so what is live stays");
    assert_eq!((live(), shop.value()), (json!("dGhyZWU="), json!("two")));
    assert_eq!(shop.inventory(), names(["key", "a"]));
    let annotations = shop.secret("key").unwrap()["metadata"]["annotations"].to_string();
    assert!(!annotations.contains("gantry.dev"), "{annotations}");
    shop.rollback(&["1"]).code(0);
    assert_eq!((live(), shop.value()), (json!("b25l"), json!("one")));
    let path = format!("/api/v1/namespaces/{}/secrets/key", shop.bed.names.namespace);
    assert_eq!(control_plane().delete(&path).0, 200);
    let missing = shop.rollback(&["2"]);
    missing.code(1).stdout_contains("nothing is live").stdout_contains("create it first");
    assert_eq!(shop.value(), json!("one"), "nothing is written");
}

#[test]
fn large_manifests_are_split() {
    let shop = Shop::new();
    let noise = |seed: u64| {
        let mut state = seed;
        let mut next = || {
            // xorshift: does not compress.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'!' + (state % 90) as u8)
        };
        (0..900_000).map(|_| next()).filter(|c| *c != '"' && *c != '\\').collect::<String>()
    };
    let names_of = ["a", "b", "c"];
    let write = |salt: u64| {
        let objects: Vec<Value> =
            names_of.iter().zip(1..).map(|(name, seed)| shop.config_map(name, &noise(seed * 7919 + salt))).collect();
        shop.write(&objects);
        objects
    };
    let first = write(1);
    shop.deploy(&[]).code(0);
    let secrets = shop.secrets("shop.gantry.r1.");
    assert!(secrets.len() >= 3, "{}", secrets.len());
    write(2);
    shop.deploy(&[]).code(0);
    shop.rollback(&[]).code(0);
    for (name, object) in names_of.iter().zip(&first) {
        assert!(shop.get(name).unwrap()["data"] == object["data"], "{name}");
    }
    // A revision without one of its parts does not count.
    let part = secrets.iter().map(|it| it["metadata"]["name"].as_str().unwrap()).find(|it| it.ends_with(".p2"));
    let path = format!("/api/v1/namespaces/{}/secrets/{}", shop.bed.names.namespace, part.expect("a part"));
    assert_eq!(control_plane().delete(&path).0, 200);
    shop.rollback(&["1"]).code(1).stderr_contains("revision 1 of the app shop is damaged").stderr_contains(".p2");
}

#[test]
fn the_definition_of_a_kind_goes_back_or_says_why_not_before_anything_is_written() {
    let shop = Shop::new();
    let group = &shop.bed.names.group;
    let crd = |versions: &[(&str, bool)]| {
        let mut crd = serde_yaml::from_str::<Value>(&shop.bed.crd("first: {type: string}")).unwrap();
        let version = crd["spec"]["versions"][0].clone();
        let version = |(name, storage): &(&str, bool)| {
            let mut version = version.clone();
            version["name"] = (*name).into();
            version["storage"] = (*storage).into();
            version
        };
        crd["spec"]["versions"] = versions.iter().map(version).collect();
        crd
    };
    let served = || {
        let crd = control_plane().get(&shop.bed.crd_path()).1;
        let versions = crd["spec"]["versions"].as_array().expect("versions").clone();
        versions.iter().map(|version| version["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let deploy = |versions: &[(&str, bool)], value: &str| {
        shop.write(&[crd(versions), shop.config_map("a", value)]);
        shop.deploy(&["--wait=crds"]).code(0);
    };
    deploy(&[("v1", true)], "1");
    deploy(&[("v1", true), ("v2", false)], "2");
    // The new version stored nothing yet, so it can go.
    let back = shop.rollback(&["--wait=crds", "--warn-only"]);
    back.code(0);
    assert_eq!((served(), shop.value()), (vec!["v1".to_owned()], json!("1")));
    deploy(&[("v1", false), ("v2", true)], "3");
    let stored = control_plane().get(&shop.bed.crd_path()).1["status"]["storedVersions"].clone();
    assert_eq!(stored, json!(["v1", "v2"]));
    let count = shop.outcomes().len();
    let refused = shop.rollback(&["1", "--wait=crds"]);
    refused.code(3).stdout_contains("NoStoredVersionRemoved").stdout_contains(group);
    assert_eq!((shop.value(), shop.outcomes().len()), (json!("3"), count), "nothing is written");
}

#[test]
fn a_deploy_that_fails_names_the_command_that_goes_back() {
    let shop = Shop::new();
    let namespace = shop.bed.names.namespace.clone();
    let fail = |proxy: &Proxy| {
        let message = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
            "reason": "Forbidden", "message": "admission webhook \"w\" denied the request: no"});
        proxy.answer(When::new("PATCH", "/configmaps/b").query("fieldManager"), 403, message);
    };
    let deploy = |value: &str, kubeconfig: &std::path::Path| {
        shop.write(&[shop.config_map("a", value), shop.config_map("b", value)]);
        let flags = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &namespace, "--kubeconfig"];
        shop.bed.gantry(kubeconfig.to_owned(), &flags).arg(kubeconfig).run()
    };
    let admin = control_plane().kubeconfig("admin");
    {
        // The first deploy has nothing to go back to.
        let proxy = Proxy::start(control_plane());
        fail(&proxy);
        let output = deploy("0", &proxy.kubeconfig("admin"));
        output.code(1).contains_nowhere("gantry rollback");
    }
    deploy("1", &admin).code(0);
    let proxy = Proxy::start(control_plane());
    fail(&proxy);
    let output = deploy("2", &proxy.kubeconfig("admin"));
    output.code(1).stderr_contains("to go back to it: gantry rollback 2 -a shop -n");
    assert_eq!(shop.outcomes().iter().map(|it| it.1.as_str()).collect::<Vec<_>>(), ["failed", "deployed", "failed"]);
    let history = shop.history();
    assert!(history[2]["reasons"].to_string().contains("configmap/b"), "{history:?}");
    // The command works as it is printed.
    let command = output.stderr.split("to go back to it: ").nth(1).expect("a command");
    let command = command.lines().next().unwrap().trim_end_matches(')');
    let words = shlex::split(command).expect("a command line");
    assert_eq!(words[0], "gantry");
    let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    shop.bed.gantry(admin.clone(), &arguments).run().code(0);
    assert_eq!((shop.value(), shop.get("b").unwrap()["data"]["a"].clone()), (json!("1"), json!("1")));
}

#[test]
fn a_killed_deploy_leaves_a_revision_that_does_not_count_as_deployed() {
    let shop = Shop::new();
    shop.deploy_value("1", &[]).code(0);
    // Held: the first object after the revision was written.
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new("PATCH", "/configmaps/a"));
    shop.write(&[shop.config_map("a", "2")]);
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop"];
    let mut running = shop.command(proxy.kubeconfig("admin"), &arguments).spawn();
    held.reached();
    let in_progress = shop.history().pop().unwrap();
    assert_eq!((&in_progress["outcome"], &in_progress["current"]), (&json!("inProgress"), &json!(true)));
    running.kill();
    drop(running);
    proxy.refuse();
    assert_eq!(shop.outcomes(), [(1, "deployed".to_owned()), (2, "interrupted".to_owned())]);
    assert_eq!(shop.value(), json!("1"));
    // The next deploy of the same manifests is a revision of its own.
    shop.deploy(&[]).code(0);
    assert_eq!(shop.outcomes().last().unwrap(), &(3, "deployed".to_owned()));
    shop.rollback(&[]).code(0);
    assert_eq!(shop.value(), json!("1"));
}

#[test]
fn parts_without_a_head_are_no_revision_and_are_removed() {
    let shop = Shop::new();
    shop.deploy_value("1", &[]).code(0);
    let first = shop.secrets("shop.gantry.r1.").remove(0);
    let labels = first["metadata"]["labels"].clone();
    let metadata = json!({"name": "shop.gantry.r2.abcdef.p2", "namespace": shop.bed.names.namespace, "labels": labels});
    control_plane().apply_yaml(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"manifests": "eA=="}}).to_string(),
    );
    assert_eq!(shop.outcomes(), [(1, "deployed".to_owned())]);
    shop.deploy_value("2", &[]).code(0);
    assert_eq!(shop.outcomes().len(), 2);
    assert!(shop.secret("shop.gantry.r2.abcdef.p2").is_none());
}

#[test]
fn a_deploy_that_was_not_ready_is_deployed_once_it_is() {
    let shop = Shop::new();
    shop.write(&[deployment(&shop.bed, "web:1")]);
    shop.deploy(&["--wait-timeout=1s"]).code(5);
    assert_eq!(shop.outcomes(), [(1, "notReady".to_owned())]);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments/web", shop.bed.names.namespace);
    let status = json!({"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
        "availableReplicas": 1}});
    assert_eq!(control_plane().patch(&format!("{path}/status"), &status).0, 200);
    shop.deploy(&[]).code(0).stdout_contains("Nothing to do");
    assert_eq!(shop.outcomes(), [(1, "deployed".to_owned())]);
    assert_eq!(shop.history()[0]["current"], true);
}

#[test]
fn revisions_go_with_the_app_and_follow_its_name() {
    let shop = Shop::new();
    let namespace = shop.bed.names.namespace.clone();
    for value in ["1", "2"] {
        shop.deploy_value(value, &[]).code(0);
    }
    shop.admin(&["apps", "rename", "-a", "shop", "--to", "store", "--yes"]).code(0);
    shop.admin(&["rollback", "-a", "store", "--yes"]).code(0);
    assert_eq!(shop.value(), json!("1"));
    // A new app of the old name has its own, from the first on.
    shop.write(&[shop.config_map("b", "1")]);
    shop.deploy(&[]).code(0);
    assert_eq!(shop.outcomes(), [(1, "deployed".to_owned())]);
    shop.admin(&["delete", "-a", "store", "--yes"]).code(0);
    assert_eq!(shop.secrets("shop.gantry.r").len(), 1);
    assert!(shop.get("a").is_none() && shop.get("b").is_some());
    shop.admin(&["apps", "forget", "-a", "shop", "--yes"]).code(0);
    assert_eq!(shop.secrets("shop.gantry.r").len() + shop.secrets("store.gantry.r").len(), 0);
    let none = shop.admin(&["history", "-a", "shop"]);
    none.code(1).stderr_contains(&format!("there is no app shop in namespace {namespace}"));
}

#[test]
fn revisions_are_no_members() {
    let shop = Shop::new();
    for value in ["1", "2"] {
        // So that the app looks for Secrets, too.
        let secret = shop.bed.object("v1", "Secret", "key", json!({"stringData": {"k": value}}));
        shop.write(&[shop.config_map("a", value), secret]);
        shop.deploy(&["--prune=yes"]).code(0);
    }
    let inspected: Value =
        serde_json::from_str(&shop.admin(&["inspect", "-a", "shop", "-o", "json"]).code(0).stdout).unwrap();
    assert_eq!(inspected["objects"].as_array().expect("objects").len(), 2, "{inspected}");
    assert_eq!(shop.secrets("shop.gantry.r").len(), 2);
}

#[test]
fn an_interrupted_deploy_names_the_command_that_goes_back() {
    let shop = Shop::new();
    shop.deploy_value("1", &[]).code(0);
    shop.write(&[shop.config_map("a", "2"), deployment(&shop.bed, "web:1")]);
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop"];
    let mut running = shop.command(control_plane().kubeconfig("admin"), &arguments).spawn();
    running.wait_for_stderr("waiting");
    running.interrupt();
    running.wait().code(1).stderr_contains("to go back to it: gantry rollback 1 -a shop -n");
    assert_eq!(shop.outcomes()[1], (2, "interrupted".to_owned()));
}

#[test]
fn on_a_terminal_a_rollback_asks_and_prunes() {
    let shop = Shop::new();
    shop.deploy_value("1", &[]).code(0);
    shop.write(&[shop.config_map("a", "2"), shop.config_map("added", "2")]);
    shop.deploy(&[]).code(0);
    let admin = control_plane().kubeconfig("admin");
    let mut terminal = shop.command(admin, &["rollback", "-a", "shop"]).on_terminal();
    terminal.wait_for("Roll back to revision 1: update 1, DELETE 1 in");
    terminal.press("y\n");
    terminal.wait().code(0);
    assert_eq!(shop.value(), json!("1"));
    assert!(shop.get("added").is_none());
}

#[test]
fn versioned_objects_go_back_as_new_versions_and_configuration_is_part_of_a_revision() {
    let shop = Shop::new();
    let deploy = |value: &str| {
        let mut versioned = shop.config_map("settings", value);
        versioned["metadata"]["annotations"] = json!({"kapp.k14s.io/versioned": ""});
        // Without a namespace: that of -n.
        versioned["metadata"].as_object_mut().unwrap().remove("namespace");
        let mask = json!({"apiVersion": "gantry.dev/v1alpha1", "kind": "Config", "diffMaskRules": [
            {"path": ["data", "a"], "resourceMatchers": [{"apiVersionKindMatcher": {"apiVersion": "v1", "kind": "ConfigMap"}}]}]});
        shop.write(&[versioned, shop.config_map("a", value), mask]);
        shop.deploy(&[]).code(0);
    };
    deploy("value-one");
    deploy("value-two");
    let value = |number: u32| shop.get(&format!("settings-ver-{number}")).map(|it| it["data"]["a"].clone());
    assert_eq!((value(1), value(2)), (Some(json!("value-one")), Some(json!("value-two"))));
    let diff = shop.admin(&["diff", "-a", "shop", "--to", "1"]);
    diff.code(0).stdout_contains("configmap/a").contains_nowhere("value-");
    shop.admin(&["rollback", "-a", "shop", "--yes"]).code(0);
    assert_eq!((value(3), shop.value()), (Some(json!("value-one")), json!("value-one")));
}
