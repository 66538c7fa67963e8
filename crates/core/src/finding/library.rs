//! Changes that a CRD has from a library whose types it embeds, and equal types at several places.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change that a new release of a library makes in one of its types, which the CRD embeds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LibraryChange {
    /// The Go module of the library, for example `k8s.io/api`.
    pub module: Cow<'static, str>,
    /// The embedded type, for example `core/v1 PodTemplateSpec`. It may contain the type that changes.
    #[serde(rename = "type")]
    pub embedded: Cow<'static, str>,
    /// The schema node that is of this type, for example `^.spec.template`.
    pub path: String,
    /// The releases of the library that have the live type, for example `0.29`, the oldest first.
    pub from: Vec<String>,
    /// The releases of the library that have the desired type.
    pub to: Vec<String>,
}

/// The object of the schema around a changed node, on both sides, apart from its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Surroundings {
    /// A hash of what the live and the desired schema of the object mean.
    pub meaning: [u64; 2],
    /// The path from the object to the node, for example `.limits`.
    pub below: String,
}
