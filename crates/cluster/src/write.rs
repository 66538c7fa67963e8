//! The writes to a target, and why they fail.

use super::kube::HelmUpgrade;
use super::managers::{FieldConflict, FormerTools};
use gantry_core::merge::Owners;
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use serde_json::Value;

/// What the caller knows about the live object. The write is refused if this is no longer true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WritePrecondition {
    /// There was no such object.
    Absent,
    /// The object with this uid at this resourceVersion.
    At {
        /// A new object of the same name has another one.
        uid: String,
        /// It changes with every write.
        resource_version: String,
    },
}

/// One server-side apply.
#[derive(Debug, Clone, Copy)]
pub struct Apply<'a> {
    /// Where the object is served.
    pub resource: &'a Resource,
    /// Its kind, namespace and name.
    pub object: &'a ObjectRef,
    /// The manifest that is sent.
    pub raw: &'a RawObject,
    /// The object as it was read.
    pub live: Option<&'a RawObject>,
    /// What must still be true when the server writes.
    pub pin: &'a WritePrecondition,
    /// The name that owns the fields afterwards.
    pub field_manager: &'a str,
    /// Whether fields of other managers are taken over instead of refused (`force` of server-side apply).
    pub force_conflicts: bool,
    /// What happens to the fields of former deploy tools.
    pub former_tools: FormerTools,
    /// The apply stands for this upgrade by Helm. Only for dry runs.
    pub helm: Option<&'a HelmUpgrade>,
}

impl Apply<'_> {
    /// Whose the fields of this live object are.
    pub fn owners(&self, live: &Value) -> Owners {
        self.former_tools.owners(live, self.field_manager, &self.object.api_version)
    }

    /// The same apply by force, if these conflicts are all with deploy tools whose fields it takes over.
    pub fn forced_over_tools(&self, conflicts: &[FieldConflict]) -> Option<Self> {
        let takes =
            self.former_tools == FormerTools::Take && conflicts.iter().all(|conflict| conflict.tool().is_some());
        takes.then_some(Apply { force_conflicts: true, ..*self })
    }
}

/// Labels and annotations to remove from an object.
#[derive(Debug)]
pub struct Unmark<'a> {
    /// Where the object is served.
    pub resource: &'a Resource,
    /// Its kind, namespace and name.
    pub object: &'a ObjectRef,
    /// The object as it was read. It is left alone if it has changed.
    pub live: &'a LiveObject,
    /// The keys of the labels.
    pub labels: &'a [&'a str],
    /// The keys of the annotations.
    pub annotations: &'a [&'a str],
    /// The name that owns the change.
    pub field_manager: &'a str,
}

/// A gantry label to set to a new value.
#[derive(Debug)]
pub struct Relabel<'a> {
    /// Where the object is served.
    pub resource: &'a Resource,
    /// Its kind, namespace and name.
    pub object: &'a ObjectRef,
    /// The object as it was read. It is left alone if it has changed.
    pub live: &'a LiveObject,
    /// The key of the label.
    pub label: &'a str,
    /// Its new value.
    pub value: &'a str,
    /// The name that owns the change.
    pub field_manager: &'a str,
}

/// One object to delete.
#[derive(Debug, Clone, Copy)]
pub struct Delete<'a> {
    /// Where the object is served.
    pub resource: &'a Resource,
    /// Its kind, namespace and name.
    pub object: &'a ObjectRef,
    /// The object is left alone if it no longer has this uid and resourceVersion.
    pub uid: &'a str,
    /// See `uid`.
    pub resource_version: &'a str,
    /// Whether the object's dependents (a Deployment's Pods) are deleted first, so that its end means that all of them
    /// are gone. Otherwise they are garbage-collected afterwards.
    pub foreground: bool,
}

/// Why the deletion of one object was not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeleteError {
    /// The live object has changed since it was read.
    #[error("it changed after it was read")]
    Changed,
    /// A webhook does not answer.
    #[error("{0}")]
    NotYet(Problem),
    /// The server refuses, or the request failed.
    #[error("{0}")]
    Refused(Problem),
}

/// What a server can lack for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lacking {
    /// A response from an admission or conversion webhook, whose Pods may be starting.
    Webhook,
    /// The usage of a quota, which the controller manager has not counted yet. For a kind whose CRD is new, it can take
    /// minutes.
    QuotaUsage,
}

/// Why one object was not applied. Nothing was written to it, except perhaps if that is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// The live object has changed since it was checked.
    #[error("it has changed")]
    Changed,
    /// Other managers own fields that the manifest sets.
    #[error("other field managers own fields that the manifest sets")]
    Conflict(Vec<FieldConflict>),
    /// The server cannot accept the object yet, because it lacks this.
    #[error("{1}")]
    NotYet(Lacking, Problem),
    /// There was no response, so it is unknown whether the object was written.
    #[error("{0}")]
    Unknown(Problem),
    /// Anything else: refused by the server, forbidden, unreachable.
    #[error("{0}")]
    Refused(Problem),
}
