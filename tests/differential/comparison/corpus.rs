//! Validates rules and schemas of given CRDs with gantry and with the API server.
//!
//! A rule is evaluated only if the rest of an object is valid, which a generated object for a large schema rarely is.
//! So each node with rules becomes a separate field, without the keywords that make values invalid; and the original
//! CRDs are tested with objects, too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gantry_k8s_cel::compile_rules;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FIELDS, Tally, one_crd};
use crate::generator::{Random, ruled_value};
use crate::servers::ComparedRelease;
use crate::support::eventually;

/// The number of objects for each CRD.
const OBJECTS: usize = 12;
/// The server takes a moment to serve a new CRD; meanwhile another one is tested.
const THREADS: usize = 8;

/// Compares the rules and schemas of the CRDs in a folder.
pub fn compare(compared: ComparedRelease, group: &str, folder: &Path, seed: u64) {
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
    assert_eq!(undecided, Vec::<String>::new());
    let mut tally = Tally::default();
    let nodes: Vec<Value> = nodes.into_values().collect();
    for (at, nodes) in nodes.chunks(FIELDS / 2).enumerate() {
        let mut random = Random::new(seed.wrapping_mul(31).wrapping_add(at as u64));
        one_crd(compared, (group, at), nodes.to_vec(), ruled_value, &mut random, &mut tally);
    }
    tally.judge(compared.release, "nodes with rules");
    let schemas: Vec<_> = schemas.into_iter().enumerate().collect();
    let results: Vec<Whole> = std::thread::scope(|scope| {
        let threads: Vec<_> = schemas
            .chunks(schemas.len().div_ceil(THREADS).max(1))
            .map(|part| {
                scope.spawn(move || part.iter().map(|one| whole(compared, group, one, seed)).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    let sum = |of: fn(&Whole) -> usize| results.iter().map(of).sum::<usize>();
    let disagreements: Vec<&String> = results.iter().flat_map(|result| &result.disagreements).collect();
    println!(
        "whole CRDs: {} objects accepted, {} refused; {} CRDs that the server does not take; {} disagreements",
        sum(|result| result.accepted),
        sum(|result| result.refused),
        sum(|result| usize::from(!result.is_taken)),
        disagreements.len()
    );
    assert!(disagreements.is_empty(), "{:#?}", &disagreements[..disagreements.len().min(10)]);
}

/// The results for the objects of one CRD.
#[derive(Default)]
struct Whole {
    is_taken: bool,
    accepted: usize,
    refused: usize,
    disagreements: Vec<String>,
}

/// The schemas of all CRDs in a folder, without duplicates, and whether they have a status subresource.
fn read(folder: &Path, schemas: &mut BTreeMap<String, (bool, Value)>) {
    for entry in std::fs::read_dir(folder).expect("the folder of GANTRY_CRDS").flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, schemas);
            continue;
        }
        if path.extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a readable file");
        for document in serde_yaml::Deserializer::from_str(&text) {
            let Ok(crd) = Value::deserialize(document) else { continue };
            for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
                let schema = &version["schema"]["openAPIV3Schema"];
                if schema.is_object() {
                    let has_status = version["subresources"]["status"].is_object();
                    // The text is the key, which removes duplicates.
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
            // A property can be called `description`; its schema is an object.
            let kept = map.iter().filter(|(key, value)| *key != "description" || !value.is_string());
            Value::Object(kept.map(|(key, value)| (key.clone(), without_prose(value))).collect())
        }
        Value::Array(items) => items.iter().map(without_prose).collect(),
        other => other.clone(),
    }
}

/// Each node with rules in the schema's structure, and whether it is the root.
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

/// The schema without the keywords that make generated values invalid.
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

/// Creates a CRD with this schema and compares both results for objects of it.
fn whole(
    compared: ComparedRelease,
    group: &str,
    (at, (name, (has_status, schema))): &(usize, (String, (bool, Value))),
    seed: u64,
) -> Whole {
    let api = compared.api();
    let group = format!("c{at}.{group}");
    let mut crd = super::crd(&group, 0);
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone();
    if *has_status {
        crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    }
    let mut result = Whole::default();
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (status, answer) = api.post(collection, &crd);
    if status != 201 {
        println!("{}: {}", name.chars().take(80).collect::<String>(), answer["message"]);
        return result;
    }
    result.is_taken = true;
    let resource = format!("/apis/{group}/v1/diff0s");
    eventually("the CRD is served", || (api.get(&resource).0 == 200).then_some(()));
    let compiled = compared.compile(schema).expect("the server took the schema").with_status_subresource(*has_status);
    let bare = lenient(schema);
    let mut random = Random::new(seed.wrapping_add(*at as u64));
    for at in 0..OBJECTS {
        // With fewer broken keywords, more rules are evaluated.
        let mut object = ruled_value(&mut random, if at % 2 == 0 { &bare } else { schema });
        if !object.is_object() {
            continue;
        }
        object["apiVersion"] = json!(format!("{group}/v1"));
        object["kind"] = json!("Diff0");
        object["metadata"] = json!({"name": "x"});
        let (status, answer) = api.post(&format!("{resource}?dryRun=All"), &object);
        let theirs: BTreeSet<_> = compared.said_by_server(&answer).into_iter().collect();
        let outcome = compiled.process(&mut object.clone(), None).outcome;
        let ours: BTreeSet<_> = outcome.errors.iter().map(|error| compared.said_by_us(error)).collect();
        match status {
            201 if outcome.is_accepted() => result.accepted += 1,
            422 if ours == theirs => result.refused += 1,
            400 if ours.len() == 1 => result.refused += 1,
            _ => {
                let differing: Vec<_> = ours.symmetric_difference(&theirs).take(5).collect();
                let open = &outcome.undecided;
                result.disagreements.push(format!("{status}: one side says {differing:#?} {open:?}\n  {object}"));
            }
        }
    }
    api.delete(&format!("{collection}/diff0s.{group}"));
    result
}
