//! Evidence for a finding from existing objects and from the manifests of the deploy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The effect of a change on the objects of this cluster and the manifests of this deploy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The result of the examination.
    pub examined: Examined,
    /// The result as a sentence, without any value of an object.
    pub message: String,
    /// The number of objects that exist.
    pub objects: u64,
    /// The number of these objects that the change affects.
    pub affected_objects: u64,
    /// The number of manifests of this kind in the deploy that change something.
    pub manifests: u64,
    /// The number of these manifests that the change affects.
    pub affected_manifests: u64,
    /// Some of the affected objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<EvidenceObject>,
    /// The recorded field managers of the affected objects or, if none is affected, of all objects. Those with the most
    /// objects come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<EvidenceManager>,
}

/// The result of examining objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Examined {
    /// Nothing is affected: with `preset: evidence`, the error becomes a warning.
    NoneAffected,
    /// Something is affected: the error stays.
    Affected,
    /// The objects could not be examined, for the reason in `message`: the error stays.
    No,
}

/// An object that a change affects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceObject {
    /// Absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Box<str>>,
    /// Its name.
    pub name: Box<str>,
    /// Whether this is the object as this deploy writes it, not as it is stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_manifest: bool,
}

/// A field manager, and the number of objects that it writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceManager {
    /// Its name in `metadata.managedFields`.
    pub name: String,
    /// The number of objects that it writes.
    pub objects: u64,
}

/// The existing objects that a finding affects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Affected {
    /// The number of affected objects.
    pub count: u64,
    /// The number of objects that were examined.
    pub of: u64,
    /// How many of `count` are not in `objects`: beyond some hundred thousand, objects are only counted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// How many of them the human output shows: the check's `maxExamples`.
    pub examples: usize,
    /// The objects, by namespace and then by name. An object that is affected in several places is listed for each.
    pub objects: Vec<AffectedObject>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
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
    /// The field in this object, if it is more specific than the finding's `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<str>>,
    /// The value as JSON, truncated if it is long; with `redact`, only its type. For a version that is removed: when
    /// the object was last written at that version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<str>>,
}
