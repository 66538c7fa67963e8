//! Records of apps among the manifests: nothing is written.

use super::Shop;
use super::unfit::Says as _;
use crate::support::control_plane;
use serde_json::{Value, json};

const ID: &str = "applyset.kubernetes.io/id";

#[test]
fn the_record_of_an_app_is_overwritten_by_no_deploy() {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    let before = shop.parent();
    let without_data = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop.gantry"}});
    let mut replaced = without_data.clone();
    replaced["metadata"]["annotations"] = json!({"kapp.k14s.io/update-strategy": "always-replace"});
    let namespace = &shop.bed.names.namespace;
    for record in [without_data, replaced] {
        shop.write(&[shop.config_map("a", "1"), record, shop.config_map("b", "1")]);
        let runs: [&[&str]; 5] = [
            &["deploy", "-a", "store"],
            &["deploy"],
            &["deploy", "-a", "store", "--force-conflicts", "--take-over-app", "--take-ownership"],
            &["deploy", "-a", "store", "--dry-run"],
            &["check", "-a", "store"],
        ];
        for run in runs {
            let output = shop.admin(&[run, &["-f", "manifests.yaml"]].concat());
            output.code(3).stdout_contains("AppRecord: ").says(&format!("configmap/shop.gantry -n {namespace}"));
            output.says("record of the app shop").says(&format!("gantry apps forget -a shop -n {namespace}"));
            assert_eq!(
                (shop.parent(), shop.get("b"), shop.get("store.gantry")),
                (before.clone(), None, None),
                "{output}"
            );
        }
        for run in [&["deploy"][..], &["deploy", "--force-conflicts"], &["check"]] {
            let output = shop.run(run[0], &run[1..]);
            output.code(3).says("gantry keeps the record of the app shop in configmap/shop.gantry");
            assert_eq!((shop.parent(), shop.get("b")), (before.clone(), None), "{output}");
        }
    }
    // Before the first deploy of the app, too.
    shop.write(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new.gantry"}})]);
    shop.admin(&["deploy", "-f", "manifests.yaml", "-a", "new"]).code(3).says("AppRecord: gantry keeps");
    assert_eq!(shop.get("new.gantry"), None);
    // Without its label it is still a record; a ConfigMap that is none is an object like any other.
    shop.write(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shop.gantry"}})]);
    shop.patch("shop.gantry", &json!({"metadata": {"labels": {ID: null}}}));
    shop.admin(&["deploy", "-f", "manifests.yaml"]).code(3).says("record of the app shop");
    shop.write(&[shop.config_map("plain.gantry", "1"), shop.config_map("plain.gantry-2", "1")]);
    shop.admin(&["deploy", "-f", "manifests.yaml"]).code(0);
    shop.write(&[shop.config_map("plain.gantry", "2")]);
    shop.admin(&["deploy", "-f", "manifests.yaml"]).code(0).stdout_contains("1 updated");
}

#[test]
fn a_part_of_a_record_is_not_overwritten_either() {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    let id = shop.parent()["metadata"]["labels"][ID].clone();
    let mut part = shop.config_map("shop.gantry-2", "1");
    part["metadata"]["labels"] = json!({"gantry.dev/inventory-of": id});
    control_plane().apply_yaml(&part.to_string());
    shop.config_maps(&["shop.gantry-2"]);
    let output = shop.admin(&["deploy", "-f", "manifests.yaml", "--force-conflicts"]);
    output.code(3).says("belongs to the record of the app shop");
    shop.deploy(&["--force-conflicts"]).code(3).stdout_contains("AppRecord: ");
}

#[test]
fn the_parent_of_another_tool_keeps_its_label() {
    let shop = Shop::new();
    let parent = |labels: Value, value: &str| {
        let mut parent = shop.config_map("theirs", value);
        parent["metadata"]["labels"] = labels;
        parent
    };
    shop.write(&[parent(json!({ID: "applyset-x-v1"}), "1")]);
    let deploy = |flags: &[&str]| shop.admin(&[&["deploy", "-f", "manifests.yaml"], flags].concat());
    deploy(&[]).code(0);
    // The label was applied by the same field manager, so an apply without it would remove it.
    for labels in [json!({}), json!({ID: "applyset-y-v1"})] {
        shop.write(&[parent(labels, "2")]);
        let output = deploy(&["--force-conflicts"]);
        output.code(3).stdout_contains("configmap/theirs").says("is the parent of the ApplySet applyset-x-v1");
        assert_eq!(shop.get("theirs").expect("it stays")["data"]["a"], "1");
    }
    // Another field manager's stays, whatever the manifest has.
    shop.write(&[parent(json!({}), "2")]);
    deploy(&["--field-manager=other", "--force-conflicts"]).code(0);
    let theirs = shop.get("theirs").expect("it stays");
    assert_eq!((&theirs["data"]["a"], &theirs["metadata"]["labels"][ID]), (&json!("2"), &json!("applyset-x-v1")));
}
