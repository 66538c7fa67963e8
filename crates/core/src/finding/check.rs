//! The result of one check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EvidenceObject, Finding, Mode, Severity, Source};
use crate::problem::Problem;
use crate::resource::ObjectRef;

/// The status of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CheckStatus {
    /// The check completed without errors and warnings.
    Passed,
    /// There are warnings and no errors.
    Warned,
    /// There are errors, which block the deploy.
    Blocked,
    /// The check is not possible on this target; this is not a pass. `message` says why.
    Skipped,
    /// The check could not complete; this is not a pass. `unchecked` says why.
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
    /// Its status.
    pub status: CheckStatus,
    /// Why a check was skipped, or what another check reports in its place; the status includes those findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What could not be checked, and why. With any entry here, the check has not passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchecked: Vec<CouldNotCheck>,
    /// What the check read, for checks that examine existing objects: one entry for each CRD that changes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<Coverage>,
    /// Findings that the configuration disables and that are not among `findings`, counted by rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suppressed: Vec<Suppressed>,
    /// Its findings.
    pub findings: Vec<Finding>,
}

impl CheckReport {
    /// The report of a check with these findings and nothing else to tell.
    pub fn new(name: impl Into<String>, mode: Mode, status: CheckStatus, findings: Vec<Finding>) -> Self {
        CheckReport {
            name: name.into(),
            mode,
            status,
            message: None,
            unchecked: Vec::new(),
            coverage: Vec::new(),
            suppressed: Vec::new(),
            findings,
        }
    }
}

/// Findings of one rule that the configuration disables (`enforcement: none`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Suppressed {
    /// The rule that is disabled.
    pub rule: String,
    /// The severity that the findings would have.
    pub severity: Severity,
    /// The number of findings.
    pub count: usize,
    /// The place in a configuration file that disables the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// The existing objects that a check read to evaluate the change of one CRD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// The CRD.
    pub object: ObjectRef,
    /// The number of objects that were read.
    pub read: u64,
    /// The versions whose change is proven safe for every possible object, so no object had to be read for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proven: Vec<String>,
    /// The objects that suffer from the errors of the check, each counted once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harm: Option<Harm>,
}

/// The objects of one CRD that suffer from a change, however many findings describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Harm {
    /// The number of existing objects.
    pub objects: u64,
    /// The number of manifests of this deploy.
    pub manifests: u64,
    /// Some of these objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<EvidenceObject>,
}

/// Something that could not be checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Unchecked")]
pub struct CouldNotCheck {
    /// What could not be checked, and why.
    pub message: String,
    /// What to do next, for example the right to grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl From<Problem> for CouldNotCheck {
    fn from(problem: Problem) -> Self {
        CouldNotCheck { message: problem.message, help: problem.help }
    }
}
