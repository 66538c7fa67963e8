//! Tests of the check over a folder instead of a cluster: the examples of the rules, and custom resources among the
//! manifests.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Deserialize as _;

use super::*;
use crate::context_for_tests::ContextForTests;
use gantry_cluster::Target;
use gantry_cluster::dir::DirTarget;
use gantry_core::manifest;
use gantry_deploy::plan::{self, PlanOptions};

fn example_crd(part: &str) -> Value {
    crd(serde_yaml::from_str(part).expect("an example is YAML"))
}

/// The answer of the check for a deploy of `manifests` to a folder that contains `cluster`.
fn on_folder(cluster: &[Value], manifests: &[Value]) -> CheckResult {
    let text = |objects: &[Value]| objects.iter().map(|object| format!("---\n{object}\n")).collect::<String>();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("cluster")).unwrap();
    std::fs::write(folder.path().join("cluster/live.yaml"), text(cluster)).unwrap();
    std::fs::write(folder.path().join("manifests.yaml"), text(manifests)).unwrap();
    let input = folder.path().join("manifests.yaml").to_string_lossy().into_owned();
    let manifests = manifest::load(&[input], &mut None::<std::io::Empty>).expect("manifests").manifests;
    let target = Target::Dir(DirTarget::open(&folder.path().join("cluster")).unwrap());
    let (policy, taken) = Default::default();
    let options = PlanOptions { ..PlanOptions::new(&policy, &taken) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let plan = plan::build(manifests, plan::Prefetch::none(), &target, options, &|_, _| ()).await.expect("a plan");
        let inputs = ContextForTests::new(&plan, &target, Unproven)
            .surveying(objects::Wants { named: true, ..objects::Wants::default() });
        let context = inputs.context();
        let check = (ENTRY.build)(&gantry_deploy::config::CheckConfig::default());
        check.run(context).await.expect("checked")
    })
}

fn found(answer: CheckResult) -> Vec<Violation> {
    match answer {
        CheckResult::Checked { violations, unchecked, .. } => {
            assert_eq!(unchecked, []);
            violations
        }
        CheckResult::Skipped(reason) => panic!("{reason}"),
    }
}

#[test]
fn every_example_triggers_its_rule_and_no_other() {
    for doc in rules::docs() {
        let example = doc.example();
        let (live, desired) = (example.live(), example.desired());
        let part = || object(serde_yaml::from_str(example.part("Object")).unwrap());
        let rules: BTreeSet<Cow<'static, str>> = match example.scope {
            "Part of a CRD, and of an existing object" => {
                let object = part();
                let (live, desired) = (example_crd(live), example_crd(desired));
                assert_eq!(said(&live, &live, std::slice::from_ref(&object)), Vec::<String>::new());
                findings(&live, &desired, &[object]).into_iter().map(|violation| violation.rule).collect()
            }
            "Fields of spec in the schema of one version" => {
                let desired = with_spec(fields(serde_yaml::from_str(desired).unwrap()));
                found(on_folder(&[], &[desired, part()])).into_iter().map(|violation| violation.rule).collect()
            }
            "Parts of manifests" => {
                let of = |text: &'static str| -> Vec<Value> {
                    serde_yaml::Deserializer::from_str(text).map(|object| Value::deserialize(object).unwrap()).collect()
                };
                found(on_folder(&of(live), &of(desired))).into_iter().map(|violation| violation.rule).collect()
            }
            "Part of a CRD" if doc.name == "VersionNotJudged" => {
                found(on_folder(&[example_crd(live)], &[example_crd(desired)])).into_iter().map(|v| v.rule).collect()
            }
            // This needs a server that calls a webhook: an end-to-end test covers it.
            "Part of a CRD" if doc.name == "ObjectNotConverted" => continue,
            _ => panic!("{} has an example of a kind that nothing tests", doc.name),
        };
        assert_eq!(rules, BTreeSet::from([doc.name.into()]), "{}", doc.name);
    }
}

#[test]
fn a_version_without_a_schema_could_not_be_checked() {
    let live = with_spec(fields(json!({"a": {"type": "string"}})));
    let mut bare = live.clone();
    bare["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    let unchecked = |cluster: &[Value], manifests: &[Value]| match on_folder(cluster, manifests) {
        CheckResult::Checked { violations, unchecked, .. } if violations.is_empty() => {
            unchecked.into_iter().map(|unchecked| unchecked.message).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    let compared = "the manifest of CRD samples.test.example.com cannot be compared: version v1 has no schema";
    let validated = "custom resources of samples.test.example.com cannot be validated: its version v1 has no schema";
    assert_eq!(unchecked(std::slice::from_ref(&live), std::slice::from_ref(&bare)), [compared]);
    let object = object(json!({"spec": {"a": "x"}}));
    assert_eq!(unchecked(&[], &[bare.clone(), object.clone()]), [validated]);
    assert_eq!(unchecked(&[live], &[bare.clone(), object]), [compared, validated]);
    // A live CRD without a schema was created with an API version that did not require one.
    let mut later = bare.clone();
    later["spec"]["names"]["shortNames"] = json!(["smp"]);
    assert_eq!(unchecked(&[bare], &[later]), Vec::<String>::new());
}

#[test]
fn a_manifest_at_a_version_that_the_same_deploy_removes_is_reported() {
    let two = |served: bool| {
        let mut crd = with_versions(&[("v1", true, fields(json!({}))), ("v1alpha1", false, fields(json!({})))]);
        crd["spec"]["versions"][1]["served"] = served.into();
        crd
    };
    let mut without = two(true);
    without["spec"]["versions"].as_array_mut().unwrap().pop();
    let mut object = object(json!({"spec": {}}));
    object["apiVersion"] = json!("test.example.com/v1alpha1");
    for desired in [two(false), without] {
        let found = found(on_folder(&[two(true)], &[desired, object.clone()]));
        let said: Vec<_> = found.iter().map(|v| (&*v.rule, v.body.message.as_str(), v.at.as_slice())).collect();
        let message = "the CRD among the manifests does not serve v1alpha1, so the server will not accept this object";
        assert_eq!(said, [("ManifestObjectRefused", message, &[Step::from("apiVersion")][..])]);
        assert_eq!(found[0].body.help, "change it to v1");
    }
    assert_eq!(found(on_folder(&[two(true)], &[two(true), object])), []);
}

#[test]
fn a_manifest_is_validated_by_the_crd_that_the_deploy_leaves() {
    let narrow = with_spec(fields(json!({"size": {"type": "integer", "maximum": 5}})));
    let wide = with_spec(fields(json!({"size": {"type": "integer", "maximum": 9}})));
    let object = object(json!({"spec": {"size": 7}}));
    let rules = |answer: CheckResult| {
        found(answer).iter().map(|v| (v.rule.clone(), v.body.message.clone())).collect::<Vec<_>>()
    };
    let refused = rules(on_folder(std::slice::from_ref(&narrow), std::slice::from_ref(&object)));
    assert_eq!(refused.len(), 1);
    assert!(refused[0].1.starts_with("the live CRD refuses it: spec.size: Invalid value: 7"), "{refused:?}");
    assert_eq!(rules(on_folder(std::slice::from_ref(&narrow), &[wide.clone(), object.clone()])), []);
    let refused = rules(on_folder(&[wide], &[narrow, object]));
    assert!(refused[0].1.starts_with("the CRD among the manifests refuses it"), "{refused:?}");
}

#[test]
fn a_manifest_of_a_live_object_is_judged_as_an_update() {
    let crd = with_spec(json!({"type": "object", "required": ["owner"],
        "properties": {"owner": {"type": "string"}, "size": {"type": "integer", "maximum": 5}, "note": {"type": "string"}}}));
    let mut live = object(json!({"spec": {"owner": "me", "size": 7}}));
    live["metadata"]["uid"] = "1".into();
    // Another manager set the owner, and the size was invalid before.
    let manifest = object(json!({"spec": {"size": 7, "note": "x"}}));
    assert_eq!(found(on_folder(&[crd.clone(), live.clone()], &[manifest])), []);
    let touched = object(json!({"spec": {"size": 8}}));
    assert_eq!(found(on_folder(&[crd, live], &[touched]))[0].rule, "ManifestObjectRefused");
}

#[test]
fn unknown_fields_are_placed_and_the_nearest_known_one_is_named() {
    let crd = with_spec(fields(
        json!({"replicas": {"type": "integer"}, "list": {"type": "array", "items": fields(json!({"name": {"type": "string"}}))}}),
    ));
    let manifest = object(
        json!({"metadata": {"lables": {"a": "b"}}, "spec": {"replcas": 1, "list": [{"name": "x"}, {"nmae": "y"}], "zzz": 1}, "sepc": {}}),
    );
    let found = found(on_folder(&[crd], &[manifest]));
    let said: Vec<_> = found
        .iter()
        .map(|v| (v.body.path.clone().unwrap(), v.body.help.split(": gantry").next().unwrap().to_owned()))
        .collect();
    let near = |path: &str, near: &str| (path.to_owned(), format!("did you mean {near:?}?"));
    assert_eq!(
        said,
        [
            near("metadata.lables", "labels"),
            near("sepc", "spec"),
            near("spec.list[*].nmae", "name"),
            near("spec.replcas", "replicas"),
            ("spec.zzz".to_owned(), "remove it, or add it to the CRD first".to_owned()),
        ]
    );
    assert_eq!(found[2].at, [Step::from("spec"), "list".into(), 1.into(), "nmae".into()]);
}
