//! The commands that list, inspect, forget and delete apps.

use super::{ONE_KEY, Shop, names};
use crate::support::{control_plane, eventually};
use serde_json::{Value, json};

#[test]
fn an_app_is_listed_inspected_forgotten_and_deleted() {
    let shop = Shop::new();
    let namespace = shop.bed.names.namespace.clone();
    let admin = || control_plane().kubeconfig("admin");
    let run = |arguments: &[&str]| shop.bed.gantry(admin(), &[arguments, &["-n", &namespace]].concat()).run();
    run(&["apps"]).code(0).stdout_contains("no apps");
    run(&["inspect", "-a", "shop"]).code(1).stderr_contains("there is no app shop in namespace");
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(0);
    shop.delete("b");
    run(&["apps"]).code(0).stdout_contains("shop").stdout_contains("applied");
    // Other tests have records that cannot be read, which is an error after the list.
    shop.bed.gantry(admin(), &["apps", "-A"]).run().stdout_contains(&namespace);
    let completed = |words: &[&str]| shop.bed.gantry(admin(), &[&["complete-words"], words].concat()).run();
    completed(&["inspect", "-n", &namespace, "-a", "sh"]).code(0).stdout_contains("shop\n:4\n");
    completed(&["check", "-n", &namespace]).code(0).stdout_contains(&format!("{namespace}\n"));
    let apps: Value = serde_json::from_str(&run(&["apps", "-o", "json"]).stdout).expect("JSON");
    assert_eq!((&apps["apps"][0]["name"], &apps["apps"][0]["objects"]), (&json!("shop"), &json!(2)));
    let output = run(&["inspect", "-a", "shop"]);
    output.code(0).stdout_contains("App shop in namespace").stdout_contains("configmap/a").stdout_contains("member");
    output.stdout_contains("configmap/b").stdout_contains("gone");
    let report: Value = serde_json::from_str(&run(&["inspect", "-a", "shop", "-o", "json"]).stdout).expect("JSON");
    assert_eq!((&report["objects"][0]["state"], &report["gone"][0]), (&json!("member"), &json!("ConfigMap/b")));

    // Without a terminal, these commands need `--yes`.
    run(&["apps", "forget", "-a", "shop"]).code(1).stderr_contains("--yes");
    run(&["delete", "-a", "shop"]).code(1).stderr_contains("--yes");
    run(&["delete", "-a", "shop", "--dry-run"]).code(0).stdout_contains("configmap/a");
    assert!(shop.get("a").is_some());
    run(&["apps", "forget", "-a", "shop", "--yes"]).code(0).stdout_contains("Forgot the app shop; 1 object");
    assert!(shop.get("shop.gantry").is_none());
    assert_eq!(shop.get("a").expect("it stays")["metadata"]["labels"], Value::Null);

    // In the next deploy, the object existed before.
    shop.config_maps(&["a", "c"]);
    shop.deploy(&[]).code(0).stdout_contains("1 created, 1 adopted");
    let output = run(&["delete", "-a", "shop", "--yes"]);
    output
        .code(0)
        .stderr_contains("configmap/a")
        .stderr_contains("--prune-adopted")
        .stdout_contains("Deleted: 1 deleted");
    assert!(shop.get("shop.gantry").is_some() && shop.get("a").is_some() && shop.get("c").is_none());
    run(&["delete", "-a", "shop", "--yes", "--prune-adopted"]).code(0).stdout_contains("1 deleted");
    assert!(shop.get("shop.gantry").is_none() && shop.get("a").is_none());
    let output = run(&["delete", "-a", "shop", "--yes"]);
    output.code(0).stderr_contains("there is no app shop").stdout_contains("Nothing to delete\n");
}

#[test]
fn a_deletion_that_hangs_is_reported_with_its_finalizer() {
    let shop = Shop::new();
    let mut held = shop.config_map("held", "1");
    held["metadata"]["finalizers"] = json!(["shop.example.com/never"]);
    shop.write(&[held, shop.config_map("a", "1")]);
    shop.deploy(&[]).code(0);
    shop.config_maps(&["a"]);
    shop.bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntimeouts: {delete: 100ms}\n");
    let output = shop.deploy(&["--prune=yes"]);
    output.code(5).stdout_contains("Not gone     configmap/held").stdout_contains("waits for shop.example.com/never");
    assert_eq!((shop.inventory(), &shop.last()["outcome"]), (names(["a", "held"]), &json!("failed")));
    // The same command continues to wait.
    shop.deploy(&["--prune=yes"]).code(5);
    shop.patch("held", &json!({"metadata": {"finalizers": null}}));
    eventually("it to go", || shop.get("held").is_none().then_some(()));
    shop.deploy(&["--prune=yes"]).code(0);
    assert_eq!((shop.inventory(), &shop.last()["outcome"]), (names(["a"]), &json!("applied")));
}

#[test]
fn the_help_of_a_delete_names_only_what_a_delete_can_do() {
    let shop = Shop::new();
    let cp = control_plane();
    let namespace = shop.bed.names.namespace.clone();
    let crd = shop.bed.crd("first: {type: string}");
    shop.bed.write("manifests.yaml", &[shop.config_map("a", "1").to_string(), crd].join("\n---\n"));
    shop.deploy(&["--wait=false"]).code(0).stdout_contains("2 created");
    let theirs = json!({"apiVersion": format!("{}/v1", shop.bed.names.group), "kind": "Sample",
        "metadata": {"name": "theirs", "namespace": &namespace}});
    cp.apply_yaml(&theirs.to_string());
    let own = json!({"apiGroups": ["", "apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"]});
    let reader = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "patch"]});
    let (blind, reader) = (cp.user(&json!([own])), cp.user(&json!([reader])));
    let forget = "keep all objects and delete the record alone: gantry apps forget";
    let keep = "keep the CRD (the annotation gantry.dev/prune: keep on it)";
    for (user, code, help) in [("admin", 3, keep), (&*blind, 1, forget), (&*reader, 1, forget)] {
        // The reader's refusal is reported only if nothing blocks before it.
        let flags = if user == reader { &["--warn-only"][..] } else { &[] };
        let arguments = [&["delete", "-a", "shop", "-n", &namespace, "--yes"], flags].concat();
        let output = shop.bed.gantry(cp.kubeconfig(user), &arguments).run();
        output.code(code);
        // Lines are wrapped.
        let text =
            output.stdout.split_whitespace().chain(output.stderr.split_whitespace()).collect::<Vec<_>>().join(" ");
        assert!(text.contains(help) && !text.contains("--prune=no"), "{text}");
    }
    assert!(shop.get("a").is_some() && shop.get("shop.gantry").is_some());
}

#[test]
fn an_app_whose_record_cannot_be_read_is_forgotten_by_its_label() {
    let shop = Shop::new();
    let forget = || {
        let arguments = ["apps", "forget", "-a", "shop", "--yes", "-n", &shop.bed.names.namespace];
        shop.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run()
    };
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(0);

    // It is refused while a deploy is running.
    let whole = shop.parent()["data"].clone();
    let mut last = shop.last();
    last["outcome"] = "started".into();
    last["holder"] = "elsewhere|x|1|2".into();
    last["time"] = json!(jiff::Timestamp::now().to_string());
    shop.patch("shop.gantry", &json!({"data": {"last": last.to_string()}}));
    forget().code(1).stderr_contains("another deploy of the app shop is running");
    assert_eq!(
        shop.get("a").expect("it is there")["metadata"]["labels"].as_object().map(serde_json::Map::len),
        Some(1)
    );

    shop.patch("shop.gantry", &json!({"data": {"last": whole["last"], "inventory": "no inventory\n"}}));
    shop.deploy(&[]).code(1).stderr_contains("cannot be read").stderr_contains("gantry apps forget");
    forget().code(0).stdout_contains("Forgot the app shop; 2 objects");
    assert!(shop.get("shop.gantry").is_none());
    for name in ["a", "b"] {
        assert_eq!(shop.get(name).expect("it stays")["metadata"]["labels"], Value::Null, "{name}");
    }
}

#[test]
fn the_namespace_of_a_record_is_the_one_that_the_flag_names() {
    let (shop, other) = (Shop::new(), Shop::new());
    for shop in [&shop, &other] {
        shop.config_maps(&["a"]);
        shop.deploy(&[]).code(0);
    }
    let config =
        format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\nappNamespace: {}\n", other.bed.names.namespace);
    shop.bed.write("config.yaml", &config);
    let run = |arguments: &[&str]| {
        let more = ["-c", "config.yaml", "-n", &shop.bed.names.namespace];
        shop.bed.gantry(control_plane().kubeconfig("admin"), &[arguments, &more].concat()).run()
    };
    run(&["inspect", "-a", "shop"]).code(0).stdout_contains(&format!("in namespace {}", shop.bed.names.namespace));
    run(&["delete", "-a", "shop", "--yes"]).code(0).stdout_contains("1 deleted");
    assert!(shop.get("a").is_none() && other.get("a").is_some() && other.get("shop.gantry").is_some());

    shop.deploy(&[]).code(0);
    let elsewhere = |arguments: &[&str]| {
        let more = ["-n", &other.bed.names.namespace, "--app-namespace", &shop.bed.names.namespace];
        shop.bed.gantry(control_plane().kubeconfig("admin"), &[arguments, &more].concat()).run()
    };
    let (shops, others) = (&shop.bed.names.namespace, &other.bed.names.namespace);
    elsewhere(&["inspect", "-a", "shop"]).code(0).stdout_contains(&format!("in namespace {shops}"));
    elsewhere(&["apps"]).code(0).stdout_contains(shops).contains_nowhere(others);
    elsewhere(&["apps", "rename", "-a", "shop", "--to", "store", "--yes"]).code(0);
    elsewhere(&["delete", "-a", "store", "--dry-run"]).code(0).stdout_contains("Planned: 1 delete;");
    elsewhere(&["apps", "forget", "-a", "store", "--yes"]).code(0);
    assert!(shop.get("a").is_some() && shop.get("store.gantry").is_none() && other.get("shop.gantry").is_some());
}

#[cfg(unix)]
#[test]
fn on_a_terminal_a_deploy_asks_before_it_deletes_members() {
    let shop = Shop::new();
    shop.config_maps(&["a", "b", "c"]);
    shop.deploy(&[]).code(0);
    shop.config_maps(&["a"]);
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop"];
    let admin = |flags: &[&str]| shop.command(control_plane().kubeconfig("admin"), &[&arguments, flags].concat());
    let left = || ["a", "b", "c"].map(|name| shop.get(name).is_some());

    // `--yes` answers the question; it does not ask for deletions.
    for flags in [&["-y"][..], &["-y", "--prune=ask"]] {
        for output in [admin(flags).run(), admin(flags).on_terminal().wait()] {
            output.code(0).stderr_contains("configmap/b -n").stderr_contains("configmap/c -n");
            output.stderr_contains("left the manifests and stay in the app shop").contains_nowhere("[y/N]");
            assert_eq!((left(), shop.inventory()), ([true; 3], names(["a", "b", "c"])), "{output}");
        }
    }
    for (flags, keys) in [(&[][..], "n\n"), (&[], "\n"), (&["--prune=ask"], "\u{4}")] {
        let mut terminal = admin(flags).on_terminal();
        terminal.wait_for("DELETE 2 in ");
        terminal.wait_for("[y/N] ");
        terminal.press(keys);
        let output = terminal.wait();
        output.code(1).stderr_contains("not confirmed; nothing was written");
        output.stderr_contains("configmap/b").stderr_contains("configmap/c");
        assert_eq!((left(), shop.inventory()), ([true; 3], names(["a", "b", "c"])), "{output}");
    }
    let mut terminal = admin(&[]).on_terminal();
    terminal.wait_for("DELETE 2 in ");
    assert_eq!(left(), [true; 3]);
    terminal.press("y\n");
    terminal.wait().code(0).stderr_contains("2 deleted");
    assert_eq!((left(), shop.inventory()), ([true, false, false], names(["a"])));
}

#[cfg(unix)]
#[test]
fn on_a_terminal_the_deletion_of_an_app_asks_first() {
    let shop = Shop::new();
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(0);
    let left = || ["a", "b", "shop.gantry"].map(|name| shop.get(name).is_some());
    for (keys, code) in [("n\n", 1), ("\n", 1), ("y\n", 0)] {
        let arguments = ["delete", "-a", "shop"];
        let mut terminal = shop.command(control_plane().kubeconfig("admin"), &arguments).on_terminal();
        terminal.wait_for("DELETE 2 in ");
        terminal.wait_for("[y/N] ");
        assert_eq!(left(), [true; 3]);
        terminal.press(keys);
        let output = terminal.wait();
        output.code(code).stderr_contains(if code == 0 { "2 deleted" } else { "not confirmed; nothing was written" });
        assert_eq!(left(), [code == 1; 3], "{output}");
    }
}

#[test]
fn deleting_an_app_keeps_objects_with_the_label_or_the_record_alone() {
    let (shop, id) = Shop::with_one_key();
    let output = shop.admin(&["delete", "-a", "shop", "--yes"]);
    output.code(0).stdout_contains("2 deleted");
    shop.keeps_what_has_one_key(&id, &output);
    assert!(shop.get("stays").is_none() && shop.get("pruned").is_none(), "{output}");
    assert_eq!(shop.inventory(), names(["adopted"]), "the record stays while there is a member");

    shop.admin(&["delete", "-a", "shop", "--yes", "--prune-adopted"]).code(0).stdout_contains("1 deleted");
    assert!(shop.get("adopted").is_none());
    // Two objects still carry the label.
    assert!(shop.get("shop.gantry").is_some() && shop.inventory().is_empty());
    for (name, _) in ONE_KEY {
        assert!(shop.get(name).is_some(), "{name}");
    }
}
