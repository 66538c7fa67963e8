//! The plan: desired objects beside live ones, and what a deploy would do to each.

use crate::manifest::Manifest;
use crate::resource::{Live, Resource};

/// What a deploy does to one object.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    Create,
    Update,
    Unchanged,
    Delete,
}

/// One object of the plan.
#[derive(Debug, Clone)]
pub struct Change {
    pub action: Action,
    /// The manifest, its `object.namespace` filled in for a namespaced kind.
    pub desired: Manifest,
    /// The object as it was read; `None` where there is none.
    pub live: Option<Live>,
    pub resource: Resource,
}

/// Every object of the manifests, in apply order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub changes: Vec<Change>,
}
