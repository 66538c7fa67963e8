//! What the versions in `managedFields` of the live object prevent: see [`managed`].

use std::collections::BTreeSet;

use serde_json::Value;

use super::{ManifestRefusal, ValidationJob, Wrong};
use gantry_core::crd::ConversionStrategy;
use gantry_core::finding::ServerRefusal;
use gantry_deploy::plan::Change;
use gantry_deploy::plan::managed;
use gantry_schema::typed::{self, Duplicates};

impl ValidationJob {
    /// The fault that the server refuses the apply because of a version that `managedFields` of the live object name.
    /// `new` is the merged object.
    pub(super) fn recorded(&self, new: &Value) -> Option<ManifestRefusal> {
        let live = self.change.live_when_applied(&self.manager).filter(|_| self.change.is_written())?;
        let crd = &self.definition.crd;
        let entries = managed::entries(&live, &crd.group);
        let missing: Vec<_> = entries.iter().filter(|entry| crd.version(entry.version).is_none()).collect();
        if let Some(entry) = missing.first() {
            let why = format!(
                "the server refuses every server-side apply of the live object: its managedFields have an entry of {} at \
                 {}, a version that {} does not have",
                entry.manager, entry.version, self.definition.whose
            );
            return Some(self.fault_of(&missing, why));
        }
        // With a webhook, only the server knows the object at another version: see `converted`.
        if self.definition.conversion == ConversionStrategy::Webhook {
            return None;
        }
        for entry in entries.iter().filter(|entry| *entry.version != *self.version.name) {
            let Some(schema) = self.definition.schema(entry.version) else { continue };
            let problem = |object: &Value| {
                typed::unreadable(schema, object, Duplicates::Refused, self.version.schema.release()).into_iter().next()
            };
            let (whose, problem) = match problem(&live) {
                Some(problem) => ("the live object", problem),
                None => ("the object", problem(new)?),
            };
            let said = if self.redact { problem.words().to_owned() } else { problem.to_string() };
            let why = format!(
                "the server refuses the server-side apply, because {whose} does not fit {}, at which {} has an entry in \
                 managedFields: {said}",
                entry.version, entry.manager
            );
            return Some(self.fault_of(&[entry], why));
        }
        None
    }

    fn fault_of(&self, entries: &[&managed::VersionFieldsEntry<'_>], why: String) -> ManifestRefusal {
        let versions: BTreeSet<&str> = entries.iter().map(|entry| entry.version).collect();
        let versions: Vec<&str> = versions.into_iter().collect();
        let is_served = self.definition.is_served_before(&self.change.resource.version);
        fault(&self.change, self.index, &versions, is_served, why)
    }
}

/// The fault of an object whose entries at these versions prevent the apply. `is_served` tells whether the server
/// already serves the version of the manifest.
pub(super) fn fault(change: &Change, index: usize, versions: &[&str], is_served: bool, why: String) -> ManifestRefusal {
    let to = &change.resource.version;
    let command = managed::move_entries_command(&change.resource, &change.desired.object, versions, to);
    let help = match is_served {
        true => format!("move the entries to {to}:\n{command}"),
        false => format!("deploy the CRD first, then move the entries to {to} and deploy the rest:\n{command}"),
    };
    ManifestRefusal {
        change: index,
        wrong: Wrong::Refused,
        version: to.clone(),
        path: Some("metadata.managedFields".to_owned()),
        complaint: ServerRefusal::ManagedFields,
        message: why,
        help,
        at: vec!["apiVersion".into()],
        label: format!("managedFields of the live object name {}", versions.join(", ")),
    }
}
