//! Operator Lifecycle Manager v1: the specification and status of its objects, and the content of its catalogs.

pub mod affected;
pub mod cluster_catalog;
pub mod cluster_extension;
pub mod content;
pub mod printed;
pub mod source;
pub mod subscription;

use std::collections::BTreeMap;

use gantry_cluster::{Gvk, ListError, ListRequest, Target};
use gantry_core::problem::{Error, Problem};
use gantry_core::resource::Resource;

/// The number of objects on one page of a list.
const PAGE: u32 = 200;

/// Lists all objects of a kind at the first of `versions` that the target serves and passes their JSON to `look`.
/// Returns what `look` gathered; `None` if the target serves none of the versions.
///
/// # Errors
/// They cannot be listed, usually because permission is missing.
pub async fn gather<T: Default>(
    target: &Target,
    (group, kind): (&str, &str),
    versions: &[&str],
    look: impl Fn(&mut T, &str),
) -> Result<Option<T>, Problem> {
    let at = |version: &&str| Gvk { group: group.into(), version: (*version).into(), kind: kind.into() };
    let first = |error: Error| error.first_problem();
    let found = target.discover(&versions.iter().map(at).collect()).await.map_err(first)?;
    let served: BTreeMap<&str, &Resource> =
        found.served.iter().map(|(kind, resource)| (kind.version.as_str(), resource)).collect();
    let Some(resource) = versions.iter().find_map(|version| served.get(version)) else {
        return found.unanswered.into_values().next().map_or(Ok(None), Err);
    };
    match target.list(&ListRequest::new(resource, PAGE)).gather(look).await {
        Ok(gathered) => Ok(Some(gathered)),
        Err(ListError::NotServed(_)) => Ok(None),
        Err(error) => {
            let expired = || Problem::new(format!("the list of {} expired repeatedly", resource.plural));
            Err(error.problem().cloned().unwrap_or_else(expired))
        }
    }
}

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct OlmReadme;
