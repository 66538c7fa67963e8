//! Deploys of an app: its record, its members, and the deletion of members that leave the manifests.

use std::collections::BTreeSet;

use crate::support::{Bed, Gantry, Output, control_plane, eventually, results};
use serde_json::{Value, json};

mod among_manifests;
mod commands;
mod damaged;
mod history;
mod killed;
mod killed_then_deleted;
mod last_applied;
mod members;
mod own_webhook;
mod parts;
mod protected;
mod readiness;
mod rename;
mod rights;
mod two_runs;
mod undo;
mod undo_refused;
mod unfit;
mod unrecorded;
mod unserved;

const PART_OF: &str = "applyset.kubernetes.io/part-of";

/// A namespace with an app in it.
struct Shop {
    bed: Bed,
}

impl Shop {
    fn new() -> Self {
        let bed = Bed::new();
        control_plane().apply_yaml(&bed.namespace());
        Shop { bed }
    }

    fn config_map(&self, name: &str, value: &str) -> Value {
        let metadata = json!({"name": name, "namespace": self.bed.names.namespace});
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}})
    }

    fn write(&self, objects: &[Value]) {
        let texts: Vec<String> = objects.iter().map(Value::to_string).collect();
        self.bed.write("manifests.yaml", &texts.join("\n---\n"));
    }

    fn config_maps(&self, names: &[&str]) {
        self.write(&names.iter().map(|name| self.config_map(name, "1")).collect::<Vec<_>>());
    }

    fn run(&self, command: &str, flags: &[&str]) -> Output {
        let arguments = [command, "-f", "manifests.yaml", "-a", "shop", "-n", &self.bed.names.namespace];
        self.bed.gantry(control_plane().kubeconfig("admin"), &[&arguments, flags].concat()).run()
    }

    fn deploy(&self, flags: &[&str]) -> Output {
        self.run("deploy", flags)
    }

    fn command(&self, kubeconfig: std::path::PathBuf, arguments: &[&str]) -> Gantry {
        self.bed.gantry(kubeconfig, &[arguments, &["-n", &self.bed.names.namespace]].concat())
    }

    fn admin(&self, arguments: &[&str]) -> Output {
        self.command(control_plane().kubeconfig("admin"), arguments).run()
    }

    fn get(&self, name: &str) -> Option<Value> {
        let (status, answer) = control_plane().get(&self.bed.config_map_path(name));
        (status == 200).then_some(answer)
    }

    fn parent(&self) -> Value {
        self.get("shop.gantry").expect("the app's record")
    }

    fn last(&self) -> Value {
        serde_json::from_str(self.parent()["data"]["last"].as_str().expect("data.last")).expect("JSON")
    }

    /// The names of the members in the inventory.
    fn inventory(&self) -> BTreeSet<String> {
        let parent = self.parent();
        let lines = parent["data"]["inventory"].as_str().expect("an inventory").lines();
        lines.map(|line| line.split(' ').nth(3).expect("a name").to_owned()).collect()
    }

    fn patch(&self, name: &str, patch: &Value) {
        let (status, answer) = control_plane().patch(&self.bed.config_map_path(name), patch);
        assert_eq!(status, 200, "{answer}");
    }

    fn delete(&self, name: &str) {
        control_plane().delete(&self.bed.config_map_path(name));
        eventually("the object to go", || self.get(name).is_none().then_some(()));
    }
}

fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

#[test]
fn an_app_has_a_record_that_is_an_applyset() {
    let shop = Shop::new();
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(0).stdout_contains("2 created");
    let parent = shop.parent();
    let metadata = &parent["metadata"];
    let id = metadata["labels"]["applyset.kubernetes.io/id"].as_str().expect("an id");
    let annotations = &metadata["annotations"];
    assert!(annotations["applyset.kubernetes.io/tooling"].as_str().unwrap().starts_with("gantry/v"));
    assert_eq!(annotations["applyset.kubernetes.io/contains-group-kinds"], "ConfigMap");
    assert_eq!(annotations["applyset.kubernetes.io/additional-namespaces"], "");
    assert_eq!(shop.inventory(), names(["a", "b"]));
    assert_eq!(shop.last()["outcome"], "applied");
    for name in ["a", "b"] {
        let object = shop.get(name).unwrap();
        assert_eq!(object["metadata"]["labels"], json!({PART_OF: id}));
        let line =
            format!("- ConfigMap {} {name} {}", shop.bed.names.namespace, object["metadata"]["uid"].as_str().unwrap());
        assert!(parent["data"]["inventory"].as_str().unwrap().contains(&line));
    }
    // There is nothing to do, and nothing is written.
    shop.deploy(&[]).code(0).stdout_contains("Nothing to do");
    assert_eq!(shop.parent()["metadata"]["resourceVersion"], metadata["resourceVersion"]);
}

#[test]
fn objects_that_left_the_manifests_are_deleted_only_on_request() {
    let shop = Shop::new();
    shop.config_maps(&["a", "b", "c"]);
    shop.deploy(&[]).code(0);
    shop.config_maps(&["a"]);
    for (command, flags) in
        [("check", &[][..]), ("deploy", &[]), ("deploy", &["--prune=no"]), ("deploy", &["--prune=ask"])]
    {
        let output = shop.run(command, flags);
        output.code(0).stderr_contains("configmap/b").stderr_contains("left the manifests and stay in the app shop");
    }
    shop.run("check", &["--prune=yes"]).code(0).stdout_contains("delete");
    shop.deploy(&["--prune=yes", "--dry-run"]).code(0);
    assert_eq!(shop.inventory(), names(["a", "b", "c"]));
    assert!(shop.get("b").is_some());

    let output = shop.deploy(&["--prune=yes", "-o", "json"]);
    let report = output.code(0).report();
    assert_eq!((&report["summary"]["deleted"], &report["summary"]["unchanged"]), (&json!(2), &json!(1)));
    let deleted = results(&report).into_iter().filter(|(_, result)| result == "deleted").count();
    assert_eq!(deleted, 2, "{report}");
    assert!(shop.get("b").is_none() && shop.get("c").is_none() && shop.get("a").is_some());
    assert_eq!(shop.inventory(), names(["a"]));
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("Nothing to do");
}

/// The objects of [`Shop::with_one_key`] that no deploy deletes, and what each says about it.
const ONE_KEY: [(&str, &str); 10] = [
    ("unlabelled", "is not deleted: it no longer carries the label of the app"),
    ("recreated", "is not deleted: it carries the label of the app, but its uid is not in the record of the app"),
    ("by-hand", "is not deleted: it carries the label of the app, but its uid is not in the record of the app"),
    ("kept-helm", "leaves the app and stays in the cluster: its annotation says helm.sh/resource-policy: keep"),
    ("kept-cli", "leaves the app and stays in the cluster: its annotation says cli-utils.sigs.k8s.io/on-remove: keep"),
    (
        "kept-flux",
        "leaves the app and stays in the cluster: its annotation says kustomize.toolkit.fluxcd.io/prune: disabled",
    ),
    ("kept-gantry", "leaves the app and stays in the cluster: its annotation says gantry.dev/prune: keep"),
    ("orphan", "leaves the app and stays in the cluster: its annotation says kapp.k14s.io/delete-strategy: orphan"),
    ("other-set", "leaves the app and stays in the cluster: it is part of another ApplySet now"),
    ("controlled", "leaves the app and stays in the cluster: ConfigMap stays controls it"),
];

impl Shop {
    /// An app whose members `stays`, `pruned` and `adopted` are as they were deployed. Others have changed the rest
    /// since ([`ONE_KEY`]), or copied a member (`copy`). Returns the label of the app.
    fn with_one_key() -> (Shop, Value) {
        let shop = Shop::new();
        let by_hand = |name: &&str| *name != "by-hand";
        let members: Vec<&str> =
            ["stays", "adopted", "pruned"].into_iter().chain(ONE_KEY.map(|(name, _)| name)).filter(by_hand).collect();
        control_plane().apply_yaml(&shop.config_map("adopted", "0").to_string());
        shop.config_maps(&members);
        let report = shop.deploy(&["-o", "json", "--force-conflicts"]).code(0).report();
        assert_eq!((&report["summary"]["adopted"], &report["summary"]["created"]), (&json!(1), &json!(11)));
        let id = shop.get("stays").unwrap()["metadata"]["labels"][PART_OF].clone();

        // Changes by others in the meantime.
        shop.patch("unlabelled", &json!({"metadata": {"labels": {PART_OF: null}}}));
        shop.delete("recreated");
        for name in ["recreated", "by-hand"] {
            let mut object = shop.config_map(name, "9");
            object["metadata"]["labels"] = json!({PART_OF: id});
            control_plane().apply_yaml(&object.to_string());
        }
        let stays = shop.get("stays").unwrap();
        let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "stays", "uid": stays["metadata"]["uid"]});
        let mut copy = shop.config_map("copy", "9");
        copy["metadata"]["labels"] = json!({PART_OF: id});
        copy["metadata"]["ownerReferences"] = json!([owner]);
        control_plane().apply_yaml(&copy.to_string());
        for (name, key, value) in [
            ("kept-helm", "helm.sh/resource-policy", "keep"),
            ("kept-cli", "cli-utils.sigs.k8s.io/on-remove", "keep"),
            ("kept-flux", "kustomize.toolkit.fluxcd.io/prune", "disabled"),
            ("kept-gantry", "gantry.dev/prune", "keep"),
            ("orphan", "kapp.k14s.io/delete-strategy", "orphan"),
        ] {
            shop.patch(name, &json!({"metadata": {"annotations": {key: value}}}));
        }
        shop.patch("other-set", &json!({"metadata": {"labels": {PART_OF: "applyset-other-v1"}}}));
        let mut controller = owner;
        controller["controller"] = true.into();
        shop.patch("controlled", &json!({"metadata": {"ownerReferences": [controller]}}));
        (shop, id)
    }

    /// Asserts that none of the objects with one key is deleted, that the output names each with its reason, and that
    /// those that the app releases lose its label.
    #[track_caller]
    fn keeps_what_has_one_key(&self, id: &Value, output: &Output) {
        for (name, why) in ONE_KEY {
            let live = self.get(name).unwrap_or_else(|| panic!("{name} is deleted: {output}"));
            assert_eq!(live["metadata"]["deletionTimestamp"], Value::Null, "{name}");
            output.stderr_contains(&format!("configmap/{name} -n {} {why}", self.bed.names.namespace));
            // A relabelled object keeps its new label, and what never was a member keeps what it has.
            let label = &live["metadata"]["labels"][PART_OF];
            match name {
                "other-set" => assert_eq!(label, "applyset-other-v1"),
                "recreated" | "by-hand" => assert_eq!((label, &live["data"]["a"]), (id, &json!("9")), "{name}"),
                _ => assert_eq!(live["metadata"]["labels"], Value::Null, "{name}"),
            }
        }
        assert!(self.get("copy").is_some() && self.get("adopted").is_some(), "{output}");
        output.contains_nowhere("configmap/copy").stderr_contains("configmap/adopted -n");
        output.stderr_contains("existed before the app");
    }
}

#[test]
fn an_object_with_the_label_or_the_record_alone_is_never_deleted() {
    let (shop, id) = Shop::with_one_key();
    shop.config_maps(&["stays"]);
    let output = shop.deploy(&["--prune=yes"]);
    output.code(0).stdout_contains("1 deleted");
    shop.keeps_what_has_one_key(&id, &output);
    assert!(shop.get("pruned").is_none());
    assert_eq!(shop.inventory(), names(["stays", "adopted"]));

    shop.deploy(&["--prune=yes", "--prune-adopted"]).code(0);
    assert!(shop.get("adopted").is_none());
    assert_eq!(shop.inventory(), names(["stays"]));

    // Released objects have no owner, so another app can adopt them.
    shop.config_maps(&["kept-helm", "orphan"]);
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "other", "-n", &shop.bed.names.namespace, "-o", "json"];
    let report = shop.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run().code(0).report();
    assert_eq!(report["summary"]["adopted"], 2);
    assert_ne!(shop.get("kept-helm").unwrap()["metadata"]["labels"][PART_OF], id);
}

#[test]
fn a_member_stays_if_its_last_manifest_kept_it_although_the_live_annotation_is_gone() {
    let shop = Shop::new();
    let with = |name: &str, annotations: Value| {
        let mut object = shop.config_map(name, "1");
        object["metadata"]["annotations"] = annotations;
        object
    };
    let kept = |name| with(name, json!({"helm.sh/resource-policy": "keep"}));
    shop.write(&[kept("a"), kept("b"), with("c", json!({"helm.sh/resource-policy": "delete"})), with("d", json!({}))]);
    shop.deploy(&[]).code(0);
    for name in ["a", "b", "c"] {
        shop.patch(name, &json!({"metadata": {"annotations": null}}));
    }
    // The next manifest of `b` does not keep it.
    shop.config_maps(&["b", "d"]);
    let output = shop.deploy(&["--prune=yes"]);
    output.code(0).stdout_contains("1 deleted").stderr_contains(&format!(
        "configmap/a -n {} leaves the app and stays in the cluster: its last manifest had the annotation \
         helm.sh/resource-policy",
        shop.bed.names.namespace
    ));
    assert_eq!(shop.get("a").unwrap()["metadata"]["labels"], Value::Null);
    assert_eq!((shop.get("c"), shop.inventory()), (None, names(["b", "d"])));
    shop.config_maps(&["d"]);
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
    assert_eq!(shop.get("b"), None);
}

#[test]
fn many_deletions_and_missing_manifests_stop_before_anything_is_written() {
    let shop = Shop::new();
    let many: Vec<String> = (0..14).map(|index| format!("c{index}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    shop.config_maps(&many);
    shop.deploy(&[]).code(0);
    shop.config_maps(&many[..1]);
    for command in ["check", "deploy"] {
        let output = shop.run(command, &["--prune=yes"]);
        output
            .code(3)
            .stdout_contains("PruneLimit: 13 of 14 members of the app shop")
            .stdout_contains("--prune-max=13");
    }
    shop.deploy(&["--prune=yes", "--prune-max=80%"]).code(3);
    shop.deploy(&["--prune=yes", "-f", "missing.yaml"]).code(1);
    std::fs::create_dir(shop.bed.folder.path().join("empty")).unwrap();
    let namespace = &shop.bed.names.namespace;
    let empty = ["deploy", "-f", "empty", "-a", "shop", "-n", namespace, "--prune=yes"];
    assert_ne!(shop.bed.gantry(control_plane().kubeconfig("admin"), &empty).run().code, Some(0));
    assert_eq!(shop.inventory().len(), 14);
    shop.deploy(&["--prune=yes", "--prune-max=13"]).code(0).stdout_contains("13 deleted");
    assert_eq!(shop.inventory().len(), 1);
}

#[test]
fn a_manifest_may_not_carry_the_label_and_a_record_of_another_tool_is_refused() {
    let shop = Shop::new();
    let mut object = shop.config_map("a", "1");
    object["metadata"]["labels"] = json!({PART_OF: "mine"});
    shop.write(&[object]);
    let output = shop.deploy(&[]);
    output.code(2).stderr_contains("the label applyset.kubernetes.io/part-of").stderr_contains("manifests.yaml:1");

    control_plane().apply_yaml(&shop.config_map("shop.gantry", "1").to_string());
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(1).stderr_contains("does not keep an app of gantry");
    assert!(shop.get("a").is_none());
    for (flags, text) in [(&["-a", "No_Name"][..], "not the name of an app"), (&["-a", "x", "--prune-max=x"], "share")]
    {
        let arguments = [&["check", "-f", "manifests.yaml"], flags].concat();
        shop.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run().code(2).stderr_contains(text);
    }
    let folder = ["check", "-f", "manifests.yaml", "-a", "x", "--target", "dir:."];
    shop.bed.gantry("none".into(), &folder).run().code(2).stderr_contains("cannot keep the records of apps");
}

#[test]
fn two_deploys_of_one_app_do_not_write_at_the_same_time() {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    let mut last = shop.last();
    last["outcome"] = "started".into();
    last["holder"] = "elsewhere|x|1|2".into();
    shop.patch("shop.gantry", &json!({"data": {"last": last.to_string()}}));
    shop.config_maps(&["a", "b"]);
    let output = shop.deploy(&[]);
    output
        .code(1)
        .stderr_contains("another deploy of the app shop is running")
        .stderr_contains("on elsewhere started it");
    output.stderr_contains("--break-lock");
    assert!(shop.get("b").is_none());
    shop.run("check", &[]).code(0);
    shop.deploy(&["--break-lock"]).code(0).stdout_contains("1 created");
}

#[test]
fn the_namespace_of_the_record_may_be_among_the_manifests() {
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    bed.write("manifests.yaml", &format!("{}---\n{}", bed.namespace(), bed.config_map("a", "x")));
    let deploy = || bed.deploy(control_plane().kubeconfig("admin"), &["-a", "shop", "-n", namespace]).run();
    deploy().code(0).stdout_contains("2 created");
    let (_, parent) = control_plane().get(&bed.config_map_path("shop.gantry"));
    assert_eq!(parent["metadata"]["annotations"]["applyset.kubernetes.io/contains-group-kinds"], "ConfigMap,Namespace");
    deploy().code(0).stdout_contains("Nothing to do");
    // The namespace of the record is never deleted.
    bed.write("manifests.yaml", &bed.config_map("a", "x"));
    let output = bed.deploy(control_plane().kubeconfig("admin"), &["-a", "shop", "-n", namespace, "--prune=yes"]).run();
    output.code(0).stderr_contains("leaves the app and stays in the cluster");
    let (_, live) = control_plane().get(&format!("/api/v1/namespaces/{namespace}"));
    assert_eq!(
        (&live["metadata"]["deletionTimestamp"], &live["metadata"]["labels"][PART_OF]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn missing_rights_to_delete_or_list_are_reported_before_anything_is_written() {
    let shop = Shop::new();
    let cp = control_plane();
    let namespace = shop.bed.names.namespace.clone();
    shop.config_maps(&["a", "b"]);
    let printed = ["permissions", "-f", "manifests.yaml", "-a", "shop", "-n", &namespace, "--as", "shop-user"];
    let printed = shop.bed.gantry(cp.kubeconfig("admin"), &printed).run();
    printed.code(0).stdout_contains("delete").stdout_contains("shop.gantry");

    let all = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "patch"]});
    let user = cp.user(&json!([all]));
    let deploy = |user: &str, flags: &[&str]| {
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &namespace];
        shop.bed.gantry(cp.kubeconfig(user), &[&arguments, flags].concat()).run()
    };
    deploy(&user, &[]).code(0).stdout_contains("2 created");
    let before = shop.parent()["metadata"]["resourceVersion"].clone();
    shop.write(&[shop.config_map("a", "2")]);
    let output = deploy(&user, &["--prune=yes"]);
    output.code(1).stdout_contains("not permitted to delete configmap/b").stdout_contains("--prune=no");
    let live = shop.get("a").unwrap();
    assert_eq!((&shop.parent()["metadata"]["resourceVersion"], &live["data"]["a"]), (&before, &json!("1")));

    let reader = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "delete"]});
    let blind = cp.user(&json!([reader]));
    let output = deploy(&blind, &["--prune=yes"]);
    output.code(1).stdout_contains("could not look for members of the app shop").stdout_contains("--prune=no");
    deploy(&blind, &[]).code(1);
    assert_eq!(shop.parent()["metadata"]["resourceVersion"], before);
    deploy(&blind, &["--prune=no"]).code(0).stderr_contains("could not look for members");
    assert_eq!((shop.inventory(), shop.get("b").is_some()), (names(["a", "b"]), true));
}

/// kubectl's own use of an ApplySet: neither tool accepts a record of the other. The label finds the members of both.
#[test]
fn kubectl_refuses_the_record_of_an_app_and_gantry_that_of_kubectl() {
    let shop = Shop::new();
    let namespace = &shop.bed.names.namespace;
    shop.config_maps(&["a", "b"]);
    shop.deploy(&[]).code(0);
    let kubectl = |arguments: &[&str]| {
        let output = std::process::Command::new(gantry_testbed::kubectl())
            .args(arguments)
            .args(["-n", namespace])
            .env_clear()
            // For its cache.
            .env("HOME", shop.bed.folder.path())
            .env("KUBECTL_APPLYSET", "true")
            .env("KUBECONFIG", control_plane().kubeconfig("admin"))
            .current_dir(shop.bed.folder.path())
            .output()
            .expect("kubectl starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    let apply = |set: &str| {
        let set = format!("--applyset=configmaps/{set}");
        let (is_applied, _, said) = kubectl(&["apply", "--prune", &set, "-f", "manifests.yaml"]);
        (is_applied, said)
    };
    let members = |parent: &Value| -> Vec<String> {
        let id = parent["metadata"]["labels"]["applyset.kubernetes.io/id"].as_str().expect("the label of a record");
        let selector = format!("applyset.kubernetes.io/part-of={id}");
        let (is_listed, listed, said) = kubectl(&["get", "configmaps", "-o", "name", "-l", &selector]);
        assert!(is_listed, "{said}");
        listed.lines().map(str::to_owned).collect()
    };
    assert_eq!(members(&shop.parent()), ["configmap/a", "configmap/b"]);
    let version = shop.parent()["metadata"]["resourceVersion"].clone();
    shop.config_maps(&["a"]);
    let (is_applied, said) = apply("shop.gantry");
    assert!(!is_applied && said.contains("managed by tooling \"gantry\" instead of \"kubectl\""), "{said}");
    assert!(shop.get("b").is_some() && shop.parent()["metadata"]["resourceVersion"] == version);

    shop.config_maps(&["theirs"]);
    let (is_applied, said) = apply("their.gantry");
    assert!(is_applied, "{said}");
    let theirs = shop.get("their.gantry").expect("kubectl's record");
    assert_eq!(
        (members(&theirs), members(&shop.parent())),
        (vec!["configmap/theirs".into()], vec!["configmap/a".into(), "configmap/b".into()])
    );
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "their", "-n", namespace];
    let output = shop.bed.gantry(control_plane().kubeconfig("admin"), &arguments).run();
    output.code(1).stderr_contains("belongs to \"kubectl/v").stderr_contains("--take-over-app");
    let after = shop.get("their.gantry").expect("kubectl's record");
    assert_eq!(after["metadata"]["resourceVersion"], theirs["metadata"]["resourceVersion"], "not written");
    // Nor does another app of gantry take over members of kubectl's set.
    let output = shop.deploy(&[]);
    output.code(3).stdout_contains("OwnedByOther");
}
