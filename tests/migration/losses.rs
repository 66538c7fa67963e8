//! Migrations that lose values, or may.

use serde_json::{Value, json};

use super::samples::StoredSamples;
use crate::support::{Output, string_fields};

/// The digest that a refusal prints.
pub fn digest(run: &Output) -> String {
    let words: Vec<&str> = run.stderr.split(|c: char| c.is_whitespace()).collect();
    let at = words.iter().position(|word| *word == "--accept-loss").unwrap_or_else(|| panic!("{run}"));
    words[at + 1].to_owned()
}

#[test]
fn lost_values_are_listed_and_block_until_exactly_they_are_accepted() {
    let samples = StoredSamples::moved(&["one"], &["a"]);
    samples.create("v1", "none", json!({"a": "1"}));
    let run = samples.migrate(&["--yes"]).run();
    let namespace = samples.bed.names.namespace.clone();
    run.code(3).stderr_contains(&format!("loses 1 value:\n  | {namespace}/one: spec.b of v1: \"2\""));
    run.stderr_contains("add these fields to v2 in the CRD, or convert with a webhook");
    assert_eq!((samples.version_of("one").as_str(), samples.stored_versions()), ("v1", json!(["v1", "v2"])));

    let accepted = digest(&run);
    // With another value, it is another loss.
    let patch = json!({"spec": {"b": "3"}});
    samples.apply(samples.v1().version_of_spec("v2", string_fields(&["a"])).status_subresource());
    crate::support::eventually("v1 to be stored", || {
        let path = format!("{}/one", samples.path("v1"));
        assert_eq!(crate::support::control_plane().patch(&path, &patch).0, 200);
        (samples.stored("one")["spec"]["b"] == "3").then_some(())
    });
    samples.apply(samples.v1_and_v2(&["a"]));
    let run = samples.migrate(&["--yes", "--accept-loss", &accepted]).run();
    run.code(3).stderr_contains("spec.b of v1: \"3\"");
    let accepted = digest(&run);
    // What is lost is said although it was accepted.
    let plan = samples.migrate(&["--dry-run", "--accept-loss", &accepted]).run();
    plan.code(0).stdout_contains("1 value is lost");
    samples.migrate(&["--yes", "--prune-stored-versions", "--accept-loss", &accepted]).run().code(0);
    assert_eq!((samples.version_of("one").as_str(), samples.stored("one")["spec"].clone()), ("v2", json!({"a": "1"})));
}

#[test]
fn an_old_version_that_is_not_served_and_has_other_fields_proves_nothing() {
    let samples = StoredSamples::moved(&["one"], &["a"]);
    let unserved = samples.v1().served(false).storage(false).version_of_spec("v2", string_fields(&["a"]));
    samples.apply(unserved.storage(true).status_subresource());
    let run = samples.migrate(&["--yes", "--prune-stored-versions"]).run();
    run.code(3).stderr_contains("that are stored at v1 can have values of spec.b, which v2 lacks");
    run.stderr_contains("served: true for v1");
    let report: Value = serde_json::from_str(&samples.migrate(&["-o", "json"]).run().code(3).stdout).expect("JSON");
    assert_eq!(report["crds"][0]["unproven"].as_array().map(Vec::len), Some(1), "{report:#}");
    assert_eq!(samples.version_of("one"), "v1");
    // With all fields, no request has to read it.
    let complete = samples.v1().served(false).storage(false).version_of_spec("v2", string_fields(&["a", "b"]));
    samples.apply(complete.storage(true).status_subresource());
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(0);
    assert_eq!(samples.stored("one")["spec"], json!({"a": "1", "b": "2"}));
}

#[test]
fn values_that_only_the_default_of_the_old_version_gives_are_reported_as_values() {
    let samples = StoredSamples::new();
    let schema = json!({"type": "object", "properties": {"mode": {"type": "string", "default": "fast"}}});
    samples.apply(samples.builder().version_of_spec("v1", schema.clone()));
    samples.create("v1", "one", json!({}));
    let both = samples.builder().version_of_spec("v1", schema).storage(false);
    samples.apply(both.version_of_spec("v2", string_fields(&["a"])).storage(true));
    samples.migrate(&["--yes"]).run().code(3).stderr_contains("spec.mode of v1: \"fast\"");
}
