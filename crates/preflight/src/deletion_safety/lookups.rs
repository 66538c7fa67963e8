//! The lookups that this check requires, for `PermissionValidation` and `gantry permissions`.

use std::sync::Arc;

use super::finalizers;
use gantry_core::finding::Action;
use gantry_core::resource::{ObjectRef, Resource};
use gantry_deploy::plan::removal::Removal;
use gantry_deploy::plan::{ObjectLookup, Plan};
use gantry_olm::cluster_extension;

/// The lookups for the objects that the plan deletes.
pub fn list_lookups(plan: &Plan) -> Vec<ObjectLookup> {
    let removed: Vec<&Removal> = plan.removals.iter().filter(|removal| removal.action == Action::Delete).collect();
    let mut lookups: Vec<ObjectLookup> = plan.deleted().flat_map(of_removal).collect();
    // Which CRDs OLM has installed for the extension of a bundle.
    let extensions = plan.bundles.iter().filter_map(|bundle| bundle.extension());
    lookups.extend(extensions.map(|extension| ObjectLookup {
        object: Arc::new(ObjectRef {
            api_version: format!("{}/v1", gantry_olm::cluster_catalog::GROUP),
            kind: cluster_extension::KIND.to_owned(),
            namespace: None,
            name: extension.name.clone(),
        }),
        resource: Resource::crd(),
        namespace: None,
        name: None,
        verb: "list",
        otherwise: None,
    }));
    // Whether the workloads run that have to remove the finalizers.
    if removed.iter().any(|removal| !finalizers::finalizers(removal).is_empty()) {
        let workloads = removed.iter().filter(|removal| finalizers::is_workload(&removal.object));
        lookups.extend(workloads.map(|removal| to_lookup(&removal.object, &removal.resource)));
    }
    lookups
}

fn of_removal(removal: &Removal) -> Vec<ObjectLookup> {
    let object = &removal.object;
    // The object itself shows what is lost with it.
    let is_read =
        object.is_crd() || is_kind(object, "", "PersistentVolumeClaim") || is_kind(object, "", "PersistentVolume");
    let own = is_read.then(|| to_lookup(object, &removal.resource));
    own.into_iter().chain(of_object(object)).collect()
}

/// The lookups for a deleted object, except the object itself. The contents of a namespace are not included: they would
/// require the right to list everything in it.
pub fn of_object(object: &Arc<ObjectRef>) -> Vec<ObjectLookup> {
    let admission = |kind: &str, plural: &str| Resource::built_in("admissionregistration.k8s.io", kind, plural, false);
    let lookup = |resource, verb| ObjectLookup {
        object: object.clone(),
        resource,
        namespace: None,
        name: None,
        verb,
        otherwise: None,
    };
    match () {
        () if object.is_crd() => {
            // The name of a CRD is its plural and its group.
            let (plural, group) = object.name.split_once('.').unwrap_or((&object.name, ""));
            vec![lookup(Resource::built_in(group, "", plural, true), "list")]
        }
        () if is_kind(object, "", "PersistentVolumeClaim") => {
            vec![lookup(Resource::built_in("", "PersistentVolume", "persistentvolumes", false), "get")]
        }
        () if cluster_extension::is_one(object) => vec![lookup(Resource::crd(), "list")],
        () if is_kind(object, "", "Service") => {
            let callers = [
                admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
                admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
                Resource::built_in("apiregistration.k8s.io", "APIService", "apiservices", false),
                Resource::crd(),
            ];
            callers.into_iter().map(|resource| lookup(resource, "list")).collect()
        }
        () => Vec::new(),
    }
}

fn is_kind(object: &ObjectRef, group: &str, kind: &str) -> bool {
    object.group() == group && object.kind == kind
}

fn to_lookup(object: &Arc<ObjectRef>, resource: &Resource) -> ObjectLookup {
    let (namespace, name) = (object.namespace.clone(), Some(object.name.clone()));
    ObjectLookup { object: object.clone(), resource: resource.clone(), namespace, name, verb: "get", otherwise: None }
}
