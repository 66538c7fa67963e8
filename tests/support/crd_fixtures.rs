//! The pairs of CRDs that show each rule: `tests/fixtures/crd-upgrade-safety`.

use std::fs;
use std::path::{Path, PathBuf};

/// The rules whose findings stay errors under `mode: warn`, because the server refuses the CRD.
pub const PREDICTED_REFUSALS: [&str; 4] = ["CRDInvalid", "KindChanged", "NoScopeChange", "NoStoredVersionRemoved"];

/// The folders of the pairs whose live CRD a server accepts, sorted. The others are compared without a server
/// (`tests/offline/crd_rules.rs`).
pub fn crd_fixture_folders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/crd-upgrade-safety");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.join("offline").exists());
    paths.sort();
    paths
}
