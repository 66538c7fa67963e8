//! Server-side apply without a schema: the result of applying a manifest to a live object as a field manager.
//!
//! As on the API server, fields that the manifest sets are written, fields that the same manager applied before and
//! that the manifest no longer sets are removed, and everything else stays. `metadata.managedFields` keeps the record.
//! There are two differences, because a folder has no schemas of built-in kinds. A list is always one field (on a
//! server, the name identifies a container of a Pod). And an object without a record, which no server had, counts as applied
//! by the manager that applies the next version, so that a folder of hand-written files can be deployed to (a server would name
//! `before-first-apply` as the owner).

use serde_json::{Value, json};

use crate::{Apply, FieldConflict, FormerTools};
use gantry_core::managed_fields::{FieldSet, ManagerEntry};
use gantry_core::merge::{self, Emptied, ManagerFieldSets, MergeSchema, Owned, UNRECORDED};

/// A folder has no schemas.
const SCHEMA: MergeSchema<'static, Value> = MergeSchema::Deduced;

/// One entry of `metadata.managedFields`, with the fields that it keeps.
struct DirManagerEntry {
    value: Value,
    fields: FieldSet,
}

impl DirManagerEntry {
    fn entry(&self) -> ManagerEntry<'_> {
        ManagerEntry::new(&self.value)
    }

    fn to_json(&self) -> Value {
        self.entry().with_fields(&self.fields)
    }
}

/// Applies `intent` to the live object (an empty object if it does not exist) and returns the merged object.
pub(super) fn apply(live: &Value, intent: &Value, apply: &Apply<'_>) -> Result<Value, Vec<FieldConflict>> {
    apply_as(live, intent, apply.field_manager, apply.force_conflicts, apply.former_tools)
}

fn apply_as(
    live: &Value,
    intent: &Value,
    manager: &str,
    force: bool,
    former_tools: FormerTools,
) -> Result<Value, Vec<FieldConflict>> {
    let handed_over;
    let is_taken_first = matches!(former_tools, FormerTools::Take | FormerTools::AsHelm);
    let taken = if is_taken_first { take_over(live, intent, manager, former_tools) } else { None };
    let live = match taken {
        Some(taken) => {
            handed_over = taken;
            &handed_over
        }
        None => live,
    };
    let (mut others, mut before) = managers(live, manager);

    let mut conflicts = Vec::new();
    for other in &mut others {
        for path in merge::lost_fields_below(intent, live, Owned::Fields(&other.fields), SCHEMA) {
            let entry = other.entry();
            conflicts.push(FieldConflict::new(entry.manager(), entry.operation(), merge::path_text(&path)));
            other.fields.remove(&path);
        }
    }
    if !force && !conflicts.is_empty() {
        conflicts.sort();
        conflicts.dedup();
        return Err(conflicts);
    }
    release_unrecorded(&mut others, &merge::applied_fields(intent));
    if former_tools == FormerTools::TakeUnlessConflict
        && let Some(taken) = take_over(&with_entries(live, &others, before.as_ref()), intent, manager, former_tools)
    {
        (others, before) = managers(&taken, manager);
    }
    others.retain(|other| !other.fields.is_empty());

    let managers = ManagerFieldSets {
        before: before.as_ref().map(|before| &before.fields),
        others: others.iter().map(|other| &other.fields).collect(),
    };
    let mut merged = merge::apply(live, intent, SCHEMA, &managers, Emptied::Empty);
    record(&mut merged, others, before, intent, manager);
    Ok(merged)
}

/// Ends the shared ownership with a writer that left no record, so that the next change to these fields is ours alone.
fn release_unrecorded(others: &mut [DirManagerEntry], ours: &FieldSet) {
    for other in others.iter_mut().filter(|other| other.entry().manager() == UNRECORDED) {
        other.fields.subtract(ours);
    }
}

/// The live object after the fields of former deploy tools were handed over to `manager`; `None` if there are none.
fn take_over(live: &Value, intent: &Value, manager: &str, former_tools: FormerTools) -> Option<Value> {
    let version = intent.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let entries = former_tools.owners(live, manager, version).handed_over(manager, version)?;
    let mut taken = live.clone();
    *taken.pointer_mut("/metadata/managedFields")? = Value::Array(entries);
    Some(taken)
}

/// The live object with these managers.
fn with_entries(live: &Value, others: &[DirManagerEntry], before: Option<&DirManagerEntry>) -> Value {
    let mut live = live.clone();
    if let Some(entries) = live.pointer_mut("/metadata/managedFields") {
        *entries = others.iter().chain(before).map(DirManagerEntry::to_json).collect();
    }
    live
}

/// The managers of the live object: the other managers, and the entry of what `manager` itself applied before.
fn managers(live: &Value, manager: &str) -> (Vec<DirManagerEntry>, Option<DirManagerEntry>) {
    let entries = ManagerEntry::all(live).filter(|entry| entry.value().is_object());
    let mut others: Vec<DirManagerEntry> =
        entries.map(|entry| DirManagerEntry { fields: entry.fields(), value: entry.value().clone() }).collect();
    let ours = others.iter().position(|other| other.entry().is_apply_of(manager));
    let ours = ours.map(|index| others.remove(index));
    let of_manifest = || {
        let fields = merge::fields_of_manifest(live).filter(|fields| !fields.is_empty())?;
        let value = entry_of(&fields, live.get("apiVersion").cloned().unwrap_or_default(), manager);
        Some(DirManagerEntry { fields, value })
    };
    let ours = ours.or_else(of_manifest);
    (others, ours)
}

/// The item of `metadata.managedFields` for an apply.
fn entry_of(fields: &FieldSet, api_version: Value, manager: &str) -> Value {
    json!({
        "manager": manager,
        "operation": "Apply",
        "apiVersion": api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields.to_json(),
    })
}

/// Writes `metadata.managedFields`: the other managers as they were, then this one.
fn record(
    merged: &mut Value,
    others: Vec<DirManagerEntry>,
    before: Option<DirManagerEntry>,
    intent: &Value,
    manager: &str,
) {
    let fields = merge::applied_fields(intent);
    let mut entries: Vec<Value> = others.into_iter().map(|other| other.to_json()).collect();
    let api_version = intent.get("apiVersion").cloned().unwrap_or_default();
    match before {
        // If nothing changed, the entry keeps the time that a server wrote into it.
        Some(before) if before.fields == fields && before.value.get("apiVersion") == Some(&api_version) => {
            entries.push(before.value);
        }
        _ if fields.is_empty() => {}
        _ => entries.push(entry_of(&fields, api_version, manager)),
    }
    if let Some(metadata) = merged.get_mut("metadata").and_then(Value::as_object_mut) {
        if entries.is_empty() {
            metadata.shift_remove("managedFields");
        } else {
            metadata.insert("managedFields".into(), Value::Array(entries));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ManagerOperation;

    fn apply(live: &Value, intent: &Value, manager: &str, force: bool) -> Result<Value, Vec<FieldConflict>> {
        apply_as(live, intent, manager, force, FormerTools::TakeUnlessConflict)
    }

    fn config_map(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
    }

    fn applied(live: &Value, desired: &Value) -> Value {
        apply(live, desired, "gantry", false).unwrap()
    }

    #[test]
    fn a_field_that_is_no_longer_set_is_removed() {
        let mut first = config_map(json!({"x": "1", "y": "2"}));
        first["metadata"]["labels"] = json!({"l": "1"});
        let live = applied(&json!({}), &first);
        let live = applied(&live, &config_map(json!({"x": "1"})));
        assert_eq!(live["data"], json!({"x": "1"}));
        assert_eq!(live["metadata"].get("labels"), None);
        assert_eq!(live["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {"f:x": {}}}));
    }

    /// An object that a server had.
    fn exported(data: Value) -> Value {
        let mut object = config_map(data);
        object["metadata"]["uid"] = "1".into();
        object
    }

    #[test]
    fn a_manifest_without_a_record_was_applied_so_that_a_field_that_the_next_version_lacks_is_removed() {
        let mut live = config_map(json!({"x": "1", "y": "2"}));
        live["metadata"]["labels"] = json!({"l": "1"});
        live["status"] = json!({"ready": true});
        let next = applied(&live, &config_map(json!({"x": "3"})));
        assert_eq!((&next["data"], next["metadata"].get("labels")), (&json!({"x": "3"}), None));
        assert_eq!(next["status"], live["status"]);
        assert_eq!(next["metadata"]["managedFields"].as_array().map(Vec::len), Some(1));
        // Another manager does not conflict with it.
        let next = apply(&live, &config_map(json!({"x": "3"})), "other", false).unwrap();
        assert_eq!(next["data"], json!({"x": "3"}));
    }

    #[test]
    fn a_null_leaves_the_fields_of_a_mapping_alone() {
        let live = applied(&exported(json!({"by-hand": "1"})), &config_map(Value::Null));
        assert_eq!(live["data"], json!({"by-hand": "1"}));
    }

    #[test]
    fn fields_that_were_not_applied_stay() {
        let live = applied(&exported(json!({"x": "1", "by-hand": "2"})), &config_map(json!({"x": "3"})));
        assert_eq!(live["data"], json!({"x": "3", "by-hand": "2"}));
        let live = applied(&live, &config_map(json!({"x": "3"})));
        assert_eq!(live["data"]["by-hand"], "2");
    }

    #[test]
    fn a_mapping_without_fields_is_removed_unless_the_manifest_sets_it() {
        let live = applied(&json!({}), &config_map(json!({"x": "1"})));
        let mut without = config_map(json!({}));
        assert_eq!(applied(&live, &without)["data"], json!({}));
        without.as_object_mut().unwrap().shift_remove("data");
        assert_eq!(applied(&live, &without).get("data"), None);
    }

    #[test]
    fn another_managers_field_is_a_conflict_unless_it_is_equal_or_forced() {
        let live = applied(&json!({}), &config_map(json!({"x": "1", "y": "1"})));
        let desired = config_map(json!({"x": "2", "y": "1"}));
        let conflict = FieldConflict::new("gantry", ManagerOperation::Apply, ".data.x");
        assert_eq!(apply(&live, &desired, "other", false).unwrap_err(), [conflict]);

        let forced = apply(&live, &desired, "other", true).unwrap();
        assert_eq!(forced["data"], json!({"x": "2", "y": "1"}));
        let managers = &forced["metadata"]["managedFields"];
        assert_eq!(managers[0]["fieldsV1"], json!({"f:data": {"f:y": {}}}));
        assert_eq!(managers[1]["fieldsV1"], json!({"f:data": {"f:x": {}, "f:y": {}}}));
    }

    #[test]
    fn a_shared_field_stays_when_one_of_its_managers_drops_it() {
        let live = applied(&json!({}), &config_map(json!({"x": "1"})));
        let shared = apply(&live, &config_map(json!({"x": "1"})), "other", false).unwrap();
        let live = applied(&shared, &config_map(json!({})));
        assert_eq!(live["data"], json!({"x": "1"}));
        assert_eq!(live["metadata"]["managedFields"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn applying_the_same_again_changes_nothing() {
        let desired = config_map(json!({"x": "1"}));
        let mut live = applied(&json!({}), &desired);
        live["metadata"]["managedFields"][0]["time"] = json!("2026-01-02T03:04:05Z");
        assert_eq!(applied(&live, &desired), live);
    }
}
