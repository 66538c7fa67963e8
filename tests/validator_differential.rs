//! The validator against the real API server: generated schemas, generated objects, the same answer.
//!
//! Many schemas share one CRD, each as a field of its own, so that one request judges as many values as there are fields.
//! What the server refuses must be what we refuse, in the same words; what it accepts must come back as the object that
//! we make of it. Updates go from objects that were stored while the CRD took anything, so that anything can be "before".
//!
//! `GANTRY_DIFFERENTIAL=<schemas>[,<seed>]` sets the length of the run; 2000 schemas make 50,000 values and more.

mod generator;
mod support;

use std::collections::{BTreeMap, BTreeSet};

use gantry::validation::{Outcome, Schema};
use generator::Random;
use serde_json::{Map, Value, json};
use support::{Api, control_plane, eventually, isolated};

/// Fields, and so schemas, of one CRD.
const FIELDS: usize = 50;
/// Objects created for each CRD, and updates tried from each.
const CREATES: usize = 22;
const STORED: usize = 3;
const UPDATES: usize = 5;

fn setting() -> (String, String) {
    let setting = std::env::var("GANTRY_DIFFERENTIAL").unwrap_or_else(|_| "100".to_owned());
    let (schemas, seed) = setting.split_once(',').unwrap_or((&setting, "1"));
    (schemas.to_owned(), seed.to_owned())
}

/// How many schemas to generate.
fn run_length() -> usize {
    setting().0.parse().expect("GANTRY_DIFFERENTIAL is <schemas>[,<seed>]")
}

fn seed() -> u64 {
    setting().1.parse().expect("the seed in GANTRY_DIFFERENTIAL is a number")
}

#[derive(Default)]
struct Tally {
    schemas: usize,
    rejected_schemas: usize,
    created: usize,
    updated: usize,
    refused: usize,
    tolerated: usize,
    undecodable: usize,
    disagreements: Vec<String>,
}

#[test]
fn the_validator_agrees_with_the_server() {
    let (schemas, seed) = (run_length(), seed());
    let group = isolated().group;
    let api = control_plane().api();
    let mut tally = Tally::default();
    for at in 0..schemas.div_ceil(FIELDS) {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        one_crd(api, &group, at, &mut random, &mut tally);
    }
    println!(
        "{} schemas ({} more that the server did not take): {} values created, {} updated; {} refused, {} tolerated, \
         {} requests undecodable; {} disagreements",
        tally.schemas,
        tally.rejected_schemas,
        tally.created,
        tally.updated,
        tally.refused,
        tally.tolerated,
        tally.undecodable,
        tally.disagreements.len()
    );
    assert!(tally.refused > 0 && tally.tolerated > 0 && tally.schemas > 0, "the run reached nothing");
    let shown: Vec<&str> = tally.disagreements.iter().take(10).map(String::as_str).collect();
    assert!(shown.is_empty(), "{} disagreements, such as\n{}", tally.disagreements.len(), shown.join("\n"));
}

/// Strings by the thousand against every format and against patterns: each is judged as the server judges it.
#[test]
fn formats_and_patterns_are_read_as_the_server_reads_them() {
    let api = control_plane().api();
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
    let schema = Schema::compile(&schema).expect("the server took the schema");

    let mut random = Random::new(3);
    let (mut judged, mut refused) = (0, 0);
    for _ in 0..run_length().div_ceil(10) {
        let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": "Diff0", "metadata": {"name": "x"}});
        for (field, (_, texts)) in &fields {
            object[field] = (0..20).map(|_| json!(generator::text_like(&mut random, texts))).collect();
        }
        judged += fields.len() * 20;
        let (_, answer) = api.post(&format!("{resource}?dryRun=All"), &object);
        let theirs = texts_of(&answer);
        let outcome = schema.process(&mut object, None).outcome;
        assert_eq!(outcome.undecided, []);
        let ours = outcome.errors.iter().map(|error| (error.path.clone(), error.body())).collect::<BTreeSet<_>>();
        refused += ours.len();
        let differing: Vec<_> = ours.symmetric_difference(&theirs).take(10).collect();
        assert!(differing.is_empty(), "only one side says {differing:#?}");
    }
    println!("{judged} strings, {refused} refused");
    assert!(refused > 0 && refused < judged);
}

/// Metadata of the object itself, in the server's words.
#[test]
fn the_metadata_of_an_object_is_judged_as_the_server_does() {
    let api = control_plane().api();
    let group = isolated().group;
    assert_eq!(api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd(&group, 1)).0, 201);
    let resource = format!("/apis/{group}/v1/diff1s");
    eventually("the CRD is served", || (api.get(&resource).0 == 200).then_some(()));
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = Schema::compile(&schema).expect("a schema");
    let long = "a".repeat(260);
    for metadata in [
        json!({"name": "x"}),
        json!({"name": "X_y"}),
        json!({"name": long}),
        json!({}),
        json!({"generateName": "x-"}),
        json!({"name": "x", "labels": {"a/b/c": "x", "-": "é", "ok": "-", "long": long}}),
        json!({"name": "x", "labels": {"/x": "", "A_b/c": "v", "": "v"}}),
        json!({"name": "x", "annotations": {"A.b/C": "é", "-": "", "a b": ""}}),
        json!({"name": "x", "annotations": {"a": "x".repeat(263_000)}}),
        json!({"name": "x", "finalizers": ["a.b/c", "-"]}),
        json!({"name": "x", "ownerReferences": [{"apiVersion": "a/", "kind": "", "name": "", "uid": ""}]}),
        json!({"name": "x", "labels": {"a": null}, "annotations": null, "unknown": 1}),
    ] {
        let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": "Diff1", "metadata": metadata});
        let (status, answer) = api.post(&format!("{resource}?dryRun=All"), &object);
        assert!(matches!(status, 201 | 422), "{metadata}: {answer}");
        let outcome = schema.process(&mut object, None).outcome;
        let ours: BTreeSet<_> = outcome.errors.iter().map(|error| (error.path.clone(), error.body())).collect();
        assert_eq!(ours, texts_of(&answer), "{metadata}");
    }
}

/// The fields and texts of a refusal; none of an acceptance.
fn texts_of(answer: &Value) -> BTreeSet<(String, String)> {
    let causes = answer["details"]["causes"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    causes.map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect()
}

/// A CRD with fields of generated schemas, as the server took it.
struct Subject<'a> {
    api: &'a Api,
    resource: String,
    group: String,
    kind: String,
    fields: BTreeMap<String, Value>,
    schema: Schema,
}

fn one_crd(api: &Api, group: &str, at: usize, random: &mut Random, tally: &mut Tally) {
    let fields: BTreeMap<String, Value> =
        (0..FIELDS).map(|field| (format!("f{field}"), generator::schema(random))).collect();
    let mut subject = Subject {
        api,
        resource: format!("/apis/{group}/v1/diff{at}s"),
        group: group.to_owned(),
        kind: format!("Diff{at}"),
        schema: Schema::compile(&strict_schema(&fields)).expect("a generated schema compiles"),
        fields,
    };
    let crd = crd(group, at);
    let collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let path = format!("{collection}/diff{at}s.{group}");
    assert_eq!(api.post(collection, &crd).0, 201);
    eventually("the CRD is served", || (api.get(&subject.resource).0 == 200).then_some(()));

    let stored: Vec<(BTreeMap<String, Value>, Value)> =
        (0..STORED).map(|at| subject.store(&format!("o{at}"), random)).collect();
    subject.tighten(&path, tally);
    tally.schemas += subject.fields.len();
    for _ in 0..CREATES {
        let values = subject.values(random);
        subject.create(&values, tally);
    }
    for (values, object) in &stored {
        subject.updates(values, object, random, tally);
    }
    api.delete(&path);
}

fn strict_schema(fields: &BTreeMap<String, Value>) -> Value {
    let mut properties: Map<String, Value> = fields.iter().map(|(f, schema)| (f.clone(), schema.clone())).collect();
    properties.insert(MARKER.to_owned(), json!({"type": "boolean", "default": true}));
    json!({"type": "object", "properties": properties})
}

/// A field that only the strict schema has, to see when it is in force.
const MARKER: &str = "marker";

/// The CRD while it takes anything.
fn crd(group: &str, at: usize) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("diff{at}s.{group}")},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {"kind": format!("Diff{at}"), "plural": format!("diff{at}s"), "singular": format!("diff{at}"),
                "listKind": format!("Diff{at}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

impl Subject<'_> {
    fn values(&self, random: &mut Random) -> BTreeMap<String, Value> {
        let mut values = BTreeMap::new();
        for (field, schema) in &self.fields {
            let mut value = generator::value(random, schema);
            for _ in 0..random.below(3) {
                value = generator::broken(random, &value);
            }
            values.insert(field.clone(), value);
        }
        values
    }

    fn object(&self, name: &str, values: &BTreeMap<String, Value>) -> Value {
        let mut object = json!({
            "apiVersion": format!("{}/v1", self.group),
            "kind": self.kind,
            "metadata": {"name": name},
        });
        if let Some(map) = object.as_object_mut() {
            map.extend(values.iter().map(|(field, value)| (field.clone(), value.clone())));
        }
        object
    }

    fn create(&self, values: &BTreeMap<String, Value>, tally: &mut Tally) {
        let path = format!("{}?dryRun=All", self.resource);
        let object = self.object("x", values);
        let answer = self.api.post(&path, &object);
        tally.created += values.len();
        self.compare("create", &object, None, answer, tally);
        let object = self.decodable(object, |object| {
            let answer = self.api.post(&path, object);
            self.compare("create of decodable fields", object, None, answer, tally);
        });
        let accepted = self.accepted(&object, None, tally);
        let answer = self.api.post(&path, &accepted);
        self.compare("create of accepted fields", &accepted, None, answer, tally);
    }

    /// Stores an object while the CRD takes anything.
    fn store(&self, name: &str, random: &mut Random) -> (BTreeMap<String, Value>, Value) {
        let mut values = self.values(random);
        // An embedded resource whose kind is a number, once stored, cannot even be read under the strict schema.
        values.retain(|field, value| {
            let mut alone = self.object(name, &BTreeMap::from([(field.clone(), value.clone())]));
            self.schema.prepare(&mut alone).is_ok()
        });
        let (status, stored) = self.api.post(&self.resource, &self.object(name, &values));
        assert_eq!(status, 201, "the lax schema takes anything: {stored}");
        (values, stored)
    }

    /// Gives the CRD the generated schemas, without those that the server does not take.
    fn tighten(&mut self, path: &str, tally: &mut Tally) {
        loop {
            let mut crd = self.api.get(path).1;
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = strict_schema(&self.fields);
            let (status, answer) = self.api.put(path, &crd);
            match status {
                200 => break,
                // The server wrote its status in between.
                409 => continue,
                _ => {}
            }
            let text = answer.to_string();
            let refused: Vec<String> =
                self.fields.keys().filter(|f| text.contains(&format!("[{f}]"))).cloned().collect();
            assert!(!refused.is_empty(), "the server refuses the CRD for no field: {answer}");
            if std::env::var_os("GANTRY_DIFFERENTIAL_VERBOSE").is_some() {
                for cause in answer["details"]["causes"].as_array().into_iter().flatten() {
                    println!("{} {}", cause["field"], cause["message"]);
                }
            }
            tally.rejected_schemas += refused.len();
            self.fields.retain(|field, _| !refused.contains(field));
        }
        self.schema = Schema::compile(&strict_schema(&self.fields)).expect("the server took the schema");
        let probe = self.object("probe", &BTreeMap::new());
        eventually("the strict schema is in force", || {
            let (_, answer) = self.api.post(&format!("{}?dryRun=All", self.resource), &probe);
            answer.get(MARKER).cloned().or_else(|| answer.get("details").cloned())
        });
    }

    fn updates(&self, before: &BTreeMap<String, Value>, old: &Value, random: &mut Random, tally: &mut Tally) {
        let name = old["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{}/{name}?dryRun=All", self.resource);
        for _ in 0..UPDATES {
            let mut after = before.clone();
            for value in after.values_mut() {
                match random.below(4) {
                    0 => {}
                    1 => {
                        let once = generator::broken(random, value);
                        *value = generator::broken(random, &once);
                    }
                    _ => *value = generator::broken(random, value),
                }
            }
            let mut object = self.object(name, &after);
            object["metadata"] = old["metadata"].clone();
            tally.updated += after.len();
            let answer = self.api.put(&path, &object);
            self.compare("update", &object, Some(old), answer, tally);
            let object = self.decodable(object, |object| {
                let answer = self.api.put(&path, object);
                self.compare("update of decodable fields", object, Some(old), answer, tally);
            });
            let accepted = self.accepted(&object, Some(old), tally);
            let answer = self.api.put(&path, &accepted);
            self.compare("update of accepted fields", &accepted, Some(old), answer, tally);
        }
    }

    fn ours(&self, object: &Value, old: Option<&Value>) -> (Value, Outcome) {
        let mut object = object.clone();
        let processed = self.schema.process(&mut object, old);
        (object, processed.outcome)
    }

    /// The object without the fields that hide all others because they cannot be decoded; `again` tries what is left.
    fn decodable(&self, mut object: Value, again: impl FnOnce(&Value)) -> Value {
        let is_decodable = |field: &String| {
            let value = object.get(field).cloned().unwrap_or_default();
            self.schema.prepare(&mut self.object("x", &BTreeMap::from([(field.clone(), value)]))).is_ok()
        };
        let undecodable: Vec<&String> = self.fields.keys().filter(|field| !is_decodable(field)).collect();
        if let Some(map) = object.as_object_mut().filter(|_| !undecodable.is_empty()) {
            map.retain(|key, _| !undecodable.contains(&key));
            again(&object);
        }
        object
    }

    /// The object without the fields that we refuse.
    fn accepted(&self, object: &Value, old: Option<&Value>, tally: &mut Tally) -> Value {
        let mut accepted = object.clone();
        for field in self.fields.keys() {
            let only = |object: &Value| {
                let mut object = object.clone();
                if let Some(map) = object.as_object_mut() {
                    map.retain(|key, _| key == field || matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
                }
                object
            };
            let old_part = old.map(only);
            // A default of another field can be invalid where the server takes it; it is refused with or without us.
            let is_ours = |text: &str| text.contains(field.as_str());
            let (_, outcome) = self.ours(&only(object), old_part.as_ref());
            let refused = outcome.errors.iter().any(|error| is_ours(&error.to_string()));
            if refused {
                tally.refused += 1;
                if let Some(map) = accepted.as_object_mut() {
                    map.shift_remove(field);
                }
            } else if old.is_some() && self.ours(&only(object), None).1.errors.iter().any(|e| is_ours(&e.to_string())) {
                tally.tolerated += 1;
            }
        }
        accepted
    }

    fn compare(
        &self,
        what: &str,
        object: &Value,
        old: Option<&Value>,
        (status, answer): (u16, Value),
        tally: &mut Tally,
    ) {
        let (ours, outcome) = self.ours(object, old);
        for open in &outcome.undecided {
            tally.disagreements.push(format!("{what}: undecided at {}: {} ({})", open.path, open.rule, open.reason));
        }
        match status {
            200 | 201 => {
                for error in &outcome.errors {
                    self.disagree(what, &format!("only we refuse: {error}"), object, old, tally);
                }
                let theirs = answer;
                for field in self.fields.keys().filter(|_| outcome.errors.is_empty()) {
                    let (ours, theirs) = (decoded(ours.get(field)), decoded(theirs.get(field)));
                    if ours != theirs {
                        let text = format!("{field} comes back as {theirs:?}, we make {ours:?}");
                        self.disagree(what, &text, object, old, tally);
                    }
                }
            }
            422 => {
                let mut ours: BTreeMap<(String, String), i32> = BTreeMap::new();
                for error in &outcome.errors {
                    *ours.entry((error.path.clone(), error.body())).or_default() += 1;
                }
                for cause in answer["details"]["causes"].as_array().into_iter().flatten() {
                    let text = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
                    *ours.entry((text("field"), text("message"))).or_default() -= 1;
                }
                for ((field, message), balance) in ours {
                    if balance != 0 {
                        let who = if balance > 0 { "only we say" } else { "only the server says" };
                        self.disagree(what, &format!("{who} {field}: {message}"), object, old, tally);
                    }
                }
            }
            400 => {
                tally.undecodable += 1;
                if outcome.errors.len() != 1 {
                    self.disagree(
                        what,
                        &format!("the server cannot decode: {}", answer["message"]),
                        object,
                        old,
                        tally,
                    );
                }
            }
            _ => panic!("{what}: {status} {answer}"),
        }
    }

    fn disagree(&self, what: &str, text: &str, object: &Value, old: Option<&Value>, tally: &mut Tally) {
        let field = self.fields.keys().rev().find(|f| {
            text.match_indices(f.as_str())
                .any(|(at, _)| !text[at + f.len()..].starts_with(|c: char| c.is_ascii_digit()))
        });
        let part = |from: &Value| field.map(|f| from.get(f).cloned().unwrap_or_default());
        tally.disagreements.push(format!(
            "{what}: {text}\n  schema {}\n  value {}\n  before {}",
            json!(field.map(|f| &self.fields[f])),
            json!(part(object)),
            json!(old.map(part)),
        ));
    }
}

/// A value as it is once it has been written and read: `1.0` is `1`, and the order of keys is nothing.
fn decoded(value: Option<&Value>) -> Option<Value> {
    Some(match value? {
        Value::Number(n) => match n.as_f64() {
            Some(f) if n.is_f64() && f.fract() == 0.0 && f.abs() < 1e18 => json!(f as i64),
            Some(f) if !n.is_i64() => json!(f),
            _ => Value::Number(n.clone()),
        },
        Value::Array(items) => Value::Array(items.iter().filter_map(|item| decoded(Some(item))).collect()),
        Value::Object(map) => {
            let entries: Map<String, Value> =
                map.iter().filter_map(|(key, value)| Some((key.clone(), decoded(Some(value))?))).collect();
            Value::Object(entries)
        }
        other => other.clone(),
    })
}
