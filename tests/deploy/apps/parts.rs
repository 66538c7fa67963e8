//! Apps whose inventory does not fit into their record.
//!
//! The names of Roles have no length limit, so a few members with long names need as much space as very many others.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use super::{PART_OF, Shop};
use crate::support::{Proxy, When, control_plane};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// This many Roles need two parts.
const MANY: usize = 60;
const LONG: usize = 20_000;

/// A name that cannot be compressed.
fn name(index: usize) -> String {
    let mut seed = index as u64 + 1;
    let mut letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"abcdefghijklmnopqrstuvwxyz0123456789"[(seed >> 33) as usize % 36])
    };
    format!("{index:03}-{}", (0..LONG).map(|_| letter()).collect::<String>())
}

impl Shop {
    fn roles(&self, indices: impl IntoIterator<Item = usize>) {
        let role = |index| {
            let metadata = json!({"name": name(index), "namespace": self.bed.names.namespace});
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": []})
        };
        self.write(&indices.into_iter().map(role).collect::<Vec<_>>());
    }

    fn list(&self, path: &str) -> Vec<Value> {
        let (status, list) = control_plane().get(path);
        assert_eq!(status, 200, "{list}");
        list["items"].as_array().expect("items").clone()
    }

    /// The live Roles by their index: uid and label.
    fn live(&self) -> BTreeMap<usize, (String, Option<String>)> {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles", self.bed.names.namespace);
        let entry = |role: Value| {
            let metadata = &role["metadata"];
            let index = metadata["name"].as_str().expect("a name")[..3].parse().expect("an index");
            let label = metadata["labels"][PART_OF].as_str().map(str::to_owned);
            (index, (metadata["uid"].as_str().expect("a uid").to_owned(), label))
        };
        self.list(&path).into_iter().map(entry).collect()
    }

    /// The names of part objects of all apps of the namespace.
    fn part_names(&self) -> BTreeSet<String> {
        let path =
            format!("/api/v1/namespaces/{}/configmaps?labelSelector=gantry.dev/inventory-of", self.bed.names.namespace);
        let name = |part: Value| part["metadata"]["name"].as_str().expect("a name").to_owned();
        self.list(&path).into_iter().map(name).collect()
    }

    /// The names of the parts that a record lists.
    fn named_parts(&self, app: &str) -> BTreeSet<String> {
        let parent = self.get(&format!("{app}.gantry")).expect("a record");
        let Some(parts) = parent["data"]["parts"].as_str() else { return BTreeSet::new() };
        let parts: Value = serde_json::from_str(parts).expect("JSON");
        let name = |part: &Value| format!("{app}.gantry-{}", part["number"]);
        parts["parts"].as_array().expect("parts").iter().map(name).collect()
    }

    /// The uids of the whole inventory; `None` if there is no record.
    fn uids(&self, app: &str) -> Option<BTreeSet<String>> {
        let parent = self.get(&format!("{app}.gantry"))?;
        let named = self.named_parts(app);
        let text = |object: &Value| match object["data"]["inventory.gz"].as_str() {
            Some(packed) => {
                let bytes = STANDARD.decode(packed).expect("base64");
                let mut text = String::new();
                flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip");
                text
            }
            None => object["data"]["inventory"].as_str().expect("an inventory").to_owned(),
        };
        let texts: Vec<String> = match named.is_empty() {
            true => vec![text(&parent)],
            false => named.iter().map(|name| text(&self.get(name).expect("a part that the record names"))).collect(),
        };
        let uid = |line: &str| line.split(' ').nth(4).expect("a uid").to_owned();
        Some(texts.iter().flat_map(|text| text.lines()).map(uid).collect())
    }
}

fn uids(live: &BTreeMap<usize, (String, Option<String>)>) -> BTreeSet<String> {
    live.values().map(|(uid, _)| uid.clone()).collect()
}

fn parts<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

#[test]
fn a_large_inventory_is_kept_in_parts() {
    let shop = Shop::new();
    shop.roles(0..MANY);
    shop.deploy(&[]).code(0).stdout_contains("60 created");
    // The first two had no uids yet.
    let two = parts(["shop.gantry-4", "shop.gantry-5"]);
    assert_eq!((shop.named_parts("shop"), shop.part_names()), (two.clone(), two.clone()));
    assert_eq!(shop.uids("shop").unwrap(), uids(&shop.live()));
    // A program that does not know about parts finds an invalid inventory, and not an empty one.
    assert!(shop.parent()["data"]["inventory"].as_str().unwrap().contains("data.parts"));
    let apps: Value = serde_json::from_str(&shop.admin(&["apps", "-o", "json"]).stdout).expect("JSON");
    assert_eq!(apps["apps"][0]["objects"], MANY);
    let inspected: Value =
        serde_json::from_str(&shop.admin(&["inspect", "-a", "shop", "-o", "json"]).stdout).expect("JSON");
    assert_eq!(inspected["objects"].as_array().map(Vec::len), Some(MANY));
    assert!(inspected["objects"].as_array().unwrap().iter().all(|object| object["state"] == "member"));

    // There is nothing to do, and nothing is written; the members are recognised by their metadata alone.
    let version = shop.parent()["metadata"]["resourceVersion"].clone();
    let proxy = Proxy::start(control_plane());
    let again = ["deploy", "-f", "manifests.yaml", "-a", "shop"];
    shop.command(proxy.kubeconfig("admin"), &again).run().code(0).stdout_contains("Nothing to do");
    assert_eq!((&shop.parent()["metadata"]["resourceVersion"], proxy.writes()), (&version, Vec::new()));
    let members = proxy.requests().into_iter().filter(|request| request.path.ends_with("/roles"));
    assert!(members.clone().count() > 0 && members.into_iter().all(|request| request.metadata_only));

    // One member less: new parts, with unused numbers.
    shop.roles(1..MANY);
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
    let others = parts(["shop.gantry-2", "shop.gantry-3"]);
    assert_eq!((shop.named_parts("shop"), shop.part_names()), (others.clone(), others));
    assert_eq!(shop.uids("shop").unwrap(), uids(&shop.live()));

    // Few enough for the record again.
    shop.roles(1..4);
    shop.deploy(&["--prune=yes"]).code(3).stdout_contains("PruneLimit: 56 of 59 members");
    shop.deploy(&["--prune=yes", "--prune-max=56"]).code(0).stdout_contains("56 deleted");
    assert_eq!((shop.part_names(), shop.live().len()), (BTreeSet::new(), 3));
    assert_eq!(shop.uids("shop").unwrap(), uids(&shop.live()));
    shop.roles(1..3);
    shop.deploy(&["--prune=yes"]).code(0).stdout_contains("1 deleted");
    assert_eq!(shop.parent()["data"]["parts"], Value::Null, "nothing is left to look for");
}

#[test]
fn a_missing_part_is_not_taken_for_an_empty_one() {
    let shop = Shop::new();
    shop.roles(0..MANY);
    shop.deploy(&[]).code(0);
    let mut part = shop.get("shop.gantry-5").expect("a part");
    for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
        part["metadata"].as_object_mut().unwrap().remove(key);
    }
    shop.delete("shop.gantry-5");
    shop.roles(0..1);
    let commands: [&[&str]; 4] = [
        &["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes", "--prune-max=100%"],
        &["delete", "-a", "shop", "--yes"],
        &["inspect", "-a", "shop"],
        &["apps", "rename", "-a", "shop", "--to", "store", "--yes"],
    ];
    let fails = |what: &str| {
        for command in commands {
            let output = shop.admin(command);
            output.code(1).stderr_contains(what).stderr_contains("of the inventory of the app shop");
            output.stderr_contains("gantry apps forget");
        }
        assert_eq!((shop.live().len(), shop.get("store.gantry")), (MANY, None));
    };
    fails("configmap/shop.gantry-5 -n ");
    shop.admin(&["apps"]).code(1).stdout_contains("unreadable record").stderr_contains("configmap/shop.gantry-5 -n ");
    // The same for a part that was replaced.
    let mut other = part.clone();
    other["data"] = json!({"inventory": ""});
    control_plane().apply_yaml(&other.to_string());
    fails("was changed by another client");
    shop.delete("shop.gantry-5");
    control_plane().apply_yaml(&part.to_string());
    shop.admin(commands[0]).code(0).stdout_contains("59 deleted");

    // A record that lists fewer parts, or one of them twice, is never used as an app with fewer members.
    shop.roles(0..MANY);
    shop.deploy(&[]).code(0);
    shop.roles(0..1);
    let whole = shop.parent()["data"].clone();
    let both: Value = serde_json::from_str(whole["parts"].as_str().unwrap()).expect("JSON");
    let (first, second) = (&both["parts"][0], &both["parts"][1]);
    let damaged = |data: &Value, what: &str| {
        shop.patch("shop.gantry", &json!({"data": data}));
        for command in commands.iter().chain([&["apps"][..]].iter()) {
            let output = shop.admin(command);
            output.code(1).stderr_contains("the record of the app shop is damaged").stderr_contains(what);
            output.stderr_contains("gantry apps forget");
        }
        assert_eq!((shop.live().len(), shop.get("store.gantry")), (MANY, None), "{what}");
        shop.patch("shop.gantry", &json!({"data": whole}));
    };
    let parts = |parts: Value| json!({"parts": json!({"parts": parts}).to_string()});
    damaged(&parts(json!([first])), "objects, but had 60 when it was written");
    damaged(&parts(json!([first, second, second])), &format!("lists part {} twice", second["number"]));
    damaged(&parts(json!({})), "data.parts is not in gantry's format (line 1, column 9)");
    damaged(&json!({"parts": null}), "line 1 of the inventory cannot be read");
    damaged(&json!({"parts": null, "inventory": null}), "data.inventory is missing");
    shop.deploy(&["--prune=yes", "--prune-max=100%"]).code(0).stdout_contains("59 deleted");

    // If a record is given up, the remaining parts are deleted with it.
    for record in [json!({}), json!({"parts": null, "inventory": null})] {
        shop.roles(0..MANY);
        shop.deploy(&[]).code(0);
        shop.patch("shop.gantry", &json!({"data": record}));
        shop.delete(shop.part_names().first().unwrap());
        shop.admin(&["apps", "forget", "-a", "shop", "--yes"]).code(0).stdout_contains("60 objects stay");
        assert_eq!((shop.get("shop.gantry"), shop.part_names()), (None, BTreeSet::new()), "{record}");
        assert!(shop.live().values().all(|(_, label)| label.is_none()));
    }
}

#[test]
fn a_deploy_that_is_killed_as_it_writes_parts_is_finished_by_the_next_one() {
    let shop = Shop::new();
    shop.roles(0..MANY);
    shop.deploy(&[]).code(0);
    let path = format!("/namespaces/{}/configmaps/shop.gantry", shop.bed.names.namespace);
    // A create at the end of a second that no record knows of looks like an object that existed before.
    let prune = ["--prune=yes", "--prune-adopted"];
    // The record at the start of the deploy, two parts, the record; the two old parts.
    let cuts: Vec<(&str, usize)> = (1..=4).map(|nth| ("PATCH", nth)).chain([("DELETE", 1), ("DELETE", 2)]).collect();
    for (last, (method, nth)) in cuts.into_iter().enumerate() {
        let case = format!("killed at {method} {nth}");
        let before = shop.live();
        shop.roles(last + 1..MANY + last + 1);
        let proxy = Proxy::start(control_plane());
        let held = proxy.hold(When::new(method, &path).nth(nth));
        let arguments = ["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes"];
        let mut running = shop.command(proxy.kubeconfig("admin"), &arguments).spawn();
        held.reached();
        running.kill();
        drop(running);
        proxy.refuse();
        // Every former member that still exists has both the label and its uid in the record.
        let (inventory, now) = (shop.uids("shop").unwrap(), shop.live());
        for (index, (uid, _)) in before.iter().filter(|(index, _)| now.contains_key(index)) {
            assert!(inventory.contains(uid), "{case}: {index}");
        }
        shop.deploy(&prune).code(0);
        let now = shop.live();
        assert_eq!(now.keys().copied().collect::<Vec<_>>(), (last + 1..MANY + last + 1).collect::<Vec<_>>(), "{case}");
        assert_eq!(shop.uids("shop").unwrap(), uids(&now), "{case}");
    }
    // The next deploy that writes the record deletes the parts that a killed deploy left behind.
    shop.roles(0..MANY);
    shop.deploy(&prune).code(0);
    assert_eq!(shop.part_names(), shop.named_parts("shop"));
    shop.admin(&["delete", "-a", "shop", "--yes", "--prune-adopted"]).code(0).stdout_contains("60 deleted");
    assert_eq!((shop.get("shop.gantry"), shop.part_names(), shop.live().len()), (None, BTreeSet::new(), 0));
}

#[test]
fn an_interrupted_rename_or_deletion_of_a_large_app_is_finished_by_the_same_command() {
    let shop = Shop::new();
    shop.roles(0..MANY);
    shop.deploy(&[]).code(0);
    let all = uids(&shop.live());
    let killed = |arguments: &[&str], method: &str, path: &str, nth: usize| {
        let proxy = Proxy::start(control_plane());
        let path = format!("/namespaces/{}/configmaps/{path}", shop.bed.names.namespace);
        let held = proxy.hold(When::new(method, &path).nth(nth));
        let mut running = shop.command(proxy.kubeconfig("admin"), arguments).spawn();
        held.reached();
        running.kill();
        drop(running);
        proxy.refuse();
    };
    let (mut from, mut to) = ("shop", "store");
    // The parts and the record under the new name; the end of the old record, its parts and itself.
    for (method, of_new, nth) in [
        ("PATCH", true, 2),
        ("PATCH", true, 3),
        ("PATCH", false, 2),
        ("DELETE", false, 1),
        ("DELETE", false, 2),
        ("DELETE", false, 3),
    ] {
        let case = format!("killed at {method} {nth} from {from} to {to}");
        let arguments = ["apps", "rename", "-a", from, "--to", to, "--yes"];
        killed(&arguments, method, &format!("{}.gantry", if of_new { to } else { from }), nth);
        let id = |app: &str| {
            Some(shop.get(&format!("{app}.gantry"))?["metadata"]["labels"]["applyset.kubernetes.io/id"].clone())
        };
        for (index, (uid, label)) in shop.live() {
            let app = if id(from) == label.clone().map(Value::from) { from } else { to };
            assert!(shop.uids(app).is_some_and(|uids| uids.contains(&uid)), "{case}: {index}");
        }
        shop.admin(&arguments).code(0).stdout_contains(&format!("Renamed the app {from} to {to}"));
        assert_eq!((shop.uids(from), shop.uids(to)), (None, Some(all.clone())), "{case}");
        assert_eq!(shop.part_names(), shop.named_parts(to), "{case}");
        let labels: BTreeSet<Option<String>> = shop.live().into_values().map(|(_, label)| label).collect();
        assert_eq!(labels, [id(to).and_then(|id| id.as_str().map(str::to_owned))].into(), "{case}");
        std::mem::swap(&mut from, &mut to);
    }
    // The record is deleted last, so that everything that remains can be found.
    let delete = ["delete", "-a", from, "--yes"];
    for nth in [1, 2, 2] {
        killed(&delete, "DELETE", &format!("{from}.gantry"), nth);
        assert!(shop.get(&format!("{from}.gantry")).is_some(), "{nth}");
    }
    shop.admin(&delete).code(0);
    assert_eq!((shop.uids(from), shop.part_names(), shop.live().len()), (None, BTreeSet::new(), 0));
}
