//! How to remove a stored version: the steps for the operator, with their commands.

use super::words;
use gantry_core::crd::lost_fields;
use gantry_core::crd::{Crd, CrdPair, CrdVersion};

/// The steps to remove the stored versions of the live CRD that the desired one lacks.
///
/// The API server does not report which objects are stored at a version, so every object must be written once, at a
/// version that keeps all their fields. After that the version can be removed from `status.storedVersions`, and only
/// then does the server allow its removal. `gantry migrate` does this. Entries of `managedFields` that name the version
/// survive it until nobody can write at the version any more: then the same command moves them.
pub fn plan(pair: &CrdPair) -> Vec<String> {
    let CrdPair { live, desired, .. } = pair;
    let name = &live.name;
    let storage = live.storage().map(|v| &*v.name);
    let removed: Vec<&str> = live.stored_versions().into_iter().filter(|v| desired.version(v).is_none()).collect();
    let stays_at = match storage.filter(|storage| !removed.contains(storage)) {
        Some(storage) => storage.to_owned(),
        None => desired.storage().map(|v| v.name.to_string()).unwrap_or_default(),
    };
    let mut steps = Vec::new();
    let at = written_at(desired, &stays_at);
    let keeping: Vec<&str> = [Some(stays_at.as_str()), at].into_iter().flatten().collect();
    let lost = lost_by_writing(pair, &keeping);
    if !lost.is_empty() {
        let keeping = if at.is_some_and(|at| at != stays_at) { keeping.join(" and ") } else { stays_at.clone() };
        steps.push(format!(
            "add to {keeping} the fields that it lacks, or convert with a webhook: {}; without them, step 3 drops these \
             values",
            lost.join("; ")
        ));
    }
    if storage.is_some_and(|storage| removed.contains(&storage)) {
        steps.push(format!(
            "deploy this CRD with {} kept in spec.versions (served: true, storage: false) beside {stays_at} (served: \
                true, storage: true)",
            words::listed(&removed)
        ));
    } else if !lost.is_empty() {
        steps.push(format!("deploy this CRD with these fields and with {} kept as it is", words::listed(&removed)));
    }
    // Only a request at a version shows what the webhook makes of an object that is stored at it.
    let is_hidden = |name: &&str| live.converts_by_webhook() && live.served(name).is_none();
    let hidden: Vec<&str> = removed.iter().copied().filter(is_hidden).collect();
    if !hidden.is_empty() {
        let hidden = words::listed(&hidden);
        steps.push(format!(
            "deploy the CRD with {hidden} at served: true, so that gantry can read what the webhook makes of the objects"
        ));
    }
    steps.push(format!(
        "prove that no object loses a value, write each one at {stays_at}, and take {} out of status.storedVersions: gantry \
         migrate {name} --to {stays_at} --prune-stored-versions",
        words::listed(&removed)
    ));
    let is_served = |name: &&str| live.served(name).is_some() || is_hidden(name);
    let served: Vec<&str> = removed.iter().copied().filter(is_served).collect();
    if !served.is_empty() {
        let served = words::listed(&served);
        steps.push(format!("once no client uses {served} any more, deploy this CRD with {served} at served: false"));
    }
    steps.push(format!(
        "move the entries in managedFields; with an entry at a removed version, the server refuses every server-side apply: \
         gantry migrate {name}"
    ));
    steps.push(match lost.is_empty() {
        true => "deploy this change again".to_owned(),
        false => "deploy this change again, with the fields of step 1".to_owned(),
    });
    steps.into_iter().enumerate().map(|(i, step)| format!("{}. {step}", i + 1)).collect()
}

/// The command that writes every object as it is at the storage version, whatever `status.storedVersions` says, and moves
/// entries of `managedFields` at versions that are not served.
pub fn write_all(live: &Crd) -> String {
    format!("gantry migrate {} --every-object", live.name)
}

/// The command that writes the objects that are not stored at the storage version yet, and shortens
/// `status.storedVersions`. While a version that a webhook converts is not served, it refuses: it cannot read what the
/// webhook makes of the objects.
pub fn write_stored(live: &Crd) -> String {
    format!("gantry migrate {} --prune-stored-versions", live.name)
}

/// The version to read and write objects at: the storage version, if it is served.
fn written_at<'c>(desired: &'c Crd, storage: &str) -> Option<&'c str> {
    let served = desired.served(storage).or_else(|| desired.served_versions().next());
    served.map(|version| &*version.name)
}

/// The fields that a write at these versions drops from stored objects, each with the version that has it. None if a
/// webhook converts.
fn lost_by_writing(pair: &CrdPair, keeping: &[&str]) -> Vec<String> {
    if pair.live.converts_by_webhook() || pair.converts_by_webhook() {
        return Vec::new();
    }
    let lost_of = |from: &CrdVersion| {
        let into = keeping.iter().filter_map(|name| pair.desired.version(name));
        let mut lost: Vec<String> =
            into.filter(|to| to.name != from.name).flat_map(|to| lost_fields::lost_between(from, to)).collect();
        lost.sort();
        lost.dedup();
        (!lost.is_empty()).then(|| format!("{} of {}", lost.join(", "), from.name))
    };
    let stored = pair.live.stored_versions().into_iter().filter_map(|name| pair.live.version(name));
    stored.filter_map(lost_of).collect()
}
