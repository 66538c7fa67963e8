//! Second deploys of the same files: which objects need only their metadata, and which are still read.

use serde_json::{Value, json};

use super::Shop;
use crate::support::{CrdBuilder, Output, Proxy, control_plane, fields};

const LAST_APPLIED: &str = "last-applied";

impl Shop {
    /// Two ConfigMaps, a Role, a ServiceAccount and a CRD.
    fn objects(&self) -> Vec<Value> {
        let metadata = |name: &str| json!({"name": name, "namespace": self.bed.names.namespace});
        let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
        vec![
            self.config_map("a", "1"),
            self.config_map("b", "1"),
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata("r"), "rules": rules}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("s")}),
            self.crd("string"),
        ]
    }

    fn crd(&self, field: &str) -> Value {
        let spec = fields(json!({"a": {"type": field}, "b": {"type": "integer"}}));
        CrdBuilder::samples(&self.bed.names.group).version_of_spec("v1", spec).build()
    }

    /// Deploys them, so that the record has a hash for each.
    fn begun() -> Self {
        let shop = Shop::new();
        shop.write(&shop.objects());
        shop.deploy(&[]).code(0).stdout_contains("5 created");
        assert_eq!(shop.marks(), 5);
        shop
    }

    /// The number of members with a hash.
    fn marks(&self) -> usize {
        let parent = self.parent();
        let kept = parent["data"][LAST_APPLIED].as_str().unwrap_or_default().to_owned();
        kept.lines().skip(1).filter(|mark| *mark != "-").count()
    }

    /// Deploys again. Returns the result, and the number of objects that were read in full, in lists or one by one.
    fn again(&self, flags: &[&str]) -> (Output, usize) {
        let proxy = Proxy::start(control_plane());
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &self.bed.names.namespace];
        let output = self.bed.gantry(proxy.kubeconfig("admin"), &[&arguments, flags].concat()).run();
        let kinds = ["/configmaps", "/roles", "/serviceaccounts", "/customresourcedefinitions"];
        let whole = proxy.requests().into_iter().filter(|request| {
            let of_members = kinds.iter().any(|kind| request.path.contains(kind));
            of_members && request.method == "GET" && !request.metadata_only && !request.path.ends_with("/shop.gantry")
        });
        let number = whole.count();
        (output, number)
    }
}

#[test]
fn a_second_deploy_of_the_same_files_reads_no_object() {
    let shop = Shop::begun();
    let before = shop.parent();
    let (output, whole) = shop.again(&[]);
    output.code(0).stdout_contains("5 objects unchanged");
    assert_eq!(whole, 0);
    // The same with a different order of the documents.
    shop.write(&shop.objects().into_iter().rev().collect::<Vec<_>>());
    let (output, whole) = shop.again(&[]);
    output.code(0).stdout_contains("5 objects unchanged");
    assert_eq!((whole, shop.parent()), (0, before));
    // Neither do check and diff.
    shop.run("check", &[]).code(0).stdout_contains("5 objects unchanged");
    shop.run("diff", &[]).code(0);
}

#[test]
fn changes_by_others_are_noticed() {
    type Write = fn(&Shop);
    let by_somebody: Write = |shop| shop.patch("a", &json!({"data": {"a": "2"}}));
    let under_our_name: Write = |shop| {
        let labels = json!({super::PART_OF: shop.parent()["metadata"]["labels"]["applyset.kubernetes.io/id"]});
        let metadata = json!({"name": "a", "labels": labels});
        let desired = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "2"}});
        let (status, answer) = control_plane().server_side_apply(&shop.bed.config_map_path("a"), "gantry", &desired);
        assert_eq!(status, 200, "{answer}");
    };
    let another_value: Write = |shop| shop.patch("a", &json!({"data": {"z": "2"}}));
    let annotation: Write = |shop| shop.patch("b", &json!({"metadata": {"annotations": {"x": "y"}}}));
    let of_the_crd: Write = |shop| {
        let versions = shop.crd("boolean")["spec"]["versions"].clone();
        let (status, answer) = control_plane().patch(&shop.bed.crd_path(), &json!({"spec": {"versions": versions}}));
        assert_eq!(status, 200, "{answer}");
    };
    let unlabelled: Write = |shop| shop.patch("b", &json!({"metadata": {"labels": {super::PART_OF: null}}}));
    let cases: [(&str, Write, &str); 7] = [
        ("a value, by somebody else", by_somebody, "update"),
        ("a value, under our name", under_our_name, "update"),
        ("a value that the manifest does not have", another_value, "unchanged"),
        ("an annotation", annotation, "unchanged"),
        ("the schema of a CRD", of_the_crd, "update"),
        ("the object is gone", |shop| shop.delete("b"), "create"),
        ("it is no member any more", unlabelled, "adopt"),
    ];
    for (what, write, action) in cases {
        let shop = Shop::begun();
        write(&shop);
        let (with, whole) = shop.again(&["--dry-run", "-o", "json"]);
        assert!((1..=2).contains(&whole), "{what}: {whole} read\n{with}");
        let of = |output: &Output| -> Value {
            let mut report: Value = serde_json::from_str(&output.stdout).expect("a report");
            // The address of the proxy differs.
            report["target"].take();
            report
        };
        let report = of(&with);
        let actions: Vec<&Value> = report["changes"].as_array().unwrap().iter().map(|one| &one["action"]).collect();
        assert_eq!(
            actions.iter().filter(|one| **one == action).count(),
            if action == "unchanged" { 5 } else { 1 },
            "{what}"
        );
        // The same without the hashes of the earlier run.
        shop.patch("shop.gantry", &json!({"data": {LAST_APPLIED: null}}));
        let (without, whole) = shop.again(&["--dry-run", "-o", "json"]);
        assert!(whole >= 3, "{what}: {whole} read");
        assert_eq!((of(&without), without.code), (report, with.code), "{what}");
    }
}

#[test]
fn a_changed_setting_is_noticed_although_the_files_are_the_same() {
    let shop = Shop::begun();
    // The files are the same, but another setting adds to the objects.
    shop.bed.write("labels.yaml", "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nadditionalLabels: {team: shop}\n");
    let (output, _) = shop.again(&["-c", "labels.yaml", "--dry-run"]);
    output.code(0).stdout_contains("5 update");
    let (output, _) = shop.again(&["--field-manager=other", "--dry-run"]);
    output.code(0).stdout_contains("5 update");
    // The checksum of the files is the same: Secrets count only with their length, and have no hash.
    let secret = |value: &str| {
        let metadata = json!({"name": "k", "namespace": shop.bed.names.namespace});
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": value}})
    };
    shop.write(&[shop.config_map("a", "1"), secret("one")]);
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 created");
    assert_eq!(shop.marks(), 1);
    shop.write(&[shop.config_map("a", "1"), secret("two")]);
    let (output, _) = shop.again(&[]);
    output.code(0).stdout_contains("1 updated");
}

#[test]
fn a_teams_own_check_sees_the_whole_live_object() {
    let shop = Shop::begun();
    shop.patch("a", &json!({"data": {"z": "2"}}));
    let check = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: whole\n  cel:\n    \
        match: {kinds: [ConfigMap]}\n    expression: oldObject == null || !has(oldObject.data.z)\n    message: it has z\n";
    shop.bed.write("own.yaml", check);
    let (output, whole) = shop.again(&["-c", "own.yaml"]);
    output.code(0).stdout_contains("it has z");
    assert!(whole >= 2, "{whole}");
}

#[test]
fn an_unfinished_run_leaves_no_marks() {
    let shop = Shop::begun();
    let proxy = Proxy::start(control_plane());
    proxy.refuse_from(crate::support::When::new("PATCH", "/configmaps/a"));
    let mut objects = shop.objects();
    objects[0]["data"]["a"] = "2".into();
    shop.write(&objects);
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "-n", &shop.bed.names.namespace];
    shop.bed.gantry(proxy.kubeconfig("admin"), &arguments).run().code(1);
    assert_eq!(shop.marks(), 0);
    shop.deploy(&[]).code(0);
    assert_eq!(shop.marks(), 5);
}

#[test]
fn objects_are_listed_if_many_of_them_have_changed() {
    let shop = Shop::new();
    let names: Vec<String> = (0..80).map(|index| format!("c{index}")).collect();
    shop.config_maps(&names.iter().map(String::as_str).collect::<Vec<_>>());
    shop.deploy(&[]).code(0);
    for name in &names[..70] {
        shop.patch(name, &json!({"data": {"z": "1"}}));
    }
    let (output, whole) = shop.again(&[]);
    output.code(0).stdout_contains("80 objects unchanged");
    assert_eq!(whole, 1);
}
