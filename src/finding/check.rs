//! What came of one check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Finding, Mode, Severity, Source};
use crate::resource::ObjectRef;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckStatus {
    Passed,
    Warned,
    Blocked,
    /// Not possible on this target; never to be read as a pass. `message` says why.
    Skipped,
    /// Could not check; never a pass. `unchecked` says why.
    Failed,
}

/// One check of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    pub name: String,
    pub mode: Mode,
    pub status: CheckStatus,
    /// Why a check was skipped, or what another check tells of in its place: the status counts these findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What could not be checked, and why. With any of these a check has not passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<Unchecked>,
    /// What the check looked at, for checks that judge objects that exist: one entry for each CRD that changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<Coverage>,
    /// Findings that the configuration has switched off and that are not among `findings`, counted by rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<Suppressed>,
    pub findings: Vec<Finding>,
}

/// Findings of one rule that the configuration has switched off (`enforcement: none`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suppressed {
    pub rule: String,
    /// What the findings would have been.
    pub severity: Severity,
    /// How many findings.
    pub count: usize,
    /// Where they are switched off: in a configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// How much of what exists a check looked at to judge the change of one CRD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// The CRD.
    pub object: ObjectRef,
    /// How many objects were read.
    pub read: u64,
    /// The versions whose change is proven safe for every possible object, so that none had to be read for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proven: Vec<String>,
}

/// Something that a check could not look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unchecked {
    pub message: String,
    /// What to do next, for example the right to grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}
