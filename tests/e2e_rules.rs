//! `CRDUpgradeSafety` from the command line, against a real API server and against a folder: every fixture pair of
//! `tests/fixtures/crd-upgrade-safety`, and the examples of the documents that the check implements.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::{Gantry, Isolated, Output, Proxy, control_plane, isolated};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn fixture_folders() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/crd-upgrade-safety");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // What no server would take today is compared without one (`tests/crd_rules.rs`).
    paths.retain(|path| !path.join("offline").exists());
    paths.sort();
    paths
}

/// A fixture's text in a group of its own, so that tests do not meet on the server.
fn text(folder: &Path, file: &str, names: &Isolated) -> String {
    fs::read_to_string(folder.join(file)).unwrap().replace("test.example.com", &names.group)
}

fn live_crd(path: &str) -> Value {
    let (status, crd) = control_plane().get(path);
    assert_eq!(status, 200, "{path}");
    crd
}

fn errors(report: &Value) -> BTreeSet<(String, Option<String>)> {
    findings(report)
        .iter()
        .filter(|finding| finding["severity"] == "error")
        .map(|finding| (finding["rule"].as_str().unwrap().to_owned(), finding["path"].as_str().map(str::to_owned)))
        .collect()
}

fn findings(report: &Value) -> &Vec<Value> {
    report["checks"][0]["findings"].as_array().unwrap()
}

fn deploy(folder: &Path, flags: &[&str]) -> Output {
    let cp = control_plane();
    Gantry::new()
        .kubeconfig(cp.kubeconfig("admin"))
        .cwd(folder)
        .args(["deploy", "-f", "desired.yaml", "--preflight", "CRDUpgradeSafety"])
        .args(flags)
        .run()
}

/// Deploys `live` to the server, writes `desired` to a folder; answers that folder and the live CRD's path.
fn stage(live: &str, desired: &str) -> (tempfile::TempDir, String) {
    let cp = control_plane();
    Gantry::new().kubeconfig(cp.kubeconfig("admin")).args(["deploy", "-f", "-"]).stdin(live).run().code(0);
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("desired.yaml"), desired).unwrap();
    let crd: Value = serde_yaml::from_str(live).unwrap();
    (work, format!("{CRDS}/{}", crd["metadata"]["name"].as_str().unwrap()))
}

#[test]
fn every_fixture_is_judged_alike_on_a_server_and_on_a_folder() {
    let folders = fixture_folders();
    assert!(folders.len() > 40);
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let names = isolated();
        let (work, path) = stage(&text(&folder, "live.yaml", &names), &text(&folder, "desired.yaml", &names));
        let before = live_crd(&path);
        fs::create_dir(work.path().join("cluster")).unwrap();
        fs::write(work.path().join("cluster/live.json"), before.to_string()).unwrap();

        let on_folder = Gantry::new()
            .cwd(work.path())
            .args(["check", "-f", "desired.yaml", "--target", "dir:cluster", "-o", "json"])
            .run()
            .report();
        let output = deploy(work.path(), &["-o", "json"]);
        let report = output.report();
        assert_eq!(findings(&report), findings(&on_folder), "{name}");

        let expected: Vec<Value> = serde_yaml::from_str(&text(&folder, "expected.yaml", &names)).unwrap();
        let expected: BTreeSet<_> = expected
            .iter()
            .filter(|finding| finding["severity"] == "error")
            .map(|finding| (finding["rule"].as_str().unwrap().to_owned(), finding["path"].as_str().map(str::to_owned)))
            .collect();
        assert_eq!(errors(&report), expected, "{name}");
        if expected.is_empty() {
            output.code(0);
            assert!(["deployed", "unchanged"].contains(&report["outcome"].as_str().unwrap()), "{name}");
            assert_eq!(deploy(work.path(), &["-o", "json"]).code(0).report()["outcome"], "unchanged", "{name}");
        } else {
            output.code(3);
            assert_eq!(before["metadata"]["resourceVersion"], live_crd(&path)["metadata"]["resourceVersion"], "{name}");
            let crd = before["metadata"]["name"].as_str().unwrap();
            let last = output.stderr.lines().last().unwrap_or_default();
            let words = format!("validating upgrade for CRD \"{crd}\" failed: CustomResourceDefinition {crd} failed ");
            assert!(last.starts_with(&words), "{name}: {last}");
        }
    }
}

/// The CRD that the documents start from.
fn base(names: &Isolated) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: samples.{group}}}
spec:
  group: {group}
  names: {{kind: Sample, listKind: SampleList, plural: samples, singular: sample}}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {{type: object}}
          status: {{type: object}}
          pollInterval: {{type: string}}
",
        group = names.group
    )
}

#[test]
fn the_documents_examples_are_blocked_in_the_documented_words() {
    let examples = [
        (
            "scope: Namespaced",
            "scope: Cluster",
            r#""NoScopeChange" validation failed: scope changed from "Namespaced" to "Cluster""#,
        ),
        (
            "name: v1alpha1",
            "name: v1alpha2",
            r#""NoStoredVersionRemoved" validation failed: stored version "v1alpha1" removed"#,
        ),
        (
            "          pollInterval: {type: string}\n",
            "",
            r#""NoExistingFieldRemoved" validation failed: crd/N version/v1alpha1 field/^.pollInterval may not be removed"#,
        ),
        (
            "        properties:\n",
            "        required: [pollInterval]\n        properties:\n",
            r#""ChangeValidator" validation failed: version "v1alpha1", field "^": new required fields added: [pollInterval]"#,
        ),
    ];
    for (from, to, words) in examples {
        let names = isolated();
        let live = base(&names);
        let (work, path) = stage(&live, &live.replace(from, to));
        let before = live_crd(&path);
        let output = deploy(work.path(), &[]);
        output.code(3);
        let name = format!("samples.{}", names.group);
        let expected = format!(
            "validating upgrade for CRD \"{name}\" failed: CustomResourceDefinition {name} failed upgrade safety \
             validation. {}",
            words.replace("crd/N", &format!("crd/{name}"))
        );
        assert_eq!(output.stderr.lines().last(), Some(expected.as_str()));
        assert_eq!(before["metadata"]["resourceVersion"], live_crd(&path)["metadata"]["resourceVersion"]);
    }
}

#[test]
fn warnings_deploy_and_a_dry_run_writes_nothing() {
    let cp = control_plane();
    let names = isolated();
    let live = base(&names);
    let (work, path) = stage(&live, &live.replace("          pollInterval: {type: string}\n", ""));
    let proxy = Proxy::start(cp);
    Gantry::new()
        .kubeconfig(proxy.kubeconfig("admin"))
        .cwd(work.path())
        .args(["deploy", "-f", "desired.yaml", "--dry-run", "--warn-only"])
        .run()
        .code(0)
        .stdout_contains("warning[NoExistingFieldRemoved]");
    assert!(proxy.writes().is_empty());

    let warn = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {mode: warn}\n";
    fs::write(work.path().join("warn.yaml"), warn).unwrap();
    deploy(work.path(), &["-c", "warn.yaml"]).code(0).stdout_contains("warning[NoExistingFieldRemoved]");
    let properties = "/spec/versions/0/schema/openAPIV3Schema/properties";
    assert_eq!(live_crd(&path).pointer(properties).unwrap().get("pollInterval"), None);
}

#[test]
fn fail_mode_decides_about_an_unknown_change() {
    let names = isolated();
    let live = base(&names);
    let (work, path) = stage(
        &live,
        &live.replace("pollInterval: {type: string}", "pollInterval: {type: string, pattern: '^[0-9]+m$'}"),
    );
    deploy(work.path(), &[]).code(3).stderr_contains("unable to determine if change to existing field is safe");
    let open = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {failMode: open}\n";
    fs::write(work.path().join("open.yaml"), open).unwrap();
    deploy(work.path(), &["-c", "open.yaml"]).code(0);
    let pattern = "/spec/versions/0/schema/openAPIV3Schema/properties/pollInterval/pattern";
    assert_eq!(live_crd(&path).pointer(pattern), Some(&json!("^[0-9]+m$")));
}

#[test]
fn built_in_kinds_are_unchanged_the_second_time() {
    let cp = control_plane();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    cp.apply_yaml("apiVersion: v1\nkind: Namespace\nmetadata: {name: demo}\n");
    let proxy = Proxy::start(cp);
    let deploy = || {
        Gantry::new()
            .kubeconfig(proxy.kubeconfig("admin"))
            .cwd(&folder)
            .args(["deploy", "-f", "built-in-kinds.yaml", "-o", "json"])
            .run()
    };
    let first = deploy();
    assert_eq!(first.code(0).report()["outcome"], "deployed");
    let written = proxy.writes().len();
    assert!(written >= 27, "{written}");
    let second = deploy();
    assert_eq!(second.code(0).report()["outcome"], "unchanged");
    assert_eq!(proxy.writes().len(), written);
}
