//! The pairs of CRDs that show each rule (`tests/fixtures/crd-upgrade-safety`), on a server of each release.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{assert_no_differences, minor_version, tested_releases};
use crate::support::{ControlPlane, Gantry, PREDICTED_REFUSALS, crd_fixture_folders, isolated};

/// Fixtures with a field that earlier releases drop, and the first release (1.N) that keeps it.
const NEW_FIELDS: [(&str, u32); 1] = [("selectable-field-removed", 31)];

#[test]
#[ignore = "builds API servers of several releases"]
fn each_release_refuses_the_upgrades_that_the_rules_say_it_refuses() {
    let mut differences = Vec::new();
    for release in tested_releases() {
        let cp = ControlPlane::start_release(release);
        for folder in crd_fixture_folders() {
            let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
            if NEW_FIELDS.iter().any(|(fixture, since)| *fixture == name && minor_version(release) < *since) {
                continue;
            }
            differences.extend(difference(&cp, &folder).map(|found| format!("{release} {name}: {found}")));
        }
    }
    assert_no_differences("the rules' examples", &differences);
}

/// How gantry's word differs from the server's, or from the findings that the fixture expects.
fn difference(cp: &ControlPlane, folder: &Path) -> Option<String> {
    let names = isolated();
    let text = |file: &str| {
        let text = fs::read_to_string(folder.join(file)).expect("a file of the fixture");
        text.replace("test.example.com", &names.group)
    };
    let live: Value = serde_yaml::from_str(&text("live.yaml")).expect("a CRD");
    let (status, answer) = cp.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &live);
    if status != 201 {
        return Some(format!("the live CRD is refused: {}", answer["message"]));
    }
    let path = cp.path_of(&live);
    cp.wait_until_served(&path);
    let arguments = ["check", "-f", "-", "--preflight", "CRDUpgradeSafety", "--force-conflicts", "-o", "json"];
    let run = Gantry::new().kubeconfig(cp.kubeconfig("admin")).args(arguments).stdin(text("desired.yaml")).run();
    let report = run.report();
    let found = report["checks"][0]["findings"].as_array().cloned().unwrap_or_default();
    let expected: Vec<Value> = serde_yaml::from_str(&text("expected.yaml")).expect("findings");
    let [found_rules, expected_rules] = [&found, &expected].map(|findings| rules_and_places(findings));
    if found_rules != expected_rules {
        return Some(format!("expected {expected_rules:?}, found {found_rules:?}"));
    }
    let desired: Value = serde_yaml::from_str(&text("desired.yaml")).expect("a CRD");
    let parameters = "?fieldManager=gantry&force=true&fieldValidation=Strict&dryRun=All";
    let (status, answer) = cp.apply_to(&format!("{}{parameters}", cp.path_of(&desired)), &desired);
    let is_predicted = found.iter().any(|finding| PREDICTED_REFUSALS.iter().any(|rule| finding["rule"] == *rule));
    match (status, is_predicted) {
        (200 | 201, false) => None,
        (200 | 201, true) => Some("gantry says that the server refuses it, and it does not".to_owned()),
        (_, true) => None,
        (_, false) => Some(format!("the server refuses it, and gantry does not say so: {}", answer["message"])),
    }
}

/// Rule, severity, version and path of each finding.
fn rules_and_places(findings: &[Value]) -> Vec<String> {
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let place = |finding: &Value| ["rule", "severity", "version", "path"].map(|key| text(finding, key)).join(" ");
    findings.iter().map(place).collect()
}
