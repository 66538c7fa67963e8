//! Tests which objects depend on which changes, and which findings the server's refusals become.

use std::sync::Arc;

use serde_json::{Value, json};

use super::depend::{self, Dependence};
use super::refusal;
use crate::Violation;
use gantry_cluster::{DryRunError, FieldConflict, ManagerOperation, Refusal, RefusalCause, Refuser};
use gantry_core::crd::builder::CrdBuilder;
use gantry_core::finding::Severity;
use gantry_core::manifest;
use gantry_core::problem::Problem;
use gantry_core::resource::{LiveObject, RawObject, Resource};
use gantry_deploy::plan::{Action, Change, Crds, Plan, graph};

fn change(action: Action, object: Value, plural: &str, live: Option<Value>) -> Change {
    let source = Arc::new(manifest::ManifestSource::new("m.yaml", object.to_string()));
    let desired = manifest::read(&source).expect("a manifest").manifests.remove(0);
    let reference = &desired.object;
    let resource = Resource {
        group: reference.group().into(),
        version: reference.version().into(),
        kind: reference.kind.clone(),
        plural: plural.into(),
        namespaced: reference.namespace.is_some(),
    };
    let live = live.map(|live| LiveObject {
        raw: RawObject::from_value(&live),
        uid: "u".into(),
        resource_version: "1".into(),
    });
    Change {
        action,
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
}

fn plan(mut changes: Vec<Change>) -> Plan {
    changes.sort_by_key(Change::rank);
    let (graph, _) = graph::sort_changes(&changes, &[], &Default::default(), false).expect("an order");
    Plan { changes, graph, ..Plan::default() }
}

fn crd(versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions.iter().map(|name| json!({"name": name, "served": true})).collect();
    CrdBuilder::samples("g.example.com").set("versions", versions).build()
}

fn object(api_version: &str, kind: &str, name: &str, namespace: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

#[test]
fn namespaces_and_kinds_that_the_deploy_creates_are_known() {
    let sample = |version: &str, namespace: &str| {
        change(
            Action::Create,
            object(&format!("g.example.com/{version}"), "Sample", version, namespace),
            "samples",
            None,
        )
    };
    let plan = plan(vec![
        change(Action::Create, namespace("new"), "namespaces", None),
        change(Action::Update, namespace("old"), "namespaces", Some(namespace("old"))),
        change(Action::Update, crd(&["v1", "v2"]), "customresourcedefinitions", Some(crd(&["v1"]))),
        change(Action::Create, object("v1", "ConfigMap", "a", "new"), "configmaps", None),
        change(Action::Create, object("v1", "ConfigMap", "b", "old"), "configmaps", None),
        sample("v1", "old"),
        sample("v2", "old"),
        sample("v1", "new"),
    ]);
    use Dependence::{Changed, Created, Nothing};
    assert_eq!(
        depend::dependence(&plan),
        [Nothing, Nothing, Nothing, Created(0), Nothing, Changed(2), Created(2), Created(0)]
    );
}

fn refusal(by: Refuser, message: &str, causes: &[(&str, &str)]) -> Refusal {
    let cause = |(field, message): &(&str, &str)| RefusalCause { field: (*field).into(), message: (*message).into() };
    Refusal { by, problem: Problem::new(message), causes: causes.iter().map(cause).collect(), missing: None }
}

fn said(plan: &Plan, index: usize, refusal: Refusal, dependence: Dependence) -> Vec<Violation> {
    let mut violations = Vec::new();
    refusal::report_refusal(plan, index, &DryRunError::Refused(refusal), dependence, &mut violations);
    violations
}

#[test]
fn a_refusal_whose_cause_the_deploy_itself_changes_is_a_warning() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let mut binding = object(rbac, "RoleBinding", "readers", "n");
    binding["roleRef"] = json!({"kind": "Role", "name": "reader"});
    let plan = plan(vec![
        change(Action::Create, object("v1", "ConfigMap", "a", "n"), "configmaps", None),
        change(Action::Update, object("v1", "ResourceQuota", "q", "n"), "resourcequotas", Some(json!({}))),
        change(Action::Create, object(rbac, "Role", "reader", "n"), "roles", None),
        change(Action::Create, object(rbac, "ClusterRole", "other", "n"), "clusterroles", None),
        change(Action::Create, binding, "rolebindings", None),
    ]);
    let index = |name: &str| plan.changes.iter().position(|c| c.desired.object.name == name).unwrap();
    let severity = |name: &str, refusal: Refusal| said(&plan, index(name), refusal, Dependence::Nothing)[0].severity;
    let quota = || refusal(Refuser::Quota, "exceeded quota: q, requested: pods=1", &[]);
    let other_quota = || refusal(Refuser::Quota, "exceeded quota: q-2, requested: pods=1", &[]);
    assert_eq!(severity("a", quota()), Severity::Warning);
    assert_eq!(severity("a", other_quota()), Severity::Error, "this quota does not change");
    assert_eq!(severity("q", quota()), Severity::Error, "nothing is written before it");
    let missing = |name: &str| Refusal {
        missing: Some(("rolebindings".into(), name.into())),
        ..refusal(Refuser::Lookup, "not there", &[])
    };
    assert_eq!(severity("readers", missing("reader")), Severity::Warning);
    assert_eq!(severity("readers", missing("writer")), Severity::Error);
    assert_eq!(severity("readers", missing("other")), Severity::Error, "it refers to no ClusterRole");
    let denied = |name: &str| refusal(Refuser::Admission, &format!("no role \"{name}\" was found"), &[]);
    assert_eq!(severity("readers", denied("reader")), Severity::Warning);
    assert_eq!(severity("readers", denied("reader-2")), Severity::Error);
    let another_kind = refusal(Refuser::Policy, "image reader not found", &[]);
    assert_eq!(severity("readers", another_kind), Severity::Error);
}

#[test]
fn each_field_is_a_finding_by_the_rule_that_it_breaks() {
    let plan = plan(vec![
        change(Action::Update, object("v1", "Service", "s", "n"), "services", Some(json!({}))),
        change(Action::Create, object("v1", "Service", "t", "n"), "services", None),
    ]);
    let causes =
        [("spec.clusterIPs[0]", "Invalid value: \"x\": may not change once set"), ("spec.type", "Unsupported value")];
    let rules = |index, dependence| -> Vec<String> {
        let refusal = refusal(Refuser::Validation, "the API server refused it", &causes);
        said(&plan, index, refusal, dependence).into_iter().map(|violation| violation.rule.into_owned()).collect()
    };
    assert_eq!(rules(0, Dependence::Nothing), ["ImmutableField", "ObjectInvalid"]);
    assert_eq!(
        rules(1, Dependence::Nothing),
        ["ObjectInvalid", "ObjectInvalid"],
        "a new object has no immutable fields"
    );
    assert!(rules(0, Dependence::Changed(0)).is_empty(), "the schema changes");
    let denied = said(&plan, 0, refusal(Refuser::Admission, "no", &[("spec", "not here")]), Dependence::Changed(0));
    assert_eq!(
        (&*denied[0].rule, denied[0].body.message.as_str()),
        ("AdmissionDenied", "the server refuses it: not here")
    );
}

#[test]
fn a_manager_is_named_once_with_its_fields() {
    let plan = plan(vec![change(Action::Update, object("v1", "ConfigMap", "c", "n"), "configmaps", Some(json!({})))]);
    let conflict = |manager: &str, operation, field: &str| FieldConflict::new(manager, operation, field);
    let mut conflicts: Vec<_> =
        (0..12).map(|n| conflict("x", ManagerOperation::Apply, &format!(".data.k{n:02}"))).collect();
    conflicts.push(conflict("helm", ManagerOperation::Update, ".data.a"));
    let mut violations = Vec::new();
    refusal::report_refusal(&plan, 0, &DryRunError::Conflict(conflicts), Dependence::Nothing, &mut violations);
    let [first, second] = &violations[..] else { panic!("{violations:#?}") };
    assert!(first.body.message.ends_with(".data.k09, … and 2 more"), "{}", first.body.message);
    assert!(second.body.help.starts_with("it was last deployed by helm"), "{}", second.body.help);
}
