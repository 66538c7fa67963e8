//! Labels and annotations that are removed from an object, and only if it is still the one that was seen.
//!
//! A server-side apply cannot remove what another manager wrote; a JSON merge patch can, and takes nothing over.

use serde_json::{Map, Value, json};

use super::apply::is_other_object;
use super::errors;
use super::json;
use super::request::{Call, Failure, Payload, encode};
use super::transport::Transport;
use crate::cluster::{ApplyError, Unmark};
use crate::resource::Live;

/// Removes the marks, and answers what is live now.
pub async fn unmark(transport: &Transport, default_namespace: &str, unmark: &Unmark<'_>) -> Result<Live, ApplyError> {
    let Unmark { resource, object, live, .. } = unmark;
    let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(default_namespace));
    let body = body(unmark).to_string();
    let read = Call::get(resource, namespace, &object.name);
    let uri = format!("{}?fieldManager={}", read.uri, encode(unmark.field_manager));
    let call = Call { verb: "patch", uri, body: Some(Payload::MergePatch(&body)), live: Some(&live.raw), ..read };
    match transport.send(&call).await {
        Ok(answer) => json::live(&answer.body, resource)
            .ok_or_else(|| ApplyError::Refused(errors::nonsense(transport.peer(), answer.code.as_u16(), "no object"))),
        Err(Failure::Refused(status)) if is_other_object(&status, resource) => Err(ApplyError::Changed),
        Err(failure) => Err(ApplyError::Refused(failure.into_problem(&call, transport.peer()))),
    }
}

/// The uid, which cannot change, and the resourceVersion pin the object; `null` removes a key.
fn body(unmark: &Unmark<'_>) -> Value {
    let nulls = |keys: &[&str]| Value::Object(keys.iter().map(|key| ((*key).to_owned(), Value::Null)).collect());
    let mut metadata = Map::new();
    metadata.insert("uid".into(), unmark.live.uid.as_str().into());
    metadata.insert("resourceVersion".into(), unmark.live.resource_version.as_str().into());
    for (name, keys) in [("labels", unmark.labels), ("annotations", unmark.annotations)] {
        if !keys.is_empty() {
            metadata.insert(name.into(), nulls(keys));
        }
    }
    json!({ "metadata": metadata })
}
