//! The checks that run without a flag, on a folder and on a commit, and the notice if CRDs are not among them.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use super::git::{Ended, Repository, check_in};
use gantry_core::crd::builder::crd_yaml;

/// A CRD whose objects have `spec` with this schema.
fn crd(spec: &str) -> String {
    crd_yaml("test.example.com", "Widget", &format!("spec: {spec}"))
}

const TWO_FIELDS: &str = "{type: object, properties: {size: {type: integer}, color: {type: string}}}";
const ONE_FIELD: &str = "{type: object, properties: {size: {type: integer}}}";
const WRONG: &str = "apiVersion: test.example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: team}\nspec: {size: \"30\", coler: red}\n";
const OWN: &str = "apiVersion: gantry.dev/v1alpha1
kind: Config
preflightRules:
- name: has-owner
  cel: {match: {kinds: [Widget]}, expression: 'true'}
";

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A folder whose `live` has the CRD with two fields and whose `new` removes one.
fn upgrade() -> TempDir {
    let folder = TempDir::new().unwrap();
    write(folder.path(), "live/crd.yaml", &crd(TWO_FIELDS));
    write(folder.path(), "new/crd.yaml", &crd(ONE_FIELD));
    folder
}

fn check(folder: &TempDir, arguments: &[&str]) -> Ended {
    check_in(folder.path(), &[&["-f", "new", "--target", "dir:live"], arguments].concat())
}

fn rules_found(ended: &Ended) -> Vec<String> {
    let report: Value = serde_json::from_str(&ended.stdout).expect("a report");
    let checks = report["checks"].as_array().unwrap();
    let findings = checks.iter().flat_map(|check| check["findings"].as_array().unwrap());
    findings.map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_invalid_custom_resource_blocks_without_any_flag_on_a_folder_and_on_a_commit() {
    let folder = TempDir::new().unwrap();
    write(folder.path(), "live/crd.yaml", &crd(TWO_FIELDS));
    write(folder.path(), "new/widget.yaml", WRONG);
    let expected = ["ManifestObjectRefused", "ManifestUnknownField"];
    let ended = check(&folder, &["-o", "json"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let mut found = rules_found(&ended);
    found.sort();
    assert_eq!(found, expected);

    let repository = Repository::new();
    repository.write("deploy/crd.yaml", crd(TWO_FIELDS));
    repository.commit();
    repository.write("deploy/widget.yaml", WRONG);
    let ended = repository.check(&["-f", "deploy", "--target", "git:main", "-o", "json"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    let mut found = rules_found(&ended);
    found.sort();
    assert_eq!(found, expected);
}

#[test]
fn an_own_check_adds_to_the_default_checks_wherever_it_is_defined() {
    for file in ["gantry.yaml", "new/config.yaml"] {
        let folder = upgrade();
        write(folder.path(), file, OWN);
        let ended = check(&folder, &["-o", "json"]);
        assert_eq!(ended.code, Some(3), "{file}: {}", ended.stderr);
        assert!(rules_found(&ended).contains(&"NoExistingFieldRemoved".to_owned()), "{file}: {}", ended.stdout);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let names: Vec<&str> =
            report["checks"].as_array().unwrap().iter().map(|check| check["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["CRDUpgradeSafety", "CustomResourceValidation", "has-owner"], "{file}");
    }
}

#[test]
fn a_notice_names_the_setting_that_disables_the_check_of_a_changed_crd() {
    let does_not_run = "CRDUpgradeSafety does not run, so the upgrade of CRD widgets.test.example.com is not checked";
    let folder = upgrade();
    let listed = "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\npreflightRules:\n- name: APIAvailability\n";
    write(folder.path(), "gantry.yaml", listed);
    let ended = check(&folder, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("gantry.yaml:4:9: {does_not_run}")), "{}", ended.stderr);
    // Nothing that the check looks at changes.
    fs::copy(folder.path().join("live/crd.yaml"), folder.path().join("new/crd.yaml")).unwrap();
    let ended = check(&folder, &[]);
    assert!(!ended.stderr.contains("does not run"), "{}", ended.stderr);

    let folder = upgrade();
    let ended = check(&folder, &["--preflight", "APIAvailability"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("--preflight: {does_not_run}")), "{}", ended.stderr);
    let advice = "--preflight APIAvailability,CRDUpgradeSafety";
    assert!(ended.stderr.contains(&format!("{advice} also runs it")), "{}", ended.stderr);
    let ended = check(&folder, &advice.split(' ').collect::<Vec<_>>());
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(!ended.stderr.contains("does not run"), "{}", ended.stderr);
}

#[test]
fn the_lines_of_kapp_can_be_switched_off_and_are_not_printed_in_quiet() {
    let folder = upgrade();
    let is_quoted = |arguments: &[&str]| {
        let ended = check(&folder, arguments);
        assert_eq!(ended.code, Some(3), "{arguments:?}: {}", ended.stderr);
        // The verdict is the last line, whatever is printed beside it.
        assert!(ended.stdout.trim_end().ends_with(". Nothing was written."), "{arguments:?}: {}", ended.stdout);
        ended.stderr.contains("validating upgrade for CRD")
    };
    assert!(is_quoted(&[]) && is_quoted(&["--kapp-lines", "auto"]) && is_quoted(&["--preset", "kapp"]));
    for arguments in [&["--kapp-lines=never"][..], &["--preset", "kapp", "--kapp-lines", "never"], &["-q"]] {
        assert!(!is_quoted(arguments), "{arguments:?}");
    }
    write(folder.path(), "gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\nkappLines: never\n");
    assert!(!is_quoted(&[]));
    assert!(is_quoted(&["--kapp-lines=auto"]), "a flag wins");
    let wrong = check(&folder, &["--kapp-lines=always"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("auto, never"), "{}", wrong.stderr);
}
