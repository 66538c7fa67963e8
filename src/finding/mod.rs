//! What a run finds out, as data: findings, what they are made of, and what becomes of an object.
//!
//! The ground that checks, configuration and the report share: the code that finds something and the code that prints it
//! know these types and not each other. The field names are a contract; see [`crate::report`].

mod action;
mod baseline;
mod check;
mod complaint;
mod evidence;
mod extension;
mod fingerprint;
mod keyword;
pub mod redact;
#[cfg(test)]
pub(crate) mod samples;
mod witness;
pub mod wording;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Location;
use crate::resource::ObjectRef;
pub use action::{Action, ApplyResult};
pub use baseline::{Baseline, BaselineEntry, BaselineState};
pub use check::{CheckReport, CheckStatus, Coverage, Suppressed, Unchecked};
pub use complaint::Complaint;
pub use evidence::{Affected, AffectedObject, Evidence, EvidenceManager, EvidenceObject, Examined};
pub use extension::{ExtensionEntry, ResolvedBundle};
pub use fingerprint::Fingerprint;
pub use keyword::KeywordChange;
pub use witness::{Witness, WitnessVerdict};
pub use wording::ForVersions;

/// A place in the manifests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The file as `-f` gave it, or found it in a folder that `-f` gave; `-` for standard input.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1; absent where only the line is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl From<Location> for Source {
    fn from(at: Location) -> Self {
        Source { file: at.file.into(), line: at.line, column: (at.column > 0).then_some(at.column) }
    }
}

/// How loud a check is: its `mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Findings of severity error block the deploy.
    Error,
    /// Every finding is a warning.
    Warn,
}

/// What a finding means for the deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    /// Blocks the deploy.
    Error,
    /// Is reported and blocks nothing.
    Warning,
    /// Worth to know; no harm is expected.
    Info,
    /// A waiver of the configuration lets it pass: see `waived`.
    Waived,
    /// The report of `--baseline` has it, too, and it is no worse than there: see `baselineState`.
    Known,
}

/// What is proven of a schema node of the live CRD beside that of the desired one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Both take the same values and do the same to them.
    Equal,
    /// The desired one takes everything that the live one takes, and more.
    Widening,
    /// The desired one refuses something that the live one takes.
    Narrowing,
    /// Each of the two takes something that the other refuses.
    Incomparable,
    /// The desired one drops values that the live one keeps.
    DataLoss,
    /// Neither is proven.
    Undecided,
}

/// Who is affected by a change. Not every breakage is the same breakage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Breaks {
    /// Objects that are already there are refused when they are next written.
    StoredObjects,
    /// Clients that write what was valid until now are refused.
    Writers,
    /// Clients no longer find what they read until now.
    Readers,
    /// Fields are dropped from objects.
    Data,
    /// Accepted as before, but it means something else (defaults).
    Behaviour,
}

/// A violation that was placed (where) and weighed (how severe).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule that found it; `gantry rules NAME` explains it. Findings of your own checks have the name of the check, or
    /// `CHECK/RULE`.
    pub rule: String,
    /// What it means for the deploy.
    pub severity: Severity,
    /// The severity that it would have if it were neither waived nor known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_severity: Option<Severity>,
    /// What became of it since the report of `--baseline`. Absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_state: Option<BaselineState>,
    /// The object it is about. Absent where the finding is about no single object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// Where in the manifests. Absent where it is about no manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What the caret in the excerpt of `source` points out, for example `the live CRD has pollInterval here (string)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The version of the CRD that the finding is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The schema node, for example `^.spec.pollInterval`; of findings about objects the field, for example
    /// `spec.list[*].x`, where `[*]` stands for indices and keys of maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is wrong, in the field's documented words.
    pub message: String,
    /// What changed at the place, in a few words and without the place, for example `minItems added: 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<String>,
    /// The keywords of the schema node of `path` that differ between the live and the desired CRD, by name. Of a node that is gone,
    /// all that it had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema_changes: Vec<KeywordChange>,
    /// What the API server says, where the finding is about that. Nothing writes it down.
    #[serde(skip)]
    #[schemars(skip)]
    pub complaint: Option<Complaint>,
    /// The documented one-line text (kapp's, OLM's) without the leading `validating upgrade for CRD …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documented: Option<String>,
    /// What is proven of the schema node of `path`. Absent where nothing was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The severity under `preset: semantic`, where it would be another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic: Option<Severity>,
    /// Who is affected by the change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<Breaks>,
    /// Objects that prove it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<Witness>,
    /// The objects that exist and are affected, where the check has looked at them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affected: Option<Affected>,
    /// Under `preset: evidence`: what this cluster says of an error of `preset: semantic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// `message` and `help` for any versions. Findings of several versions with the same wording are one for people.
    #[serde(skip)]
    #[schemars(skip)]
    pub wording: Option<ForVersions>,
    /// What `gantry rules` explains the rule under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<String>,
    /// The deploy does not write what the finding is about, so that an error is only a warning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_written: bool,
    /// Why it may pass, for a finding of severity waived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<Waived>,
}

impl Finding {
    /// The severity that it would have if nobody had accepted it.
    pub fn severity_if_unaccepted(&self) -> Severity {
        self.original_severity.unwrap_or(self.severity)
    }
}

/// The waiver that lets a finding pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waived {
    /// Why, in the words of the waiver.
    pub reason: String,
    /// The last day on which it holds, as `2026-12-31` (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}
