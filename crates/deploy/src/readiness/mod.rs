//! Determines whether a live object is ready from its own fields: without requests and without a clock.
//!
//! The fields and conditions are those of the Kubernetes API (`kubectl explain KIND.status`). Custom resources follow
//! the conventions of kstatus
//! (<https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md>). A field that is missing, or that
//! does not have the type that the API defines, means not ready yet.

mod custom;
mod extension;
mod pods;
mod resources;
pub mod rules;
mod view;
mod workloads;

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use gantry_core::matcher::{self, MatchableObject};
use gantry_core::resource::{ObjectRef, Resource};
use gantry_core::text::{cut, sanitize};
use gantry_olm::cluster_catalog;
use gantry_olm::cluster_extension::KIND as EXTENSION;
use rules::{ReadinessVerdict, WaitRule};
use view::LiveObjectView;
pub use workloads::is_minimum;

/// kapp does not wait for objects with this annotation, for any value.
const DISABLE_WAIT: &str = "kapp.k14s.io/disable-wait";

/// The maximum length of a reason in characters.
const LONGEST: usize = 240;

/// The readiness of a live object. Reasons are one line and safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is ready.
    Ready {
        /// Other information about it, on one line.
        note: Option<String>,
    },
    /// Its controller is working, or waits for something.
    InProgress(String),
    /// Its controller has given up: without a change, it does not become ready.
    Failed(String),
}

impl Readiness {
    pub(in crate::readiness) const READY: Readiness = Readiness::Ready { note: None };

    pub(in crate::readiness) fn ready_with_note(text: &str) -> Self {
        Readiness::Ready { note: Some(one_line(text)) }
    }

    pub(in crate::readiness) fn in_progress(text: &str) -> Self {
        Readiness::InProgress(one_line(text))
    }

    pub(in crate::readiness) fn failed(text: &str) -> Self {
        Readiness::Failed(one_line(text))
    }

    /// `yes`, `no` or `failed`.
    pub fn word(&self) -> &'static str {
        match self {
            Readiness::Ready { .. } => "yes",
            Readiness::InProgress(_) => "no",
            Readiness::Failed(_) => "failed",
        }
    }

    /// The reason why it is not ready, or the note of a ready object.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Readiness::Ready { note } => note.as_deref(),
            Readiness::InProgress(reason) | Readiness::Failed(reason) => Some(reason),
        }
    }

    /// The state as JSON: `{"state": "ready|inProgress|failed", "reason": …}`.
    pub fn json(&self) -> Value {
        let state = match self {
            Readiness::Ready { .. } => "ready",
            Readiness::InProgress(_) => "inProgress",
            Readiness::Failed(_) => "failed",
        };
        match self.reason() {
            Some(reason) => json!({"state": state, "reason": reason}),
            None => json!({ "state": state }),
        }
    }
}

/// Text from the cluster as one short line that is safe for a terminal.
fn one_line(text: &str) -> String {
    let some = cut(text, 8 * LONGEST);
    let words: Vec<&str> = some.split_whitespace().collect();
    sanitize(&cut(&words.join(" "), LONGEST)).into_owned()
}

/// The state of an object from a list, by the first rule that matches it or by its kind.
///
/// Only the relevant parts are parsed into a tree, so `managedFields` and the schemas of a CRD cost nothing.
pub fn evaluate_json(json: &str, object: &ObjectRef, resource: &Resource, rules: &[WaitRule]) -> Readiness {
    if let Some(rule) = rules::find(rules, &MatchableObject::of_json(object, json)) {
        let value = serde_json::from_str(json).unwrap_or_default();
        let before = before_all(&resource.group, &resource.kind, LiveObjectView(&value));
        return before.unwrap_or_else(|| rule.evaluate(&value).state);
    }
    evaluate_parts(json, resource)
}

/// The state of an object from a list, by its kind.
fn evaluate_parts(json: &str, resource: &Resource) -> Readiness {
    #[derive(Deserialize)]
    struct ReadinessParts<'a> {
        #[serde(default)]
        metadata: ReadinessMetadata,
        #[serde(borrow, default)]
        spec: Option<&'a RawValue>,
        #[serde(default)]
        status: Value,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct ReadinessMetadata {
        deletion_timestamp: Value,
        finalizers: Value,
        generation: Value,
        annotations: Value,
    }
    let Ok(ReadinessParts { metadata, spec, status }) = serde_json::from_str(json) else {
        return Readiness::in_progress("its status cannot be read");
    };
    let group = resource.group.as_str();
    let has_state_in_spec = ["", "apps", "batch", cluster_catalog::GROUP].contains(&group) || custom::is_of_flux(group);
    let spec = spec.filter(|_| has_state_in_spec);
    let spec: Value = spec.and_then(|spec| serde_json::from_str(spec.get()).ok()).unwrap_or_default();
    let ReadinessMetadata { deletion_timestamp, finalizers, generation, annotations } = metadata;
    let metadata = json!({"deletionTimestamp": deletion_timestamp, "finalizers": finalizers, "generation": generation,
        "annotations": annotations});
    evaluate(&resource.group, &resource.kind, &json!({"metadata": metadata, "spec": spec, "status": status}))
}

/// The container of a Pod whose log may show why the Pod is not ready.
pub(crate) fn logging_container(pod: &Value) -> Option<String> {
    pods::logging_container(LiveObjectView(pod))
}

/// The verdict about a live object, by the first rule that matches it or by its kind.
pub(crate) fn evaluate_by(rules: &[WaitRule], object: &ObjectRef, value: &Value) -> ReadinessVerdict {
    match rules::find(rules, &MatchableObject::of_live(object, value)) {
        Some(rule) => match before_all(object.group(), &object.kind, LiveObjectView(value)) {
            Some(state) => state.into(),
            None => rule.evaluate(value),
        },
        None => {
            let state = evaluate(object.group(), &object.kind, value);
            let fails_after = replica_failure(object, &state, value);
            ReadinessVerdict { fails_after, ..state.into() }
        }
    }
}

/// How long to wait for the status of a new custom resource, if other objects of its kind have one.
const FIRST_STATUS: Duration = Duration::from_secs(10);

/// The verdict about a new custom resource that has no status yet.
pub(crate) fn without_status() -> ReadinessVerdict {
    let state = Readiness::in_progress("it has no status yet, unlike other objects of its kind");
    ReadinessVerdict { ready_after: Some(FIRST_STATUS), ..state.into() }
}

/// Whether an object counts as ready only because it has no status. A wait rule takes precedence.
pub(crate) fn lacks_status(rules: &[WaitRule], object: &ObjectRef, value: &Value) -> bool {
    let is_empty = |status: &Value| status.is_null() || status.as_object().is_some_and(Map::is_empty);
    matcher::is_custom(object)
        && value.get("status").is_none_or(is_empty)
        && rules::find(rules, &MatchableObject::of_live(object, value)).is_none()
        && evaluate(object.group(), &object.kind, value) == Readiness::READY
}

/// Whether an object from a list has one of the conditions that determine the readiness of custom resources.
pub(crate) fn tells_ready(json: &str) -> bool {
    #[derive(Deserialize)]
    struct StatusPart {
        #[serde(default)]
        status: Value,
    }
    let Ok(StatusPart { status }) = serde_json::from_str(json) else { return false };
    let object = json!({ "status": status });
    custom::CONDITIONS.iter().any(|name| LiveObjectView(&object).condition(name).is_some())
}

/// How long `ReplicaFailure` must last before it counts as a failure: quotas and webhooks may refuse Pods only for a
/// moment.
const REPLICA_FAILURE: Duration = Duration::from_secs(30);

/// The failure of a workload whose Pods cannot be created, from the condition `ReplicaFailure`.
fn replica_failure(object: &ObjectRef, state: &Readiness, value: &Value) -> Option<(String, Duration)> {
    let is_one = matches!(
        (object.group(), object.kind.as_str()),
        ("apps", "Deployment" | "ReplicaSet") | ("", "ReplicationController")
    );
    let condition = LiveObjectView(value).true_condition("ReplicaFailure").filter(|_| is_one)?;
    matches!(state, Readiness::InProgress(_)).then(|| (condition.explain(), REPLICA_FAILURE))
}

/// The state that takes precedence over rules and kinds: of an object that is not awaited, or is being deleted.
fn before_all(group: &str, kind: &str, view: LiveObjectView<'_>) -> Option<Readiness> {
    if view.at("/metadata/annotations").is_some_and(|annotations| annotations.get(DISABLE_WAIT).is_some()) {
        return Some(Readiness::ready_with_note(&format!("not awaited ({DISABLE_WAIT})")));
    }
    if view.at("/metadata/deletionTimestamp").is_some_and(Value::is_string) {
        if let Some(state) = custom::failed_in_kapp_controller(view)
            && custom::is_of_kapp_controller(group, kind)
        {
            return Some(state);
        }
        // A namespace also has finalizers in its spec.
        let lists = ["/metadata/finalizers", "/spec/finalizers"];
        let of_spec = (group, kind) == ("", "Namespace");
        let finalizers = lists[..1 + usize::from(of_spec)].iter().flat_map(|list| view.list(list));
        let names: Vec<&str> = finalizers.filter_map(Value::as_str).collect();
        return Some(Readiness::in_progress(&match names.is_empty() {
            true => "terminating".to_owned(),
            false => format!("terminating, finalizers: {}", names.join(", ")),
        }));
    }
    None
}

/// The state of an object by its group (empty for the core group) and kind.
fn evaluate(group: &str, kind: &str, object: &Value) -> Readiness {
    let view = LiveObjectView(object);
    if let Some(state) = before_all(group, kind, view) {
        return state;
    }
    match (group, kind) {
        ("apps", "Deployment") => workloads::deployment(view),
        ("apps", "StatefulSet") => workloads::stateful_set(view),
        ("apps", "DaemonSet") => workloads::daemon_set(view),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => workloads::replica_set(view),
        ("batch", "Job") => workloads::job(view),
        ("", "Pod") => pods::pod(view),
        ("", "PersistentVolumeClaim") => resources::claim(view),
        ("", "PersistentVolume") => resources::volume(view),
        ("", "Namespace") => resources::namespace(view),
        ("", "Service") => resources::service(view),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => resources::crd(view),
        ("apiregistration.k8s.io", "APIService") => resources::api_service(view),
        ("autoscaling", "HorizontalPodAutoscaler") => resources::autoscaler(view),
        ("policy", "PodDisruptionBudget") => view.unobserved(true).unwrap_or(Readiness::READY),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => resources::admission_policy(view),
        (cluster_catalog::GROUP, EXTENSION) => extension::state(view, &[]),
        _ if custom::is_of_flux(group) => custom::of_flux(view),
        _ if custom::is_of_kapp_controller(group, kind) => custom::of_kapp_controller(view),
        // ConfigMaps, roles, CronJobs and similar kinds have no conditions, so they are ready immediately.
        _ => custom::resource(view),
    }
}

/// Whether an object of the manifests may need time to become ready. Most are ready once they are written; CRDs are
/// awaited separately.
pub fn takes_time(object: &ObjectRef, is_custom: bool, manifest: impl FnOnce() -> Value) -> bool {
    match (object.group(), object.kind.as_str()) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
        | ("batch", "Job")
        | ("", "ReplicationController" | "Pod" | "PersistentVolumeClaim" | "PersistentVolume")
        | ("apiregistration.k8s.io", "APIService")
        | ("policy", "PodDisruptionBudget")
        | ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => true,
        ("", "Service") => manifest()["spec"]["type"] == "LoadBalancer",
        _ => is_custom,
    }
}

#[cfg(test)]
mod tests;
