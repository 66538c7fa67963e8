//! The release of OLM v1 that checks judge for: the configured one, or that of the cluster, or the newest.

use std::sync::Arc;

use tokio::sync::OnceCell;

use gantry_catalog::OlmRelease;
use gantry_cluster::{OLM_NAMESPACES, ObjectToRead, ReadResult, Target};
use gantry_core::resource::{ObjectRef, Resource};

#[cfg(feature = "olm")]
use crate::CheckLookup;

/// Its Deployment.
const DEPLOYMENT: &str = "operator-controller-controller-manager";

/// The release that is judged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedRelease {
    /// The release.
    pub olm: OlmRelease,
    /// Whether neither the configuration nor the cluster names it.
    pub is_assumed: bool,
}

/// The release, determined on first use for all checks of a run.
pub struct OlmReleaseOfRun<'a> {
    target: &'a Target,
    configured: Option<OlmRelease>,
    judged: OnceCell<JudgedRelease>,
}

impl<'a> OlmReleaseOfRun<'a> {
    /// Asks nothing yet.
    pub fn new(target: &'a Target, configured: Option<OlmRelease>) -> OlmReleaseOfRun<'a> {
        OlmReleaseOfRun { target, configured, judged: OnceCell::new() }
    }

    /// The release.
    pub async fn get(&self) -> JudgedRelease {
        *self.judged.get_or_init(|| self.determine()).await
    }

    async fn determine(&self) -> JudgedRelease {
        if let Some(olm) = self.configured {
            return JudgedRelease { olm, is_assumed: false };
        }
        // Without the right to read it, the release is unknown, which is reported where it matters.
        let read = read_deployments(self.target).await;
        let images = read.into_iter().filter_map(|read| {
            let live = read.ok()??.raw.value();
            let containers = live.pointer("/spec/template/spec/containers")?.as_array()?.clone();
            let image = |container: &serde_json::Value| container["image"].as_str().map(str::to_owned);
            containers.iter().filter_map(image).find_map(|image| release_of_image(&image))
        });
        match images.into_iter().next() {
            Some(olm) => JudgedRelease { olm, is_assumed: false },
            None => JudgedRelease { olm: OlmRelease::NEWEST, is_assumed: true },
        }
    }
}

fn deployment() -> Resource {
    Resource::built_in("apps", "Deployment", "deployments", true)
}

/// Reads the Deployment in each of the namespaces.
async fn read_deployments(target: &Target) -> Vec<ReadResult> {
    let wanted = OLM_NAMESPACES.map(|namespace| ObjectToRead {
        resource: Arc::new(deployment()),
        object: Arc::new(ObjectRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: Some(namespace.into()),
            name: DEPLOYMENT.into(),
        }),
    });
    target.read_each(&wanted, &|_, _| ()).await.unwrap_or_default()
}

/// The lookup of the Deployment that tells the release, if there is one: a right in a namespace that does not exist
/// cannot be granted.
#[cfg(feature = "olm")]
pub async fn lookups(target: &Target, change: usize) -> Vec<CheckLookup> {
    let read = read_deployments(target).await;
    let live = OLM_NAMESPACES.into_iter().zip(read).filter(|(_, read)| matches!(read, Ok(Some(_))));
    let of = |namespace: &str| CheckLookup::get(change, deployment(), Some(namespace.into()), DEPLOYMENT.into());
    live.map(|(namespace, _)| of(namespace)).collect()
}

/// The release that the tag of an image of operator-controller names.
fn release_of_image(image: &str) -> Option<OlmRelease> {
    let name = image.split('@').next()?;
    let (repository, tag) = name.rsplit_once(':')?;
    (repository.ends_with("/operator-controller") && tag.starts_with('v')).then(|| OlmRelease::parse(tag))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_the_image_names_the_release() {
        for (image, release) in [
            ("quay.io/operator-framework/operator-controller:v1.10.0", Some(OlmRelease::V1(10))),
            ("registry:5000/mirror/operator-controller:v1.5.1@sha256:00", Some(OlmRelease::V1(5))),
            ("quay.io/operator-framework/operator-controller:v1.99.0", Some(OlmRelease::NEWEST)),
            ("quay.io/operator-framework/operator-controller:devel", None),
            ("quay.io/operator-framework/operator-controller@sha256:00", None),
            ("quay.io/operator-framework/kube-rbac-proxy:v1.2.0", None),
        ] {
            assert_eq!(release_of_image(image), release, "{image}");
        }
    }
}
