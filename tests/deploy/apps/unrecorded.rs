//! Objects of the manifests that have the app's label, but are not in its record.

use super::{PART_OF, Shop, names};
use crate::support::{Proxy, When, control_plane, eventually};
use jiff::Timestamp;
use serde_json::json;

/// Whether `a` is recorded as an object that existed before the app.
fn is_adopted(shop: &Shop) -> bool {
    shop.config_maps(&["stays"]);
    let output = shop.deploy(&["--prune=yes"]);
    let stays = output.code(0).stderr.contains("stays: it existed before the app");
    assert_eq!(shop.get("a").is_some(), stays, "{output}");
    stays
}

#[test]
fn an_object_with_a_foreign_label_is_recorded_as_adopted() {
    for value in ["1", "other"] {
        let shop = Shop::new();
        shop.config_maps(&["stays"]);
        shop.deploy(&[]).code(0);
        let mut by_hand = shop.config_map("a", value);
        by_hand["metadata"]["labels"] = json!({PART_OF: shop.get("stays").unwrap()["metadata"]["labels"][PART_OF]});
        control_plane().apply_yaml(&by_hand.to_string());
        shop.config_maps(&["stays", "a"]);
        shop.deploy(&["--force-conflicts"]).code(0);
        assert_eq!(shop.inventory(), names(["stays", "a"]));
        // The next deploy keeps what the record says.
        shop.deploy(&[]).code(0).stdout_contains("2 objects unchanged");
        assert!(is_adopted(&shop), "{value}");
    }
}

#[test]
fn objects_of_an_interrupted_run_are_recorded_as_created_or_adopted() {
    for existed in [false, true] {
        let shop = Shop::new();
        shop.config_maps(&["stays"]);
        shop.deploy(&[]).code(0);
        if existed {
            control_plane().apply_yaml(&shop.config_map("a", "1").to_string());
            // Times of the server are in seconds.
            let created = shop.get("a").unwrap()["metadata"]["creationTimestamp"].clone();
            let created: Timestamp = created.as_str().unwrap().parse().unwrap();
            eventually("the next second", || (Timestamp::now().as_second() > created.as_second()).then_some(()));
        }
        shop.config_maps(&["stays", "a"]);
        let proxy = Proxy::start(control_plane());
        proxy.cut(When::new("PATCH", "/configmaps/shop.gantry").starting_at_nth(2));
        shop.command(proxy.kubeconfig("admin"), &["deploy", "-f", "manifests.yaml", "-a", "shop"]).run().code(1);
        // It was recorded before it was written.
        assert_eq!(shop.inventory(), names(["stays", "a"]));
        assert!(shop.get("a").unwrap()["metadata"]["labels"][PART_OF].is_string());
        shop.deploy(&[]).code(0);
        assert_eq!(shop.inventory(), names(["stays", "a"]));
        assert_eq!(is_adopted(&shop), existed);
    }
}
