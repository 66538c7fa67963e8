//! A new storage version lacks fields of another version.

use crate::crd_upgrade_safety::rule::ViolationText;
use crate::crd_upgrade_safety::words;
use crate::objects::lost_fields;
use gantry_core::crd::{CrdPair, CrdVersion, steps};

pub fn judge(pair: &CrdPair) -> Vec<ViolationText> {
    let Some(now) = pair.desired.storage() else { return Vec::new() };
    let mut found = Vec::new();
    for version in &pair.live.versions {
        let fields = lost_by(pair, version);
        if fields.is_empty() {
            continue;
        }
        let listed = words::listed(&fields);
        let (name, to) = (&version.name, &now.name);
        found.push(
            ViolationText::at(steps::of_version(now.index, "storage"))
                .in_version(name)
                .message(format!("objects of {name} lose {listed} once they are stored at {to}"))
                .help(format!(
                    "add these fields to {to}, or convert with a webhook, before you change the storage version"
                ))
                .label(format!("{name} has {listed} in the live CRD; {to} does not")),
        );
    }
    found
}

/// What objects of a live version lose because the storage version or the conversion changes.
pub fn lost_by(pair: &CrdPair, version: &CrdVersion) -> Vec<String> {
    let (Some(was), Some(now)) = (pair.live.storage(), pair.desired.storage()) else {
        return Vec::new();
    };
    // Without its webhook, the storage version prunes what the webhook converted until now.
    let is_storage_new = was.name != now.name || pair.live.converts_by_webhook();
    if !is_storage_new || pair.converts_by_webhook() || version.name == now.name {
        return Vec::new();
    }
    // Objects are written at a version as long as both CRDs serve it, and read from storage where they are stored.
    let is_served = version.served && pair.desired.served(&version.name).is_some();
    if !is_served && !pair.live.is_stored(&version.name) {
        return Vec::new();
    }
    let lost = lost_fields::lost_between(version, now);
    if lost.is_empty() || pair.live.converts_by_webhook() {
        return lost;
    }
    // What the live storage version lacks too is lost with the next write today already.
    lost_fields::without(lost, &lost_fields::lost_in_storage(&pair.live, version))
}
