//! The schemas of kinds, as the server publishes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;

use super::Change;
use gantry_cluster::{Described, OpenApi, Target};
use gantry_core::resource::Resource;

/// The schemas of the kinds of some objects.
#[derive(Debug, Default)]
pub struct Published<'p> {
    documents: BTreeMap<(&'p str, &'p str), Arc<OpenApi>>,
    /// The group versions whose schemas the server did not return.
    missing: Vec<(&'p str, &'p str)>,
}

impl<'p> Published<'p> {
    /// Requests the schemas of the kinds of these objects, where they are not known yet.
    pub async fn read(changes: impl Iterator<Item = &'p Change>, target: &Target) -> Self {
        let version = |change: &'p Change| (change.resource.group.as_str(), change.resource.version.as_str());
        let versions: BTreeSet<(&str, &str)> = changes.map(version).collect();
        let documents = join_all(versions.iter().map(|(group, version)| target.openapi(group, version))).await;
        let mut published = Published::default();
        for (version, document) in versions.into_iter().zip(documents) {
            match document {
                Some(document) => drop(published.documents.insert(version, document)),
                None => published.missing.push(version),
            }
        }
        published
    }

    /// The group versions without schemas, as in `apiVersion`.
    pub fn missing(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|(group, version)| match *group {
            "" => (*version).to_owned(),
            group => format!("{group}/{version}"),
        })
    }

    /// The document of the version of a kind. `None` if the server publishes none.
    pub fn document(&self, resource: &Resource) -> Option<&OpenApi> {
        let is_its = |version: &(&str, &str)| *version == (&*resource.group, &*resource.version);
        self.documents.iter().find(|(version, _)| is_its(version)).map(|(_, document)| &**document)
    }

    /// The schema of a kind. `None` if the server publishes none.
    pub fn schema(&self, resource: &Resource) -> Option<Described<'_>> {
        self.document(resource)?.of_kind(resource)
    }
}
