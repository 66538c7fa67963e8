//! What the API server refuses ends a deploy before its first write, whatever the configuration accepts.

use crate::support::{Bed, Output, control_plane};
use serde_json::{Value, json};

fn config(rest: &str) -> String {
    format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{rest}")
}

/// Whether the words are on one of the streams, however the lines are wrapped.
fn says(output: &Output, words: &str) {
    let said: Vec<&str> = output.stdout.split_whitespace().chain(output.stderr.split_whitespace()).collect();
    assert!(said.join(" ").contains(words), "expected: {words}\n{output}");
}

/// Settings that let findings of `CRDUpgradeSafety` pass, each with the flags that use it.
fn accepting(bed: &Bed) -> Vec<Vec<&'static str>> {
    let check = |config: &str| format!("preflightRules:\n- name: CRDUpgradeSafety\n  config: {config}\n");
    bed.write("waived.yaml", &config("waivers:\n- {rule: '*', reason: agreed}\n"));
    bed.write("warn.yaml", &config(&check("{mode: warn}")));
    bed.write("none.yaml", &config(&check("{rules: [{name: '*', enforcement: none}]}")));
    bed.write("off.yaml", &config(&check("{enforcement: None}")));
    bed.write("kapp.yaml", &config(&check("{preset: kapp}")));
    let files = ["waived.yaml", "warn.yaml", "none.yaml", "off.yaml", "kapp.yaml"];
    let files = files.map(|file| vec!["-c", file]);
    let baseline = vec!["--baseline", "base.json"];
    [vec!["--warn-only"], baseline].into_iter().chain(files).collect()
}

/// Deploys a ConfigMap and what the server refuses, with every setting; nothing is written with any of them.
fn nothing_is_written(bed: &Bed, refused: &str, rule: &str) {
    let cp = control_plane();
    let before = cp.get(&bed.crd_path()).1["metadata"]["resourceVersion"].clone();
    bed.write("manifests.yaml", &format!("{}---\n{refused}", bed.config_map("first", "a")));
    let deploy = |flags: &[&str]| -> Output {
        let checks = ["--preflight", "CRDUpgradeSafety", "--force-conflicts"];
        bed.deploy(cp.kubeconfig("admin"), &[&checks[..], flags].concat()).run()
    };
    let plain = deploy(&["-o", "json=base.json", "-o", "human"]);
    plain.code(3).stdout_contains(&format!("error[{rule}]")).contains_nowhere("accept the change");
    for flags in accepting(bed) {
        let output = deploy(&flags);
        output.code(3).stdout_contains("Nothing was written");
        match flags[..] {
            [.., "waived.yaml"] => says(&output, "the waiver (agreed) does not apply to"),
            ["--warn-only"] => says(&output, "the API server would refuse the request, whatever is configured here"),
            [.., "warn.yaml"] => says(&output, "mode: warn of CRDUpgradeSafety: "),
            _ => {}
        }
        assert_eq!(cp.get(&bed.config_map_path("first")).0, 404, "{flags:?} {output}");
        assert_eq!(cp.get(&bed.crd_path()).1["metadata"]["resourceVersion"], before, "{flags:?}");
        // A dry run shows it as what it is.
        let dry = deploy(&[&flags[..], &["--dry-run", "-o", "json"]].concat());
        let report = dry.code(3).report();
        let findings = report["checks"][0]["findings"].as_array().expect("findings").clone();
        assert!(findings.iter().any(|finding| finding["refusedByServer"] == true), "{flags:?} {report:#}");
    }
}

#[test]
fn an_invalid_crd_is_deployed_with_no_waiver() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    let invalid = bed.crd("first: {type: string}, port: {}");
    let (status, answer) =
        cp.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All", &yaml(&invalid));
    assert_eq!(status, 422, "{answer}");
    nothing_is_written(&bed, &invalid, "CRDInvalid");
}

#[test]
fn a_changed_kind_scope_or_stored_version_is_deployed_with_no_waiver() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    let live = bed.crd("first: {type: string}");
    cp.apply_yaml(&live);
    for (rule, from, to) in [
        ("KindChanged", "kind: Sample, listKind: SampleList", "kind: Other, listKind: OtherList"),
        ("NoScopeChange", "scope: Namespaced", "scope: Cluster"),
        ("NoStoredVersionRemoved", "name: v1\n", "name: v2\n"),
    ] {
        let changed = live.replace(from, to);
        assert_ne!(changed, live);
        nothing_is_written(&bed, &changed, rule);
    }
}

#[test]
fn an_object_that_its_crd_or_admission_refuses_is_deployed_with_no_waiver() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&[bed.namespace(), bed.crd("first: {type: string, maxLength: 3}")].join("---\n"));
    bed.write("waived.yaml", &config("waivers:\n- {rule: '*', reason: agreed}\n"));
    let too_long = bed.sample().replace("first: x", "first: too long");
    let unknown = bed.sample().replace("first: x", "frist: x");
    let bad = bed.config_map("Not_A_Name", "x");
    for (check, refused) in [
        ("CustomResourceValidation", &too_long),
        ("CustomResourceValidation", &unknown),
        ("AdmissionDryRun", &too_long),
        ("AdmissionDryRun", &bad),
    ] {
        bed.write("manifests.yaml", &format!("{}---\n{refused}", bed.config_map("first", "a")));
        for flags in [&["--warn-only"][..], &["-c", "waived.yaml"]] {
            let arguments = [&["--preflight", check], flags].concat();
            let output = bed.deploy(cp.kubeconfig("admin"), &arguments).run();
            output.code(3).stdout_contains("Nothing was written");
            assert_eq!(cp.get(&bed.config_map_path("first")).0, 404, "{flags:?} {output}");
        }
    }
}

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).expect("a manifest")
}

#[test]
fn names_are_validated_on_a_folder_as_on_the_server() {
    let (cp, bed) = (control_plane(), Bed::new());
    cp.apply_yaml(&bed.namespace());
    std::fs::create_dir(bed.folder.path().join("live")).expect("a folder");
    let object = |api_version: &str, kind: &str, namespace: Option<&str>, name: &str| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
        if let Some(namespace) = namespace {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    };
    let own = Some(bed.names.namespace.as_str());
    let rbac = "rbac.authorization.k8s.io/v1";
    for (object, path, is_valid) in [
        (object("v1", "ConfigMap", own, "${NAME}"), "/api/v1/namespaces/NS/configmaps", false),
        (object("v1", "ConfigMap", own, "a.b-c"), "/api/v1/namespaces/NS/configmaps", true),
        (object("v1", "ServiceAccount", own, "A"), "/api/v1/namespaces/NS/serviceaccounts", false),
        (object("v1", "LimitRange", own, "a_b"), "/api/v1/namespaces/NS/limitranges", false),
        (object("v1", "Namespace", None, "Bad_NS"), "/api/v1/namespaces", false),
        (object("v1", "Namespace", None, "a.b"), "/api/v1/namespaces", false),
        (object(rbac, "ClusterRole", None, "gantry:A_b"), "/apis/rbac.authorization.k8s.io/v1/clusterroles", true),
    ] {
        let path = path.replace("NS", &bed.names.namespace);
        let (status, answer) = cp.post(&format!("{path}?dryRun=All"), &object);
        assert_eq!(status == 201, is_valid, "{answer}");
        bed.write("manifests.yaml", &object.to_string());
        let arguments = ["deploy", "-f", "manifests.yaml", "--target", "dir:live", "--dry-run"];
        let output = bed.gantry(cp.kubeconfig("admin"), &arguments).run();
        output.code(if is_valid { 0 } else { 3 });
    }
    bed.write("manifests.yaml", &object("v1", "ConfigMap", Some("Bad_NS"), "a").to_string());
    let arguments = ["deploy", "-f", "manifests.yaml", "--target", "dir:live"];
    bed.gantry(cp.kubeconfig("admin"), &arguments).run().code(3).stdout_contains("metadata.namespace");
    // What a CRD defines is no exception.
    std::fs::write(bed.folder.path().join("live/crd.yaml"), bed.crd("first: {type: string}")).expect("a file");
    bed.write("manifests.yaml", &bed.sample().replace("name: one", "name: Not_One"));
    bed.gantry(cp.kubeconfig("admin"), &arguments).run().code(3);
    assert_eq!(std::fs::read_dir(bed.folder.path().join("live")).expect("the folder").count(), 1);
}

/// A folder stands for a cluster, and what a bundle contains is written by OLM: both are judged like a deploy to the server.
#[test]
fn a_changed_scope_passes_with_no_waiver_in_a_folder_and_in_a_bundle() {
    let (cp, bed) = (control_plane(), Bed::with_namespace());
    let namespaced = bed.crd("first: {type: string}");
    let cluster = namespaced.replace("scope: Namespaced", "scope: Cluster");
    assert_ne!(namespaced, cluster);
    cp.apply_yaml(&namespaced);
    for folder in ["live", "manifests", "bundle/manifests", "bundle/metadata"] {
        std::fs::create_dir_all(bed.folder.path().join(folder)).expect("a folder");
    }
    bed.write("live/crd.yaml", &namespaced);
    bed.write("bundle/manifests/crd.yaml", &cluster);
    let csv = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": "example.v1.2.0"},
        "spec": {"version": "1.2.0", "installModes": [{"type": "AllNamespaces", "supported": true}]}});
    bed.write("bundle/manifests/csv.yaml", &csv.to_string());
    let annotation = "operators.operatorframework.io.bundle";
    bed.write(
        "bundle/metadata/annotations.yaml",
        &format!("annotations:\n  {annotation}.mediatype.v1: registry+v1\n  {annotation}.package.v1: example\n"),
    );
    bed.write("manifests/crd.yaml", &cluster);
    for target in [&["-f", "bundle"][..], &["-f", "manifests", "--target", "dir:live"]] {
        let check = |more: &[&str]| {
            let arguments = [&["check", "--preflight=CRDUpgradeSafety"], target, more].concat();
            bed.gantry(cp.kubeconfig("admin"), &arguments).run()
        };
        check(&["-o", "json=base.json", "-o", "human"]).code(3).contains_nowhere("accept the change");
        for flags in accepting(&bed) {
            check(&flags).code(3).contains_nowhere("accept the change");
        }
    }
}
