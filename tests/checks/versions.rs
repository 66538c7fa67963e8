//! Follows the migration plan for a removed stored version step by step on a real API server, and tests the server's
//! own behaviour when versions change.

use std::fs;
use std::path::Path;

use super::managed_fields::move_entries;
use crate::support::{Gantry, Isolated, Output, control_plane, eventually, isolated, sample_crd};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A CRD with these versions: name, served, storage, fields of spec.
fn crd(names: &Isolated, versions: &[(&str, bool, bool, &[&str])]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, served, storage, fields)| {
            let fields: Value = fields
                .iter()
                .map(|field| ((*field).to_owned(), json!({"type": "string"})))
                .collect::<serde_json::Map<_, _>>()
                .into();
            let spec = json!({"type": "object", "properties": fields});
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            json!({"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}})
        })
        .collect();
    sample_crd(&names.group, "Namespaced", versions)
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

/// Executes the commands of the plan over the API; the command lines are taken from the plan itself.
struct Kubectl;

impl Kubectl {
    /// `kubectl get RESOURCE --all-namespaces -o yaml | kubectl replace -f -`
    fn get_and_replace(command: &str) -> usize {
        let words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words[..2], ["kubectl", "get"], "{command}");
        assert!(command.contains("--all-namespaces -o yaml | kubectl replace -f -"), "{command}");
        let (plural, group) = words[2].split_once('.').unwrap();
        let cp = control_plane();
        // At the version that the server prefers, like kubectl.
        let (_, discovered) = cp.get(&format!("/apis/{group}"));
        let preferred = discovered["preferredVersion"]["groupVersion"].as_str().unwrap().to_owned();
        let list = answered(|| cp.get(&format!("/apis/{preferred}/{plural}")));
        let items = list["items"].as_array().unwrap();
        for item in items {
            answered(|| cp.put(&cp.path_of(item), item));
        }
        items.len()
    }

    /// `kubectl patch customresourcedefinition NAME --subresource=status --type=merge -p 'PATCH'`
    fn patch_status(command: &str) {
        let words: Vec<&str> = command.split_whitespace().collect();
        assert_eq!(words[..3], ["kubectl", "patch", "customresourcedefinition"], "{command}");
        assert_eq!(words[4..7], ["--subresource=status", "--type=merge", "-p"], "{command}");
        let patch = command.split_once('\'').unwrap().1.trim_end_matches('\'');
        let patch: Value = serde_json::from_str(patch).unwrap();
        let (status, answer) = control_plane().patch(&format!("{CRDS}/{}/status", words[3]), &patch);
        assert_eq!(status, 200, "{answer:#}");
    }
}

#[test]
fn the_migration_plan_of_a_stored_version_ends_with_the_version_removed_and_all_objects_there() {
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
    deploy(work.path(), &desired, &["--warn-only"]).code(1);
    // The plan is written for people: a line for each step.
    let shown = deploy(work.path(), &desired, &[]);
    let report = blocked.report();
    let plan = findings(&report, "NoStoredVersionRemoved")[0]["help"].as_str().unwrap().to_owned();
    let steps: Vec<&str> = plan.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert_eq!(steps.len(), 6, "{plan}");
    for step in &steps {
        let words: Vec<&str> = step.split_whitespace().take(3).collect();
        shown.stdout_contains(&words.join(" "));
    }

    let step = |number: usize| steps[number - 1].split_once(". ").unwrap().1.split("   # ").next().unwrap();
    assert_eq!(
        step(1),
        "deploy this CRD with v1alpha1 kept in spec.versions (served: true, storage: false) beside v1beta1 (served: \
         true, storage: true)"
    );
    let between = crd(&names, &[("v1alpha1", true, false, fields), ("v1beta1", true, true, fields)]);
    deploy(work.path(), &between, &[]).code(0);
    assert_eq!(Kubectl::get_and_replace(step(2)), before.len());
    Kubectl::patch_status(step(3));
    assert_eq!(step(4), "once no client uses v1alpha1 any more, deploy this CRD with v1alpha1 at served: false");
    let unserved = crd(&names, &[("v1alpha1", false, false, fields), ("v1beta1", true, true, fields)]);
    deploy(work.path(), &unserved, &[]).code(0);
    assert_eq!(move_entries(step(5)), before.len());
    assert_eq!(step(6), "deploy this change again");
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
fn a_version_that_is_stored_no_more_needs_fewer_steps() {
    let names = isolated();
    let work = tempfile::tempdir().unwrap();
    let fields: &[&str] = &["host"];
    deploy(work.path(), &crd(&names, &[("v1alpha1", true, true, fields)]), &[]).code(0);
    let both = crd(&names, &[("v1alpha1", true, false, fields), ("v1beta1", true, true, fields)]);
    deploy(work.path(), &both, &[]).code(0);
    let blocked = deploy(work.path(), &crd(&names, &[("v1beta1", true, true, fields)]), &["-o", "json"]);
    let report = blocked.code(3).report();
    let plan = findings(&report, "NoStoredVersionRemoved")[0]["help"].as_str().unwrap();
    let steps: Vec<&str> = plan.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert!(steps.len() == 5 && steps[0].starts_with("1. kubectl get samples."), "{plan}");
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
    let semantic = "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n  config: {preset: semantic}\n";
    fs::write(work.path().join("semantic.yaml"), semantic).unwrap();
    let blocked = deploy(work.path(), &desired, &["-c", "semantic.yaml", "-o", "json"]);
    assert_eq!(findings(&blocked.code(3).report(), "StorageVersionLosesFields")[0]["severity"], "error");
    let report = deploy(work.path(), &desired, &["-o", "json"]).code(0).report();
    let finding = findings(&report, "StorageVersionLosesFields")[0];
    assert_eq!((&finding["severity"], &finding["version"]), (&json!("warning"), &json!("v1alpha1")));
    assert!(finding["message"].as_str().unwrap().contains("lose spec.legacy"), "{finding:#}");

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
    deploy(work.path(), &desired, &["--warn-only"]).code(1).stdout_contains("field is immutable");
}

#[test]
fn a_version_that_is_served_goes_in_two_steps_only() {
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
