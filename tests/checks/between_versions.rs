//! What is lost between the versions of a CRD that no webhook converts, as the default checks say it and as the server
//! does it.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Gantry, Output, Samples, control_plane, eventually, string_fields};

const FEW: &[&str] = &["host"];
const ALL: &[&str] = &["host", "note"];

/// A CRD, its objects, and a folder with manifests.
struct VersionedSamples {
    samples: Samples,
    folder: tempfile::TempDir,
}

impl VersionedSamples {
    fn new() -> Self {
        VersionedSamples { samples: Samples::new(), folder: tempfile::tempdir().unwrap() }
    }

    /// A CRD with these versions: name, whether it is the storage version, fields of `spec`, all strings.
    fn crd(&self, versions: &[(&str, bool, &[&str])]) -> Value {
        let versions: Vec<_> =
            versions.iter().map(|(name, storage, names)| (*name, *storage, string_fields(names))).collect();
        self.samples.crd(&versions)
    }

    fn object(&self, version: &str, spec: &Value) -> Value {
        let mut object = self.samples.object("one", spec);
        object["apiVersion"] = json!(format!("{}/{version}", self.samples.names.group));
        object
    }

    fn path(&self, version: &str) -> String {
        format!("{}/one", self.samples.collection(version))
    }

    /// Runs gantry with its default checks.
    fn run(&self, command: &str, manifests: &[(&str, &Value)], flags: &[&str]) -> Output {
        for (file, object) in manifests {
            fs::write(self.folder.path().join(file), serde_yaml::to_string(object).unwrap()).unwrap();
        }
        let files = manifests.iter().flat_map(|(file, _)| ["-f", file]);
        Gantry::new()
            .kubeconfig(control_plane().kubeconfig("admin"))
            .cwd(self.folder.path())
            .arg(command)
            .args(files)
            .args(flags)
            .run()
    }

    /// Creates the object, as soon as the server serves the version.
    fn create(&self, version: &str, spec: &Value) {
        eventually("the object is created", || {
            let (status, _) = control_plane().post(&self.samples.collection(version), &self.object(version, spec));
            (status == 201).then_some(())
        });
    }

    /// The spec of the object, read at a version.
    fn spec(&self, version: &str) -> Value {
        eventually("the object is read", || {
            let (status, live) = control_plane().get(&self.path(version));
            (status == 200).then(|| live["spec"].clone())
        })
    }
}

/// Severity, version, path and message of the findings of a rule.
fn found(output: &Output, rule: &str) -> Vec<(String, String, Value, String)> {
    let report = output.report();
    let checks = report["checks"].as_array().expect("checks").clone();
    let findings = checks.iter().flat_map(|check| check["findings"].as_array().cloned().unwrap_or_default());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    findings
        .filter(|finding| finding["rule"] == rule)
        .map(|f| (text(&f["severity"]), text(&f["version"]), f["path"].clone(), text(&f["message"])))
        .collect()
}

#[test]
fn a_write_at_a_served_version_with_fewer_fields_drops_the_others() {
    let cp = control_plane();
    for (live, desired) in [
        // A field is added to the storage version alone.
        (&[("v1beta1", false, FEW), ("v1", true, FEW)][..], &[("v1beta1", false, FEW), ("v1", true, ALL)][..]),
        // The storage version moves to one with more fields.
        (&[("v1beta1", true, FEW)], &[("v1beta1", false, FEW), ("v1", true, ALL)]),
        // A version with fewer fields is added.
        (&[("v1", true, ALL)], &[("v1beta1", false, FEW), ("v1", true, ALL)]),
        // The CRD is created so.
        (&[], &[("v1beta1", false, FEW), ("v1", true, ALL)]),
    ] {
        let bed = VersionedSamples::new();
        if !live.is_empty() {
            bed.run("deploy", &[("crd.yaml", &bed.crd(live))], &[]).code(0);
        }
        let desired = bed.crd(desired);
        let output = bed.run("deploy", &[("crd.yaml", &desired)], &["-o", "json"]);
        let message = "every write at v1beta1, even of a label, drops spec.note from the object: v1beta1 lacks it, and the \
            storage version v1 has it";
        let expected = ("warning".to_owned(), "v1beta1".to_owned(), Value::Null, message.to_owned());
        assert_eq!(found(output.code(0), "ServedVersionLosesFields"), [expected], "{output}");
        let report = output.report();
        let coverage =
            report["checks"].as_array().unwrap().iter().flat_map(|check| check["coverage"].as_array().cloned());
        let proven: Vec<Value> = coverage.flatten().map(|coverage| coverage["proven"].clone()).collect();
        assert!(proven.iter().all(|proven| proven.as_array().is_none_or(Vec::is_empty)), "{report:#}");

        bed.create("v1", &json!({"host": "name", "note": "text"}));
        assert_eq!(bed.spec("v1"), json!({"host": "name", "note": "text"}));
        let (status, answer) = cp.patch(&bed.path("v1beta1"), &json!({"metadata": {"labels": {"touched": "now"}}}));
        assert_eq!(status, 200, "{answer}");
        assert_eq!(bed.spec("v1"), json!({"host": "name"}));

        // It was so before, so nothing is new.
        let mut labelled = desired;
        labelled["metadata"]["labels"] = json!({"changed": "now"});
        let again = bed.run("deploy", &[("crd.yaml", &labelled)], &["-o", "json"]);
        assert_eq!(found(again.code(0), "ServedVersionLosesFields"), [], "{again}");
    }
}

#[test]
fn an_object_with_a_field_that_the_storage_version_lacks_makes_the_finding_an_error() {
    let bed = VersionedSamples::new();
    bed.samples.live(&bed.crd(&[("v1", true, ALL)]));
    bed.create("v1", &json!({"host": "name", "note": "text"}));
    let desired = bed.crd(&[("v1beta1", false, FEW), ("v1", true, ALL)]);
    let output = bed.run("check", &[("crd.yaml", &desired)], &["-o", "json", "--force-conflicts"]);
    let lost = found(output.code(3), "ExistingDataPruned");
    assert!(
        matches!(&lost[..], [(severity, version, path, _)]
        if severity == "error" && version == "v1beta1" && path == "spec.note"),
        "{output}"
    );
}

#[test]
fn a_value_of_a_manifest_that_the_storage_version_lacks_is_found_at_its_line() {
    let cp = control_plane();
    let bed = VersionedSamples::new();
    let crd = bed.crd(&[("v1", true, FEW), ("v2", false, ALL)]);
    let object = bed.object("v2", &json!({"host": "name", "note": "text"}));
    // With the CRD among the manifests, and with the live one.
    let message = |whose: &str| {
        format!("spec.note is lost when it is written at v2: {whose} stores every object at v1, which does not have it")
    };
    for whose in ["the CRD among the manifests", "the live CRD"] {
        let both = [("crd.yaml", &crd), ("object.yaml", &object)];
        let manifests = if whose.ends_with("manifests") { &both[..] } else { &both[1..] };
        let output = bed.run("check", manifests, &["-o", "json"]);
        let expected = ("error".to_owned(), "v2".to_owned(), json!("spec.note"), message(whose));
        assert_eq!(found(output.code(3), "ManifestValueLost"), [expected], "{output}");
        bed.run("check", manifests, &[]).code(3).stdout_contains("object.yaml:8:3").stdout_contains(&message(whose));
        if manifests.len() == 2 {
            bed.run("deploy", &both[..1], &[]).code(0);
        }
    }
    // What would have happened.
    bed.run("deploy", &[("object.yaml", &object)], &["--warn-only"]).code(0);
    assert_eq!(bed.spec("v2"), json!({"host": "name"}));
    cp.delete(&bed.path("v1"));

    // The steps: leave it out, or add the field to the storage version.
    let without = bed.object("v2", &json!({"host": "name"}));
    bed.run("deploy", &[("object.yaml", &without)], &[]).code(0);
    let wider = bed.crd(&[("v1", true, ALL), ("v2", false, ALL)]);
    bed.run("deploy", &[("crd.yaml", &wider), ("object.yaml", &object)], &[]).code(0);
    eventually("the object has the field", || (bed.spec("v1") == object["spec"]).then_some(()));
}

#[test]
fn a_manifest_at_a_version_that_lacks_a_field_of_the_live_object_is_found() {
    let bed = VersionedSamples::new();
    bed.run("deploy", &[("crd.yaml", &bed.crd(&[("v1beta1", false, FEW), ("v1", true, ALL)]))], &[]).code(0);
    bed.create("v1", &json!({"host": "name", "note": "text"}));
    let mut old = bed.object("v1beta1", &json!({"host": "name"}));
    old["metadata"]["labels"] = json!({"release": "2"});
    let flags = ["-o", "json", "--force-conflicts"];
    let output = bed.run("check", &[("object.yaml", &old)], &flags);
    let message = "the live object loses spec.note when this manifest is written: v1beta1 does not have it";
    let expected = ("error".to_owned(), "v1beta1".to_owned(), json!("spec.note"), message.to_owned());
    assert_eq!(found(output.code(3), "ManifestValueLost"), [expected], "{output}");

    // The step: write it at the storage version.
    let mut new = old.clone();
    new["apiVersion"] = json!(format!("{}/v1", bed.samples.names.group));
    let shown = bed.run("check", &[("object.yaml", &old)], &["--force-conflicts"]);
    shown.code(3).stdout_contains(&format!("apiVersion: {}", new["apiVersion"].as_str().unwrap()));
    bed.run("deploy", &[("object.yaml", &new)], &["--force-conflicts"]).code(0);
    assert_eq!(bed.spec("v1"), json!({"host": "name", "note": "text"}));

    // What would have happened.
    old["metadata"]["labels"] = json!({"release": "3"});
    bed.run("deploy", &[("object.yaml", &old)], &["--force-conflicts", "--warn-only"]).code(0);
    assert_eq!(bed.spec("v1"), json!({"host": "name"}));
    // Nothing is left to lose.
    old["metadata"]["labels"] = json!({"release": "4"});
    bed.run("deploy", &[("object.yaml", &old)], &["--force-conflicts"]).code(0);
}

#[test]
fn a_default_that_the_storage_version_fills_in_again_is_not_lost() {
    let bed = VersionedSamples::new();
    let mut crd = bed.crd(&[("v1beta1", false, FEW), ("v1", true, ALL)]);
    crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["note"]["default"] =
        json!("text");
    bed.run("deploy", &[("crd.yaml", &crd)], &[]).code(0);
    bed.create("v1beta1", &json!({"host": "name"}));
    assert_eq!(bed.spec("v1"), json!({"host": "name", "note": "text"}));
    let mut old = bed.object("v1beta1", &json!({"host": "name"}));
    old["metadata"]["labels"] = json!({"release": "2"});
    bed.run("deploy", &[("object.yaml", &old)], &["--force-conflicts"]).code(0);
    assert_eq!(bed.spec("v1"), json!({"host": "name", "note": "text"}));
}

#[test]
fn a_new_field_that_a_manifest_sets_and_another_served_version_lacks_is_found() {
    let bed = VersionedSamples::new();
    bed.run("deploy", &[("crd.yaml", &bed.crd(&[("v1beta1", false, FEW), ("v1", true, FEW)]))], &[]).code(0);
    let desired = bed.crd(&[("v1beta1", false, FEW), ("v1", true, ALL)]);
    let object = bed.object("v1", &json!({"host": "name", "note": "text"}));
    let manifests = [("crd.yaml", &desired), ("object.yaml", &object)];
    let output = bed.run("check", &manifests, &["-o", "json"]);
    let message = "spec.note is lost with the next write of this object at v1beta1, even of a label: v1beta1 does not have \
        it, and the storage version v1 has it";
    let expected = ("error".to_owned(), "v1".to_owned(), json!("spec.note"), message.to_owned());
    assert_eq!(found(output.code(3), "ManifestValueLost"), [expected], "{output}");

    // The steps: the field in both versions, or a version that is not served.
    let both = bed.crd(&[("v1beta1", false, ALL), ("v1", true, ALL)]);
    bed.run("check", &[("crd.yaml", &both), ("object.yaml", &object)], &[]).code(0);
    let mut unserved = desired.clone();
    unserved["spec"]["versions"][0]["served"] = json!(false);
    bed.run("check", &[("crd.yaml", &unserved), ("object.yaml", &object)], &[]).code(0);
    // A manifest without the field loses nothing, and a live CRD that is so already is nothing new.
    let without = bed.object("v1", &json!({"host": "name"}));
    bed.run("deploy", &[("crd.yaml", &desired), ("object.yaml", &without)], &[]).code(0);
    bed.run("deploy", &[("object.yaml", &object)], &[]).code(0);
    assert_eq!(bed.spec("v1"), object["spec"]);
}
