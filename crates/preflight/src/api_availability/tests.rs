//! Runs the check on folders in place of a cluster.

use serde_json::{Value, json};

use super::ENTRY;
use crate::context_for_tests::ContextForTests;
use crate::proofs::Proven;
use crate::{CheckResult, Violation, ViolationSubject};
use gantry_cluster::Target;
use gantry_cluster::dir::DirTarget;
use gantry_core::crd::builder::CrdBuilder;
use gantry_core::manifest;
use gantry_deploy::plan::{self, PlanOptions};

/// The findings of a deploy of `manifests` to a folder that contains `cluster`: the rule, object and message of each.
fn said(cluster: &[Value], manifests: &[Value]) -> Vec<String> {
    let name = |v: &Violation, plan: &plan::Plan| {
        let object = match v.subject {
            ViolationSubject::Change(index) => &plan.changes[index].desired.object,
            ViolationSubject::Unplaced(index) => &plan.unplaced[index].manifest.object,
            _ => panic!("{v:?} is not about a manifest"),
        };
        format!("{} {object}: {}", v.rule, v.body.message)
    };
    run(cluster, manifests, None, name)
}

fn run<T>(
    cluster: &[Value],
    manifests: &[Value],
    namespace: Option<&str>,
    show: impl Fn(&Violation, &plan::Plan) -> T,
) -> Vec<T> {
    let text = |objects: &[Value]| objects.iter().map(|object| format!("---\n{object}\n")).collect::<String>();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("cluster")).unwrap();
    std::fs::write(folder.path().join("cluster/live.yaml"), text(cluster)).unwrap();
    std::fs::write(folder.path().join("manifests.yaml"), text(manifests)).unwrap();
    let input = folder.path().join("manifests.yaml").to_string_lossy().into_owned();
    let manifests = manifest::load(&[input], &mut None::<std::io::Empty>).expect("manifests").manifests;
    let target = Target::Dir(DirTarget::open(&folder.path().join("cluster")).unwrap());
    let (policy, taken) = Default::default();
    let options = PlanOptions { namespace, keep_unplaced: true, ..PlanOptions::new(&policy, &taken) };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let plan = plan::build(manifests, plan::Prefetch::none(), &target, options, &|_, _| ()).await.expect("a plan");
        let inputs = ContextForTests::new(&plan, &target, Proven::default());
        let context = inputs.context();
        let answer = (ENTRY.build)(&gantry_deploy::config::CheckConfig::default()).run(context).await.expect("checked");
        let CheckResult::Checked { violations, unchecked, .. } = answer else { panic!("skipped") };
        assert_eq!(unchecked, []);
        violations.iter().map(|violation| show(violation, &plan)).collect()
    })
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "n"}})
}

/// `(name, served)` of each version; the last one is stored.
fn crd(versions: &[(&str, bool)]) -> Value {
    let add = |crd: CrdBuilder, (index, (name, served)): (usize, &(&str, bool))| {
        crd.version(name, json!({"type": "object"})).served(*served).storage(index + 1 == versions.len())
    };
    versions.iter().enumerate().fold(CrdBuilder::samples("test.example.com"), add).build()
}

fn rule(groups: &[&str], versions: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": groups, "apiVersions": versions, "resources": resources, "operations": ["*"]})
}

/// A webhook that matches exactly the versions that its rule names.
fn webhook(name: &str, rule: &Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name}, "webhooks": [{"name": "w.example.com", "matchPolicy": "Exact", "rules": [rule]}]})
}

fn policy(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

#[test]
fn a_similar_kind_or_version_is_suggested() {
    let help = |api_version: &str, kind: &str| {
        let cluster = [crd(&[("v1alpha1", true), ("v1", true)])];
        let found =
            run(&cluster, &[object(api_version, kind, "x")], None, |v, _| format!("{} {}", v.rule, v.body.help));
        let [found] = &found[..] else { panic!("{found:?}") };
        found.clone()
    };
    for (api_version, kind, expected) in [
        ("apps/v1", "Deploymnet", "ApiNotServed change it to kind: Deployment if that is what you meant"),
        ("apps/v2", "Deployment", "ApiNotServed change it to apiVersion: apps/v1 if that is what you meant"),
        ("v1", "Deployment", "ApiNotServed change it to apiVersion: apps/v1 if that is what you meant"),
        (
            "test.example.com/v2",
            "Sample",
            "ApiNotServed change it to apiVersion: test.example.com/v1 or test.example.com/v1alpha1 if that is what \
             you meant",
        ),
        (
            "tset.example.com/v1",
            "Sample",
            "ApiNotServed change it to apiVersion: test.example.com/v1 or test.example.com/v1alpha1 if that is what \
             you meant",
        ),
        // A kind with the same or a similar name in an unrelated group is not suggested.
        (
            "cert-manager.io/v1",
            "Sample",
            "ApiNotServed install the software that provides cert-manager.io first, or add the CRD that defines the \
             kind to the manifests",
        ),
        (
            "cert-manager.io/v1",
            "Deploymnet",
            "ApiNotServed install the software that provides cert-manager.io first, or add the CRD that defines the \
             kind to the manifests",
        ),
        (
            "apps/v1",
            "Xyzzy",
            "ApiNotServed check apiVersion and kind, or add the CRD that defines the kind to the manifests",
        ),
        ("policy/v1beta1", "PodSecurityPolicy", "ApiRemoved it has no replacement: remove it"),
    ] {
        assert_eq!(help(api_version, kind), expected, "{api_version} {kind}");
    }
    assert!(help("extensions/v1beta1", "Ingress").starts_with("ApiRemoved change it to networking.k8s.io/v1;"));
}

#[test]
fn a_crd_at_an_unserved_version_is_reported_like_any_other_object() {
    let mut old = crd(&[("v1", true)]);
    old["apiVersion"] = "apiextensions.k8s.io/v2".into();
    assert_eq!(
        said(&[], &[old.clone()]),
        ["ApiNotServed customresourcedefinition/samples.test.example.com: CustomResourceDefinition of \
          apiextensions.k8s.io/v2 is not served by any release"]
    );
    old["apiVersion"] = "apiextensions.k8s.io/v1beta1".into();
    assert_eq!(
        said(&[], &[old]),
        ["ApiRemoved customresourcedefinition/samples.test.example.com: CustomResourceDefinition of \
          apiextensions.k8s.io/v1beta1 is not served since Kubernetes 1.22"]
    );
}

#[test]
fn a_kind_of_the_same_deploy_is_served_but_not_at_its_unserved_version() {
    let crd = crd(&[("v1alpha1", false), ("v1", true)]);
    assert_eq!(said(&[], &[crd.clone(), object("test.example.com/v1", "Sample", "x")]), [""; 0]);
    let manifests = [crd, object("test.example.com/v1alpha1", "Sample", "x")];
    let help = run(&[], &manifests, None, |v, _| v.body.help.clone());
    assert_eq!(help, ["the CRD among the manifests has v1alpha1 with served: false; use a version that it serves"]);
}

#[test]
fn an_assumed_or_ignored_namespace_is_reported() {
    let mut map = object("v1", "ConfigMap", "x");
    map["metadata"].as_object_mut().unwrap().shift_remove("namespace");
    let role = object("rbac.authorization.k8s.io/v1", "ClusterRole", "r");
    let manifests = [map, role, object("v1", "ConfigMap", "y")];
    let rules = |namespace| run(&[], &manifests, namespace, |v, _| v.rule.clone());
    assert_eq!(rules(None), ["NamespaceAssumed", "NamespaceIgnored"]);
    assert_eq!(rules(Some("prod")), ["NamespaceIgnored"]);
}

#[test]
fn deprecated_versions_name_their_end() {
    let mut live = crd(&[("v1alpha1", true), ("v1", true)]);
    live["spec"]["versions"][0]["deprecated"] = true.into();
    live["spec"]["versions"][0]["deprecationWarning"] = "use v1".into();
    let manifests = [
        object("v1", "Endpoints", "e"),
        object("test.example.com/v1alpha1", "Sample", "s"),
        object("apps/v1", "Deployment", "d"),
    ];
    let expected = [
        "ApiDeprecated endpoints/e -n n: Endpoints of v1 is deprecated since Kubernetes 1.33; no removal release is announced",
        "ApiDeprecated sample.test.example.com/s -n n: Sample of test.example.com/v1alpha1 is deprecated by its CRD: use v1",
    ];
    assert_eq!(said(&[live.clone()], &manifests), expected);
    // The CRD of the deploy decides, not the live one.
    let mut desired = live.clone();
    desired["spec"]["versions"][0]["deprecated"] = false.into();
    assert_eq!(said(&[live], &[desired, manifests[1].clone()]), [""; 0]);
}

#[test]
fn a_reference_to_a_removed_version_is_found() {
    let live = crd(&[("v1alpha1", true), ("v1", true)]);
    let desired = crd(&[("v1alpha1", false), ("v1", true)]);
    let group = ["test.example.com"];
    let mut stored = object("test.example.com/v1", "Sample", "live");
    stored["metadata"]["managedFields"] = json!([
        {"manager": "old-controller", "operation": "Update", "apiVersion": "test.example.com/v1alpha1", "fieldsV1": {}},
        {"manager": "gantry", "operation": "Apply", "apiVersion": "test.example.com/v1alpha1", "fieldsV1": {}}]);
    let cluster = [
        live.clone(),
        stored,
        webhook("only-old", &rule(&group, &["v1alpha1"], &["samples/status"])),
        webhook("both", &rule(&group, &["v1alpha1", "v1"], &["samples"])),
        webhook("all-versions", &rule(&["*"], &["*"], &["*"])),
        webhook("another-kind", &rule(&group, &["v1alpha1"], &["others"])),
        webhook("moved-by-the-deploy", &rule(&group, &["v1alpha1"], &["samples"])),
        policy(
            "ValidatingAdmissionPolicy",
            "by-parameter",
            json!({"paramKind": {"apiVersion": "test.example.com/v1alpha1", "kind": "Sample"}}),
        ),
        policy(
            "ValidatingAdmissionPolicy",
            "by-rule",
            json!({"matchConstraints": {"matchPolicy": "Exact", "resourceRules": [rule(&group, &["v1alpha1"], &["*"])]}}),
        ),
    ];
    let manifests = [
        desired,
        object("test.example.com/v1alpha1", "Sample", "written"),
        webhook("moved-by-the-deploy", &rule(&group, &["v1"], &["samples"])),
        webhook("new-and-old", &rule(&group, &["v1alpha1"], &["samples"])),
    ];
    let crd = "ApiGoesAway customresourcedefinition/samples.test.example.com";
    let of = "of samples.test.example.com and no version that is still served";
    assert_eq!(
        said(&cluster, &manifests),
        [
            "ApiGoesAway sample.test.example.com/written -n n: this deploy stops serving v1alpha1 of samples.test.example.com, which the object uses".to_owned(),
            "ApiGoesAway validatingwebhookconfiguration.admissionregistration.k8s.io/new-and-old: this deploy stops serving v1alpha1 of samples.test.example.com, which this names".to_owned(),
            format!("{crd}: the policy by-parameter reads its parameters at v1alpha1 of samples.test.example.com, \
                where the API server will not find them: it refuses everything that it matches, at the latest after the server's next restart"),
            format!("{crd}: the policy by-rule names v1alpha1 {of}: the server will no longer evaluate it"),
            format!("{crd}: the webhook configuration only-old names v1alpha1 {of}: the server will no longer call its \
                webhook"),
            format!("{crd}: live objects of samples.test.example.com were written at v1alpha1 by old-controller (1 object)"),
        ]
    );
    assert_eq!(said(&cluster, &[live]), [""; 0], "a CRD that keeps its versions removes nothing");
}

#[test]
fn a_version_that_the_crd_keeps_unserved_is_still_matched_under_match_policy_equivalent() {
    let live = crd(&[("v1alpha1", true), ("v1", true)]);
    let of_old = rule(&["test.example.com"], &["v1alpha1"], &["samples"]);
    let equivalent = json!({"resourceRules": [of_old]});
    let mut hook = webhook("hook", &of_old);
    hook["webhooks"][0].as_object_mut().unwrap().shift_remove("matchPolicy");
    let cluster = [
        live,
        hook,
        policy("MutatingAdmissionPolicy", "mutating", json!({"matchConstraints": equivalent})),
        policy("ValidatingAdmissionPolicyBinding", "bound", json!({"matchResources": equivalent})),
    ];
    assert_eq!(said(&cluster, &[crd(&[("v1alpha1", false), ("v1", true)])]), [""; 0]);
    let crd_is = "ApiGoesAway customresourcedefinition/samples.test.example.com";
    let of = "names v1alpha1 of samples.test.example.com and no version that is still served";
    assert_eq!(
        said(&cluster, &[crd(&[("v1", true)])]),
        [
            format!("{crd_is}: the policy mutating {of}: the server will no longer evaluate it"),
            format!("{crd_is}: the policy binding bound {of}: the server will no longer evaluate it"),
            format!("{crd_is}: the webhook configuration hook {of}: the server will no longer call its webhook"),
        ]
    );
}

#[test]
fn aggregated_roles_that_refer_to_an_unserved_crd_are_found() {
    let role = |name: &str, label: &str| {
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {label: "true"}},
            "rules": [{"apiGroups": ["test.example.com"], "resources": ["samples/status"], "verbs": ["get"]}]})
    };
    let cluster = [
        crd(&[("v1alpha1", true), ("v1", true)]),
        role("part", "rbac.authorization.k8s.io/aggregate-to-view"),
        role("other", "team"),
    ];
    assert_eq!(
        said(&cluster, &[crd(&[("v1alpha1", false), ("v1", false)])]),
        ["ApiGoesAway customresourcedefinition/samples.test.example.com: the aggregated ClusterRole part names v1, \
          v1alpha1 of samples.test.example.com and no version that is still served: its rules will match nothing"]
    );
    assert_eq!(said(&cluster, &[crd(&[("v1alpha1", false), ("v1", true)])]), [""; 0], "roles name no versions");
}

#[test]
fn the_example_of_each_rule_breaks_it() {
    for rule in super::rules::docs() {
        let documents = |text: &str| -> Vec<Value> {
            let documents = text.split("---\n").map(|part| serde_yaml::from_str(part).expect("YAML"));
            documents.filter(|document: &Value| !document.is_null()).collect()
        };
        let mut manifests = documents(rule.example().desired());
        let mut cluster = Vec::new();
        if !rule.example().live().is_empty() {
            cluster.push(crd(&[("v1alpha1", true), ("v1", true)]));
            manifests[0] = crd(&[("v1alpha1", false), ("v1", true)]);
            manifests[1]["metadata"]["namespace"] = "n".into();
        }
        if rule.name != "NamespaceAssumed" {
            manifests.iter_mut().skip(1).for_each(|m| m["metadata"]["namespace"] = "n".into());
        }
        let found =
            run(&cluster, &manifests, Some("n").filter(|_| rule.name != "NamespaceAssumed"), |v, _| v.rule.clone());
        assert_eq!(found, [rule.name]);
    }
}
