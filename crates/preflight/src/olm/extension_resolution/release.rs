//! The release of OLM v1 that the check judges for: the configured one, or that of the cluster, or the newest.
//!
//! If neither the configuration nor the cluster names one, what other releases decide differently is reported.

use std::sync::Arc;

use gantry_catalog::OlmRelease;
use gantry_catalog::bundle::{BundleDetail, Profile, Support, check_support};
use gantry_catalog::resolve::ResolvedCatalogBundle;

use super::owners::ExtensionPrerequisite;
use super::rules::OLM_RELEASE_UNKNOWN;
use super::{RequestedExtension, bundles, violation};
use crate::{CheckLookup, Context, Violation};
use gantry_cluster::{OLM_NAMESPACES, ObjectToRead, ReadResult, Target};
use gantry_core::resource::{ObjectRef, Resource};
use gantry_core::text::sanitize;

/// Its Deployment.
const DEPLOYMENT: &str = "operator-controller-controller-manager";

/// The values of the option `olm`.
pub const CHOICES: &[(&str, Option<OlmRelease>)] = &[
    ("auto", None),
    ("current", Some(OlmRelease::NEWEST)),
    ("v1.11", Some(OlmRelease::V1(11))),
    ("v1.10", Some(OlmRelease::V1(10))),
    ("v1.9", Some(OlmRelease::V1(9))),
    ("v1.8", Some(OlmRelease::V1(8))),
    ("v1.7", Some(OlmRelease::V1(7))),
    ("v1.6", Some(OlmRelease::V1(6))),
    ("v1.5", Some(OlmRelease::V1(5))),
    ("v1.4", Some(OlmRelease::V1(4))),
    ("v1.3", Some(OlmRelease::V1(3))),
    ("v1.2", Some(OlmRelease::V1(2))),
    ("v1.1", Some(OlmRelease::V1(1))),
    ("v1.0", Some(OlmRelease::V1(0))),
    ("4.16", Some(OlmRelease::V4_16)),
];

/// The release that is judged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedRelease {
    pub olm: OlmRelease,
    /// Whether neither the configuration nor the cluster names it.
    pub is_assumed: bool,
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
pub async fn lookups(target: &Target, change: usize) -> Vec<CheckLookup> {
    let read = read_deployments(target).await;
    let live = OLM_NAMESPACES.into_iter().zip(read).filter(|(_, read)| matches!(read, Ok(Some(_))));
    let of = |namespace: &str| CheckLookup::get(change, deployment(), Some(namespace.into()), DEPLOYMENT.into());
    live.map(|(namespace, _)| of(namespace)).collect()
}

/// Determines the release.
pub async fn determine(configured: Option<OlmRelease>, context: &Context<'_>) -> JudgedRelease {
    if let Some(olm) = configured {
        return JudgedRelease { olm, is_assumed: false };
    }
    // Without the right to read it, the release is unknown, which is reported where it matters.
    let read = read_deployments(context.target).await;
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

/// The release that the tag of an image of operator-controller names.
fn release_of_image(image: &str) -> Option<OlmRelease> {
    let name = image.split('@').next()?;
    let (repository, tag) = name.rsplit_once(':')?;
    (repository.ends_with("/operator-controller") && tag.starts_with('v')).then(|| OlmRelease::parse(tag))?
}

/// What other releases decide differently about an extension, if the release is only assumed.
pub async fn differences(
    judged: JudgedRelease,
    asked: &RequestedExtension,
    resolved: Option<&ResolvedCatalogBundle<'_>>,
    context: &Context<'_>,
) -> Vec<Violation> {
    if !judged.is_assumed {
        return Vec::new();
    }
    let mut found: Vec<Violation> = lacking_account(asked, context).await.into_iter().collect();
    if let Some(resolved) = resolved {
        found.extend(refused_by_others(judged.olm, asked, resolved, context));
    }
    found
}

async fn lacking_account(asked: &RequestedExtension, context: &Context<'_>) -> Option<Violation> {
    let needed = ExtensionPrerequisite::service_account(asked)?;
    let place = ExtensionPrerequisite::namespace(asked)?;
    let is_of_plan = |object: &ObjectRef| {
        context.plan.changes.iter().any(|change| change.desired.object.identity() == object.identity())
    };
    let wanted = [&needed, &place].map(|needed| ObjectToRead {
        resource: Arc::new(needed.resource.clone()),
        object: Arc::new(needed.object.clone()),
    });
    let read = context.target.read_each(&wanted, &|_, _| ()).await;
    // Only what is known to be missing is reported; a missing namespace is a finding of its own.
    let Ok([Ok(None), Ok(namespace)]) = read.as_deref() else { return None };
    if is_of_plan(&needed.object) || namespace.is_none() && !is_of_plan(&place.object) {
        return None;
    }
    let namespace = needed.object.namespace.as_deref().unwrap_or_default();
    let message = format!(
        "serviceaccount {} in namespace {} is neither live nor among the manifests: {} ignores it, but OLM v1.10 and earlier \
         install nothing without it",
        sanitize(&needed.object.name),
        sanitize(namespace),
        OlmRelease::NEWEST
    );
    Some(unknown(asked, message, asked.extension.places.service_account()))
}

/// Reports a bundle that the assumed release installs, and an earlier one refuses.
fn refused_by_others(
    assumed: OlmRelease,
    asked: &RequestedExtension,
    resolved: &ResolvedCatalogBundle<'_>,
    context: &Context<'_>,
) -> Option<Violation> {
    let extension = &asked.extension;
    let planned = bundles::find(context, &resolved.package.name, &resolved.bundle.version);
    let judge = |olm: OlmRelease| -> Support {
        let profile = Profile {
            olm,
            install_namespace: &extension.namespace,
            config: Some(&extension.config).filter(|config| !config.is_null()),
            ..Profile::default()
        };
        match (planned, &resolved.bundle.csv) {
            (Some(bundle), _) => check_support(BundleDetail::Bundle(&bundle.content), &profile),
            (None, Some(csv)) => csv.support(&profile),
            (None, None) => Support::default(),
        }
    };
    if !judge(assumed).unsupported.is_empty() {
        return None;
    }
    let releases = CHOICES.iter().filter_map(|(_, olm)| *olm).filter(|olm| matches!(olm, OlmRelease::V1(_)));
    let refusing = releases
        .filter_map(|olm| Some((olm, judge(olm).unsupported.into_iter().next()?.text)))
        .max_by_key(|(olm, _)| *olm);
    let (olm, text) = refusing?;
    let bundle = sanitize(&resolved.bundle.name);
    let message =
        format!("bundle {bundle}: {assumed} installs it, but {olm} and earlier refuse it: {}", sanitize(&text));
    Some(unknown(asked, message, extension.places.package()))
}

fn unknown(asked: &RequestedExtension, message: String, at: Vec<gantry_core::resource::Step>) -> Violation {
    let help = "say which release of OLM v1 the cluster has, with olm in the configuration of ExtensionResolution: the \
        image of deployment operator-controller-controller-manager names it";
    violation(&OLM_RELEASE_UNKNOWN, asked.change, message, help.into(), at)
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

    #[test]
    fn every_release_can_be_configured() {
        let OlmRelease::V1(newest) = OlmRelease::NEWEST else { panic!("upstream's releases are newer") };
        for minor in 0..=newest {
            let name = format!("v1.{minor}");
            let found = CHOICES.iter().find(|(choice, _)| *choice == name);
            assert_eq!(found.map(|(_, olm)| *olm), Some(OlmRelease::parse(&name)), "{name}");
        }
    }
}
