//! The APIs that a deploy stops serving: versions of the CRDs in its manifests. A CRD that no longer serves any version
//! is treated as removed. What uses a CRD that a deploy deletes (`--prune`) is reported by `deletion_safety`.

use std::collections::BTreeSet;

use gantry_core::crd::steps;
use gantry_core::resource::{Resource, Step};
use gantry_deploy::plan::Change;

/// A custom kind with versions that the deploy stops serving.
#[derive(Debug)]
pub struct RemovedApi {
    /// Index of its CRD in `plan.changes`.
    pub change: usize,
    /// The kind at a version that is served before and after the deploy, if there is one, else at any that is served
    /// now.
    pub resource: Resource,
    /// The versions that are no longer served, in the order of the CRD.
    pub versions: Vec<String>,
    /// The versions that are served after the deploy.
    pub still_served: BTreeSet<String>,
    /// The versions that the CRD has after the deploy, served or not: requests at other versions are still converted to
    /// them for matching.
    pub kept: BTreeSet<String>,
}

impl RemovedApi {
    /// `None` if the CRD keeps serving all of its versions.
    pub fn of_change(index: usize, change: &Change) -> Option<Self> {
        let sides = change.crd()?;
        let live: Vec<Resource> = sides.readable_live()?.resources().collect();
        // A CRD that cannot be parsed removes nothing: the server refuses it.
        let desired = sides.defined()?;
        let still_served: BTreeSet<String> =
            desired.served_versions().map(|version| version.name.to_string()).collect();
        let kept = desired.versions.iter().map(|version| version.name.to_string()).collect();
        let versions: Vec<String> =
            live.iter().map(|r| r.version.clone()).filter(|version| !still_served.contains(version)).collect();
        let resource = live.iter().find(|r| still_served.contains(&r.version)).or(live.first())?.clone();
        (!versions.is_empty()).then_some(RemovedApi { change: index, resource, versions, still_served, kept })
    }

    /// Whether no version is served any more.
    pub fn is_gone(&self) -> bool {
        self.still_served.is_empty()
    }

    pub fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.resource.group)
    }

    /// The version of `api_version`, if it is one of the versions of this kind that are no longer served.
    pub fn removed_version(&self, api_version: &str) -> Option<&str> {
        let (group, version) = api_version.split_once('/')?;
        let is_ours = group == self.resource.group;
        self.versions.iter().find(|removed| is_ours && *removed == version).map(String::as_str)
    }

    /// The path in the manifest of the CRD that makes the version not served.
    pub fn steps_to_version(&self, change: &Change, version: &str) -> Vec<Step> {
        let desired = change.crd().and_then(|sides| sides.defined());
        match desired.and_then(|crd| crd.version(version)) {
            Some(version) => steps::of_version(version.index, "served"),
            None => steps::versions(),
        }
    }
}
