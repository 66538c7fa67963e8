//! Annotations of live objects that forbid a tool to change them.

use std::collections::BTreeMap;

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use gantry_schema::scan;

use super::{FoundDirective, MARKS, Meaning, find};
use gantry_core::resource::RawObject;

/// The metadata of a live object that decides who may change it.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct DirectiveMetadata {
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    managed_fields: Option<Vec<DirectiveFieldsEntry>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct DirectiveFieldsEntry {
    manager: String,
    operation: String,
    fields_v1: Value,
}

/// The annotation of the live object by which a deploy leaves it as it is. Somebody else has set it: one that this
/// manager applied counts only as long as the manifest has it.
pub fn live_exclusion(live: &RawObject, field_manager: &str) -> Option<FoundDirective> {
    let json = live.json();
    if !MARKS.iter().any(|mark| memmem::find(json.as_bytes(), mark.as_bytes()).is_some()) {
        return None;
    }
    let metadata: DirectiveMetadata = serde_json::from_str(scan::member(&json, "metadata")?).ok()?;
    let DirectiveMetadata { labels, annotations, managed_fields } = metadata;
    let (labels, annotations) = (labels.unwrap_or_default(), annotations.unwrap_or_default());
    let managed_fields = managed_fields.unwrap_or_default();
    let found = find(|key| annotations.get(key).map(String::as_str), |key| labels.get(key).map(String::as_str));
    let is_own = |found: &FoundDirective| {
        let map = if found.is_label { "f:labels" } else { "f:annotations" };
        let owns = |entry: &DirectiveFieldsEntry| {
            entry.manager == field_manager
                && entry.operation == "Apply"
                && entry.fields_v1["f:metadata"][map].get(format!("f:{}", found.directive.key)).is_some()
        };
        managed_fields.iter().any(owns)
    };
    found
        .into_iter()
        .find(|found| matches!(found.meaning, Meaning::LeaveAlone | Meaning::CreateOnlyOrLive) && !is_own(found))
}
