//! If there is much to read, live CRDs are requested while manifests are still being read. Nothing that a user relies
//! on must depend on that.

use crate::support::{Bed, Proxy, control_plane, crd_yaml};

/// More than enough text for reading ahead.
const LONG: usize = 400_000;

/// Three long CRDs of one group.
fn long_crds() -> Bed {
    let bed = Bed::new();
    for plural in ["ants", "bees", "cats"] {
        bed.write(&format!("{plural}.yaml"), &crd(&bed, plural, LONG, ""));
    }
    bed
}

/// A CRD in the usual layout with a description of this length.
fn crd(bed: &Bed, plural: &str, length: usize, keyword: &str) -> String {
    let (kind, name) = (plural.trim_end_matches('s').to_uppercase(), format!("{plural}.{}", bed.names.group));
    let field = format!("first: {{type: string, description: '{}'{keyword}}}", "word ".repeat(length / 5));
    crd_yaml(&bed.names.group, &kind, &field).replace(&format!(" {{name: {name}}}"), &format!("\n  name: {name}"))
}

fn path(bed: &Bed, plural: &str) -> String {
    format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{}", bed.names.group)
}

/// The paths of the requests, sorted.
/// What was read, in the order of the paths.
fn paths(proxy: &Proxy) -> Vec<String> {
    let read = proxy.requests().into_iter().filter(|request| request.method == "GET");
    let mut paths: Vec<String> = read.map(|request| request.path).collect();
    paths.sort();
    paths
}

#[test]
fn every_crd_is_read_once_with_or_without_a_right_guess() {
    let bed = long_crds();
    let proxy = Proxy::start(control_plane());
    bed.gantry(proxy.kubeconfig("admin"), &["deploy", "-f", "."]).run().code(0);

    // A CRD that the guess misses, because its layout is unusual.
    let short = crd(&bed, "dogs", 10, "").replace("metadata:\n  name:", "metadata:\n  ? name\n  :");
    bed.write("dogs.yaml", &short);
    // The last of two equal keys wins, so this is not a CRD, although it looks like one.
    let eel = "kind: CustomResourceDefinition\nmetadata:\n  name: eels.example.com\napiVersion: v1\n";
    bed.write("eels.yaml", &format!("{eel}spec: {{}}\nkind: Namespace\n"));
    bed.write("bees.yaml", &crd(&bed, "bees", LONG, ", maxLength: 5"));
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
    let mut expected: Vec<String> = ["ants", "bees", "cats", "dogs"].map(|plural| path(&bed, plural)).into();
    expected.extend([foreseen_in_vain, "/api/v1".into(), "/api/v1/namespaces/eels.example.com".into()]);
    // The upgrade is blocked, so its objects are read.
    expected.push(format!("/apis/{}/v1/bees", bed.names.group));
    // The release of the server decides what it accepts. The schemas of what is written are read beside the checks.
    expected.extend(["/version".into(), "/openapi/v3/api/v1".into()]);
    expected.sort();
    assert_eq!(paths(&proxy), expected);
}

#[test]
fn an_invalid_configuration_among_long_manifests_is_reported_before_any_request() {
    for config in [
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\nwarnOnyl: true\n",
        "kind: Config\n\"apiVersion\": \"gantry\\x2edev/v1alpha1\"\nwarnOnyl: true\n",
    ] {
        let bed = long_crds();
        bed.write("z.yaml", &format!("{}---\n{config}", crd(&bed, "dogs", LONG, "")));
        let proxy = Proxy::start(control_plane());
        let checked = bed.gantry(proxy.kubeconfig("admin"), &["check", "-f", "."]).run();
        checked.code(2).stderr_contains("warnOnly");
        assert_eq!(paths(&proxy), Vec::<String>::new());
    }
}

#[test]
fn a_broken_manifest_is_reported_whatever_the_server_answers() {
    let bed = long_crds();
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
    let bed = long_crds();
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
