//! Finds deleted objects with finalizers that no running workload of the app could remove.

use std::collections::BTreeSet;

use super::rules::FINALIZER_HANGS;
use super::{Deletions, list_some, violation};
use crate::ViolationsFound;
use gantry_core::finding::Severity;
use gantry_core::resource::{ObjectRef, Resource};
use gantry_deploy::plan::removal::{self, Removal};
use gantry_deploy::plan::{Action, Plan};
use gantry_deploy::readiness::{self, Readiness};

/// A workload of the app.
struct AppWorkload {
    name: String,
    /// Whether it is ready and has replicas.
    runs: bool,
    is_deleted: bool,
}

pub async fn check(deletions: &Deletions<'_>, plan: &Plan) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    let held: Vec<(&Removal, Vec<String>)> = deletions
        .deleted
        .iter()
        .map(|removal| (*removal, finalizers(removal)))
        .filter(|(_, finalizers)| !finalizers.is_empty())
        .collect();
    if held.is_empty() {
        return found;
    }
    let mut workloads: Vec<AppWorkload> = Vec::new();
    for change in plan.changes.iter().filter(|change| is_workload(&change.desired.object)) {
        if let Some(live) = change.live.as_ref().filter(|_| change.action != Action::Skip) {
            workloads.push(workload(&live.raw.json(), &change.desired.object, &change.resource, false));
        }
    }
    for removal in deletions.deleted.iter().filter(|removal| is_workload(&removal.object)) {
        match deletions.read(&removal.resource, &removal.object).await {
            Ok(Some(live)) => workloads.push(workload(&live.json(), &removal.object, &removal.resource, true)),
            Ok(None) => {}
            Err(error) => found.unchecked.push(error),
        }
    }
    // The controllers of an app without workloads are not part of it.
    if workloads.is_empty() || !found.unchecked.is_empty() {
        return found;
    }
    let groups = groups(deletions, plan);
    for (removal, finalizers) in held {
        let object = &removal.object;
        // Workloads are deleted in the same step as Services, and after custom resources.
        let is_deleted_before =
            |workload: &&AppWorkload| workload.is_deleted && removal::stage(object) >= WORKLOAD_STAGE;
        let (deleted_before, others): (Vec<&AppWorkload>, Vec<&AppWorkload>) =
            workloads.iter().partition(is_deleted_before);
        if others.iter().any(|workload| workload.runs) {
            continue;
        }
        let names = |workloads: &[&AppWorkload]| -> String {
            list_some(&workloads.iter().map(|workload| workload.name.clone()).collect::<Vec<_>>())
        };
        let why = match others.is_empty() {
            true => format!("the workloads of the app are deleted before it: {}", names(&deleted_before)),
            false => format!("no workload of the app is ready: {}", names(&others)),
        };
        let message = format!("it waits for {}, and {why}", finalizers.join(", "));
        let help = "start the controller of the finalizer first, and delete the object while it runs; gantry never \
                    removes a finalizer";
        let mut violation = violation(&FINALIZER_HANGS, removal, message, help.to_owned());
        // The controller of other objects, such as an Ingress, may run elsewhere.
        if !groups.iter().any(|group| object.group() == *group || finalizers.iter().any(|name| is_of(name, group))) {
            violation.severity = Severity::Warning;
        }
        found.violations.push(violation);
    }
    found
}

/// The API groups whose CRDs the app has: their controller is in the app.
fn groups<'a>(deletions: &Deletions<'a>, plan: &'a Plan) -> BTreeSet<&'a str> {
    let changed = plan.changes.iter().map(|change| &change.desired.object);
    let all = changed.chain(deletions.deleted.iter().map(|removal| &removal.object));
    // A CRD is named PLURAL.GROUP.
    all.filter(|object| object.is_crd()).filter_map(|crd| Some(crd.name.split_once('.')?.1)).collect()
}

/// Whether the domain of a finalizer is the API group, or above or below it: `operator.example.com/held` and
/// `example.com`.
fn is_of(finalizer: &str, group: &str) -> bool {
    let domain = finalizer.split('/').next().unwrap_or_default();
    let is_below =
        |one: &str, other: &str| one.strip_suffix(other).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_below(domain, group) || domain.matches('.').count() > 0 && is_below(group, domain)
}

/// The stage in which workloads are deleted: see [`removal::stage`].
const WORKLOAD_STAGE: u8 = 3;

/// The finalizers that a controller outside of Kubernetes has to remove.
pub(super) fn finalizers(removal: &Removal) -> Vec<String> {
    let of_kubernetes = |finalizer: &str| match finalizer.split_once('/') {
        None => !finalizer.contains('.') || finalizer.ends_with(".k8s.io"),
        Some((domain, _)) => ["kubernetes.io", "k8s.io"]
            .iter()
            .any(|own| domain == *own || domain.strip_suffix(own).is_some_and(|rest| rest.ends_with('.'))),
    };
    removal.facts.finalizers.iter().filter(|finalizer| !of_kubernetes(finalizer)).cloned().collect()
}

pub(super) fn is_workload(object: &ObjectRef) -> bool {
    object.group() == "apps" && matches!(object.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet")
}

fn workload(json: &str, object: &ObjectRef, resource: &Resource, is_deleted: bool) -> AppWorkload {
    let is_ready = matches!(readiness::evaluate_json(json, object, resource, &[]), Readiness::Ready { .. });
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let runs = is_ready && value["spec"]["replicas"] != 0 && value["metadata"]["deletionTimestamp"].is_null();
    AppWorkload { name: object.to_string(), runs, is_deleted }
}
