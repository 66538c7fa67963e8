//! What a deploy does to an object, and what became of it.

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
    /// The object was there and becomes ours: another tool owned it, or nobody did.
    Adopt,
    /// An annotation of the manifest says that the object is deleted and created again.
    Replace,
    /// It is as the manifest says; nothing is written.
    Unchanged,
    /// It is deleted.
    Delete,
    /// The object leaves the app and stays in the cluster.
    Orphan,
    /// An annotation of the manifest says that the deploy does not write it.
    Skip,
    /// The object is part of a bundle: OLM writes it, and a deploy does not.
    InstalledByOlm,
    /// The live object could not be read. A plan that has this is never written.
    Unknown,
}

impl Action {
    /// Whether a deploy applies the manifest to the object.
    pub fn applies(self) -> bool {
        matches!(self, Action::Create | Action::Replace) || self.changes_live()
    }

    /// Whether a deploy changes an object that is there, and lets it be the same object.
    pub fn changes_live(self) -> bool {
        matches!(self, Action::Update | Action::Adopt)
    }

    /// Whether a deploy sends no request that writes the object.
    pub fn leaves_alone(self) -> bool {
        matches!(self, Action::Unchanged | Action::Skip | Action::InstalledByOlm)
    }
}

/// What apply did with one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApplyResult {
    /// It was written.
    Applied,
    /// It is gone.
    Deleted,
    /// Its deletion has begun; it was not gone in time.
    Deleting,
    /// It was as the manifest says; nothing was written.
    Unchanged,
    /// An annotation of the manifest says that the deploy does not write it.
    Skipped,
    /// The object is part of a bundle, which OLM installs.
    LeftToOlm,
    /// The request was answered with an error; nothing of the object was written.
    Failed,
    /// Not reached, because an earlier object failed or the run was interrupted.
    NotReached,
}
