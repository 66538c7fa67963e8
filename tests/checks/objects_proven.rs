//! `CustomResourceValidation` on changes that are proven safe: no object is requested. Objects that no proof covers are
//! still read.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::{CrdBuilder, Gantry, Isolated, Output, Proxy, control_plane, eventually, fields, isolated};
use serde_json::{Value, json};

const OBJECTS: usize = 10_000;

/// A cluster-scoped CRD with these versions: name, served, whether it is the storage version, fields of `spec`.
fn crd(names: &Isolated, versions: &[(&str, bool, bool, Value)]) -> Value {
    let add = |crd: CrdBuilder, (name, served, storage, spec): &(&str, bool, bool, Value)| {
        crd.version_of_spec(name, fields(spec.clone())).served(*served).storage(*storage)
    };
    versions.iter().fold(CrdBuilder::samples(&names.group).cluster_scoped(), add).build()
}

fn collection(names: &Isolated) -> String {
    format!("/apis/{}/v1/samples", names.group)
}

/// Creates this many objects over four connections.
fn create(names: &Isolated, objects: usize) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let api = control_plane().api_as("admin");
                while let Some(number) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|number| *number < objects) {
                    let object = json!({"apiVersion": format!("{}/v1", names.group), "kind": "Sample",
                        "metadata": {"name": format!("s{number}")}, "spec": {"size": number % 9}});
                    let (status, answer) = api.post(&collection(names), &object);
                    assert_eq!(status, 201, "{answer}");
                }
            });
        }
    });
}

fn check(proxy: &Proxy, crd: &Value, flags: &[&str]) -> Output {
    // The live objects were written by another manager.
    let checks = ["check", "-f", "-", "--force-conflicts", "--preflight", "CRDUpgradeSafety,CustomResourceValidation"];
    Gantry::new().kubeconfig(proxy.kubeconfig("admin")).args(checks).args(flags).stdin(crd.to_string()).run()
}

fn lists(proxy: &Proxy) -> usize {
    proxy.requests().iter().filter(|request| request.path.ends_with("/samples")).count()
}

#[test]
fn a_widening_change_with_ten_thousand_objects_lists_none() {
    let cp = control_plane();
    let names = isolated();
    let proxy = Proxy::start(cp);
    let of = |maximum: u64, more: Value| {
        let mut fields = json!({"size": {"type": "integer", "maximum": maximum}});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        crd(&names, &[("v1", true, true, fields)])
    };
    cp.apply_yaml(&of(10, json!({})).to_string());
    create(&names, OBJECTS);

    let wider = of(20, json!({"note": {"type": "string", "maxLength": 9}}));
    let listed = || cp.metrics("apiserver_request_total", &[("group", &names.group), ("verb", "LIST")]);
    let before = listed();
    check(&proxy, &wider, &[]).code(0).stdout_contains("  passed: proven safe for every possible object: 1 CRD\n");
    let of_crd = format!("samples.{}  passed: proven safe for every possible object; 0 read", names.group);
    check(&proxy, &wider, &["-v"]).code(0).stdout_contains(&of_crd);
    let report = check(&proxy, &wider, &["-o", "json"]).code(0).report();
    let safe = &report["checks"][1];
    assert_eq!((&safe["name"], &safe["status"]), (&json!("CustomResourceValidation"), &json!("passed")));
    assert_eq!(safe["coverage"][0]["read"], 0, "{safe}");
    assert_eq!(safe["coverage"][0]["proven"], json!(["v1"]), "{safe}");
    assert_eq!(lists(&proxy), 0, "{:?}", proxy.requests());
    // The server counts a list only after it has answered. So the test sends a list of its own, which is counted last.
    assert_eq!(cp.get(&format!("{}?limit=1", collection(&names))).0, 200);
    assert_eq!(eventually("the list is counted", || Some(listed()).filter(|now| *now > before)), before + 1.0);

    let narrower = check(&proxy, &of(7, json!({})), &["-o", "json"]).code(3).report();
    let checked = &narrower["checks"][1];
    assert_eq!(checked["coverage"], json!([{"object": checked["coverage"][0]["object"], "read": OBJECTS}]));
    assert_eq!(checked["findings"][0]["affected"]["count"], OBJECTS / 9, "those of size 8");
    assert!(lists(&proxy) > 0);
}

#[test]
fn objects_are_read_for_changes_without_a_proof() {
    let cp = control_plane();
    let names = isolated();
    let proxy = Proxy::start(cp);
    let (a, ab) = (json!({"size": {"type": "integer"}}), json!({"size": {"type": "integer"}, "b": {"type": "string"}}));
    let live = crd(&names, &[("v1", true, true, ab.clone()), ("v2", true, false, a.clone())]);
    cp.apply_yaml(&live.to_string());
    create(&names, 3);
    let set_b = json!({"spec": {"b": "a text that v2 has not shown so far"}});
    assert_eq!(cp.patch(&format!("{}/s1", collection(&names)), &set_b).0, 200);

    // Each version on its own is widened, but `b`, which v2 has dropped so far, becomes visible in s1 and is invalid.
    let short = json!({"size": {"type": "integer"}, "b": {"type": "string", "maxLength": 3}});
    let revived = crd(&names, &[("v1", true, true, ab.clone()), ("v2", true, false, short)]);
    let report = check(&proxy, &revived, &["-o", "json"]).code(0).report();
    let checked = &report["checks"][1];
    assert_eq!((&checked["coverage"][0]["read"], &checked["coverage"][0]["proven"]), (&json!(3), &Value::Null));
    assert_eq!(checked["findings"][0]["version"], "v2", "{checked}");
    assert_eq!(checked["findings"][0]["affected"]["objects"][0]["name"], "s1", "{checked}");

    // The objects show who still writes at a removed version.
    let mut wide = ab.clone();
    wide["note"] = json!({"type": "string"});
    let unserved = crd(&names, &[("v1", true, true, wide), ("v2", false, false, a)]);
    let report = check(&proxy, &unserved, &["-o", "json"]).report();
    let checked = &report["checks"][1];
    assert_eq!((&checked["coverage"][0]["read"], &checked["coverage"][0]["proven"]), (&json!(3), &json!(["v1"])));
    check(&proxy, &unserved, &["-v"]).stdout_contains("3 objects read; v1 proven safe");
}
