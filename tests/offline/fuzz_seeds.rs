//! Runs the fuzz targets on their seeds in `fuzz/seeds/<target>/`: inputs with distinct behaviour, and inputs of fixed
//! bugs.

#[path = "../../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

fn run_seeds(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the folder of the seeds") {
        let path = entry.expect("a seed").path();
        let data = fs::read(&path).expect("a seed");
        assert!(catch_unwind(|| run(&data)).is_ok(), "seed {}", path.display());
        count += 1;
    }
    assert!(count >= 10, "{} has {count} seeds", folder.display());
}

#[test]
fn seeds_of_manifests_are_handled() {
    run_seeds("manifest", targets::manifest::run);
}

#[test]
fn seeds_of_configurations_are_handled() {
    run_seeds("configuration", targets::configuration::run);
}

#[test]
fn seeds_of_patterns_are_handled() {
    run_seeds("pattern", targets::pattern::run);
}

#[test]
fn seeds_of_cel_are_handled() {
    run_seeds("cel", targets::cel::run);
}

#[test]
fn seeds_of_schemas_are_handled() {
    run_seeds("schema", targets::schema::run);
}

#[test]
fn seeds_of_proofs_are_handled() {
    run_seeds("proof", targets::proof::run);
}

#[test]
fn seeds_of_ranges_are_handled() {
    run_seeds("range", targets::range::run);
}

#[test]
fn seeds_of_catalogs_are_handled() {
    run_seeds("catalog", targets::catalog::run);
}

#[test]
fn seeds_of_reviews_are_handled() {
    run_seeds("review", targets::review::run);
}
