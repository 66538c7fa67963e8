//! CRDs that are deleted, and the objects that go with them.

use std::collections::BTreeMap;

use super::rules::CRD_OBJECTS;
use super::{Looking, Named, some, violation};
use crate::crd::Crd;
use crate::plan::removal::Removal;
use crate::preflight::{CouldNotCheck, Found, Violation};
use crate::text::count;

pub async fn check(looking: &Looking<'_>) -> Found {
    let mut found = Found::default();
    for removal in looking.of_kind("apiextensions.k8s.io", "CustomResourceDefinition") {
        match one(looking, removal).await {
            Ok(violation) => found.violations.extend(violation),
            Err(error) => found.unchecked.push(error),
        }
    }
    found
}

async fn one(looking: &Looking<'_>, removal: &Removal) -> Result<Option<Violation>, CouldNotCheck> {
    let Some(live) = looking.read(&removal.resource, &removal.object).await? else { return Ok(None) };
    let unreadable = |why: String| CouldNotCheck {
        message: format!("{} cannot be read as a CRD: {why}", removal.object),
        help: Some("deploy without deleting: --prune=no".into()),
    };
    let crd = Crd::read(&live).map_err(|error| unreadable(error.to_string()))?;
    // Any served version shows them all. One that serves none keeps its objects, and nobody can see them.
    let Some(resource) = crd.resources().next() else {
        return Err(unreadable("it serves no version, so its objects cannot be listed".into()));
    };
    let gather = |found: &mut BTreeMap<String, Vec<String>>, json: &str| {
        let Ok(Named { metadata }) = serde_json::from_str(json) else { return };
        let namespace = metadata.namespace.as_deref();
        if !looking.is_deleted(&resource.group, &resource.kind, namespace, &metadata.name) {
            found.entry(namespace.unwrap_or_default().to_owned()).or_default().push(metadata.name);
        }
    };
    let Some(objects) = looking.list(&resource, None, gather).await? else { return Ok(None) };
    let number: usize = objects.values().map(Vec::len).sum();
    if number == 0 {
        return Ok(None);
    }
    let places: Vec<String> = objects
        .iter()
        .map(|(namespace, names)| match namespace.as_str() {
            "" => some(names),
            namespace => format!("{} in namespace {namespace} ({})", names.len(), some(names)),
        })
        .collect();
    let kind = &resource.kind;
    let message =
        format!("with this CRD, {} of kind {kind} would be deleted: {}", count(number, "object"), some(&places));
    let help = format!(
        "keep the CRD (--prune=no, or the annotation gantry.dev/prune: keep on it), or delete the objects first, once \
         nobody needs them: kubectl get {}.{} -A",
        resource.plural, resource.group
    );
    Ok(Some(violation(&CRD_OBJECTS, removal, message, help)))
}
