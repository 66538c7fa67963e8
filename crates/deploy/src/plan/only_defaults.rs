//! Finds conflicts that change no value: the manifest differs from another manager's field only in values that the
//! server defaulted.
//!
//! A manager that writes with plain updates also owns the values that the server defaulted. A manifest that leaves them
//! out (`protocol: TCP` of a port in a NetworkPolicy) then conflicts over a list that means the same. Only the server
//! knows its defaults, so it is asked with a dry run of a forced apply. If that leaves a field as it is, taking it over
//! changes only its owner.

use futures::stream::{self, StreamExt};
use gantry_schema::json::Json;
use gantry_schema::scan;
use gantry_schema::{Sense, same_schema};

use super::conflicts::ChangeConflicts;
use super::{Plan, pin};
use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{DRY_RUNS_IN_FLIGHT, FieldConflict, FormerTools, Target, is_same_at};

/// The field that holds the schemas of a CRD.
const VERSIONS: &str = ".spec.versions";
/// The number of objects in conflict up to which the server is asked.
const MOST_ASKED: usize = 50;

/// Marks the conflicts that concern only defaults of the server, and removes those with deploy tools among them: their
/// fields are taken over. Without an answer, none is marked.
pub async fn mark(plan: &Plan, foreseen: &mut Vec<ChangeConflicts>, target: &Target) {
    let Some(server) = target.as_server() else { return };
    let is_settled = |found: &ChangeConflicts| {
        let takes = plan.changes[found.change].former_tools() != FormerTools::Keep;
        takes && found.conflicts.iter().all(|conflict| conflict.only_defaults && conflict.tool().is_some())
    };
    let mut kept: Vec<ChangeConflicts> = Vec::new();
    let mut open = std::mem::take(foreseen).into_iter();
    // Messages name no more objects in conflict.
    while kept.len() < MOST_ASKED {
        let mut asked: Vec<ChangeConflicts> = open.by_ref().take(MOST_ASKED).collect();
        if asked.is_empty() {
            break;
        }
        let asking = asked.iter_mut().map(|found| async move {
            let change = &plan.changes[found.change];
            mark_each(change, &mut found.conflicts, &plan.policy.field_manager, server, target).await;
        });
        stream::iter(asking).buffer_unordered(DRY_RUNS_IN_FLIGHT).collect::<()>().await;
        kept.extend(asked.into_iter().filter(|found| !is_settled(found)));
    }
    kept.extend(open);
    *foreseen = kept;
}

/// The same for the conflicts of one object.
pub async fn mark_each(
    change: &super::Change,
    conflicts: &mut [FieldConflict],
    field_manager: &str,
    server: &KubeTarget,
    target: &Target,
) {
    let Some(live) = &change.live else { return };
    for conflict in conflicts.iter_mut() {
        conflict.only_defaults = is_dropped(change, &conflict.field);
    }
    if conflicts.iter().all(|conflict| conflict.only_defaults) {
        return;
    }
    if conflicts.iter().all(|conflict| conflict.field == VERSIONS) && changes_versions(change) {
        return;
    }
    let Ok(forced) = pin::forced_dry_run(change, field_manager, server, target).await else { return };
    let (live, forced) = (live.raw.value(), forced.value());
    for conflict in conflicts {
        conflict.only_defaults = is_same_at(&conflict.field, &live, &forced);
    }
}

/// Whether the server drops the value of this field of a CRD, and the live object has none. Many manifests have
/// `preserveUnknownFields: false`, and the manager that applied one of them owns the field.
fn is_dropped(change: &super::Change, field: &str) -> bool {
    const FIELD: &str = "preserveUnknownFields";
    let is_it = change.desired.object.is_crd() && field.strip_prefix(".spec.") == Some(FIELD);
    let Some(sides) = change.crd().filter(|_| is_it) else { return false };
    let Some((live, desired)) = sides.without_versions() else { return false };
    let of = |text: &str| Some(scan::member(scan::member(text, "spec")?, FIELD)?.to_owned());
    of(&live).is_none() && of(&desired).as_deref() == Some("false")
}

/// Whether the manifest of a CRD changes a schema, which the server does not do by itself.
fn changes_versions(change: &super::Change) -> bool {
    let Some(Ok(pair)) = change.crd().map(|crd| crd.pair()) else { return false };
    pair.common_versions().any(|(live, desired)| {
        let [Some(Ok(live)), Some(Ok(desired))] = [live, desired].map(|version| version.schema().map(Json::parse))
        else {
            return false;
        };
        !same_schema(&live, &desired, Sense::Everything) || has_other_text(&live, &desired)
    })
}

/// Whether there is a text in both that is not the same, such as a description.
fn has_other_text(a: &Json<'_>, b: &Json<'_>) -> bool {
    match (a, b) {
        (Json::Map(a), Json::Map(b)) => a.iter().any(|(key, a)| b.get(key).is_some_and(|b| has_other_text(a, b))),
        (Json::Text(a), Json::Text(b)) => a != b && !a.is_empty() && !b.is_empty(),
        _ => false,
    }
}
