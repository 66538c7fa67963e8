//! Finds objects that are deleted together with their CRD. The CRD leaves the app, or OLM v1 deletes it with a
//! ClusterExtension.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::{CRD_OBJECTS, EXTENSION_OBJECTS};
use super::{Deletions, OwnedObjectName, list_some, violation};
use crate::{CouldNotCheck, Notices, Violation, ViolationSubject, ViolationsFound};
use gantry_cluster::{self as cluster, ListRequest};
use gantry_core::crd::Crd;
use gantry_core::resource::{HELM_KEEP, RawObject, Resource};
use gantry_core::text::{count, sanitize};
use gantry_deploy::plan::Plan;
use gantry_deploy::plan::bundles::BundleWriter;
use gantry_deploy::plan::removal::Removal;
use gantry_olm::cluster_catalog::GROUP;
use gantry_olm::cluster_extension::{self, OWNER_KIND, OWNER_NAME};

/// The page size when CRDs are listed: some are as large as a megabyte.
const PAGE: u32 = 20;

pub async fn check(deletions: &Deletions<'_>, ignores_failing_apis: bool, notices: &Notices) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    for removal in deletions.of_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
        match of_crd(deletions, removal, ignores_failing_apis, notices).await {
            Ok(violation) => found.violations.extend(violation),
            Err(error) => found.unchecked.push(error),
        }
    }
    for removal in deletions.of_kind(GROUP, cluster_extension::KIND) {
        match of_extension(deletions, removal).await {
            Ok(violation) => found.violations.extend(violation),
            Err(error) => found.unchecked.push(error),
        }
    }
    found
}

/// The objects that are lost with a ClusterExtension: OLM v1 deletes everything that it has installed for it, including
/// CRDs.
async fn of_extension(deletions: &Deletions<'_>, removal: &Removal) -> Result<Option<Violation>, CouldNotCheck> {
    let name = &removal.object.name;
    let lost = lost_crds(deletions, name, &BTreeSet::new()).await?;
    if lost.is_empty() {
        return Ok(None);
    }
    let message = format!(
        "OLM deletes the CRDs that it has installed for ClusterExtension {name}, and their objects: {}",
        list_some(&lost)
    );
    let help = format!(
        "keep the ClusterExtension ({} on it), or, if nobody needs the objects, delete them first",
        deletions.keeping()
    );
    Ok(Some(violation(&EXTENSION_OBJECTS, removal, message, help)))
}

/// The objects that are lost with CRDs that the installed version of an operator has, and the bundle among the manifests
/// does not: OLM v1 deletes what leaves a bundle.
pub async fn dropped(deletions: &Deletions<'_>, plan: &Plan) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    for (index, bundle) in plan.bundles.iter().enumerate() {
        let Some(extension) = bundle.extension() else { continue };
        let of_bundle = plan.changes.iter().filter(|change| change.desired.bundle == Some(index));
        let kept: BTreeSet<&str> = of_bundle
            .filter(|change| change.desired.object.is_crd())
            .map(|change| change.desired.object.name.as_str())
            .collect();
        let lost = match lost_crds(deletions, &extension.name, &kept).await {
            Ok(lost) => lost,
            Err(error) => {
                found.unchecked.push(error);
                continue;
            }
        };
        if lost.is_empty() {
            continue;
        }
        let message = format!(
            "bundle {} lacks CRDs that OLM has installed for ClusterExtension {}, so OLM deletes them with their objects: \
             {}",
            bundle.to_text(),
            sanitize(&extension.name),
            list_some(&lost)
        );
        let help = "stay at the installed version, or, if nobody needs the objects, delete them first. To keep a CRD, \
                    annotate it helm.sh/resource-policy=keep before the upgrade";
        let subject = ViolationSubject::Bundle(index);
        found.violations.push(Violation::new(&CRD_OBJECTS, subject, None, message, help.to_owned(), Vec::new()));
    }
    found
}

/// The CRDs, apart from these, that OLM v1 has installed for an extension and that have objects.
async fn lost_crds(deletions: &Deletions<'_>, name: &str, kept: &BTreeSet<&str>) -> Result<Vec<String>, CouldNotCheck> {
    let selector = format!("{OWNER_KIND}={},{OWNER_NAME}={name}", cluster_extension::KIND);
    let (resource, mut lost) = (Resource::crd(), Vec::new());
    let request = ListRequest { label_selector: Some(&selector), ..ListRequest::new(&resource, PAGE) };
    let gather = |crds: &mut Vec<Result<(String, Option<Resource>), String>>, json: &str| {
        // The objects of a folder need not have a `uid` and a `resourceVersion`, and those of a list have no kind.
        let live = cluster::listed(json, &resource).map_or_else(|| RawObject::new(json), |listed| listed.raw);
        if stays_when_it_leaves(&live) {
            return;
        }
        let crd = Crd::read(&live).map_err(|error| error.to_string());
        // Every served version returns all objects.
        crds.push(crd.map(|crd| (crd.name.clone(), crd.resources().next())));
    };
    let crds = deletions.target.list(&request).gather(gather).await;
    for crd in crds.map_err(|error| deletions.unread(error.problem(), &resource.plural))? {
        let unreadable = |why: String| CouldNotCheck {
            message: format!("a CRD of ClusterExtension {name} cannot be read: {why}"),
            help: Some(deletions.without_deleting().into()),
        };
        let (crd, resource) = crd.map_err(unreadable)?;
        let Some(resource) = resource.filter(|_| !kept.contains(crd.as_str())) else { continue };
        let objects = objects(deletions, &resource).await?;
        let number: usize = objects.values().map(Vec::len).sum();
        if number > 0 {
            lost.push(format!("{} of {crd}: {}", count(number, "object"), list_some(&list_places(&objects))));
        }
    }
    Ok(lost)
}

/// Whether OLM leaves the object alone when it leaves the bundle: it writes it with Helm, which honours the annotation.
/// Boxcutter does not.
fn stays_when_it_leaves(live: &RawObject) -> bool {
    let is_kept = live.value()["metadata"]["annotations"][HELM_KEEP.0] == HELM_KEEP.1;
    is_kept && matches!(BundleWriter::of_live(live), Some(BundleWriter::Helm(_)))
}

async fn of_crd(
    deletions: &Deletions<'_>,
    removal: &Removal,
    ignores_failing_apis: bool,
    notices: &Notices,
) -> Result<Option<Violation>, CouldNotCheck> {
    let Some(live) = deletions.read(&removal.resource, &removal.object).await? else { return Ok(None) };
    let unreadable = |why: String| CouldNotCheck {
        message: format!("{} cannot be read as a CRD: {why}", removal.object),
        help: Some(deletions.without_deleting().into()),
    };
    let crd = Crd::read(&live).map_err(|error| unreadable(error.to_string()))?;
    // Every served version returns all objects. A CRD that serves no version may still have objects.
    let Some(resource) = crd.resources().next() else {
        return Err(unreadable("it serves no version, so its objects cannot be listed".into()));
    };
    let objects = match objects(deletions, &resource).await {
        Ok(objects) => objects,
        Err(error) => match why_not_served(deletions, &resource).await {
            None => return Err(error),
            Some(api_service) if ignores_failing_apis => {
                let object = &removal.object;
                notices.add(format!(
                    "{object} is deleted, although its objects are unknown: {api_service} does not answer"
                ));
                return Ok(None);
            }
            Some(api_service) => {
                let message = format!("it is unknown which objects {} has: {api_service} does not answer", crd.name);
                let help = format!(
                    "repair the APIService, or delete it if a CRD defines its API; {}; or delete the CRD with all \
                     objects that it has: --ignore-failing-api-services",
                    deletions.without_deleting()
                );
                return Err(CouldNotCheck { message, help: Some(help) });
            }
        },
    };
    let number: usize = objects.values().map(Vec::len).sum();
    if number == 0 {
        return Ok(None);
    }
    let places = list_places(&objects);
    let kind = &resource.kind;
    let message = format!(
        "deleting this CRD would also delete {} of kind {kind}: {}",
        count(number, "object"),
        list_some(&places)
    );
    let help = format!(
        "keep the CRD ({} on it), or, if nobody needs the objects, delete them first: kubectl get {}.{} -A",
        deletions.keeping(),
        resource.plural,
        resource.group
    );
    Ok(Some(violation(&CRD_OBJECTS, removal, message, help)))
}

/// The APIService because of which the objects of a kind cannot be listed.
async fn why_not_served(deletions: &Deletions<'_>, resource: &Resource) -> Option<String> {
    let name = format!("{}.{}", resource.version, resource.group);
    let failing = deletions.failing().await.ok()?;
    failing.contains(&name).then(|| format!("apiservice.apiregistration.k8s.io/{name}"))
}

/// The names of the objects of a kind that the deploy does not delete explicitly, by namespace.
async fn objects(
    deletions: &Deletions<'_>,
    resource: &Resource,
) -> Result<BTreeMap<String, Vec<String>>, CouldNotCheck> {
    let gather = |found: &mut BTreeMap<String, Vec<String>>, json: &str| {
        let Ok(OwnedObjectName { metadata }) = serde_json::from_str(json) else { return };
        let namespace = metadata.namespace.as_deref();
        if !deletions.is_deleted(&resource.group, &resource.kind, namespace, &metadata.name) {
            found.entry(namespace.unwrap_or_default().to_owned()).or_default().push(metadata.name);
        }
    };
    Ok(deletions.list(resource, None, gather).await?.unwrap_or_default())
}

/// `3 in namespace a (x, y, z)`
fn list_places(objects: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let place = |(namespace, names): (&String, &Vec<String>)| match namespace.as_str() {
        "" => list_some(names),
        namespace => format!("{} in namespace {namespace} ({})", names.len(), list_some(names)),
    };
    objects.iter().map(place).collect()
}
