//! Members of other apps of gantry: the label names only the identifier of the set, and the record has the app's name.

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use super::owner::Owner;
use crate::app::{self, App, parent};
use gantry_cluster::{ListRequest, Target};

/// The number of records to read at a time. Few have the same identifier.
const PAGE: u32 = 10;

/// Names the app of each object that another app of gantry owns. A record that is not found or may not be listed leaves
/// the identifier.
pub async fn name_owning_apps(plan: &mut Plan, target: &Target) {
    let mut namespaces: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for change in &plan.changes {
        if let Some(Owner::ApplySet(id)) = change.owner.as_deref() {
            namespaces.entry(id.clone()).or_default().extend(change.desired.object.namespace.clone());
        }
    }
    let mut apps = BTreeMap::new();
    for (id, namespaces) in namespaces {
        // Most records are in the namespace of a member, where they may also be read without rights in the whole
        // cluster.
        for namespace in namespaces.iter().map(Some).take(PAGE as usize).chain([None]) {
            if let Some(app) = find(&id, namespace.map(String::as_str), target).await {
                apps.insert(id, app);
                break;
            }
        }
    }
    for owner in plan.changes.iter_mut().filter_map(|change| change.owner.as_deref_mut()) {
        if let Owner::ApplySet(id) = owner
            && let Some(app) = apps.get(id)
        {
            *owner = Owner::GantryApp(app.name.clone(), app.namespace.clone());
        }
    }
}

async fn find(id: &str, namespace: Option<&str>, target: &Target) -> Option<App> {
    let config_maps = app::config_maps();
    let selector = format!("{}={id}", parent::ID_LABEL);
    let request = ListRequest {
        namespace,
        label_selector: Some(&selector),
        metadata_only: true,
        ..ListRequest::new(&config_maps, PAGE)
    };
    let mut pages = target.list(&request);
    let found = pages.gather(|found: &mut Vec<App>, json: &str| {
        found.extend(parent::app_of(json).map(|(app, _)| app));
    });
    found.await.ok()?.into_iter().find(|app| app.id() == id)
}
