//! Finds the workloads behind a webhook's Service that this deploy starts or replaces.

use std::collections::BTreeMap;

use serde_json::Value;

use super::service::LiveService;
use gantry_deploy::plan::{Change, Plan};

/// A workload of the plan whose Pods are restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// Index into `plan.changes`.
    pub change: usize,
    /// The workload does not exist yet.
    pub is_new: bool,
    /// The old Pods keep running until new ones are ready.
    pub keeps_serving: bool,
}

/// The first change that starts or replaces Pods, if any does.
pub fn first_workload(plan: &Plan) -> Option<usize> {
    plan.changes.iter().position(|change| pods(change).is_some() && restarts(change))
}

/// The namespaces in which the plan starts or replaces Pods, each with the first change that does.
pub fn namespaces(plan: &Plan) -> BTreeMap<&str, usize> {
    let mut namespaces = BTreeMap::new();
    for (index, change) in
        plan.changes.iter().enumerate().filter(|(_, change)| pods(change).is_some() && restarts(change))
    {
        if let Some(namespace) = change.desired.object.namespace.as_deref() {
            namespaces.entry(namespace).or_insert(index);
        }
    }
    namespaces
}

/// The workloads behind the Service that the plan starts or replaces.
pub fn workloads_behind(service: &LiveService, namespace: &str, plan: &Plan) -> Vec<Replaced> {
    let is_written = |change: &Change| is_behind(change, service, namespace) && restarts(change);
    let changes = plan.changes.iter().enumerate().filter(|(_, change)| is_written(change));
    changes
        .map(|(index, change)| Replaced {
            change: index,
            is_new: change.live.is_none(),
            keeps_serving: keeps_serving(change),
        })
        .collect()
}

/// Whether a workload behind the Service is among the manifests, written or not.
pub fn is_among(service: &LiveService, namespace: &str, plan: &Plan) -> bool {
    plan.changes.iter().any(|change| is_behind(change, service, namespace))
}

fn is_behind(change: &Change, service: &LiveService, namespace: &str) -> bool {
    change.desired.object.namespace.as_deref() == Some(namespace)
        && pods(change).is_some_and(|labels| service.selects(&labels))
}

/// The labels of the Pods of a workload, or of the Pod itself.
fn pods(change: &Change) -> Option<BTreeMap<String, String>> {
    let object = &change.desired.object;
    let path = match (object.group(), object.kind.as_str()) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") => "/spec/template/metadata/labels",
        ("", "Pod") => "/metadata/labels",
        _ => return None,
    };
    let manifest = change.desired.raw.value();
    serde_json::from_value(manifest.pointer(path)?.clone()).ok()
}

/// Whether the Pods restart: the workload is new, or its template changes. Fields that the manifest leaves out keep
/// their values.
fn restarts(change: &Change) -> bool {
    let Some(live) = &change.live else { return true };
    if change.action.leaves_alone() {
        return false;
    }
    let path = if change.desired.object.kind == "Pod" { "/spec" } else { "/spec/template" };
    let (desired, live) = (change.desired.raw.value(), live.raw.value());
    let replicas = desired.pointer("/spec/replicas").and_then(Value::as_i64);
    match (desired.pointer(path), live.pointer(path)) {
        _ if replicas == Some(0) => true,
        (Some(desired), Some(live)) => !is_part_of(desired, live),
        _ => true,
    }
}

fn is_part_of(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => {
            part.iter().all(|(key, part)| part.is_null() || whole.get(key).is_some_and(|whole| is_part_of(part, whole)))
        }
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_part_of(part, whole))
        }
        _ => part == whole,
    }
}

/// Whether old Pods keep running until new ones are ready. A Deployment uses a rolling update unless its strategy says
/// otherwise; only a readiness probe shows when a new Pod can answer.
fn keeps_serving(change: &Change) -> bool {
    if change.desired.object.kind != "Deployment" || change.live.is_none() {
        return false;
    }
    let desired = change.desired.raw.value();
    let text = |path: &str| desired.pointer(path).and_then(Value::as_str);
    let containers = desired.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let is_probed = containers.is_some_and(|all| all.iter().any(|container| container.get("readinessProbe").is_some()));
    let stops = desired.pointer("/spec/replicas").and_then(Value::as_i64) == Some(0);
    text("/spec/strategy/type") != Some("Recreate") && is_probed && !stops
}
