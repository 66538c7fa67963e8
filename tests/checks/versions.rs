//! Follows the migration plan for a removed stored version step by step on a real API server, and tests the server's
//! own behaviour when versions change.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::{CrdBuilder, Gantry, Isolated, Output, control_plane, eventually, isolated, string_fields};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A CRD with these versions: name, served, storage, fields of spec.
fn crd(names: &Isolated, versions: &[(&str, bool, bool, &[&str])]) -> Value {
    let add = |crd: CrdBuilder, (name, served, storage, fields): &(&str, bool, bool, &[&str])| {
        crd.version_of_spec(name, string_fields(fields)).served(*served).storage(*storage)
    };
    versions.iter().fold(CrdBuilder::samples(&names.group), add).build()
}

fn deploy(work: &Path, crd: &Value, flags: &[&str]) -> Output {
    fs::write(work.join("crd.yaml"), crd.to_string()).unwrap();
    Gantry::new()
        .kubeconfig(control_plane().kubeconfig("admin"))
        .cwd(work)
        .args(["deploy", "-f", "crd.yaml", "--preflight", "CRDUpgradeSafety"])
        .args(flags)
        .run()
}

/// The findings of a rule.
fn findings<'r>(report: &'r Value, rule: &str) -> Vec<&'r Value> {
    report["checks"][0]["findings"].as_array().unwrap().iter().filter(|finding| finding["rule"] == rule).collect()
}

fn sample(names: &Isolated, version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("{}/{version}", names.group),
        "kind": "Sample",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    })
}

/// After a change of versions the server restarts its storage and meanwhile answers 429; kubectl retries by itself.
fn answered(request: impl Fn() -> (u16, Value)) -> Value {
    eventually("the server answers", || match request() {
        (200 | 201, answer) => Some(answer),
        (429, _) => None,
        (status, answer) => panic!("{status}: {answer:#}"),
    })
}

/// The spec of each object by name, read at a version.
fn specs(names: &Isolated, version: &str) -> Vec<(String, Value)> {
    let list = answered(|| control_plane().get(&format!("/apis/{}/{version}/samples", names.group)));
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| (item["metadata"]["name"].as_str().unwrap().to_owned(), item["spec"].clone())).collect()
}

/// Runs the command at the end of a step in a shell, and returns what it prints.
fn run(step: &str) -> String {
    let (_, command) = step.rsplit_once(": gantry ").unwrap_or_else(|| panic!("no command: {step}"));
    // The question cannot be answered without a terminal.
    let command = format!("{} {command} --yes", env!("CARGO_BIN_EXE_gantry"));
    let home = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", &command])
        .env("KUBECONFIG", control_plane().kubeconfig("admin"))
        .env("HOME", home.path())
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The numbered steps of the plan to remove a stored version.
fn plan(blocked: &Output) -> Vec<String> {
    let report = blocked.report();
    let help = findings(&report, "NoStoredVersionRemoved")[0]["help"].as_str().unwrap().to_owned();
    let steps =
        help.lines().filter_map(|line| line.split_once(". ").filter(|(number, _)| number.parse::<u8>().is_ok()));
    steps.map(|(_, step)| step.to_owned()).collect()
}

#[test]
fn the_migration_plan_removes_a_stored_version_and_keeps_all_objects() {
    let cp = control_plane();
    let names = isolated();
    let work = tempfile::tempdir().unwrap();
    let fields: &[&str] = &["host", "note"];
    let live = crd(&names, &[("v1alpha1", true, true, fields)]);
    deploy(work.path(), &live, &[]).code(0);
    for number in 0..5 {
        let object =
            sample(&names, "v1alpha1", &format!("s{number}"), json!({"host": format!("h{number}"), "note": "kept"}));
        answered(|| cp.post(&format!("/apis/{}/v1alpha1/namespaces/default/samples", names.group), &object));
    }
    let before = specs(&names, "v1alpha1");

    // Blocked, and rightly: without the check, the server itself refuses.
    let desired = crd(&names, &[("v1beta1", true, true, fields)]);
    let blocked = deploy(work.path(), &desired, &["-o", "json"]);
    blocked
        .code(3)
        .stderr_contains("\"NoStoredVersionRemoved\" validation failed: stored version \"v1alpha1\" removed");
    deploy(work.path(), &desired, &["--warn-only"]).code(3);
    // The plan is written for people: a line for each step.
    let shown = deploy(work.path(), &desired, &[]);
    let steps = plan(&blocked);
    assert_eq!(steps.len(), 5, "{steps:?}");
    for step in &steps {
        let words: Vec<&str> = step.split_whitespace().take(3).collect();
        shown.stdout_contains(&words.join(" "));
        // A command stands on one line, so that it can be pasted.
        if let Some(at) = step.find("gantry migrate ") {
            shown.stdout_contains(&step[at..]);
        }
    }

    let step = |number: usize| steps[number - 1].as_str();
    assert_eq!(
        step(1),
        "deploy this CRD with v1alpha1 kept in spec.versions (served: true, storage: false) beside v1beta1 (served: \
         true, storage: true)"
    );
    let between = crd(&names, &[("v1alpha1", true, false, fields), ("v1beta1", true, true, fields)]);
    deploy(work.path(), &between, &[]).code(0);
    assert!(run(step(2)).contains("wrote 5 objects"));
    assert_eq!(step(3), "once no client uses v1alpha1 any more, deploy this CRD with v1alpha1 at served: false");
    let unserved = crd(&names, &[("v1alpha1", false, false, fields), ("v1beta1", true, true, fields)]);
    deploy(work.path(), &unserved, &[]).code(0);
    assert!(run(step(4)).contains("wrote 5 objects"));
    assert_eq!(step(5), "deploy this change again");
    deploy(work.path(), &desired, &["-y"]).code(0);

    let (_, after) = cp.get(&format!("{CRDS}/samples.{}", names.group));
    assert_eq!(after["spec"]["versions"].as_array().unwrap().len(), 1);
    assert_eq!(after["status"]["storedVersions"], json!(["v1beta1"]));
    assert_eq!(specs(&names, "v1beta1"), before);
    let path = format!("/apis/{}/v1beta1/namespaces/default/samples/s0", names.group);
    let applied = sample(&names, "v1beta1", "s0", json!({"host": "h0", "note": "applied"}));
    answered(|| cp.apply_to(&format!("{path}?fieldManager=any&force=true"), &applied));
}

#[test]
fn a_version_that_is_no_longer_stored_needs_fewer_steps() {
    let names = isolated();
    let work = tempfile::tempdir().unwrap();
    let fields: &[&str] = &["host"];
    deploy(work.path(), &crd(&names, &[("v1alpha1", true, true, fields)]), &[]).code(0);
    let both = crd(&names, &[("v1alpha1", true, false, fields), ("v1beta1", true, true, fields)]);
    deploy(work.path(), &both, &[]).code(0);
    let blocked = deploy(work.path(), &crd(&names, &[("v1beta1", true, true, fields)]), &["-o", "json"]);
    let steps = plan(blocked.code(3));
    assert!(steps.len() == 4 && steps[0].contains(": gantry migrate samples."), "{steps:?}");
}

/// Two stored versions are removed, each with a field that the version that stays lacks, and objects stand in several
/// namespaces. `v9`, which kubectl prefers, has none of them.
#[test]
fn the_migration_plan_keeps_fields_that_the_remaining_version_lacks() {
    let cp = control_plane();
    let names = isolated();
    let work = tempfile::tempdir().unwrap();
    let (a, b): (&[&str], &[&str]) = (&["host", "a"], &["host", "a", "b"]);
    deploy(work.path(), &crd(&names, &[("v1alpha1", true, true, a)]), &[]).code(0);
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let other = format!("{}-other", names.namespace);
    cp.post("/api/v1/namespaces", &namespace(&other));
    let create = |version: &str, namespace: &str, name: &str, spec: Value| {
        let mut object = sample(&names, version, name, spec);
        object["metadata"]["namespace"] = json!(namespace);
        answered(|| cp.post(&format!("/apis/{}/{version}/namespaces/{namespace}/samples", names.group), &object));
    };
    create("v1alpha1", "default", "first", json!({"host": "h", "a": "1"}));
    let both = crd(&names, &[("v1alpha1", true, false, a), ("v1alpha2", true, true, b)]);
    deploy(work.path(), &both, &[]).code(0);
    create("v1alpha2", &other, "second", json!({"host": "h", "a": "2", "b": "3"}));
    let before = specs(&names, "v1alpha2");

    let few: &[&str] = &["host"];
    let desired = |fields: &[&str]| crd(&names, &[("v1", true, true, fields), ("v9", true, false, few)]);
    let steps = plan(deploy(work.path(), &desired(few), &["-o", "json"]).code(3));
    assert_eq!(
        steps[0],
        "add to v1 the fields that it lacks, or convert with a webhook: spec.a of v1alpha1; spec.a, spec.b of v1alpha2; \
         without them, step 3 drops these values"
    );
    let between = |served: bool| {
        let kept = [("v1alpha1", served, false, a), ("v1alpha2", served, false, b)];
        crd(&names, &[&kept[..], &[("v1", true, true, b), ("v9", true, false, few)]].concat())
    };
    assert!(steps[1].starts_with("deploy this CRD with v1alpha1, v1alpha2 kept in spec.versions"), "{steps:?}");
    deploy(work.path(), &between(true), &["-y"]).code(0);
    assert!(run(&steps[2]).contains("wrote 2 objects"));
    assert!(steps[3].contains("at served: false"), "{steps:?}");
    deploy(work.path(), &between(false), &["-y"]).code(0);
    assert!(run(&steps[4]).contains("wrote 2 objects"));
    assert_eq!(steps[5], "deploy this change again, with the fields of step 1");
    deploy(work.path(), &desired(b), &["-y"]).code(0);
    assert_eq!(specs(&names, "v1"), before);
    cp.delete(&format!("/api/v1/namespaces/{other}"));
}

/// What `ServedVersionLosesFields` warns about, shown on the server: in an upgrade and in a CRD that is created.
#[test]
fn a_value_that_the_storage_version_lacks_is_lost_when_it_is_written() {
    let cp = control_plane();
    let work = tempfile::tempdir().unwrap();
    for is_new in [false, true] {
        let names = isolated();
        let (all, few): (&[&str], &[&str]) = (&["host", "port"], &["host"]);
        if !is_new {
            deploy(work.path(), &crd(&names, &[("v1", true, true, few)]), &[]).code(0);
        }
        let desired = crd(&names, &[("v1", true, true, few), ("v2", true, false, all)]);
        let report = deploy(work.path(), &desired, &["-o", "json"]).code(0).report();
        let found = findings(&report, "ServedVersionLosesFields");
        assert_eq!(found.len(), 1, "{report:#}");
        assert_eq!(
            (&found[0]["severity"], &found[0]["version"], &found[0]["message"]),
            (
                &json!("warning"),
                &json!("v2"),
                &json!("what is written at v2 loses spec.port: the storage version v1 lacks it")
            )
        );
        let object = sample(&names, "v2", "s", json!({"host": "h", "port": "p"}));
        let path = format!("/apis/{}/v2/namespaces/default/samples", names.group);
        answered(|| cp.post(&path, &object));
        assert_eq!(answered(|| cp.get(&format!("{path}/s")))["spec"], json!({"host": "h"}));

        // It was so before, so nothing is new.
        let mut labelled = desired;
        labelled["metadata"]["labels"] = json!({"changed": "yes"});
        let report = deploy(work.path(), &labelled, &["-o", "json"]).code(0).report();
        assert_eq!(findings(&report, "ServedVersionLosesFields"), Vec::<&Value>::new());
    }
}

/// What `StorageVersionLosesFields` warns about, shown on the server.
#[test]
fn a_storage_version_that_lacks_a_field_loses_it_at_the_next_write() {
    let cp = control_plane();
    let names = isolated();
    let work = tempfile::tempdir().unwrap();
    let (all, few): (&[&str], &[&str]) = (&["host", "legacy"], &["host"]);
    deploy(work.path(), &crd(&names, &[("v1alpha1", true, true, all), ("v1beta1", true, false, few)]), &[]).code(0);
    let object = sample(&names, "v1alpha1", "s", json!({"host": "h", "legacy": "l"}));
    answered(|| cp.post(&format!("/apis/{}/v1alpha1/namespaces/default/samples", names.group), &object));

    let desired = crd(&names, &[("v1alpha1", true, false, all), ("v1beta1", true, true, few)]);
    for preset in ["documented", "semantic"] {
        let config = format!(
            "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {{preset: {preset}}}\n"
        );
        fs::write(work.path().join("preset.yaml"), config).unwrap();
        let report = deploy(work.path(), &desired, &["-c", "preset.yaml", "-o", "json"]).code(3).report();
        let finding = findings(&report, "StorageVersionLosesFields")[0];
        assert_eq!((&finding["severity"], &finding["version"]), (&json!("error"), &json!("v1alpha1")));
        assert!(finding["message"].as_str().unwrap().contains("lose spec.legacy"), "{finding:#}");
    }
    deploy(work.path(), &desired, &["--warn-only"]).code(0);

    let path = format!("/apis/{}/v1alpha1/namespaces/default/samples/s", names.group);
    assert_eq!(answered(|| cp.get(&path))["spec"]["legacy"], "l", "it still reads as before");
    answered(|| cp.patch(&path, &json!({"metadata": {"labels": {"touched": "yes"}}})));
    assert_eq!(answered(|| cp.get(&path))["spec"], json!({"host": "h"}), "and is gone once it is written");
}

#[test]
fn a_kind_that_changes_is_refused_by_the_server_as_predicted() {
    let names = isolated();
    let work = tempfile::tempdir().unwrap();
    let live = crd(&names, &[("v1", true, true, &[])]);
    deploy(work.path(), &live, &[]).code(0);
    let mut desired = live;
    desired["spec"]["names"]["kind"] = json!("Example");
    desired["spec"]["names"]["listKind"] = json!("ExampleList");
    desired["spec"]["names"]["singular"] = json!("example");
    let report = deploy(work.path(), &desired, &["-o", "json"]).code(3).report();
    assert_eq!(findings(&report, "KindChanged").len(), 1);
    deploy(work.path(), &desired, &["--warn-only"]).code(3).stdout_contains("the API server refuses it");
}

#[test]
fn a_served_version_is_removed_only_in_two_steps() {
    let names = isolated();
    let work = tempfile::TempDir::new().unwrap();
    let fields: &[&str] = &["size"];
    let both = |served| crd(&names, &[("v1alpha1", served, false, fields), ("v1", true, true, fields)]);
    deploy(work.path(), &both(true), &[]).code(0);
    let gone = crd(&names, &[("v1", true, true, fields)]);
    for preset in ["documented", "semantic"] {
        let config = format!(
            "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {{preset: {preset}}}\n"
        );
        fs::write(work.path().join("preset.yaml"), config).unwrap();
        let blocked = deploy(work.path(), &gone, &["-c", "preset.yaml"]);
        blocked.code(3).stdout_contains("error[ServedVersionRemoved]: served version v1alpha1 is removed in one step");
    }
    assert_eq!(
        answered(|| control_plane().get(&format!("/apis/{}/v1alpha1/samples", names.group)))["items"],
        json!([])
    );
    deploy(work.path(), &both(false), &[]).code(0).stdout_contains("warning[VersionUnserved]");
    deploy(work.path(), &gone, &[]).code(0);
    let live = control_plane().get(&format!("{CRDS}/samples.{}", names.group)).1;
    assert_eq!(live["spec"]["versions"].as_array().map(Vec::len), Some(1), "{live:#}");
}
