//! Writes webhook configurations and APIServices after the workload that serves them: until it is ready, every request that
//! they match would fail.
//!
//! That applies only if the server can verify the certificate from the start. Without a CA bundle the workload fills one in
//! itself, and may not become ready before the configuration exists.
//!
//! Custom resources are written after the workloads of live webhooks that the server calls for their kind: while the Pods are
//! replaced, it would refuse them. A configuration that this deploy creates is written after the custom resources.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::rule::{Group, Operation, Rule, Side, Source};
use super::written::Ordering;
use crate::plan::{self, Change};
use crate::resource::Resource;

/// Adds these rules to the written ones, which take precedence.
pub fn add(changes: &[Change], orderings: &mut BTreeMap<usize, Ordering>) {
    let is_written = Change::is_written;
    let callers = changes.iter().enumerate().filter(|(_, change)| is_written(change));
    let webhooks = webhooks(changes);
    let services_of = |change: &Change| called(change).into_iter().chain(asked_about(change, &webhooks)).collect();
    let callers: Vec<(usize, BTreeSet<Name>)> = callers
        .map(|(index, change)| (index, services_of(change)))
        .filter(|(_, services): &(usize, BTreeSet<Name>)| !services.is_empty())
        .collect();
    let services: BTreeSet<&Name> = callers.iter().flat_map(|(_, services)| services).collect();
    for service in services {
        let workloads: Vec<usize> = behind(service, changes).filter(|index| is_written(&changes[*index])).collect();
        if workloads.is_empty() {
            continue;
        }
        // The name of a written group has no spaces.
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
    clients.into_iter().filter_map(service).collect()
}

/// A live webhook: its Service, and the kinds that the server calls it for.
struct Webhook {
    service: Name,
    /// Group and plural; `*` matches any.
    kinds: Vec<(String, String)>,
}

/// The live webhooks of these objects with `failurePolicy: Fail`.
fn webhooks(changes: &[Change]) -> Vec<Webhook> {
    let live = |change: &Change| change.live.as_ref().map(|live| live.raw.value());
    changes.iter().filter(|change| may_have_webhooks(change)).filter_map(live).flat_map(|live| of_live(&live)).collect()
}

fn may_have_webhooks(change: &Change) -> bool {
    let object = &change.desired.object;
    match object.group() {
        "admissionregistration.k8s.io" => object.kind.ends_with("WebhookConfiguration"),
        // Most CRDs have none, and parsing them is expensive.
        _ => object.is_crd() && change.live.as_ref().is_some_and(|live| live.raw.json().contains("\"Webhook\"")),
    }
}

fn of_live(live: &Value) -> Vec<Webhook> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &live["spec"];
    let conversion = &spec["conversion"];
    let converts = (conversion["strategy"] == "Webhook").then(|| {
        let service = service(&conversion["webhook"]["clientConfig"])?;
        Some(Webhook { service, kinds: vec![(text(&spec["group"]), text(&spec["names"]["plural"]))] })
    });
    let texts = |list: &Value| list.as_array().into_iter().flatten().map(text).collect::<Vec<String>>();
    let of_rule = |rule: &Value| {
        let (groups, plurals) = (texts(&rule["apiGroups"]), texts(&rule["resources"]));
        groups.into_iter().flat_map(move |group| plurals.clone().into_iter().map(move |plural| (group.clone(), plural)))
    };
    let asks = |webhook: &Value| {
        let rules = webhook["rules"].as_array().into_iter().flatten();
        Some(Webhook { service: service(&webhook["clientConfig"])?, kinds: rules.flat_map(of_rule).collect() })
    };
    let webhooks = live["webhooks"].as_array().into_iter().flatten();
    let admission = webhooks.filter(|webhook| webhook["failurePolicy"] != "Ignore").filter_map(asks);
    converts.flatten().into_iter().chain(admission).collect()
}

/// The Services that the server calls when a custom resource is written.
fn asked_about(change: &Change, webhooks: &[Webhook]) -> BTreeSet<Name> {
    let Resource { group, plural, .. } = &*change.resource;
    if plan::is_built_in(group) {
        return BTreeSet::new();
    }
    let is = |said: &str, what: &str| said == "*" || said == what;
    let is_about = |(of, resources): &(String, String)| {
        is(of, group) && is(resources.split('/').next().unwrap_or_default(), plural) && !resources.ends_with("/status")
    };
    let asked = webhooks.iter().filter(|webhook| webhook.kinds.iter().any(is_about));
    asked.map(|webhook| webhook.service.clone()).collect()
}

fn service(client: &Value) -> Option<Name> {
    let text = |key: &str| client["service"][key].as_str().map(str::to_owned);
    Some((text("namespace")?, text("name")?))
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
