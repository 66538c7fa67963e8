//! What other releases of OLM v1 decide differently, if neither the configuration nor the cluster names the release.

use std::sync::Arc;

use gantry_catalog::OlmRelease;
use gantry_catalog::bundle::{BundleDetail, Profile, Support, check_support};
use gantry_catalog::resolve::ResolvedCatalogBundle;

use super::owners::ExtensionPrerequisite;
use super::rules::OLM_RELEASE_UNKNOWN;
use super::{RequestedExtension, bundles, violation};
use crate::olm_release::JudgedRelease;
use crate::{Context, Violation};
use gantry_cluster::ObjectToRead;
use gantry_core::resource::ObjectRef;
use gantry_core::text::sanitize;

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
    let refusing = OlmRelease::all()
        .filter_map(|olm| Some((olm, judge(olm).unsupported.into_iter().next()?.text)))
        .max_by_key(|(olm, _)| *olm);
    let (olm, text) = refusing?;
    let bundle = sanitize(&resolved.bundle.name);
    let message =
        format!("bundle {bundle}: {assumed} installs it, but {olm} and earlier refuse it: {}", sanitize(&text));
    Some(unknown(asked, message, extension.places.package()))
}

fn unknown(asked: &RequestedExtension, message: String, at: Vec<gantry_core::resource::Step>) -> Violation {
    let help = "say which release of OLM v1 the cluster has, with --olm or olm in the configuration: the image of deployment \
        operator-controller-controller-manager names it";
    violation(&OLM_RELEASE_UNKNOWN, asked.change, message, help.into(), at)
}
