//! What differs between the releases of Kubernetes that gantry supports, on a real server of each: the server's answer
//! and gantry's word (docs/internals/releases.md).
//!
//! `GANTRY_RELEASES=1.28,1.30` limits the tests to these releases.

// On other systems the crate that starts the servers is empty.
#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod deploys;
mod features;
mod fixtures;
mod narrowings;
mod probes;
mod table;

/// The releases to test, from the oldest to the newest.
fn tested_releases() -> Vec<&'static str> {
    support::chosen_releases().unwrap_or_else(gantry_testbed::releases)
}

/// `30` of `1.30`.
fn minor_version(release: &str) -> u32 {
    release.strip_prefix("1.").and_then(|minor| minor.parse().ok()).expect("a release such as 1.30")
}

/// Fails with all differences at once.
fn assert_no_differences(what: &str, differences: &[String]) {
    assert!(differences.is_empty(), "{what}: {} differences\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn the_weekly_workflow_tests_each_release() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/workflows/releases.yml");
    let text = std::fs::read_to_string(path).expect("the workflow");
    let workflow: serde_json::Value = serde_yaml::from_str(&text).expect("YAML");
    let releases = &workflow["jobs"]["releases"]["strategy"]["matrix"]["release"];
    assert_eq!(*releases, serde_json::json!(gantry_testbed::releases()));
}
