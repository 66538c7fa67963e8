//! Tests of all rules, and of the run over a plan.

mod neighbours;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::node::Transition;
use super::rule::Judge;
use super::rules::RULES;
use super::*;
use crate::ViolationSubject;
use crate::context_for_tests::ContextForTests;
use gantry_cluster::Target;
use gantry_cluster::dir::DirTarget;
use gantry_core::crd::CrdSide;
use gantry_core::finding::Severity;
use gantry_core::manifest::{Manifest, ManifestOrigin, ManifestSource};
use gantry_core::resource::{LiveObject, ObjectRef, RawObject, Resource};
use gantry_deploy::plan::{Action, Change, Crds, Plan};
use gantry_schema::keywords;

/// The scopes of examples.
const PART: &str = "Part of a CRD";
const FIELDS: &str = "Fields of spec in the schema of one version";

const TRANSITIONS: [Transition; 3] = [Transition::Added, Transition::Changed, Transition::Removed];

fn compared(live: &str, desired: &str) -> Result<Vec<RuleViolation>, MalformedCrd> {
    Ok(compare::compare_crds(&CrdPair::parse(live, desired)?)?.violations)
}

fn base() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.test.example.com"},
        "spec": {
            "group": "test.example.com",
            "names": {"kind": "Sample", "plural": "samples"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true}],
        },
    })
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// A whole CRD around a part of an example.
fn whole(scope: &str, text: &str) -> String {
    let part: Value = serde_yaml::from_str(text).expect("an example is YAML");
    let mut crd = base();
    let mut spec = json!({"type": "object"});
    match scope {
        PART => merge(&mut crd, &part),
        FIELDS => spec["properties"] = part,
        other => panic!("{other}: an example of a kind that nothing tests"),
    }
    for version in crd["spec"]["versions"].as_array_mut().unwrap() {
        if version["schema"].is_null() {
            version["schema"] = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
        }
    }
    crd.to_string()
}

/// Two CRDs whose `spec` has one field `x`, with these schemas.
fn pair_of(live: &Value, desired: &Value) -> (String, String) {
    let crd = |schema: &Value| whole(FIELDS, &json!({"x": schema}).to_string());
    (crd(live), crd(desired))
}

fn rules_found(live: &str, desired: &str) -> Vec<(&'static str, Option<String>)> {
    let found = compared(live, desired).expect("both can be read");
    found.into_iter().map(|violation| (violation.rule.doc.name, violation.path)).collect()
}

fn found_for_x(live: &Value, desired: &Value) -> Vec<(&'static str, String)> {
    let (live, desired) = pair_of(live, desired);
    rules_found(&live, &desired).into_iter().map(|(rule, path)| (rule, path.unwrap_or_default())).collect()
}

fn judge_all(
    check: &CrdUpgradeSafety,
    pairs: &[UpgradedCrd],
    written: &[PlannedCrdWrite],
    proofs: &Proofs,
) -> CheckResult {
    let compared = pairs.iter().map(|pair| check.compare(pair, proofs)).collect();
    let (answer, _) = check.answer(
        pairs,
        compared,
        pairs.iter().map(|_| CrdEvidence::default()).collect(),
        written,
        &BTreeMap::new(),
        proofs,
    );
    answer
}

#[test]
fn every_file_of_a_rule_is_named_after_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/crd_upgrade_safety/rules");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .filter(|stem| stem != "mod" && stem != "effects")
        .map(|stem| {
            stem.split('_')
                .map(|word| if word == "crd" { "CRD".to_owned() } else { word[..1].to_uppercase() + &word[1..] })
                .collect()
        })
        .collect();
    let registered: BTreeSet<String> = RULES.iter().map(|rule| rule.doc.name.to_owned()).collect();
    assert!(files.is_subset(&registered), "{:?}", &files - &registered);
}

#[test]
fn every_example_triggers_its_rule_and_no_other() {
    for rule in RULES {
        let example = rule.doc.example();
        let (live, desired) = (whole(example.scope, example.live()), whole(example.scope, example.desired()));
        let judged =
            CrdUpgradeSafety::new(CrdUpgradeOptions::default()).judge(&live, &desired).expect("both can be read");
        let found: Vec<&str> = judged.iter().map(|violation| violation.rule.as_ref()).collect();
        // Every field of today's API is known, so the example has one that the server refuses.
        let refused = (rule.doc.name == rule::UNKNOWN_CHANGE).then_some(server::NAME);
        assert_eq!(found, std::iter::once(rule.doc.name).chain(refused).collect::<Vec<_>>());
        assert_eq!(rules_found(&live, &live), [], "{}: live against itself", rule.doc.name);
        assert_eq!(rules_found(&desired, &desired), [], "{}: desired against itself", rule.doc.name);
    }
}

#[test]
fn every_transition_of_every_keyword_is_claimed_exactly_once() {
    for keyword in keywords::KEYWORDS.iter().map(|keyword| keyword.name) {
        for transition in TRANSITIONS {
            let claims = RULES
                .iter()
                .flat_map(|rule| rule.claims)
                .filter(|claim| claim.keyword == keyword && claim.on.contains(&transition))
                .count();
            let others = usize::from(keywords::is_waived(keyword)) + usize::from(compare::WALKED.contains(&keyword));
            assert_eq!(claims + others, 1, "{keyword} {transition:?}");
        }
    }
}

#[test]
fn no_claim_or_waiver_is_stale() {
    let claimed = RULES.iter().flat_map(|rule| rule.claims).map(|claim| claim.keyword);
    for keyword in claimed.chain(compare::WALKED.iter().copied()) {
        assert!(keywords::shape(keyword).is_some(), "the API has no keyword {keyword}");
    }
    for rule in RULES {
        assert!(
            rule.claims.is_empty() || matches!(rule.judge, Judge::Node(_)),
            "{} claims keywords and judges no nodes",
            rule.doc.name
        );
    }
}

#[test]
fn a_change_that_no_rule_claims_is_unknown() {
    for (live, desired) in [
        (json!({"type": "string"}), json!({"type": "string", "x-invented-next-year": false})),
        (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}})),
        (json!({"type": "array", "items": [{}]}), json!({"type": "array", "items": [{}, {}]})),
    ] {
        assert_eq!(found_for_x(&live, &desired), [("UnknownChange", "^.spec.x".to_owned())], "{live} {desired}");
    }
}

#[test]
fn a_bound_is_claimed_in_every_direction() {
    for (live, desired, expected) in [
        (json!({"minimum": 1}), json!({"minimum": 1.0}), &[][..]),
        (json!({"minimum": 1}), json!({"minimum": 0}), &[]),
        (json!({"minimum": 1}), json!({}), &[]),
        (json!({}), json!({"minimum": 0}), &["NoMinimumTightened"]),
        (json!({"maximum": 1}), json!({"maximum": 0.5}), &["NoMaximumTightened"]),
    ] {
        let names: Vec<&str> = found_for_x(&live, &desired).into_iter().map(|(rule, _)| rule).collect();
        assert_eq!(names, expected, "{live} {desired}");
    }
}

#[test]
fn one_cause_is_one_finding() {
    let branch =
        json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}}}});
    assert_eq!(found_for_x(&branch, &json!({"type": "object"})), [("NoExistingFieldRemoved", "^.spec.x.a".to_owned())]);
    assert_eq!(
        found_for_x(&branch, &json!({"type": "string", "pattern": "a", "default": "a"})),
        [("NoTypeChange", "^.spec.x".to_owned())]
    );
    let three = json!({"type": "string", "pattern": "a", "format": "uri", "maxLength": 3});
    let names: Vec<&str> = found_for_x(&json!({"type": "string"}), &three).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(names, ["FormatChange", "NoMaxLengthTightened", "PatternChange"]);
}

#[test]
fn the_message_about_an_object_that_becomes_a_map_depends_on_pruning() {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let told = |live: Value| {
        let (live, desired) = pair_of(&live, &map);
        let found = compared(&live, &desired).expect("two CRDs");
        let of_map = found.into_iter().find(|found| found.rule.doc.name == "AdditionalPropertiesChange");
        let diagnosis = of_map.expect("the change is found").diagnosis;
        (diagnosis.message.for_versions("v1"), diagnosis.help.for_versions("v1"))
    };
    let (message, help) = told(json!({"type": "object"}));
    assert!(message.contains("until now the server pruned every field in it"), "{message}");
    assert!(message.ends_with("it now keeps values that match, and refuses others"), "{message}");
    assert!(!help.contains("leave additionalProperties out"), "{help}");
    let (message, help) = told(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    assert!(!message.contains("until now the server pruned"), "{message}");
    assert!(help.contains("leave additionalProperties out"), "{help}");
}

#[test]
fn a_schema_that_the_api_cannot_represent_is_an_error() {
    let fine = json!({"type": "integer", "minimum": 1});
    for broken in [json!({"type": "integer", "minimum": "5"}), json!({"type": ["integer"]}), json!(true)] {
        let (live, desired) = pair_of(&fine, &broken);
        let error = compared(&live, &desired).unwrap_err();
        assert_eq!(error.side, CrdSide::Desired, "{broken}");
        assert!(error.to_string().contains("spec.x"), "{error}");
    }
}

#[test]
fn an_unreadable_crd_is_an_error_with_its_reason() {
    let good = whole(FIELDS, "{}");
    let without = |edit: fn(&mut Value)| {
        let mut crd: Value = serde_json::from_str(&good).unwrap();
        edit(&mut crd);
        crd.to_string()
    };
    for (desired, reason) in [
        (without(|crd| crd["spec"]["versions"] = json!([])), "spec.versions is empty"),
        (without(|crd| crd["spec"] = json!({})), "spec.versions is missing"),
        (without(|crd| crd["spec"] = json!(3)), "spec: invalid type: integer `3`, expected a mapping"),
        (
            without(|crd| crd["spec"]["versions"] = json!(3)),
            "spec.versions: invalid type: integer `3`, expected a sequence",
        ),
        (without(|crd| crd["spec"]["versions"][0]["schema"] = Value::Null), "version v1 has no schema"),
        (
            without(|crd| {
                crd["apiVersion"] = json!("apiextensions.k8s.io/v1beta1");
                crd["spec"] = json!({"version": "v1"});
            }),
            "its version is apiextensions.k8s.io/v1beta1, which Kubernetes removed in 1.22",
        ),
    ] {
        let error = compared(&good, &desired).unwrap_err();
        assert_eq!((error.side, error.to_string().as_str()), (CrdSide::Desired, reason));
    }
}

#[test]
fn the_status_says_which_versions_are_stored() {
    let versions = json!([
        {"name": "v1alpha1", "served": true, "storage": false},
        {"name": "v1beta1", "served": true, "storage": true},
    ]);
    let desired = whole(PART, &json!({"spec": {"versions": [versions[1]]}}).to_string());
    for (stored, expected) in [
        (json!(["v1alpha1", "v1beta1"]), "NoStoredVersionRemoved"),
        (json!(["v1beta1"]), "ServedVersionRemoved"),
        // An empty status means that only the storage version holds objects.
        (json!([]), "ServedVersionRemoved"),
        (Value::Null, "ServedVersionRemoved"),
    ] {
        let live = json!({"spec": {"versions": versions}, "status": {"storedVersions": stored}});
        let live = whole(PART, &live.to_string());
        assert_eq!(rules_found(&live, &desired), [(expected, None)], "{stored}");
    }
}

#[test]
fn text_from_a_crd_cannot_make_a_violation_long() {
    let values: Vec<String> = (0..500).map(|i| format!("{i}-{}", "x".repeat(500))).collect();
    let (live, desired) = pair_of(
        &json!({"type": "string", "enum": values}),
        &json!({"type": "string", "enum": ["a"], "pattern": "y".repeat(100_000)}),
    );
    for violation in compared(&live, &desired).unwrap() {
        let message = violation.diagnosis.message.for_versions("v1");
        assert!(message.len() < 2000, "{}", message.len());
        assert!(violation.diagnosis.body.documented.unwrap_or_default().len() < 2000);
    }
}

fn change(name: &str, live: Option<&str>, desired: &str) -> Change {
    let source = Arc::new(ManifestSource::new("crd.yaml", String::new()));
    Change {
        action: Action::Update,
        desired: Manifest {
            object: ObjectRef::crd(name).into(),
            raw: RawObject::new(desired),
            origin: ManifestOrigin { source, document: 1, line: 1, bytes: 0..0, within: Vec::new(), renamed: &[] },
            bundle: None,
        },
        live: live.map(|json| LiveObject { raw: RawObject::new(json), uid: "u".into(), resource_version: "1".into() }),
        replaces: None,
        unread: None,
        resource: Resource::crd().into(),
        owner: None,
        kapp: Default::default(),
        is_as_applied: false,
        bundle_writer: None,
        helm: None,
        crds: Crds::default(),
        answer: Default::default(),
    }
}

fn run(plan: &Plan, options: CrdUpgradeOptions) -> (Vec<Violation>, Vec<CouldNotCheck>) {
    let pairs = UpgradedCrd::all(&plan.changes);
    match judge_all(&CrdUpgradeSafety::new(options), &pairs, &[], &Proofs::new(Proven::default(), 1)) {
        CheckResult::Checked { violations, unchecked, .. } => (violations, unchecked),
        skipped @ CheckResult::Skipped(_) => panic!("{skipped:?}"),
    }
}

#[test]
fn violations_come_in_plan_order_and_only_for_what_is_live() {
    let (live, desired) = pair_of(&json!({"type": "string"}), &json!({"type": "integer"}));
    let changes = (0..50).map(|i| change(&format!("c{i}.test.example.com"), (i % 2 == 0).then_some(&*live), &desired));
    let plan = Plan { changes: changes.collect(), ..Plan::default() };
    let (found, _) = run(&plan, CrdUpgradeOptions::default());
    assert_eq!(
        found.iter().map(|v| v.subject.clone()).collect::<Vec<_>>(),
        (0..50).step_by(2).map(ViolationSubject::Change).collect::<Vec<_>>()
    );
    assert!(found.iter().all(|v| v.body.explain.as_deref() == Some("NoTypeChange")), "{:?}", found[0].body.explain);
}

#[test]
fn fail_mode_decides_the_severity_of_unknown_changes_only() {
    let (live, desired) =
        pair_of(&json!({"type": "string"}), &json!({"type": "string", "x-invented": true, "maxLength": 1}));
    let plan = Plan { changes: vec![change("samples.test.example.com", Some(&live), &desired)], ..Plan::default() };
    let severities = |fail_mode| -> BTreeMap<Cow<'static, str>, Severity> {
        run(&plan, CrdUpgradeOptions { fail_mode, ..CrdUpgradeOptions::default() })
            .0
            .into_iter()
            .map(|v| (v.rule, v.severity))
            .collect()
    };
    let expected =
        |unknown| BTreeMap::from([("NoMaxLengthTightened".into(), Severity::Error), ("UnknownChange".into(), unknown)]);
    assert_eq!(severities(FailMode::Closed), expected(Severity::Error));
    assert_eq!(severities(FailMode::Open), expected(Severity::Info));
}

#[test]
fn a_crd_that_cannot_be_read_is_named_and_hides_no_other_finding() {
    let (live, desired) = pair_of(&json!({"type": "string"}), &json!({"type": "integer"}));
    let plan = Plan {
        changes: vec![
            change("a.test.example.com", Some(&live), &desired),
            change("b.test.example.com", Some(&live), r#"{"apiVersion":"apiextensions.k8s.io/v1beta1"}"#),
            change("c.test.example.com", None, "{}"),
        ],
        ..Plan::default()
    };
    let (found, unchecked) = run(&plan, CrdUpgradeOptions::default());
    assert_eq!(
        found.iter().map(|violation| violation.subject.clone()).collect::<Vec<_>>(),
        [ViolationSubject::Change(0)]
    );
    assert_eq!(unchecked.len(), 1);
    assert_eq!(
        unchecked[0].message,
        "the manifest of CRD b.test.example.com cannot be compared: its version is apiextensions.k8s.io/v1beta1, which \
         Kubernetes removed in 1.22"
    );
}

#[tokio::test]
async fn the_check_reports_what_it_compared() {
    let folder = tempfile::tempdir().unwrap();
    let target = Target::Dir(DirTarget::open(folder.path()).unwrap());
    let (live, desired) = pair_of(&json!({"type": "string"}), &json!({"type": "string", "x-invented": true}));
    let plan = Plan { changes: vec![change("samples.test.example.com", Some(&live), &desired)], ..Plan::default() };
    let options = CrdUpgradeOptions { fail_mode: FailMode::Open, ..CrdUpgradeOptions::default() };
    let check = CrdUpgradeSafety::new(options);
    let inputs = ContextForTests::new(&plan, &target, Proven::default());
    let answer = check.run(inputs.context()).await.unwrap();
    let CheckResult::Checked { violations: found, .. } = answer else { panic!("{answer:?}") };
    let found: Vec<_> = found.iter().map(|v| (&*v.rule, v.severity)).collect();
    assert_eq!(found, [("UnknownChange", Severity::Info), ("CRDInvalid", Severity::Error)]);
}

#[test]
fn only_new_crds_that_the_server_would_refuse_are_reported() {
    let crd = |schema: Value| pair_of(&schema, &schema).1;
    let refused = crd(json!({"type": "string", "pattern": "["}));
    let name = "samples.test.example.com";
    let mut new = change(name, None, &refused);
    new.action = Action::Create;
    let changes =
        vec![new, change(name, Some(&refused), &refused), change(name, None, &crd(json!({"type": "string"})))];
    let plan = Plan { changes, ..Plan::default() };
    let judged = |preset| {
        let check = CrdUpgradeSafety::new(CrdUpgradeOptions { preset, ..CrdUpgradeOptions::default() });
        match judge_all(
            &check,
            &UpgradedCrd::all(&plan.changes),
            &PlannedCrdWrite::all(&plan.changes, "gantry"),
            &Proofs::new(Proven::default(), 1),
        ) {
            CheckResult::Checked { violations, .. } => violations,
            skipped @ CheckResult::Skipped(_) => panic!("{skipped:?}"),
        }
    };
    for (preset, severity) in [
        (Preset::Documented, Severity::Error),
        (Preset::Semantic, Severity::Error),
        (Preset::Kapp, Severity::Warning),
        (Preset::OlmV1, Severity::Warning),
        (Preset::Crdify, Severity::Warning),
    ] {
        let found = judged(preset);
        assert_eq!(found.len(), 2, "{found:?}");
        for violation in &found {
            assert_eq!((violation.rule.as_ref(), violation.severity), ("CRDInvalid", severity), "{preset:?}");
            assert_eq!(
                (violation.body.version.as_deref(), violation.body.path.as_deref()),
                (Some("v1"), Some("^.spec.x"))
            );
            assert!(violation.body.message.contains("missing closing ]: `[`"), "{}", violation.body.message);
        }
    }
}

/// A prover that proves nothing and counts its calls.
#[derive(Debug)]
struct Counting(Arc<std::sync::atomic::AtomicUsize>);

impl Prover for Counting {
    fn prove(&self, _: &VersionPairQuestion<'_>, _: gantry_proof::Limits) -> Option<VersionProof> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        None
    }
}

#[test]
fn nothing_is_proven_before_the_work_of_finding_lookups_is_done() {
    let (live, desired) = pair_of(&json!({"type": "string"}), &json!({"type": "string", "maxLength": 5}));
    let plan = Plan { changes: vec![change("samples.test.example.com", Some(&live), &desired)], ..Plan::default() };
    for name in ["CRDUpgradeSafety", "CustomResourceValidation"] {
        let options = CrdUpgradeOptions { preset: Preset::Evidence, ..CrdUpgradeOptions::default() };
        let check: Box<dyn Check> = match name {
            "CRDUpgradeSafety" => Box::new(CrdUpgradeSafety::new(options)),
            _ => (crate::custom_resource_validation::ENTRY.build)(&gantry_deploy::config::CheckConfig::default()),
        };
        let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let proofs = Arc::new(Proofs::new(Counting(Arc::clone(&asked)), 1));
        let count = || asked.load(std::sync::atomic::Ordering::SeqCst);
        let find = check.lookups(&plan, &proofs);
        assert_eq!(count(), 0, "{name}");
        let lookups = find();
        assert_eq!((count(), lookups.len()), (1, 1), "{name}: {lookups:?}");
    }
}

/// The comparison of a pattern that the server refuses is left out; other tools' verdicts stay.
#[test]
fn a_pattern_that_the_server_refuses_is_one_finding() {
    let (live, desired) =
        pair_of(&json!({"type": "string", "pattern": "a"}), &json!({"type": "string", "pattern": "["}));
    let rules = |preset| {
        let check = CrdUpgradeSafety::new(CrdUpgradeOptions { preset, ..CrdUpgradeOptions::default() });
        let found = check.judge(&live, &desired).expect("two CRDs");
        found.into_iter().map(|violation| violation.rule.to_string()).collect::<BTreeSet<_>>()
    };
    for preset in [Preset::Documented, Preset::Semantic] {
        assert_eq!(rules(preset), BTreeSet::from(["CRDInvalid".to_owned()]));
    }
    assert!(rules(Preset::Kapp).len() == 2, "{:?}", rules(Preset::Kapp));
}

/// The storage version drops the field today already: an object that has it proves nothing.
#[test]
fn a_field_that_the_storage_version_already_drops_is_no_witness() {
    let crd = |beta: &Value, conversion: &str| {
        let schema = |fields: &Value| json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}}});
        let mut crd = base();
        crd["spec"]["conversion"] = json!({"strategy": conversion});
        if conversion == "Webhook" {
            let client = json!({"url": "https://example.com"});
            crd["spec"]["conversion"]["webhook"] = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        }
        crd["spec"]["versions"] = json!([
            {"name": "v1", "served": true, "storage": true, "schema": schema(&json!({"a": {"type": "string"}}))},
            {"name": "v1beta1", "served": true, "storage": false, "schema": schema(beta)},
        ]);
        crd.to_string()
    };
    let text = json!({"type": "string"});
    let witnesses = |before: Value, after: Value, conversion| {
        let check = CrdUpgradeSafety::new(CrdUpgradeOptions::default());
        let found = check.judge(&crd(&before, conversion), &crd(&after, conversion)).expect("two CRDs");
        let removed = found.into_iter().find(|violation| violation.rule == "NoExistingFieldRemoved");
        removed.expect("a finding").body.witnesses.len()
    };
    let (both, only_a, none) = (json!({"a": text, "b": text}), json!({"a": text}), json!({}));
    assert_eq!(witnesses(both.clone(), only_a.clone(), "None"), 0);
    assert!(witnesses(both, only_a.clone(), "Webhook") > 0);
    assert!(witnesses(only_a, none, "None") > 0);
}

#[test]
fn a_change_of_a_version_that_is_neither_served_nor_stored_breaks_nothing() {
    let crd = |of_x: &str, served: bool, stored: &[&str]| {
        let schema = |of_x: &str| {
            let spec = json!({"type": "object", "properties": {"x": {"type": of_x}}});
            json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})
        };
        let mut crd = base();
        crd["status"] = json!({"storedVersions": stored});
        crd["spec"]["versions"] = json!([
            {"name": "v1", "served": served, "storage": false, "schema": schema(of_x)},
            {"name": "v2", "served": true, "storage": true, "schema": schema("string")},
        ]);
        crd.to_string()
    };
    let severity = |served: bool, stored: &[&str]| {
        let check =
            CrdUpgradeSafety::new(CrdUpgradeOptions { preset: Preset::Semantic, ..CrdUpgradeOptions::default() });
        let found = check.judge(&crd("string", served, stored), &crd("integer", served, stored)).expect("two CRDs");
        found.into_iter().find(|violation| violation.rule == "NoTypeChange").expect("a finding").severity
    };
    assert_eq!(severity(false, &["v2"]), Severity::Info);
    for (served, stored) in [(true, &["v2"][..]), (false, &["v1", "v2"]), (false, &[])] {
        assert_eq!(severity(served, stored), Severity::Error, "{served} {stored:?}");
    }
}

/// A conversion webhook is removed, with or without the version whose field the storage version lacks.
#[test]
fn only_versions_that_are_stored_or_stay_served_lose_fields() {
    let schema = |fields: Value| json!({"openAPIV3Schema": {"type": "object", "properties": fields}});
    let v1 = json!({"name": "v1", "served": true, "storage": true, "schema": schema(json!({}))});
    let beta = |served: bool| {
        let fields = json!({"spec": {"type": "object", "properties": {"a": {"type": "string"}}}});
        json!({"name": "v1beta1", "served": served, "storage": false, "schema": schema(fields)})
    };
    let crd = |versions: &[&Value], strategy: &str, stored: &[&str]| {
        let mut crd = base();
        let client = json!({"url": "https://example.com"});
        crd["spec"]["conversion"] = match strategy {
            "None" => json!({"strategy": strategy}),
            _ => json!({"strategy": strategy, "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}),
        };
        crd["spec"]["versions"] = json!(versions);
        crd["status"] = json!({"storedVersions": stored});
        crd.to_string()
    };
    let is_reported = |after: &[&Value], stored: &[&str]| {
        let live = crd(&[&v1, &beta(true)], "Webhook", stored);
        let found = compared(&live, &crd(after, "None", stored)).expect("two CRDs");
        found.iter().any(|violation| violation.rule.doc.name == "StorageVersionLosesFields")
    };
    assert!(is_reported(&[&v1, &beta(true)], &["v1"]));
    assert!(!is_reported(&[&v1, &beta(false)], &["v1"]));
    assert!(!is_reported(&[&v1], &["v1"]));
    assert!(is_reported(&[&v1, &beta(false)], &["v1", "v1beta1"]));
}
