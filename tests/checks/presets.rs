//! Presets, the enforcement of single rules, and waivers, from the command line.

use std::fs;
use std::path::Path;

use crate::support::{Gantry, Output};
use serde_json::{Value, json};

const CONFIG: &str = "apiVersion: gantry.dev/v1alpha1\nkind: Config\n";

/// A folder with a live CRD in `cluster/` and its replacement; `dir:` needs no server.
struct Bed(tempfile::TempDir);

impl Bed {
    fn new(live: &Value, desired: &Value) -> Self {
        let bed = Bed(tempfile::tempdir().unwrap());
        fs::create_dir(bed.path().join("cluster")).unwrap();
        fs::write(bed.path().join("cluster/crd.json"), crd(live)).unwrap();
        fs::write(bed.path().join("crd.json"), crd(desired)).unwrap();
        bed
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Checks with the body of a Config.
    fn check(&self, config: &str) -> Output {
        fs::write(self.path().join("c.yaml"), format!("{CONFIG}{config}")).unwrap();
        Gantry::new()
            .cwd(self.path())
            .args(["check", "-f", "crd.json", "--target", "dir:cluster", "-c", "c.yaml", "-o", "json"])
            .run()
    }

    /// Checks with this `config` of the check.
    fn with(&self, config: &str) -> Output {
        self.check(&format!("preflightRules:\n- name: CRDUpgradeSafety\n  config: {config}\n"))
    }
}

/// A CRD whose spec has these fields.
fn crd(fields: &Value) -> String {
    let spec = json!({"type": "object", "properties": fields});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "samples.test.example.com"},
        "spec": {
            "group": "test.example.com",
            "names": {"kind": "Sample", "listKind": "SampleList", "plural": "samples", "singular": "sample"},
            "scope": "Namespaced",
            "versions": [version],
        },
    })
    .to_string()
}

/// `(rule, severity)` of each finding.
fn found(output: &Output) -> Vec<(String, String)> {
    let report = output.report();
    let findings = report["checks"][0]["findings"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    findings.iter().map(|finding| (text(&finding["rule"]), text(&finding["severity"]))).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(rule, severity)| ((*rule).to_owned(), (*severity).to_owned())).collect()
}

/// A changed type, a description, a removed format, an extended enum.
fn several() -> Bed {
    Bed::new(
        &json!({
            "a": {"type": "integer"},
            "b": {"type": "string", "description": "one", "format": "uuid"},
            "c": {"type": "string", "enum": ["x"]},
        }),
        &json!({
            "a": {"type": "string"},
            "b": {"type": "string", "description": "two"},
            "c": {"type": "string", "enum": ["x", "y"]},
        }),
    )
}

#[test]
fn each_preset_has_its_own_verdict() {
    let bed = several();
    for (preset, expected) in [
        ("documented", &[("NoTypeChange", "error"), ("FormatChange", "info")][..]),
        ("semantic", &[("NoTypeChange", "error"), ("FormatChange", "info")]),
        ("kapp", &[("ChangeValidator", "error"), ("ChangeValidator", "error")]),
        ("olm-v1", &[("type", "error"), ("unhandled", "error")]),
        ("crdify", &[("type", "error"), ("description", "error"), ("unhandled", "error"), ("enum", "error")]),
    ] {
        let output = bed.with(&format!("{{preset: {preset}}}"));
        output.code(3);
        assert_eq!(found(&output), pairs(expected), "{preset}");
    }
}

#[test]
fn a_preset_has_the_messages_of_its_tool() {
    let bed = several();
    let olm = bed.with("{preset: olm-v1}");
    let lines: Vec<&str> = olm.stderr.lines().filter(|line| line.starts_with("validating upgrade")).collect();
    assert_eq!(
        lines,
        [
            r#"validating upgrade for CRD "samples.test.example.com": v1: ^.spec.a: type: type changed : "integer" -> "string""#,
            r#"validating upgrade for CRD "samples.test.example.com": v1: ^.spec.b: unhandled: unhandled changes found (Format "uuid" -> "")"#,
        ]
    );
    let kapp = bed.with("{preset: kapp}");
    kapp.stderr_contains(
        "failed upgrade safety validation. \"ChangeValidator\" validation failed: version \"v1\", field \"^.spec.a\" has \
         unknown change, refusing to determine that change is safe",
    );
}

#[test]
fn crdifys_own_options_are_understood() {
    let bed = several();
    let config = "
    preset: crdify
    unhandledEnforcement: Warn
    validations:
    - name: description
      enforcement: None
    - name: enum
      enforcement: Error
      configuration: {additionPolicy: Allow}
    - name: type
      enforcement: Warn";
    let output = bed.with(config);
    output.code(0);
    assert_eq!(found(&output), pairs(&[("type", "warning"), ("unhandled", "warning")]));
    let wrong = bed.with("{preset: crdify, validations: [{name: typ, enforcement: Error}]}");
    wrong.code(2).stderr_contains("did you mean \"type\"?").stderr_contains("c.yaml:5:");
    let elsewhere = bed.with("{unhandledEnforcement: Warn}");
    elsewhere.code(2).stderr_contains("is only read under preset: crdify and preset: olm-v1");
}

#[test]
fn enforcement_of_rules_is_set_by_name_and_pattern() {
    let bed = several();
    let output = bed.with("{rules: [{name: No*, enforcement: warn}, {name: FormatChange, enforcement: none}]}");
    output.code(0);
    assert_eq!(found(&output), pairs(&[("NoTypeChange", "warning")]));
    // The last matching entry applies.
    let output = bed.with("{rules: [{name: '*', enforcement: none}, {name: NoType*, enforcement: error}]}");
    output.code(3);
    assert_eq!(found(&output), pairs(&[("NoTypeChange", "error")]));
    let wrong = bed.with("{rules: [{name: NoScopeChang, enforcement: warn}]}");
    wrong.code(2).stderr_contains("did you mean \"NoScopeChange\"?").stderr_contains("c.yaml:5:");
    bed.with("{rules: [{name: NoTypeChange, enforcement: loud}]}")
        .code(2)
        .stderr_contains("is not one of error, warn, none");
    // As in crdify, whose words are capitalised.
    bed.with("{preset: crdify, validations: [{name: description, enforcement: error}]}")
        .code(2)
        .stderr_contains("\"error\" is not one of Error, Warn, None (did you mean \"Error\"?)");
    let off = bed.with("{enforcement: None}");
    assert_eq!(off.code(0).report()["checks"][0]["status"], "skipped");
}

/// For each disabled rule: the number of findings, their severity, and the place that disables it.
fn suppressed(output: &Output) -> Vec<String> {
    let report = output.report();
    let entries = report["checks"][0]["suppressed"].as_array().cloned().unwrap_or_default();
    let say = |entry: &Value| {
        let (rule, severity, at) = (&entry["rule"], &entry["severity"], &entry["source"]);
        format!("{} {rule} {severity} {}:{}", entry["count"], at["file"], at["line"]).replace('"', "")
    };
    entries.iter().map(say).collect()
}

#[test]
fn findings_of_disabled_rules_are_counted_with_the_place_that_disables_them() {
    let bed = several();
    let human = || {
        let arguments = ["check", "-f", "crd.json", "--target", "dir:cluster", "-c", "c.yaml"];
        Gantry::new().cwd(bed.path()).args(arguments).run()
    };
    let off =
        bed.with("\n    rules:\n    - {name: '*', enforcement: none}\n    - {name: FormatChange, enforcement: none}");
    off.code(0);
    assert_eq!(off.report()["checks"][0]["status"], "passed");
    assert_eq!(suppressed(&off), ["1 FormatChange info c.yaml:8", "1 NoTypeChange error c.yaml:7"]);
    human().code(0).stdout_contains("CRDUpgradeSafety  passed, 2 findings switched off by c.yaml:7, c.yaml:8\n");
    // Together with other findings.
    let some = bed.with("{rules: [{name: FormatChange, enforcement: none}]}");
    assert_eq!(suppressed(some.code(3)), ["1 FormatChange info c.yaml:5"]);
    human()
        .code(3)
        .stdout_contains(
            "CRDUpgradeSafety  blocked: 1 error in samples.test.example.com (NoTypeChange), 1 finding switched\n",
        )
        .stdout_contains("                  off by c.yaml:5\n");
    // In crdify's words, but without what the preset itself leaves out.
    let crdify = bed.with(
        "\n    preset: olm-v1\n    unhandledEnforcement: None\n    validations:\n    - {name: type, enforcement: None}",
    );
    assert_eq!(suppressed(crdify.code(0)), ["1 type error c.yaml:9", "1 unhandled error c.yaml:7"]);
    // A rule without findings is not mentioned.
    let nothing = bed.with("{rules: [{name: NoScopeChange, enforcement: none}]}");
    assert_eq!(suppressed(nothing.code(3)), Vec::<String>::new());
    bed.with("{enforcement: None}");
    human().code(0).stdout_contains("CRDUpgradeSafety  skipped: disabled by enforcement: None (c.yaml:5)\n");
}

#[test]
fn a_waived_finding_blocks_nothing_and_stays_in_the_report() {
    let bed = several();
    let output = bed.check(
        "waivers:
- {object: samples.*, rule: NoTypeChange, path: ^.spec.a, version: v1, reason: nobody uses it, expires: '2999-12-31'}
- {rule: FormatChange, reason: agreed}\n",
    );
    output.code(0);
    assert_eq!(found(&output), pairs(&[("NoTypeChange", "waived"), ("FormatChange", "waived")]));
    let report = output.report();
    let finding = &report["checks"][0]["findings"][0];
    assert_eq!(finding["waived"], json!({"reason": "nobody uses it", "expires": "2999-12-31"}));
    assert_eq!((&report["summary"]["waived"], &report["checks"][0]["status"]), (&json!(2), &json!("passed")));
    assert!(report["warnings"].is_null());
}

#[test]
fn an_expired_waiver_is_void_and_an_unused_one_is_a_warning() {
    let bed = several();
    let output = bed.check(
        "waivers:
- {rule: NoTypeChange, reason: until it is fixed, expires: '2020-01-31'}
- {rule: FormatChange, reason: agreed}
- {rule: NoScopeChange, reason: long gone}\n",
    );
    output.code(3);
    assert_eq!(found(&output), pairs(&[("NoTypeChange", "error"), ("FormatChange", "waived")]));
    let warnings: Vec<(String, u64)> = output.report()["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| (w["message"].as_str().unwrap().to_owned(), w["source"]["line"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        warnings,
        [
            ("the waiver (until it is fixed) expired on 2020-01-31 and no longer applies".to_owned(), 4),
            ("the waiver (long gone) matches no finding of this run".to_owned(), 6),
        ]
    );
    output.stderr_contains("warning: c.yaml:4: the waiver (until it is fixed) expired on 2020-01-31");
}

#[test]
fn a_waiver_needs_a_reason_and_something_to_fit() {
    let bed = several();
    bed.check("waivers:\n- {rule: NoTypeChange}\n")
        .code(2)
        .stderr_contains("waivers[0] has no reason")
        .stderr_contains("c.yaml:4");
    bed.check("waivers:\n- {reason: all of it}\n").code(2).stderr_contains("waivers[0] would waive every finding");
    bed.check("waivers:\n- {rule: X, reason: r, expires: soon}\n")
        .code(2)
        .stderr_contains("is not a date such as 2026-12-31");
}

/// The manifests do not decide what may pass.
#[test]
fn manifests_cannot_waive() {
    let bed = several();
    let config = json!({
        "apiVersion": "gantry.dev/v1alpha1", "kind": "Config",
        "waivers": [{"rule": "*", "reason": "let me in"}],
    });
    fs::write(bed.path().join("config.json"), config.to_string()).unwrap();
    Gantry::new()
        .cwd(bed.path())
        .args(["check", "-f", "crd.json", "-f", "config.json", "--target", "dir:cluster"])
        .run()
        .code(3)
        .stderr_contains("notice: config.json:1:53: ignored: waivers in a Config document among the manifests");
}

#[test]
fn differences_of_a_preset_from_semantic_are_counted() {
    let mirror = |required: &Value| json!({"type": "object", "required": required, "properties": {"mode": {"type": "string", "default": "a"}}});
    let live = json!({"mirror": mirror(&json!([])), "gone": {"type": "string"}});
    let people = |bed: &Bed, flags: &[&str]| {
        let check = ["check", "-f", "crd.json", "--target", "dir:cluster"];
        Gantry::new().cwd(bed.path()).args(check).args(flags).run()
    };

    let one = Bed::new(&live, &json!({"mirror": mirror(&json!(["mode"]))}));
    people(&one, &[]).code(3).stdout_contains("\n1 of the 2 errors breaks nothing (kapp and OLM forbid it all the same). Judged by effect only, 1 is an error: --preset semantic.\n");
    let report = one.with("{}").code(3).report();
    let semantic = |rule: &str| {
        let findings = report["checks"][0]["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["rule"] == rule).unwrap()["semantic"].clone()
    };
    assert_eq!(semantic("NoRequiredFieldAdded"), "info");
    assert_eq!(semantic("NoExistingFieldRemoved"), Value::Null);
    let under_semantic = found(one.with("{preset: semantic}").code(3));
    assert_eq!(under_semantic.iter().filter(|(_, severity)| severity == "error").count(), 1, "{under_semantic:?}");

    let only = Bed::new(&live, &json!({"mirror": mirror(&json!(["mode"])), "gone": {"type": "string"}}));
    people(&only, &[])
        .code(3)
        .stdout_contains("\nThe error breaks nothing (kapp and OLM forbid it all the same). Judged by effect only, nothing is an error: --preset semantic.\n");
    only.with("{preset: semantic}").code(0);
    people(&only, &["--warn-only"]).code(0).contains_nowhere("Judged by effect");
    let none = Bed::new(&live, &json!({"mirror": mirror(&json!([]))}));
    people(&none, &[]).code(3).contains_nowhere("Judged by effect");
}
