//! Names, labels and keys of data that the API server refuses in any object, whatever its schema says.
//!
//! Source: `ValidateObjectMeta` in `k8s.io/apimachinery/pkg/api/validation`, and for names and data the validations of
//! the kinds in `k8s.io/kubernetes/pkg/apis/core/validation`

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Change, Plan, kinds};
use gantry_core::manifest::Spans;
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, Step};
use gantry_core::text;
use gantry_schema::names;

/// The maximum number of problems that are named for one object.
const SHOWN: usize = 10;

/// What the server would refuse in the objects that the plan writes. On a server (`is_server`), the names of custom
/// resources are the subject of a check.
pub fn problems(plan: &Plan, is_server: bool) -> Vec<Problem> {
    let written: Vec<&Change> = plan.changes.iter().filter(|change| change.is_written()).collect();
    let found = in_parallel(&written, |change| {
        let object = &change.desired.object;
        let mut found = faults(object, &change.desired.raw.value());
        // A kind of a server may belong to an aggregated API, and what that requires of names is not known.
        if !is_server && !kinds::is_built_in(&change.resource.group) {
            let message = names::subdomain(&object.name).into_iter().next();
            found.extend(message.map(|message| (path(&["metadata", "name"]), message)));
        }
        let problem = |(at, message): (Vec<Step>, String)| {
            let message = format!("{object}: the API server would refuse it: {}: {message}", text::field(&at));
            let at = Spans::parse(&change.desired.origin).locate(&at).location;
            Problem::new(text::cut_quote(&message).into_owned()).at(at).help("correct it in the manifest")
        };
        found.into_iter().take(SHOWN).map(problem).collect::<Vec<_>>()
    });
    found.into_iter().flatten().collect()
}

type InvalidField = (Vec<Step>, String);

fn faults(object: &ObjectRef, manifest: &Value) -> Vec<InvalidField> {
    let mut found: Vec<InvalidField> = Vec::new();
    let said = |messages: Vec<String>| messages.into_iter().next();
    found.extend(said(name_faults(object, &object.name)).map(|message| (path(&["metadata", "name"]), message)));
    let of_namespace = object.namespace.as_deref().map(names::dns_1123_label).and_then(said);
    found.extend(of_namespace.map(|message| (path(&["metadata", "namespace"]), message)));
    for (key, value) in fields(manifest, &["metadata", "labels"]) {
        let at = path(&["metadata", "labels", key]);
        found.extend(said(names::qualified(key)).map(|message| (at.clone(), message)));
        // A value of another type is a matter of the schema.
        found.extend(value.as_str().and_then(|value| said(names::label_value(value))).map(|message| (at, message)));
    }
    for (key, _) in fields(manifest, &["metadata", "annotations"]) {
        let message = said(names::qualified(&key.to_lowercase()));
        found.extend(message.map(|message| (path(&["metadata", "annotations", key]), message)));
    }
    if !object.group().is_empty() || !matches!(object.kind.as_str(), "ConfigMap" | "Secret") {
        return found;
    }
    for part in ["data", "binaryData", "stringData"] {
        for (key, value) in fields(manifest, &[part]) {
            if !is_data_key(key) {
                let message = "a key consists of at most 253 alphanumeric characters, '-', '_' and '.'; it is not '.' and \
                    does not start with '..'";
                found.push((path(&[part, key]), message.to_owned()));
            }
            let is_bytes = part == "binaryData" || part == "data" && object.is_secret();
            if is_bytes && value.as_str().is_some_and(|value| !is_base64(value)) {
                found.push((path(&[part, key]), "it is not base64".to_owned()));
            }
        }
    }
    found
}

/// The server's messages for the name, for kinds whose rule is known.
fn name_faults(object: &ObjectRef, name: &str) -> Vec<String> {
    match (object.group(), object.kind.as_str()) {
        // Servers before the feature RelaxedServiceNameValidation are stricter about Services.
        ("", "Namespace" | "Service") => names::dns_1123_label(name),
        (
            "",
            "ConfigMap"
            | "Endpoints"
            | "LimitRange"
            | "Node"
            | "PersistentVolume"
            | "PersistentVolumeClaim"
            | "Pod"
            | "PodTemplate"
            | "ReplicationController"
            | "ResourceQuota"
            | "Secret"
            | "ServiceAccount",
        )
        | ("apps", "ControllerRevision" | "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet")
        | ("autoscaling", "HorizontalPodAutoscaler")
        | ("batch", "CronJob" | "Job")
        | ("coordination.k8s.io", "Lease")
        | ("discovery.k8s.io", "EndpointSlice")
        | ("networking.k8s.io", "Ingress" | "IngressClass" | "NetworkPolicy")
        | ("node.k8s.io", "RuntimeClass")
        | ("policy", "PodDisruptionBudget")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("storage.k8s.io", "CSIDriver" | "CSINode" | "StorageClass" | "VolumeAttachment")
        | (
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration"
            | "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding"
            | "ValidatingWebhookConfiguration",
        ) => names::subdomain(name),
        _ => Vec::new(),
    }
}

fn path(names: &[&str]) -> Vec<Step> {
    names.iter().map(|name| Step::from(*name)).collect()
}

fn fields<'v>(manifest: &'v Value, at: &[&str]) -> impl Iterator<Item = (&'v String, &'v Value)> {
    let map = at.iter().try_fold(manifest, |value, name| value.get(name)).and_then(Value::as_object);
    map.into_iter().flat_map(Map::iter)
}

/// `IsConfigMapKey` in `k8s.io/apimachinery/pkg/util/validation`
fn is_data_key(key: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    (1..=253).contains(&key.len()) && key.bytes().all(inner) && key != "." && !key.starts_with("..")
}

/// As Go decodes it: line ends do not count.
fn is_base64(text: &str) -> bool {
    let text: String = text.chars().filter(|character| !matches!(character, '\r' | '\n')).collect();
    STANDARD.decode(text).is_ok()
}
