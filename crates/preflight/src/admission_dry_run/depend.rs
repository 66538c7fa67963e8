//! Which objects depend on a namespace or CRD that the deploy itself writes. Until that is written, the server cannot
//! validate them, or validates them against a schema that is about to be replaced.

use std::collections::BTreeMap;

use gantry_deploy::plan::{Action, Change, Plan, strategy};

/// What makes the server's verdict on an object impossible or incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// Nothing: the server's verdict holds.
    Nothing,
    /// The change of the plan (by its index) that creates the object's namespace, or waits for it, or makes the server
    /// serve its kind. The server cannot validate the object at all.
    Created(usize),
    /// The change of the plan (by its index) that updates the kind's CRD. The server still validates against the old
    /// schema; everything else it says holds.
    Changed(usize),
}

/// The dependence of each change, in the plan's order.
pub fn dependence(plan: &Plan) -> Vec<Dependence> {
    let changes = &plan.changes;
    let mut namespaces = BTreeMap::new();
    let mut crds = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        let object = &change.desired.object;
        if object.is_namespace() && (change.action == Action::Create || strategy::is_missing(change)) {
            namespaces.insert(object.name.as_str(), index);
        } else if object.is_crd() && change.action.applies() {
            crds.insert(object.name.as_str(), index);
        }
    }
    let depends = |change: &Change| {
        let crd = format!("{}.{}", change.resource.plural, change.resource.group);
        if let Some(index) = crds.get(crd.as_str())
            && !change.desired.object.is_crd()
        {
            return if is_served(&changes[*index], &change.resource.version) {
                Dependence::Changed(*index)
            } else {
                Dependence::Created(*index)
            };
        }
        let namespace = change.desired.object.namespace.as_deref();
        namespace.and_then(|name| namespaces.get(name)).map_or(Dependence::Nothing, |index| Dependence::Created(*index))
    };
    // A new namespace outweighs a changed CRD: in it, no dry run is possible at all.
    let in_new_namespace = |change: &Change| {
        let namespace = change.desired.object.namespace.as_deref()?;
        namespaces.get(namespace).map(|index| Dependence::Created(*index))
    };
    changes
        .iter()
        .map(|change| match depends(change) {
            changed @ Dependence::Changed(_) => in_new_namespace(change).unwrap_or(changed),
            other => other,
        })
        .collect()
}

/// Whether the live CRD serves the version.
fn is_served(crd: &Change, version: &str) -> bool {
    let live = crd.crd().and_then(|sides| sides.readable_live());
    live.is_some_and(|live| live.served(version).is_some())
}
