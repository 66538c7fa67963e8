//! One object of the plan, and what a deploy does with it.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use super::bundles::BundleWriter;
use super::unchanged::{self, ObjectComparison};
use super::{Action, directives, order, owner, removal};
use crate::app::last_applied::Mark;
use gantry_cluster::{Apply, DryRunError, FormerTools, HelmUpgrade, ReadResult, WritePrecondition};
use gantry_core::crd::CrdSides;
use gantry_core::manifest::Manifest;
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, RawObject, Resource};

/// One object of the plan.
#[derive(Debug, Clone)]
pub struct Change {
    /// What the deploy does with the object.
    pub action: Action,
    /// The manifest, with `object.namespace` filled in for a namespaced kind.
    pub desired: Manifest,
    /// The live object; `None` if there is none.
    pub live: Option<LiveObject>,
    /// The object that is deleted before this one is created: see [`Action::Replace`]. Then `live` is `None`.
    pub replaces: Option<Box<removal::Removal>>,
    /// Why it is unknown whether there is a live object; see [`PlanOptions::goes_on_unread`].
    pub unread: Option<Box<Problem>>,
    /// Where the object is served.
    pub resource: Arc<Resource>,
    /// The other tool that owns the live object.
    pub owner: Option<Box<owner::Owner>>,
    /// The traces of kapp in the object.
    pub kapp: OfKapp,
    /// The last run left the object as this manifest has it and waited for it, and it has not been written since. Then
    /// [`Change::live`] is the manifest with the live metadata.
    pub is_as_applied: bool,
    /// How OLM wrote the live object of a bundle.
    pub bundle_writer: Option<BundleWriter>,
    /// What Helm makes of the live object of a bundle, if the record of its release could be read.
    pub helm: Option<Arc<HelmUpgrade>>,
    /// The CRD on both sides, if the object is one.
    pub crds: Crds,
    /// Empty until somebody asks for a dry run.
    pub answer: DryRunCache,
}

/// How a change treats what kapp wrote to the object.
#[derive(Debug, Clone, Default)]
pub struct OfKapp {
    /// The value of the label of its app that the selector keeps: see [`super::kapp_labels`].
    pub kept: Option<String>,
    /// The object is a member of the kapp app that is taken over as a whole.
    pub joins: bool,
    /// The fields that kapp wrote are taken over without a conflict; those of any other manager are not.
    pub seized: bool,
}

/// The server's answer to a dry run of the request that writes a change, if it is kept: see
/// [`PlanOptions::keeps_answers`]. The first caller that asks shares it. Boxed, because few changes have one.
#[derive(Debug, Clone, Default)]
pub struct DryRunCache {
    answer: OnceLock<DryRunAnswer>,
    /// The answer with the fields of other managers taken over, which is always kept: see
    /// [`super::pin::forced_dry_run`].
    pub(super) forced: tokio::sync::OnceCell<DryRunAnswer>,
}

type DryRunAnswer = Box<std::result::Result<RawObject, DryRunError>>;

impl DryRunCache {
    pub fn get(&self) -> Option<&std::result::Result<RawObject, DryRunError>> {
        self.answer.get().map(|answer| &**answer)
    }

    /// Keeps the first answer.
    pub fn keep(&self, answer: &std::result::Result<RawObject, DryRunError>) {
        let _ = self.answer.set(Box::new(answer.clone()));
    }
}

/// The parsed CRD of a change, parsed at first use. A change that is copied with another live object needs a new one.
#[derive(Debug, Clone, Default)]
pub struct Crds(OnceLock<Arc<CrdSides>>);

impl Change {
    /// A change whose action is not decided yet.
    pub(super) fn undecided(desired: Manifest, read: ReadResult, resource: Arc<Resource>) -> Self {
        let (live, unread) = match read {
            Ok(live) => (live, None),
            Err(problem) => (None, Some(Box::new(problem))),
        };
        let live_of_bundle = live.as_ref().filter(|_| desired.bundle.is_some());
        let bundle_writer = live_of_bundle.and_then(|live| BundleWriter::of_live(&live.raw));
        Change {
            bundle_writer,
            helm: None,
            action: Action::Create,
            desired,
            live,
            replaces: None,
            unread,
            resource,
            owner: None,
            kapp: OfKapp::default(),
            is_as_applied: false,
            crds: Crds::default(),
            answer: DryRunCache::default(),
        }
    }

    /// Both sides of a CRD, each parsed once; `None` for other kinds.
    pub fn crd(&self) -> Option<&Arc<CrdSides>> {
        let sides = || CrdSides::new(self.desired.raw.clone(), self.live.as_ref().map(|live| live.raw.clone())).into();
        self.desired.object.is_crd().then(|| self.crds.0.get_or_init(sides))
    }

    /// Whether a deploy sends a request that writes the object. Objects of bundles have actions, but are not written.
    pub fn is_written(&self) -> bool {
        self.desired.bundle.is_none() && !self.action.leaves_alone()
    }

    /// The action as the report shows it.
    pub fn reported_action(&self) -> Action {
        match (self.desired.bundle, self.action) {
            (_, Action::Unknown) | (None, _) => self.action,
            (Some(_), _) => Action::InstalledByOlm,
        }
    }

    /// The pin of the live object as it was read, or of its absence.
    pub fn pin(&self) -> WritePrecondition {
        match &self.live {
            None => WritePrecondition::Absent,
            Some(live) => {
                WritePrecondition::At { uid: live.uid.clone(), resource_version: live.resource_version.clone() }
            }
        }
    }

    /// The mark by which a later run recognizes that the object, which is `live` after this run, matches the manifest;
    /// `None` if the server changed it.
    pub fn mark(&self, live: &LiveObject, field_manager: &str) -> Option<Mark> {
        let object = &self.desired.object;
        let mark = Mark::compute(object, &self.desired.raw, &live.raw.json(), field_manager)?;
        let facts = unchanged::ComparisonContext { field_manager, schema: None, built_in: true };
        let is_same = self.is_as_applied
            || unchanged::compare(object, &self.desired.raw, &live.raw, None, &facts) == ObjectComparison::Unchanged;
        is_same.then_some(mark)
    }

    /// The request that writes this change.
    pub fn request<'a>(
        &'a self,
        pin: &'a WritePrecondition,
        field_manager: &'a str,
        force_conflicts: bool,
    ) -> Apply<'a> {
        Apply {
            resource: &self.resource,
            object: &self.desired.object,
            raw: &self.desired.raw,
            live: self.live.as_ref().map(|live| &live.raw),
            pin,
            field_manager: self.manager(field_manager),
            // OLM takes over every field of its objects, whatever the configuration says.
            force_conflicts: force_conflicts || self.kapp.seized || self.desired.bundle.is_some(),
            former_tools: self.former_tools(),
            helm: self.helm.as_deref(),
        }
    }

    /// The field manager that writes this change: that of the deploy, or OLM's.
    pub fn manager<'a>(&'a self, of_deploy: &'a str) -> &'a str {
        self.bundle_writer.as_ref().map_or(of_deploy, BundleWriter::manager)
    }

    /// What writing this change does with the fields of deploy tools that wrote the object before.
    pub fn former_tools(&self) -> FormerTools {
        match self.action {
            _ if matches!(self.bundle_writer, Some(BundleWriter::Helm(_))) => FormerTools::AsHelm,
            // OLM deploys it.
            _ if self.desired.bundle.is_some() => FormerTools::Keep,
            _ if directives::keeps_fields(&self.desired) => FormerTools::Keep,
            Action::Adopt if self.owner.is_some() || self.kapp.joins => FormerTools::Take,
            _ => FormerTools::TakeUnlessConflict,
        }
    }

    /// The live object as the apply by this manager finds it: with `managedFields` as they are once the fields of
    /// former deploy tools are taken over. `None` if there is no live object.
    pub fn live_when_applied(&self, field_manager: &str) -> Option<Value> {
        let mut live = self.live.as_ref()?.raw.value();
        if self.former_tools() != FormerTools::Keep {
            let (manager, version) = (self.manager(field_manager), &self.desired.object.api_version);
            let owners = self.former_tools().owners(&live, manager, version);
            if let Some(entries) = owners.handed_over(manager, version) {
                live["metadata"]["managedFields"] = Value::Array(entries);
            }
        }
        Some(live)
    }

    /// The manifest as JSON, with its namespace filled in.
    pub fn desired_json(&self) -> Cow<'_, str> {
        #[derive(Deserialize)]
        struct NamespacedHead<'a> {
            #[serde(borrow, default)]
            metadata: NamespaceMetadata<'a>,
        }
        #[derive(Deserialize, Default)]
        struct NamespaceMetadata<'a> {
            #[serde(borrow, default)]
            namespace: Option<Cow<'a, str>>,
        }
        let json = self.desired.raw.json();
        let Some(namespace) = &self.desired.object.namespace else { return json };
        match serde_json::from_str::<NamespacedHead<'_>>(&json) {
            Ok(NamespacedHead { metadata: NamespaceMetadata { namespace: Some(_) } }) => json,
            _ => {
                let mut value = self.desired.raw.value();
                if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.insert("namespace".into(), namespace.as_str().into());
                }
                value.to_string().into()
            }
        }
    }

    /// The same as a tree.
    pub fn desired_value(&self) -> Value {
        match self.desired_json() {
            Cow::Borrowed(_) => self.desired.raw.value(),
            Cow::Owned(json) => RawObject::new(json).value(),
        }
    }

    /// Changes of one rank are written together; a lower rank comes first. CRDs have a separate rank.
    pub fn rank(&self) -> u8 {
        order::rank(&self.desired.object)
    }
}
