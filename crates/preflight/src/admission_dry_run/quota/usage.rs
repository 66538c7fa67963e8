//! How much one object uses of a quota, by the keys of the quota, computed as the API server does.
//!
//! Source: the evaluators in `k8s.io/kubernetes/pkg/quota/v1/evaluator/core`, and `PodRequests` and `PodLimits` in
//! `k8s.io/component-helpers/resource`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::amount::Amount;
use gantry_core::resource::Resource;

/// Amounts by the keys of `spec.hard`.
pub type Usage = BTreeMap<String, Amount>;

/// Kinds that a quota may also count without `count/`.
const BY_PLURAL: [&str; 7] =
    ["configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services"];

/// Whether quotas measure the contents of the object, and do not only count it. The contents are those of the dry run's
/// answer, with all defaults applied.
pub fn is_measured(resource: &Resource) -> bool {
    resource.group.is_empty() && matches!(resource.plural.as_str(), "pods" | "persistentvolumeclaims" | "services")
}

/// The usage of a new object. `admitted` is the object as the server would store it, if known.
pub fn measure_usage(resource: &Resource, admitted: Option<&Value>) -> Usage {
    let (group, plural) = (resource.group.as_str(), resource.plural.as_str());
    let dot = if group.is_empty() { "" } else { "." };
    let mut usage = Usage::from([(format!("count/{plural}{dot}{group}"), Amount::of_count(1))]);
    if group.is_empty() && BY_PLURAL.contains(&plural) {
        usage.insert(plural.to_owned(), Amount::of_count(1));
    }
    match (plural, admitted.filter(|_| is_measured(resource))) {
        ("pods", Some(pod)) => of_pod(&pod["spec"], &mut usage),
        ("persistentvolumeclaims", Some(claim)) => of_claim(&claim["spec"], &mut usage),
        ("services", Some(service)) => of_service(&service["spec"], &mut usage),
        _ => {}
    }
    usage
}

fn of_pod(spec: &Value, usage: &mut Usage) {
    let mut requests = of_containers(spec, "requests");
    add(&mut requests, &amounts(&spec["overhead"]));
    for (name, amount) in requests {
        let is_native = matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage");
        if is_native || name.starts_with("hugepages-") {
            usage.insert(name.clone(), amount);
        }
        // Only the requests of an extended resource (`example.com/gpu`) are counted.
        usage.insert(format!("requests.{name}"), amount);
    }
    for (name, amount) in of_containers(spec, "limits") {
        if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
            let overhead = spec["overhead"][&name].as_str().and_then(Amount::parse).unwrap_or_default();
            usage.insert(format!("limits.{name}"), amount + overhead);
        }
    }
}

/// The usage of a Pod's containers: the sum of those that run at the same time, or the largest init container if that
/// is more.
fn of_containers(spec: &Value, what: &str) -> Usage {
    let containers = |key: &str| spec[key].as_array().into_iter().flatten();
    let mut running = Usage::new();
    containers("containers").for_each(|container| add(&mut running, &amounts(&container["resources"][what])));
    let (mut sidecars, mut starting) = (Usage::new(), Usage::new());
    for container in containers("initContainers") {
        let own = amounts(&container["resources"][what]);
        if container["restartPolicy"] == "Always" {
            add(&mut running, &own);
            add(&mut sidecars, &own);
            raise_to(&mut starting, &sidecars);
        } else {
            let mut with_sidecars = sidecars.clone();
            add(&mut with_sidecars, &own);
            raise_to(&mut starting, &with_sidecars);
        }
    }
    raise_to(&mut running, &starting);
    // Resources of the Pod as a whole replace the sum.
    running.extend(amounts(&spec["resources"][what]));
    running
}

fn amounts(list: &Value) -> Usage {
    let entries = list.as_object().into_iter().flatten();
    entries.filter_map(|(name, text)| Some((name.clone(), Amount::parse(text.as_str()?)?))).collect()
}

fn add(to: &mut Usage, more: &Usage) {
    for (name, amount) in more {
        let sum = to.entry(name.clone()).or_default();
        *sum = *sum + *amount;
    }
}

/// Raises each amount to the other one, if that is larger.
fn raise_to(of: &mut Usage, other: &Usage) {
    for (name, amount) in other {
        let largest = of.entry(name.clone()).or_default();
        *largest = (*largest).max(*amount);
    }
}

fn of_claim(spec: &Value, usage: &mut Usage) {
    let storage = spec["resources"]["requests"]["storage"].as_str().and_then(Amount::parse);
    let class = spec["storageClassName"].as_str().filter(|class| !class.is_empty());
    let of_class = class.map(|class| format!("{class}.storageclass.storage.k8s.io/"));
    for prefix in [Some(String::new()), of_class.clone()].into_iter().flatten() {
        usage.extend(storage.map(|storage| (format!("{prefix}requests.storage"), storage)));
    }
    usage.extend(of_class.map(|prefix| (format!("{prefix}persistentvolumeclaims"), Amount::of_count(1))));
}

fn of_service(spec: &Value, usage: &mut Usage) {
    let ports = || spec["ports"].as_array().into_iter().flatten();
    let given = |port: &&Value| port["nodePort"].as_u64().is_some_and(|port| port != 0);
    match spec["type"].as_str() {
        Some("NodePort") => drop(usage.insert("services.nodeports".into(), Amount::of_count(ports().count()))),
        Some("LoadBalancer") => {
            usage.insert("services.loadbalancers".into(), Amount::of_count(1));
            let all = spec["allocateLoadBalancerNodePorts"] != false;
            let count = if all { ports().count() } else { ports().filter(given).count() };
            usage.insert("services.nodeports".into(), Amount::of_count(count));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(plural: &str, spec: &Value) -> Vec<String> {
        let resource = Resource {
            group: String::new(),
            version: "v1".into(),
            kind: String::new(),
            plural: plural.into(),
            namespaced: true,
        };
        let usage = measure_usage(&resource, Some(&json!({"spec": spec})));
        usage.iter().map(|(name, amount)| format!("{name}={}", amount.to_text(false))).collect()
    }

    #[test]
    fn a_pod_uses_the_larger_of_its_containers_and_its_init_containers() {
        let container = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}, "limits": {"cpu": "2"}}});
        let mut sidecar = container("100m");
        sidecar["restartPolicy"] = "Always".into();
        let spec = json!({"containers": [container("200m"), container("300m")], "overhead": {"cpu": "10m"},
            "initContainers": [container("500m"), sidecar, container("700m")]});
        let expected = ["count/pods=1", "cpu=810m", "limits.cpu=6010m", "pods=1", "requests.cpu=810m"];
        assert_eq!(shown("pods", &spec), expected);
        let spec = json!({"resources": {"requests": {"cpu": "3"}}, "containers": [
            {"resources": {"requests": {"cpu": "1", "example.com/gpu": "2"}, "limits": {"example.com/gpu": "2"}}}]});
        let expected = ["count/pods=1", "cpu=3", "pods=1", "requests.cpu=3", "requests.example.com/gpu=2"];
        assert_eq!(shown("pods", &spec), expected);
    }

    #[test]
    fn storage_and_ports_count_towards_quotas() {
        let spec = json!({"storageClassName": "fast", "resources": {"requests": {"storage": "7"}}});
        assert_eq!(
            shown("persistentvolumeclaims", &spec),
            [
                "count/persistentvolumeclaims=1",
                "fast.storageclass.storage.k8s.io/persistentvolumeclaims=1",
                "fast.storageclass.storage.k8s.io/requests.storage=7",
                "persistentvolumeclaims=1",
                "requests.storage=7"
            ]
        );
        let spec = |kind: &str, all: bool| json!({"type": kind, "allocateLoadBalancerNodePorts": all, "ports": [{"nodePort": 30000}, {}]});
        let common = ["count/services=1", "services=1"];
        assert_eq!(shown("services", &spec("ClusterIP", true)), common);
        let balancer = |ports: &str| [common[0], common[1], "services.loadbalancers=1", ports].map(str::to_owned);
        assert_eq!(shown("services", &spec("LoadBalancer", true)), balancer("services.nodeports=2"));
        assert_eq!(shown("services", &spec("LoadBalancer", false)), balancer("services.nodeports=1"));
        assert_eq!(shown("services", &spec("NodePort", true))[2..], ["services.nodeports=2"]);
    }
}
