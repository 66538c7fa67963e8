//! An object that proves a finding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An object that shows the difference: what the live CRD accepts and what the desired one does to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Witness {
    /// A whole custom resource.
    pub object: Value,
    /// For an update: the object before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_object: Option<Value>,
    /// The subresource through which the object is written, once the rest of it exists: `status`. Absent where it is written
    /// as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
    /// What the server does to the object today.
    pub live: WitnessVerdict,
    /// What it would do with the desired CRD.
    pub desired: WitnessVerdict,
    /// What is refused, dropped or set, and where.
    pub message: String,
}

/// What an API server does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WitnessVerdict {
    /// Takes it as it is.
    Accepted,
    /// Refuses it.
    Refused,
    /// Takes it and drops values.
    Pruned,
    /// Takes it and sets default values.
    Defaulted,
}
