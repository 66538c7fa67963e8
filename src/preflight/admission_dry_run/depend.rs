//! What objects need that the deploy itself brings: before that is written the server cannot judge them, or judges them
//! by what will not be in force any more.

use std::collections::BTreeMap;

use crate::plan::{Action, Change, Plan};

/// What keeps an object from the server's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dependence {
    /// Nothing: the server's verdict holds.
    Nothing,
    /// The namespace or the kind comes with this change of the plan, and the server knows neither yet; or it is this change
    /// itself, which replaces an object that is still there.
    Brought(usize),
    /// The kind's CRD changes with this change of the plan: the server still judges by the old schema, and by everything
    /// else as it will be.
    Changed(usize),
}

/// Of each change, in the plan's order.
pub fn sort(plan: &Plan) -> Vec<Dependence> {
    let changes = &plan.changes;
    let mut namespaces = BTreeMap::new();
    let mut crds = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        let object = &change.desired.object;
        if object.is_namespace() && change.action == Action::Create {
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
            let brought = Dependence::Brought(*index);
            return if is_served(&changes[*index], &change.resource.version) {
                Dependence::Changed(*index)
            } else {
                brought
            };
        }
        let namespace = change.desired.object.namespace.as_deref();
        namespace.and_then(|name| namespaces.get(name)).map_or(Dependence::Nothing, |index| Dependence::Brought(*index))
    };
    // A namespace that is new weighs more than a CRD that changes: there nothing can be asked at all.
    let in_new_namespace = |change: &Change| {
        let namespace = change.desired.object.namespace.as_deref()?;
        namespaces.get(namespace).map(|index| Dependence::Brought(*index))
    };
    changes
        .iter()
        .enumerate()
        .map(|(index, change)| match depends(change) {
            // What is deleted first cannot be created dry.
            Dependence::Nothing if change.action == Action::Replace => Dependence::Brought(index),
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
