//! Config documents among the manifests from the command line: they can tighten checks, and a notice names what is
//! ignored.

use std::fs;
use std::path::Path;

use crate::support::{Gantry, Output, control_plane, crd_yaml, isolated};
use serde_json::{Value, json};
use tempfile::TempDir;

const SAFETY: &str = "CRDUpgradeSafety";

/// A folder with a live CRD, and a manifest that removes two of its fields.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Folder(TempDir::new().expect("a temporary folder"));
        folder.write(
            "cluster/crd.yaml",
            &crd("example.com", "one: {type: string}, two: {type: string}, kept: {type: string}"),
        );
        folder.write("manifests/crd.yaml", &crd("example.com", "kept: {type: string}"));
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("write a file");
    }

    fn gantry(&self) -> Gantry {
        Gantry::new().cwd(self.path())
    }

    /// Runs `gantry check` on the manifests, with a JSON report.
    fn check(&self, more: &[&str]) -> Output {
        let arguments = ["check", "-f", "manifests", "--target", "dir:cluster", "-o", "json"];
        self.gantry().args(arguments).args(more).run()
    }
}

fn crd(group: &str, fields: &str) -> String {
    crd_yaml(group, "Sample", fields)
}

fn config(body: &str) -> String {
    format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{body}")
}

fn rules(entry: &str) -> String {
    config(&format!("preflightRules:\n- {entry}\n"))
}

fn safety(keys: &str) -> String {
    rules(&format!("{{name: {SAFETY}, {keys}}}"))
}

/// Each notice of the report, with its file and line.
fn notices(report: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let notices = report["notices"].as_array().cloned().unwrap_or_default();
    let say = |notice: &Value| {
        format!("{}:{}: {}", text(&notice["source"]["file"]), notice["source"]["line"], text(&notice["message"]))
    };
    notices.iter().map(say).collect()
}

/// Name, mode and status of each check.
fn checks(report: &Value) -> Vec<String> {
    let checks = report["checks"].as_array().expect("a list of checks");
    let words =
        |check: &Value| ["name", "mode", "status"].map(|key| check[key].as_str().unwrap_or_default().to_owned());
    checks.iter().map(|check| words(check).join(" ")).collect()
}

/// The status of the check, and that of the other default check if the flag does not name the checks.
fn with_default(safety: &str, preflight: &[&str]) -> Vec<String> {
    let other = preflight.is_empty().then_some("CustomResourceValidation error passed");
    [safety].into_iter().chain(other).map(str::to_owned).collect()
}

/// Documents that would let the removed fields pass, and the text of the notices about them.
fn weakenings() -> Vec<(String, Vec<&'static str>)> {
    vec![
        (safety("enabled: false"), vec!["enabled: false"]),
        (safety("config: {mode: warn}"), vec!["mode: warn"]),
        (safety("config: {rules: [{name: '*', enforcement: none}]}"), vec!["rules"]),
        (safety("config: {enforcement: None}"), vec!["enforcement: None"]),
        (
            safety(
                "config: {preset: crdify, unhandledEnforcement: None, validations: [{name: existingFieldRemoval, enforcement: None}]}",
            ),
            vec!["preset: crdify", "unhandledEnforcement: None", "validations"],
        ),
        (
            safety("config: {preset: semantic, rules: [{name: NoExistingFieldRemoved, enforcement: warn}]}"),
            vec!["preset: semantic", "rules"],
        ),
    ]
}

#[test]
fn a_check_of_a_config_file_blocks_whatever_the_manifests_configure() {
    for team in ["-c", "gantry.yaml", "user"] {
        let folder = Folder::new();
        let entry = rules(&format!("name: {SAFETY}"));
        let home = TempDir::new().expect("a home");
        let more: &[&str] = match team {
            "-c" => {
                folder.write("team.yaml", &entry);
                &["-c", "team.yaml"]
            }
            "user" => {
                let user = home.path().join(".config/gantry");
                fs::create_dir_all(&user).expect("a folder");
                fs::write(user.join("config.yaml"), &entry).expect("write a file");
                &[]
            }
            name => {
                folder.write(name, &entry);
                &[]
            }
        };
        for (weakening, ignored) in weakenings() {
            for preflight in [&[][..], &["--preflight", SAFETY]] {
                folder.write("manifests/z.yaml", &weakening);
                let arguments = ["check", "-f", "manifests", "--target", "dir:cluster", "-o", "json"];
                let gantry = folder.gantry().env("HOME", home.path()).args(arguments).args(more).args(preflight);
                let run = gantry.run();
                run.code(3).stderr_contains("notice: manifests/z.yaml:4:");
                let report = run.report();
                assert_eq!(checks(&report), ["CRDUpgradeSafety error blocked"], "{weakening}");
                let notices = notices(&report);
                assert_eq!(notices.len(), ignored.len(), "{notices:#?}");
                for what in ignored.iter() {
                    let start = format!("manifests/z.yaml:4: ignored: {what} of the check \"{SAFETY}\"");
                    assert!(notices.iter().any(|notice| notice.starts_with(&start)), "{start}\n{notices:#?}");
                }
            }
        }
    }
}

#[test]
fn without_a_config_file_manifests_configure_only_the_keys_of_kapp() {
    let folder = Folder::new();
    for preflight in [&[][..], &["--preflight", SAFETY]] {
        for (weakening, what) in
            weakenings().into_iter().filter(|(_, what)| !what[0].starts_with("mode") && !what[0].starts_with("enabled"))
        {
            folder.write("manifests/z.yaml", &weakening);
            let run = folder.check(preflight);
            let report = run.code(3).report();
            assert_eq!(checks(&report), with_default("CRDUpgradeSafety error blocked", preflight), "{weakening}");
            assert_eq!(notices(&report).len(), what.len(), "{weakening}");
        }
        // A kapp user has this file among the manifests.
        let kapp = format!(
            "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\npreflightRules:\n- name: {SAFETY}\n  config: {{mode: warn}}\n"
        );
        folder.write("manifests/z.yaml", &kapp);
        let run = folder.check(preflight);
        run.code(0)
            .stderr_contains("notice: manifests/z.yaml:5:12: a Config document among the manifests sets mode: warn");
        let report = run.report();
        assert_eq!(checks(&report), with_default("CRDUpgradeSafety warn warned", preflight));
        assert_eq!(
            notices(&report),
            [format!(
                "manifests/z.yaml:5: a Config document among the manifests sets mode: warn for the check \"{SAFETY}\""
            )]
        );
    }
    folder.write("manifests/z.yaml", &safety("enabled: false"));
    let run = folder.check(&[]);
    run.code(0)
        .stderr_contains("notice: manifests/z.yaml:4:37: a Config document among the manifests disables the check");
    assert_eq!(notices(&run.report()).len(), 2, "{run}");
    let run = folder.check(&["--preflight", SAFETY]);
    run.code(3).stderr_contains("notice: manifests/z.yaml:4:28: ignored: enabled: false");
}

#[test]
fn a_check_of_the_manifests_is_added_and_replaces_none() {
    let folder = Folder::new();
    for (entry, other) in [
        ("name: APIAvailability", "APIAvailability error passed"),
        ("{name: no-x, cel: {expression: 'true'}}", "no-x error passed"),
        ("{name: theirs, exec: {command: [touch, ran]}}", "theirs error failed"),
    ] {
        folder.write("manifests/z.yaml", &rules(entry));
        let report = folder.check(&[]).code(3).report();
        let default = "CustomResourceValidation error passed";
        assert_eq!(checks(&report), ["CRDUpgradeSafety error blocked", default, other]);
    }
    assert!(!folder.path().join("ran").exists());
    folder.write("manifests/z.yaml", &config("preflightRules: []\n"));
    let report = folder.check(&[]).code(3).report();
    assert_eq!(
        notices(&report),
        ["manifests/z.yaml:3: an empty preflightRules does not disable the checks that run by default or are \
        inherited"]
    );
}

#[test]
fn manifests_may_be_stricter_than_the_team() {
    let folder = Folder::new();
    folder.write("team.yaml", &safety("config: {mode: warn}"));
    folder.check(&["-c", "team.yaml"]).code(0);
    folder.write("manifests/z.yaml", &safety("config: {mode: error}"));
    let report = folder.check(&["-c", "team.yaml"]).code(3).report();
    assert_eq!(notices(&report), Vec::<String>::new());
    // A document cannot undo what another one has tightened.
    folder.write("manifests/zz.yaml", &safety("config: {mode: warn}"));
    let report = folder.check(&["-c", "team.yaml"]).code(3).report();
    assert_eq!(notices(&report).len(), 1, "{report:#}");
}

/// However the document is written and wherever it is, it does not weaken a check, and it is never applied.
#[test]
fn no_notation_of_a_document_weakens_a_check() {
    let off = safety("config: {mode: warn, enforcement: None}");
    let json = |api_version: &str| {
        format!(
            r#"{{"kind": "Config", "apiVersion": "{api_version}", "preflightRules": [{{"name": "{SAFETY}", "enabled": false, "config": {{"mode": "warn"}}}}]}}"#
        )
    };
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "gantry.dev/v1alpha1", "kind": "Config", "preflightRules": [{"name": SAFETY, "config": {"mode": "warn"}}]},
        {"apiVersion": "kapp.k14s.io/v1alpha1", "kind": "Config", "preflightRules": [{"name": SAFETY, "enabled": false}]},
    ]});
    let anchors = "x: [&a gantry.dev/v1alpha1, &k Config, &off {mode: warn}]\n";
    for (name, text, code) in [
        ("two.yaml", format!("{off}---\n{off}"), 3),
        ("deep/er/list.json", list.to_string(), 3),
        ("plain.json", json("gantry.dev/v1alpha1"), 3),
        ("escaped.json", json(r"gantry.dev\/v1alpha1"), 3),
        ("escaped.json", json(r"gantry\u002edev/v1alpha1"), 3),
        ("escaped.yaml", json(r"gantr\x79.dev/v1alpha1"), 3),
        (
            "quoted.yaml",
            off.replace("gantry.dev/v1alpha1", "'gantry.dev/v1alpha1'").replace("Config", "!!str Config"),
            3,
        ),
        (
            "kapp.yaml",
            off.replace("gantry.dev", "kapp.k14s.io").replace("kind", "waivers: [{rule: '*', reason: r}]\nkind"),
            3,
        ),
        ("waivers.yaml", config("waivers: [{rule: '*', reason: r}]\n"), 3),
        // An invalid configuration ends the run.
        (
            "anchors.yaml",
            format!("{anchors}apiVersion: *a\nkind: *k\npreflightRules: [{{name: {SAFETY}, config: *off}}]\n"),
            2,
        ),
        ("twice.yaml", rules(&format!("name: {SAFETY}\n- {{name: {SAFETY}, enabled: false}}")), 2),
        ("key-twice.yaml", config("preflightRules: []\npreflightRules: []\n"), 2),
        ("built-in.yaml", safety("cel: {expression: 'true'}"), 2),
        ("warn-only.yaml", config("warnOnly: true\n"), 2),
        ("allow.yaml", config("target: dir:elsewhere\n"), 2),
        ("case.yaml", safety("config: {mode: WARN}"), 2),
    ] {
        let folder = Folder::new();
        folder.write("team.yaml", &rules(&format!("name: {SAFETY}")));
        folder.write(&format!("manifests/{name}"), &text);
        let run = folder.check(&["-c", "team.yaml"]);
        run.code(code).stderr_contains(&format!("manifests/{name}:"));
        if code == 3 {
            let report = run.report();
            assert_eq!(checks(&report), ["CRDUpgradeSafety error blocked"], "{text}");
            assert_eq!(report["changes"].as_array().map(Vec::len), Some(1), "{text}");
            let of_file = |notice: &String| notice.starts_with(&format!("manifests/{name}:"));
            assert!(!notices(&report).is_empty() && notices(&report).iter().all(of_file), "{report:#}");
        }
    }
    // The same from standard input.
    let folder = Folder::new();
    folder.write("team.yaml", &rules(&format!("name: {SAFETY}")));
    let text = format!("{}---\n{off}", crd("example.com", "kept: {type: string}"));
    let arguments = ["check", "-f", "-", "--target", "dir:cluster", "-c", "team.yaml"];
    folder.gantry().args(arguments).stdin(text).run().code(3).stderr_contains("notice: <stdin>:20:");
}

/// `gantry config show` prints the settings that a deploy uses.
#[test]
fn config_show_prints_the_settings_that_a_deploy_uses() {
    let folder = Folder::new();
    folder.write("team.yaml", &safety("config: {failMode: closed}"));
    let both = format!(
        "{}---\n{}",
        safety("config: {mode: warn, preset: crdify}"),
        rules("{name: APIAvailability, config: {mode: warn}}")
    );
    folder.write("manifests/z.yaml", &both);
    let arguments = ["config", "show", "-f", "manifests", "-c", "team.yaml"];
    let run = folder.gantry().args(arguments).run();
    run.code(0)
        .stdout_contains("failMode: closed")
        .stderr_contains("notice: manifests/z.yaml:4:37: ignored: mode: warn")
        .stderr_contains("notice: manifests/z.yaml:4:49: ignored: preset: crdify");
    assert!(!run.stdout.contains("crdify"), "{run}");
    assert_eq!(run.stdout.matches("    mode: warn").count(), 1, "that of APIAvailability\n{run}");
    let shown = folder.gantry().args(arguments).args(["-o", "json"]).run().report();
    let settings: Vec<String> = shown
        .as_array()
        .expect("settings")
        .iter()
        .filter(|setting| setting["path"].as_str().is_some_and(|path| path.starts_with("preflightRules")))
        .map(|setting| {
            ["path", "value", "layer", "source"].map(|key| setting[key].to_string().replace('"', "")).join(" ")
        })
        .collect();
    assert_eq!(
        settings,
        [
            "preflightRules[CRDUpgradeSafety].enabled true -c file team.yaml:4:10",
            "preflightRules[CRDUpgradeSafety].config.failMode closed -c file team.yaml:4:47",
            "preflightRules[APIAvailability].enabled true manifests manifests/z.yaml:9:10",
            "preflightRules[APIAvailability].config.mode warn manifests manifests/z.yaml:9:42",
        ]
    );
    let report = folder.check(&["-c", "team.yaml"]).code(3).report();
    assert_eq!(checks(&report), ["CRDUpgradeSafety error blocked", "APIAvailability warn passed"]);
}

#[test]
fn a_deploy_to_a_cluster_follows_the_same_rules() {
    let names = isolated();
    control_plane().apply_yaml(&crd(&names.group, "one: {type: string}, kept: {type: string}"));
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.{}", names.group);
    let fields = || {
        let properties =
            &control_plane().get(&path).1["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        properties.as_object().map(serde_json::Map::len)
    };
    let folder = Folder::new();
    folder.write("manifests/crd.yaml", &crd(&names.group, "kept: {type: string}"));
    folder.write("team.yaml", &rules(&format!("name: {SAFETY}")));
    folder.write("manifests/z.yaml", &safety("config: {mode: warn}"));
    let deploy = |more: &[&str]| {
        let admin = control_plane().kubeconfig("admin");
        folder.gantry().kubeconfig(admin).args(["deploy", "-f", "manifests", "--force-conflicts"]).args(more).run()
    };
    deploy(&["-c", "team.yaml"]).code(3).stderr_contains("ignored: mode: warn");
    assert_eq!(fields(), Some(2));
    deploy(&[]).code(0).stderr_contains("sets mode: warn");
    assert_eq!(fields(), Some(1));
}
