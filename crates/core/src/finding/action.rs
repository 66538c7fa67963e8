//! The action of a deploy on an object, and its result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a deploy does to one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// It does not exist and is created.
    Create,
    /// It exists and is changed.
    Update,
    /// The object exists and is added to the app: another tool owned it, or it had no owner.
    Adopt,
    /// An annotation of the manifest requests that the object is deleted and created again.
    Replace,
    /// It matches the manifest; nothing is written.
    Unchanged,
    /// It is deleted.
    Delete,
    /// The object is removed from the app and stays in the cluster.
    Orphan,
    /// An annotation of the manifest excludes it from the deploy.
    Skip,
    /// The object is part of a bundle: OLM writes it, not the deploy.
    InstalledByOlm,
    /// The live object could not be read. A plan with this action is never carried out.
    Unknown,
}

impl Action {
    /// Whether a deploy applies the manifest to the object.
    pub fn applies(self) -> bool {
        matches!(self, Action::Create | Action::Replace) || self.changes_live()
    }

    /// Whether a deploy changes an existing object in place.
    pub fn changes_live(self) -> bool {
        matches!(self, Action::Update | Action::Adopt)
    }

    /// Whether a deploy sends no write request for the object.
    pub fn leaves_alone(self) -> bool {
        matches!(self, Action::Unchanged | Action::Skip | Action::InstalledByOlm)
    }
}

/// The result for one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApplyResult {
    /// It was written.
    Applied,
    /// It was deleted.
    Deleted,
    /// Its deletion started, but did not finish in time.
    Deleting,
    /// It matched the manifest; nothing was written.
    Unchanged,
    /// An annotation of the manifest excludes it from the deploy.
    Skipped,
    /// The object is part of a bundle, which OLM installs.
    LeftToOlm,
    /// The request failed; the object was not changed.
    Failed,
    /// Not reached, because an earlier object failed or the run was interrupted.
    NotReached,
}
