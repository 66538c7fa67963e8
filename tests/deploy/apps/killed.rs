//! Deploys of an app that are killed: whatever the moment, nothing else is deleted, the record names every kind and
//! namespace with members, and the next deploy finishes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::{PART_OF, Shop};
use crate::support::{Gantry, Proxy, When, control_plane};
use serde_json::{Value, json};

/// An object: its kind, its namespace and its name.
type Place = (&'static str, String, String);

const KINDS: [(&str, &str); 3] =
    [("ConfigMap", "configmaps"), ("Secret", "secrets"), ("ServiceAccount", "serviceaccounts")];
/// The ConfigMaps that are in every round.
const KEPT: usize = 8;

/// The objects with the label of an app.
pub fn live_in(shops: &[&Shop]) -> BTreeMap<Place, Value> {
    let mut live = BTreeMap::new();
    for (kind, plural) in KINDS {
        for shop in shops {
            let namespace = &shop.bed.names.namespace;
            let (_, list) =
                control_plane().get(&format!("/api/v1/namespaces/{namespace}/{plural}?labelSelector={PART_OF}"));
            for object in list["items"].as_array().expect("items") {
                let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
                live.insert((kind, namespace.clone(), name), object.clone());
            }
        }
    }
    live
}

/// An app whose deploys update eight objects, create six, and delete six, of other kinds and in another namespace.
struct Chain {
    shop: Shop,
    other: Shop,
    round: usize,
    /// The uids of the objects that are in every round.
    kept: BTreeMap<Place, Value>,
}

impl Chain {
    fn new() -> Self {
        let mut chain = Chain { shop: Shop::new(), other: Shop::new(), round: 0, kept: BTreeMap::new() };
        chain.write();
        chain.deploy(control_plane().kubeconfig("admin")).run().code(0).stdout_contains("14 created");
        // An object with the label and without an entry in the inventory.
        let mut theirs = chain.shop.config_map("theirs", "0");
        theirs["metadata"]["labels"] =
            json!({ PART_OF: chain.shop.parent()["metadata"]["labels"]["applyset.kubernetes.io/id"] });
        control_plane().apply_yaml(&theirs.to_string());
        let stays = |place: &Place| place.2.starts_with('c') || place.2 == "theirs";
        let live = chain.live().into_iter().filter(|(place, _)| stays(place));
        chain.kept = live.map(|(place, object)| (place, object["metadata"]["uid"].clone())).collect();
        assert_eq!(chain.kept.len(), KEPT + 1);
        chain
    }

    fn places(&self, round: usize) -> BTreeSet<Place> {
        let of = |kind, shop: &Shop, prefix: &str, count| {
            let namespace = shop.bed.names.namespace.clone();
            let place = move |index| (kind, namespace.clone(), format!("{prefix}{index}"));
            (0..count).map(place).collect::<Vec<Place>>()
        };
        let others = match round % 2 {
            0 => [of("Secret", &self.shop, "s", 3), of("ConfigMap", &self.shop, "d", 3)],
            _ => [of("ServiceAccount", &self.other, "a", 3), of("ConfigMap", &self.other, "d", 3)],
        };
        of("ConfigMap", &self.shop, "c", KEPT).into_iter().chain(others.into_iter().flatten()).collect()
    }

    /// The manifests of the round.
    fn write(&self) {
        let object = |(kind, namespace, name): &Place| {
            let metadata =
                json!({"name": name, "namespace": namespace, "annotations": {"round": self.round.to_string()}});
            json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
        };
        self.shop.write(&self.places(self.round).iter().map(object).collect::<Vec<_>>());
    }

    fn deploy(&self, kubeconfig: std::path::PathBuf) -> Gantry {
        let flags = ["deploy", "-f", "manifests.yaml", "-a", "shop", "--prune=yes", "--wait=false"];
        self.shop.command(kubeconfig, &flags)
    }

    /// The objects with the label of the app.
    fn live(&self) -> BTreeMap<Place, Value> {
        live_in(&[&self.shop, &self.other])
    }

    /// Asserts what holds at any moment of a deploy.
    fn holds(&self, case: &str) -> BTreeMap<Place, Value> {
        let live = self.live();
        for (place, uid) in &self.kept {
            assert_eq!(live.get(place).map(|object| &object["metadata"]["uid"]), Some(uid), "{case}: {place:?}");
        }
        let parent = self.shop.parent();
        let list = |key: &str| -> BTreeSet<String> {
            let text = parent["metadata"]["annotations"][format!("applyset.kubernetes.io/{key}")].as_str();
            text.unwrap_or_default().split(',').map(str::to_owned).collect()
        };
        let (kinds, namespaces) = (list("contains-group-kinds"), list("additional-namespaces"));
        for (kind, namespace, name) in live.keys() {
            let is_reached = kinds.contains(*kind)
                && (*namespace == self.shop.bed.names.namespace || namespaces.contains(namespace));
            assert!(is_reached, "{case}: the record leads to {kinds:?} in {namespaces:?} and not to {kind} {name}");
        }
        // Deletions come last.
        let round = self.round.to_string();
        let is_new = |place: &Place| {
            live.get(place).is_some_and(|object| object["metadata"]["annotations"]["round"] == round.as_str())
        };
        if self.places(self.round - 1).iter().any(|place| !live.contains_key(place)) {
            assert!(self.places(self.round).iter().all(is_new), "{case}: deleted before all is written");
        }
        live
    }

    /// Begins the next round, and lets `kill` end its deploy; the next deploy finishes.
    fn killed(&mut self, case: &str, kill: impl FnOnce(&Chain)) -> usize {
        self.round += 1;
        self.write();
        kill(self);
        let left = self.holds(case).len();
        let output = self.deploy(control_plane().kubeconfig("admin")).run();
        output.code(0);
        let there: BTreeSet<Place> = self.holds(case).into_keys().filter(|place| place.2 != "theirs").collect();
        let expected = self.places(self.round);
        assert_eq!(there, expected, "{case}: {output}");
        assert_eq!(self.shop.inventory(), expected.into_iter().map(|(.., name)| name).collect(), "{case}");
        assert_eq!(self.shop.last()["outcome"], "applied", "{case}");
        left
    }
}

/// Kills deploys each at another of these requests: the nth with a method.
fn kill_at(requests: &[(&str, usize)]) {
    let mut chain = Chain::new();
    for (method, nth) in requests {
        chain.killed(&format!("killed at {method} {nth}"), |chain| {
            let proxy = Proxy::start(control_plane());
            // Access reviews write nothing.
            let held = proxy.hold(When::new(method, "").nth(*nth));
            let mut running = chain.deploy(proxy.kubeconfig("admin")).spawn();
            held.reached();
            running.kill();
            drop(running);
            proxy.refuse();
        });
    }
}

fn in_parallel(requests: &[(&str, usize)]) {
    std::thread::scope(|scope| {
        for some in requests.chunks(requests.len().div_ceil(2)) {
            scope.spawn(|| kill_at(some));
        }
    });
}

#[test]
fn a_deploy_that_is_killed_at_any_write_is_finished_by_the_next_one() {
    // The record, 14 members, the record; and six deletions before the final write of the record.
    let patches = (1..=16).map(|nth| ("PATCH", nth));
    in_parallel(&patches.chain((1..=6).map(|nth| ("DELETE", nth))).collect::<Vec<_>>());
}

/// A manifest.
pub fn object(kind: &str, shop: &Shop, name: &str, annotations: Value) -> Value {
    let metadata = json!({"name": name, "namespace": shop.bed.names.namespace, "annotations": annotations});
    json!({"apiVersion": "v1", "kind": kind, "metadata": metadata})
}

/// Kills a `gantry delete` at the nth request with a method; the next one finishes.
fn delete_killed_at(method: &str, nth: usize) {
    let case = format!("killed at {method} {nth}");
    let (shop, other) = (Shop::new(), Shop::new());
    shop.write(&[
        object("ConfigMap", &shop, "a", Value::Null),
        object("Secret", &shop, "b", Value::Null),
        object("ServiceAccount", &other, "c", Value::Null),
        object("ConfigMap", &shop, "kept", json!({"gantry.dev/prune": "keep"})),
    ]);
    shop.deploy(&[]).code(0).stdout_contains("4 created");
    let id = shop.parent()["metadata"]["labels"]["applyset.kubernetes.io/id"].clone();
    let mut theirs = shop.config_map("theirs", "0");
    theirs["metadata"]["labels"] = json!({ PART_OF: id });
    let theirs = control_plane().apply_yaml(&theirs.to_string()).remove(0);
    let labelled = || -> BTreeSet<String> {
        let live = live_in(&[&shop, &other]);
        live.into_keys().map(|(_, _, name)| name).filter(|name| name != "theirs").collect()
    };

    let delete = |kubeconfig| shop.command(kubeconfig, &["delete", "-a", "shop", "--yes"]);
    let proxy = Proxy::start(control_plane());
    let held = proxy.hold(When::new(method, "").nth(nth));
    let mut running = delete(proxy.kubeconfig("admin")).spawn();
    held.reached();
    running.kill();
    drop(running);
    proxy.refuse();
    // As long as there are members, the record leads to them.
    let left = labelled();
    assert!(shop.get("shop.gantry").is_some(), "{case}");
    let inventory = shop.inventory();
    assert!(left.is_subset(&inventory), "{case}: {left:?} and not only {inventory:?}");

    let output = delete(control_plane().kubeconfig("admin")).run();
    output.code(0).stderr_contains("configmap/theirs");
    assert_eq!(labelled(), BTreeSet::new(), "{case}: {output}");
    // The record leads to the object that still carries the label.
    assert_eq!((shop.inventory(), shop.get("shop.gantry").is_some()), (BTreeSet::new(), true), "{case}: {output}");
    assert!(shop.get("a").is_none() && shop.get("kept").is_some(), "{case}: {output}");
    let still = shop.get("theirs").map(|object| object["metadata"]["resourceVersion"].clone());
    assert_eq!(still.as_ref(), Some(&theirs["metadata"]["resourceVersion"]), "{case}: {output}");
}

#[test]
fn a_delete_of_an_app_that_is_killed_at_any_write_is_finished_by_the_next_one() {
    // The record, the member that is let go, and the record; three members.
    let writes: Vec<(&str, usize)> =
        (1..=3).map(|nth| ("PATCH", nth)).chain((1..=3).map(|nth| ("DELETE", nth))).collect();
    std::thread::scope(|scope| {
        for some in writes.chunks(3) {
            scope.spawn(|| some.iter().for_each(|(method, nth)| delete_killed_at(method, *nth)));
        }
    });
}

#[test]
#[ignore = "takes minutes"]
fn a_deploy_that_is_killed_at_any_request_is_finished_by_the_next_one() {
    let mut chain = Chain::new();
    let mut number = 0;
    chain.killed("counting requests", |chain| {
        let proxy = Proxy::start(control_plane());
        chain.deploy(proxy.kubeconfig("admin")).run().code(0);
        number = proxy.requests().len();
    });
    println!("{number} requests");
    in_parallel(&(1..=number).map(|nth| ("", nth)).collect::<Vec<_>>());
}

#[test]
#[ignore = "takes minutes"]
fn a_deploy_that_is_killed_at_a_random_moment_is_finished_by_the_next_one() {
    let mut chain = Chain::new();
    let mut usual = Duration::ZERO;
    chain.killed("measuring", |chain| {
        let start = Instant::now();
        chain.deploy(control_plane().kubeconfig("admin")).run().code(0);
        usual = start.elapsed();
    });
    let mut moments = BTreeMap::<usize, usize>::new();
    for number in 0..200u32 {
        // Fractions of the golden ratio are spread evenly.
        let moment = usual.mul_f64((f64::from(number) * 0.618_033_988_75).fract() * 1.1);
        let left = chain.killed(&format!("killed after {moment:?}"), |chain| {
            let mut running = chain.deploy(control_plane().kubeconfig("admin")).spawn();
            std::thread::sleep(moment);
            running.kill();
            drop(running.wait());
        });
        *moments.entry(left).or_default() += 1;
    }
    println!("a deploy takes {usual:?}; objects with the label after a kill, and how often: {moments:?}");
}
