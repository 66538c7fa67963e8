//! The results of a run as data: findings, their parts, and the actions on objects.
//!
//! Checks, configuration and the report share these types: the code that produces findings and the code that prints
//! them do not depend on each other. The field names are a contract; see `gantry_report`.

mod action;
mod baseline;
mod check;
mod complaint;
mod evidence;
mod extension;
mod fingerprint;
mod keyword;
mod library;
pub mod redact;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod witness;
pub mod wording;

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Location;
use crate::resource::ObjectRef;
pub use action::{Action, ApplyResult};
pub use baseline::{Baseline, BaselineEntry, BaselineState};
pub use check::{CheckReport, CheckStatus, CouldNotCheck, Coverage, Harm, Suppressed};
pub use complaint::ServerRefusal;
pub use evidence::{Affected, AffectedObject, Evidence, EvidenceManager, EvidenceObject, Examined};
pub use extension::{ExtensionEntry, ResolvedBundle, SubscriptionEntry};
pub use fingerprint::Fingerprint;
pub use keyword::KeywordChange;
pub use library::{LibraryChange, Surroundings};
pub use witness::{RefusedUpdates, Witness, WitnessVerdict};
pub use wording::ForVersions;

/// A place in the manifests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The file that `-f` names, or that is in a folder that `-f` names; `-` for standard input.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1; absent if only the line is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl From<Location> for Source {
    fn from(at: Location) -> Self {
        Source { file: at.file.into(), line: at.line, column: (at.column > 0).then_some(at.column) }
    }
}

/// The `mode` of a check: whether its findings can block the deploy.
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
    /// Is reported and does not block.
    Warning,
    /// Information; no harm is expected.
    Info,
    /// A waiver of the configuration lets it pass; see `waived`.
    Waived,
    /// The report of `--baseline` also has it, and it is not worse now; see `baselineState`.
    Known,
}

/// What is proven about a schema node of the live CRD compared with that of the desired one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Both accept the same values and treat them the same way.
    Equal,
    /// The desired one accepts everything that the live one accepts, and more.
    Widening,
    /// The desired one refuses something that the live one accepts.
    Narrowing,
    /// Each of the two accepts something that the other refuses.
    Incomparable,
    /// The desired one drops values that the live one keeps.
    DataLoss,
    /// None of these is proven.
    Undecided,
}

/// What a change breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Breaks {
    /// Updates of existing objects are refused, even if they leave the invalid value as it is.
    StoredObjects,
    /// Clients that write values that were valid until now are refused.
    Writers,
    /// Clients no longer find values that they could read until now.
    Readers,
    /// Fields are dropped from objects.
    Data,
    /// Values are accepted as before, but their meaning changes (defaults).
    Behaviour,
}

/// A violation of a rule, with its place and its severity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The rule that found it; `gantry rules NAME` explains it. Findings of your own checks have the name of the check,
    /// or `CHECK/RULE`.
    pub rule: String,
    /// What it means for the deploy.
    pub severity: Severity,
    /// The severity that it would have if it were neither waived nor known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_severity: Option<Severity>,
    /// How it compares with the report of `--baseline`. Absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_state: Option<BaselineState>,
    /// The object it is about. Absent if the finding is not about a single object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
    /// The place in the manifests. Absent if it is not about a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// For a removed part, the place next to which it stood in the live object, which is among the changed lines.
    /// `source` is that of the part that it was in.
    #[serde(skip)]
    #[schemars(skip)]
    pub change_source: Option<Source>,
    #[serde(flatten)]
    #[expect(missing_docs, reason = "the schema of a report would show it: a flattened field has no name there")]
    pub body: FindingBody,
    /// Whether the deploy does not write the object of the finding. Then an error becomes a warning.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_written: bool,
    /// Whether the API server would refuse to write the object. Then no waiver, mode or baseline lets it pass: the
    /// deploy would end half way.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused_by_server: bool,
    /// Why it may pass, for a finding of severity waived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waived: Option<Waived>,
}

/// What a rule says about what it found. A violation carries it, and the finding that the violation becomes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindingBody {
    /// The label of the caret in the excerpt of `source`, for example `the live CRD has pollInterval here (string)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The version of the CRD that the finding is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The schema node, for example `^.spec.pollInterval`; for findings about objects, the field, for example
    /// `spec.list[*].x`, where `[*]` stands for indices and keys of maps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What changed at the place, in a few words and without the place, for example `minItems added: 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fact: Option<String>,
    /// The keywords of the schema node of `path` that differ between the live and the desired CRD, by name. For a
    /// removed node, all of its keywords.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schema_changes: Vec<KeywordChange>,
    /// The schema nodes whose changes the finding is attributed to, if the node of `path` itself did not change for the
    /// worse. The human output merges findings of one rule with the same causes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caused_by: Vec<String>,
    /// The change of a library that the finding comes from, if the node is in a type that the CRD embeds, and the change
    /// is one that the library makes between the releases. The human output, Markdown and HTML show such findings as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library_change: Option<LibraryChange>,
    /// What surrounds the schema node. Reports show what is the same in equal surroundings once.
    #[serde(skip)]
    #[schemars(skip)]
    pub surroundings: Option<Surroundings>,
    /// The API server's error that the finding is about, if any. It is not part of any output.
    #[serde(skip)]
    #[schemars(skip)]
    pub complaint: Option<ServerRefusal>,
    /// The documented one-line text (kapp's, OLM's) without the leading `validating upgrade for CRD …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documented: Option<String>,
    /// What is proven about the schema node of `path`. Absent if no proof was attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The severity under `preset: semantic`, if it is different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic: Option<Severity>,
    /// What the change breaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<Breaks>,
    /// Objects that prove the finding.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub witnesses: Vec<Witness>,
    /// The existing objects that are affected, if the check examined them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affected: Option<Affected>,
    /// The evidence from this cluster, for an error of `preset: semantic`. Only `preset: evidence` lowers the severity
    /// because of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// `message` and `help` for any versions. The human output merges findings of several versions with the same
    /// wording.
    #[serde(skip)]
    #[schemars(skip)]
    pub wording: Option<ForVersions>,
    /// The name under which `gantry rules` explains the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explain: Option<Cow<'static, str>>,
}

impl Finding {
    /// The severity that it would have if it were neither waived nor known.
    pub fn severity_if_unaccepted(&self) -> Severity {
        self.original_severity.unwrap_or(self.severity)
    }

    /// Whether it is an error whatever the configuration says, because the API server would refuse the request.
    pub fn is_refused_error(&self) -> bool {
        self.refused_by_server && self.severity == Severity::Error
    }
}

/// The waiver that lets a finding pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waived {
    /// The reason that the waiver gives.
    pub reason: String,
    /// The last day on which the waiver is valid, as `2026-12-31` (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}
