//! Manifests that were exported from the live object, such as those of a snapshot.
//!
//! They have everything that the server, controllers and other field managers added, which our entry in
//! `metadata.managedFields` lacks. If nothing of it has changed, an apply would only make gantry an owner of all of it.

use serde_json::Value;

use gantry_core::managed_fields::ManagerEntry;
use gantry_core::resource::{RawObject, SERVER_METADATA};
use gantry_schema::scan;

/// Whether a manifest is an export of the live object, and the live object still has the same content.
pub fn is_current(desired: &RawObject, live: &RawObject, is_built_in: bool) -> bool {
    // Few manifests have a uid, which shows without parsing the rest.
    let uid = |raw: &RawObject| -> Option<String> {
        #[derive(serde::Deserialize)]
        struct ExportedMetadata {
            #[serde(default)]
            uid: String,
        }
        let json = raw.json();
        let metadata: ExportedMetadata = serde_json::from_str(scan::member(&json, "metadata")?).ok()?;
        Some(metadata.uid).filter(|uid| !uid.is_empty())
    };
    let Some(exported) = uid(desired) else { return false };
    if uid(live).is_none_or(|live| live != exported) {
        return false;
    }
    let (desired, live) = (desired.value(), live.value());
    let ignores_status = is_built_in || has_status_subresource(&live);
    content(desired, ignores_status) == content(live, ignores_status)
}

/// Whether somebody wrote the status on its own. Then a write of the object leaves it as it is.
fn has_status_subresource(live: &Value) -> bool {
    ManagerEntry::all(live).any(|entry| entry.subresource() == "status")
}

/// The object without what the server ignores in a write.
fn content(mut object: Value, ignores_status: bool) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
    }
    if let Some(object) = object.as_object_mut().filter(|_| ignores_status) {
        object.remove("status");
    }
    object
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compare(change: impl FnOnce(&mut Value), is_built_in: bool) -> bool {
        let live = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "uid": "u", "resourceVersion": "9",
            "generation": 3, "managedFields": [{"manager": "m"}], "labels": {"a": "b"}}, "spec": {"default": 1},
            "status": {"ready": true}});
        let mut exported = live.clone();
        exported["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        change(&mut exported);
        is_current(&RawObject::from_value(&exported), &RawObject::from_value(&live), is_built_in)
    }

    #[test]
    fn an_export_is_current_as_long_as_its_content_is() {
        assert!(compare(|_| (), true) && compare(|_| (), false));
        assert!(compare(|it| it["metadata"]["generation"] = 2.into(), true));
        assert!(!compare(|it| it["spec"]["default"] = 2.into(), true));
        assert!(!compare(|it| it["spec"]["more"] = 2.into(), true));
        assert!(!compare(|it| it["metadata"]["labels"]["c"] = "d".into(), true));
        assert!(!compare(|it| drop(it["spec"].as_object_mut().unwrap().remove("default")), true));
        assert!(!compare(|it| it["metadata"]["uid"] = "other".into(), true), "it was created again");
        assert!(!compare(|it| it["metadata"]["uid"] = "".into(), true), "a manifest that is no export");
    }

    #[test]
    fn a_status_counts_only_where_a_write_of_the_object_writes_it() {
        let change = |it: &mut Value| it["status"]["ready"] = false.into();
        assert!(compare(change, true));
        assert!(!compare(change, false));
        let entry = |subresource: &str| json!({"metadata": {"managedFields": [{"subresource": subresource}]}});
        assert!(has_status_subresource(&entry("status")) && !has_status_subresource(&entry("scale")));
    }
}
