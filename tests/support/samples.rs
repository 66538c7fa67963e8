//! A test's own CRD, and objects of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{CrdBuilder, Gantry, Isolated, Output, control_plane, isolated};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The CRD, and objects in a namespace of the test.
pub struct Samples {
    pub names: Isolated,
}

impl Samples {
    pub fn new() -> Self {
        let bed = Samples { names: isolated() };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bed.names.namespace}});
        control_plane().apply_yaml(&namespace.to_string());
        bed
    }

    /// A CRD with these versions: name, whether it is the storage version, schema of `spec`.
    pub fn crd(&self, versions: &[(&str, bool, Value)]) -> Value {
        let add = |crd: CrdBuilder, (name, storage, spec): &(&str, bool, Value)| {
            crd.version_of_spec(name, spec.clone()).storage(*storage)
        };
        versions.iter().fold(CrdBuilder::samples(&self.names.group), add).build()
    }

    pub fn one_version(&self, spec: Value) -> Value {
        self.crd(&[("v1", true, spec)])
    }

    pub fn object(&self, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": format!("{}/v1", self.names.group), "kind": "Sample",
            "metadata": {"name": name, "namespace": self.names.namespace}, "spec": spec})
    }

    pub fn collection(&self, version: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{}/samples", self.names.group, self.names.namespace)
    }

    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.collection("v1"))
    }

    pub fn crd_path(&self) -> String {
        format!("{CRDS}/samples.{}", self.names.group)
    }

    /// Applies a CRD to the server.
    pub fn live(&self, crd: &Value) {
        control_plane().apply_yaml(&crd.to_string());
    }

    pub fn create(&self, name: &str, spec: &Value) {
        let (status, answer) = control_plane().post(&self.collection("v1"), &self.object(name, spec));
        assert_eq!(status, 201, "{answer}");
    }

    pub fn gantry(&self, kubeconfig: PathBuf, command: &str, manifests: &Value, flags: &[&str]) -> Output {
        let arguments = [command, "-f", "-", "--preflight", "CustomResourceValidation"];
        // The live object was written by another manager, and checks stop at such a conflict as deploys do.
        let force: &[&str] = if command == "check" { &["--force-conflicts"] } else { &[] };
        Gantry::new().kubeconfig(kubeconfig).args(arguments).args(force).args(flags).stdin(manifests.to_string()).run()
    }

    pub fn check(&self, crd: &Value, flags: &[&str]) -> Output {
        self.gantry(control_plane().kubeconfig("admin"), "check", crd, flags)
    }

    pub fn json(&self, crd: &Value) -> Value {
        self.check(crd, &["-o", "json"]).report()
    }
}

pub fn findings(report: &Value) -> Vec<Value> {
    report["checks"][0]["findings"].as_array().expect("findings").clone()
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The names of the affected objects, for each rule and path.
pub fn affected(report: &Value) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut affected: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for finding in findings(report) {
        let objects = finding["affected"]["objects"].as_array().expect("objects").iter();
        let names: BTreeSet<String> = objects.map(|object| text(&object["name"])).collect();
        assert_eq!(finding["affected"]["count"], names.len(), "{finding}");
        affected.entry((text(&finding["rule"]), text(&finding["path"]))).or_default().extend(names);
    }
    affected
}

pub fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
    names.map(str::to_owned).into()
}

/// Rule, version and path of a finding.
pub type FindingId = (String, String, String);

/// Rule, version and path of each finding.
pub fn finding_ids(report: &Value) -> Vec<FindingId> {
    let id = |finding: &Value| (text(&finding["rule"]), text(&finding["version"]), text(&finding["path"]));
    findings(report).iter().map(id).collect()
}

pub fn finding_id(rule: &str, version: &str, path: &str) -> FindingId {
    (rule.to_owned(), version.to_owned(), path.to_owned())
}
