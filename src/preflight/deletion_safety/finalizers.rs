//! Objects with finalizers that are deleted, and whether the workloads of the app run that could finish them.

use std::collections::BTreeSet;

use super::rules::FINALIZER_HANGS;
use super::{Looking, some, violation};
use crate::finding::Severity;
use crate::plan::removal::{self, Removal};
use crate::plan::{Action, Plan};
use crate::preflight::Found;
use crate::readiness::{self, State};
use crate::resource::{ObjectRef, Resource};

/// A workload of the app, whether it can do its work, and whether it goes.
struct Workload {
    name: String,
    runs: bool,
    goes: bool,
}

pub async fn check(looking: &Looking<'_>, plan: &Plan) -> Found {
    let mut found = Found::default();
    let held: Vec<(&Removal, Vec<String>)> = looking
        .deleted
        .iter()
        .map(|removal| (*removal, finalizers(removal)))
        .filter(|(_, finalizers)| !finalizers.is_empty())
        .collect();
    if held.is_empty() {
        return found;
    }
    let mut workloads: Vec<Workload> = Vec::new();
    for change in plan.changes.iter().filter(|change| is_workload(&change.desired.object)) {
        if let Some(live) = change.live.as_ref().filter(|_| change.action != Action::Skip) {
            workloads.push(workload(&live.raw.json(), &change.desired.object, &change.resource, false));
        }
    }
    for removal in looking.deleted.iter().filter(|removal| is_workload(&removal.object)) {
        match looking.read(&removal.resource, &removal.object).await {
            Ok(Some(live)) => workloads.push(workload(&live.json(), &removal.object, &removal.resource, true)),
            Ok(None) => {}
            Err(error) => found.unchecked.push(error),
        }
    }
    // The controllers of such an app are somebody else's.
    if workloads.is_empty() || !found.unchecked.is_empty() {
        return found;
    }
    let groups = groups(looking, plan);
    for (removal, finalizers) in held {
        let object = &removal.object;
        // Workloads go in one step with Services, and after custom resources.
        let goes_late = |workload: &&Workload| workload.goes && removal::stage(object) >= WORKLOADS;
        let (late, others): (Vec<&Workload>, Vec<&Workload>) = workloads.iter().partition(goes_late);
        if others.iter().any(|workload| workload.runs) {
            continue;
        }
        let names = |workloads: &[&Workload]| -> String {
            some(&workloads.iter().map(|workload| workload.name.clone()).collect::<Vec<_>>())
        };
        let why = match others.is_empty() {
            true => format!("the workloads of the app are deleted before it: {}", names(&late)),
            false => format!("no workload of the app is ready: {}", names(&others)),
        };
        let message = format!("it waits for {}, and {why}", finalizers.join(", "));
        let help = "make the controller of the finalizer run first, and delete the object while it does; gantry never \
                    removes a finalizer";
        let mut violation = violation(&FINALIZER_HANGS, removal, message, help.to_owned());
        // Of other objects (an Ingress of a cloud's controller, say) the controller may be elsewhere, and run.
        if !groups.iter().any(|group| object.group() == *group || finalizers.iter().any(|name| is_of(name, group))) {
            violation.severity = Severity::Warning;
        }
        found.violations.push(violation);
    }
    found
}

/// The API groups whose CRDs the app has: their controller is in the app.
fn groups<'a>(looking: &Looking<'a>, plan: &'a Plan) -> BTreeSet<&'a str> {
    let changed = plan.changes.iter().map(|change| &change.desired.object);
    let all = changed.chain(looking.deleted.iter().map(|removal| &removal.object));
    // A CRD is named PLURAL.GROUP.
    all.filter(|object| object.is_crd()).filter_map(|crd| Some(crd.name.split_once('.')?.1)).collect()
}

/// Whether a finalizer is of an API group, or of a domain above or below it: `operator.example.com/held` and `example.com`.
fn is_of(finalizer: &str, group: &str) -> bool {
    let domain = finalizer.split('/').next().unwrap_or_default();
    let is_below =
        |one: &str, other: &str| one.strip_suffix(other).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_below(domain, group) || domain.matches('.').count() > 0 && is_below(group, domain)
}

/// The step in which workloads are deleted: see [`removal::stage`].
const WORKLOADS: u8 = 3;

/// The finalizers that a controller outside of Kubernetes has to take off.
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

fn workload(json: &str, object: &ObjectRef, resource: &Resource, goes: bool) -> Workload {
    let is_ready = matches!(readiness::judge_json(json, object, resource, &[]), State::Ready { .. });
    let value: serde_json::Value = serde_json::from_str(json).unwrap_or_default();
    let runs = is_ready && value["spec"]["replicas"] != 0 && value["metadata"]["deletionTimestamp"].is_null();
    Workload { name: object.to_string(), runs, goes }
}
