//! The responses of a server that holds the objects of these files.

use std::collections::{BTreeMap, BTreeSet};

use super::read::FolderObjectKey;
use super::state::FolderState;
use super::{crd, uid};
use crate::{Gvk, ObjectToRead};
use gantry_core::hash::fnv128;
use gantry_core::manifest::Manifest;
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};

impl FolderState {
    /// Built-in kinds are always served; custom kinds are served as defined by the CRDs among the files.
    pub fn discover(&self, kinds: &BTreeSet<Gvk>) -> BTreeMap<Gvk, Resource> {
        kinds.iter().filter_map(|gvk| Some((gvk.clone(), self.resource(gvk)?))).collect()
    }

    /// Returns one result for each wanted object, in order.
    pub fn read(&self, wanted: &[ObjectToRead]) -> Vec<Option<LiveObject>> {
        let read = |wanted: &ObjectToRead| {
            let identity = FolderObjectKey::new(&wanted.object, wanted.resource.namespaced, self.namespace.as_deref());
            let manifest = self.manifest(&identity)?;
            Some(at_version(self, live(manifest), &manifest.object, &wanted.object))
        };
        wanted.iter().map(read).collect()
    }
}

/// An object of the files as a server would return it.
///
/// Its resourceVersion is the one in the file followed by a hash of the object, because a person who edits the file
/// does not update the number.
pub(super) fn live(manifest: &Manifest) -> LiveObject {
    let json = manifest.raw.json();
    let hash = fnv128(json.as_bytes());
    let mut value = manifest.raw.value();
    let uid = match crd::text(&value, "/metadata/uid") {
        "" => uid::uid(manifest.object.identity()),
        uid => uid.to_owned(),
    };
    let counted = crd::text(&value, "/metadata/resourceVersion");
    let resource_version = format!("{}-{hash:032x}", if counted.is_empty() { "0" } else { counted });
    let raw = if manifest.object.is_crd() {
        crd::set_defaults(&mut value);
        RawObject::from_value(&value)
    } else if manifest.object.is_secret() {
        gantry_core::secret::fold_string_data(&mut value);
        RawObject::from_value(&value)
    } else {
        manifest.raw.clone()
    };
    LiveObject { raw, uid, resource_version }
}

/// The live object at the requested version, if versions differ only in `apiVersion`. Other conversions need the server
/// or its webhook; the object is then returned at its stored version.
fn at_version(state: &FolderState, live: LiveObject, stored: &ObjectRef, wanted: &ObjectRef) -> LiveObject {
    let by_name = state.custom(stored.group(), &stored.kind).is_some_and(|custom| custom.converts_by_name);
    if !by_name || stored.api_version == wanted.api_version {
        return live;
    }
    let mut value = live.raw.value();
    value["apiVersion"] = wanted.api_version.as_str().into();
    LiveObject { raw: RawObject::from_value(&value), ..live }
}
