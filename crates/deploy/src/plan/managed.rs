//! What entries of `metadata.managedFields` tell: at which other versions an apply must fit, and who created an object.
//!
//! At each server-side apply by any manager, the server converts the live and the merged object to the version of every
//! entry, and parses them by the schema of that version. It refuses the apply if the CRD does not have the version,
//! served or not, or if an object does not fit the schema. Writing an object again, also by a storage version
//! migration, leaves the entries as they are. Source: <https://github.com/kubernetes/kubernetes/issues/111937>

use gantry_schema::scan;
use serde::Deserialize;
use serde_json::Value;

use gantry_core::crd::Crd;
use gantry_core::managed_fields::ManagerEntry;
use gantry_core::resource::{ObjectRef, RawObject, Resource};

/// An entry in `managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionFieldsEntry<'o> {
    /// The name of the field manager.
    pub manager: &'o str,
    /// The version, without the group, that the entry's fields are those of.
    pub version: &'o str,
}

/// The entries at versions of this group, in the order of the object.
pub fn entries<'o>(object: &'o Value, group: &str) -> Vec<VersionFieldsEntry<'o>> {
    let of_group = ManagerEntry::all(object).filter_map(|entry| {
        let version = entry.api_version().strip_prefix(group)?.strip_prefix('/')?;
        Some(VersionFieldsEntry { manager: entry.manager(), version })
    });
    of_group.collect()
}

/// Whether this manager created the object with server-side apply. Its entry is then as old as the object, until it
/// applies a change; after that nothing tells, and the answer is no.
pub fn is_created_by(live: &RawObject, manager: &str) -> bool {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct CreationMetadata {
        creation_timestamp: Option<String>,
        managed_fields: Vec<CreatingManager>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct CreatingManager {
        manager: String,
        operation: String,
        time: Option<String>,
    }
    let json = live.json();
    let metadata = scan::member(&json, "metadata").and_then(|text| serde_json::from_str::<CreationMetadata>(text).ok());
    metadata.is_some_and(|CreationMetadata { creation_timestamp, managed_fields }| {
        creation_timestamp.is_some()
            && managed_fields
                .iter()
                .any(|entry| entry.operation == "Apply" && entry.manager == manager && entry.time == creation_timestamp)
    })
}

/// Whether both CRDs have a version in common: entries can move to it.
pub fn has_common_version(live: &Crd, desired: &Crd) -> bool {
    desired.versions.iter().any(|version| live.version(&version.name).is_some())
}

/// The command that moves the entries in an object's `managedFields` from some versions of its API to another one.
pub fn move_entries_command(
    resource: &Resource,
    object: &ObjectRef,
    from_versions: &[&str],
    to_version: &str,
) -> String {
    let namespace = object.namespace.as_ref().map(|namespace| format!(" --namespace {namespace}"));
    let Resource { plural, group, .. } = resource;
    let target = format!("{plural}.{to_version}.{group} {}{}", object.name, namespace.unwrap_or_default());
    move_entries_pipeline(group, &target, from_versions, to_version)
}

/// An entry of a manager can already be at the other version. The server keeps only one of two entries with the same
/// manager, operation, version and subresource, so they are merged into one with the fields of both.
fn move_entries_pipeline(group: &str, target: &str, from: &[&str], to: &str) -> String {
    let is_old: Vec<String> = from.iter().map(|from| format!(".apiVersion == \"{group}/{from}\"")).collect();
    format!(
        "kubectl get {target} -o json --show-managed-fields | jq '(.metadata.managedFields | select(.)) |= (map(if {} \
         then .apiVersion = \"{group}/{to}\" else . end) | group_by([.manager, .operation, .apiVersion, .subresource]) | \
         map(reduce .[] as $entry ({{}}; . * $entry)))' | kubectl replace -f -",
        is_old.join(" or ")
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gantry_core::crd::builder::CrdBuilder;

    fn crd(versions: &[&str]) -> Crd {
        let add = |crd: CrdBuilder, name: &&str| {
            crd.version(name, json!({"type": "object"})).served(false).storage(*name == "v1")
        };
        Crd::parse(&versions.iter().fold(CrdBuilder::new("g", "K"), add).build().to_string()).unwrap()
    }

    #[test]
    fn entries_at_versions_of_the_group_are_found() {
        let entry = |manager: &str, version: &str| json!({"manager": manager, "apiVersion": version});
        let object = json!({"metadata": {"managedFields": [entry("a", "g/v1"), entry("b", "g/v2"), entry("b", "g/v2"),
            entry("c", "other/v3"), entry("c", "v1"), json!({"manager": "d"}), entry("e", "gg/v3")]}});
        let found: Vec<_> = entries(&object, "g").iter().map(|entry| (entry.manager, entry.version)).collect();
        assert_eq!(found, [("a", "v1"), ("b", "v2"), ("b", "v2")]);
        assert_eq!(entries(&json!({"metadata": {}}), "g"), []);
    }

    #[test]
    fn entries_move_to_a_version_that_stays() {
        assert!(has_common_version(&crd(&["v1", "v2"]), &crd(&["v2", "v1"])));
        assert!(has_common_version(&crd(&["v2", "v3"]), &crd(&["v1", "v3"])));
        assert!(!has_common_version(&crd(&["v2"]), &crd(&["v1"])));
    }
}
