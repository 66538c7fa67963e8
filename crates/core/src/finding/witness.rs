//! An object that proves a finding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An object that proves a difference between the live and the desired CRD.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Witness {
    /// A complete custom resource.
    pub object: Value,
    /// For an update: the object before the update.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_object: Option<Value>,
    /// The subresource through which the object is written after it was created: `status`. Absent if the whole object
    /// is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// What the server does to the object with the live CRD.
    pub live: WitnessVerdict,
    /// What it would do with the desired CRD.
    pub desired: WitnessVerdict,
    /// What is refused, dropped or set, and where.
    pub message: String,
    /// If the server refuses the object: which updates of such an object it refuses although they leave the refused
    /// value as it is. Absent if there are none, and if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_updates: Option<RefusedUpdates>,
}

/// Updates of an invalid object that the server refuses. Other updates that leave the invalid value unchanged pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RefusedUpdates {
    /// Every update, even of a label.
    Every,
    /// Every update of the status subresource.
    OfStatus,
    /// Every change in this field.
    ChangesOf(String),
    /// Every change of this list, for example an additional item.
    ChangesOfList(String),
    /// Every server-side apply.
    Applies,
}

/// What an API server does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WitnessVerdict {
    /// Accepts it unchanged.
    Accepted,
    /// Refuses it.
    Refused,
    /// Accepts it and drops values.
    Pruned,
    /// Accepts it and sets default values.
    Defaulted,
}
