//! What a new CRD does to an existing object, as data.

use std::sync::Arc;

use super::cause::CausingKeyword;
use gantry_core::resource::Step;
use gantry_schema::ratchet::RatchetingRefusals;

/// What happens to an object, from worst to least.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectImpact {
    /// The server refuses it when it is created, and these updates.
    Refused(RatchetingRefusals),
    /// It loses a field.
    Pruned(LossMoment),
    /// It gets a default.
    Defaulted(Fill),
    /// It cannot be written by server-side apply any more: a manager has an entry in its managedFields at a version
    /// that is removed. See [`super::managed`].
    NotAppliable { manager: String },
    /// A manager wrote it at a version that is no longer served.
    WrittenAt { manager: String },
    /// It is or may be stored at a version that is removed.
    StoredAt,
    /// It may be stored at a version that is removed, although `status.storedVersions` does not name it: its
    /// managedFields name no other version.
    PerhapsStoredAt,
    /// A rule or pattern of the desired schema could not be evaluated, for this reason.
    Undecided(String),
}

/// When a field is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossMoment {
    /// It can no longer be read, and the next write of the object drops it.
    OnRead,
    /// The next write at any version drops it: the storage version does not have it.
    OnWrite,
    /// A client that reads and writes at this version drops it.
    AtVersion,
    /// It can no longer be read if the object is still stored at this version, which the API does not show.
    IfStored,
}

/// When a default is filled in, and how certain that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fill {
    OnRead,
    /// When the object is next written at this version.
    OnWrite,
    /// The field has today's default. If that value is not stored, the field gets the new default.
    IfNotStored,
}

/// One effect on one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectEffect {
    pub impact: ObjectImpact,
    pub version: Arc<str>,
    /// `spec.list[*].x`
    pub pattern: String,
    /// The cause in the desired schema of the version.
    pub keyword: CausingKeyword,
    /// The path in this object, if it differs from the pattern.
    pub path: Option<String>,
    /// The value for messages, or its type with `redact`.
    pub value: String,
    /// The steps to the field in this object.
    pub steps: Vec<Step>,
    /// The pruned field, if the live schema describes it.
    pub lost: Option<String>,
}
