//! What happens to an object when a version is removed or no longer served.

use std::sync::Arc;

use super::cause::CausingKeyword;
use super::effect::{ObjectEffect, ObjectImpact};
use super::object::ProjectedObject;
use super::question::Ask;
use super::validator::ObjectValidator;

/// A version that is removed or no longer served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaving {
    pub version: Arc<str>,
    pub ask: Ask,
    /// Whether it is the live storage version.
    pub is_storage: bool,
    /// Whether it is removed, and `status.storedVersions` does not name it.
    pub is_said_to_be_empty: bool,
}

impl ObjectValidator {
    /// Whether every entry in `managedFields` is at a version that is removed.
    fn knows_only_removed(&self, item: &ProjectedObject) -> bool {
        let is_removed = |version: &str| self.leaving.iter().any(|l| l.ask == Ask::Removed && *l.version == *version);
        let mut versions = item.managed.iter().filter_map(|entry| {
            entry.api_version.strip_prefix(self.group.as_str()).and_then(|version| version.strip_prefix('/'))
        });
        versions.all(is_removed)
    }

    /// Adds the effects of the versions that are removed or no longer served.
    pub(super) fn leaves(&self, item: &ProjectedObject, effects: &mut Vec<ObjectEffect>) {
        for leaving in &self.leaving {
            let nothing = CausingKeyword { at: Vec::new(), words: String::new() };
            let effect = |impact, value| ObjectEffect {
                impact,
                version: leaving.version.clone(),
                pattern: String::new(),
                keyword: nothing.clone(),
                path: None,
                value,
                steps: Vec::new(),
                lost: None,
            };
            if leaving.is_storage && leaving.ask == Ask::Removed {
                effects.push(effect(ObjectImpact::StoredAt, String::new()));
            }
            let api_version = format!("{}/{}", self.group, leaving.version);
            if leaving.is_said_to_be_empty && self.knows_only_removed(item) {
                let times = item.managed.iter().filter(|entry| entry.api_version == api_version);
                if let Some(time) = times.map(|entry| entry.time.as_deref()).max() {
                    let when = time.map_or(String::new(), |time| format!("last {time}"));
                    effects.push(effect(ObjectImpact::PerhapsStoredAt, when));
                }
                continue;
            }
            let mut last: Vec<(&str, Option<&str>)> = Vec::new();
            for entry in item.managed.iter().filter(|entry| entry.api_version == api_version) {
                match last.iter_mut().find(|(manager, _)| *manager == entry.manager) {
                    Some((_, time)) => *time = (*time).max(entry.time.as_deref()),
                    None => last.push((&entry.manager, entry.time.as_deref())),
                }
            }
            for (manager, time) in last {
                let manager = gantry_core::text::cut(manager, 128).into_owned();
                let when = time.map_or(String::new(), |time| format!("last {time}"));
                let impact = match leaving.ask {
                    Ask::Removed => ObjectImpact::NotAppliable { manager },
                    _ => ObjectImpact::WrittenAt { manager },
                };
                effects.push(effect(impact, when));
            }
        }
    }
}
