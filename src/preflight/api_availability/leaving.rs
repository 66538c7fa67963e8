//! The APIs that a deploy takes away: versions that a CRD no longer serves. A deploy never deletes a CRD, but one that
//! serves no version at all is as good as gone.

use std::collections::BTreeSet;

use crate::crd::steps;
use crate::plan::Change;
use crate::resource::{Resource, Step};

/// A custom kind that loses versions.
#[derive(Debug)]
pub struct Leaving {
    /// Index of its CRD in `plan.changes`.
    pub change: usize,
    /// At a version that is served today and stays, if there is one, else at any that is served today.
    pub resource: Resource,
    /// The versions that go, as the CRD has them.
    pub versions: Vec<String>,
    /// Those that will be served.
    pub staying: BTreeSet<String>,
    /// Those that the CRD will have, served or not: what is written at another one is still converted to them.
    pub kept: BTreeSet<String>,
}

impl Leaving {
    /// `None` for a CRD that keeps what it serves.
    pub fn of(index: usize, change: &Change) -> Option<Self> {
        let sides = change.crd()?;
        let live: Vec<Resource> = sides.readable_live()?.resources().collect();
        // A CRD that cannot be read takes nothing away: the server refuses it.
        let desired = sides.defined()?;
        let staying: BTreeSet<String> = desired.served_versions().map(|version| version.name.to_string()).collect();
        let kept = desired.versions.iter().map(|version| version.name.to_string()).collect();
        let versions: Vec<String> =
            live.iter().map(|r| r.version.clone()).filter(|version| !staying.contains(version)).collect();
        let resource = live.iter().find(|r| staying.contains(&r.version)).or(live.first())?.clone();
        (!versions.is_empty()).then_some(Leaving { change: index, resource, versions, staying, kept })
    }

    /// Whether the whole kind goes.
    pub fn is_gone(&self) -> bool {
        self.staying.is_empty()
    }

    pub fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.resource.group)
    }

    /// The version of this kind that goes, if it is this one.
    pub fn version_of(&self, api_version: &str) -> Option<&str> {
        let (group, version) = api_version.split_once('/')?;
        let is_ours = group == self.resource.group;
        self.versions.iter().find(|gone| is_ours && *gone == version).map(String::as_str)
    }

    /// Where the manifest of the CRD says that a version is not served.
    pub fn at(&self, change: &Change, version: &str) -> Vec<Step> {
        let desired = change.crd().and_then(|sides| sides.defined());
        match desired.and_then(|crd| crd.version(version)) {
            Some(version) => steps::of_version(version.index, "served"),
            None => steps::versions(),
        }
    }
}
