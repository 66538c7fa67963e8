//! What the objects that exist, and the manifests of the deploy, say of a finding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the objects of this cluster and the manifests of this deploy say of a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// What came of looking.
    pub examined: Examined,
    /// In a sentence, without any value of an object.
    pub message: String,
    /// How many objects exist.
    pub objects: u64,
    /// How many of them suffer from the change.
    pub affected_objects: u64,
    /// How many manifests of this deploy are of the kind and change something.
    pub manifests: u64,
    /// How many of them suffer from the change.
    pub affected_manifests: u64,
    /// Some of those that suffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<EvidenceObject>,
    /// The field managers on record: of what suffers; where nothing does, of the objects. Those with most objects first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<EvidenceManager>,
}

/// What came of looking at objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Examined {
    /// Nothing suffers: the error is a warning.
    NoneAffected,
    /// Something suffers: the error stays.
    Affected,
    /// Nobody could say, for the reason in `message`: the error stays.
    No,
}

/// An object that suffers from a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceObject {
    /// Absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Box<str>>,
    /// Its name.
    pub name: Box<str>,
    /// Not as it is stored, but as this deploy writes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_manifest: bool,
}

/// A field manager, and how many objects it writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceManager {
    /// Its name in `metadata.managedFields`.
    pub name: String,
    /// How many objects it writes.
    pub objects: u64,
}

/// Objects that exist and share the fate that a finding describes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Affected {
    /// How many objects.
    pub count: u64,
    /// How many were looked at.
    pub of: u64,
    /// How many of `count` are not in `objects`: past some hundred thousand they are counted and no longer named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// How many of them the output for people shows: the check's `maxExamples`.
    pub examples: usize,
    /// In the order of the list: by namespace, then by name. One that is affected in several places comes several times.
    pub objects: Vec<AffectedObject>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One affected object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AffectedObject {
    /// Absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Box<str>>,
    /// Its name.
    pub name: Box<str>,
    /// The field in this object, where that says more than the finding's `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<str>>,
    /// The value there as JSON, cut where it is long; with `redact` only its kind. Of a version that goes: when it was
    /// last written at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<str>>,
}
