//! What came of one check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Finding, Mode, Severity, Source};
use crate::resource::ObjectRef;

/// What a check amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckStatus {
    /// Everything was looked at, and there is no error and no warning.
    Passed,
    /// There are warnings and no errors.
    Warned,
    /// There are errors, which block the deploy.
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
    /// The name of the check, as in `--preflight`.
    pub name: String,
    /// Whether its findings may block.
    pub mode: Mode,
    /// What it amounts to.
    pub status: CheckStatus,
    /// Why a check was skipped, or what another check reports in its place: the status counts these findings.
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
    /// What it found.
    pub findings: Vec<Finding>,
}

/// Findings of one rule that the configuration has switched off (`enforcement: none`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suppressed {
    /// The rule that is switched off.
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
    /// What could not be looked at, and why.
    pub message: String,
    /// What to do next, for example the right to grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}
