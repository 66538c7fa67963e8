//! The versions in `managedFields` of an object that a webhook converts. Only the server can tell whether the object,
//! converted by the webhook, fits the schemas of these versions, so it is asked with a dry run of the apply. It answers
//! with the live CRD: if the deploy removes a field from one of the schemas or changes its structure, the answer would
//! mean nothing, and it is unknown.

use std::collections::BTreeSet;

use futures::stream::{self, StreamExt};
use serde_json::Value;

use super::{CrdWithOrigin, ManifestRefusal, ManifestRefusals, recorded};
use crate::{Context, CouldNotCheck};
use gantry_cluster::{DRY_RUNS_IN_FLIGHT, DryRunError, Refuser};
use gantry_core::crd::{ConversionStrategy, Crd, CrdVersion};
use gantry_core::problem::Problem;
use gantry_deploy::plan::Change;
use gantry_deploy::plan::{managed, pin};
use gantry_schema::keywords;

/// Asks about the objects of one definition.
pub(super) async fn check(
    context: &Context<'_>,
    definition: &CrdWithOrigin,
    objects: &[usize],
    found: &mut ManifestRefusals,
) {
    let live = definition.live.as_deref();
    if definition.conversion != ConversionStrategy::Webhook || !context.target.is_server() {
        return;
    }
    let mut asked = Vec::new();
    for index in objects {
        let change = &context.plan.changes[*index];
        let versions = versions(change, &definition.crd, &context.plan.policy.field_manager);
        if versions.is_empty() {
            continue;
        }
        let at = versions.iter().map(String::as_str).collect::<Vec<_>>();
        let is_as_live = |version: &&str| {
            let pair = definition.crd.version(version).zip(live.and_then(|live| live.version(version)));
            pair.is_some_and(|(desired, live)| has_structure_of(desired, live))
                && live.is_some_and(|live| live.strategy() == Some(ConversionStrategy::Webhook))
        };
        let unknown: Vec<&str> = at.iter().copied().filter(|version| !is_as_live(version)).collect();
        if !unknown.is_empty() {
            found.unchecked.push(CouldNotCheck {
                message: format!(
                    "{}: managedFields of the live object have entries at {}, and {} changes its structure or conversion: \
                     only the webhook knows whether the server can apply the object then",
                    change.desired.object,
                    unknown.join(", "),
                    definition.whose
                ),
                help: Some(format!(
                    "deploy the CRD first and check again, or move the entries:\n{}",
                    managed::move_entries_command(&change.resource, &change.desired.object, &at, &change.resource.version)
                )),
            });
            continue;
        }
        asked.push((*index, versions));
    }
    let questions: Vec<_> = asked.iter().map(|(index, _)| ask(context, &context.plan.changes[*index])).collect();
    let answers: Vec<_> = stream::iter(questions).buffered(DRY_RUNS_IN_FLIGHT).collect().await;
    for ((index, versions), answer) in asked.iter().zip(answers) {
        let change = &context.plan.changes[*index];
        let at = versions.iter().map(String::as_str).collect::<Vec<_>>();
        match answer {
            Ok(None) => {}
            Ok(Some(refusal)) => found.faults.push(fault(change, *index, &at, definition, &refusal)),
            Err(problem) => found.not_answered(problem.needs_right, CouldNotCheck {
                message: format!(
                    "{}: whether it fits {}, at which managedFields of the live object have entries, once the webhook \
                     has converted it: {}",
                    change.desired.object,
                    at.join(", "),
                    problem.message
                ),
                help: problem.help,
            }),
        }
    }
}

/// The other versions at which the live object has entries, if the CRD has them all.
fn versions(change: &Change, crd: &Crd, field_manager: &str) -> Vec<String> {
    let is_applied = change.is_written() && change.action.applies();
    let Some(live) = change.live_when_applied(field_manager).filter(|_| is_applied) else { return Vec::new() };
    let entries = managed::entries(&live, &crd.group);
    // `recorded` reports a missing version.
    if entries.iter().any(|entry| crd.version(entry.version).is_none()) {
        return Vec::new();
    }
    let others = entries.iter().map(|entry| entry.version).filter(|version| *version != change.resource.version);
    others.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether every object that fits the live schema as far as the server checks for `managedFields` fits the desired one:
/// it declares the same fields, or more, with the same types.
fn has_structure_of(desired: &CrdVersion, live: &CrdVersion) -> bool {
    let schemas = desired.schema_value().ok().zip(live.schema_value().ok());
    desired.same_schema(live) || schemas.is_some_and(|(desired, live)| declares_all_of(&desired, &live))
}

fn declares_all_of(desired: &Value, live: &Value) -> bool {
    keywords::of_merge().all(|keyword| desired.get(keyword) == live.get(keyword))
        && live["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .all(|(name, live)| desired["properties"].get(name).is_some_and(|desired| declares_all_of(desired, live)))
        && ["items", "additionalProperties"].iter().all(|keyword| match (desired.get(keyword), live.get(keyword)) {
            (Some(desired @ Value::Object(_)), Some(live @ Value::Object(_))) => declares_all_of(desired, live),
            (desired, live) => desired == live,
        })
}

/// The server's refusal because of these versions, if there is one.
async fn ask(context: &Context<'_>, change: &Change) -> Result<Option<Problem>, Problem> {
    let Some(server) = context.target.as_server() else { return Ok(None) };
    let writing = context.plan.policy.writing();
    match pin::dry_run(change, writing, server, context.target).await {
        Err(DryRunError::Refused(refusal)) => match refusal.by {
            Refuser::ManagedFields => Ok(Some(refusal.problem)),
            // Refused before the server looked at the versions.
            Refuser::Authorization => Err(refusal.problem),
            _ => Ok(None),
        },
        Err(DryRunError::Unanswered { problem, .. }) => Err(problem),
        Ok(_) | Err(DryRunError::Conflict(_) | DryRunError::Changed) => Ok(None),
    }
}

fn fault(
    change: &Change,
    index: usize,
    versions: &[&str],
    definition: &CrdWithOrigin,
    refusal: &Problem,
) -> ManifestRefusal {
    let why = format!(
        "{}: the object, converted by the webhook, does not fit a version at which managedFields of the live object have \
         entries: {}",
        refusal.message,
        versions.join(", ")
    );
    recorded::fault(change, index, versions, definition.is_served_before(&change.resource.version), why)
}
