//! A version is deprecated, no longer served, or removed, or another one becomes the storage version.

use super::storage_version_loses_fields;
use crate::crd_upgrade_safety::migration;
use crate::crd_upgrade_safety::rule::ViolationText;
use gantry_core::crd::{CrdPair, CrdVersion, steps};
use gantry_deploy::plan::managed;

pub fn deprecated(pair: &CrdPair) -> Vec<ViolationText> {
    pair.common_versions()
        .filter(|(live, desired)| !live.deprecated && desired.deprecated)
        .map(|(live, desired)| {
            ViolationText::at(steps::of_version(desired.index, "deprecated"))
                .in_version(&live.name)
                .message(format!("version {} is deprecated from now on", live.name))
                .help(format!("nothing breaks; the server warns clients that use {}", live.name))
                .label("not deprecated in the live CRD")
        })
        .collect()
}

pub fn unserved(pair: &CrdPair) -> Vec<ViolationText> {
    let unserved = pair.common_versions().filter(|(live, desired)| live.served && !desired.served);
    unserved
        .map(|(CrdVersion { name, .. }, desired)| {
            ViolationText::at(steps::of_version(desired.index, "served"))
                .in_version(name)
                .message(format!("version {name} is no longer served"))
                .help(format!("make sure that no client uses {name} any more; served: true brings it back"))
                .label(format!("the live CRD serves {name}"))
        })
        .collect()
}

/// A version that may still hold stored objects is removed.
pub fn stored_removed(pair: &CrdPair) -> Vec<ViolationText> {
    let removed = pair.live.stored_versions().into_iter().filter(|name| pair.desired.version(name).is_none());
    removed
        .map(|name| ViolationText {
            steps: migration::plan(pair),
            ..ViolationText::at(steps::versions())
                .in_version(name)
                .message(format!("stored version {name} may not be removed"))
                .help(format!(
                    "objects may be stored at {name}, and the server does not report which, so migrate all of them first"
                ))
                .documented(format!("\"NoStoredVersionRemoved\" validation failed: stored version \"{name}\" removed"))
                .label(format!("the cluster may have objects that are stored at {name}"))
        })
        .collect()
}

/// A version that is still served is removed in one step. If objects may be stored at it, `NoStoredVersionRemoved`
/// reports it instead.
pub fn served_removed(pair: &CrdPair) -> Vec<ViolationText> {
    let stored = pair.live.stored_versions();
    removed(pair, |version| version.served && !stored.contains(&&*version.name))
        .map(|CrdVersion { name, .. }| {
            ViolationText::at(steps::versions())
                .in_version(name)
                .message(format!("served version {name} is removed in one step"))
                .help(format!(
                    "use two steps: keep {name} with served: false in this upgrade, check that no client misses it, and \
                     remove it in a later upgrade"
                ))
                .label(format!("the live CRD serves {name}"))
        })
        .collect()
}

/// A version that is not served and at which no object is stored is removed.
pub fn unserved_removed(pair: &CrdPair) -> Vec<ViolationText> {
    let CrdPair { live, desired, .. } = pair;
    removed(pair, |version| !version.served && !live.is_stored(&version.name))
        .map(|CrdVersion { name, .. }| {
            let first = format!(
                "make sure that every object was written since {name} was last the storage version: \
                 CustomResourceValidation reports objects whose managedFields name it"
            );
            let command = managed::remaining(live, desired).map(|to| managed::move_all(live, &[name], to));
            let help =
                if command.is_some() { format!("{first}; this command writes all of them again:") } else { first };
            ViolationText {
                steps: command.into_iter().collect(),
                ..ViolationText::at(steps::versions())
                    .in_version(name)
                    .message(format!(
                        "version {name} is removed: one object that is still stored at it makes this kind unreadable, and \
                         an object whose managedFields name it can no longer be written by server-side apply"
                    ))
                    .help(help)
                    .label(format!("the live CRD has {name}"))
            }
        })
        .collect()
}

/// The versions of the live CRD that the desired one lacks, of those that `is_meant` selects.
fn removed(pair: &CrdPair, is_meant: impl Fn(&CrdVersion) -> bool) -> impl Iterator<Item = &CrdVersion> {
    pair.live.versions.iter().filter(move |version| is_meant(version) && pair.desired.version(&version.name).is_none())
}

/// The storage version changes.
pub fn storage_moved(pair: &CrdPair) -> Vec<ViolationText> {
    let (Some(was), Some(now)) = (pair.live.storage(), pair.desired.storage()) else {
        return Vec::new();
    };
    // If the old version is removed, another rule reports it.
    if was.name == now.name || pair.desired.version(&was.name).is_none() {
        return Vec::new();
    }
    // If fields are lost, `StorageVersionLosesFields` reports more than this rule.
    if !storage_version_loses_fields::judge(pair).is_empty() {
        return Vec::new();
    }
    let moved = ViolationText::at(steps::of_version(now.index, "storage"))
        .in_version(&now.name)
        .message(format!("the storage version changes from {} to {}", was.name, now.name))
        .help(format!(
            "existing objects stay stored at {} until they are next written; keep that version until all of them have \
             been written",
            was.name
        ))
        .label(format!("the live CRD stores at {}", was.name));
    vec![moved]
}
