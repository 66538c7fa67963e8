//! A new storage version lacks fields of another version.

use crate::crd_upgrade_safety::migration;
use crate::crd_upgrade_safety::rule::{CrdRuleViolation, ViolationText};
use crate::crd_upgrade_safety::words;
use gantry_core::crd::lost_fields;
use gantry_core::crd::{CrdPair, CrdVersion, steps};

pub fn judge(pair: &CrdPair) -> Vec<CrdRuleViolation> {
    let Some(now) = pair.desired.storage() else { return Vec::new() };
    let mut found = Vec::new();
    for version in &pair.live.versions {
        let fields = lost_by(pair, version);
        if fields.is_empty() {
            continue;
        }
        let listed = words::listed(&fields);
        let diagnosis = ViolationText {
            message: format!("objects of {} lose {listed} once they are stored at {}", version.name, now.name).into(),
            help: next_step(pair, version, now).into(),
            at: steps::of_version(now.index, "storage"),
            ..ViolationText::default()
        }
        .label(format!("{} has {listed} in the live CRD; {} does not", version.name, now.name));
        found.push(CrdRuleViolation { version: Some(version.name.to_string()), diagnosis });
    }
    found
}

fn next_step(pair: &CrdPair, version: &CrdVersion, now: &CrdVersion) -> String {
    let is_webhook_removed =
        pair.live.converts_by_webhook() && pair.live.storage().is_some_and(|was| was.name == now.name);
    if !is_webhook_removed {
        return format!(
            "add these fields to {}, or convert with a webhook, before you change the storage version",
            now.name
        );
    }
    if pair.desired.served(&version.name).is_some() {
        return format!("keep the webhook as long as {} is served", version.name);
    }
    format!(
        "keep the webhook until the objects are migrated, which it converts as long as {} is served: {}",
        version.name,
        migration::write_stored(&pair.live)
    )
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
    lost_fields::without_known(lost, &lost_fields::lost_in_storage(&pair.live, version))
}
