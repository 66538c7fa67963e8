//! Migrations with a conversion webhook.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::losses::digest;
use super::samples::StoredSamples;
use crate::support::{Webhook, control_plane, string_fields};

/// Objects of v1 with `size`, and a CRD that stores at v2, where the field is named `amount`.
fn moved(names: &[&str], webhook: &Webhook) -> StoredSamples {
    let samples = StoredSamples::new();
    samples.apply(samples.builder().version_of_spec("v1", string_fields(&["size", "color"])));
    for name in names {
        samples.create("v1", name, json!({"size": "large", "color": "red"}));
    }
    let crd = samples.builder().version_of_spec("v1", string_fields(&["size", "color"])).storage(false);
    let crd = crd.version_of_spec("v2", string_fields(&["amount", "color"])).storage(true);
    samples.apply(crd.conversion(&webhook.conversion()));
    samples
}

/// Renames the field in both directions.
fn rename(mut object: Value, wanted: &str) -> Value {
    let (from, to) = if wanted.ends_with("/v2") { ("size", "amount") } else { ("amount", "size") };
    if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
        object["spec"][to] = value;
    }
    object["apiVersion"] = wanted.into();
    object
}

/// The same, and loses a value of the object `two`.
pub fn rename_and_lose_color(object: Value, wanted: &str) -> Value {
    let mut object = rename(object, wanted);
    if wanted.ends_with("/v2") && object["metadata"]["name"] == "two" {
        object["spec"].as_object_mut().expect("a spec").remove("color");
    }
    object
}

fn start(convert: impl Fn(Value, &str) -> Value + Send + Sync + 'static) -> Webhook {
    Webhook::start(control_plane(), move |review| Webhook::answer(review, &convert))
}

#[test]
fn a_webhook_converts_what_is_stored() {
    let samples = moved(&["one", "two"], &start(rename));
    let run = samples.migrate(&["--yes", "--prune-stored-versions"]).run();
    run.code(0).stdout_contains("2 objects, to write at v2; stored versions: v1, v2; nothing is lost");
    assert_eq!(samples.version_of("one"), "v2");
    assert_eq!(samples.stored("one")["spec"], json!({"amount": "large", "color": "red"}));
    assert_eq!(samples.stored_versions(), json!(["v2"]));
}

#[test]
fn what_a_webhook_loses_is_found_before_anything_is_written() {
    let samples = moved(&["one", "two"], &start(rename_and_lose_color));
    let run = samples.migrate(&["--yes", "--prune-stored-versions"]).run();
    let namespace = samples.bed.names.namespace.clone();
    run.code(3).stderr_contains(&format!("loses 1 value:\n  | {namespace}/two: spec.color of v1: \"red\""));
    run.stderr_contains("let the conversion webhook keep them at v2");
    assert_eq!(["one", "two"].map(|name| samples.version_of(name)), ["v1", "v1"]);
    samples.migrate(&["--yes", "--prune-stored-versions", "--accept-loss", &digest(&run)]).run().code(0);
    assert_eq!(samples.stored("two")["spec"], json!({"amount": "large"}));
}

#[test]
fn a_webhook_that_refuses_one_object_or_does_not_answer_stops_the_migration() {
    let is_down = Arc::new(AtomicBool::new(false));
    let webhook = Webhook::start(control_plane(), {
        let is_down = Arc::clone(&is_down);
        move |review| match is_down.load(Ordering::SeqCst) {
            true => json!({"kind": "Nonsense"}),
            false if review.to_string().contains("\"bad\"") => json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                "response": {"uid": review["request"]["uid"], "result": {"status": "Failure", "message": "bad is bad"}}}),
            false => Webhook::answer(review, rename),
        }
    });
    let samples = moved(&["bad", "good"], &webhook);
    let run = samples.migrate(&["--yes", "--prune-stored-versions"]).run();
    run.code(1).stderr_contains("bad is bad").stderr_contains("nothing of this CRD was written");
    is_down.store(true, Ordering::SeqCst);
    samples.migrate(&["--yes", "--prune-stored-versions"]).run().code(1).stderr_contains("conversion webhook");
    assert_eq!(["bad", "good"].map(|name| samples.version_of(name)), ["v1", "v1"]);
    assert_eq!(samples.stored_versions(), json!(["v1", "v2"]));
}

#[test]
fn what_a_webhook_makes_of_a_version_that_is_not_served_is_not_proven() {
    let webhook = start(rename);
    let samples = moved(&["one"], &webhook);
    let crd = samples.builder().version_of_spec("v1", string_fields(&["size", "color"])).storage(false).served(false);
    let crd = crd.version_of_spec("v2", string_fields(&["amount", "color"])).storage(true);
    samples.apply(crd.conversion(&webhook.conversion()));
    let run = samples.migrate(&["--yes"]).run();
    run.code(3)
        .stderr_contains("what the conversion webhook makes of objects that are stored at v1 cannot be compared");
    samples.migrate(&["--yes", "--accept-loss", &digest(&run)]).run().code(0);
    assert_eq!(samples.stored("one")["spec"], json!({"amount": "large", "color": "red"}));
}
