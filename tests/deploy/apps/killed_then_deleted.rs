//! Deploys that are killed and then not repeated: `gantry delete` deletes what they wrote, and nothing else.

use super::killed::{live_in, object};
use super::{PART_OF, Shop};
use crate::support::{Proxy, When, control_plane, eventually};
use serde_json::{Value, json};

/// An app in two namespaces, beside objects that are not its own.
struct Begun {
    shop: Shop,
    other: Shop,
    theirs: Vec<Value>,
}

impl Begun {
    fn new() -> Self {
        let (shop, other) = (Shop::new(), Shop::new());
        let mut of_another_app = shop.config_map("of-another-app", "1");
        of_another_app["metadata"]["labels"] = json!({PART_OF: "applyset-other-v1"});
        let theirs = [shop.config_map("neighbour", "1"), other.config_map("neighbour", "1"), of_another_app];
        let theirs = theirs.iter().map(|object| control_plane().apply_yaml(&object.to_string()).remove(0)).collect();
        Begun { shop, other, theirs }
    }

    fn first(&self) {
        let namespaces = [&self.shop, &self.other];
        let [shop, other] = namespaces;
        self.shop.write(&[
            object("ConfigMap", shop, "a", json!({"round": "1"})),
            object("Secret", shop, "b", json!({})),
            object("ServiceAccount", other, "c", json!({})),
        ]);
    }

    fn second(&self) {
        self.shop.write(&[
            object("ConfigMap", &self.shop, "a", json!({"round": "2"})),
            object("ConfigMap", &self.other, "d", json!({})),
        ]);
    }

    fn deploy(&self, kubeconfig: std::path::PathBuf) -> crate::support::Gantry {
        self.shop.command(kubeconfig, &["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes", "--prune-max=9"])
    }

    /// Kills a deploy at the nth request with a method, deletes the app, and asserts what is left.
    fn kill_and_delete(&self, method: &str, nth: usize) {
        let case = format!("killed at {method} {nth}");
        let proxy = Proxy::start(control_plane());
        let held = proxy.hold(When::new(method, "").nth(nth));
        let mut running = self.deploy(proxy.kubeconfig("admin")).spawn();
        held.reached();
        running.kill();
        drop(running);
        proxy.refuse();
        let output = self.shop.admin(&["delete", "-a", "shop", "--yes"]);
        output.code(0);
        let left = live_in(&[&self.shop, &self.other]);
        let left: Vec<_> = left.keys().filter(|(_, _, name)| name != "of-another-app").collect();
        assert!(left.is_empty(), "{case}: {left:?}\n{output}");
        assert_eq!(self.shop.get("shop.gantry"), None, "{case}: {output}");
        for theirs in &self.theirs {
            let (_, live) = control_plane().get(&control_plane().path_of(theirs));
            assert_eq!(live["metadata"]["uid"], theirs["metadata"]["uid"], "{case}: {output}");
            assert_eq!(live["metadata"]["labels"], theirs["metadata"]["labels"], "{case}: {output}");
        }
    }
}

fn first_deploys(requests: &[(&str, usize)]) {
    let begun = Begun::new();
    begun.first();
    requests.iter().for_each(|(method, nth)| begun.kill_and_delete(method, *nth));
}

fn upgrades(requests: &[(&str, usize)]) {
    let begun = Begun::new();
    for (method, nth) in requests {
        begun.first();
        begun.deploy(control_plane().kubeconfig("admin")).run().code(0).stdout_contains("3 created");
        begun.second();
        begun.kill_and_delete(method, *nth);
    }
}

#[test]
fn a_first_deploy_that_is_killed_at_any_write_is_deleted() {
    // The record, three members, and the record.
    first_deploys(&(1..=5).map(|nth| ("PATCH", nth)).collect::<Vec<_>>());
}

#[test]
fn an_upgrade_that_is_killed_at_any_write_is_deleted() {
    // The record, two members, and the record; two deletions before the final write of the record.
    let patches = (1..=4).map(|nth| ("PATCH", nth));
    upgrades(&patches.chain((1..=2).map(|nth| ("DELETE", nth))).collect::<Vec<_>>());
}

#[test]
#[ignore = "takes minutes"]
fn a_deploy_that_is_killed_at_any_request_is_deleted() {
    let count = |upgrade: bool| {
        let begun = Begun::new();
        begun.first();
        let proxy = Proxy::start(control_plane());
        let kubeconfig = if upgrade { control_plane().kubeconfig("admin") } else { proxy.kubeconfig("admin") };
        begun.deploy(kubeconfig).run().code(0);
        if upgrade {
            begun.second();
            begun.deploy(proxy.kubeconfig("admin")).run().code(0);
        }
        begun.shop.admin(&["delete", "-a", "shop", "--yes"]).code(0);
        (1..=proxy.requests().len()).map(|nth| ("", nth)).collect::<Vec<_>>()
    };
    let (first, upgrade) = (count(false), count(true));
    println!("{} requests of a first deploy, {} of an upgrade", first.len(), upgrade.len());
    std::thread::scope(|scope| {
        scope.spawn(|| first_deploys(&first));
        scope.spawn(|| upgrades(&upgrade));
    });
}

#[test]
fn a_deploy_that_is_killed_while_it_waits_is_deleted() {
    let shop = Shop::new();
    // Nothing schedules it.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stuck"},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    shop.write(&[shop.config_map("a", "1"), pod]);
    let path = format!("/api/v1/namespaces/{}/pods/stuck", shop.bed.names.namespace);
    let mut running =
        shop.command(control_plane().kubeconfig("admin"), &["deploy", "-f", "manifests.yaml", "-a", "shop"]).spawn();
    eventually("the Pod is written", || (control_plane().get(&path).0 == 200).then_some(()));
    eventually("the ConfigMap is written", || shop.get("a"));
    running.kill();
    drop(running);
    let inspected = shop.admin(&["inspect", "-a", "shop", "-o", "json"]).code(0).report();
    let states: Vec<&Value> =
        inspected["objects"].as_array().expect("objects").iter().map(|object| &object["state"]).collect();
    assert_eq!(states, ["member", "member"], "{inspected}");
    shop.admin(&["delete", "-a", "shop", "--yes"]).code(0).stdout_contains("2 deleted");
    assert_eq!((shop.get("a"), shop.get("shop.gantry")), (None, None));
    assert_eq!(control_plane().get(&path).0, 404);
}

/// The response is lost, so gantry cannot know whether the object exists.
#[test]
fn an_object_whose_creation_got_no_response_is_deleted_with_the_app() {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    let proxy = Proxy::start(control_plane());
    proxy.lose_answer(When::new("PATCH", "/configmaps/a"));
    shop.command(proxy.kubeconfig("admin"), &["deploy", "-f", "manifests.yaml", "-a", "shop"]).run().code(1);
    assert!(shop.get("a").is_some());
    shop.admin(&["delete", "-a", "shop", "--yes"]).code(0).stdout_contains("1 deleted");
    assert_eq!((shop.get("a"), shop.get("shop.gantry")), (None, None));
}

#[test]
fn a_record_stays_as_long_as_live_objects_carry_the_label() {
    let shop = Shop::new();
    shop.config_maps(&["a"]);
    shop.deploy(&[]).code(0);
    let mut by_hand = shop.config_map("by-hand", "1");
    by_hand["metadata"]["labels"] =
        json!({PART_OF: shop.get("a").expect("it is there")["metadata"]["labels"][PART_OF]});
    control_plane().apply_yaml(&by_hand.to_string());
    let namespace = &shop.bed.names.namespace;
    for (deleted, kept) in [("1 deleted", true), ("Nothing to delete", true)] {
        let output = shop.admin(&["delete", "-a", "shop", "--yes"]);
        output.code(0).stdout_contains(deleted).stderr_contains("still carries the label of the app");
        output.stderr_contains(&format!("gantry apps forget -a shop -n {namespace}"));
        assert_eq!((shop.get("a").is_some(), shop.get("shop.gantry").is_some()), (false, kept), "{output}");
    }
    shop.admin(&["apps", "forget", "-a", "shop", "--yes"]).code(0).stdout_contains("1 object stays in the cluster");
    assert_eq!(shop.get("shop.gantry"), None);
    assert_eq!(shop.get("by-hand").expect("it stays")["metadata"]["labels"], Value::Null);
}
