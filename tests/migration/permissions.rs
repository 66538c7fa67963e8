//! The rights that `gantry permissions` prints for a deploy that moves stored objects, and for the server's own migrator.

use std::sync::OnceLock;

use serde_json::json;

use super::samples::StoredSamples;
use crate::support::{ControlPlane, control_plane, rights};

/// With an object at v1, and manifests that move the storage version to v2.
fn moving_with_the_deploy() -> StoredSamples {
    let samples = StoredSamples::new();
    samples.apply(samples.v1());
    samples.create("v1", "one", json!({"a": "1", "b": "2"}));
    samples.bed.write("manifests.yaml", &samples.v1_and_v2(&["a", "b"]).build().to_string());
    samples
}

fn deploy(samples: &StoredSamples, user: &str) -> crate::support::Gantry {
    let checks = ["--migrate", "--force-conflicts", "--preflight", "CRDUpgradeSafety,PermissionValidation"];
    samples.bed.deploy(control_plane().kubeconfig(user), &checks)
}

const CHECKS: [&str; 2] = ["--preflight", "CRDUpgradeSafety,PermissionValidation"];

#[test]
fn the_printed_rights_are_enough_for_a_deploy_that_moves_objects() {
    let samples = moving_with_the_deploy();
    let user = control_plane().user(&json!([]));
    let printed = rights::printed_with(&samples.bed, control_plane(), &user, &[&CHECKS[..], &["--migrate"]].concat());
    rights::grant(control_plane(), &user, &printed);
    let run = deploy(&samples, &user).run();
    run.code(0).stderr_contains("wrote 1 object; verified; status.storedVersions is [v2]");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
}

#[test]
fn the_finding_about_a_missing_right_names_the_command_that_prints_them_all() {
    let samples = moving_with_the_deploy();
    let user = control_plane().user(&json!([]));
    let printed = rights::printed_with(&samples.bed, control_plane(), &user, &CHECKS);
    rights::grant(control_plane(), &user, &printed);
    let run = deploy(&samples, &user).args(["-o", "json"]).run();
    run.code(3).stdout_contains("(gantry permissions --migrate prints everything that the deploy needs)");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v1", json!(["v1"])));
}

#[test]
fn the_printed_rights_are_enough_for_the_servers_own_migrator() {
    static CLUSTER: OnceLock<ControlPlane> = OnceLock::new();
    let migrating = CLUSTER.get_or_init(ControlPlane::start_with_idle_storage_migrator);
    let samples = StoredSamples::moved_on(migrating, &["one"], &["a", "b"]);
    samples.bed.write("manifests.yaml", &samples.v1_and_v2(&["a", "b"]).build().to_string());
    let user = migrating.user(&json!([]));
    let flags = ["--for", "migrate", "--using", "server"];
    let printed = rights::printed_with(&samples.bed, migrating, &user, &flags);
    rights::grant(migrating, &user, &printed);
    // No controller answers: the request is made, read and removed.
    let run = samples.migrate_as(migrating, &user, &["--using", "server", "--yes"]).run();
    run.code(1).stderr_contains("no controller answers the StorageVersionMigration");
    let (_, left) = migrating.get("/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations");
    assert_eq!(left["items"], json!([]));
}

#[test]
fn flags_that_are_about_another_purpose_are_refused() {
    let samples = moving_with_the_deploy();
    for (flags, problem) in [
        (&["--for", "migrate", "--migrate"][..], "--migrate is about a deploy"),
        (&["--for", "snapshot", "--using", "server"], "--using is about a migration"),
    ] {
        let arguments = ["permissions", "-f", "manifests.yaml"];
        let run = samples.bed.gantry(control_plane().kubeconfig("admin"), &arguments).args(flags).run();
        run.code(2).stderr_contains(problem);
    }
}
