//! The plan: desired objects with their live state, and what a deploy would do with each.

pub(crate) mod apps_of_gantry;
pub mod autoscaled;
mod beside;
mod build;
mod built_in;
pub mod bundles;
pub mod certificates;
mod change;
pub mod conflicts;
mod deploy_strategy;
pub(crate) mod directives;
mod doubtful;
mod export;
pub mod filter;
pub mod graph;
pub mod handover;
mod installed_releases;
mod invalid;
pub mod kapp_labels;
pub mod kinds;
mod leaving_objects;
pub mod managed;
pub mod not_honoured;
pub mod only_defaults;
mod order;
pub(crate) mod outside_commit;
pub mod owner;
pub mod pin;
pub mod planned_bundle;
mod policy;
pub mod predicted;
mod prefetch;
mod prepare;
mod published;
pub mod rebase_rules;
pub mod records;
mod refusal_forecaster;
pub mod refusals;
pub mod removal;
pub mod rendered;
mod reviewed;
pub mod storage_classes;
pub mod strategy;
mod terminating;
pub(crate) mod unchanged;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::app::members::MemberKey;
use gantry_cluster::HelmRelease;
use gantry_core::crd::CrdSides;
pub use gantry_core::finding::Action;
use gantry_core::manifest::{self, LoadedManifests, Manifest};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use gantry_k8s_cel::KubernetesRelease;
use gantry_olm::cluster_extension::{self, Extension, LiveExtension};

pub use build::build;
pub use built_in::is_dropped_from_crd;
pub use change::{Change, Crds};
pub use directives::HELM_HOOK;
pub use kinds::is_built_in;
pub use policy::{Deleter, DeployPolicy};
pub use prefetch::Prefetch;
pub use prepare::prepare;
pub use published::Published;
pub use reviewed::plan_of_crd_update;
pub use terminating::notices as terminating_notices;

/// The live CRDs that would change, with the index of the change.
pub fn upgraded_crds(changes: &[Change]) -> impl Iterator<Item = (usize, &Change, &Arc<CrdSides>)> {
    let written = changes.iter().enumerate().filter(|(_, change)| !change.action.leaves_alone());
    let live = written.filter(|(_, change)| change.live.is_some());
    live.filter_map(|(index, change)| Some((index, change, change.crd()?)))
}

/// A manifest of a kind that is neither served by the target nor defined by the manifests, or of an unknown kind.
#[derive(Debug, Clone)]
pub struct Unplaced {
    /// The manifest. Its namespace is as written: whether the kind is namespaced is unknown.
    pub manifest: Manifest,
    /// The problem that a deploy reports.
    pub problem: Problem,
    /// The API that would serve it does not answer.
    pub is_down: bool,
    /// It is served, but cannot be written.
    pub is_unwritable: bool,
}

/// Every object of the manifests, in apply order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// In the order of the manifests.
    pub changes: Vec<Change>,
    /// The bundles that some changes are part of: see [`Manifest::bundle`].
    pub bundles: Vec<planned_bundle::PlannedBundle>,
    /// The ClusterExtensions of the target, if they were listed for the bundles.
    pub live_extensions: Option<Vec<LiveExtension>>,
    /// The live objects that OLM deletes, because they leave a bundle.
    pub deleted_by_olm: Vec<Arc<ObjectRef>>,
    /// Notices from building the plan.
    pub notices: Vec<Problem>,
    /// Empty unless [`PlanOptions::keep_unplaced`]. A plan with any of these cannot be written.
    pub unplaced: Vec<Unplaced>,
    /// Members of the app that leave it.
    pub removals: Vec<removal::Removal>,
    /// The requests of a deploy for objects that are neither changes nor removals.
    pub lookups: Vec<ObjectLookup>,
    /// The deploy moves stored objects (`--migrate`), and some of the lookups are its requests.
    pub migrates: bool,
    /// The order of changes and removals.
    pub graph: graph::PlanGraph,
    /// The schema of each custom kind that has live objects in the plan, if answers are kept.
    pub schemas: BTreeMap<Resource, RawObject>,
    /// See [`PlanOptions::keeps_answers`].
    pub keeps_answers: bool,
    /// How a deploy of it writes and waits.
    pub policy: DeployPolicy,
    /// The record of the app will need several objects.
    pub needs_parts: bool,
    /// The release of Kubernetes that the target has, or that is assumed. `None` if nothing depends on it.
    pub server_release: Option<KubernetesRelease>,
    /// The namespace of objects that name none, unless a flag or the configuration chose it.
    pub assumed_namespace: Option<String>,
    /// The user that the run acts as on the server (`--as`).
    pub acts_as: Option<String>,
}

/// A request to the target for an object that is not a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectLookup {
    /// The object that it is made for.
    pub object: Arc<ObjectRef>,
    /// The kind of the object that is read.
    pub resource: Resource,
    /// `None` for all namespaces, or for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// The name of the object; `None` for any.
    pub name: Option<String>,
    /// The verb in RBAC.
    pub verb: &'static str,
    /// How the deploy does without it, if it can.
    pub otherwise: Option<Cow<'static, str>>,
}

impl Plan {
    /// The release of Kubernetes whose rules decide.
    pub fn release(&self) -> KubernetesRelease {
        self.server_release.unwrap_or_default()
    }

    /// Why some live objects could not be read, each reason once.
    pub fn unread(&self) -> Vec<Problem> {
        self.reasons_unread(|_| true)
    }

    /// The same for a run that writes nothing. The account with which OLM installs a bundle need not read its
    /// ClusterExtension, which somebody else deploys.
    pub fn unread_by_check(&self) -> Vec<Problem> {
        let is_own = |change: &Change| {
            let installs = |bundle: &planned_bundle::PlannedBundle| {
                let extension = bundle.extension().filter(|extension| extension.name == change.desired.object.name);
                let account = extension.and_then(Extension::account);
                account.map(|(namespace, name)| format!("system:serviceaccount:{namespace}:{name}")) == self.acts_as
            };
            cluster_extension::is_one(&change.desired.object)
                && self.acts_as.is_some()
                && self.bundles.iter().any(installs)
        };
        self.reasons_unread(|change| !is_own(change))
    }

    fn reasons_unread(&self, counts: impl Fn(&Change) -> bool) -> Vec<Problem> {
        let counted = self.changes.iter().filter(|change| counts(change));
        let mut problems: Vec<Problem> = counted.filter_map(|change| change.unread.as_deref().cloned()).collect();
        problems.sort();
        problems.dedup();
        problems
    }

    /// How many changes a deploy writes.
    pub fn changes_written(&self) -> usize {
        self.changes.iter().filter(|change| change.is_written()).count()
    }

    /// The bundle that a change is part of.
    pub fn bundle_of(&self, change: &Change) -> Option<&planned_bundle::PlannedBundle> {
        self.bundles.get(change.desired.bundle?)
    }

    /// The objects that are deleted: members that leave the app, and what is replaced.
    pub fn deleted(&self) -> impl Iterator<Item = &removal::Removal> {
        let replaced = self.changes.iter().filter_map(|change| change.replaces.as_deref());
        self.removals.iter().filter(|removal| removal.action == Action::Delete).chain(replaced)
    }

    /// How many objects a deploy writes, deletes or releases.
    pub fn writes(&self) -> usize {
        self.changes_written() + self.removals.iter().filter(|removal| !removal.is_done).count()
    }

    /// Whether a deploy of this plan would write anything.
    pub fn is_written(&self) -> bool {
        !self.unplaced.is_empty() || !self.removals.is_empty() || self.changes.iter().any(Change::is_written)
    }

    /// Whether anything changes, including objects that OLM writes.
    pub fn has_effect(&self) -> bool {
        self.is_written() || self.changes.iter().any(|change| !change.action.leaves_alone())
    }

    /// Returns an error if the plan cannot be written.
    ///
    /// # Errors
    /// Kinds that are not served. If an API does not answer, each kind is reported once.
    pub fn require_served_kinds(&self) -> Result<()> {
        require_served_kinds(&self.unplaced)
    }
}

fn require_served_kinds(unplaced: &[Unplaced]) -> Result<()> {
    let (down, unknown): (Vec<&Unplaced>, Vec<&Unplaced>) = unplaced.iter().partition(|unplaced| unplaced.is_down);
    let mut problems: Vec<Problem> = down.into_iter().map(|unplaced| unplaced.problem.clone()).collect();
    problems.sort();
    problems.dedup();
    if !problems.is_empty() {
        // Whether the API has the kind is unknown.
        return Err(Error::Failed(problems));
    }
    let problems: Vec<Problem> = unknown.into_iter().map(|unplaced| unplaced.problem.clone()).collect();
    if problems.is_empty() { Ok(()) } else { Err(Error::Blocked(problems)) }
}

/// What the plan depends on, apart from manifests and target.
#[derive(Debug, Clone, Copy)]
pub struct PlanOptions<'a> {
    /// The namespace of namespaced objects whose manifest names none; `None` for the target's default.
    pub namespace: Option<&'a str>,
    /// How the deploy writes and waits.
    pub policy: &'a DeployPolicy,
    /// Continues if some live objects cannot be read: their action is unknown. For callers that report all missing
    /// rights at once.
    pub goes_on_unread: bool,
    /// Keeps manifests of kinds that are not served, because a check reports them.
    pub keep_unplaced: bool,
    /// Asks the server about updates that may change nothing.
    pub settles_doubts: bool,
    /// The objects that are taken over from the tools that own them.
    pub taken: &'a owner::TakeoverPatterns,
    /// The rebase rules of the configuration.
    pub rebases: &'a [rebase_rules::RebaseRule],
    /// The identifier of the app that the objects belong to.
    pub app: Option<&'a str>,
    /// Live objects that were read already.
    pub known: &'a BTreeMap<MemberKey, LiveObject>,
    /// Live objects that are as the last run left them: see [`Change::is_as_applied`].
    pub as_applied: &'a BTreeMap<MemberKey, LiveObject>,
    /// Keeps what the server's dry runs answer, for a diff.
    pub keeps_answers: bool,
    /// The release that Helm 3 would upgrade, with the patches that it sends.
    pub helm_release: Option<&'a HelmRelease>,
}

impl<'a> PlanOptions<'a> {
    /// For a plan that reads all live objects and ends at the first problem, without an app.
    pub fn new(policy: &'a DeployPolicy, taken: &'a owner::TakeoverPatterns) -> Self {
        static NONE: BTreeMap<MemberKey, LiveObject> = BTreeMap::new();
        PlanOptions {
            namespace: None,
            policy,
            goes_on_unread: false,
            keep_unplaced: false,
            settles_doubts: false,
            taken,
            rebases: &[],
            app: None,
            known: &NONE,
            as_applied: &NONE,
            keeps_answers: false,
            helm_release: None,
        }
    }
}

/// What a plan is built from.
#[derive(Debug, Default)]
pub struct DesiredState {
    /// What a deploy writes.
    pub manifests: Vec<Manifest>,
    /// What OLM writes.
    pub bundles: Vec<manifest::ManifestBundle>,
}

impl From<Vec<Manifest>> for DesiredState {
    fn from(manifests: Vec<Manifest>) -> Self {
        DesiredState { manifests, bundles: Vec::new() }
    }
}

impl From<LoadedManifests> for DesiredState {
    fn from(loaded: LoadedManifests) -> Self {
        DesiredState { manifests: loaded.manifests, bundles: loaded.bundles }
    }
}
