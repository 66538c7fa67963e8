//! Two runs on one app at the same time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::{PART_OF, Shop, names};
use crate::support::{Gantry, Proxy, When, control_plane};
use serde_json::json;

const STARTED_MEANWHILE: &str = "another run on the app shop has started meanwhile";

fn deploy(shop: &Shop, kubeconfig: PathBuf, file: &str) -> Gantry {
    shop.command(kubeconfig, &["deploy", "-f", file, "-a", "shop", "--prune=yes"])
}

#[test]
fn while_a_deploy_writes_another_run_on_the_app_is_refused_before_it_writes() {
    let shop = Shop::new();
    shop.config_maps(&["a", "gone"]);
    shop.deploy(&[]).code(0);
    shop.write(&[shop.config_map("a", "first")]);
    let slow = Proxy::start(control_plane());
    let held = slow.hold(When::new("PATCH", &shop.bed.config_map_path("a")).nth(1));
    let first = deploy(&shop, slow.kubeconfig("admin"), "manifests.yaml").spawn();
    held.reached();
    assert_eq!(shop.last()["outcome"], "started");

    let record = shop.parent()["metadata"]["resourceVersion"].clone();
    let second = [shop.config_map("a", "second"), shop.config_map("b", "second")];
    shop.bed.write("second.yaml", &second.map(|object| object.to_string()).join("\n---\n"));
    let proxy = Proxy::start(control_plane());
    let kubeconfig = || proxy.kubeconfig("admin");
    let refused = [
        deploy(&shop, kubeconfig(), "second.yaml"),
        deploy(&shop, kubeconfig(), "second.yaml").args(["--yes", "--force-conflicts"]),
        shop.command(kubeconfig(), &["delete", "-a", "shop", "--yes"]),
        shop.command(kubeconfig(), &["apps", "forget", "-a", "shop", "--yes"]),
        shop.command(kubeconfig(), &["apps", "rename", "-a", "shop", "--to", "store", "--yes"]),
    ];
    for run in refused {
        let output = run.run();
        output.code(1).stderr_contains("another deploy of the app shop is running");
        assert_eq!(proxy.writes(), [], "{output}");
    }
    assert_eq!(shop.parent()["metadata"]["resourceVersion"], record);
    assert_eq!(shop.get("a").expect("it is there")["data"]["a"], "1");
    assert!(shop.get("gone").is_some());

    drop(held);
    first.wait().code(0).stdout_contains("1 updated").stdout_contains("1 deleted");
    assert_eq!(shop.get("a").expect("it is there")["data"]["a"], "first");
    assert!(shop.get("b").is_none());
    assert_eq!((shop.inventory(), &shop.last()["outcome"]), (names(["a"]), &json!("applied")));
    deploy(&shop, kubeconfig(), "second.yaml").run().code(0).stdout_contains("1 created, 1 updated");
}

#[test]
fn a_record_that_changes_before_a_deploy_writes_it_ends_the_deploy() {
    let shop = Shop::new();
    shop.config_maps(&["a", "gone"]);
    shop.deploy(&[]).code(0);
    let before = ["a", "gone"].map(|name| shop.get(name));
    shop.write(&[shop.config_map("a", "2"), shop.config_map("b", "2")]);
    let proxy = Proxy::start(control_plane());
    let path = shop.bed.config_map_path("shop.gantry");
    proxy.before(When::new("PATCH", &path.clone()).nth(1), move || {
        let patch = json!({"metadata": {"annotations": {"example.com/by": "others"}}});
        let (status, answer) = control_plane().patch(&path, &patch);
        assert_eq!(status, 200, "{answer}");
    });
    let output = deploy(&shop, proxy.kubeconfig("admin"), "manifests.yaml").run();
    output.code(1).stdout_contains(STARTED_MEANWHILE);
    assert_eq!(["a", "gone"].map(|name| shop.get(name)), before, "{output}");
    assert!(shop.get("b").is_none(), "{output}");
    assert_eq!(proxy.writes().len(), 1, "{:#?}", proxy.writes());
    let parent = shop.parent();
    assert_eq!((shop.inventory(), &shop.last()["outcome"]), (names(["a", "gone"]), &json!("applied")));
    assert_eq!(parent["metadata"]["annotations"]["example.com/by"], "others");

    let output = deploy(&shop, proxy.kubeconfig("admin"), "manifests.yaml").run();
    output.code(0).stdout_contains("1 created").stdout_contains("1 deleted");
    assert_eq!(shop.inventory(), names(["a", "b"]));
    assert_eq!(shop.parent()["metadata"]["annotations"]["example.com/by"], "others");
}

#[test]
fn the_later_of_two_first_deploys_of_an_app_ends() {
    let shop = Arc::new(Shop::new());
    shop.config_maps(&["a", "both"]);
    let others = ["both", "c"].map(|name| shop.config_map(name, "other").to_string());
    shop.bed.write("other.yaml", &others.join("\n---\n"));
    let proxy = Proxy::start(control_plane());
    let other = Arc::clone(&shop);
    proxy.before(When::new("PATCH", &shop.bed.config_map_path("shop.gantry")).nth(1), move || {
        let output = deploy(&other, control_plane().kubeconfig("admin"), "other.yaml").run();
        output.code(0).stdout_contains("2 created");
    });
    let output = deploy(&shop, proxy.kubeconfig("admin"), "manifests.yaml").run();
    output.code(1).stdout_contains(STARTED_MEANWHILE);
    assert!(shop.get("a").is_none(), "{output}");

    // There is one record, and its inventory and the live objects agree.
    let collection = format!("/api/v1/namespaces/{}/configmaps", shop.bed.names.namespace);
    let list = |selector: &str| -> Vec<serde_json::Value> {
        let (status, list) = control_plane().get(&format!("{collection}?labelSelector={selector}"));
        assert_eq!(status, 200, "{list}");
        list["items"].as_array().expect("items").clone()
    };
    let records = list("applyset.kubernetes.io/id");
    assert_eq!(records.len(), 1, "{records:#?}");
    let id = records[0]["metadata"]["labels"]["applyset.kubernetes.io/id"].as_str().expect("an id");
    let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
    let live: BTreeMap<String, String> = list(&format!("{PART_OF}={id}"))
        .iter()
        .map(|object| (text(&object["metadata"]["name"]), text(&object["metadata"]["uid"])))
        .collect();
    let recorded: BTreeMap<String, String> = text(&records[0]["data"]["inventory"])
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (words[3].to_owned(), words[4].to_owned())
        })
        .collect();
    assert_eq!((recorded.keys().cloned().collect(), &recorded), (names(["both", "c"]), &live));
    assert_eq!(shop.get("both").expect("it is there")["data"]["a"], "other");
    assert_eq!(shop.last()["outcome"], "applied");

    // The one that ended then deploys as usual.
    let output = deploy(&shop, proxy.kubeconfig("admin"), "manifests.yaml").run();
    output.code(0).stdout_contains("1 created, 1 updated").stdout_contains("1 deleted");
    assert_eq!(shop.inventory(), names(["a", "both"]));
}
