//! The storage version changes.

use serde_json::Value;

use super::storage_version_loses_fields;
use crate::crd_upgrade_safety::rule::{BeyondProof, CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::{migration, words};
use gantry_core::crd::{CrdPair, CrdVersion, steps};
use gantry_core::finding::Breaks;

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let (Some(was), Some(now)) = (pair.live.storage(), pair.desired.storage()) else {
        return Vec::new();
    };
    // If the old version is removed, another rule reports it.
    if was.name == now.name || pair.desired.version(&was.name).is_none() {
        return Vec::new();
    }
    // If fields are lost, `StorageVersionLosesFields` reports more than this rule.
    if !storage_version_loses_fields::judge(pair).is_empty() {
        return Vec::new();
    }
    let kept = format!(
        "existing objects stay stored at {} until they are next written; keep that version until all of them have been \
            written. After the deploy, this writes them: {}",
        was.name,
        migration::write_stored(&pair.live)
    );
    let mut diagnosis = ViolationText {
        message: format!("the storage version changes from {} to {}", was.name, now.name).into(),
        help: kept.clone().into(),
        at: steps::of_version(now.index, "storage"),
        ..ViolationText::default()
    };
    if let Some((version, fields)) = lost_defaults(pair, was, now) {
        let listed = words::listed(&fields);
        diagnosis.message = format!(
            "the storage version changes from {} to {}, which has no default of {listed}: what is written at {} without a \
                value is read without one at {version}",
            was.name, now.name, now.name
        )
        .into();
        diagnosis.help = format!("add the default of {listed} to {} as well; {kept}", now.name).into();
        diagnosis.breaks = Some(vec![Breaks::Readers, Breaks::Behaviour]);
        diagnosis.beyond_proof = Some(BeyondProof::LostDefault);
    }
    let diagnosis = diagnosis.label(format!("the live CRD stores at {}", was.name));
    vec![CrdRuleViolation { version: Some(now.name.to_string()), diagnosis }]
}

/// A served version whose objects are no longer read with a default that it has, and the fields: the server fills in
/// defaults of the version at which an object is stored.
fn lost_defaults(pair: &CrdPair, was: &CrdVersion, now: &CrdVersion) -> Option<(String, Vec<String>)> {
    if pair.converts_by_webhook() || pair.live.converts_by_webhook() {
        return None;
    }
    let schema = |version: &CrdVersion| version.schema_value().ok();
    let (before, after) = (schema(was)?, schema(now)?);
    pair.desired.served_versions().filter(|version| version.name != now.name).find_map(|version| {
        let mut fields = Vec::new();
        lost_below([&schema(version)?, &before, &after], "", &mut fields);
        (!fields.is_empty()).then(|| (version.name.to_string(), fields))
    })
}

/// The fields with a default in the first two schemas that the third one describes without a default.
fn lost_below([version, before, after]: [&Value; 3], path: &str, found: &mut Vec<String>) {
    let default = |node: &Value| node.get("default").is_some_and(|default| !default.is_null());
    for (name, field) in version.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let at = |node: &'_ Value| node.get("properties").and_then(|fields| fields.get(name)).cloned();
        let (Some(before), Some(after)) = (at(before), at(after)) else { continue };
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if default(field) && default(&before) && !default(&after) {
            found.push(path);
        } else {
            lost_below([field, &before, &after], &path, found);
        }
    }
    if let (Some(version), Some(before), Some(after)) = (version.get("items"), before.get("items"), after.get("items"))
    {
        lost_below([version, before, after], &format!("{path}[*]"), found);
    }
}
