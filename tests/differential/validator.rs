//! Compares the validator with the real API server, on generated schemas and objects.
//!
//! Many schemas share one CRD, each as a separate field, so one request validates as many values as there are fields.
//! gantry must refuse what the server refuses, with the same messages; an accepted object must come back as gantry's
//! processed object. Updates start from objects that were stored while the CRD accepted anything, so any old object is
//! possible.
//!
//! `GANTRY_DIFFERENTIAL=<schemas>[,<seed>]` sets the length of the run; 2000 schemas give more than 50,000 values.
//! `GANTRY_CRDS=<folder>` tests schemas and rules from the CRDs of a folder.

use std::collections::{BTreeMap, BTreeSet};

use crate::comparison::{FIELDS, Tally, Values, corpus, crd, one_crd};
use crate::generator::{self, Random};
use crate::servers::{ComparedRelease, compared_releases};
use crate::support::{eventually, isolated};
use serde_json::{Value, json};

fn setting() -> (String, String) {
    let setting = std::env::var("GANTRY_DIFFERENTIAL").unwrap_or_else(|_| "100".to_owned());
    let (schemas, seed) = setting.split_once(',').unwrap_or((&setting, "1"));
    (schemas.to_owned(), seed.to_owned())
}

/// How many schemas to generate.
pub fn run_length() -> usize {
    setting().0.parse().expect("GANTRY_DIFFERENTIAL is <schemas>[,<seed>]")
}

pub fn seed() -> u64 {
    setting().1.parse().expect("the seed in GANTRY_DIFFERENTIAL is a number")
}

#[test]
fn the_validator_agrees_with_the_server() {
    for compared in compared_releases() {
        compare("keywords", compared, run_length(), generator::schema, |random, schema| {
            let mut value = generator::value(random, schema);
            for _ in 0..random.below(3) {
                value = generator::broken(random, &value);
            }
            value
        });
    }
}

#[test]
fn rules_are_evaluated_as_on_the_server() {
    // The server compiles rules slowly: a short run uses half as many.
    let schemas = if std::env::var_os("GANTRY_DIFFERENTIAL").is_some() { run_length() } else { run_length() / 2 };
    for compared in compared_releases() {
        compare("rules", compared, schemas, generator::ruled_schema, generator::ruled_value);
    }
}

/// Tests the CRDs of a folder, in a development run: each distinct rule compiles, and has the same results as on the
/// server.
#[test]
fn rules_of_given_crds_are_evaluated_as_on_the_server() {
    let Some(folder) = std::env::var_os("GANTRY_CRDS") else { return };
    for compared in compared_releases() {
        corpus::compare(compared, &isolated().group, folder.as_ref(), seed());
    }
}

fn compare(what: &str, compared: ComparedRelease, schemas: usize, schema: fn(&mut Random) -> Value, value: Values) {
    let group = isolated().group;
    let mut tally = Tally::default();
    for at in 0..schemas.div_ceil(FIELDS) {
        let mut random = Random::new(seed().wrapping_mul(1_000_003).wrapping_add(at as u64));
        let schemas = (0..FIELDS).map(|_| schema(&mut random)).collect();
        one_crd(compared, (&group, at), schemas, value, &mut random, &mut tally);
    }
    tally.judge(compared.release, what);
}

/// Thousands of strings for every format and for patterns: each has the same result as on the server.
#[test]
fn formats_and_patterns_accept_the_same_texts_as_on_the_server() {
    compared_releases().into_iter().for_each(formats_and_patterns_accept_the_same_texts);
}

fn formats_and_patterns_accept_the_same_texts(compared: ComparedRelease) {
    let api = compared.api();
    let group = isolated().group;
    let mut fields: BTreeMap<String, (Value, Vec<&str>)> = BTreeMap::new();
    for (at, (format, texts)) in generator::FORMATS.iter().enumerate() {
        fields.insert(format!("f{at}"), (json!({"type": "string", "format": format}), texts.to_vec()));
    }
    let known: Vec<&str> = generator::PATTERNS.iter().map(|(_, text)| *text).collect();
    let patterns =
        generator::PATTERNS_OF_RE2.iter().copied().chain(generator::PATTERNS.iter().map(|(pattern, _)| *pattern));
    for (at, pattern) in patterns.enumerate() {
        let texts = generator::TEXTS.iter().chain(&known).copied().collect();
        fields.insert(format!("p{at}"), (json!({"type": "string", "pattern": pattern}), texts));
    }
    let lists: BTreeMap<&String, Value> =
        fields.iter().map(|(field, (schema, _))| (field, json!({"type": "array", "items": schema}))).collect();
    let schema = json!({"type": "object", "properties": lists});
    let mut crd = crd(&group, 0);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
    let (status, answer) = api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd);
    assert_eq!(status, 201, "{answer}");
    let resource = format!("/apis/{group}/v1/diff0s");
    eventually("the CRD is served", || (api.get(&resource).0 == 200).then_some(()));
    let schema = compared.compile(&schema).expect("the server took the schema");

    let mut random = Random::new(3);
    let (mut judged, mut refused) = (0, 0);
    for _ in 0..run_length().div_ceil(10) {
        let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": "Diff0", "metadata": {"name": "x"}});
        for (field, (_, texts)) in &fields {
            object[field] = (0..20).map(|_| json!(generator::text_like(&mut random, texts))).collect();
        }
        judged += fields.len() * 20;
        let (_, answer) = api.post(&format!("{resource}?dryRun=All"), &object);
        let theirs: BTreeSet<_> = compared.said_by_server(&answer).into_iter().collect();
        let outcome = schema.process(&mut object, None).outcome;
        assert_eq!(outcome.undecided, []);
        let ours: BTreeSet<_> = outcome.errors.iter().map(|error| compared.said_by_us(error)).collect();
        refused += ours.len();
        let differing: Vec<_> = ours.symmetric_difference(&theirs).take(10).collect();
        assert!(differing.is_empty(), "only one side says {differing:#?}");
    }
    println!("{}: {judged} strings, {refused} refused", compared.release);
    assert!(refused > 0 && refused < judged);
}

/// Metadata of the object itself, with the server's messages.
#[test]
fn metadata_of_objects_is_validated_as_on_the_server() {
    compared_releases().into_iter().for_each(metadata_of_objects_is_validated);
}

fn metadata_of_objects_is_validated(compared: ComparedRelease) {
    let api = compared.api();
    let group = isolated().group;
    assert_eq!(api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd(&group, 1)).0, 201);
    let resource = format!("/apis/{group}/v1/diff1s");
    eventually("the CRD is served", || (api.get(&resource).0 == 200).then_some(()));
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = compared.compile(&schema).expect("a schema");
    let long = "a".repeat(260);
    let owner = json!({"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1", "controller": true});
    let other = json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true});
    for metadata in [
        json!({"name": "x"}),
        json!({"name": "X_y"}),
        json!({"name": long}),
        json!({}),
        json!({"generateName": "x-"}),
        json!({"name": "x", "generateName": "A_B"}),
        json!({"name": "x", "generateName": "A/B"}),
        json!({"name": "x", "labels": {"a/b/c": "x", "-": "é", "ok": "-", "long": long}}),
        json!({"name": "x", "labels": {"/x": "", "A_b/c": "v", "": "v"}}),
        json!({"name": "x", "annotations": {"A.b/C": "é", "-": "", "a b": ""}}),
        json!({"name": "x", "annotations": {"a": "x".repeat(263_000)}}),
        json!({"name": "x", "finalizers": ["a.b/c", "-"]}),
        json!({"name": "x", "finalizers": ["orphan", "foregroundDeletion"]}),
        json!({"name": "x", "ownerReferences": [{"apiVersion": "a/", "kind": "", "name": "", "uid": ""}]}),
        json!({"name": "x", "ownerReferences": [owner, owner]}),
        json!({"name": "x", "ownerReferences": [owner, other]}),
        json!({"name": "x", "generation": -1, "managedFields": [{"operation": "Foo"}]}),
        json!({"name": "x", "labels": {"a": null}, "annotations": null, "unknown": 1}),
    ] {
        let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": "Diff1", "metadata": metadata});
        let judged = |mut object: Value, old: Option<&Value>| {
            let outcome = schema.process(&mut object, old).outcome;
            outcome.errors.iter().map(|error| compared.said_by_us(error)).collect::<BTreeSet<_>>()
        };
        let said_by_server = |answer| compared.said_by_server(answer).into_iter().collect::<BTreeSet<_>>();
        let (status, answer) = api.post(&format!("{resource}?dryRun=All"), &object);
        assert!(matches!(status, 201 | 422), "{metadata}: {answer}");
        assert_eq!(judged(object.clone(), None), said_by_server(&answer), "{metadata}");

        // The same as an update of an object without any of it.
        if metadata["name"] != "x" {
            continue;
        }
        let plain = json!({"apiVersion": object["apiVersion"], "kind": "Diff1", "metadata": {"name": "x"}});
        let (status, old) = api.post(&resource, &plain);
        assert_eq!(status, 201, "{old}");
        for field in ["uid", "resourceVersion"] {
            object["metadata"][field] = old["metadata"][field].clone();
        }
        let (status, answer) = api.put(&format!("{resource}/x?dryRun=All"), &object);
        assert!(matches!(status, 200 | 422), "{metadata}: {answer}");
        assert_eq!(judged(object, Some(&old)), said_by_server(&answer), "update: {metadata}");
        assert_eq!(api.delete(&format!("{resource}/x")).0, 200);
    }
}
