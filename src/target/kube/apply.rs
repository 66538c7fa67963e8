//! One server-side apply, and only if the live object is still the one that was checked.
//!
//! The pin travels in the object itself, so that the API server compares it in the same transaction in which it
//! writes: `metadata.uid` and `metadata.resourceVersion` of the object that was seen. For an object that was not there
//! it is a resourceVersion that no object can have: a create does not look at it, and an object that turned up
//! meanwhile fails the comparison. The server keeps neither in managedFields.

use std::time::Duration;

use http::StatusCode;
use kube::core::Status;
use serde_json::value::RawValue;

use super::errors::{self, words};
use super::json::{self, Members, push_member, quote};
use super::transport::{Call, Failure, Transport, encode, object_path};
use crate::problem::Problem;
use crate::resource::{Live, RawObject, Resource};
use crate::target::{Apply, ApplyError, FieldConflict, Pin};

/// etcd counts its own first, empty state as revision 1; what is written gets a later one.
const NO_RESOURCE_VERSION: &str = "1";

/// What the server gives an object and never takes from a manifest. `kubectl get -o yaml` writes it all the same; with
/// managedFields in it every apply is refused, and uid and resourceVersion would be somebody else's pin.
const GIVEN_BY_THE_SERVER: [&str; 6] =
    ["managedFields", "uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"];

/// How long a resource may be unknown: an API server serves a new CRD a moment after it said so, and the other servers
/// of the cluster a moment later.
const PATIENCE: Duration = Duration::from_secs(5);
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Writes the object if its pin holds, and answers what is live now.
pub async fn apply(transport: &Transport, default_namespace: &str, apply: &Apply<'_>) -> Result<Live, ApplyError> {
    let Apply { resource, object, pin, .. } = apply;
    let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(default_namespace));
    let body = body(apply.raw, namespace, pin)
        .ok_or_else(|| ApplyError::Refused(Problem::new(format!("{object} is no object with metadata"))))?;
    let uri = format!(
        "{}?fieldManager={}&force={}&fieldValidation=Strict",
        object_path(resource, namespace, &object.name),
        encode(apply.field_manager),
        apply.force_conflicts
    );
    let call =
        Call { verb: "patch", resource: Some(resource), namespace, name: Some(&object.name), uri, body: Some(&body) };

    let mut wait = FIRST_WAIT;
    let mut waited = Duration::ZERO;
    let answer = loop {
        match transport.send(&call).await {
            Err(Failure::Refused(status)) if is_unknown_resource(&status) && waited < PATIENCE => {
                tokio::time::sleep(wait).await;
                waited += wait;
                wait = (wait * 2).min(Duration::from_secs(1));
            }
            Err(failure) => return Err(explain(failure, &call, apply, transport)),
            Ok(answer) => break answer,
        }
    };
    let live = json::live(&answer.body, resource)
        .ok_or_else(|| ApplyError::Refused(errors::nonsense(transport.peer(), answer.code.as_u16(), "no object")))?;
    if **pin == Pin::Absent && answer.code != StatusCode::CREATED {
        // Only a server that keeps no resourceVersions comes here: an aggregated one of its own making.
        transport.warn(format!("{object} turned up between check and apply, and was updated instead of created"));
    }
    Ok(live)
}

/// The manifest as it was written, but for what the server gives, with the pin in its metadata.
fn body(raw: &RawObject, namespace: Option<&str>, pin: &Pin) -> Option<String> {
    let members: Members<'_> = serde_json::from_str(raw.json()).ok()?;
    let mut body = String::with_capacity(raw.json().len() + 128);
    body.push('{');
    let mut has_metadata = false;
    for (key, value) in &members.0 {
        if key == "metadata" {
            has_metadata = true;
            push_member(&mut body, key, &metadata(value, namespace, pin)?);
        } else {
            push_member(&mut body, key, value.get());
        }
    }
    body.push('}');
    has_metadata.then_some(body)
}

fn metadata(written: &RawValue, namespace: Option<&str>, pin: &Pin) -> Option<String> {
    let members: Members<'_> = serde_json::from_str(written.get()).ok()?;
    let mut metadata = String::from("{");
    for (key, value) in &members.0 {
        if !GIVEN_BY_THE_SERVER.contains(&key.as_ref()) {
            push_member(&mut metadata, key, value.get());
        }
    }
    if let Some(namespace) = namespace.filter(|_| !members.0.iter().any(|(key, _)| key == "namespace")) {
        push_member(&mut metadata, "namespace", &quote(namespace));
    }
    match pin {
        Pin::Absent => push_member(&mut metadata, "resourceVersion", &quote(NO_RESOURCE_VERSION)),
        Pin::At { uid, resource_version } => {
            push_member(&mut metadata, "uid", &quote(uid));
            push_member(&mut metadata, "resourceVersion", &quote(resource_version));
        }
    }
    metadata.push('}');
    Some(metadata)
}

/// Not served yet, as opposed to a namespace that is not there, which waiting does not mend.
fn is_unknown_resource(status: &Status) -> bool {
    status.code == 404 && status.details.as_ref().is_none_or(|details| details.kind != "namespaces")
}

fn explain(failure: Failure, call: &Call<'_>, apply: &Apply<'_>, transport: &Transport) -> ApplyError {
    if let Failure::Refused(status) = &failure {
        let conflicts = conflicts(status);
        if !conflicts.is_empty() {
            // The server names fields before it compares versions; where nothing was, nobody owned a field.
            return if *apply.pin == Pin::Absent { ApplyError::Changed } else { ApplyError::Conflict(conflicts) };
        }
        if is_other_object(status, apply.resource) {
            return ApplyError::Changed;
        }
    }
    ApplyError::Refused(failure.into_problem(call, transport.peer()))
}

/// Whether the server found another object, or the object at another version, than the pin says.
fn is_other_object(status: &Status, resource: &Resource) -> bool {
    let Some(details) = &status.details else { return false };
    match status.code {
        // A quota or another object that the server writes beside this one may be in conflict, too.
        409 => (status.reason == "Conflict" || status.reason == "AlreadyExists") && details.kind == resource.plural,
        // A manifest's own uid is never sent, so this is the pin's.
        422 => details.causes.iter().any(|cause| cause.field == "metadata.uid"),
        _ => false,
    }
}

/// The fields of other managers, in the server's order.
fn conflicts(status: &Status) -> Vec<FieldConflict> {
    let causes = status.details.iter().filter(|_| status.code == 409).flat_map(|details| &details.causes);
    causes
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| FieldConflict { field: words(&cause.field), manager: manager(&cause.message) })
        .collect()
}

/// `conflict with "kubectl-client-side-apply" using apps/v1` names its manager as a Go string.
fn manager(message: &str) -> String {
    let quoted = message.split_once('"').map(|(_, rest)| rest);
    let end = quoted.and_then(|rest| {
        let mut escaped = false;
        rest.char_indices().find_map(|(at, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends.then_some(at)
        })
    });
    match (quoted, end) {
        (Some(rest), Some(end)) => {
            // Go escapes as JSON does, but for what is made harmless anyway.
            let name = &rest[..end];
            words(&serde_json::from_str::<String>(&format!("\"{name}\"")).unwrap_or_else(|_| name.to_owned()))
        }
        _ => words(message),
    }
}
