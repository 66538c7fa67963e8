//! CRDs on servers of another release than the one whose validation gantry reproduces: the server has the last word.

use std::collections::BTreeSet;

use crate::support::admission::Admission;
use crate::support::{Bed, Output, Proxy, When, control_plane, crd_yaml, eventually};
use gantry_testbed::ControlPlane;
use serde_json::{Value, json};

const CHECK: &[&str] = &["check", "-f", "manifests.yaml"];

/// A schema that uses a function of CEL's list library, which 1.36 knows and 1.34 does not.
const DISTINCT: &str = "list: {type: array, maxItems: 5, items: {type: string, maxLength: 5}, \
     x-kubernetes-validations: [{rule: 'self.distinct().size() == self.size()'}]}";

#[test]
fn a_crd_with_a_function_that_the_server_does_not_know_is_not_deployed() {
    let cp = &ControlPlane::start_emulating("1.34");
    let bed = Bed::on(cp);
    let manifests = |properties: &str| {
        bed.write("manifests.yaml", &format!("{}---\n{}", bed.config_map("first", "a"), bed.crd(properties)))
    };
    let refused = |output: &Output| {
        output.code(3).stdout_contains("error[CRDInvalid]").stdout_contains("undeclared reference to 'distinct'");
        output.stdout_contains("Kubernetes 1.37 accepts it: deploy a version of this CRD that supports 1.34");
    };
    // A new CRD.
    manifests(DISTINCT);
    refused(&bed.deploy(cp.kubeconfig("admin"), &[]).run());
    assert_eq!([&bed.config_map_path("first"), &bed.crd_path()].map(|path| cp.get(path).0), [404, 404]);
    // A changed one, with each setting that accepts other findings.
    manifests("name: {type: string}");
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    let before = cp.get(&bed.crd_path()).1["metadata"]["resourceVersion"].clone();
    manifests(&format!("name: {{type: string}}, {DISTINCT}"));
    for flags in
        [&[][..], &["--warn-only"], &["--preset", "evidence"], &["--preflight", "AdmissionDryRun,CRDUpgradeSafety"]]
    {
        refused(&bed.deploy(cp.kubeconfig("admin"), flags).run());
    }
    let kapp = bed.deploy(cp.kubeconfig("admin"), &["--preset", "kapp"]).run();
    kapp.code(3).stdout_contains("undeclared reference to 'distinct'");
    assert_eq!(cp.get(&bed.crd_path()).1["metadata"]["resourceVersion"], before);
    // Without the right to write, gantry's own validation for the release decides, and the report says so.
    let reader = bed.gantry(cp.kubeconfig("reader"), CHECK).run();
    refused(&reader);
    reader.stderr_contains("CRDUpgradeSafety did not check everything");
    reader.stderr_contains("gantry's own rules for Kubernetes 1.34 decided");
    reader.stderr_contains("customresourcedefinitions\"], verbs: [\"patch\"]");
    // The release that gantry knows accepts it.
    let (newest, bed) = (control_plane(), Bed::with_namespace());
    bed.write("manifests.yaml", &bed.crd(DISTINCT));
    bed.deploy(newest.kubeconfig("admin"), &[]).run().code(0);
}

#[test]
fn a_field_of_a_crd_that_only_a_newer_server_knows_is_accepted() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let mut crd: Value = serde_yaml::from_str(&bed.crd("name: {type: string}")).expect("a CRD");
    bed.write("manifests.yaml", &crd.to_string());
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    crd["spec"]["versions"][0]["fieldOfNextYear"] = json!(true);
    bed.write("manifests.yaml", &crd.to_string());
    let proxy = Proxy::start(cp);
    let check = || bed.gantry(proxy.kubeconfig("admin"), CHECK).run();
    check().code(3).stdout_contains("error[CRDInvalid]").stdout_contains("fieldOfNextYear");
    // What a server answers that knows the field.
    let live = cp.get(&bed.crd_path()).1;
    let mut answer = live.clone();
    answer["spec"] = crd["spec"].clone();
    proxy.answer(When::new("PATCH", &bed.crd_path()).query("dryRun=All"), 200, answer);
    check().code(0).contains_nowhere("CRDInvalid");
    assert_eq!(proxy.requests().iter().filter(|request| request.method == "PATCH").count(), 2);
}

#[test]
fn a_server_that_answers_no_dry_run_is_not_asked_about_every_crd() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let crds = |count: usize| -> Vec<String> {
        let group = |index: usize| format!("g{index}.{}", bed.names.group);
        (0..count).map(|index| crd_yaml(&group(index), "Sample", "name: {type: string}")).collect()
    };
    bed.write("manifests.yaml", &crds(80).join("---\n"));
    let proxy = Proxy::start(cp);
    proxy.cut(When::new("PATCH", "").query("dryRun=All"));
    let run = bed.gantry(proxy.kubeconfig("admin"), CHECK).run();
    run.code(0).stderr_contains("gantry's own rules for Kubernetes 1.36 decided");
    run.stderr_contains("the server no longer answers");
    let asked: BTreeSet<String> =
        proxy.requests().into_iter().filter(|request| request.method == "PATCH").map(|request| request.path).collect();
    assert!(asked.len() <= 40, "{asked:#?}");
}

/// A proxy to a server that says it is of a release that does not exist yet.
fn server_of_a_later_release() -> Proxy {
    let proxy = Proxy::start(control_plane());
    let version = json!({"major": "1", "minor": "40", "gitVersion": "v1.40.0"});
    proxy.answer(When::new("GET", "/version").ending(), 200, version);
    proxy
}

/// The same, and its OpenAPI document is not readable.
fn silent_server_of_a_later_release() -> Proxy {
    let proxy = server_of_a_later_release();
    proxy.answer(When::new("GET", "/openapi/"), 403, json!({"kind": "Status", "code": 403, "reason": "Forbidden"}));
    proxy
}

/// A CRD with a field and one with a CEL function that no release knows.
fn crds_of_a_later_release(bed: &Bed) -> [Value; 2] {
    let crd = |kind: &str, schema: &str| {
        serde_yaml::from_str::<Value>(&crd_yaml(&bed.names.group, kind, schema)).expect("a CRD")
    };
    let mut with_field = crd("Sample", "name: {type: string}");
    with_field["spec"]["versions"][0]["fieldOfNextYear"] = json!(true);
    let rule = "{rule: 'self.functionOfNextYear()'}";
    let text = format!("name: {{type: string, maxLength: 9, x-kubernetes-validations: [{rule}]}}");
    [with_field, crd("Other", &text)]
}

#[test]
fn what_a_later_release_accepts_in_its_dry_run_is_accepted() {
    let bed = Bed::with_namespace();
    let proxy = silent_server_of_a_later_release();
    let crds = crds_of_a_later_release(&bed);
    bed.write_objects(&crds);
    for crd in &crds {
        let path = format!("/customresourcedefinitions/{}", crd["metadata"]["name"].as_str().expect("a name"));
        proxy.answer(When::new("PATCH", &path).query("dryRun=All"), 200, crd.clone());
    }
    bed.gantry(proxy.kubeconfig("admin"), CHECK).run().code(0).contains_nowhere("CRDInvalid");
    let dry_runs = proxy.requests().iter().filter(|request| request.method == "PATCH").count();
    assert_eq!(dry_runs, 2);
}

#[test]
fn what_a_later_release_may_know_is_undecided_without_a_dry_run_and_never_invalid() {
    let bed = Bed::with_namespace();
    let proxy = silent_server_of_a_later_release();
    for crd in crds_of_a_later_release(&bed) {
        bed.write_objects([&crd]);
        let check = bed.gantry(proxy.kubeconfig("reader"), CHECK).run();
        check.contains_nowhere("CRDInvalid").stdout_contains("could not be decided");
    }
    // What no release accepts is invalid all the same.
    let mut crd: Value = serde_yaml::from_str(&bed.crd("name: {type: string}")).expect("a CRD");
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["name"]["type"] = json!("text");
    bed.write_objects([&crd]);
    bed.gantry(proxy.kubeconfig("reader"), CHECK).run().code(3).stdout_contains("error[CRDInvalid]");
}

#[test]
fn the_document_of_a_later_release_says_which_fields_it_lacks() {
    let bed = Bed::with_namespace();
    let proxy = server_of_a_later_release();
    let [with_field, with_function] = crds_of_a_later_release(&bed);
    bed.write_objects([&with_field]);
    let check = || bed.gantry(proxy.kubeconfig("reader"), CHECK).run();
    let run = check();
    run.code(3).stdout_contains("error[CRDInvalid]").stdout_contains("fieldOfNextYear: field not declared in schema");
    run.contains_nowhere("could not be decided");
    // It has the fields of all releases that are known, and says nothing about functions.
    bed.write_objects([&with_function]);
    check().contains_nowhere("CRDInvalid").stdout_contains("could not be decided");
    let every_field = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "a": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "default": 3, "enum": [1, 3], "title": "A",
            "description": "a", "example": {"x": 1}, "externalDocs": {"url": "https://example.com"}},
        "b": {"type": "array", "items": {"type": "string", "maxLength": 9}, "maxItems": 3, "uniqueItems": false,
            "x-kubernetes-list-type": "set"},
        "c": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "d": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}, "maxProperties": 2,
            "x-kubernetes-map-type": "atomic"},
        "e": {"type": "string", "maxLength": 9, "pattern": "a", "x-kubernetes-validations": [{"rule": "oldSelf.hasValue() || self != 'x'",
            "message": "m", "messageExpression": "'m'", "reason": "FieldValueInvalid", "optionalOldSelf": true}]},
        "f": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }}}});
    let mut crd = crate::support::CrdBuilder::samples(&bed.names.group).version("v1", every_field).build();
    crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.e"}]);
    bed.write_objects([&crd]);
    check().code(0).contains_nowhere("CRDInvalid");
}

#[test]
fn a_crd_that_a_policy_denies_is_refused_before_anything_is_written() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let crd = |fields: &str| format!("{}---\n{}", bed.config_map("first", "a"), bed.crd(fields));
    bed.write("manifests.yaml", &bed.crd("name: {type: string}"));
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    let name = format!("samples.{}", bed.names.group);
    let mut admission = Admission::default();
    let rules = json!({"apiGroups": ["apiextensions.k8s.io"], "apiVersions": ["*"], "operations": ["UPDATE"],
        "resources": ["customresourcedefinitions"]});
    let spec = json!({"matchConstraints": {"resourceRules": [rules]},
        "validations": [{"expression": format!("object.metadata.name != '{name}'"), "message": "frozen by the team"}]});
    admission.configure("validatingadmissionpolicies", &json!({"metadata": {"name": name}, "spec": spec}));
    let spec = json!({"policyName": name, "validationActions": ["Deny"]});
    admission.configure("validatingadmissionpolicybindings", &json!({"metadata": {"name": name}, "spec": spec}));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let path = format!("{}?dryRun=All", bed.crd_path());
    eventually("the policy to be in force", || (cp.patch(&path, &label).0 == 422).then_some(()));

    bed.write("manifests.yaml", &crd("name: {type: string}, more: {type: string}"));
    for flags in [&[][..], &["--warn-only"]] {
        let run = bed.deploy(cp.kubeconfig("admin"), flags).run();
        run.code(3).stdout_contains("frozen by the team").stdout_contains("ask who administers the policy");
        run.contains_nowhere("CRDInvalid").contains_nowhere("was not asked");
    }
    assert_eq!(cp.get(&bed.config_map_path("first")).0, 404);
}
