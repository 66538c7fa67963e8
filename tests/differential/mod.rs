//! Schemas and values judged here and by the API server, side by side.

pub mod corpus;

use std::collections::{BTreeMap, BTreeSet};

use gantry::validation::cel::compile_rules;
use gantry::validation::{FieldError, Kind, Outcome, Schema};
use serde_json::{Map, Value, json};

use crate::generator::{self, Random};
use crate::support::{Api, eventually};

/// Fields, and so schemas, of one CRD.
pub const FIELDS: usize = 50;
/// Objects created for each CRD, and updates tried from each.
const CREATES: usize = 22;
const STORED: usize = 3;
const UPDATES: usize = 5;
/// How often the server is asked again about what it says and we do not, or we and not it.
const ASKED_AGAIN: usize = 20;

/// Makes a value for a schema.
pub type Values = fn(&mut Random, &Value) -> Value;

#[derive(Default)]
pub struct Tally {
    pub schemas: usize,
    pub rejected_schemas: usize,
    pub created: usize,
    pub updated: usize,
    pub refused: usize,
    pub tolerated: usize,
    pub undecodable: usize,
    /// What the server said once and did not say again.
    pub unsteady: usize,
    pub disagreements: Vec<String>,
}

impl Tally {
    /// Fails where the two sides disagree, or where the run reached nothing.
    pub fn judge(&self, what: &str) {
        println!(
            "{what}: {} schemas ({} more that the server did not take): {} values created, {} updated; {} refused, {} \
             tolerated, {} requests undecodable, {} unsteady; {} disagreements",
            self.schemas,
            self.rejected_schemas,
            self.created,
            self.updated,
            self.refused,
            self.tolerated,
            self.undecodable,
            self.unsteady,
            self.disagreements.len()
        );
        assert!(self.refused > 0 && self.tolerated > 0 && self.schemas > 0, "the run reached nothing");
        let shown: Vec<&str> = self.disagreements.iter().take(10).map(String::as_str).collect();
        assert!(shown.is_empty(), "{} disagreements, such as\n{}", self.disagreements.len(), shown.join("\n"));
    }
}

/// The fields and texts of a refusal; none of an acceptance.
pub fn texts_of(answer: &Value) -> BTreeSet<(String, String)> {
    let causes = answer["details"]["causes"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    causes.map(|cause| (text(&cause["field"]), text(&cause["message"]))).collect()
}

/// A CRD with fields of generated schemas, as the server took it.
struct Subject<'a> {
    api: &'a Api,
    value: Values,
    resource: String,
    group: String,
    kind: String,
    fields: BTreeMap<String, Value>,
    schema: Schema,
}

/// Judges values of schemas, as the fields of one CRD, here and on the server.
pub fn one_crd(
    api: &Api,
    (group, at): (&str, usize),
    schemas: Vec<Value>,
    value: Values,
    random: &mut Random,
    tally: &mut Tally,
) {
    let fields: BTreeMap<String, Value> =
        schemas.into_iter().enumerate().map(|(field, schema)| (format!("f{field}"), schema)).collect();
    let mut subject = Subject {
        api,
        value,
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
pub fn crd(group: &str, at: usize) -> Value {
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
            values.insert(field.clone(), (self.value)(random, schema));
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
        tally.created += values.len();
        self.compare("create", &object, None, &|| self.api.post(&path, &object), tally);
        let object = self.decodable(object, |object| {
            self.compare("create of decodable fields", object, None, &|| self.api.post(&path, object), tally);
        });
        let ruled = self.ruled(&object, None);
        self.compare(
            "create of fields whose rules are evaluated",
            &ruled,
            None,
            &|| self.api.post(&path, &ruled),
            tally,
        );
        let accepted = self.accepted(&object, None, tally);
        self.compare("create of accepted fields", &accepted, None, &|| self.api.post(&path, &accepted), tally);
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
            let causes = answer["details"]["causes"].as_array();
            if std::env::var_os("GANTRY_DIFFERENTIAL_VERBOSE").is_some() {
                for cause in causes.into_iter().flatten() {
                    println!("{} {}", cause["field"], cause["message"]);
                }
            }
            // The rules that do not compile there do not compile here, and the others do.
            for field in &refused {
                let is_of_rule = |cause: &Value| {
                    let text = |key: &str| cause[key].as_str().unwrap_or_default();
                    text("field").contains(&format!("[{field}]"))
                        && text("field").ends_with(".rule")
                        && ["compilation failed", "must evaluate to a bool", "instantiation failed"]
                            .iter()
                            .any(|why| text("message").contains(why))
                };
                let theirs = causes.into_iter().flatten().any(is_of_rule);
                if theirs != has_problem(&self.fields[field]) {
                    let who = if theirs { "only the server" } else { "only our type checker" };
                    tally.disagreements.push(format!("{who} refuses a rule of {} {answer}", self.fields[field]));
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
            self.compare("update", &object, Some(old), &|| self.api.put(&path, &object), tally);
            let object = self.decodable(object, |object| {
                self.compare("update of decodable fields", object, Some(old), &|| self.api.put(&path, object), tally);
            });
            let ruled = self.ruled(&object, Some(old));
            self.compare(
                "update of fields whose rules are evaluated",
                &ruled,
                Some(old),
                &|| self.api.put(&path, &ruled),
                tally,
            );
            let accepted = self.accepted(&object, Some(old), tally);
            self.compare("update of accepted fields", &accepted, Some(old), &|| self.api.put(&path, &accepted), tally);
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

    /// What we say of one field of the object alone.
    fn alone(&self, field: &str, object: &Value, old: Option<&Value>) -> Outcome {
        let only = |object: &Value| -> Value {
            let part = |key: &str| key == field || matches!(key, "apiVersion" | "kind" | "metadata");
            let map = object.as_object().into_iter().flatten().filter(|(key, _)| part(key));
            map.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into()
        };
        self.ours(&only(object), old.map(only).as_ref()).1
    }

    /// The object without the fields that keep the rules of all others from being evaluated.
    fn ruled(&self, object: &Value, old: Option<&Value>) -> Value {
        let mut ruled = object.clone();
        for field in self.fields.keys() {
            let outcome = self.alone(field, object, old);
            let blocks = |error: &FieldError| {
                matches!(
                    error.kind,
                    Kind::NotSupported | Kind::Required | Kind::TooLong | Kind::TooMany | Kind::TypeInvalid
                )
            };
            // Some rules give the same kinds for a reason.
            if outcome.errors.iter().any(|error| error.path == "<nil>" || blocks(error))
                && let Some(map) = ruled.as_object_mut()
            {
                map.shift_remove(field);
            }
        }
        ruled
    }

    /// The object without the fields that we refuse.
    fn accepted(&self, object: &Value, old: Option<&Value>, tally: &mut Tally) -> Value {
        let mut accepted = object.clone();
        for field in self.fields.keys() {
            // A default of another field can be invalid where the server takes it; it is refused with or without us.
            let is_ours = |text: &str| text.contains(field.as_str());
            let outcome = self.alone(field, object, old);
            let refused = outcome.errors.iter().any(|error| is_ours(&error.to_string()));
            if refused {
                tally.refused += 1;
                if let Some(map) = accepted.as_object_mut() {
                    map.shift_remove(field);
                }
            } else if old.is_some() && self.alone(field, object, None).errors.iter().any(|e| is_ours(&e.to_string())) {
                tally.tolerated += 1;
            }
        }
        accepted
    }

    /// Compares what both sides say of an object. Where they differ the server is asked again, and what it does not
    /// stick to itself is no disagreement: it walks the fields of objects that a rule compares in random order.
    fn compare(
        &self,
        what: &str,
        object: &Value,
        old: Option<&Value>,
        ask: &dyn Fn() -> (u16, Value),
        tally: &mut Tally,
    ) {
        let (ours, outcome) = self.ours(object, old);
        for open in &outcome.undecided {
            tally.disagreements.push(format!("{what}: undecided at {}: {} ({})", open.path, open.rule, open.reason));
        }
        let first = ask();
        tally.undecodable += usize::from(first.0 == 400);
        let mut differences = self.differences(&ours, &outcome, first);
        let all = differences.len();
        for _ in 0..ASKED_AGAIN {
            if differences.is_empty() {
                break;
            }
            let again = self.differences(&ours, &outcome, ask());
            differences.retain(|difference| again.contains(difference));
        }
        tally.unsteady += all - differences.len();
        for text in differences {
            self.disagree(what, &text, object, old, tally);
        }
    }

    /// What the server's answer has that we do not say, and what we say that it has not.
    fn differences(&self, ours: &Value, outcome: &Outcome, (status, answer): (u16, Value)) -> Vec<String> {
        let mut differences = Vec::new();
        match status {
            200 | 201 => {
                differences.extend(outcome.errors.iter().map(|error| format!("only we refuse: {error}")));
                for field in self.fields.keys().filter(|_| outcome.errors.is_empty()) {
                    let (ours, theirs) = (decoded(ours.get(field)), decoded(answer.get(field)));
                    if ours != theirs {
                        differences.push(format!("{field} comes back as {theirs:?}, we make {ours:?}"));
                    }
                }
            }
            422 => {
                let mut balances: BTreeMap<(String, String), i32> = BTreeMap::new();
                for error in &outcome.errors {
                    *balances.entry((error.path.clone(), comparable(&error.body()))).or_default() += 1;
                }
                for cause in answer["details"]["causes"].as_array().into_iter().flatten() {
                    let text = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
                    *balances.entry((text("field"), comparable(&text("message")))).or_default() -= 1;
                }
                for ((field, message), balance) in balances.into_iter().filter(|(_, balance)| *balance != 0) {
                    let who = if balance > 0 { "only we say" } else { "only the server says" };
                    differences.push(format!("{who} {field}: {message}"));
                }
            }
            400 if outcome.errors.len() != 1 => {
                differences.push(format!("the server cannot decode: {}", answer["message"]));
            }
            400 => {}
            _ => panic!("{status} {answer}"),
        }
        differences
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

/// A message without what is not compared: Go's words for what is wrong with a text that a rule reads although it does
/// not have its format, which only an update that leaves the text alone can have.
fn comparable(message: &str) -> String {
    let reason = [
        "Invalid date-time formatted",
        "Invalid date formatted",
        "Invalid byte formatted",
        "Invalid duration",
        "unsupported conversion",
    ];
    let cut = reason.iter().filter_map(|reason| message.find(reason).map(|at| at + reason.len())).min();
    match (cut, message.find(" evaluating rule: ")) {
        (Some(cut), Some(tail)) if cut <= tail => format!("{}{}", &message[..cut], &message[tail..]),
        _ => message.to_owned(),
    }
}

/// Whether one of the rules of a schema does not compile here.
fn has_problem(schema: &Value) -> bool {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.is_some_and(|rules| compile_rules(schema, rules, false).iter().any(|rule| rule.problem().is_some()))
        || schema.get("properties").and_then(Value::as_object).is_some_and(|all| all.values().any(has_problem))
        || schema.get("items").is_some_and(has_problem)
        || schema.get("additionalProperties").is_some_and(has_problem)
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
