//! Reports of an earlier gantry can be read by programs that read current ones.
//!
//! `v1alpha1/` contains reports in their original form, which are never updated. If a test here fails, the report has
//! changed in a way that needs a new `apiVersion`.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// The recorded reports by their names.
fn recorded() -> Vec<(PathBuf, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/offline/reports/v1alpha1");
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let read = |path: PathBuf| {
        let report = serde_json::from_slice(&std::fs::read(&path).expect("a file")).expect("JSON");
        (path, report)
    };
    let reports: Vec<_> = files.map(read).collect();
    assert!(reports.len() >= 8, "{reports:?}");
    reports
}

#[test]
fn reports_of_earlier_versions_follow_the_schema_of_today() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.schema.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).expect("the schema")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (path, report) in recorded() {
        let errors: Vec<String> =
            validator.iter_errors(&report).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
    }
}
