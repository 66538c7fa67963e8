//! Records that were edited by hand: no command mistakes them for an app with other members.

use std::io::Write as _;

use super::{PART_OF, Shop, names};
use base64::Engine as _;
use serde_json::{Value, json};

/// Creates the app; afterwards `c` is no longer among the manifests.
fn shop() -> Shop {
    let shop = Shop::new();
    shop.config_maps(&["a", "b", "c"]);
    shop.deploy(&[]).code(0);
    shop.config_maps(&["a", "b"]);
    shop
}

impl Shop {
    /// The inventory without the line of one object.
    fn inventory_without(&self, name: &str) -> String {
        let parent = self.parent();
        let lines = parent["data"]["inventory"].as_str().expect("an inventory").lines();
        lines.filter(|line| line.split(' ').nth(3) != Some(name)).map(|line| format!("{line}\n")).collect()
    }

    fn is_untouched(&self) {
        let id = &self.parent()["metadata"]["labels"]["applyset.kubernetes.io/id"];
        for name in ["a", "b", "c"] {
            assert_eq!(&self.get(name).expect("it stays")["metadata"]["labels"][PART_OF], id, "{name}");
        }
    }
}

#[test]
fn a_record_whose_members_were_edited_is_used_by_no_command() {
    let shop = shop();
    let whole = shop.parent();
    shop.patch("shop.gantry", &json!({"data": {"inventory": shop.inventory_without("c")}}));
    let changed = shop.parent();
    let commands: [&[&str]; 12] = [
        &["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes"],
        &["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=no"],
        &["deploy", "-f", "manifests.yaml", "-a", "shop", "--break-lock"],
        &["deploy", "-f", "manifests.yaml", "-a", "shop", "--take-over-app", "--yes"],
        &["deploy", "-f", "manifests.yaml", "-a", "shop", "--from-kapp"],
        &["check", "-f", "manifests.yaml", "-a", "shop"],
        &["diff", "-f", "manifests.yaml", "-a", "shop"],
        &["delete", "-a", "shop", "--yes"],
        &["inspect", "-a", "shop"],
        &["apps", "rename", "-a", "shop", "--to", "store", "--yes"],
        &["apps", "rename", "-a", "other", "--to", "shop", "--yes"],
        &["apps"],
    ];
    for command in commands {
        let output = shop.admin(command);
        output.code(1).stderr_contains("configmap/shop.gantry -n ");
        output.stderr_contains(
            "the record of the app shop is damaged: the inventory lists 2 objects, but had 3 when it was",
        );
        output.stderr_contains("restore the ConfigMap from a backup").stderr_contains("gantry apps forget");
    }
    // Permissions do not depend on the record.
    shop.admin(&["permissions", "-f", "manifests.yaml", "-a", "shop"]).code(0);
    shop.is_untouched();
    assert_eq!((shop.parent(), shop.get("store.gantry")), (changed, None));

    // With the backup, everything works again.
    shop.patch("shop.gantry", &json!({"data": whole["data"]}));
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
    assert_eq!((shop.inventory(), shop.get("c")), (names(["a", "b"]), None));
}

#[test]
fn every_defect_of_a_record_is_reported_and_nothing_is_deleted() {
    let shop = shop();
    let whole = shop.parent()["data"].clone();
    let without = shop.inventory_without("c");
    let foreign = format!("{without}- ConfigMap {} d 0-0\n", shop.bed.names.namespace);
    let others = "the inventory does not list the objects that it had when it was written (see data.inventory-sum)";
    let cases = [
        (json!({"inventory": foreign}), others),
        (json!({"inventory-sum": format!("3 {}", "0".repeat(64))}), others),
        (json!({"inventory": null}), "data.inventory is missing"),
        (json!({"inventory": null, "inventory-sum": null}), "data.inventory is missing"),
        (json!({"inventory": "", "inventory-sum": "3"}), others),
        (json!({"inventory": "one two\n"}), "line 1 of the inventory cannot be read"),
        (json!({"inventory.gz": "%"}), "the inventory is not base64"),
        (json!({"last": "[]"}), "data.last is not in gantry's format (line 1, column 2)"),
        (json!({"parts": "true"}), "data.parts is not in gantry's format (line 1, column 4)"),
    ];
    for (data, what) in cases {
        shop.patch("shop.gantry", &json!({"data": data}));
        for command in [&["--prune=yes"][..], &["--prune=yes", "--take-over-app", "--yes"]] {
            let output = shop.deploy(command);
            output.code(1).stderr_contains(&format!("the record of the app shop is damaged: {what}"));
        }
        shop.admin(&["delete", "-a", "shop", "--yes"]).code(1).stderr_contains(what);
        shop.is_untouched();
        let none = json!({"inventory.gz": null, "parts": null});
        shop.patch("shop.gantry", &json!({"data": none}));
        shop.patch("shop.gantry", &json!({"data": whole}));
    }
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
}

#[test]
fn apps_are_listed_beside_one_whose_record_cannot_be_read() {
    let shop = shop();
    let again = ["deploy", "-f", "manifests.yaml", "-a", "zoo"];
    shop.bed.write("manifests.yaml", &shop.config_map("z", "1").to_string());
    shop.admin(&again).code(0);
    shop.patch("shop.gantry", &json!({"data": {"inventory": null}}));
    let output = shop.admin(&["apps"]);
    output.code(1).stdout_contains("unreadable record").stdout_contains("zoo");
    output.stderr_contains("the record of the app shop is damaged: data.inventory is missing");
    let output = shop.admin(&["apps", "-o", "json"]);
    let apps: Value = serde_json::from_str(&output.code(1).stdout).expect("JSON");
    assert_eq!((&apps["apps"][0]["name"], &apps["apps"][0]["objects"]), (&json!("shop"), &Value::Null));
    assert!(apps["apps"][0]["error"].as_str().expect("an error").contains("data.inventory is missing"));
    assert_eq!((&apps["apps"][1]["name"], &apps["apps"][1]["objects"]), (&json!("zoo"), &json!(1)));
    shop.admin(&["apps", "forget", "-a", "shop", "--yes"]).code(0).stdout_contains("3 objects stay");
    shop.admin(&["apps"]).code(0).stdout_contains("zoo");
}

#[test]
fn a_record_without_a_checksum_gets_one_with_the_next_write() {
    let shop = shop();
    let sum = |shop: &Shop| shop.parent()["data"]["inventory-sum"].clone();
    let three = sum(&shop);
    assert!(three.as_str().is_some_and(|sum| sum.starts_with("3 ")), "{three}");
    shop.patch("shop.gantry", &json!({"data": {"inventory-sum": null}}));
    shop.deploy(&["--prune=no"]).code(0).stdout_contains("Nothing to do");
    shop.admin(&["inspect", "-a", "shop"]).code(0);
    assert_eq!(sum(&shop), Value::Null, "nothing was written");
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
    let two = sum(&shop);
    assert!(two.as_str().is_some_and(|sum| sum.starts_with("2 ")), "{two}");
    shop.patch("shop.gantry", &json!({"data": {"inventory-sum": null}}));
    shop.admin(&["apps", "rename", "-a", "shop", "--to", "store", "--yes"]).code(0);
    assert_eq!(shop.get("store.gantry").expect("a record")["data"]["inventory-sum"], two);
}

#[test]
fn a_record_that_claims_to_be_renamed_stays_if_the_other_lacks_its_members() {
    let shop = shop();
    let parts = json!({"parts": [], "renamedTo": "other"}).to_string();
    shop.patch("shop.gantry", &json!({"data": {"parts": parts}}));
    let changed = shop.parent();
    let renamed = shop.admin(&["apps", "rename", "-a", "shop", "--to", "other", "--yes"]);
    renamed.code(1).stderr_contains("says that it was renamed to other, but other does not have its members");
    renamed.stderr_contains("restore the ConfigMap from a backup");
    shop.is_untouched();
    assert_eq!((shop.parent(), shop.get("other.gantry")), (changed, None));
}

#[test]
fn a_second_inventory_in_a_record_is_removed_by_the_next_write() {
    let shop = shop();
    let inventory = shop.parent()["data"]["inventory"].as_str().expect("an inventory").to_owned();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(inventory.as_bytes()).expect("memory takes it");
    let packed = base64::engine::general_purpose::STANDARD.encode(packed.finish().expect("memory takes it"));
    shop.patch("shop.gantry", &json!({"data": {"inventory.gz": packed}}));
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
    assert_eq!((shop.inventory(), shop.get("c")), (names(["a", "b"]), None));
    shop.deploy(&["--prune=yes"]).code(0);
    shop.admin(&["delete", "-a", "shop", "--yes"]).code(0);
    assert_eq!((shop.get("a"), shop.get("shop.gantry")), (None, None));
}
