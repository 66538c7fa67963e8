//! Annotations of kapp that control how an object is deployed.
//!
//! Source: "Apply" in kapp's documentation.

use futures::stream::{self, StreamExt};
use jiff::Timestamp;
use serde_json::Value;

pub use super::deploy_strategy::DeployStrategy;
use super::removal::Removal;
use super::{Action, Change, Crds, Plan, directives};
use crate::app::kapp::KAPP_APP;
use crate::app::{members, versions};
use gantry_cluster::{DRY_RUNS_IN_FLIGHT, DryRunError, Refuser, Target};
use gantry_core::manifest::Manifest;
use gantry_core::problem::Problem;
use gantry_core::resource::RawObject;
use gantry_core::text;

pub(super) const PREFIX: &str = "kapp.k14s.io/";
const OWN_PREFIX: &str = "gantry.dev/";
pub(super) const UPDATE_STRATEGY: &str = "update-strategy";
pub(super) const CREATE_STRATEGY: &str = "create-strategy";
pub(super) const DELETE_STRATEGY: &str = "delete-strategy";
pub(super) const MINIMUM: &str = "apps-v1-deployment-wait-minimum-replicas-available";
pub(super) const OWN_MINIMUM: &str = "wait-minimum-replicas-available";

/// Whether a manifest may have such annotations. Most have none.
pub(super) fn may_ask(manifest: &Manifest) -> bool {
    // OLM does not know these annotations.
    let prefixes = [PREFIX, OWN_PREFIX].map(|prefix| prefix.trim_end_matches('/'));
    manifest.bundle.is_none() && manifest.metadata_may_contain(&prefixes)
}

/// Whether the object of a manifest may be deleted and created again.
pub fn may_replace(manifest: &Manifest) -> bool {
    matches!(read_strategy(manifest), Some(DeployStrategy::Replace | DeployStrategy::ReplaceRefused))
}

/// The strategy of a manifest; `None` for the default. If several annotations select one, it is one that protects the
/// object, else the one that replaces it in more cases.
pub fn read_strategy(manifest: &Manifest) -> Option<DeployStrategy> {
    let of_others = directives::strategy(&directives::of_manifest(manifest), &manifest.object.kind);
    of_kapp(manifest).into_iter().chain(of_others).min()
}

/// The annotation by which a manifest is not written.
pub fn left_alone_by(manifest: &Manifest) -> &'static str {
    match of_kapp(manifest) {
        Some(DeployStrategy::LeaveAlone) => "kapp.k14s.io/noop, kapp.k14s.io/exists",
        _ => directives::leaving_alone(&directives::of_manifest(manifest)).map_or("", |found| found.directive.key),
    }
}

fn of_kapp(manifest: &Manifest) -> Option<DeployStrategy> {
    if !may_ask(manifest) {
        return None;
    }
    let manifest = manifest.raw.value();
    let annotations = annotations(&manifest);
    if annotations.iter().any(|(key, _)| matches!(*key, "noop" | "exists")) {
        return Some(DeployStrategy::LeaveAlone);
    }
    let strategy = annotations.iter().find(|(key, _)| *key == UPDATE_STRATEGY)?.1;
    match strategy.as_str()? {
        "skip" => Some(DeployStrategy::CreateOnly),
        "always-replace" => Some(DeployStrategy::Replace),
        "fallback-on-replace" => Some(DeployStrategy::ReplaceRefused),
        _ => None,
    }
}

/// Turns updates into [`Action::Replace`] according to their strategy. A dry run shows whether the server refuses an
/// update.
pub(crate) async fn replace(changes: &mut [Change], target: &Target, field_manager: &str) {
    let may_be_replaced =
        |change: &Change| change.is_written() && change.action == Action::Update && change.owner.is_none();
    let asked = changes.iter().enumerate().filter(|(_, change)| may_be_replaced(change));
    let asked = asked.filter_map(|(index, change)| Some((index, change, read_strategy(&change.desired)?)));
    let is_replaced = async |(index, change, strategy): (usize, &Change, DeployStrategy)| {
        let is_replaced = match (strategy, target.as_server()) {
            (DeployStrategy::Replace, _) => true,
            (DeployStrategy::ReplaceRefused, Some(server)) => {
                // With force, because conflicts are handled separately.
                let answer = server.dry_run(&change.request(&change.pin(), field_manager, true)).await;
                matches!(answer, Err(DryRunError::Refused(refusal)) if refusal.by == Refuser::Validation)
            }
            _ => false,
        };
        is_replaced.then_some(index)
    };
    let replaced = stream::iter(asked).map(is_replaced).buffered(DRY_RUNS_IN_FLIGHT).filter_map(std::future::ready);
    let replaced: Vec<usize> = replaced.collect().await;
    for index in replaced {
        let change = &mut changes[index];
        let Some(live) = &change.live else { continue };
        let Some(found) = members::read(&live.raw.json(), &change.resource) else { continue };
        let (object, resource, is_done) = (change.desired.object.clone(), found.resource, false);
        let removal = Removal { object, resource, facts: found.facts, action: Action::Delete, is_done };
        change.replaces = Some(Box::new(removal));
        change.live = None;
        change.crds = Crds::default();
        change.action = Action::Replace;
    }
}

/// The annotations by name without the prefix: those of kapp, and those that also exist with gantry's prefix.
fn annotations(manifest: &Value) -> Vec<(&str, &Value)> {
    let annotations = manifest["metadata"]["annotations"].as_object().into_iter().flatten();
    annotations.filter_map(|(key, value)| Some((name_of(key)?, value))).collect()
}

pub(super) fn name_of(key: &str) -> Option<&str> {
    let own = || key.strip_prefix(OWN_PREFIX).filter(|name| [UPDATE_STRATEGY, OWN_MINIMUM].contains(name));
    key.strip_prefix(PREFIX).or_else(own)
}

pub(super) fn is_one_of(value: &Value, known: &[&str]) -> bool {
    known.iter().any(|known| value == known)
}

/// Create strategies with which a manifest is also applied to an object that something else creates after the checks.
/// They differ only for an object that kapp's own rebase rules make a `noop`.
pub(super) const ON_CREATED: [&str; 2] = ["fallback-on-update", "fallback-on-update-or-noop"];

/// Whether a manifest is also applied to an object that something else creates after the checks.
pub fn joins_created(manifest: &Manifest) -> bool {
    may_ask(manifest) && {
        let manifest = manifest.raw.value();
        let strategy = annotations(&manifest).into_iter().find(|(key, _)| *key == CREATE_STRATEGY);
        strategy.is_some_and(|(_, strategy)| is_one_of(strategy, &ON_CREATED))
    }
}

/// The notice that the manifest was applied to an object that something else created after the checks.
pub(crate) fn existed(change: &Change) -> Problem {
    let message = format!(
        "{} was created by something else after the checks; the manifest was applied to it ({PREFIX}{CREATE_STRATEGY})",
        change.desired.object
    );
    let help = "an app keeps it as adopted: it stays when it leaves the manifests, except with --prune-adopted";
    Problem::new(message).at(change.desired.origin.location()).help(help)
}

/// Whether the object has to be created by something else and does not exist yet.
pub fn is_missing(change: &Change) -> bool {
    let is_absent = change.action == Action::Skip && change.live.is_none() && change.unread.is_none();
    is_absent && annotations(&change.desired.raw.value()).iter().any(|(name, _)| *name == "exists")
}

/// Versions that exist with different content although the app's record does not have them: they belong to another app,
/// or the record was lost. They are not overwritten.
pub fn taken_versions(plan: &Plan, app: &str) -> Vec<Problem> {
    let is_version = |change: &&Change| {
        let Change { action, desired, .. } = change;
        desired.bundle.is_none()
            && action.applies()
            && versions::base(&desired.object.name).is_some()
            && versions::is_versioned(desired)
    };
    let is_taken = |change: &&Change| {
        let live = change.live.as_ref().map(|live| live.raw.value());
        live.is_some_and(|live| versions::is_other(&live, &change.desired.raw.value()))
    };
    let problem = |change: &Change| {
        let object = &change.desired.object;
        let live = change.live.as_ref().map(|live| live.raw.value()).unwrap_or_default();
        // Whatever created it, a workload may refer to it: it is never to be deleted.
        let (whose, help) = match live["metadata"]["labels"][KAPP_APP].as_str() {
            Some(id) => (
                format!("it belongs to a kapp app ({KAPP_APP}: {})", text::sanitize(id)),
                "add --from-kapp to take over the kapp app (--from-kapp=NAME if it has another name)",
            ),
            None => (
                format!("the app {app} has no record of it"),
                "deploy the app that created it, or give the object of the manifest another name. Workloads may use the \
                 live object",
            ),
        };
        let message = format!("{object} already exists with different content, and {whose}");
        Problem::new(message).at(change.desired.origin.location()).help(help)
    };
    plan.changes.iter().filter(is_version).filter(is_taken).map(problem).collect()
}

/// Fills in each empty annotation `nonce`, so that its object changes with each deploy.
pub fn fill_nonces(manifests: &mut [Manifest], now: Timestamp) {
    const NONCE: &str = "kapp.k14s.io/nonce";
    for manifest in manifests.iter_mut().filter(|manifest| manifest.metadata_may_contain(&[NONCE])) {
        let mut value = manifest.raw.value();
        let annotations = value.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        if let Some(nonce) = annotations.and_then(|annotations| annotations.get_mut(NONCE)).filter(|nonce| *nonce == "")
        {
            *nonce = now.as_nanosecond().to_string().into();
            manifest.raw = RawObject::from_value(&value);
        }
    }
}
