//! Addresses of load balancers: what waits for them, and what does not. The tests act as the controller.
//!
//! Tests start in the order of their names, and one of these lasts a minute: it must not be among the last.

use crate::support::{control_plane, eventually};
use crate::waiting::{Stage, available, status};
use serde_json::{Value, json};

const GROUP: &str = "gantry.dev/change-group";
const RULE: &str = "gantry.dev/change-rule";

fn balancer(stage: &Stage) -> Value {
    let spec = json!({"type": "LoadBalancer", "selector": {"run": "web"}, "ports": [{"port": 80}]});
    stage.object("v1", "Service", "front", json!({GROUP: "front"}), spec)
}

fn ingress(stage: &Stage, name: &str, annotations: Value) -> Value {
    let backend = json!({"service": {"name": "front", "port": {"number": 80}}});
    stage.object("networking.k8s.io/v1", "Ingress", name, annotations, json!({"defaultBackend": backend}))
}

fn after_it() -> Value {
    json!({RULE: "upsert after upserting front"})
}

fn exists(object: &Value) -> bool {
    control_plane().get(&control_plane().path_of(object)).0 == 200
}

fn written(object: &Value) {
    eventually("the object is written", || exists(object).then_some(()));
}

#[test]
fn a_pending_load_balancer_delays_only_objects_with_a_rule_about_its_address() {
    let stage = Stage::new();
    let (balancer, web) = (balancer(&stage), stage.deployment());
    let (ingress, after) = (ingress(&stage, "front", json!({})), ingress(&stage, "after", after_it()));
    stage.write(&[&balancer, &ingress, &web, &after]);
    let running = stage.deploy(&["-o", "human", "-o", "json=report.json"]).spawn();
    // The default order only needs the Service itself.
    [&balancer, &web, &ingress].into_iter().for_each(written);
    status(&web, available(2));
    assert!(!exists(&after));
    status(&balancer, json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}));
    written(&after);
    running.wait().code(0).stdout_contains("4 created").contains_nowhere("load balancer");
    let report = std::fs::read_to_string(stage.bed.folder.path().join("report.json")).expect("a report");
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let waits = report["waits"].as_array().expect("waits");
    assert!(waits.len() == 4 && waits.iter().all(|wait| wait["state"] == "ready"), "{waits:?}");
}

/// Lasts a minute.
#[test]
fn a_load_balancer_without_an_address_is_a_notice_after_a_minute_and_no_failure() {
    let stage = Stage::new();
    let (balancer, mut after) = (balancer(&stage), stage.deployment_named("after"));
    after["metadata"]["annotations"] = after_it();
    stage.write(&[&balancer, &after]);
    let running = stage.deploy(&["-o", "json"]).spawn();
    written(&balancer);
    written(&after);
    status(&after, available(2));
    let output = running.wait();
    let notice = format!("service/front -n {}: it has no load balancer address yet", stage.namespace());
    output.code(0).stderr_contains(&notice);
    let notices = output.stderr.lines().filter(|line| line.starts_with("notice:") && line.contains("load balancer"));
    assert_eq!(notices.count(), 1, "{output}");
    let report = output.report();
    let waits = report["waits"].as_array().expect("waits");
    let of = |name: &str| {
        let is_it = |wait: &&Value| {
            report["changes"][wait["change"].as_u64().expect("an index") as usize]["object"]["name"] == name
        };
        waits.iter().find(is_it).expect("a wait")
    };
    assert_eq!(of("front")["state"], "inProgress", "{report}");
    let seconds = of("front")["seconds"].as_u64().expect("seconds");
    assert!((60..110).contains(&seconds), "{report}");
    assert_eq!(of("after")["state"], "ready", "{report}");
    assert_eq!(stage.last()["outcome"], "applied");
}
