//! Validates schemas and values with gantry and the API server, and compares the results.

mod compare;
pub mod corpus;

use std::collections::BTreeMap;

use gantry_k8s_cel::KubernetesRelease;
use gantry_schema::Schema;
use serde_json::{Map, Value, json};

use crate::generator::{self, Random};
use crate::servers::ComparedRelease;
use crate::support::{Api, CrdBuilder, any_fields, eventually};

/// The number of fields, and thus schemas, of one CRD.
pub const FIELDS: usize = 50;
/// The number of objects created for each CRD, and of updates tried on each object.
const CREATES: usize = 22;
const STORED: usize = 3;
const UPDATES: usize = 5;
/// How often the server is asked again about a difference.
const ASKED_AGAIN: usize = 20;

/// Generates a value for a schema.
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
    /// Answers of the server that it did not repeat.
    pub unsteady: usize,
    pub disagreements: Vec<String>,
}

impl Tally {
    /// Fails if the two sides differ, or if the run tested nothing.
    pub fn judge(&self, release: KubernetesRelease, what: &str) {
        println!(
            "{release} {what}: {} schemas ({} more that the server did not take): {} values created, {} updated; {} refused, {} \
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
        let shown: Vec<&str> = self.disagreements.iter().take(10).map(String::as_str).collect();
        assert!(shown.is_empty(), "{} disagreements, such as\n{}", self.disagreements.len(), shown.join("\n"));
        let is_tolerant = release >= KubernetesRelease::minor(30);
        assert!(self.refused > 0 && self.schemas > 0, "the run reached nothing");
        // Before, servers tolerate only duplicates in lists.
        assert!(self.tolerated > 0 || !is_tolerant, "servers tolerate invalid values from 1.30 on");
    }
}

/// A CRD with fields of generated schemas, as accepted by the server.
struct Subject {
    compared: ComparedRelease,
    api: &'static Api,
    value: Values,
    resource: String,
    group: String,
    kind: String,
    fields: BTreeMap<String, Value>,
    schema: Schema,
}

/// Validates values of schemas, as the fields of one CRD, with gantry and on the server.
pub fn one_crd(
    compared: ComparedRelease,
    (group, at): (&str, usize),
    schemas: Vec<Value>,
    value: Values,
    random: &mut Random,
    tally: &mut Tally,
) {
    let schemas = schemas.into_iter().map(|schema| without_disabled_fields(schema, compared.release));
    let fields: BTreeMap<String, Value> =
        schemas.enumerate().map(|(field, schema)| (format!("f{field}"), schema)).collect();
    let api = compared.api();
    let mut subject = Subject {
        compared,
        api,
        value,
        resource: format!("/apis/{group}/v1/diff{at}s"),
        group: group.to_owned(),
        kind: format!("Diff{at}"),
        schema: compared.compile(&strict_schema(&fields)).expect("a generated schema compiles"),
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

/// The schema without the field of its rules that older servers remove, which changes what the rules mean.
fn without_disabled_fields(mut schema: Value, release: KubernetesRelease) -> Value {
    fn remove_from(value: &mut Value) {
        match value {
            Value::Object(map) => {
                map.shift_remove("optionalOldSelf");
                map.values_mut().for_each(remove_from);
            }
            Value::Array(items) => items.iter_mut().for_each(remove_from),
            _ => {}
        }
    }
    if release < KubernetesRelease::minor(30) {
        remove_from(&mut schema);
    }
    schema
}

fn strict_schema(fields: &BTreeMap<String, Value>) -> Value {
    let mut properties: Map<String, Value> = fields.iter().map(|(f, schema)| (f.clone(), schema.clone())).collect();
    properties.insert(MARKER.to_owned(), json!({"type": "boolean", "default": true}));
    json!({"type": "object", "properties": properties})
}

/// A field that only the strict schema has, which shows when that schema is in force.
const MARKER: &str = "marker";

/// The CRD with a schema that accepts anything.
pub fn crd(group: &str, at: usize) -> Value {
    CrdBuilder::new(group, &format!("Diff{at}")).cluster_scoped().version("v1", any_fields()).build()
}

impl Subject {
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

    /// Stores an object while the CRD accepts anything.
    fn store(&self, name: &str, random: &mut Random) -> (BTreeMap<String, Value>, Value) {
        let mut values = self.values(random);
        // Once stored, an embedded resource whose metadata is a text cannot even be read with the strict schema.
        values.retain(|field, value| {
            let mut alone = self.object(name, &BTreeMap::from([(field.clone(), value.clone())]));
            self.schema.prepare_stored(&mut alone).is_ok()
        });
        let (status, stored) = self.api.post(&self.resource, &self.object(name, &values));
        assert_eq!(status, 201, "the lax schema takes anything: {stored}");
        (values, stored)
    }

    /// Updates the CRD with the generated schemas, without those that the server refuses.
    fn tighten(&mut self, path: &str, tally: &mut Tally) {
        loop {
            let mut crd = self.api.get(path).1;
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = strict_schema(&self.fields);
            let (status, answer) = self.api.put(path, &crd);
            match status {
                200 => break,
                // The server updated its status in the meantime.
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
            // gantry must refuse to compile exactly the rules that the server cannot compile.
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
                if theirs != compare::has_problem(&self.fields[field], self.compared.cel_environment()) {
                    let who = if theirs { "only the server" } else { "only our type checker" };
                    tally.disagreements.push(format!("{who} refuses a rule of {} {answer}", self.fields[field]));
                }
            }
            tally.rejected_schemas += refused.len();
            self.fields.retain(|field, _| !refused.contains(field));
        }
        self.schema = self.compared.compile(&strict_schema(&self.fields)).expect("the server took the schema");
        let probe = self.object("probe", &BTreeMap::new());
        eventually("the strict schema is in force", || {
            let (_, answer) = self.api.post(&format!("{}?dryRun=All", self.resource), &probe);
            answer.get(MARKER).cloned().or_else(|| answer.get("details").cloned())
        });
    }

    fn updates(&self, before: &BTreeMap<String, Value>, old: &Value, random: &mut Random, tally: &mut Tally) {
        let name = old["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{}/{name}?dryRun=All", self.resource);
        self.read(&format!("{}/{name}", self.resource), old, tally);
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
}
