//! Finds deleted claims and volumes whose data is deleted with them.

use std::sync::Arc;

use serde_json::Value;

use super::rules::VOLUME_DATA;
use super::{Deletions, violation};
use crate::{CouldNotCheck, Violation, ViolationsFound};
use gantry_core::resource::{ObjectRef, RawObject, Resource};
use gantry_deploy::plan::removal::Removal;

pub async fn check(deletions: &Deletions<'_>) -> ViolationsFound {
    let mut found = ViolationsFound::default();
    for removal in deletions.of_kind("", "PersistentVolumeClaim") {
        match of_claim(deletions, removal).await {
            Ok(violation) => found.violations.extend(violation),
            Err(error) => found.unchecked.push(error),
        }
    }
    for removal in deletions.of_kind("", "PersistentVolume") {
        match deletions.read(&removal.resource, &removal.object).await {
            Ok(live) => found.violations.extend(live.and_then(|live| of_volume(deletions, removal, &live.value()))),
            Err(error) => found.unchecked.push(error),
        }
    }
    found
}

async fn of_claim(deletions: &Deletions<'_>, removal: &Removal) -> Result<Option<Violation>, CouldNotCheck> {
    let live = deletions.read(&removal.resource, &removal.object).await?;
    let claim = live.as_ref().map(RawObject::value).unwrap_or_default();
    let Some(name) = claim["spec"]["volumeName"].as_str().filter(|name| !name.is_empty()) else { return Ok(None) };
    let object =
        ObjectRef { api_version: "v1".into(), kind: "PersistentVolume".into(), namespace: None, name: name.to_owned() };
    let resource = Arc::new(Resource::built_in("", "PersistentVolume", "persistentvolumes", false));
    let Some(volume) = deletions.read(&resource, &object.into()).await? else { return Ok(None) };
    Ok(of_volume(deletions, removal, &volume.value()))
}

/// The violation for a volume, or for the claim that is bound to it.
fn of_volume(deletions: &Deletions<'_>, removal: &Removal, volume: &Value) -> Option<Violation> {
    let name = volume["metadata"]["name"].as_str().unwrap_or_default();
    let is_used = removal.object.kind == "PersistentVolumeClaim" || volume["status"]["phase"] == "Bound";
    let deletes = volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete";
    (is_used && deletes).then(|| {
        let message = format!("its data is deleted, too: the volume {name} has the reclaim policy Delete");
        let help = format!(
            "keep it ({}), or keep the data first: kubectl patch pv {name} \
             -p '{{\"spec\":{{\"persistentVolumeReclaimPolicy\":\"Retain\"}}}}'",
            deletions.keeping()
        );
        violation(&VOLUME_DATA, removal, message, help)
    })
}
