//! The report: everything a run found out, as data.
//!
//! Every output format is a function of a [`Report`], in its own file or folder. The field names are a stable
//! interface: `docs/report.schema.json` is generated from these types, and a test keeps it up to date. Nothing here
//! depends on the clock or on iteration order: the same input gives the same bytes.

mod combined;
mod format;
mod github;
mod gitlab;
mod html;
pub mod human;
pub mod json;
mod junit;
mod list;
mod markdown;
mod migration;
mod name;
mod places;
#[cfg(test)]
mod samples;
mod sarif;
mod surroundings;
mod view;
mod words;
mod yaml;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use format::{FormatWriter, writer_of};
use gantry_core::diff::Diff;
use gantry_core::finding::redact::without_values;
use gantry_core::finding::{
    Action, ApplyResult, BaselineEntry, CheckReport, ExtensionEntry, Severity, Source, SubscriptionEntry,
};
use gantry_core::problem::{Log, Problem};
use gantry_core::resource::ObjectRef;
pub use list::{ClusterReport, LIST_KIND, LiveCrds, LiveGroup, ReportList};
pub use migration::{MigrationEntry, MigrationOutcome, MigrationResult, MigrationTime};
pub use places::ReportPaths;
pub use surroundings::{ReportContext, RuleText, RuleTexts, RunFacts};
pub use view::overview::list_names;
pub use view::presets::PresetCounts;
pub use view::{Excerpts, LineIndex, ReportPurpose};

/// The `apiVersion` of [`Report`] and [`ReportList`].
pub const API_VERSION: &str = "gantry.dev/v1alpha1";
/// The `kind` of [`Report`].
pub const KIND: &str = "Report";

/// How the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// Every change was applied.
    Deployed,
    /// Nothing to do: the live objects match the manifests.
    Unchanged,
    /// `check` or `--dry-run`: nothing was written, and nothing would be blocked.
    Planned,
    /// A check refused the deploy; nothing was written.
    Blocked,
    /// An error stopped the run, or a check could not complete; see `errors`.
    Failed,
}

/// The whole result of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The version of this format. Within a version, fields and values may be added, but none is renamed or removed.
    pub api_version: String,
    /// Always `Report`.
    pub kind: String,
    /// How the run ended.
    pub outcome: Outcome,
    /// The target as shown to people, for example `kube: staging (https://10.0.0.1:6443)`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// The release of Kubernetes whose rules decide, for example `1.36`: that of the server, or the one that the target
    /// stands for. Absent if the run ended before it was known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_release: Option<String>,
    /// The preset of `CRDUpgradeSafety`: whose verdict about the upgrade of a CRD counts. Absent if the check did not
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// What the tools that presets reproduce would say, by preset. Only the page shows it, and only for a run of its own.
    #[serde(skip)]
    pub by_tools: BTreeMap<&'static str, PresetCounts>,
    /// The objects of the plan: first those of the manifests, then those that are deleted.
    pub changes: Vec<ChangeEntry>,
    /// The live objects that OLM deletes, because they leave a bundle of the manifests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deleted_by_olm: Vec<Arc<ObjectRef>>,
    /// The order in which the changes are written: steps, each after those that it waits for. Deletions come last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graph: Vec<StepEntry>,
    /// The objects that the run waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitEntry>,
    /// What the ClusterExtensions of the manifests resolve to, with the check `ExtensionResolution`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<ExtensionEntry>,
    /// What classic OLM installs for the Subscriptions of the manifests, with the check `OperatorDependencies`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subscriptions: Vec<SubscriptionEntry>,
    /// The stored objects that `deploy --migrate` moves, one entry for each CRD.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub migrations: Vec<MigrationEntry>,
    /// The preflight checks of the run, each with its findings.
    pub checks: Vec<CheckReport>,
    /// How the findings compare with those of the report that `--baseline` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineEntry>,
    /// The errors that stopped the run, apart from findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorEntry>,
    /// Problems that do not stop the run: waivers that have expired or match no finding, field conflicts that a deploy
    /// would meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ErrorEntry>,
    /// Notices, for example about settings of a Config document among the manifests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<ErrorEntry>,
    /// Counts over the whole report.
    pub summary: Summary,
}

/// Changes that are written in parallel. A step without members has nothing to write: others wait through it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepEntry {
    /// Indices into `changes`, without unchanged objects.
    pub members: Vec<usize>,
    /// Indices into `graph`: the steps that have to be written first. Of deletions: gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
    /// Those of them that also have to be ready: CRDs served, and with waiting, other objects ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready: Vec<usize>,
}

/// An object that was awaited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitEntry {
    /// Index into `changes`.
    pub change: usize,
    /// Its state when the wait ended.
    pub state: WaitState,
    /// Why it is not ready, or a notice about one that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How long the run waited for it.
    pub seconds: u64,
}

/// The state of an object when the wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WaitState {
    /// Its status shows that it is ready.
    Ready,
    /// Its controller is still working on it, or has not started.
    InProgress,
    /// Its status shows that it will not become ready by itself.
    Failed,
}

/// One object of the plan and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeEntry {
    /// What the deploy does with it.
    pub action: Action,
    /// The object.
    pub object: Arc<ObjectRef>,
    /// The manifest; absent if there no longer is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The result. Present once a deploy has begun to write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<ApplyResult>,
    /// What changes in the object, with `--diff` and in `gantry diff`. Values of Secrets are replaced by placeholders,
    /// equal values by equal ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Box<Diff>>,
}

/// An error that stopped the run, or a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEntry {
    /// What is wrong.
    pub message: String,
    /// The place in a manifest or in a configuration file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The last log lines of a container, with `--logs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Box<Log>>,
}

impl From<&Problem> for ErrorEntry {
    fn from(problem: &Problem) -> Self {
        ErrorEntry {
            message: problem.message.clone(),
            source: problem.at.clone().map(Source::from),
            help: problem.help.clone(),
            log: problem.log.clone(),
        }
    }
}

impl ErrorEntry {
    /// Removes values from the server's message about a field that it refuses.
    pub fn redact(&mut self) {
        self.message = without_values(&self.message);
    }
}

/// Counts over the whole report. Planned objects are counted; once a deploy has begun to write, only the written ones
/// are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Findings of severity `error`: each of them blocks the deploy.
    pub errors: usize,
    /// Findings of severity `warning`.
    pub warnings: usize,
    /// Findings of severity `waived`.
    pub waived: usize,
    /// Findings of severity `known`.
    #[serde(default)]
    pub known: usize,
    /// Findings of severity `info`.
    pub infos: usize,
    /// Objects that are created.
    pub created: usize,
    /// Objects that are changed.
    pub updated: usize,
    /// Existing objects that the deploy takes over.
    #[serde(default)]
    pub adopted: usize,
    /// Objects that are deleted and created again.
    #[serde(default)]
    pub replaced: usize,
    /// Objects that match their manifests already.
    pub unchanged: usize,
    /// Objects that are deleted.
    pub deleted: usize,
    /// Objects that leave the app and stay in the cluster.
    #[serde(default)]
    pub orphaned: usize,
    /// Objects that are not written because of an annotation.
    #[serde(default)]
    pub skipped: usize,
    /// Objects of bundles, which OLM installs.
    #[serde(default)]
    pub installed_by_olm: usize,
}

impl Default for Report {
    fn default() -> Self {
        Report {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            outcome: Outcome::Failed,
            target: String::new(),
            kubernetes_release: None,
            preset: None,
            by_tools: BTreeMap::new(),
            changes: Vec::new(),
            graph: Vec::new(),
            waits: Vec::new(),
            deleted_by_olm: Vec::new(),
            migrations: Vec::new(),
            extensions: Vec::new(),
            subscriptions: Vec::new(),
            checks: Vec::new(),
            baseline: None,
            errors: Vec::new(),
            warnings: Vec::new(),
            notices: Vec::new(),
            summary: Summary::default(),
        }
    }
}

impl Report {
    /// Updates `summary` from findings and changes. Once a deploy has begun to write, only changes that were carried
    /// out count.
    pub fn update_summary(&mut self) {
        let mut summary = Summary::default();
        for finding in self.checks.iter().flat_map(|check| &check.findings) {
            match finding.severity {
                Severity::Error => summary.errors += 1,
                Severity::Warning => summary.warnings += 1,
                Severity::Info => summary.infos += 1,
                Severity::Waived => summary.waived += 1,
                Severity::Known => summary.known += 1,
            }
        }
        for change in &self.changes {
            match (change.result, change.action) {
                (Some(ApplyResult::Failed | ApplyResult::NotReached | ApplyResult::Deleting), _) => {}
                (Some(ApplyResult::Unchanged), _) | (_, Action::Unchanged) => summary.unchanged += 1,
                (_, Action::Skip) => summary.skipped += 1,
                (_, Action::Create) => summary.created += 1,
                (_, Action::Update) => summary.updated += 1,
                (_, Action::Adopt) => summary.adopted += 1,
                (_, Action::Replace) => summary.replaced += 1,
                (_, Action::Delete) => summary.deleted += 1,
                (_, Action::Orphan) => summary.orphaned += 1,
                (_, Action::InstalledByOlm) => summary.installed_by_olm += 1,
                (_, Action::Unknown) => {}
            }
        }
        self.summary = summary;
    }
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReportReadme;
