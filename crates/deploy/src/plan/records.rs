//! Manifests that would overwrite the record of an ApplySet: of an app of gantry, or of another tool.
//!
//! With a field manager of its own, an apply would only add to a record. But records are written with gantry's default
//! field manager, so an apply of a manifest removes whatever the manifest lacks: the label, the inventory.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;

use super::{Action, Change, Plan};
use crate::app::parent::{ID_LABEL, is_of_gantry};
use crate::app::{App, SUFFIX, check_name, parts};
use gantry_core::managed_fields::ManagerEntry;
use gantry_core::problem::Problem;
use gantry_core::resource::ObjectRef;
use gantry_core::text::{cut, sanitize};

/// Why a deploy must not write the manifests of some objects. `app` is the app that it deploys.
pub fn refused(plan: &Plan, app: Option<&App>) -> Vec<Problem> {
    let written = plan.changes.iter().filter(|change| change.is_written());
    written
        .filter_map(|change| overwritten(change, app).or_else(|| loses_label(change, &plan.policy.field_manager)))
        .collect()
}

/// The problem if the object is the record of an app, or a part of one.
fn overwritten(change: &Change, own: Option<&App>) -> Option<Problem> {
    let object = &*change.desired.object;
    let (_, app) = candidate(object)?;
    let (message, help) = match own.filter(|own| **own == app) {
        Some(App { name, .. }) => (
            format!("AppRecord: gantry keeps the record of the app {name} in {object}, which is among the manifests"),
            "remove it from the manifests, or give the object or the app another name".to_owned(),
        ),
        None => {
            record_of(change)?;
            let App { name, namespace } = &app;
            let message =
                format!("AppRecord: {object} belongs to the record of the app {name}, and would be overwritten");
            let help = format!(
                "remove it from the manifests, or give the object another name; if the app is no longer needed: gantry delete \
                 -a {name} -n {namespace}; to remove only its record: gantry apps forget -a {name} -n {namespace}"
            );
            (message, help)
        }
    };
    Some(Problem::new(message).at(change.desired.origin.location()).help(help))
}

/// The problem if the object is the parent of another tool's ApplySet and would lose the label that says so.
fn loses_label(change: &Change, field_manager: &str) -> Option<Problem> {
    let object = &*change.desired.object;
    let labels = labels(change);
    let id = labels.get(ID_LABEL)?;
    let desired = change.desired.raw.value();
    let is_lost = match &desired["metadata"]["labels"][ID_LABEL] {
        Value::Null => change.action == Action::Replace || is_owned(change, field_manager),
        label => label != &**id,
    };
    let shown = cut(&sanitize(id), 100).into_owned();
    is_lost.then(|| {
        let message = format!("AppRecord: {object} is the parent of the ApplySet {shown}, and would lose the label of it");
        let help = format!(
            "remove it from the manifests, give it another name, or set the label {ID_LABEL}: {shown}; if the ApplySet is no \
             longer needed: kubectl label {} {ID_LABEL}-",
            object.to_write()
        );
        Problem::new(message).at(change.desired.origin.location()).help(help)
    })
}

/// Whether the field manager applied the label, so that an apply without the label removes it.
fn is_owned(change: &Change, field_manager: &str) -> bool {
    let Some(live) = &change.live else { return false };
    let live = live.raw.value();
    let mut ours = ManagerEntry::all(&live).filter(|entry| entry.is_of_applier(field_manager));
    ours.any(|entry| entry.fields().below(&["metadata", "labels", ID_LABEL]).is_some())
}

/// Whether the live object is what its name says: see [`candidate`].
fn record_of(change: &Change) -> Option<App> {
    let (is_part, app) = candidate(&change.desired.object)?;
    let labels = labels(change);
    let label = labels.get(if is_part { parts::OF } else { ID_LABEL });
    let is_labelled = label.is_some_and(|label| *label == app.id());
    // A record may have lost its label.
    let is_record = || !is_part && change.live.as_ref().is_some_and(|live| is_of_gantry(&live.raw.json()));
    (is_labelled || is_record()).then_some(app)
}

/// The app whose record the ConfigMap may be, or a part of it, as its name says; and whether it is a part.
fn candidate(object: &ObjectRef) -> Option<(bool, App)> {
    if object.kind != "ConfigMap" || !object.group().is_empty() {
        return None;
    }
    let app = |name: &str| {
        let name = name.strip_suffix(SUFFIX).filter(|name| check_name(name).is_ok())?;
        Some(App { name: name.to_owned(), namespace: object.namespace.clone()? })
    };
    if let Some(app) = app(&object.name) {
        return Some((false, app));
    }
    let app = app(object.name.rsplit_once('-')?.0)?;
    parts::number(&app, object).is_some().then_some((true, app))
}

/// The labels of the object that is live now.
fn labels(change: &Change) -> BTreeMap<Cow<'_, str>, String> {
    if let Some(removal) = &change.replaces {
        return removal.facts.labels.iter().map(|(key, value)| (key.as_str().into(), value.clone())).collect();
    }
    let Some(live) = &change.live else { return BTreeMap::new() };
    let json = live.raw.json();
    // There may be very many objects, and few are parents.
    if ![ID_LABEL, parts::OF].iter().any(|label| json.contains(label)) {
        return BTreeMap::new();
    }
    let value = live.raw.value();
    let labels = value["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone().into(), value.as_str()?.to_owned()))).collect()
}
