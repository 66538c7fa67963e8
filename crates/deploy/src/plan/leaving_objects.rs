//! Objects that leave a bundle: the installed version has them, and the one among the manifests does not. OLM deletes
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::installed_releases::InstalledRelease;
use super::{Change, Unplaced};
use gantry_cluster::{Gvk, ObjectToRead, ReadResult, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::{HELM_KEEP, ObjectRef, Resource};

/// The live objects that Helm deletes, because the installed releases have them and the bundles do not. What cannot be
/// read counts as live. Returns notices, too.
pub(super) async fn find(
    releases: &[InstalledRelease],
    changes: &[Change],
    unplaced: &[Unplaced],
    target: &Target,
) -> (Vec<Arc<ObjectRef>>, Vec<Problem>) {
    let recorded: Vec<ObjectRef> = releases.iter().flat_map(InstalledRelease::objects).collect();
    let kinds: BTreeSet<Gvk> = recorded.iter().map(kind_of).collect();
    let served = match target.discover(&kinds).await {
        Ok(found) => found.served,
        Err(error) => {
            let problem = error.first_problem();
            let message = format!("it is unknown what OLM deletes: {}", problem.message);
            return (Vec::new(), vec![Problem { message, ..problem }]);
        }
    };
    let kept = Kept::new(changes, unplaced);
    let leaving: Vec<ObjectToRead> = recorded.into_iter().filter_map(|object| kept.leaving(object, &served)).collect();
    let live = match target.read_each(&leaving, &|_, _| ()).await {
        Ok(live) => live,
        Err(error) => return (Vec::new(), vec![error.first_problem()]),
    };
    let is_deleted = |live: ReadResult| match live {
        Ok(None) => false,
        Ok(Some(live)) => !is_kept(&live.raw.value()),
        Err(_) => true,
    };
    let deleted = leaving.into_iter().zip(live).filter_map(|(left, live)| is_deleted(live).then_some(left.object));
    (deleted.collect(), Vec::new())
}

/// Whether Helm leaves the object alone.
fn is_kept(live: &Value) -> bool {
    live["metadata"]["annotations"][HELM_KEEP.0] == HELM_KEEP.1
}

fn kind_of(object: &ObjectRef) -> Gvk {
    Gvk { group: object.group().to_owned(), version: object.version().to_owned(), kind: object.kind.clone() }
}

/// The objects of the new versions of the bundles.
struct Kept<'a> {
    /// Group, kind, namespace and name.
    placed: BTreeSet<(&'a str, &'a str, Option<&'a str>, &'a str)>,
    /// Objects of kinds that are not served. It is unknown whether they have a namespace.
    unplaced: BTreeSet<(&'a str, &'a str, &'a str)>,
}

impl<'a> Kept<'a> {
    fn new(changes: &'a [Change], unplaced: &'a [Unplaced]) -> Self {
        let placed = changes.iter().map(|change| {
            let object = &*change.desired.object;
            let namespace = object.namespace.as_deref().filter(|_| change.resource.namespaced);
            (object.group(), object.kind.as_str(), namespace, object.name.as_str())
        });
        let unplaced = unplaced.iter().map(|unplaced| {
            let object = &*unplaced.manifest.object;
            (object.group(), object.kind.as_str(), object.name.as_str())
        });
        Kept { placed: placed.collect(), unplaced: unplaced.collect() }
    }

    /// The object, if it leaves. What is not served any more cannot be deleted, either.
    fn leaving(&self, object: ObjectRef, served: &BTreeMap<Gvk, Resource>) -> Option<ObjectToRead> {
        let resource: Arc<Resource> = served.get(&kind_of(&object))?.clone().into();
        let object = ObjectRef { namespace: object.namespace.clone().filter(|_| resource.namespaced), ..object };
        let (group, kind, name) = (object.group(), object.kind.as_str(), object.name.as_str());
        let is_kept = self.placed.contains(&(group, kind, object.namespace.as_deref(), name))
            || self.unplaced.contains(&(group, kind, name));
        (!is_kept).then(|| ObjectToRead { resource, object: object.into() })
    }
}
