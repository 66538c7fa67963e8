//! Completes a take-over. A forced apply takes over the fields that it changes. Fields that it sets to their current
//! value stay with the former manager, too, and would be a conflict as soon as they change. A deploy tool that wrote
//! with plain updates no longer manages the object, so the fields that our record has are removed from its record.
//!
//! Fields that the manifest does not set stay unchanged and stay with the tool: nothing is removed.
//!
//! Source: `managedFields` can be written by a patch, as `kubectl apply --server-side` does for the same purpose
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/#migration-between-client-side-and-server-side-apply>).

use serde_json::{Value, json};

use super::json;
use super::request::{Call, Failure, Payload};
use super::transport::Transport;
use crate::cluster::{Apply, Operation, client_side_tool};
use crate::merge::FieldSet;
use crate::resource::{Live, Resource};

/// The number of attempts to write the record if the object changes in the meantime.
const TRIES: u32 = 5;

/// Updates the managedFields of `live`, which was just applied. This only helps the next deploy, so a failure is a
/// warning.
pub async fn release(transport: &Transport, apply: &Apply<'_>, namespace: Option<&str>, mut live: Live) -> Live {
    let Apply { resource, object, .. } = apply;
    let read = Call::get(resource, namespace, &object.name);
    for _ in 0..TRIES {
        let Some(patch) = patch(&live, apply.field_manager) else { return live };
        let body = Some(Payload::JsonPatch(&patch));
        let write = Call { verb: "patch", body, live: Some(&live.raw), ..read.clone() };
        match transport.send(&write).await {
            Ok(answer) => return json::live(&answer.body, resource).unwrap_or(live),
            // The object has changed in the meantime.
            Err(Failure::Refused(status)) if matches!(status.code, 409 | 422) => {}
            Err(_) => break,
        }
        match again(transport, &read, resource).await {
            Some(now) if now.uid == live.uid => live = now,
            _ => break,
        }
    }
    transport.warn(format!(
        "{object} was written, but the managedFields of its previous owner could not be changed; the next change may \
         need --force-conflicts again"
    ));
    live
}

async fn again(transport: &Transport, read: &Call<'_>, resource: &Resource) -> Option<Live> {
    json::live(&transport.send(read).await.ok()?.body, resource)
}

/// The JSON patch that removes our fields from the records of deploy tools; `None` if they have none of them.
fn patch(live: &Live, field_manager: &str) -> Option<String> {
    let object = live.raw.value();
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let ours = entries.iter().find(|entry| {
        text(entry, "manager") == field_manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    })?;
    let fields = FieldSet::read(&ours["fieldsV1"]);
    let mut changed = false;
    let kept: Vec<Value> = entries
        .iter()
        .filter_map(|entry| {
            let is_update = text(entry, "operation") == "Update" && text(entry, "subresource").is_empty();
            let is_tool = is_update && client_side_tool(&text(entry, "manager"), Operation::Update).is_some();
            if !is_tool || entry["apiVersion"] != ours["apiVersion"] {
                return Some(entry.clone());
            }
            let mut theirs = FieldSet::read(&entry["fieldsV1"]);
            changed |= theirs.subtract(&fields);
            let mut entry = entry.clone();
            entry["fieldsV1"] = theirs.to_json();
            (!theirs.is_empty()).then_some(entry)
        })
        .collect();
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": live.uid},
        {"op": "replace", "path": "/metadata/managedFields", "value": kept},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version},
    ]);
    changed.then(|| patch.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::RawObject;

    fn live(entries: Value) -> Live {
        let object = json!({"metadata": {"managedFields": entries}});
        Live { raw: RawObject::from_value(&object), uid: "u".into(), resource_version: "7".into() }
    }

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields})
    }

    #[test]
    fn a_tool_gives_up_what_is_ours_and_keeps_the_rest() {
        let ours = entry("gantry", "Apply", json!({"f:data": {"f:a": {}}}));
        let applier = entry("kubectl", "Apply", json!({"f:data": {"f:a": {}}}));
        let tool = entry("kubectl-client-side-apply", "Update", json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        let emptied = entry("kubectl-create", "Update", json!({"f:data": {"f:a": {}}}));
        let patch = patch(&live(json!([ours, applier, tool, emptied])), "gantry").unwrap();
        let patch: Value = serde_json::from_str(&patch).unwrap();
        let left = entry("kubectl-client-side-apply", "Update", json!({"f:data": {".": {}, "f:b": {}}}));
        assert_eq!(patch[1]["value"], json!([ours, applier, left]));
        assert_eq!((&patch[0]["value"], &patch[2]["value"]), (&json!("u"), &json!("7")));
    }

    #[test]
    fn nothing_is_written_where_nothing_is_shared_with_a_tool() {
        let ours = entry("gantry", "Apply", json!({"f:data": {"f:a": {}}}));
        let controller = entry("some-controller", "Update", json!({"f:data": {"f:a": {}}}));
        let tool = entry("helm", "Update", json!({"f:data": {"f:b": {}}}));
        assert_eq!(patch(&live(json!([ours, controller, tool])), "gantry"), None);
        assert_eq!(patch(&live(json!([tool])), "gantry"), None);
    }
}
