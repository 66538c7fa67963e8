//! Presets, the enforcement of single rules, and waivers, from the command line.

use std::fs;
use std::path::Path;

use crate::support::{CrdBuilder, Gantry, Output, fields};
use serde_json::{Value, json};

const CONFIG: &str = "apiVersion: gantry.dev/v1alpha1\nkind: Config\n";

/// A folder with a live CRD in `cluster/` and its replacement; `dir:` needs no server.
struct FolderUpgrade(tempfile::TempDir);

impl FolderUpgrade {
    fn new(live: &Value, desired: &Value) -> Self {
        let bed = FolderUpgrade(tempfile::tempdir().unwrap());
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
fn crd(properties: &Value) -> String {
    CrdBuilder::samples("test.example.com").version_of_spec("v1", fields(properties.clone())).build().to_string()
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
fn several() -> FolderUpgrade {
    FolderUpgrade::new(
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
    insta::assert_snapshot!(wrong.shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: preflightRules[CRDUpgradeSafety].config.validations[0].name: crdify has no validation "typ"; did you mean "type"?
     --> c.yaml:5:49
    4 | - name: CRDUpgradeSafety
    5 |   config: {preset: crdify, validations: [{name: typ, enforcement: Error}]}
      |                                                 ^^^
    "#);
    let elsewhere = bed.with("{unhandledEnforcement: Warn}");
    insta::assert_snapshot!(elsewhere.shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: preflightRules[CRDUpgradeSafety].config.unhandledEnforcement: is only read under preset: crdify and preset: olm-v1; use rules here
     --> c.yaml:5:34
    4 | - name: CRDUpgradeSafety
    5 |   config: {unhandledEnforcement: Warn}
      |                                  ^^^^
    "#);
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
    insta::assert_snapshot!(wrong.shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: preflightRules[CRDUpgradeSafety].config.rules[0].name: no rule of this preset matches "NoScopeChang"; did you mean "NoScopeChange"?
     --> c.yaml:5:27
    4 | - name: CRDUpgradeSafety
    5 |   config: {rules: [{name: NoScopeChang, enforcement: warn}]}
      |                           ^^^^^^^^^^^^
    "#);
    insta::assert_snapshot!(bed.with("{rules: [{name: NoTypeChange, enforcement: loud}]}").shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: preflightRules[CRDUpgradeSafety].config.rules[0].enforcement: "loud" is not one of error, warn, none
     --> c.yaml:5:54
    4 | - name: CRDUpgradeSafety
    5 |   config: {rules: [{name: NoTypeChange, enforcement: loud}]}
      |                                                      ^^^^
    "#);
    // As in crdify, whose words are capitalised.
    insta::assert_snapshot!(bed.with("{preset: crdify, validations: [{name: description, enforcement: error}]}").shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: preflightRules[CRDUpgradeSafety].config.validations[0].enforcement: "error" is not one of Error, Warn, None (did you mean "Error"?)
     --> c.yaml:5:75
    4 | - name: CRDUpgradeSafety
    5 |   config: {preset: crdify, validations: [{name: description, enforcement: error}]}
      |                                                                           ^^^^^
    "#);
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
    insta::assert_snapshot!(human().shown(), @r#"
    exit code 0
    ----- stdout
    Target   dir: cluster
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety  passed, 2 findings switched off by c.yaml:7, c.yaml:8

    Planned: 1 update; nothing was written (check only)
    "#);
    // Together with other findings.
    let some = bed.with("{rules: [{name: FormatChange, enforcement: none}]}");
    assert_eq!(suppressed(some.code(3)), ["1 FormatChange info c.yaml:5"]);
    insta::assert_snapshot!(human().shown(), @r#"
    exit code 3
    ----- stdout
    Target   dir: cluster
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoTypeChange]: type of spec.a may not be changed from integer to string in v1
     --> crd.json:1:423
    1 | ..."object","properties":{"a":{"type":"string"},"b":{"type":"string","description":"two"},"c"...
      |                                ^^^^^^ was integer in the live CRD
      = in      samples.test.example.com, v1, ^.spec.a
      = breaks  stored objects: the server refuses every server-side apply of invalid ones
                writers: the server refuses or drops what they send today
      = proof   accepted today, refused with this change: spec.a: Invalid value: "integer": spec.a in
                body must be of type string: "integer"
                  {apiVersion: test.example.com/v1, kind: Sample, metadata: {name: x}, spec: {a: 0}}
      = next    keep spec.a as it is in v1 and add a field with another name, or change it in a new
                version that a webhook converts, or after a migration
                if the CRD is not yours: stay on its old version, or accept the change in gantry.yaml:
                  waivers: [{rule: NoTypeChange, object: samples.test.example.com, path: "^.spec.a",
                  reason: "why this is fine here"}]

    For details of a rule: gantry rules NoTypeChange.

    CRDUpgradeSafety  blocked: 1 error in samples.test.example.com (NoTypeChange), 1 finding switched
                      off by c.yaml:5

    Would be blocked: 1 error. Nothing was written.
    ----- stderr
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "ChangeValidator" validation failed: version "v1", field "^.spec.a": type changed from "integer" to "string"
    "#);
    // In crdify's words, but without what the preset itself leaves out.
    let crdify = bed.with(
        "\n    preset: olm-v1\n    unhandledEnforcement: None\n    validations:\n    - {name: type, enforcement: None}",
    );
    assert_eq!(suppressed(crdify.code(0)), ["1 type error c.yaml:9", "1 unhandled error c.yaml:7"]);
    // A rule without findings is not mentioned.
    let nothing = bed.with("{rules: [{name: NoScopeChange, enforcement: none}]}");
    assert_eq!(suppressed(nothing.code(3)), Vec::<String>::new());
    bed.with("{enforcement: None}");
    insta::assert_snapshot!(human().shown(), @r#"
    exit code 0
    ----- stdout
    Target   dir: cluster
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    CRDUpgradeSafety  skipped: disabled by enforcement: None (c.yaml:5)

    Planned: 1 update; nothing was written (check only)
    "#);
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
    insta::assert_snapshot!(bed.check("waivers:\n- {rule: NoTypeChange}\n").shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: waivers[0] has no reason
     --> c.yaml:4:3
    4 | - {rule: NoTypeChange}
      |   ^^^^^
      = help: say why these findings may pass; gantry shows the reason with each of them
    "#);
    insta::assert_snapshot!(bed.check("waivers:\n- {reason: all of it}\n").shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: waivers[0] would waive every finding
     --> c.yaml:4:3
    4 | - {reason: all of it}
      |   ^^^^^^^
      = help: name at least one of object, version, path and rule
    "#);
    insta::assert_snapshot!(bed.check("waivers:\n- {rule: X, reason: r, expires: soon}\n").shown(), @r#"
    exit code 2
    ----- stdout
    (JSON)
    ----- stderr
    error: waivers[0].expires: "soon" is not a date such as 2026-12-31
     --> c.yaml:4:33
    4 | - {rule: X, reason: r, expires: soon}
      |                                 ^^^^
    "#);
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
    insta::assert_snapshot!(Gantry::new().cwd(bed.path()).args(["check", "-f", "crd.json", "-f", "config.json", "--target", "dir:cluster"]).run().shown(), @r#"
    exit code 3
    ----- stdout
    Target   dir: cluster
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoTypeChange]: type of spec.a may not be changed from integer to string in v1
     --> crd.json:1:423
    1 | ..."object","properties":{"a":{"type":"string"},"b":{"type":"string","description":"two"},"c"...
      |                                ^^^^^^ was integer in the live CRD
      = in      samples.test.example.com, v1, ^.spec.a
      = breaks  stored objects: the server refuses every server-side apply of invalid ones
                writers: the server refuses or drops what they send today
      = proof   accepted today, refused with this change: spec.a: Invalid value: "integer": spec.a in
                body must be of type string: "integer"
                  {apiVersion: test.example.com/v1, kind: Sample, metadata: {name: x}, spec: {a: 0}}
      = next    keep spec.a as it is in v1 and add a field with another name, or change it in a new
                version that a webhook converts, or after a migration
                if the CRD is not yours: stay on its old version, or accept the change in gantry.yaml:
                  waivers: [{rule: NoTypeChange, object: samples.test.example.com, path: "^.spec.a",
                  reason: "why this is fine here"}]

    For details of a rule: gantry rules NoTypeChange.

    CRDUpgradeSafety          blocked: 1 error in samples.test.example.com (NoTypeChange); 1 info (-v
                              shows all)
    CustomResourceValidation  passed: 0 objects of 1 CRD read

    Would be blocked: 1 error. Nothing was written.
    ----- stderr
    notice: config.json:1:53: ignored: waivers in a Config document among the manifests (manifests may not waive findings about themselves; set this in a configuration file (gantry.yaml, or -c FILE))
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "ChangeValidator" validation failed: version "v1", field "^.spec.a": type changed from "integer" to "string"
    "#);
}

#[test]
fn differences_of_a_preset_from_semantic_are_counted() {
    let mirror = |required: &Value| json!({"type": "object", "required": required, "properties": {"mode": {"type": "string", "default": "a"}}});
    let live = json!({"mirror": mirror(&json!([])), "gone": {"type": "string"}});
    let people = |bed: &FolderUpgrade, flags: &[&str]| {
        let check = ["check", "-f", "crd.json", "--target", "dir:cluster"];
        Gantry::new().cwd(bed.path()).args(check).args(flags).run()
    };

    let one = FolderUpgrade::new(&live, &json!({"mirror": mirror(&json!(["mode"]))}));
    insta::assert_snapshot!(people(&one, &[]).shown(), @r#"
    exit code 3
    ----- stdout
    Target   dir: cluster
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoExistingFieldRemoved]: field spec.gone may not be removed from v1
     --> crd.json:1:404
    1 | ...ec":{"type":"object","properties":{"mirror":{"type":"object","required":["mode"],"properti...
      |                         ^^^^^^^^^^^^ the live CRD has gone here (string)
      = in      samples.test.example.com, v1, ^.spec.gone
      = breaks  writers: the server refuses or drops what they send today
                readers: they no longer find what they read today
                data: the server drops values from objects when they are next written
      = proof   accepted today, loses values with this change: spec.gone is dropped
                  {apiVersion: test.example.com/v1, kind: Sample, metadata: {name: x}, spec: {gone: ""}}
      = next    keep spec.gone in v1 and mark it as deprecated, or remove it only in a new version that
                a webhook converts, or after a migration
                if the CRD is not yours: stay on its old version, or accept the change in gantry.yaml:
                  waivers: [{rule: NoExistingFieldRemoved, object: samples.test.example.com, path:
                  "^.spec.gone", reason: "why this is fine here"}]

    error[NoRequiredFieldAdded]: mode may not become required in spec.mirror in v1
     --> crd.json:1:456
    1 | ...{"type":"object","required":["mode"],"properties":{"mode":{"type":"string","default":"a"}}...
      |                                 ^^^^^^ optional in the live CRD
      = in      samples.test.example.com, v1, ^.spec.mirror
      = proof   harmless: every object that is valid today stays valid and unchanged. Reported because
                kapp and OLM forbid this change.
      = next    leave mode optional in v1, or require it only in a new version that a webhook converts,
                or after a migration

    For details of a rule: gantry rules NoExistingFieldRemoved.

    CRDUpgradeSafety          blocked: 2 errors in samples.test.example.com (1 NoExistingFieldRemoved, 1
                              NoRequiredFieldAdded)
    CustomResourceValidation  passed: 0 objects of 1 CRD read

    1 of the 2 errors breaks nothing (kapp and OLM forbid it all the same). Judged by effect only, 1 is an error: --preset semantic.
    Would be blocked: 2 errors. Nothing was written.
    ----- stderr
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "NoExistingFieldRemoved" validation failed: crd/samples.test.example.com version/v1 field/^.spec.gone may not be removed; "ChangeValidator" validation failed: version "v1", field "^.spec.mirror": new required fields added: [mode]
    "#);
    let report = one.with("{}").code(3).report();
    let semantic = |rule: &str| {
        let findings = report["checks"][0]["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["rule"] == rule).unwrap()["semantic"].clone()
    };
    assert_eq!(semantic("NoRequiredFieldAdded"), "info");
    assert_eq!(semantic("NoExistingFieldRemoved"), Value::Null);
    let under_semantic = found(one.with("{preset: semantic}").code(3));
    assert_eq!(under_semantic.iter().filter(|(_, severity)| severity == "error").count(), 1, "{under_semantic:?}");

    let only = FolderUpgrade::new(&live, &json!({"mirror": mirror(&json!(["mode"])), "gone": {"type": "string"}}));
    insta::assert_snapshot!(people(&only, &[]).shown(), @r#"
    exit code 3
    ----- stdout
    Target   dir: cluster
    Plan     update    1 (1 CustomResourceDefinition)
             update    customresourcedefinition/samples.test.example.com

    error[NoRequiredFieldAdded]: mode may not become required in spec.mirror in v1
     --> crd.json:1:456
    1 | ...{"type":"object","required":["mode"],"properties":{"mode":{"type":"string","default":"a"}}...
      |                                 ^^^^^^ optional in the live CRD
      = in      samples.test.example.com, v1, ^.spec.mirror
      = proof   harmless: every object that is valid today stays valid and unchanged. Reported because
                kapp and OLM forbid this change.
      = next    leave mode optional in v1, or require it only in a new version that a webhook converts,
                or after a migration

    For details of a rule: gantry rules NoRequiredFieldAdded.

    CRDUpgradeSafety          blocked: 1 error in samples.test.example.com (NoRequiredFieldAdded)
    CustomResourceValidation  passed: proven safe for every possible object: 1 CRD

    The error breaks nothing (kapp and OLM forbid it all the same). Judged by effect only, nothing is an error: --preset semantic.
    Would be blocked: 1 error. Nothing was written.
    ----- stderr
    validating upgrade for CRD "samples.test.example.com" failed: CustomResourceDefinition samples.test.example.com failed upgrade safety validation. "ChangeValidator" validation failed: version "v1", field "^.spec.mirror": new required fields added: [mode]
    "#);
    only.with("{preset: semantic}").code(0);
    people(&only, &["--warn-only"]).code(0).contains_nowhere("Judged by effect");
    let none = FolderUpgrade::new(&live, &json!({"mirror": mirror(&json!([]))}));
    people(&none, &[]).code(3).contains_nowhere("Judged by effect");
}
