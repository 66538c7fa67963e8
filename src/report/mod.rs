//! The report: everything a run found out, as data.
//!
//! Every output format is a function of a [`Report`] ([`human`], [`json`]). The field names are a contract that others
//! build on; `docs/report.schema.json` is generated from these types and a test holds it fresh. Nothing here
//! depends on the clock or on iteration order: the same input gives the same bytes.

pub mod human;
pub mod json;
pub mod redact;
#[cfg(test)]
pub(crate) mod samples;
pub mod wording;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::plan::Action;
use crate::problem::{Location, Problem};
use crate::resource::ObjectRef;
pub use wording::ForVersions;

pub const API_VERSION: &str = "gantry.dev/v1alpha1";

/// How the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Every change was applied.
    Deployed,
    /// Nothing to do: what is live is what the manifests say.
    Unchanged,
    /// `check` or `--dry-run`: nothing was written and nothing would have been blocked.
    Planned,
    /// A check refused the deploy; nothing was written.
    Blocked,
    /// Could not go on, or could not check; `errors` says why.
    Failed,
}

/// The whole result of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub api_version: String,
    pub kind: String,
    pub outcome: Outcome,
    /// The target as shown to people, for example `kube: staging (https://10.0.0.1:6443)`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    pub changes: Vec<ChangeEntry>,
    pub checks: Vec<CheckReport>,
    /// What stopped the run, apart from findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorEntry>,
    /// What is wrong and stops nothing: waivers that have expired or fit no finding, field conflicts ahead of a deploy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ErrorEntry>,
    /// What the user should know: what a Config document among the manifests has set, or may not set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<ErrorEntry>,
    pub summary: Summary,
}

/// One object of the plan and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeEntry {
    pub action: Action,
    pub object: Arc<ObjectRef>,
    pub source: Source,
    /// Present once a deploy has begun to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ApplyResult>,
}

/// What apply did with one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApplyResult {
    Applied,
    Unchanged,
    /// The request was answered with an error; nothing of the object was written.
    Failed,
    /// Not reached, because an earlier object failed or the run was interrupted.
    NotReached,
}

/// A place in the manifests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    pub file: Arc<str>,
    /// From 1.
    pub line: usize,
    /// From 1; absent where only the line is known.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Severity {
    Error,
    Warning,
    Info,
    Waived,
}

/// What the proof layer says of a pair of schema nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    Equal,
    Widening,
    Narrowing,
    Incomparable,
    DataLoss,
    Undecided,
}

/// Who is hurt by a change. Not every breakage is the same breakage.
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
    pub rule: String,
    pub severity: Severity,
    /// Absent where the finding is about no single object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectRef>,
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
    /// What changed at the place, in a few words and without the place, for example `minItems added: 1`. Only the output
    /// for people has it.
    #[serde(skip)]
    #[schemars(skip)]
    pub fact: Option<String>,
    /// The message with all values, where `message` is without some for `--redact`. Findings of two checks are compared
    /// by it; nothing writes it down.
    #[serde(skip)]
    #[schemars(skip)]
    pub unredacted: Option<String>,
    /// The documented one-line text (kapp's, OLM's) without the leading `validating upgrade for CRD …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documented: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The severity under `preset: semantic`, where it would be another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semantic: Option<Severity>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breaks: Vec<Breaks>,
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

/// The waiver that lets a finding pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waived {
    pub reason: String,
    /// The last day on which it holds, as `2026-12-31` (UTC).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

/// What the objects of this cluster and the manifests of this deploy say of a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    pub examined: Examined,
    /// In a sentence, without any value of an object.
    pub message: String,
    /// How many objects exist.
    pub objects: u64,
    /// How many of them suffer from the change.
    pub affected_objects: u64,
    /// How many manifests of this deploy are of the kind and change something.
    pub manifests: u64,
    /// How many of them suffer from the change.
    pub affected_manifests: u64,
    /// Some of those that suffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<EvidenceObject>,
    /// The field managers on record: of what suffers; where nothing does, of the objects. Those with most objects first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managers: Vec<EvidenceManager>,
}

/// What came of looking at objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Examined {
    /// Nothing suffers: the error is a warning.
    NoneAffected,
    Affected,
    /// Nobody could say, for the reason in `message`: the error stays.
    No,
}

/// An object that suffers from a change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceObject {
    /// Absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Box<str>>,
    pub name: Box<str>,
    /// Not as it is stored, but as this deploy writes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_manifest: bool,
}

/// A field manager, and how many objects it writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EvidenceManager {
    pub name: String,
    pub objects: u64,
}

/// Objects that exist and share the fate that a finding tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Affected {
    /// How many objects.
    pub count: u64,
    /// How many were looked at.
    pub of: u64,
    /// How many of `count` are not in `objects`: past some hundred thousand they are counted and no longer named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unlisted: u64,
    /// How many of them the output for people shows: the check's `maxExamples`.
    pub examples: usize,
    /// In the order of the list: by namespace, then by name. One that is affected in several places comes several times.
    pub objects: Vec<AffectedObject>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One affected object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AffectedObject {
    /// Absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Box<str>>,
    pub name: Box<str>,
    /// The field in this object, where that says more than the finding's `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Box<str>>,
    /// The value there as JSON, cut where it is long; with `redact` only its kind. Of a version that goes: when it was
    /// last written at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<str>>,
}

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

/// One thing that stopped the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEntry {
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl From<&Problem> for ErrorEntry {
    fn from(problem: &Problem) -> Self {
        ErrorEntry {
            message: problem.message.clone(),
            source: problem.at.clone().map(Source::from),
            help: problem.help.clone(),
        }
    }
}

/// Counts over the whole report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub errors: usize,
    pub warnings: usize,
    pub waived: usize,
    pub infos: usize,
    pub created: usize,
    pub updated: usize,
    pub unchanged: usize,
    pub deleted: usize,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            api_version: API_VERSION.into(),
            kind: "Report".into(),
            outcome: Outcome::Failed,
            target: String::new(),
            changes: Vec::new(),
            checks: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            notices: Vec::new(),
            summary: Summary::default(),
        }
    }
}

impl Report {
    /// Brings `summary` up to date with findings and changes. Once a deploy has begun to write, a change counts
    /// only when it was carried out.
    pub fn count(&mut self) {
        let mut summary = Summary::default();
        for finding in self.checks.iter().flat_map(|check| &check.findings) {
            match finding.severity {
                Severity::Error => summary.errors += 1,
                Severity::Warning => summary.warnings += 1,
                Severity::Info => summary.infos += 1,
                Severity::Waived => summary.waived += 1,
            }
        }
        for change in &self.changes {
            match (change.result, change.action) {
                (Some(ApplyResult::Failed | ApplyResult::NotReached), _) => {}
                (Some(ApplyResult::Unchanged), _) | (_, Action::Unchanged) => summary.unchanged += 1,
                (_, Action::Create) => summary.created += 1,
                (_, Action::Update) => summary.updated += 1,
                (_, Action::Delete) => summary.deleted += 1,
                (_, Action::Unknown) => {}
            }
        }
        self.summary = summary;
    }
}

impl From<&crate::plan::Change> for ChangeEntry {
    fn from(change: &crate::plan::Change) -> Self {
        let origin = &change.desired.origin;
        ChangeEntry {
            action: change.action,
            object: change.desired.object.clone(),
            source: Source { file: origin.source.name.clone(), line: origin.line, column: None },
            result: None,
        }
    }
}
