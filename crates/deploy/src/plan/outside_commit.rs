//! What a commit as target does not say, and what only the commit has.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Plan, Unplaced};
use gantry_cluster::{ListRequest, Target};
use gantry_core::matcher;
use gantry_core::problem::Problem;
use gantry_core::resource::Resource;
use gantry_core::text::sanitize;

/// The number of objects that a notice names.
const SHOWN: usize = 5;
/// The number of CRDs in a page of a list.
const PAGE: u32 = 500;

/// Takes custom resources out of the plan whose kind neither the commit nor a manifest defines: the cluster may well
/// have it, and the other objects can be checked. Returns a notice about them.
pub fn leave_out_unknown_kinds(plan: &mut Plan, target: &Target) -> Option<Problem> {
    let commit = target.as_commit().and(target.read_only_name())?;
    let is_unknown = |unplaced: &mut Unplaced| !unplaced.is_down && matcher::is_custom(&unplaced.manifest.object);
    let unknown: Vec<Unplaced> = plan.unplaced.extract_if(.., is_unknown).collect();
    let first = unknown.first()?;
    let names = unknown.iter().map(|unplaced| sanitize(&unplaced.manifest.object.to_string()).into_owned());
    let names: Vec<String> = names.collect();
    let message = format!(
        "not checked, because neither {} nor a manifest defines the kind: {}",
        sanitize(commit),
        listed(&names)
    );
    let help = "a check on a cluster that has the CRD also checks these; or give the CRD with -f, too";
    Some(Problem::new(message).at(first.manifest.origin.location()).help(help))
}

/// The notice that CRDs of the commit are no longer among the manifests.
pub async fn lost_crds(plan: &Plan, target: &Target) -> Option<Problem> {
    #[derive(Deserialize)]
    struct CommitCrd {
        metadata: CommitCrdMetadata,
    }
    #[derive(Deserialize)]
    struct CommitCrdMetadata {
        name: String,
    }
    let commit = target.as_commit().and(target.read_only_name())?;
    let resource = Resource::crd();
    let request = ListRequest::new(&resource, PAGE);
    let gather = |names: &mut Vec<String>, json: &str| {
        names.extend(serde_json::from_str::<CommitCrd>(json).ok().map(|crd| crd.metadata.name));
    };
    // What cannot be read is an error elsewhere.
    let before: Vec<String> = target.list(&request).gather(gather).await.ok()?;
    let changes = plan.changes.iter().filter(|change| change.desired.object.is_crd());
    let now: BTreeSet<&str> = changes.map(|change| change.desired.object.name.as_str()).collect();
    let mut lost: Vec<String> = before.into_iter().filter(|name| !now.contains(name.as_str())).collect();
    lost.sort();
    lost.dedup();
    let is_one = lost.len() == 1;
    if lost.is_empty() {
        return None;
    }
    let (crds, is, goes) =
        if is_one { ("a CRD", "is", "its objects are") } else { ("CRDs", "are", "their objects are") };
    let names: Vec<String> = lost.iter().map(|name| sanitize(name).into_owned()).collect();
    let message =
        format!("{} has {crds} that {is} no longer among the manifests: {}", sanitize(commit), listed(&names));
    let help = format!("if a deploy prunes or somebody deletes what is no longer there, {goes} deleted, too");
    Some(Problem::new(message).help(help))
}

fn listed(names: &[String]) -> String {
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}
