//! The document that `gantry migrate -o json` prints, and its table in the documentation.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::samples::StoredSamples;
use crate::support::{Proxy, When, control_plane};

/// The paths of all values: `crds[].losses[].path`. Those of an error are documented with the report.
fn add_paths(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (key, value) in map {
                add_paths(value, &format!("{path}{dot}{key}"), paths);
            }
        }
        Value::Array(items) => {
            for item in items {
                match path {
                    "errors" => drop(paths.insert("errors[]".into())),
                    _ => add_paths(item, &format!("{path}[]"), paths),
                }
            }
        }
        _ => drop(paths.insert(path.to_owned())),
    }
}

/// The first column of the table.
fn documented() -> BTreeSet<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/migrating.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, section) = page.split_once("## The result as JSON").expect("the section");
    let section = section.split("\n## ").next().expect("the section");
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    cells.map(without_brackets).collect()
}

/// A list can also be null.
fn without_brackets(path: &str) -> String {
    path.trim_end_matches("[]").to_owned()
}

#[test]
fn the_table_has_exactly_the_fields_that_are_printed() {
    let mut printed = BTreeSet::new();
    let mut add = |report: Value| add_paths(&report, "", &mut printed);
    let json = ["--yes", "-o", "json"];
    // Values are lost.
    let samples = StoredSamples::moved(&["one"], &["a"]);
    add(samples.migrate(&json).run().code(3).report());
    // It is not known what is lost.
    let unserved = samples.v1().served(false).storage(false);
    samples.set_versions(unserved.version_of_spec("v2", crate::support::string_fields(&["a"])).storage(true));
    add(samples.migrate(&json).run().code(3).report());
    // An object is refused, before and when it is written; then all of it is done.
    let samples = StoredSamples::moved(&["one", "two"], &["a", "b"]);
    let invalid = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
        "message": "denied"});
    for (nth, code) in [(1, 3), (2, 1)] {
        let proxy = Proxy::start(control_plane());
        proxy.answer(When::new("PATCH", "/samples/one").starting_at_nth(nth), 422, invalid.clone());
        let run = samples.bed.gantry(proxy.kubeconfig("admin"), &["migrate", &samples.crd_name()]).args(json).run();
        add(run.code(code).report());
    }
    add(samples.migrate(&json).run().code(0).report());
    // Nothing is to be done.
    add(samples.migrate(&json).run().code(0).report());
    let documented = documented();
    let printed: BTreeSet<String> = printed.iter().map(|path| without_brackets(path)).collect();
    assert_eq!(printed.difference(&documented).collect::<Vec<_>>(), Vec::<&String>::new(), "not documented");
    assert_eq!(documented.difference(&printed).collect::<Vec<_>>(), Vec::<&String>::new(), "not printed");
}
