//! Annotations of kapp that control how an object is deployed, and those that gantry does not support.
//!
//! Source: "Apply" in kapp's documentation. An unsupported annotation blocks the deploy if it would write something
//! that the author did not intend, and is a notice otherwise.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use serde_json::Value;

use futures::stream::{self, StreamExt};
use jiff::Timestamp;

use super::removal::Removal;
use super::{Action, Change, Crds, Plan, directives};
use crate::app::kapp::KAPP_APP;
use crate::app::{members, versions};
use crate::plan::DeployPolicy;
use crate::readiness;
use gantry_cluster::{DryRunError, IN_FLIGHT, Refuser, Target};
use gantry_core::manifest::{Manifest, Spans};
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, RawObject, Step};
use gantry_core::text;

const PREFIX: &str = "kapp.k14s.io/";
const OWN_PREFIX: &str = "gantry.dev/";
const UPDATE_STRATEGY: &str = "update-strategy";
const CREATE_STRATEGY: &str = "create-strategy";
const DELETE_STRATEGY: &str = "delete-strategy";
const MINIMUM: &str = "apps-v1-deployment-wait-minimum-replicas-available";
const OWN_MINIMUM: &str = "wait-minimum-replicas-available";

/// The strategy that an annotation selects. If several do, the first of them applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeployStrategy {
    /// `noop`, `exists`: the deploy does not write the object. With `exists`, a deploy that waits also waits until it
    /// exists.
    LeaveAlone,
    /// `update-strategy: skip`: it is created if it is missing, and never updated.
    CreateOnly,
    /// `update-strategy: always-replace`: it is deleted and created again at any change.
    Replace,
    /// `update-strategy: fallback-on-replace`: it is deleted and created again if the server refuses the update.
    ReplaceRefused,
}

/// Whether a manifest may have such annotations. Most have none.
fn may_ask(manifest: &Manifest) -> bool {
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

impl DeployStrategy {
    /// The action with this strategy.
    pub fn apply(self, action: Action) -> Action {
        match (self, action) {
            (_, Action::Unchanged | Action::Unknown) | (DeployStrategy::CreateOnly, Action::Create) => action,
            // See [`replace`].
            (DeployStrategy::Replace | DeployStrategy::ReplaceRefused, _) => action,
            _ => Action::Skip,
        }
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
    let replaced = stream::iter(asked).map(is_replaced).buffered(IN_FLIGHT).filter_map(std::future::ready);
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

fn name_of(key: &str) -> Option<&str> {
    let own = || key.strip_prefix(OWN_PREFIX).filter(|name| [UPDATE_STRATEGY, OWN_MINIMUM].contains(name));
    key.strip_prefix(PREFIX).or_else(own)
}

/// Problems with unsupported annotations.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NotHonoured {
    /// Problems that block the deploy.
    pub blocks: Vec<Problem>,
    /// Problems that do not: what gantry does instead.
    pub notices: Vec<Problem>,
}

/// Checks for unsupported annotations of kapp and other deploy tools.
pub fn not_honoured(plan: &Plan) -> NotHonoured {
    let policy = &plan.policy;
    let mut found = NotHonoured::default();
    let mut subjects = BTreeSet::new();
    let writes = plan.is_written();
    let problems = |change| directives::problems_of_change(change, &policy.field_manager, writes);
    for annotation in plan.changes.iter().flat_map(problems) {
        if annotation.blocks {
            found.blocks.push(annotation.problem);
        } else if annotation.subject.is_none_or(|subject| subjects.insert(subject)) {
            found.notices.push(annotation.problem);
        }
    }
    let mut reported = BTreeSet::new();
    for change in plan.changes.iter().filter(|change| may_ask(&change.desired)) {
        let manifest = change.desired.raw.value();
        let spans = OnceCell::new();
        for (key, value) in manifest["metadata"]["annotations"].as_object().into_iter().flatten() {
            let object = &change.desired.object;
            let unsupported = name_of(key).and_then(|name| unsupported_annotation(name, value, object, policy));
            let Some(UnsupportedAnnotation { blocks, instead, help }) = unsupported else { continue };
            let spans = spans.get_or_init(|| Spans::parse(&change.desired.origin));
            let at = spans.locate(&[Step::from("metadata"), "annotations".into(), key.as_str().into()]).location;
            let problem = Problem::new(format!("{object}: {key}: {instead}")).at(at).help(help);
            if blocks {
                found.blocks.push(problem);
            } else if reported.insert(instead) {
                // If very many objects have the same annotation, only the first is reported.
                found.notices.push(problem);
            }
        }
        found.notices.extend(missing_object(change).filter(|_| !policy.waits));
    }
    found
}

/// An annotation that gantry does not honour, or a value of it.
struct UnsupportedAnnotation {
    blocks: bool,
    /// What gantry does instead.
    instead: &'static str,
    help: &'static str,
}

fn unsupported_annotation(
    name: &str,
    value: &Value,
    object: &ObjectRef,
    policy: &DeployPolicy,
) -> Option<UnsupportedAnnotation> {
    let is_deployment = || object.kind == "Deployment" && object.group() == "apps";
    let (blocks, instead, help) = match name {
        MINIMUM | OWN_MINIMUM if is_deployment() && !value.as_str().is_some_and(readiness::is_minimum) => {
            (policy.waits, "the value is not a number of replicas or a percentage", "write it like \"2\" or \"60%\"")
        }
        "versioned" if !policy.has_app => (
            true,
            "the record of an app defines its version, and no app is given",
            "deploy the manifests as an app: --app NAME",
        ),
        UPDATE_STRATEGY if !is_one_of(value, &["", "skip", "always-replace", "fallback-on-replace"]) => (
            true,
            "the strategy is unknown",
            "known: skip, always-replace, fallback-on-replace; without the annotation the object is updated",
        ),
        CREATE_STRATEGY if value != "" && !is_one_of(value, &ON_CREATED) => (
            true,
            "the strategy is unknown",
            "known: fallback-on-update, fallback-on-update-or-noop; without the annotation, an object that is created \
             after the checks is not written",
        ),
        DELETE_STRATEGY if !is_one_of(value, &["", "orphan"]) => (
            true,
            "the strategy is unknown",
            "known: orphan; without the annotation, the object is deleted when it leaves the app",
        ),
        "deploy-logs" | "deploy-logs-container-names" => {
            (false, "logs are not followed", "those of Pods that do not become ready are shown with --logs")
        }
        "renew-duration" => (
            false,
            "the object is not written again when that time has passed",
            "with an empty kapp.k14s.io/nonce, every deploy writes it",
        ),
        "original" | "disable-original" => {
            (false, "it has no effect: gantry keeps no copy of the manifest in the object", "remove the annotation")
        }
        _ => return None,
    };
    Some(UnsupportedAnnotation { blocks, instead, help })
}

fn is_one_of(value: &Value, known: &[&str]) -> bool {
    known.iter().any(|known| value == known)
}

/// Create strategies with which a manifest is also applied to an object that something else creates after the checks.
/// They differ only for an object that kapp's own rebase rules make a `noop`.
const ON_CREATED: [&str; 2] = ["fallback-on-update", "fallback-on-update-or-noop"];

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

/// The problem for an object that has to exist and does not.
fn missing_object(change: &Change) -> Option<Problem> {
    is_missing(change).then(|| {
        Problem::new(format!("{} does not exist yet, and this deploy does not wait for it", change.desired.object))
            .at(change.desired.origin.location())
            .help(format!("{PREFIX}exists means that something else creates it; to wait for it, use --wait"))
    })
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
