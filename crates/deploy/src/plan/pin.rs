//! Decides whether a change between check and apply affects what was checked.
//!
//! Controllers write the status of a live object all the time, and each time its resourceVersion changes. Such a change
//! does not affect the checks, so the object may be pinned at its new version. Any other change may, so the deploy
//! stops. The checks depend on the stored versions in a CRD's status, and on the managedFields of any object.

use serde_json::Value;

use super::predicted::Writing;
use super::strategy;
use super::{Action, Change, Plan, owner};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{DryRunError, ObjectToRead, Target, WritePrecondition};
use gantry_core::managed_fields::ManagerEntry;
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, RawObject};

/// How often a dry run is tried if the live object changes after it was read, but in nothing that matters.
const TRIES: u32 = 3;

/// What happened to an object that is no longer at its pin.
pub(crate) enum Moved {
    /// What was checked is unchanged, or the create strategy allows the change: apply at this pin.
    Aside(WritePrecondition),
    /// It was created after the checks.
    TurnedUp,
    Changed,
    Deleted,
    /// It was replaced by another object of the same name.
    Replaced,
}

/// Reads the object again.
///
/// # Errors
/// The object cannot be read.
pub(crate) async fn look_again(change: &Change, target: &Target) -> Result<Moved, Problem> {
    let joins_created = change.action == Action::Create && strategy::joins_created(&change.desired);
    if change.live.is_none() && !joins_created {
        return Ok(Moved::TurnedUp);
    }
    let wanted = ObjectToRead { resource: change.resource.clone(), object: change.desired.object.clone() };
    let read = target.read(&[wanted], &|_, _| ()).await.map_err(|error| {
        let reasons = error.to_string();
        Problem::new(format!(
            "{} changed after it was checked, and gantry cannot read it again: {reasons}",
            change.desired.object
        ))
        .at(change.desired.origin.location())
        .help("run the same command again")
    })?;
    let now = read.into_iter().flatten().next();
    let Some(checked) = &change.live else {
        return Ok(match now {
            Some(now) if owner::of_created(change, &now.raw).is_some() => Moved::TurnedUp,
            Some(now) => Moved::Aside(WritePrecondition::At { uid: now.uid, resource_version: now.resource_version }),
            // It was deleted again: create it.
            None => Moved::Aside(WritePrecondition::Absent),
        });
    };
    Ok(match now {
        None => Moved::Deleted,
        Some(now) if now.uid != checked.uid => Moved::Replaced,
        Some(now) if is_as_checked(checked, &now, change.desired.object.is_crd()) => {
            Moved::Aside(WritePrecondition::At { uid: now.uid, resource_version: now.resource_version })
        }
        Some(_) => Moved::Changed,
    })
}

/// The server's answer to a dry run of the request that writes a change. Like the deploy, it asks again if the object
/// has only changed in a way that does not matter.
///
/// # Errors
/// What the server answers. [`DryRunError::Unanswered`] if the object has changed otherwise, or keeps changing.
pub async fn dry_run(
    change: &Change,
    writing: Writing<'_>,
    server: &KubeTarget,
    target: &Target,
) -> Result<RawObject, DryRunError> {
    let unanswered = |problem| DryRunError::Unanswered { problem, everything: false };
    let mut pin = change.pin();
    for _ in 0..TRIES {
        let answer = server.dry_run(&change.request(&pin, writing.field_manager, writing.force_conflicts)).await;
        if !matches!(answer, Err(DryRunError::Changed)) {
            return answer;
        }
        pin = match look_again(change, target).await {
            Ok(Moved::Aside(renewed)) => renewed,
            Ok(moved) => return Err(unanswered(moved.problem(change))),
            Err(problem) => return Err(unanswered(problem)),
        };
    }
    Err(unanswered(Moved::Aside(pin).problem(change)))
}

/// Like [`dry_run`] for a change of this plan, but the server is asked once if the plan keeps answers.
///
/// # Errors
/// See [`dry_run`].
pub async fn dry_run_once(
    change: &Change,
    plan: &Plan,
    server: &KubeTarget,
    target: &Target,
) -> Result<RawObject, DryRunError> {
    if let Some(answer) = change.answer.get() {
        return answer.clone();
    }
    let answer = dry_run(change, plan.policy.writing(), server, target).await;
    if plan.keeps_answers {
        change.answer.keep(&answer);
    }
    answer
}

/// The server's answer to a dry run of the request that writes a change and takes the fields of other managers, for an
/// object in conflict. The server is asked once.
///
/// # Errors
/// See [`dry_run`].
pub async fn forced_dry_run<'c>(
    change: &'c Change,
    field_manager: &str,
    server: &KubeTarget,
    target: &Target,
) -> Result<&'c RawObject, &'c DryRunError> {
    let writing = Writing { field_manager, force_conflicts: true };
    let ask = || async { Box::new(dry_run(change, writing, server, target).await) };
    (**change.answer.forced.get_or_init(ask).await).as_ref()
}

impl Moved {
    pub fn problem(&self, change: &Change) -> Problem {
        let object = &change.desired.object;
        let what = match self {
            Moved::Aside(_) => "kept changing in the target while gantry tried to write it",
            Moved::TurnedUp => "was created in the target after the checks ran",
            Moved::Changed => "changed in the target after it was checked",
            Moved::Deleted => "was deleted in the target after it was checked",
            Moved::Replaced => "was deleted and created again in the target after it was checked",
        };
        Problem::new(format!("{object} {what}; it was not written"))
            .at(change.desired.origin.location())
            .help("run the same command again: it checks what is live now")
    }
}

fn is_as_checked(checked: &LiveObject, now: &LiveObject, is_crd: bool) -> bool {
    looked_at(&checked.raw, is_crd) == looked_at(&now.raw, is_crd)
}

/// The object without the parts that no check depends on.
fn looked_at(object: &RawObject, is_crd: bool) -> Value {
    let mut object = object.value();
    let Some(members) = object.as_object_mut() else { return object };
    let status = members.shift_remove("status");
    if let (true, Some(stored)) = (is_crd, status.as_ref().and_then(|status| status.get("storedVersions"))) {
        members.insert("status".into(), stored.clone());
    }
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        // The generation counts changes of the spec, which is compared separately.
        for key in ["resourceVersion", "generation"] {
            metadata.shift_remove(key);
        }
        if let Some(records) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
            records.retain_mut(remove_status_and_time);
        }
    }
    object
}

/// Removes the status and the time from a manager's entry. Returns whether it is of more than that.
fn remove_status_and_time(entry: &mut Value) -> bool {
    let Some(members) = entry.as_object_mut() else { return false };
    members.shift_remove("time");
    let has_fields = members.contains_key("fieldsV1");
    let read = ManagerEntry::new(entry);
    let mut fields = read.fields();
    fields.split_off(&["status"]);
    let is_of_more = read.subresource() != "status" && (!has_fields || fields.has_below());
    *entry = read.with_fields(&fields);
    is_of_more
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(object: &Value) -> LiveObject {
        LiveObject { raw: RawObject::from_value(object), uid: "u".into(), resource_version: "1".into() }
    }

    fn object() -> Value {
        json!({
            "metadata": {"name": "a", "resourceVersion": "1", "generation": 1, "managedFields": [
                {"manager": "gantry", "operation": "Apply", "time": "1", "fieldsV1": {"f:spec": {}}}]},
            "spec": {"a": 1}, "status": {"storedVersions": ["v1"], "conditions": []},
        })
    }

    /// Whether the object is as checked after `change`, as an object of any kind and as a CRD.
    fn after(change: impl Fn(&mut Value)) -> (bool, bool) {
        let mut now = object();
        change(&mut now);
        let same = |is_crd| is_as_checked(&live(&object()), &live(&now), is_crd);
        (same(false), same(true))
    }

    #[test]
    fn the_status_and_its_managed_fields_may_change() {
        let moved = after(|now| {
            now["metadata"]["resourceVersion"] = json!("2");
            now["status"]["conditions"] = json!([{"type": "Ready"}]);
            let records = now["metadata"]["managedFields"].as_array_mut().unwrap();
            records[0]["time"] = json!("2");
            records.push(json!({"manager": "c", "operation": "Update", "subresource": "status", "fieldsV1": {}}));
            records.push(json!({"manager": "d", "operation": "Update", "fieldsV1": {"f:status": {"f:x": {}}}}));
        });
        assert_eq!(moved, (true, true));
    }

    #[test]
    fn a_change_of_the_stored_versions_of_a_crd_breaks_its_pin() {
        assert_eq!(after(|now| now["status"]["storedVersions"] = json!(["v1", "v2"])), (true, false));
    }

    #[test]
    fn any_change_outside_of_the_status_breaks_a_pin() {
        assert_eq!(after(|now| now["spec"]["a"] = json!(2)), (false, false));
        assert_eq!(after(|now| now["metadata"]["labels"] = json!({"a": "b"})), (false, false));
        assert_eq!(after(|now| now["metadata"]["deletionTimestamp"] = json!("1")), (false, false));
        let owner = json!({"manager": "c", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}});
        let take = |now: &mut Value| now["metadata"]["managedFields"].as_array_mut().unwrap().push(owner.clone());
        assert_eq!(after(take), (false, false));
    }
}
