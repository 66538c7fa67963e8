//! Webhook configurations and API services go after the workload that answers for them: before it is ready, every request that
//! they stand in the way of would fail.
//!
//! Only where the server can trust what answers there from the start: without a CA bundle the workload fills one in itself, and
//! may not get ready before the configuration is there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::written::{Group, Operation, Ordering, Rule, Side, Source};
use crate::plan::Change;

/// Adds these rules to those that were written. They count less than any of those.
pub fn add(changes: &[Change], orderings: &mut BTreeMap<usize, Ordering>) {
    let is_written = Change::is_written;
    let callers = changes.iter().enumerate().filter(|(_, change)| is_written(change));
    let callers: Vec<(usize, BTreeSet<Name>)> =
        callers.map(|(index, change)| (index, called(change))).filter(|(_, services)| !services.is_empty()).collect();
    let services: BTreeSet<&Name> = callers.iter().flat_map(|(_, services)| services).collect();
    for service in services {
        let workloads: Vec<usize> = behind(service, changes).filter(|index| is_written(&changes[*index])).collect();
        if workloads.is_empty() {
            continue;
        }
        // No group that somebody writes has spaces in its name.
        let group = Group::Named(format!("behind service {}/{}", service.0, service.1));
        for workload in workloads {
            orderings.entry(workload).or_default().groups.insert(group.clone());
        }
        let operation = Operation::Upsert;
        let (side, other, source, is_optional) = (Side::After, operation, Source::Nowhere, true);
        let rule = Rule { operation, side, other, group, source, is_optional };
        for (caller, _) in callers.iter().filter(|(_, services)| services.contains(service)) {
            orderings.entry(*caller).or_default().rules.push(rule.clone());
        }
    }
}

/// The namespace and the name of a Service.
type Name = (String, String);

/// The Services that the server would call for an object, and whose certificates it can verify.
fn called(change: &Change) -> BTreeSet<Name> {
    let object = &change.desired.object;
    let clients: &[&str] = match (object.group(), object.kind.as_str()) {
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => {
            &["webhooks"]
        }
        ("apiregistration.k8s.io", "APIService") => &[],
        _ => return BTreeSet::new(),
    };
    let manifest = change.desired.raw.value();
    let annotations = manifest["metadata"]["annotations"].as_object().into_iter().flatten();
    let is_injected = annotations.map(|(key, _)| key).any(|key| key.starts_with("cert-manager.io/inject-"));
    let clients: Vec<&Value> = match clients {
        [list] => manifest[list].as_array().into_iter().flatten().map(|webhook| &webhook["clientConfig"]).collect(),
        _ => vec![&manifest["spec"]],
    };
    let is_trusted = |client: &Value| {
        let bundle = client["caBundle"].as_str().unwrap_or_default();
        is_injected || !bundle.is_empty() || client["insecureSkipTLSVerify"] == true
    };
    if !clients.iter().all(|client| is_trusted(client)) {
        return BTreeSet::new();
    }
    let name = |client: &&Value| {
        let text = |key: &str| client["service"][key].as_str().map(str::to_owned);
        Some((text("namespace")?, text("name")?))
    };
    clients.iter().filter_map(name).collect()
}

/// The workloads of the manifests whose Pods the Service selects.
fn behind<'a>(service: &Name, changes: &'a [Change]) -> impl Iterator<Item = usize> + use<'a> {
    let (namespace, name) = service.clone();
    let of_namespace = move |change: &Change| change.desired.object.namespace.as_deref() == Some(namespace.as_str());
    let is_service = |change: &&Change| {
        let object = &change.desired.object;
        object.group().is_empty() && object.kind == "Service" && object.name == name && of_namespace(change)
    };
    let selector = changes.iter().find(is_service).map(|change| change.desired.raw.value()["spec"]["selector"].clone());
    let selector = selector.and_then(|selector| selector.as_object().cloned()).unwrap_or_default();
    let is_behind = move |change: &Change| {
        let object = &change.desired.object;
        let labels = match (object.group(), object.kind.as_str()) {
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") => "/spec/template/metadata/labels",
            ("", "ReplicationController") => "/spec/template/metadata/labels",
            ("", "Pod") => "/metadata/labels",
            _ => return false,
        };
        if selector.is_empty() || !of_namespace(change) {
            return false;
        }
        let manifest = change.desired.raw.value();
        manifest
            .pointer(labels)
            .is_some_and(|labels| selector.iter().all(|(key, value)| labels.get(key) == Some(value)))
    };
    changes.iter().enumerate().filter(move |(_, change)| is_behind(change)).map(|(index, _)| index)
}
