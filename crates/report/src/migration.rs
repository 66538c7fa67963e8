//! What a report says about stored objects that a deploy moves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The stored objects of a CRD that `deploy --migrate` moves to the storage version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationEntry {
    /// The name of the CRD.
    pub crd: String,
    /// When they move.
    pub when: MigrationTime,
    /// The version at which they are stored afterwards.
    pub storage_version: String,
    /// The number of objects that exist. Absent if they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// How many of them are to be written. Absent before the migration is proven: what moves after a deploy is proven
    /// when the CRD is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_write: Option<u64>,
    /// What was done. Absent if the run did not come so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<MigrationResult>,
}

/// When stored objects move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MigrationTime {
    /// Before the first object is deployed, because a version leaves the CRD.
    BeforeDeploy,
    /// When the CRD is deployed, because its storage version moves or objects were left behind.
    AfterDeploy,
}

/// What was done with the stored objects of a CRD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationResult {
    /// How it ended.
    pub outcome: MigrationOutcome,
    /// The number of writes that the server carried out.
    pub written: u64,
    /// `status.storedVersions` of the CRD afterwards. Absent if the migration did not end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_versions: Option<Vec<String>>,
}

/// How a migration ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MigrationOutcome {
    /// All objects are stored at the storage version.
    Migrated,
    /// Values would be lost, or objects are refused: nothing was written. `errors` names them.
    Blocked,
    /// The user interrupted it.
    Interrupted,
    /// It is not complete; `errors` says why.
    Failed,
}
