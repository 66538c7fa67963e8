//! Finds claims of a StorageClass that does not exist: nothing provisions their volumes, and their Pods wait for ever.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Change, Plan, handover};
use gantry_cluster::{ObjectToRead, Target};
use gantry_core::problem::Problem;
use gantry_core::resource::{ObjectRef, Resource};
use gantry_core::text::sanitize;

const KEY: &str = "storageClassName";

/// A StorageClass of a server.
pub(crate) fn object_to_read(name: &str) -> ObjectToRead {
    let resource = Resource::built_in("storage.k8s.io", "StorageClass", "storageclasses", false);
    let object = ObjectRef {
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
        namespace: None,
        name: name.to_owned(),
    };
    ObjectToRead { resource: resource.into(), object: object.into() }
}

/// A notice for each StorageClass that neither the server nor the manifests have. Without the right to read them, there
/// is none.
pub async fn notices(plan: &Plan, target: &Target) -> Vec<Problem> {
    if !target.is_server() {
        return Vec::new();
    }
    let mut claimed: BTreeMap<String, Vec<&Change>> = BTreeMap::new();
    let mut defined = Vec::new();
    for change in plan.changes.iter().filter(|change| change.desired.bundle.is_none()) {
        let object = &change.desired.object;
        match (object.group(), object.kind.as_str()) {
            ("storage.k8s.io", "StorageClass") => defined.push(object.name.clone()),
            // A volume of the class can be bound although nobody provisions such volumes.
            ("", "PersistentVolume") => {
                defined.extend(change.desired.raw.value()["spec"][KEY].as_str().map(str::to_owned));
            }
            ("", "PersistentVolumeClaim" | "Pod" | "ReplicationController") | ("apps" | "batch", _)
                if change.is_written() && change.desired.may_contain(&[KEY]) =>
            {
                let mut names = Vec::new();
                collect(&change.desired.raw.value()["spec"], &mut names);
                for name in names {
                    claimed.entry(name).or_default().push(change);
                }
            }
            _ => {}
        }
    }
    claimed.retain(|name, _| !defined.contains(name));
    let classes: Vec<ObjectToRead> = claimed.keys().map(|name| object_to_read(name)).collect();
    let read = match classes.is_empty() {
        true => Vec::new(),
        false => target.read_each(&classes, &|_, _| ()).await.unwrap_or_default(),
    };
    let missing = claimed.into_iter().zip(read).filter(|(_, read)| matches!(read, Ok(None)));
    missing.filter_map(|((name, changes), _)| notice(&name, &changes)).collect()
}

/// The classes of claims at any depth: claims, claim templates and ephemeral volumes. An empty name stands for no
/// class.
fn collect(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value.as_str().filter(|name| key == KEY && !name.is_empty()) {
                    Some(name) if !names.iter().any(|known| known == name) => names.push(name.to_owned()),
                    Some(_) => {}
                    None => collect(value, names),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, names)),
        _ => {}
    }
}

fn notice(name: &str, changes: &[&Change]) -> Option<Problem> {
    let first = changes.first()?;
    let name = sanitize(name);
    let message =
        format!("there is no StorageClass {name:?}: the claims of {} may stay pending", handover::named(changes));
    let help = "name a class of the cluster (kubectl get storageclasses), or create the class; a volume of this class that an \
                admin created is bound all the same";
    Some(Problem::new(message).at(first.desired.origin.location()).help(help))
}
