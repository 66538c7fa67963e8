//! Takes an object over from the tools that deployed it. Before the apply, the fields in their entries of
//! `managedFields` become fields of our own entry. So the apply removes those that the manifest does not set, and the
//! tools own nothing that a later apply changes. If the apply fails, they get their entries back.
//!
//! Source: `managedFields` can be written by a patch, as `kubectl apply --server-side` does for the same purpose
//! (<https://kubernetes.io/docs/reference/using-api/server-side-apply/#migration-between-client-side-and-server-side-apply>).
//! kubectl applies first, then patches, then applies again; in between, the object has the values of both.

use serde_json::{Value, json};

use super::apply::{self, FreshSchemas};
use super::apply_request;
use super::dry_run;
use super::json;
use super::request::{ApiRequest, Payload, RequestError};
use super::transport::Transport;
use crate::{Apply, ApplyError, DryRunError, FormerTools, WritePrecondition};
use gantry_core::managed_fields::ManagerEntry;
use gantry_core::merge::UNRECORDED;
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, RawObject, Resource};

/// The number of attempts to write the record if the object changes in the meantime.
const TRIES: u32 = 5;

/// Writes an object with one apply, and with what has to happen around it.
struct ObjectWriter<'t> {
    transport: &'t Transport,
    fresh: &'t FreshSchemas,
    default_namespace: &'t str,
}

/// Writes the object if its pin holds, and returns the new live object. The fields of former deploy tools are taken
/// over.
pub async fn apply(
    transport: &Transport,
    fresh: &FreshSchemas,
    default_namespace: &str,
    apply: &Apply<'_>,
) -> Result<LiveObject, ApplyError> {
    let writer = ObjectWriter { transport, fresh, default_namespace };
    if may_hand_over(transport, default_namespace, apply).await? {
        match hand_over(transport, apply, writer.namespace(apply)).await? {
            Handover::Done(handed_over) => return writer.write_as_owner(apply, handed_over).await,
            Handover::Refused(_) => return writer.write_and_hand_over(apply).await,
            Handover::NotNeeded => {}
        }
    }
    let live = writer.write(apply).await?;
    match (apply.former_tools, apply.pin) {
        (FormerTools::Keep, _) | (_, WritePrecondition::Absent) => Ok(live),
        _ => Ok(release_unrecorded(transport, apply, writer.namespace(apply), live).await),
    }
}

impl ObjectWriter<'_> {
    fn namespace<'a>(&'a self, apply: &Apply<'a>) -> Option<&'a str> {
        apply_request::namespace_of(apply, self.default_namespace)
    }

    async fn write(&self, apply: &Apply<'_>) -> Result<LiveObject, ApplyError> {
        apply::write(self.transport, self.fresh, self.default_namespace, apply).await
    }

    /// Writes the object after the fields of its tools were handed over. If that fails, the tools get them back.
    async fn write_as_owner(&self, apply: &Apply<'_>, handed_over: HandedOver) -> Result<LiveObject, ApplyError> {
        let answer = self.write(&Apply { pin: &handed_over.pin, ..*apply }).await;
        // An apply whose answer is lost may have happened.
        if answer.as_ref().is_err_and(|error| !matches!(error, ApplyError::Unknown(_))) {
            handed_over.give_back(self.transport, apply, self.namespace(apply)).await;
        }
        answer
    }

    /// For an object that the server does not take as it is. The content that the manifest sets may be what the server
    /// asks for, so it is applied first, beside the tools. Then their fields change hands, and a second apply removes
    /// what the manifest does not set.
    async fn write_and_hand_over(&self, apply: &Apply<'_>) -> Result<LiveObject, ApplyError> {
        let beside = |apply| Apply { former_tools: FormerTools::Keep, ..apply };
        let live = match self.write(&beside(*apply)).await {
            Err(ApplyError::Conflict(conflicts)) => match apply.forced_over_tools(&conflicts) {
                Some(forced) => self.write(&beside(forced)).await?,
                None => return Err(ApplyError::Conflict(conflicts)),
            },
            answer => answer?,
        };
        let pin = WritePrecondition::At { uid: live.uid.clone(), resource_version: live.resource_version.clone() };
        let apply = Apply { pin: &pin, live: Some(&live.raw), ..*apply };
        match hand_over(self.transport, &apply, self.namespace(&apply)).await? {
            Handover::Done(handed_over) => self.write_as_owner(&apply, handed_over).await,
            Handover::NotNeeded => Ok(live),
            Handover::Refused(problem) => Err(ApplyError::Refused(problem)),
        }
    }
}

/// Whether the fields of deploy tools are taken over. Afterwards they would no longer be in conflict, so an apply that
/// must not change their values is tried first.
async fn may_hand_over(transport: &Transport, default_namespace: &str, apply: &Apply<'_>) -> Result<bool, ApplyError> {
    let has_tools = || {
        let live = apply.live.map(RawObject::value);
        live.is_some_and(|live| !apply.owners(&live).tools.is_empty())
    };
    if apply.former_tools == FormerTools::Keep || !has_tools() {
        return Ok(false);
    }
    if apply.former_tools == FormerTools::Take || apply.force_conflicts {
        return Ok(true);
    }
    match dry_run::dry_run_beside_tools(transport, default_namespace, apply).await {
        Err(DryRunError::Conflict(conflicts)) => Err(ApplyError::Conflict(conflicts)),
        Err(DryRunError::Changed) => Err(ApplyError::Changed),
        // The server may refuse the values of the tool together with those of the manifest.
        _ => Ok(true),
    }
}

/// The fields of former deploy tools, which our entry has now.
struct HandedOver {
    /// The object with the new entries.
    pin: WritePrecondition,
    /// The entries before.
    before: Value,
}

/// What became of the fields of deploy tools.
enum Handover {
    /// The tools own none, so nothing was written.
    NotNeeded,
    Done(HandedOver),
    /// The server does not take the object as it is, even if only its managers change: a policy, a webhook or a schema
    /// came after it.
    Refused(Problem),
}

/// Hands the fields of deploy tools over to our manager.
///
/// # Errors
/// The object has changed, or the request failed.
async fn hand_over(transport: &Transport, apply: &Apply<'_>, namespace: Option<&str>) -> Result<Handover, ApplyError> {
    let Apply { resource, object, pin: WritePrecondition::At { uid, resource_version }, live: Some(live), .. } = apply
    else {
        return Ok(Handover::NotNeeded);
    };
    let version = &object.api_version;
    let mut live = live.value();
    if apply.owners(&live).tools.is_empty() {
        return Ok(Handover::NotNeeded);
    }
    let read = ApiRequest::get(resource, namespace, &object.name);
    if live["metadata"]["resourceVersion"] != **resource_version {
        // Its status was written since it was read, and its managers may have been, too.
        let now = read_again(transport, &read, resource).await.ok_or(ApplyError::Changed)?;
        if now.uid != *uid || now.resource_version != *resource_version {
            return Err(ApplyError::Changed);
        }
        live = now.raw.value();
    }
    let Some(entries) = apply.owners(&live).handed_over(apply.field_manager, version) else {
        return Ok(Handover::NotNeeded);
    };
    let patch = patch_of(uid, resource_version, entries.into());
    let call = ApiRequest { verb: "patch", body: Some(Payload::JsonPatch(&patch)), live: apply.live, ..read.clone() };
    match transport.send(&call).await {
        Ok(answer) => {
            let now = json::live(&answer.body, resource).ok_or(ApplyError::Changed)?;
            let pin = WritePrecondition::At { uid: now.uid, resource_version: now.resource_version };
            let before = live["metadata"]["managedFields"].take();
            Ok(Handover::Done(HandedOver { pin, before }))
        }
        Err(RequestError::Refused(status)) if matches!(status.code, 404 | 409) => Err(ApplyError::Changed),
        Err(failure) => {
            let may_be_refused =
                matches!(&failure, RequestError::Refused(status) if matches!(status.code, 400 | 403 | 422));
            let problem = failure.into_problem(&call, transport.peer());
            if !may_be_refused {
                return Err(ApplyError::Refused(problem));
            }
            // A test of the patch that fails has the same code as a refusal of the content.
            let now = read_again(transport, &read, resource).await;
            let is_as_before = now.is_some_and(|now| now.uid == *uid && now.resource_version == *resource_version);
            if is_as_before { Ok(Handover::Refused(problem)) } else { Err(ApplyError::Changed) }
        }
    }
}

impl HandedOver {
    /// Gives the tools their entries back, because nothing was applied. If the object has changed since, the fields
    /// stay ours, and the next deploy continues from there.
    async fn give_back(self, transport: &Transport, apply: &Apply<'_>, namespace: Option<&str>) {
        let Apply { resource, object, .. } = apply;
        let read = ApiRequest::get(resource, namespace, &object.name);
        let WritePrecondition::At { uid, mut resource_version } = self.pin else { return };
        let mut entries = self.before;
        for _ in 0..TRIES {
            let patch = patch_of(&uid, &resource_version, entries.clone());
            let call =
                ApiRequest { verb: "patch", body: Some(Payload::JsonPatch(&patch)), live: apply.live, ..read.clone() };
            match transport.send(&call).await {
                Err(RequestError::Refused(status)) if matches!(status.code, 409 | 422) => {}
                _ => return,
            }
            let Some(now) = read_again(transport, &read, resource).await.filter(|now| now.uid == uid) else { return };
            let Some(given) = given_back(&entries, &now, apply) else { return };
            (entries, resource_version) = (given, now.resource_version);
        }
    }
}

/// The entries to write after the object has changed: those of before, and what others wrote about subresources since.
fn given_back(before: &Value, now: &LiveObject, apply: &Apply<'_>) -> Option<Value> {
    let has_subresource = |entry: &&Value| !ManagerEntry::new(entry).subresource().is_empty();
    let entries = |object: &Value| object.as_array().cloned().unwrap_or_default();
    let now = now.raw.value();
    let now = entries(&now["metadata"]["managedFields"]);
    let is_ours = |entry: &Value| ManagerEntry::new(entry).is_of_applier(apply.field_manager);
    let before = entries(before);
    let same = |entry: &&Value| is_ours(entry) || before.contains(entry);
    // Somebody wrote more than a status.
    if !now.iter().filter(|entry| !has_subresource(entry)).all(|entry| same(&entry)) {
        return None;
    }
    let status = now.iter().filter(has_subresource).cloned();
    Some(before.iter().filter(|entry| !has_subresource(entry)).cloned().chain(status).collect())
}

pub(super) fn patch_of(uid: &str, resource_version: &str, entries: Value) -> String {
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": uid},
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
    ]);
    patch.to_string()
}

/// Ends the shared ownership with a writer that left no record. The server makes an entry of every live field for it
/// when such an object is applied for the first time. This only helps the next deploy, so a failure is a warning.
async fn release_unrecorded(
    transport: &Transport,
    apply: &Apply<'_>,
    namespace: Option<&str>,
    mut live: LiveObject,
) -> LiveObject {
    let Apply { resource, object, .. } = apply;
    let read = ApiRequest::get(resource, namespace, &object.name);
    for _ in 0..TRIES {
        let Some(patch) = without_unrecorded(&live, apply.field_manager) else { return live };
        let body = Some(Payload::JsonPatch(&patch));
        let write = ApiRequest { verb: "patch", body, live: Some(&live.raw), ..read.clone() };
        match transport.send(&write).await {
            Ok(answer) => return json::live(&answer.body, resource).unwrap_or(live),
            // The object has changed in the meantime.
            Err(RequestError::Refused(status)) if matches!(status.code, 409 | 422) => {}
            Err(_) => break,
        }
        match read_again(transport, &read, resource).await {
            Some(now) if now.uid == live.uid => live = now,
            _ => break,
        }
    }
    transport.warn(format!(
        "{object} was written, but the managedFields of its previous owner could not be changed; the next change may \
         need --force-conflicts"
    ));
    live
}

async fn read_again(transport: &Transport, read: &ApiRequest<'_>, resource: &Resource) -> Option<LiveObject> {
    json::live(&transport.send(read).await.ok()?.body, resource)
}

/// The JSON patch that removes our fields from the entry of a writer without a record; `None` if it has none of them.
fn without_unrecorded(live: &LiveObject, field_manager: &str) -> Option<String> {
    // Most objects have no such entry, and need not be parsed.
    if !live.raw.json().contains(UNRECORDED) {
        return None;
    }
    let object = live.raw.value();
    let ours = ManagerEntry::all(&object).find(|entry| entry.is_apply_of(field_manager))?;
    let fields = ours.fields();
    let mut changed = false;
    let kept: Vec<Value> = ManagerEntry::all(&object)
        .filter_map(|entry| {
            if entry.manager() != UNRECORDED || entry.api_version() != ours.api_version() {
                return Some(entry.value().clone());
            }
            let mut theirs = entry.fields();
            changed |= theirs.subtract(&fields);
            (!theirs.is_empty()).then(|| entry.with_fields(&theirs))
        })
        .collect();
    changed.then(|| patch_of(&live.uid, &live.resource_version, kept.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gantry_core::resource::RawObject;

    fn live(entries: Value) -> LiveObject {
        let object = json!({"metadata": {"managedFields": entries}});
        LiveObject { raw: RawObject::from_value(&object), uid: "u".into(), resource_version: "7".into() }
    }

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": fields})
    }

    #[test]
    fn a_writer_without_a_record_gives_up_what_is_ours_and_keeps_the_rest() {
        let ours = entry("gantry", "Apply", json!({"f:data": {"f:a": {}}}));
        let edited = entry("kubectl-edit", "Update", json!({"f:data": {"f:a": {}}}));
        let unrecorded = entry(UNRECORDED, "Update", json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}}));
        let patch = without_unrecorded(&live(json!([ours, edited, unrecorded])), "gantry").unwrap();
        let patch: Value = serde_json::from_str(&patch).unwrap();
        let left = entry(UNRECORDED, "Update", json!({"f:data": {".": {}, "f:b": {}}}));
        assert_eq!(patch[1]["value"], json!([ours, edited, left]));
        assert_eq!((&patch[0]["value"], &patch[2]["value"]), (&json!("u"), &json!("7")));
    }

    #[test]
    fn nothing_changes_if_an_unrecorded_writer_shares_no_field() {
        let ours = entry("gantry", "Apply", json!({"f:data": {"f:a": {}}}));
        let edited = entry("kubectl-edit", "Update", json!({"f:data": {"f:a": {}}}));
        let unrecorded = entry(UNRECORDED, "Update", json!({"f:data": {"f:b": {}}}));
        assert_eq!(without_unrecorded(&live(json!([ours, edited, unrecorded])), "gantry"), None);
        assert_eq!(without_unrecorded(&live(json!([unrecorded])), "gantry"), None);
    }
}
