//! Live CRDs that are read while the manifests are still being read.
//!
//! Their names are guessed from the text of the manifests. A wrong guess has no effect: a CRD that was not guessed is
//! read afterwards, and one that is not needed is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::app::members::MemberKey;
use gantry_cluster::{ObjectToRead, OnRead, ReadResult, Target};
use gantry_core::manifest::Manifest;
use gantry_core::problem::Result;
use gantry_core::resource::{LiveObject, ObjectRef, Resource};

/// The live CRDs of some names.
pub struct Prefetch {
    names: BTreeSet<String>,
    read: Result<Vec<ReadResult>>,
}

impl Prefetch {
    /// An empty prefetch.
    pub fn none() -> Self {
        Prefetch { names: BTreeSet::new(), read: Ok(Vec::new()) }
    }

    /// The live CRD of this name.
    pub(super) fn of_crd(name: String, live: LiveObject) -> Self {
        Prefetch { names: BTreeSet::from([name]), read: Ok(vec![Ok(Some(live))]) }
    }

    /// The CRDs among live objects that are known already.
    pub(super) fn known(live: &BTreeMap<MemberKey, LiveObject>) -> Self {
        let crd = Resource::crd();
        let crds = live.iter().filter(|((resource, ..), _)| **resource == crd);
        // Both are sorted by name.
        let (names, read) = crds.map(|((.., name), live)| (name.clone(), Ok(Some(live.clone())))).unzip();
        Prefetch { names, read: Ok(read) }
    }

    /// Reads the CRDs of these names. An error is kept until it is certain that they are needed.
    pub async fn read(names: BTreeSet<String>, target: &Target, on_read: OnRead<'_>) -> Self {
        if names.is_empty() {
            return Prefetch::none();
        }
        let wanted: Vec<ObjectToRead> = names.iter().map(|name| ObjectToRead::crd(name)).collect();
        let read = target.read_each(&wanted, on_read).await;
        Prefetch { names, read }
    }

    /// The live objects of `crds`, in their order. Reads those that were not read ahead.
    pub(super) async fn complete(
        self,
        crds: &[Manifest],
        target: &Target,
        on_read: OnRead<'_>,
    ) -> Result<Vec<ReadResult>> {
        let mut read: BTreeMap<String, ReadResult> = match self.read {
            Ok(read) => self.names.into_iter().zip(read).collect(),
            Err(error) => {
                let wanted: BTreeSet<&str> = crds.iter().map(|crd| crd.object.name.as_str()).collect();
                if self.names.iter().all(|name| wanted.contains(name.as_str())) {
                    return Err(error);
                }
                // The error may concern a name that is not needed.
                BTreeMap::new()
            }
        };
        let is_read = |crd: &Manifest| crd.object.version() == VERSION && read.contains_key(&crd.object.name);
        let known: Vec<bool> = crds.iter().map(is_read).collect();
        let missing = crds.iter().zip(&known).filter(|(_, known)| !**known);
        let missing: Vec<ObjectToRead> = missing.map(|(crd, _)| crd_to_read(Arc::clone(&crd.object))).collect();
        let mut found = target.read_each(&missing, on_read).await?.into_iter();
        let live = crds.iter().zip(known).map(|(crd, known)| match known {
            true => read.remove(&crd.object.name).unwrap_or(Ok(None)),
            false => found.next().unwrap_or(Ok(None)),
        });
        Ok(live.collect())
    }
}

/// The resource at which CRDs are read.
const VERSION: &str = "v1";

fn crd_to_read(object: Arc<ObjectRef>) -> ObjectToRead {
    ObjectToRead { resource: Resource::crd().into(), object }
}
