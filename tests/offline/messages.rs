//! Every message of the rules of `CRDUpgradeSafety`, in one snapshot: its diff shows the effect of a changed message.
//!
//! The built binary checks each pair of `tests/fixtures/crd-upgrade-safety`, with the live CRD from a folder.
//! `INSTA_UPDATE=always cargo test --test offline messages` updates the snapshot.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use gantry_preflight::crd_upgrade_safety::rules::RULES;
use serde_json::Value;

use crate::sentences::words;

/// The report of a check under `preset: documented`.
fn report(fixture: &Path) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let live = folder.path().join("live");
    std::fs::create_dir(&live).expect("a folder");
    std::fs::copy(fixture.join("live.yaml"), live.join("crd.yaml")).expect("a copy");
    let output = Command::new(env!("CARGO_BIN_EXE_gantry"))
        .args(["check", "-f", "desired.yaml", "-o", "json", "--preflight", "CRDUpgradeSafety", "--target"])
        .arg(format!("dir:{}", live.display()))
        .current_dir(fixture)
        .env_clear()
        .env("HOME", folder.path())
        .output()
        .expect("gantry runs");
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{}: {e}: {error}", fixture.display()))
}

#[test]
fn messages_of_the_rules_are_those_of_the_snapshot() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/crd-upgrade-safety");
    let entries = std::fs::read_dir(folder).expect("the fixtures");
    let mut fixtures: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    fixtures.sort();
    let mut all = String::new();
    let mut seen = BTreeSet::new();
    for fixture in &fixtures {
        let report = report(fixture);
        let _ = writeln!(all, "## {}\n", fixture.file_name().expect("a name").to_string_lossy());
        for finding in report["checks"][0]["findings"].as_array().expect("findings") {
            seen.insert(finding["rule"].as_str().expect("a rule").to_owned());
            let _ = writeln!(all, "{}", words(finding));
        }
    }
    let unseen: Vec<&str> = RULES.iter().map(|rule| rule.doc.name).filter(|name| !seen.contains(*name)).collect();
    assert!(unseen.is_empty(), "no fixture shows a sentence of {unseen:?}");
    insta::assert_snapshot!(all);
}
