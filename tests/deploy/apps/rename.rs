//! Apps that are renamed, and records of other tools that are taken over.

use std::collections::BTreeSet;

use super::{PART_OF, Shop};
use crate::support::{Output, Proxy, When, control_plane};
use serde_json::{Value, json};

fn rename(shop: &Shop, kubeconfig: std::path::PathBuf, flags: &[&str]) -> crate::support::Gantry {
    let arguments = ["apps", "rename", "-n", &shop.bed.names.namespace];
    shop.bed.gantry(kubeconfig, &[&arguments, flags].concat())
}

fn deploy(shop: &Shop, app: &str, flags: &[&str]) -> Output {
    let arguments = ["deploy", "-f", "manifests.yaml", "-a", app, "-n", &shop.bed.names.namespace];
    shop.bed.gantry(control_plane().kubeconfig("admin"), &[&arguments, flags].concat()).run()
}

/// The uids in the inventory of an app; `None` if there is no such app.
fn inventory(shop: &Shop, app: &str) -> Option<BTreeSet<String>> {
    let parent = shop.get(&format!("{app}.gantry"))?;
    let lines = parent["data"]["inventory"].as_str().expect("an inventory").lines();
    Some(lines.map(|line| line.split(' ').nth(4).expect("a uid").to_owned()).collect())
}

fn id(shop: &Shop, app: &str) -> Value {
    shop.get(&format!("{app}.gantry")).expect("a record")["metadata"]["labels"]["applyset.kubernetes.io/id"].clone()
}

#[test]
fn an_app_keeps_its_members_under_another_name() {
    let shop = Shop::new();
    let admin = || control_plane().kubeconfig("admin");
    let run = |flags: &[&str]| rename(&shop, admin(), flags).run();
    shop.config_maps(&["a", "b", "c"]);
    shop.deploy(&[]).code(0);
    shop.delete("b");
    shop.patch("a", &json!({"metadata": {"annotations": {"mine": "stays"}}}));
    let uid = shop.get("a").unwrap()["metadata"]["uid"].clone();

    run(&["-a", "shop", "--to", "store"]).code(1).stderr_contains("--yes");
    run(&["-a", "none", "--to", "store", "--yes"]).code(1).stderr_contains("there is no app none");
    run(&["-a", "shop", "--to", "shop", "--yes"]).code(2).stderr_contains("is already named shop");
    run(&["-a", "shop", "--to", "No_Name", "--yes"]).code(2).stderr_contains("not the name of an app");
    run(&["-a", "shop", "--to", "store", "--yes"]).code(0).stdout_contains("Renamed the app shop to store");
    assert!(shop.get("shop.gantry").is_none());
    let a = shop.get("a").unwrap();
    assert_eq!((&a["metadata"]["uid"], &a["metadata"]["annotations"]["mine"]), (&uid, &json!("stays")));
    assert_eq!(a["metadata"]["labels"], json!({PART_OF: id(&shop, "store")}));

    // It is as if the app had been deployed under that name.
    shop.config_maps(&["a", "c"]);
    deploy(&shop, "store", &[]).code(0).stdout_contains("Nothing to do");
    shop.config_maps(&["a"]);
    deploy(&shop, "store", &["--prune=yes"]).code(0).stdout_contains("1 deleted");
    assert!(shop.get("c").is_none());

    shop.config_maps(&["d"]);
    shop.deploy(&[]).code(0);
    run(&["-a", "shop", "--to", "store", "--yes"])
        .code(1)
        .stderr_contains("there is already an app store in namespace");
    assert_eq!(shop.get("d").unwrap()["metadata"]["labels"], json!({PART_OF: id(&shop, "shop")}));
}

#[test]
fn a_renaming_that_is_killed_at_any_write_is_finished_by_the_same_command() {
    // Both records, three members with their managed fields, the new record; the deletion of the old one.
    let cuts: Vec<(&str, usize)> = (1..=9).map(|nth| ("PATCH", nth)).chain([("DELETE", 1)]).collect();
    std::thread::scope(|scope| {
        for some in cuts.chunks(3) {
            scope.spawn(|| some.iter().for_each(|(method, nth)| killed_at(method, *nth)));
        }
    });
}

fn killed_at(method: &str, nth: usize) {
    let (case, shop) = (format!("killed at {method} {nth}"), Shop::new());
    let names = ["a", "b", "c"];
    shop.config_maps(&names);
    shop.deploy(&[]).code(0);
    let (old, uids) = (id(&shop, "shop"), inventory(&shop, "shop").expect("an inventory"));
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new(method, &format!("/namespaces/{}/configmaps", shop.bed.names.namespace)).nth(nth));
    let flags = ["-a", "shop", "--to", "store", "--yes"];
    let mut running = rename(&shop, proxy.kubeconfig("admin"), &flags).spawn();
    held.reached();
    running.kill();
    drop(running);
    proxy.refuse();
    for name in names {
        let object = shop.get(name).unwrap();
        let app = if object["metadata"]["labels"][PART_OF] == old { "shop" } else { "store" };
        // The label and the inventory of an object belong to the same app.
        assert_eq!(object["metadata"]["labels"][PART_OF], id(&shop, app), "{case}");
        let inventory = inventory(&shop, app).expect("an inventory");
        assert!(inventory.contains(object["metadata"]["uid"].as_str().unwrap()), "{case}: {name}");
    }
    rename(&shop, control_plane().kubeconfig("admin"), &flags).run().code(0);
    assert_eq!((inventory(&shop, "shop"), inventory(&shop, "store")), (None, Some(uids)), "{case}");
    for name in names {
        assert_eq!(shop.get(name).unwrap()["metadata"]["labels"], json!({PART_OF: id(&shop, "store")}), "{case}");
    }
    deploy(&shop, "store", &[]).code(0);
}

#[test]
fn a_record_of_another_tool_is_taken_over_only_on_request() {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    let id = id(&shop, "shop");
    let tooling = |shop: &Shop| shop.parent()["metadata"]["annotations"]["applyset.kubernetes.io/tooling"].clone();
    // As kubectl writes it: no inventory, and kubectl's own name.
    shop.delete("shop.gantry");
    let mut parent = shop.config_map("shop.gantry", "");
    parent.as_object_mut().unwrap().remove("data");
    parent["metadata"]["labels"] = json!({"applyset.kubernetes.io/id": id});
    parent["metadata"]["annotations"] = json!({"applyset.kubernetes.io/tooling": "kubectl/v1.36",
        "applyset.kubernetes.io/contains-group-kinds": "ConfigMap", "applyset.kubernetes.io/additional-namespaces": ""});
    control_plane().apply_yaml(&parent.to_string());
    let mut theirs = shop.config_map("theirs", "1");
    theirs["metadata"]["labels"] = json!({PART_OF: id});
    control_plane().apply_yaml(&theirs.to_string());

    shop.config_maps(&["a", "b"]);
    shop.deploy(&["--yes"]).code(1).stderr_contains("belongs to \"kubectl/v1.36\"").stderr_contains("--take-over-app");
    shop.deploy(&["--take-over-app"]).code(1).stderr_contains("--take-over-app --yes");
    assert!(tooling(&shop) == "kubectl/v1.36" && shop.get("b").is_none());
    shop.run("check", &["--take-over-app"]).code(0).stderr_contains("is taken over from \"kubectl/v1.36\"");
    assert_eq!(tooling(&shop), "kubectl/v1.36");
    let output = shop.deploy(&["--take-over-app", "--yes", "--prune=yes"]);
    output.code(0).stderr_contains("configmap/theirs").stderr_contains("its uid is not in the record of the app");
    assert!(tooling(&shop).as_str().unwrap().starts_with("gantry/v"));
    assert!(shop.get("theirs").is_some());
    assert_eq!(shop.inventory(), super::names(["a", "b"]));
    shop.deploy(&[]).code(0).stdout_contains("Nothing to do");
}
