//! Generates `docs/exec-check.schema.json`, the schema of the input and the answer of a program, and tests that it
//! matches what gantry writes and reads.
//!
//! `UPDATE_DOCS=1 cargo test -p gantry-preflight custom::schema` updates the file.

use std::path::Path;
use std::sync::Arc;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::answer::ProgramAnswer;
use super::input;
use crate::context_for_tests::ContextForTests;
use crate::proofs::Proven;
use gantry_cluster::Target;
use gantry_cluster::dir::DirTarget;
use gantry_core::finding::Source;
use gantry_core::manifest::{self, ManifestSource};
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use gantry_deploy::plan::{Action, Change, Crds, Plan};

/// The standard input of a program: a ResourceList of the KRM functions specification with an additional member, plan.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)] // Only its schema is used.
struct ProgramInput {
    /// config.kubernetes.io/v1
    api_version: String,
    /// ResourceList
    kind: String,
    /// exec.functionConfig of the check; absent if the check has none.
    function_config: Option<Map<String, Value>>,
    /// The manifests in the order in which they are applied, with the namespace that each gets. Values of Secrets are
    /// hidden.
    items: Vec<Map<String, Value>>,
    plan: ProgramPlan,
}

/// What a deploy would do.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)]
struct ProgramPlan {
    /// The target, as in the report: kube: CONTEXT (SERVER), dir: PATH.
    target: String,
    /// Whether the answer must not quote any value of an object.
    redact: bool,
    /// One entry for each of items, in the same order.
    changes: Vec<ProgramChange>,
}

/// What happens to one object.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code)]
struct ProgramChange {
    action: Action,
    object: ObjectRef,
    source: Source,
    /// The live object; null if there is none. Values of Secrets are hidden.
    live: Option<Map<String, Value>>,
}

fn schema() -> Value {
    let mut generator = SchemaGenerator::default();
    let input = generator.subschema_for::<ProgramInput>();
    let output = generator.subschema_for::<ProgramAnswer>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Checks by a program",
        "description": "$defs/ProgramInput is the input of a program, $defs/ProgramAnswer its output.",
        "anyOf": [input, output],
        "$defs": generator.definitions(),
    })
}

fn validator(definition: &str) -> jsonschema::Validator {
    let mut schema = schema();
    schema["anyOf"] = json!([{"$ref": format!("#/$defs/{definition}")}]);
    jsonschema::validator_for(&schema).expect("a schema")
}

#[test]
fn the_documented_schema_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exec-check.schema.json");
    let fresh = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &fresh).expect("docs/ can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == fresh,
        "docs/exec-check.schema.json is stale: run UPDATE_DOCS=1 cargo test -p gantry-preflight custom::schema"
    );
}

fn plan(manifests: &str) -> Plan {
    let source = Arc::new(ManifestSource::new("m.yaml", manifests.to_owned()));
    let loaded = manifest::read(&source).expect("manifests");
    let change = |mut desired: manifest::Manifest| {
        let resource = Resource {
            group: desired.object.group().into(),
            version: desired.object.version().into(),
            kind: desired.object.kind.clone(),
            plural: "any".into(),
            namespaced: true,
        };
        let live = desired.object.is_secret().then(|| LiveObject {
            raw: desired.raw.clone(),
            uid: "u".into(),
            resource_version: "1".into(),
        });
        std::sync::Arc::make_mut(&mut desired.object).namespace.get_or_insert_with(|| "team".into());
        Change {
            action: if live.is_some() { Action::Update } else { Action::Create },
            desired,
            live,
            replaces: None,
            unread: None,
            resource: resource.into(),
            owner: None,
            kapp: Default::default(),
            is_as_applied: false,
            bundle_writer: None,
            helm: None,
            crds: Crds::default(),
            answer: Default::default(),
        }
    };
    Plan { changes: loaded.manifests.into_iter().map(change).collect(), ..Plan::default() }
}

const MANIFESTS: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
data: {key: value}
---
apiVersion: v1
kind: Secret
metadata:
  name: login
  namespace: other
  annotations: {copy: '{\"data\": \"hunter2\"}'}
stringData: {password: hunter2}
";

async fn input_of_program(function_config: Option<&Value>) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let target = Target::Dir(DirTarget::open(folder.path()).expect("a target"));
    let plan = plan(MANIFESTS);
    let inputs = ContextForTests::new(&plan, &target, Proven::default());
    let context = inputs.context();
    let mut text = Vec::new();
    input::write(&context, function_config, &mut text).await.expect("memory takes all");
    serde_json::from_slice(&text).expect("JSON")
}

#[tokio::test]
async fn the_input_of_programs_follows_its_documented_schema() {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"allowed": "a"}});
    for config in [None, Some(&config)] {
        let input = input_of_program(config).await;
        let errors: Vec<String> =
            validator("ProgramInput").iter_errors(&input).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{input:#}");
        assert_eq!(input.get("functionConfig"), config);
        assert_eq!(
            (input["items"].as_array().map(Vec::len), input["plan"]["changes"].as_array().map(Vec::len)),
            (Some(2), Some(2))
        );
        assert_eq!(input["items"][0]["metadata"], json!({"name": "plain", "namespace": "team"}));
        assert_eq!(input["items"][1]["metadata"]["namespace"], "other");
        assert_eq!(
            (&input["plan"]["changes"][0]["live"], &input["plan"]["changes"][0]["action"]),
            (&Value::Null, &json!("create"))
        );
        assert_eq!(input["plan"]["changes"][1]["source"], json!({"file": "m.yaml", "line": 6}));
        assert_eq!(input["plan"]["changes"][1]["live"]["kind"], "Secret");
        assert!(!input.to_string().contains("hunter2"), "{input:#}");
        let mut other = input;
        other["plan"]["changes"][0]["action"] = "rewrite".into();
        assert!(!validator("ProgramInput").is_valid(&other));
    }
}

#[test]
fn answers_are_read_as_they_are_documented() {
    let identity = super::CustomCheckIdentity { name: "mine".into(), at: None };
    let plan = plan(MANIFESTS);
    let validator = validator("ProgramAnswer");
    let said = |text: &str| -> Result<Vec<String>, String> {
        let answer = ProgramAnswer::parse(text.as_bytes())?;
        let violations = answer.into_violations(&identity, &plan, false);
        Ok(violations
            .iter()
            .map(|v| {
                format!(
                    "{:?} {} {:?} {:?} {}",
                    v.subject,
                    v.rule,
                    v.severity,
                    v.body.path.as_deref().unwrap_or(""),
                    v.body.message
                )
            })
            .collect())
    };
    for (text, expected) in [
        (r#"{"results": []}"#, vec![]),
        ("kind: ResourceList\nitems: [{kind: Pod}]\n", vec![]),
        (r#"{"results": [{"message": "m"}]}"#, vec!["Plan mine Error \"\" m"]),
        (
            "results:\n- message: m\n  severity: warning\n  resourceRef: {apiVersion: v1, kind: ConfigMap, name: plain}\n  \
             field: {path: 'data.key', proposedValue: 1}\n  tags: {rule: keys}\n",
            vec!["Change(0) mine/keys Warning \"data.key\" m"],
        ),
        (
            r#"{"results": [{"message": "login has hunter2", "severity": "info", "file": {"path": "m.yaml", "index": 1}}]}"#,
            vec!["Change(1) mine Info \"\" login has [hidden]"],
        ),
        (
            r#"{"results": [{"message": "m", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "plain", "namespace": "x"}}]}"#,
            vec![
                "Object(ObjectRef { api_version: \"v1\", kind: \"ConfigMap\", namespace: Some(\"x\"), name: \"plain\" }) mine Error \"\" m",
            ],
        ),
    ] {
        assert_eq!(said(text), Ok(expected.into_iter().map(str::to_owned).collect()), "{text}");
        let value = gantry_yaml::parse(text).unwrap().unwrap().to_value();
        assert!(validator.is_valid(&value), "{text}");
    }
    for (text, reason) in [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("all fine", "invalid type"),
        ("{}", "it has no results"),
        (r#"{"results": {}}"#, "expected a sequence"),
        (r#"{"results": [{}]}"#, "missing field `message`"),
        (r#"{"results": [{"message": " "}]}"#, "a result has no message"),
        (r#"{"results": [{"message": "m", "severity": "fatal"}]}"#, "unknown variant `fatal`"),
        (r#"{"results": ["#, "EOF"),
    ] {
        let error = said(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
    assert!(ProgramAnswer::parse(b"\xff").is_err());
}

#[test]
fn objects_of_the_plan_are_found_without_their_namespace_only_where_that_leaves_no_doubt() {
    let mut two = plan(MANIFESTS);
    let mut again = two.changes[0].clone();
    std::sync::Arc::make_mut(&mut again.desired.object).namespace = Some("third".into());
    again.desired.raw = RawObject::new(again.desired.raw.json().into_owned());
    two.changes.push(again);
    let identity = super::CustomCheckIdentity { name: "mine".into(), at: None };
    let text = r#"{"results": [{"message": "m", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "plain"}},
        {"message": "m", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "plain", "namespace": "third"}}]}"#;
    let violations = ProgramAnswer::parse(text.as_bytes()).unwrap().into_violations(&identity, &two, false);
    assert!(matches!(violations[0].subject, crate::ViolationSubject::Object(_)));
    assert_eq!(violations[1].subject, crate::ViolationSubject::Change(2));
}
