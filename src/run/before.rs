//! The app before the run, read in parallel with the manifests. If these are likely to be the same as in the last run,
//! only the metadata of most members is read. See [`gantry_deploy::app::last_applied`].

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::AppFlags;
use gantry_cluster::Target;
use gantry_core::manifest::Manifest;
use gantry_core::matcher::MatchableObject;
use gantry_core::options::TargetSpec;
use gantry_core::parallel::in_parallel;
use gantry_core::problem::Result;
use gantry_core::resource;
use gantry_deploy::app::last_applied::{self, LastApplied, Mark};
use gantry_deploy::app::members::{self, LiveMembers, MemberKey};
use gantry_deploy::app::{App, Parent, RunOutcome, versions};
use gantry_deploy::config::Settings;
use gantry_deploy::readiness::rules;

/// The most members that are read one by one. If more have changed, all are listed.
const FEW: usize = 64;

/// The record of an app, and its members. Of most kinds that can have a mark, only the metadata is read.
pub struct RecordedApp {
    pub parent: Parent,
    /// `None` if the last run had other files, or did not complete.
    pub live: Option<LiveMembers>,
}

/// Reads the record of the app, and its members if the last run completed with the same files. `input` is
/// [`gantry_core::manifest::Input::sum`].
///
/// # Errors
/// The record cannot be read, or the server cannot be reached.
pub async fn look_ahead(
    settings: &Settings,
    flags: &AppFlags,
    input: &str,
    target: &Target,
) -> Result<Option<RecordedApp>> {
    let Some(name) = &settings.app else { return Ok(None) };
    let takes_over = flags.from_kapp.is_some() || flags.take_over_app;
    if takes_over || !settings.rules.rebases.is_empty() || settings.target != TargetSpec::Kube {
        return Ok(None);
    }
    let app = App::new(name, settings.app_namespace.as_deref(), settings.namespace.as_deref(), target);
    let Some(parent) = Parent::read(&app, target).await? else { return Ok(None) };
    let is_whole = parent.last.as_ref().is_some_and(|last| last.outcome == RunOutcome::Applied);
    let is_same = parent.last_applied.as_ref().is_some_and(|last_applied| last_applied.input == input);
    if !is_whole || !is_same {
        return Ok(Some(RecordedApp { parent, live: None }));
    }
    let members: BTreeSet<_> = parent.members.iter().map(|member| member.identity()).collect();
    let wanted = members::KeptContent {
        objects: &|object| members.contains(&object.identity()),
        whole: &|resource| !last_applied::is_kept(&resource.group, &resource.kind),
    };
    let live = members::find(&parent, target, wanted).await?;
    drop(members);
    Ok(Some(RecordedApp { parent, live: Some(live) }))
}

/// The members that nobody changed since the last run and that match the manifests. `None` if too many have changed, so
/// that listing all is cheaper.
pub fn as_applied(
    before: &RecordedApp,
    manifests: &[Manifest],
    settings: &Settings,
    namespace: &str,
) -> Option<BTreeMap<MemberKey, resource::LiveObject>> {
    let (live, LastApplied { marks, .. }) = (before.live.as_ref()?, before.parent.last_applied.as_ref()?);
    if manifests.iter().any(versions::is_versioned) {
        return None;
    }
    let found: BTreeMap<_, _> = live.metadata.iter().map(|entry| (key(entry.0), entry)).collect();
    let is_kept = |manifest: &&Manifest| last_applied::is_kept(manifest.object.group(), &manifest.object.kind);
    let kept: Vec<&Manifest> = manifests.iter().filter(is_kept).collect();
    let fits = |manifest: &&Manifest| {
        let object = &*manifest.object;
        let namespaced = last_applied::is_namespaced(object.group(), &object.kind);
        let namespace = namespaced.then(|| object.namespace.as_deref().unwrap_or(namespace));
        let (place, live) = found.get(&(object.group(), &object.kind, namespace, &object.name))?;
        let mark = marks.get(&live.uid)?;
        let metadata = live.raw.json();
        if Mark::compute(object, &manifest.raw, &metadata, &settings.field_manager).as_ref() != Some(mark) {
            return None;
        }
        // A wait rule may judge it not ready.
        let is_awaited =
            || rules::find(&settings.rules.waits, &MatchableObject::of_json(object, &manifest.raw.json())).is_some();
        if !settings.rules.waits.is_empty() && is_awaited() {
            return None;
        }
        let raw = last_applied::reconstruct_live(&manifest.raw, &metadata)?;
        Some(((*place).clone(), resource::LiveObject { raw, ..(*live).clone() }))
    };
    let fitting: BTreeMap<MemberKey, resource::LiveObject> = in_parallel(&kept, fits).into_iter().flatten().collect();
    (kept.len() - fitting.len() <= FEW).then_some(fitting)
}

fn key((resource, namespace, name): &MemberKey) -> (&str, &str, Option<&str>, &str) {
    (&resource.group, &resource.kind, namespace.as_deref(), name)
}
