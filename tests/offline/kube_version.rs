//! `--kube-version`: a folder is judged as a cluster of that release.

use std::fs;

use gantry_core::crd::builder::CrdBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::formats::gantry;

/// A folder `live` with a CRD and an object, and a folder `desired` with a CRD that refuses the object: `size` and
/// `phase` have a value that its enums lack, and `count` one that is no int32.
fn upgrade() -> TempDir {
    let crd = |size: Value, count: Value, phase: Value| {
        let spec = json!({"type": "object", "properties": {"size": size, "count": count}});
        let status = json!({"type": "object", "properties": {"phase": phase}});
        let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
        let mut crd = CrdBuilder::samples("test.example.com").version("v1", schema).build();
        crd["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        crd
    };
    let text = || json!({"type": "string"});
    let live = crd(text(), json!({"type": "integer"}), text());
    let one_of = |values: &[&str]| json!({"type": "string", "enum": values});
    let desired = crd(one_of(&["small"]), json!({"type": "integer", "format": "int32"}), one_of(&["Ready"]));
    let object = json!({
        "apiVersion": "test.example.com/v1", "kind": "Sample", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"size": "huge", "count": 5_000_000_000_u64}, "status": {"phase": "Odd"},
    });
    let repository = TempDir::new().expect("a folder");
    let folder = repository.path().join("deploy");
    for (name, value) in [("live/crd.json", &live), ("live/object.json", &object), ("desired/crd.json", &desired)] {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, value.to_string()).expect("written");
    }
    repository
}

/// The exit code, the report, and what is printed.
fn check(repository: &TempDir, flags: &[&str]) -> (Option<i32>, Value, String) {
    check_target(repository, "dir:live", flags)
}

fn check_target(repository: &TempDir, target: &str, flags: &[&str]) -> (Option<i32>, Value, String) {
    let check = ["check", "-f", "desired", "--target", target, "-o", "human", "-o", "json=report.json"];
    let report = repository.path().join("deploy/report.json");
    let _ = fs::remove_file(&report);
    let ran = gantry(repository, &[&check[..], flags].concat());
    let report = serde_json::from_slice(&fs::read(report).unwrap_or_default()).unwrap_or_default();
    let told = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    (ran.status.code(), report, told)
}

/// The rule and the message of each finding about objects.
fn findings(report: &Value) -> Vec<(String, String)> {
    let checks = report["checks"].as_array().expect("checks").iter();
    let of_objects = checks.filter(|check| check["name"] == "CustomResourceValidation");
    let found = of_objects.flat_map(|check| check["findings"].as_array().expect("findings"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    found.map(|found| (text(&found["rule"]), text(&found["message"]))).collect()
}

#[test]
fn what_an_update_of_an_invalid_object_does_follows_the_release() {
    let repository = upgrade();
    let said = |release: &str| {
        let (_, report, told) = check(&repository, &["--kube-version", release]);
        assert_eq!(report["kubernetesRelease"], release, "{told}");
        assert!(told.contains(&format!("dir: live as Kubernetes {release}")), "{told}");
        findings(&report)
    };
    let has = |found: &[(String, String)], rule: &str, parts: &[&str]| {
        let is_it =
            |(name, message): &&(String, String)| name == rule && parts.iter().all(|part| message.contains(part));
        found.iter().any(|found| is_it(&found))
    };
    let (on_update, when_touched) = ("ExistingObjectRefusedOnUpdate", "ExistingObjectRefusedWhenTouched");
    // Nothing is ratcheted.
    let found = said("1.28");
    assert!(has(&found, on_update, &["on any update, even of labels", "spec.size"]), "{found:?}");
    assert!(has(&found, on_update, &["on any update, even of labels", "status.phase"]), "{found:?}");
    // Only updates of the object itself are, not those of its status.
    let found = said("1.30");
    assert!(has(&found, when_touched, &["spec.size"]), "{found:?}");
    assert!(has(&found, on_update, &["on any write of its status", "status.phase"]), "{found:?}");
    let found = said("1.34");
    assert!(has(&found, when_touched, &["status.phase"]), "{found:?}");
    assert!(!found.iter().any(|(rule, _)| rule == on_update), "{found:?}");
    // Only a newer server enforces the range of an int32.
    assert!(!found.iter().any(|(_, message)| message.contains("spec.count")), "{found:?}");
    assert!(has(&said("1.36"), when_touched, &["spec.count"]));
}

#[test]
fn several_releases_are_checked_side_by_side() {
    let repository = upgrade();
    let (code, report, told) = check(&repository, &["--kube-version", "1.34,1.28"]);
    assert_eq!(code, Some(3), "{told}");
    let members = report["clusters"].as_array().expect("clusters").iter();
    let outcomes: Vec<(&str, &str)> = members
        .map(|member| {
            let text = |value: &Value| value.as_str().map(str::to_owned).unwrap_or_default();
            assert_eq!(text(&member["name"]), format!("Kubernetes {}", text(&member["report"]["kubernetesRelease"])));
            (member["name"].as_str().unwrap_or_default(), member["report"]["outcome"].as_str().unwrap_or_default())
        })
        .collect();
    assert_eq!(outcomes, [("Kubernetes 1.28", "blocked"), ("Kubernetes 1.34", "blocked")], "{told}");
    // A folder is one cluster: it cannot be written as several.
    let deploy = ["deploy", "-f", "desired", "--target", "dir:live", "--yes", "--kube-version", "1.28,1.34"];
    let ran = gantry(&repository, &deploy);
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(2) && told.contains("needs one release"), "{told}");
}

#[test]
fn a_release_that_is_none_is_a_usage_error_with_its_place() {
    let repository = upgrade();
    for (release, message) in [
        ("latest", "\"latest\" is not a release of Kubernetes"),
        ("1.27", "1.27 is older than 1.28, the oldest release that gantry knows"),
        ("", "\"\" is not a release of Kubernetes"),
    ] {
        let (code, _, told) = check(&repository, &["--kube-version", release]);
        assert!(code == Some(2) && told.contains(message), "{release}: {told}");
    }
    fs::write(
        repository.path().join("deploy/gantry.yaml"),
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\nkubeVersion: 1.30\n",
    )
    .expect("written");
    let (code, _, told) = check(&repository, &[]);
    assert!(code == Some(2) && told.contains("gantry.yaml:3:"), "{told}");
    assert!(told.contains("write the release in quotes"), "{told}");
}

#[test]
fn a_commit_or_folder_with_snapshots_stands_for_the_oldest_of_their_releases() {
    let repository = upgrade();
    let folder = repository.path().join("deploy");
    let snapshot = |name: &str, release: &str, files: &str| {
        fs::create_dir_all(folder.join(name)).expect("a folder");
        let marker = format!("# Created by gantry snapshot\n# Kubernetes {release}\n{files}");
        fs::write(folder.join(name).join(".gantry-snapshot"), marker).expect("written");
    };
    snapshot("live", "1.32", "");
    snapshot("live/other", "1.29", "");
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}});
    fs::write(folder.join("live/other/map.json"), other.to_string()).expect("written");
    let (_, report, told) = check(&repository, &[]);
    assert_eq!(report["kubernetesRelease"], "1.29", "{told}");
    let named = ["--kube-version", "1.34"];
    assert_eq!(check(&repository, &named).1["kubernetesRelease"], "1.34");

    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let ran =
            std::process::Command::new("git").current_dir(repository.path()).args(identity).args(arguments).output();
        assert!(ran.expect("git").status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-qm", "live"]);
    let of_commit = |path: &str, flags: &[&str]| {
        let target = format!("git:HEAD:deploy/{path}");
        let (_, report, told) = check_target(&repository, &target, flags);
        assert!(told.contains("git: HEAD"), "{told}");
        report["kubernetesRelease"].as_str().map(str::to_owned)
    };
    assert_eq!(of_commit("live", &[]).as_deref(), Some("1.29"));
    assert_eq!(of_commit("live/other", &named).as_deref(), Some("1.34"));
}
