//! CRDs that are deleted, and the objects that go with them: CRDs that leave the app, and those that OLM v1 deletes with a
//! ClusterExtension.

use std::collections::BTreeMap;

use super::rules::{CRD_OBJECTS, EXTENSION_OBJECTS};
use super::{Looking, Named, some, violation};
use crate::cluster::{self, ListRequest};
use crate::crd::Crd;
use crate::olm::cluster_catalog::GROUP;
use crate::olm::cluster_extension::{self, OWNER_KIND, OWNER_NAME};
use crate::plan::removal::Removal;
use crate::preflight::{CouldNotCheck, Found, Violation};
use crate::resource::Resource;
use crate::text::count;

/// CRDs on one page: some have a megabyte.
const PAGE: u32 = 20;

pub async fn check(looking: &Looking<'_>) -> Found {
    let mut found = Found::default();
    for removal in looking.of_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
        match one(looking, removal).await {
            Ok(violation) => found.violations.extend(violation),
            Err(error) => found.unchecked.push(error),
        }
    }
    for removal in looking.of_kind(GROUP, cluster_extension::KIND) {
        match of_extension(looking, removal).await {
            Ok(violation) => found.violations.extend(violation),
            Err(error) => found.unchecked.push(error),
        }
    }
    found
}

/// What goes with a ClusterExtension: OLM v1 deletes all that it has installed for it, its CRDs among that.
async fn of_extension(looking: &Looking<'_>, removal: &Removal) -> Result<Option<Violation>, CouldNotCheck> {
    let name = &removal.object.name;
    let selector = format!("{OWNER_KIND}={},{OWNER_NAME}={name}", cluster_extension::KIND);
    let (resource, mut lost) = (Resource::crd(), Vec::new());
    let request = ListRequest { label_selector: Some(&selector), ..ListRequest::of(&resource, PAGE) };
    let gather = |crds: &mut Vec<Result<(String, Option<Resource>), String>>, json: &str| {
        let crd = cluster::listed(json, &resource).ok_or_else(|| "it is no object".to_owned());
        let crd = crd.and_then(|live| Crd::read(&live.raw).map_err(|error| error.to_string()));
        // Any served version shows all objects.
        crds.push(crd.map(|crd| (crd.name.clone(), crd.resources().next())));
    };
    let crds = looking.target.list(&request).gather(gather).await;
    for crd in crds.map_err(|error| looking.unread(error.problem(), &resource.plural))? {
        let unreadable = |why: String| CouldNotCheck {
            message: format!("a CRD of ClusterExtension {name} cannot be read: {why}"),
            help: Some(looking.without_deleting().into()),
        };
        let (crd, resource) = crd.map_err(unreadable)?;
        let Some(resource) = resource else { continue };
        let objects = objects(looking, &resource).await?;
        let number: usize = objects.values().map(Vec::len).sum();
        if number > 0 {
            lost.push(format!("{} of {crd}: {}", count(number, "object"), some(&places(&objects))));
        }
    }
    if lost.is_empty() {
        return Ok(None);
    }
    let message = format!(
        "with ClusterExtension {name}, OLM deletes the CRDs that it has installed, and with them {}",
        some(&lost)
    );
    let help = format!(
        "keep the ClusterExtension ({} on it), or delete the objects first, once nobody needs them",
        looking.keeping()
    );
    Ok(Some(violation(&EXTENSION_OBJECTS, removal, message, help)))
}

async fn one(looking: &Looking<'_>, removal: &Removal) -> Result<Option<Violation>, CouldNotCheck> {
    let Some(live) = looking.read(&removal.resource, &removal.object).await? else { return Ok(None) };
    let unreadable = |why: String| CouldNotCheck {
        message: format!("{} cannot be read as a CRD: {why}", removal.object),
        help: Some(looking.without_deleting().into()),
    };
    let crd = Crd::read(&live).map_err(|error| unreadable(error.to_string()))?;
    // Any served version shows them all. One that serves none keeps its objects, and nobody can see them.
    let Some(resource) = crd.resources().next() else {
        return Err(unreadable("it serves no version, so its objects cannot be listed".into()));
    };
    let objects = objects(looking, &resource).await?;
    let number: usize = objects.values().map(Vec::len).sum();
    if number == 0 {
        return Ok(None);
    }
    let places = places(&objects);
    let kind = &resource.kind;
    let message =
        format!("with this CRD, {} of kind {kind} would be deleted: {}", count(number, "object"), some(&places));
    let help = format!(
        "keep the CRD ({} on it), or delete the objects first, once nobody needs them: kubectl get {}.{} -A",
        looking.keeping(),
        resource.plural,
        resource.group
    );
    Ok(Some(violation(&CRD_OBJECTS, removal, message, help)))
}

/// The objects of a kind that are not deleted by themselves, by namespace.
async fn objects(looking: &Looking<'_>, resource: &Resource) -> Result<BTreeMap<String, Vec<String>>, CouldNotCheck> {
    let gather = |found: &mut BTreeMap<String, Vec<String>>, json: &str| {
        let Ok(Named { metadata }) = serde_json::from_str(json) else { return };
        let namespace = metadata.namespace.as_deref();
        if !looking.is_deleted(&resource.group, &resource.kind, namespace, &metadata.name) {
            found.entry(namespace.unwrap_or_default().to_owned()).or_default().push(metadata.name);
        }
    };
    Ok(looking.list(resource, None, gather).await?.unwrap_or_default())
}

/// `3 in namespace a (x, y, z)`
fn places(objects: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let place = |(namespace, names): (&String, &Vec<String>)| match namespace.as_str() {
        "" => some(names),
        namespace => format!("{} in namespace {namespace} ({})", names.len(), some(names)),
    };
    objects.iter().map(place).collect()
}
