//! What two schemas of one version do not show of an upgrade: the version at which objects are stored, nulls that are
//! kept from now on, and objects that are invalid already. What gantry says, and what the server then does.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Gantry, Output, Samples, control_plane, eventually, fields};

/// One side of a fixture, with the group of this test.
fn fixture(name: &str, file: &str, samples: &Samples) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/crd-upgrade-safety").join(name);
    let text = fs::read_to_string(folder.join(file)).unwrap().replace("test.example.com", &samples.names.group);
    serde_yaml::from_str(&text).unwrap()
}

fn check(crd: &Value, checks: &str) -> Output {
    check_with(crd, checks, &["-o", "json"])
}

fn check_with(crd: &Value, checks: &str, flags: &[&str]) -> Output {
    let arguments = ["check", "-f", "-", "--force-conflicts", "--preflight", checks];
    let gantry = Gantry::new().kubeconfig(control_plane().kubeconfig("admin"));
    gantry.args(arguments).args(flags.iter().copied()).stdin(crd.to_string()).run()
}

/// Rule, severity and path of the findings.
fn found(output: &Output) -> Vec<[String; 3]> {
    let report = output.report();
    let checks = report["checks"].as_array().expect("checks").clone();
    let findings = checks.iter().flat_map(|check| check["findings"].as_array().cloned().unwrap_or_default());
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    findings.map(|finding| ["rule", "severity", "path"].map(|key| text(&finding, key))).collect()
}

fn object(samples: &Samples, version: &str, spec: &Value) -> Value {
    let mut object = samples.object("one", spec);
    object["apiVersion"] = json!(format!("{}/{version}", samples.names.group));
    object
}

fn create(samples: &Samples, version: &str, spec: &Value) {
    eventually("the object is created", || {
        let (status, _) = control_plane().post(&samples.collection(version), &object(samples, version, spec));
        (status == 201).then_some(())
    });
}

/// Sends updates, each with another label, until the server refuses one with these words. Those before the server has
/// the new schema are accepted.
fn is_refused(samples: &Samples, version: &str, spec: &dyn Fn(usize) -> Value, words: &str) {
    let path = format!("{}/one", samples.collection(version));
    let mut number = 0;
    eventually("the update is refused", || {
        number += 1;
        let labels = json!({"number": number.to_string()});
        let patch = json!({"metadata": {"labels": labels}, "spec": spec(number)});
        let (status, answer) = control_plane().patch(&path, &patch);
        (status == 422 && answer["message"].as_str().is_some_and(|message| message.contains(words))).then_some(())
    });
}

#[test]
fn an_object_that_another_version_stores_is_refused_as_gantry_says() {
    let (one, many) = ("must validate one and only one schema", "Too many: 2");
    type Spec<'a> = &'a dyn Fn(usize) -> Value;
    let same: Spec<'_> = &|_| json!({});
    let a: Spec<'_> = &|number| json!({"a": number.to_string()});
    let b: Spec<'_> = &|number| json!({"b": number.to_string()});
    let cases: [(&str, [&str; 2], Value, Spec<'_>, &str); 5] = [
        ("default-of-the-storage-version", ["v2", "v2"], json!({"a": "x"}), a, one),
        ("default-that-the-storage-version-lacks", ["v2", "v2"], json!({"a": "x"}), same, "self == oldSelf"),
        ("default-of-a-new-storage-version", ["v1", "v1"], json!({"b": "x"}), b, one),
        ("stored-field-that-another-version-gains", ["v1", "v2"], json!({"a": "x", "c": "x"}), a, many),
        ("required-only-in-a-lower-version", ["v2", "v1"], json!({"b": "x"}), b, "spec.a: Required value"),
    ];
    for (name, [written, updated], spec, changed, words) in cases {
        let samples = Samples::new();
        let desired = fixture(name, "desired.yaml", &samples);
        samples.live(&fixture(name, "live.yaml", &samples));
        let is_warning = name == "required-only-in-a-lower-version";
        if !is_warning {
            create(&samples, written, &spec);
        }
        let output = check(&desired, "CRDUpgradeSafety");
        output.code(if is_warning { 0 } else { 3 });
        let [rule, severity, _] = &found(&output).pop().expect("a finding");
        let expected = if is_warning { ("ServedVersionsDiffer", "warning") } else { ("IndirectChange", "error") };
        assert_eq!((rule.as_str(), severity.as_str()), expected, "{name}: {output}");
        samples.live(&desired);
        if is_warning {
            create(&samples, written, &spec);
        }
        is_refused(&samples, updated, changed, words);
    }
}

#[test]
fn a_null_that_is_kept_is_refused_as_gantry_says() {
    let cases = [
        ("nullable-beside-max-properties", json!({"a": null, "b": "x"}), "Too many: 2"),
        ("nullable-in-a-union", json!({"a": null, "b": "x"}), "one and only one schema"),
        ("nullable-entries-that-a-rule-reads", json!({"m": {"a": null, "b": "x"}}), "no such overload: size"),
        ("nullable-replicas", json!({"a": null}), "accessor error"),
    ];
    for (name, spec, words) in cases {
        let samples = Samples::new();
        let desired = fixture(name, "desired.yaml", &samples);
        samples.live(&fixture(name, "live.yaml", &samples));
        create(&samples, "v1", &spec);
        let output = check(&desired, "CRDUpgradeSafety");
        output.code(3);
        assert!(found(&output).iter().any(|[_, severity, _]| severity == "error"), "{name}: {output}");
        samples.live(&desired);
        eventually("a create is refused", || {
            let mut object = object(&samples, "v1", &spec);
            object["metadata"]["name"] = json!("two");
            let dry_run = format!("{}?dryRun=All", samples.collection("v1"));
            let (status, answer) = control_plane().post(&dry_run, &object);
            (status == 422 && answer["message"].as_str().is_some_and(|message| message.contains(words))).then_some(())
        });
    }
    // The null was dropped when the object was created, and is a change now.
    let (samples, name) = (Samples::new(), "nullable-in-an-immutable-object");
    samples.live(&fixture(name, "live.yaml", &samples));
    let spec = json!({"a": null, "b": "x"});
    create(&samples, "v1", &spec);
    let desired = fixture(name, "desired.yaml", &samples);
    check(&desired, "CRDUpgradeSafety").code(3);
    samples.live(&desired);
    is_not_replaced(&samples, &spec, "oldSelf");
}

/// Replaces the object until the server, which has a new schema, refuses it with these words.
fn is_not_replaced(samples: &Samples, spec: &Value, words: &str) {
    let path = samples.path("one");
    eventually("the manifest is refused", || {
        let mut object = object(samples, "v1", spec);
        object["metadata"]["resourceVersion"] = control_plane().get(&path).1["metadata"]["resourceVersion"].clone();
        let (status, answer) = control_plane().put(&format!("{path}?dryRun=All"), &object);
        (status == 422 && answer["message"].as_str().is_some_and(|message| message.contains(words))).then_some(())
    });
}

#[test]
fn a_default_that_a_rule_about_updates_sees_is_refused_as_gantry_says() {
    let cases = [
        ("frozen-default-changed", json!({}), json!({}), "spec.x: Invalid value"),
        ("frozen-default-added", json!({}), json!({"x": "z"}), "spec.x: Invalid value"),
        ("default-of-a-frozen-object-removed", json!({"p": {}}), json!({"p": {}}), "spec.p: Invalid value"),
        (
            "frozen-default-in-a-list-map",
            json!({"l": [{"name": "a"}]}),
            json!({"l": [{"name": "a"}]}),
            "spec.l[0].x: Invalid",
        ),
        ("default-of-an-immutable-object-added", json!({}), json!({"o": {"a": "z"}}), "spec.o: Invalid value"),
        ("default-of-a-ratcheted-flag", json!({}), json!({}), "spec.x: Invalid value"),
        ("default-of-a-ratcheted-number-added", json!({}), json!({"x": 4}), "spec.x: Invalid value"),
        ("default-frozen-on-a-condition", json!({"mode": "locked"}), json!({"mode": "locked"}), "spec: Invalid value"),
    ];
    for (name, created, sent, words) in cases {
        let samples = Samples::new();
        let desired = fixture(name, "desired.yaml", &samples);
        samples.live(&fixture(name, "live.yaml", &samples));
        create(&samples, "v1", &created);
        for preset in ["semantic", "evidence"] {
            let output = check_with(&desired, "CRDUpgradeSafety", &["--preset", preset, "-o", "json"]);
            output.code(3);
            let findings = output.report()["checks"][0]["findings"].clone();
            let witness = &findings[0]["witnesses"][0];
            assert!(witness["oldObject"].is_object(), "{name} {preset}: {output}");
        }
        check_with(&desired, "CRDUpgradeSafety", &[]).code(3).contains_nowhere("nothing is refused");
        samples.live(&desired);
        is_not_replaced(&samples, &sent, words);
    }
}

#[test]
fn what_the_stored_default_hides_stays_an_error_under_evidence() {
    let samples = Samples::new();
    let name = "required-default-removed";
    let desired = fixture(name, "desired.yaml", &samples);
    samples.live(&fixture(name, "live.yaml", &samples));
    create(&samples, "v1", &json!({}));
    let output = check_with(&desired, "CRDUpgradeSafety", &["--preset", "evidence", "-o", "json"]);
    output.code(3);
    let finding = output.report()["checks"][0]["findings"][0].clone();
    assert_eq!(finding["evidence"]["examined"], "no", "{output}");
    samples.live(&desired);
    is_not_replaced(&samples, &json!({}), "spec.a: Required value");
}

#[test]
fn objects_that_are_invalid_already_are_read_for_rules_about_what_is_around_them() {
    let text = |least: u64| json!({"type": "string", "minLength": least, "maxLength": 9});
    let spec = |least: u64, rules: Value| {
        let mut spec = fields(json!({"a": text(least), "b": {"type": "string"}}));
        spec["x-kubernetes-validations"] = rules;
        spec
    };
    let b = |number: usize| json!({"b": number.to_string()});
    for rule in ["!has(self.a) || self.a.size() >= 3", "!has(self.a) || self.a.size() >= 3 || oldSelf.a.size() >= 3"] {
        let samples = Samples::new();
        samples.live(&samples.one_version(spec(1, json!([]))));
        create(&samples, "v1", &json!({"a": "x", "b": "x"}));
        samples.live(&samples.one_version(spec(3, json!([]))));
        let desired = samples.one_version(spec(3, json!([{"rule": rule}])));
        // No valid object breaks, so the schemas alone do not show it.
        let alone = check(&desired, "CRDUpgradeSafety");
        alone.code(0);
        assert_eq!(found(&alone), [["ValidationRuleChange", "info", "^.spec"].map(str::to_owned)], "{alone}");
        let help = alone.report()["checks"][0]["findings"][0]["help"].clone();
        assert!(help.as_str().is_some_and(|help| help.contains("stored objects are invalid already")), "{help}");
        let both = check(&desired, "CRDUpgradeSafety,CustomResourceValidation");
        both.code(3);
        assert!(found(&both).iter().any(|[_, severity, path]| severity == "error" && path == "spec"), "{both}");
        samples.live(&desired);
        is_refused(&samples, "v1", &b, rule);
    }
}

#[test]
fn a_new_version_that_lacks_what_no_object_has_is_a_warning_under_evidence() {
    let name = "new-version-lacks-stored-fields";
    for (spec, examined, code) in [(json!({"host": "a"}), "noneAffected", 0), (json!({"port": "1"}), "affected", 3)] {
        let samples = Samples::new();
        let desired = fixture(name, "desired.yaml", &samples);
        samples.live(&fixture(name, "live.yaml", &samples));
        create(&samples, "v1", &spec);
        let output = check_with(&desired, "CRDUpgradeSafety", &["--preset", "evidence", "-o", "json"]);
        output.code(code);
        let finding = output.report()["checks"][0]["findings"][0].clone();
        assert_eq!(
            [&finding["rule"], &finding["evidence"]["examined"]],
            ["ServedVersionLosesFields", examined],
            "{output}"
        );
        samples.live(&desired);
        let path = samples.path("one").replace("/v1/", "/v2/");
        let patched = eventually("the new version is served", || {
            let (status, object) = control_plane().patch(&path, &json!({"metadata": {"labels": {"a": "b"}}}));
            (status == 200).then_some(object)
        });
        assert_eq!(patched["spec"]["port"], Value::Null);
        let (_, stored) = control_plane().get(&samples.path("one"));
        assert_eq!(stored["spec"]["port"], Value::Null, "dropped for good");
    }
}
