//! What this check looks up and cannot do without, for `PermissionValidation` and `gantry permissions`.

use std::sync::Arc;

use super::finalizers;
use crate::finding::Action;
use crate::olm::cluster_extension;
use crate::plan::removal::Removal;
use crate::plan::{ObjectLookup, Plan};
use crate::resource::{ObjectRef, Resource};

/// What is looked up because of what the plan deletes.
pub fn of(plan: &Plan) -> Vec<ObjectLookup> {
    let leaving: Vec<&Removal> = plan.removals.iter().filter(|removal| removal.action == Action::Delete).collect();
    let mut lookups: Vec<ObjectLookup> = plan.deleted().flat_map(of_removal).collect();
    // Somebody may have to take finalizers off.
    if leaving.iter().any(|removal| !finalizers::finalizers(removal).is_empty()) {
        let workloads = leaving.iter().filter(|removal| finalizers::is_workload(&removal.object));
        lookups.extend(workloads.map(|removal| read(&removal.object, &removal.resource)));
    }
    lookups
}

fn of_removal(removal: &Removal) -> Vec<ObjectLookup> {
    let object = &removal.object;
    // Its own content says what goes with it.
    let is_read = object.is_crd() || is(object, "", "PersistentVolumeClaim") || is(object, "", "PersistentVolume");
    let own = is_read.then(|| read(object, &removal.resource));
    own.into_iter().chain(of_object(object)).collect()
}

/// What is looked up when an object is deleted, beside the object itself. What a namespace holds is left out: it would take the right
/// to list everything in it.
pub fn of_object(object: &Arc<ObjectRef>) -> Vec<ObjectLookup> {
    let admission = |kind: &str, plural: &str| Resource::built_in("admissionregistration.k8s.io", kind, plural, false);
    let lookup = |resource, verb| ObjectLookup { object: object.clone(), resource, namespace: None, name: None, verb };
    match () {
        () if object.is_crd() => {
            // The name of a CRD is its plural and its group.
            let (plural, group) = object.name.split_once('.').unwrap_or((&object.name, ""));
            vec![lookup(Resource::built_in(group, "", plural, true), "list")]
        }
        () if is(object, "", "PersistentVolumeClaim") => {
            vec![lookup(Resource::built_in("", "PersistentVolume", "persistentvolumes", false), "get")]
        }
        () if cluster_extension::is_one(object) => vec![lookup(Resource::crd(), "list")],
        () if is(object, "", "Service") => {
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

fn is(object: &ObjectRef, group: &str, kind: &str) -> bool {
    object.group() == group && object.kind == kind
}

fn read(object: &Arc<ObjectRef>, resource: &Resource) -> ObjectLookup {
    let (namespace, name) = (object.namespace.clone(), Some(object.name.clone()));
    ObjectLookup { object: object.clone(), resource: resource.clone(), namespace, name, verb: "get" }
}
