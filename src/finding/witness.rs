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
    pub live: WitnessVerdict,
    pub desired: WitnessVerdict,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WitnessVerdict {
    Accepted,
    Refused,
    Pruned,
    Defaulted,
}
