//! If there is much to read, live CRDs are requested while manifests are still being read. Nothing that a user relies
//! on must depend on that.

use std::path::PathBuf;

use crate::support::{Gantry, Isolated, Proxy, control_plane, isolated};
use tempfile::TempDir;

/// More than enough text for reading ahead.
const LONG: usize = 400_000;

/// Manifests in a folder of their own: three long CRDs of one group.
struct Bed {
    folder: TempDir,
    names: Isolated,
}

impl Bed {
    fn new() -> Self {
        let bed = Self { folder: TempDir::new().expect("a temporary folder"), names: isolated() };
        for plural in ["ants", "bees", "cats"] {
            bed.write(&format!("{plural}.yaml"), &bed.crd(plural, LONG, ""));
        }
        bed
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).expect("write a manifest");
    }

    fn crd(&self, plural: &str, length: usize, keyword: &str) -> String {
        let group = &self.names.group;
        let kind: String = plural.to_uppercase();
        let description = "word ".repeat(length / 5);
        format!(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: {plural}.{group}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: {plural}, singular: {plural}-one, kind: {kind}, listKind: {kind}List}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          first: {{type: string, description: '{description}'{keyword}}}
"
        )
    }

    fn gantry(&self, kubeconfig: PathBuf, arguments: &[&str]) -> Gantry {
        Gantry::new().kubeconfig(kubeconfig).cwd(self.folder.path()).args(arguments)
    }

    fn path(&self, plural: &str) -> String {
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{}", self.names.group)
    }
}

/// The paths of the requests, sorted.
fn paths(proxy: &Proxy) -> Vec<String> {
    let mut paths: Vec<String> = proxy.requests().into_iter().map(|request| request.path).collect();
    paths.sort();
    paths
}

#[test]
fn every_crd_is_read_once_with_or_without_a_right_guess() {
    let bed = Bed::new();
    let proxy = Proxy::start(control_plane());
    bed.gantry(proxy.kubeconfig("admin"), &["deploy", "-f", "."]).run().code(0);

    // A CRD that the guess misses, because its layout is unusual.
    let short = bed.crd("dogs", 10, "").replace("metadata:\n  name:", "metadata:\n  ? name\n  :");
    bed.write("dogs.yaml", &short);
    // The last of two equal keys wins, so this is not a CRD, although it looks like one.
    let eel = "kind: CustomResourceDefinition\nmetadata:\n  name: eels.example.com\napiVersion: v1\n";
    bed.write("eels.yaml", &format!("{eel}spec: {{}}\nkind: Namespace\n"));
    bed.write("bees.yaml", &bed.crd("bees", LONG, ", maxLength: 5"));
    let proxy = Proxy::start(control_plane());
    let checked = bed.gantry(proxy.kubeconfig("admin"), &["check", "-o", "json", "-f", "."]).run();
    let report = checked.code(3).report();
    let actions: Vec<(&str, &str)> = report["changes"]
        .as_array()
        .expect("a list of changes")
        .iter()
        .map(|change| {
            let name = change["object"]["name"].as_str().unwrap_or_default();
            (name.split('.').next().unwrap_or_default(), change["action"].as_str().unwrap_or_default())
        })
        .collect();
    let expected =
        [("eels", "create"), ("ants", "unchanged"), ("bees", "update"), ("cats", "unchanged"), ("dogs", "create")];
    assert_eq!(actions, expected);
    let of_bees = &report["checks"][0]["findings"];
    assert_eq!(of_bees.as_array().map(Vec::len), Some(1), "{of_bees}");

    let foreseen_in_vain = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/eels.example.com".to_owned();
    let mut expected: Vec<String> = ["ants", "bees", "cats", "dogs"].map(|plural| bed.path(plural)).into();
    expected.extend([foreseen_in_vain, "/api/v1".into(), "/api/v1/namespaces/eels.example.com".into()]);
    // The upgrade is blocked, so its objects are read.
    expected.push(format!("/apis/{}/v1/bees", bed.names.group));
    expected.sort();
    assert_eq!(paths(&proxy), expected);
}

#[test]
fn an_invalid_configuration_among_long_manifests_is_reported_before_any_request() {
    for config in [
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\nwarnOnyl: true\n",
        "kind: Config\n\"apiVersion\": \"gantry\\x2edev/v1alpha1\"\nwarnOnyl: true\n",
    ] {
        let bed = Bed::new();
        bed.write("z.yaml", &format!("{}---\n{config}", bed.crd("dogs", LONG, "")));
        let proxy = Proxy::start(control_plane());
        let checked = bed.gantry(proxy.kubeconfig("admin"), &["check", "-f", "."]).run();
        checked.code(2).stderr_contains("warnOnly");
        assert_eq!(paths(&proxy), Vec::<String>::new());
    }
}

#[test]
fn a_broken_manifest_is_reported_whatever_the_server_answers() {
    let bed = Bed::new();
    bed.write("z.yaml", "kind: [\n");
    let proxy = Proxy::start(control_plane());
    proxy.refuse();
    for kubeconfig in [proxy.kubeconfig("admin"), control_plane().kubeconfig("nobody"), "missing".into()] {
        let checked = bed.gantry(kubeconfig, &["check", "-f", "."]).run();
        checked.code(1).stderr_contains("z.yaml:").stderr_contains("not valid YAML");
        assert!(!checked.stderr.contains("127.0.0.1"), "{checked}");
    }
}

#[test]
fn a_refusal_is_reported_once_and_only_for_requested_objects() {
    let bed = Bed::new();
    let refused = bed.gantry(control_plane().kubeconfig("nobody"), &["check", "-f", "."]).run();
    refused.code(1).stderr_contains("may not get customresourcedefinitions");

    // A user who may read only these three CRDs, and a document that only looks like a fourth.
    let names = ["ants", "bees", "cats"].map(|plural| format!("{plural}.{}", bed.names.group));
    let user = control_plane().user(&serde_json::json!([
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "resourceNames": names,
         "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": ["get"]},
    ]));
    let eel = "kind: CustomResourceDefinition\nmetadata:\n  name: eels.example.com\napiVersion: v1\nspec: {}\n";
    bed.write("eels.yaml", &format!("{eel}kind: PersistentVolume\n"));
    bed.gantry(control_plane().kubeconfig(&user), &["check", "-f", "."]).run().code(0);
}
