//! Removes labels and annotations from an object, but only if it has not changed since it was read.
//!
//! A server-side apply cannot remove what another manager wrote. A JSON merge patch can, without taking over fields.

use serde_json::{Map, Value, json};

use super::apply::is_other_object;
use super::errors;
use super::json;
use super::request::{ApiRequest, Payload, RequestError, encode};
use super::transport::Transport;
use crate::{ApplyError, Relabel, Unmark};
use gantry_core::managed_fields::{FieldSet, ManagerEntry, ManagerOperation};
use gantry_core::resource::LiveObject;

/// Removes the marks, and returns the new live object.
pub async fn unmark(
    transport: &Transport,
    default_namespace: &str,
    unmark: &Unmark<'_>,
) -> Result<LiveObject, ApplyError> {
    let Unmark { resource, object, live, .. } = unmark;
    let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(default_namespace));
    let body = body(unmark).to_string();
    let read = ApiRequest::get(resource, namespace, &object.name);
    let uri = format!("{}?fieldManager={}", read.uri, encode(unmark.field_manager));
    let call = ApiRequest { verb: "patch", uri, body: Some(Payload::MergePatch(&body)), live: Some(&live.raw), ..read };
    match transport.send(&call).await {
        Ok(answer) => json::live(&answer.body, resource).ok_or_else(|| {
            ApplyError::Refused(errors::unexpected_response(transport.peer(), answer.code.as_u16(), "not an object"))
        }),
        Err(RequestError::Refused(status)) if is_other_object(&status, resource) => Err(ApplyError::Changed),
        Err(failure) => Err(ApplyError::Refused(failure.into_problem(&call, transport.peer()))),
    }
}

/// Writes the label, and moves it back to the managedFields entry of gantry's applies: the server moves it to an entry
/// of plain updates, and the next deploy would find every object changed.
pub async fn relabel(transport: &Transport, default_namespace: &str, relabel: &Relabel<'_>) -> Result<(), ApplyError> {
    let Relabel { resource, object, live, label, value, field_manager } = relabel;
    let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(default_namespace));
    let mut metadata = json!({"uid": live.uid, "resourceVersion": live.resource_version});
    metadata["labels"][*label] = (*value).into();
    let body = json!({ "metadata": metadata }).to_string();
    let read = ApiRequest::get(resource, namespace, &object.name);
    let uri = format!("{}?fieldManager={}", read.uri, encode(field_manager));
    let patch = |uri, body| ApiRequest { verb: "patch", uri, body: Some(body), live: Some(&live.raw), ..read.clone() };
    let call = patch(uri.clone(), Payload::MergePatch(&body));
    let answer = match transport.send(&call).await {
        Ok(answer) => answer,
        Err(RequestError::Refused(status)) if is_other_object(&status, resource) => return Err(ApplyError::Changed),
        Err(failure) => return Err(ApplyError::Refused(failure.into_problem(&call, transport.peer()))),
    };
    let written = json::live(&answer.body, resource);
    if let Some(body) = written.and_then(|live| records(&live, label, field_manager)) {
        // If this fails, the next deploy writes the object once more, which is harmless.
        let _ = transport.send(&patch(uri, Payload::JsonPatch(&body))).await;
    }
    Ok(())
}

/// The JSON patch that moves a label from gantry's `Update` entry in managedFields to its `Apply` entry; `None` unless
/// both exist.
fn records(live: &LiveObject, label: &str, field_manager: &str) -> Option<String> {
    let object = live.raw.value();
    let path = ["metadata", "labels", label];
    let is_ours = |entry: ManagerEntry<'_>, operation| {
        entry.manager() == field_manager && entry.operation() == operation && entry.subresource().is_empty()
    };
    let is_updated =
        |entry: ManagerEntry<'_>| is_ours(entry, ManagerOperation::Update) && entry.fields().below(&path).is_some();
    let mut entries: Vec<Value> = ManagerEntry::all(&object).map(|entry| entry.value().clone()).collect();
    let updated = ManagerEntry::all(&object).position(is_updated)?;
    let applied = ManagerEntry::all(&object).position(|entry| is_ours(entry, ManagerOperation::Apply))?;
    let change = |entry: &mut Value, change: &dyn Fn(&mut FieldSet)| {
        let mut fields = ManagerEntry::new(entry).fields();
        change(&mut fields);
        *entry = ManagerEntry::new(entry).with_fields(&fields);
        fields.is_empty()
    };
    change(&mut entries[applied], &|fields| fields.add(&FieldSet::of_field(&path)));
    if change(&mut entries[updated], &|fields| drop(fields.split_off(&path))) {
        entries.remove(updated);
    }
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": live.uid},
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version},
    ]);
    Some(patch.to_string())
}

/// The uid, which is immutable, and the resourceVersion pin the object; `null` removes a key.
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
