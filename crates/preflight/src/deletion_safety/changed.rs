//! Finds deleted objects that another field manager has changed since the app was deployed.

use super::rules::CHANGED_BY_OTHER;
use super::{Deletions, violation};
use crate::Violation;
use gantry_core::text::sanitize;
use gantry_deploy::app::members::ContentWriter;
use gantry_deploy::plan::removal::Removal;

/// The managers of Kubernetes' own components: what they write is derived from what others wrote.
const OF_KUBERNETES: [&str; 5] =
    ["clusterrole-aggregation-controller", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet"];

pub fn check(deletions: &Deletions<'_>, field_manager: &str) -> Vec<Violation> {
    deletions.deleted.iter().filter_map(|removal| check_removal(removal, field_manager)).collect()
}

fn check_removal(removal: &Removal, field_manager: &str) -> Option<Violation> {
    let writers = &removal.facts.writers;
    let ours = writers.iter().filter(|writer| writer.applied && writer.manager == field_manager);
    // Times in this format sort like strings. Without an entry of ours, there is nothing to compare with.
    let deployed = ours.map(|writer| writer.time.as_str()).max()?;
    let is_other = |writer: &&ContentWriter| {
        let is_ours = writer.applied && writer.manager == field_manager;
        !is_ours && !OF_KUBERNETES.contains(&writer.manager.as_str()) && writer.time.as_str() >= deployed
    };
    let ContentWriter { manager, time, .. } = writers.iter().filter(is_other).max_by_key(|writer| &writer.time)?;
    let (object, manager) = (&removal.object, sanitize(manager));
    let message = format!(
        "{object} is deleted, but field manager {manager:?} changed it after the app was deployed, at {}",
        sanitize(time)
    );
    let kind = object.kind.to_lowercase();
    let namespace = object.namespace.as_ref().map(|namespace| format!(" -n {namespace}")).unwrap_or_default();
    let help = format!(
        "see what was changed: kubectl get {kind} {}{namespace} -o yaml --show-managed-fields; to keep it, put it back \
         into the manifests or annotate it with gantry.dev/prune: keep",
        object.name
    );
    Some(violation(&CHANGED_BY_OTHER, removal, message, help))
}
