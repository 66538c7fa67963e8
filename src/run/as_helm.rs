//! `--as-helm`: foretells what `helm upgrade` does with a chart, or `helm rollback` with an earlier revision, instead of
//! what a deploy would do.
//!
//! Helm writes the objects of its release as their owner, deletes those that the new manifests no longer have
//! (<https://helm.sh/docs/howto/charts_tips_and_tricks/#tell-helm-not-to-uninstall-a-resource>), and never touches the
//! CRDs in `crds/` of a chart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::prepare::{connection, impersonate, is_chart};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{Gvk, HelmRelease, ObjectToRead, Target};
use gantry_core::finding::Action;
use gantry_core::manifest::{self, Manifest, shown_text};
use gantry_core::options::{HelmReleaseSpec, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render;
use gantry_core::resource::{HELM_KEEP, HELM_NAMESPACE, HELM_RELEASE, LiveObject, MANAGED_BY, ObjectRef, Resource};
use gantry_deploy::app::label::put_metadata;
use gantry_deploy::app::members::{self, AppObject};
use gantry_deploy::config::{Overrides, Settings, key};
use gantry_deploy::plan::HELM_HOOK;
use gantry_deploy::plan::removal::Removal;
use gantry_deploy::plan::{Change, Plan};

/// The field manager that Helm writes as.
const MANAGER: &str = "helm";

/// The release that Helm would change.
pub struct ChangedRelease {
    /// The revision that is deployed.
    pub deployed: HelmRelease,
    /// The end of the names of the hooks that run: `upgrade` or `rollback`.
    hooks: &'static str,
}

/// What is known of a change by Helm beside the plan.
pub struct ForetoldByHelm {
    /// What to know.
    pub notices: Vec<Problem>,
    /// Why Helm would write nothing.
    pub refusals: Vec<Problem>,
}

impl ChangedRelease {
    /// Reads the release that the arguments and flags name.
    ///
    /// # Errors
    /// They name none or several, or nothing that Helm installs; it cannot be read.
    pub async fn open(arguments: &[String], settings: &Settings, working_directory: &Path) -> Result<Self> {
        let wrong = |message: String, help: &str| Err(Error::usage(Problem::new(message).help(help)));
        if settings.target != TargetSpec::Kube {
            return wrong("--as-helm: the target is not a cluster".to_owned(), "leave out --target");
        }
        if settings.app.is_some() {
            return wrong("--as-helm: Helm knows no app of gantry".to_owned(), "leave out --app");
        }
        let [argument] = arguments else {
            return wrong(
                "--as-helm: a release has one chart, but several -f are given".to_owned(),
                render::CHART_HELP,
            );
        };
        let of_release = HelmReleaseSpec::of_argument(argument).and_then(std::result::Result::ok);
        let hooks = if of_release.is_some() { "rollback" } else { "upgrade" };
        let is_chart = is_chart(argument, working_directory).await?;
        let spec = match (of_release, &settings.renderers.charts.release) {
            (Some(spec), _) => HelmReleaseSpec { revision: None, ..spec },
            (None, Some(name)) if is_chart => {
                name.parse().map_err(|why| Error::usage(Problem::new(format!("--release: {why}"))))?
            }
            (None, None) if is_chart => {
                let help = "name it: --release NAME -n NAMESPACE; helm list --all-namespaces shows the releases";
                return wrong("--as-helm: no release is named".to_owned(), help);
            }
            (None, _) => {
                let message = format!("--as-helm: {} is neither a chart nor a release", shown_text(argument));
                return wrong(message, render::CHART_HELP);
            }
        };
        let server = KubeTarget::open(&connection(settings, impersonate(settings)?)).await?;
        let deployed = HelmRelease::read(&spec, settings.namespace.as_deref(), &server).await?;
        Ok(ChangedRelease { deployed, hooks })
    }

    /// The release, if Helm writes it with patches. Helm 4 applies one that it has installed so.
    pub fn patched(&self) -> Option<&HelmRelease> {
        Some(&self.deployed).filter(|release| !release.is_applied_on_server())
    }

    /// The settings with which a run writes as Helm does.
    pub fn overrides(&self, overrides: Overrides) -> Overrides {
        // Patches cannot conflict.
        let forces = self.patched().is_some();
        overrides
            .with(&key::NAMESPACE, &Some(self.deployed.namespace.clone()))
            .with(&key::FIELD_MANAGER, &Some(MANAGER.to_owned()))
            .with(&key::FORCE_CONFLICTS, &forces)
    }

    /// Leaves out hooks of other events, and gives the other manifests the label and annotations that Helm gives to the
    /// objects of a release. Hooks get none.
    pub fn mark(&self, manifests: &mut Vec<Manifest>) {
        let runs = |events: &str| {
            let mut events = events.split(',').map(str::trim);
            events.any(|event| event.split_once('-').is_some_and(|(_, of)| of == self.hooks))
        };
        manifests.retain(|manifest| find_hook(manifest).is_none_or(|events| runs(&events)));
        let labels = BTreeMap::from([(MANAGED_BY.to_owned(), "Helm".to_owned())]);
        let annotations = BTreeMap::from([
            (HELM_RELEASE.to_owned(), self.deployed.name().to_owned()),
            (HELM_NAMESPACE.to_owned(), self.deployed.namespace.clone()),
        ]);
        for manifest in manifests.iter_mut().filter(|manifest| find_hook(manifest).is_none()) {
            let manifest = std::slice::from_mut(manifest);
            put_metadata(manifest, "labels", &labels);
            put_metadata(manifest, "annotations", &annotations);
        }
    }

    /// Plans the deletion of the objects of the release that the manifests no longer have.
    ///
    /// # Errors
    /// The server cannot be reached, or the manifests of the release cannot be read.
    pub async fn plan_removals(&self, plan: &mut Plan, target: &Target) -> Result<ForetoldByHelm> {
        let recorded = Arc::new(self.deployed.applied().map_err(Error::failed)?);
        let recorded = manifest::read(&recorded).map_err(Error::Failed)?.manifests;
        let kinds: BTreeSet<Gvk> = recorded.iter().map(|manifest| kind_of(&manifest.object)).collect();
        let served = target.discover(&kinds).await?.served;
        let named: BTreeSet<_> = plan.changes.iter().map(|change| change.desired.object.identity()).collect();
        let in_release = |manifest: Manifest| {
            // What is not served any more cannot be deleted, either.
            let resource: Arc<Resource> = served.get(&kind_of(&manifest.object))?.clone().into();
            let ObjectRef { namespace, .. } = &*manifest.object;
            let place = || namespace.clone().unwrap_or_else(|| self.deployed.namespace.clone());
            let namespace = resource.namespaced.then(place);
            let object: Arc<ObjectRef> = ObjectRef { namespace, ..(*manifest.object).clone() }.into();
            Some(ObjectToRead { resource, object })
        };
        let members: Vec<ObjectToRead> = recorded.into_iter().filter_map(in_release).collect();
        let refusals = self.foreign(plan, &members);
        let leaving: Vec<ObjectToRead> =
            members.into_iter().filter(|member| !named.contains(&member.object.identity())).collect();
        let live = target.read(&leaving, &|_, _| ()).await?;
        let (mut kept, mut removals) = (Vec::new(), Vec::new());
        for (ObjectToRead { resource, .. }, live) in leaving.iter().zip(live) {
            let Some(found) = live.and_then(|live| members::read(&live.raw.json(), resource)) else { continue };
            let AppObject { object, resource, facts } = found;
            if facts.annotations.get(HELM_KEEP.0).is_some_and(|policy| policy == HELM_KEEP.1) {
                kept.push(object.to_string());
                continue;
            }
            let is_done = facts.deleted.is_some();
            removals.push(Removal { object, resource, facts, action: Action::Delete, is_done });
        }
        plan.removals.splice(0..0, removals);
        let notice = || {
            let stay = if kept.len() == 1 { "leaves the release and stays" } else { "leave the release and stay" };
            Problem::new(format!("{} {stay} in the cluster: {}: {}", kept.join(", "), HELM_KEEP.0, HELM_KEEP.1))
        };
        let notices = self.deployed.notices().iter().cloned().chain((!kept.is_empty()).then(notice)).collect();
        Ok(ForetoldByHelm { notices, refusals })
    }

    /// Objects that exist and that neither the release nor another owner has: Helm refuses to import them.
    fn foreign(&self, plan: &Plan, members: &[ObjectToRead]) -> Vec<Problem> {
        let known: BTreeSet<_> = members.iter().map(|member| member.object.identity()).collect();
        let is_marked = |live: &LiveObject| {
            let live = live.raw.value();
            let annotations = &live["metadata"]["annotations"];
            annotations[HELM_RELEASE] == self.deployed.name() && annotations[HELM_NAMESPACE] == *self.deployed.namespace
        };
        let is_foreign = |change: &&Change| {
            let Some(live) = &change.live else { return false };
            !known.contains(&change.desired.object.identity())
                && change.owner.is_none()
                && find_hook(&change.desired).is_none()
                && !is_marked(live)
        };
        let problem = |change: &Change| {
            let object = &change.desired.object;
            let message = format!("Helm refuses this change: {object} exists and does not belong to the release");
            let help = "let Helm take it over: helm upgrade --take-ownership; or rename it in the chart, or delete it";
            Problem::new(message).at(change.desired.origin.location()).help(help)
        };
        plan.changes.iter().filter(is_foreign).map(problem).collect()
    }
}

/// The events of a hook; `None` if the object is none.
fn find_hook(manifest: &Manifest) -> Option<String> {
    if !manifest.metadata_may_contain(&["hook"]) {
        return None;
    }
    manifest.raw.value()["metadata"]["annotations"][HELM_HOOK].as_str().map(str::to_owned)
}

fn kind_of(object: &ObjectRef) -> Gvk {
    Gvk { group: object.group().to_owned(), version: object.version().to_owned(), kind: object.kind.clone() }
}
