//! How to remove a stored version: the steps for the operator, with their commands.

use super::words;
use crate::crd::Crd;
use crate::plan::managed;

/// The steps to remove the stored versions of the live CRD that `desired` lacks.
///
/// The API server does not report which objects are stored at a version, so every object must be written once. After
/// that the version can be removed from `status.storedVersions`, and only then does the server allow its removal.
/// Entries of `managedFields` that name the version survive all this: see [`managed`].
pub fn plan(live: &Crd, desired: &Crd) -> Vec<String> {
    let name = &live.name;
    let resource = live.plural_and_group();
    let storage = live.storage().map(|v| &*v.name);
    let removed: Vec<&str> = live.stored_versions().into_iter().filter(|v| desired.version(v).is_none()).collect();
    let stays_at = match storage.filter(|storage| !removed.contains(storage)) {
        Some(storage) => storage.to_owned(),
        None => desired.storage().map(|v| v.name.to_string()).unwrap_or_default(),
    };
    let mut steps = Vec::new();
    if storage.is_some_and(|storage| removed.contains(&storage)) {
        steps.push(format!(
            "deploy this CRD with {} kept in spec.versions (served: true, storage: false) beside {stays_at} (served: \
                true, storage: true)",
            words::listed(&removed)
        ));
    }
    let everywhere = if live.scope == "Cluster" { "" } else { " --all-namespaces" };
    steps.push(format!(
        "kubectl get {resource}{everywhere} -o yaml | kubectl replace -f -   # writes every object once, now at \
            {stays_at}; a StorageVersionMigration of {resource} does the same"
    ));
    let mut stored: Vec<&str> = live.stored_versions().into_iter().filter(|v| !removed.contains(v)).collect();
    if !stored.contains(&stays_at.as_str()) {
        stored.push(&stays_at);
    }
    let status = serde_json::json!({"status": {"storedVersions": stored}});
    steps
        .push(format!("kubectl patch customresourcedefinition {name} --subresource=status --type=merge -p '{status}'"));
    let is_served = |name: &&str| live.served(name).is_some();
    let served: Vec<&str> = removed.iter().copied().filter(is_served).collect();
    if !served.is_empty() {
        let served = words::listed(&served);
        steps.push(format!("once no client uses {served} any more, deploy this CRD with {served} at served: false"));
    }
    steps.push(format!(
        "{}   # moves the entries in managedFields: with an entry at a removed version, the server refuses every \
            server-side apply",
        managed::move_all(live, &removed, &stays_at)
    ));
    steps.push("deploy this change again".to_owned());
    steps.into_iter().enumerate().map(|(i, step)| format!("{}. {step}", i + 1)).collect()
}
