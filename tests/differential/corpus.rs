//! Rules and schemas of given CRDs, judged here and by the API server.
//!
//! A rule is evaluated only where the rest of an object is valid, and what is generated for a large schema seldom is.
//! So each node that has rules becomes a field of its own, without what keeps values from being valid; and the CRDs as
//! they are get objects, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gantry::validation::Schema;
use gantry::validation::cel::compile_rules;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FIELDS, Tally, one_crd, texts_of};
use crate::generator::{Random, ruled_value};
use crate::support::{Api, eventually};

/// Objects for each CRD.
const OBJECTS: usize = 12;

/// Compares what is in the CRDs of a folder.
pub fn compare(api: &Api, group: &str, folder: &Path, seed: u64) {
    let mut schemas = BTreeMap::new();
    read(folder, &mut schemas);
    let mut nodes = BTreeMap::new();
    let (mut rules, mut distinct, mut undecided) = (0, BTreeSet::new(), Vec::new());
    for (_, schema) in schemas.values() {
        collect(schema, true, &mut |node, is_root| {
            let validations = node["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
            rules += validations.len();
            for rule in compile_rules(node, &validations, is_root) {
                distinct.insert(rule.source().to_owned());
                undecided.extend(rule.problem().map(|why| format!("{}: {why}", rule.source())));
            }
            if !is_root {
                let lenient = lenient(node);
                nodes.insert(lenient.to_string(), lenient);
            }
        });
    }
    println!(
        "{} schemas, {rules} rules, {} distinct, {} undecided; {} nodes",
        schemas.len(),
        distinct.len(),
        undecided.len(),
        nodes.len()
    );
    let mut tally = Tally::default();
    let nodes: Vec<Value> = nodes.into_values().collect();
    for (at, nodes) in nodes.chunks(FIELDS / 2).enumerate() {
        let mut random = Random::new(seed.wrapping_mul(31).wrapping_add(at as u64));
        one_crd(api, (group, at), nodes.to_vec(), ruled_value, &mut random, &mut tally);
    }
    let (mut accepted, mut refused, mut skipped) = (0, 0, 0);
    let mut random = Random::new(seed);
    for (at, (name, (status, schema))) in schemas.iter().enumerate() {
        match whole(api, &format!("c{at}.{group}"), (*status, schema), &mut random, &mut tally) {
            Some(counts) => (accepted, refused) = (accepted + counts.0, refused + counts.1),
            None => {
                skipped += 1;
                println!("the server does not take {name}");
            }
        }
    }
    println!("whole CRDs: {accepted} objects accepted, {refused} refused; {skipped} CRDs not taken by the server");
    assert_eq!(undecided, Vec::<String>::new());
    tally.judge("rules of CRDs");
}

/// The schemas of all CRDs in a folder, each once, and whether they have a status subresource.
fn read(folder: &Path, schemas: &mut BTreeMap<String, (bool, Value)>) {
    for entry in std::fs::read_dir(folder).expect("the folder of GANTRY_CRDS").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, schemas);
            continue;
        }
        if !path.extension().is_some_and(|ending| ending == "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a readable file");
        for document in serde_yaml::Deserializer::from_str(&text) {
            let Ok(crd) = Value::deserialize(document) else { continue };
            for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
                let schema = &version["schema"]["openAPIV3Schema"];
                if schema.is_object() {
                    let has_status = version["subresources"]["status"].is_object();
                    // The text is the key, so that each schema comes once.
                    let name = format!("{} {} {}", crd["metadata"]["name"], version["name"], without_prose(schema));
                    schemas.insert(name, (has_status, without_prose(schema)));
                }
            }
        }
    }
}

fn without_prose(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            // A property may be called description; its schema is an object.
            let kept = map.iter().filter(|(key, value)| *key != "description" || !value.is_string());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_prose(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_prose).collect(),
        other => other.clone(),
    }
}

/// Each node with rules along the structure, and whether it is the root.
fn collect(schema: &Value, is_root: bool, found: &mut dyn FnMut(&Value, bool)) {
    if schema.get("x-kubernetes-validations").is_some() {
        found(schema, is_root);
    }
    for child in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|map| map.values()) {
        collect(child, false, found);
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child) = schema.get(keyword).filter(|child| child.is_object()) {
            collect(child, false, found);
        }
    }
}

/// The schema without what keeps generated values from being valid.
fn lenient(schema: &Value) -> Value {
    let mut lenient = schema.clone();
    let keys = schema.get("x-kubernetes-list-map-keys").cloned();
    if let Some(map) = lenient.as_object_mut() {
        for keyword in [
            "pattern",
            "minLength",
            "minItems",
            "minProperties",
            "required",
            "allOf",
            "anyOf",
            "oneOf",
            "not",
            "minimum",
            "maximum",
            "multipleOf",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "default",
        ] {
            map.remove(keyword);
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(child) = map.get_mut(keyword).filter(|child| child.is_object()) {
                *child = self::lenient(child);
            }
        }
        if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut) {
            properties.values_mut().for_each(|child| *child = self::lenient(child));
        }
    }
    if let Some(keys) = keys {
        lenient["items"]["required"] = keys;
    }
    lenient
}

/// A CRD with this schema and objects for it; how many of them were accepted and refused by both. None if the server
/// does not take the CRD.
fn whole(
    api: &Api,
    group: &str,
    (status, schema): (bool, &Value),
    random: &mut Random,
    tally: &mut Tally,
) -> Option<(usize, usize)> {
    let mut crd = super::crd(group, 0);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
    if status {
        crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    }
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    if api.post(collection, &crd).0 != 201 {
        return None;
    }
    let resource = format!("/apis/{group}/v1/diff0s");
    eventually("the CRD is served", || (api.get(&resource).0 == 200).then_some(()));
    let compiled = Schema::compile(schema).expect("the server took the schema").with_status_subresource(status);
    let (mut accepted, mut refused) = (0, 0);
    let bare = lenient(schema);
    for at in 0..OBJECTS {
        // The fewer broken keywords, the more rules are evaluated.
        let mut object = ruled_value(random, if at % 2 == 0 { &bare } else { schema });
        if !object.is_object() {
            continue;
        }
        object["apiVersion"] = json!(format!("{group}/v1"));
        object["kind"] = json!("Diff0");
        object["metadata"] = json!({"name": "x"});
        let (status, answer) = api.post(&format!("{resource}?dryRun=All"), &object);
        let theirs = texts_of(&answer);
        let processed = compiled.process(&mut object.clone(), None);
        let ours: BTreeSet<_> =
            processed.outcome.errors.iter().map(|error| (error.path.clone(), error.body())).collect();
        match status {
            201 if processed.outcome.is_accepted() => accepted += 1,
            422 if ours == theirs => refused += 1,
            400 if ours.len() == 1 => refused += 1,
            _ => {
                let differing: Vec<_> = ours.symmetric_difference(&theirs).take(5).collect();
                let open = &processed.outcome.undecided;
                tally.disagreements.push(format!("{status}: only one side says {differing:#?} {open:?}\n  {object}"));
            }
        }
    }
    api.delete(&format!("{collection}/diff0s.{group}"));
    Some((accepted, refused))
}
