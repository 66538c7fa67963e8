//! `--using server`: the server's own migrator writes the objects.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::samples::StoredSamples;
use crate::support::{ControlPlane, control_plane, eventually, string_fields};

/// A control plane whose migrations no controller carries out.
fn idle() -> &'static ControlPlane {
    static CLUSTER: OnceLock<ControlPlane> = OnceLock::new();
    CLUSTER.get_or_init(ControlPlane::start_with_idle_storage_migrator)
}

const MIGRATIONS: &str = "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations";

/// The resources that `StorageVersionMigration`s of this server are about.
fn migrations_of(cp: &ControlPlane, group: &str) -> Vec<Value> {
    let (status, list) = cp.get(MIGRATIONS);
    assert_eq!(status, 200, "{list:#}");
    let items = list["items"].as_array().expect("items").iter();
    items.filter(|item| item["spec"]["resource"]["group"] == group).cloned().collect()
}

#[test]
fn the_servers_own_migrator_writes_and_gantry_verifies() {
    static CLUSTER: OnceLock<ControlPlane> = OnceLock::new();
    let migrating = CLUSTER.get_or_init(ControlPlane::start_with_idle_storage_migrator);
    let samples = StoredSamples::moved_on(migrating, &["one", "two"], &["a", "b"]);
    migrating.start_migrating_controllers();
    let run = samples.migrate(&["--using", "server", "--yes", "-o", "json"]).spawn();
    let group = &samples.bed.names.group;
    eventually("the controller notes the resourceVersion to migrate up to", || {
        let migrations = migrations_of(migrating, group);
        let is_noted = |migration: &Value| migration["status"]["resourceVersion"].is_string();
        // Or it has ended already.
        (migrations.first().is_some_and(is_noted) || samples.version_of("one") == "v2").then_some(())
    });
    // It waits until its cache is as new: for this event, or a minute for the server's bookmark.
    samples.create("v2", "three", json!({"a": "1", "b": "2"}));
    let report: Value = serde_json::from_str(&run.wait().code(0).stdout).expect("JSON");
    let result = &report["crds"][0]["result"];
    assert_eq!((&result["outcome"], &result["storedVersions"]), (&json!("migrated"), &json!(["v2"])), "{result:#}");
    // The controller wrote them.
    assert_eq!(result["written"], 0, "{result:#}");
    assert_eq!(["one", "two"].map(|name| samples.version_of(name)), ["v2", "v2"]);
    assert_eq!(samples.stored_versions(), json!(["v2"]));
    assert_eq!(migrations_of(migrating, group), Vec::<Value>::new());
    // The server lets the old version go.
    samples.apply(samples.builder().version_of_spec("v2", string_fields(&["a", "b"])).status_subresource());
}

#[test]
fn what_would_be_lost_is_found_before_the_server_is_asked() {
    let samples = StoredSamples::moved_on(idle(), &["one"], &["a"]);
    let run = samples.migrate(&["--using", "server", "--yes"]).run();
    run.code(3).stderr_contains("spec.b of v1: \"2\"");
    assert_eq!(migrations_of(idle(), &samples.bed.names.group), Vec::<Value>::new());
    assert_eq!(samples.version_of("one"), "v1");
}

#[test]
fn a_server_without_a_migrator_of_its_own_is_named_before_any_object_is_read() {
    let samples = StoredSamples::moved(&["one"], &["a", "b"]);
    let run = samples.migrate(&["--using", "server", "--yes"]).run();
    run.code(1).stderr_contains("the server has no migrator of its own").stderr_contains("leave out --using server");
    assert_eq!(run.stdout, "");
    assert_eq!((samples.version_of("one").as_str(), control_plane().get(MIGRATIONS).0), ("v1", 404));
}

#[test]
fn a_migration_that_no_controller_answers_ends_with_the_next_step() {
    let samples = StoredSamples::moved_on(idle(), &["one"], &["a", "b"]);
    let run = samples.migrate(&["--using", "server", "--yes"]).run();
    run.code(1)
        .stderr_contains("no controller answers the StorageVersionMigration")
        .stderr_contains("leave out --using server");
    assert_eq!(migrations_of(idle(), &samples.bed.names.group), Vec::<Value>::new());
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0);
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v2", json!(["v2"])));
}
