//! `gantry snapshot`: the live objects of a real API server, as a folder to check against.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::rights::{grant, replace};
use crate::support::{Bed, ControlPlane, Gantry, Output, control_plane};

/// A value that a snapshot must never contain.
const SECRET: &str = "hunter2-geheim";

fn snapshot(bed: &Bed, cp: &ControlPlane, user: &str, flags: &[&str]) -> Output {
    bed.gantry(cp.kubeconfig(user), &["snapshot", "-o", "live"]).args(flags).run()
}

/// The files of a folder and their content.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    entries.map(|path| (name(&path), fs::read_to_string(&path).expect("text"))).collect()
}

/// The results of the checks for a deploy of these manifests.
fn findings(bed: &Bed, cp: &ControlPlane, target: &str) -> (Option<i32>, Value, Value) {
    let checks = "CRDUpgradeSafety,CustomResourceValidation";
    let flags = ["check", "-f", "manifests.yaml", "--preflight", checks, "-o", "json", "--target", target];
    let output = bed.gantry(cp.kubeconfig("admin"), &flags).run();
    let mut report = output.report();
    let changes = report["changes"].as_array().expect("changes").iter();
    let changes = changes.map(|change| json!([change["action"], change["object"]["name"]])).collect();
    (output.code, report["checks"].take(), changes)
}

#[test]
fn a_check_against_the_snapshot_finds_what_one_against_the_server_finds() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {namespace}}}\nstringData: {{key: {SECRET}}}\n"
    );
    let live = |fields: &str| {
        [&bed.namespace(), &bed.crd(fields), &bed.config_map("kept", "a"), &bed.config_map("changed", "a"), &secret]
            .map(String::as_str)
            .join("---\n")
    };
    bed.write("manifests.yaml", &live("first: {type: string}, second: {type: string}"));
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    for number in 0..7 {
        let path = format!("/apis/{}/v1/namespaces/{namespace}/samples", bed.names.group);
        let object = json!({"apiVersion": format!("{}/v1", bed.names.group), "kind": "Sample",
            "metadata": {"name": format!("s{number}")}, "first": "x", "second": format!("value-{number}")});
        assert_eq!(cp.post(&path, &object).0, 201);
    }
    let changed = live("first: {type: string, maxLength: 0}").replace(
        "data: {key: a}\n---\napiVersion: v1\nkind: Secret",
        "data: {key: b}\n---\napiVersion: v1\nkind: Secret",
    );
    bed.write("manifests.yaml", &changed);
    let taken = snapshot(&bed, cp, "admin", &["-f", "manifests.yaml", "--objects"]);
    taken.code(0).stdout_contains("Wrote 1 CRD and 10 other objects to live (11 new)");
    taken.stderr_contains("left out of the snapshot: 1 Secret");

    let (code, checks, changes) = findings(&bed, cp, "kube");
    assert_eq!(code, Some(3), "{checks}");
    let rules = checks.to_string();
    for rule in ["NoExistingFieldRemoved", "ExistingDataPruned", "ExistingObjectRefused"] {
        assert!(rules.contains(rule), "{rule}: {rules}");
    }
    let of_snapshot = findings(&bed, cp, "dir:live");
    assert_eq!(of_snapshot.1, checks);
    // Only the Secret is not in the snapshot.
    let text = changes.to_string().replace(r#"["unchanged","s"]"#, r#"["create","s"]"#);
    assert_eq!((of_snapshot.0, of_snapshot.2.to_string()), (code, text.clone()));
    assert!(text.contains(r#"["unchanged","kept"]"#) && text.contains(r#"["update","changed"]"#), "{text}");

    let folder = bed.folder.path().join("live");
    let before = files(&folder);
    let encoded = "aHVudGVyMi1nZWhlaW0=";
    for (name, text) in &before {
        let holds_none = !text.contains(SECRET) && !text.contains(encoded) && !text.contains(cp.token("admin"));
        assert!(holds_none && !text.contains("resourceVersion:"), "{name}\n{text}");
    }
    // The same objects produce the same bytes.
    snapshot(&bed, cp, "admin", &["-f", "manifests.yaml", "--objects"]).code(0).stdout_contains("(11 unchanged)");
    assert_eq!(files(&folder), before);
    // Files of deleted objects are removed from the folder.
    let path = format!("/apis/{}/v1/namespaces/{namespace}/samples/s3", bed.names.group);
    assert_eq!(cp.delete(&path).0, 200);
    let again = snapshot(&bed, cp, "admin", &["-f", "manifests.yaml", "--objects"]);
    again.code(0).stdout_contains("(10 unchanged, 1 removed)");
    let gone: Vec<&String> = before.keys().filter(|name| !folder.join(name).exists()).collect();
    assert_eq!(gone, [&format!("sample.{}_{namespace}_s3.yaml", bed.names.group)]);
}

#[test]
fn all_crds_are_written_without_manifests() {
    let cp = ControlPlane::start();
    let bed = Bed::new();
    let more: Vec<String> = (0..3)
        .map(|number| {
            bed.crd("first: {type: string}")
                .replace("samples", &format!("more{number}"))
                .replace("Sample", &format!("More{number}"))
                .replace("singular: sample,", &format!("singular: more{number}a,"))
        })
        .collect();
    let namespace = bed.namespace();
    let secret = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData: {{key: {SECRET}}}\n");
    bed.write(
        "manifests.yaml",
        &[&namespace, &secret, &bed.crd("first: {type: string}"), &more.join("---\n"), &bed.sample()]
            .map(String::as_str)
            .join("---\n"),
    );
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    let folder = bed.folder.path().join("live");
    let crds = snapshot(&bed, &cp, "admin", &[]);
    crds.code(0).stdout_contains("Wrote 4 CRDs to live (4 new)");
    let objects = snapshot(&bed, &cp, "admin", &["--objects"]);
    objects.code(0).stdout_contains("Wrote 4 CRDs and 1 other object to live (1 new, 4 unchanged)");
    for (name, text) in files(&folder) {
        assert!(!text.contains(SECRET) && !text.contains(cp.token("admin")), "{name}\n{text}");
    }
    // A snapshot is a target like any other, and so is a snapshot of it.
    let copy =
        Gantry::new().cwd(bed.folder.path()).args(["snapshot", "--objects", "--target", "dir:live", "-o", "copy"]);
    copy.run().code(0).stdout_contains("Wrote 4 CRDs and 1 other object to copy (5 new)");
    let crd = files(&folder)
        [&format!("customresourcedefinition.apiextensions.k8s.io_samples.{}.yaml", bed.names.group)]
        .clone();
    assert!(crd.contains("storedVersions:") && crd.contains("managedFields:"), "{crd}");
}

#[test]
fn an_unreadable_object_prevents_a_snapshot_unless_it_is_left_out() {
    let cp = control_plane();
    let bed = Bed::new();
    bed.write("manifests.yaml", &[bed.namespace(), bed.crd("first: {type: string}"), bed.sample()].join("---\n"));
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let user = cp.user(&json!([{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
        "verbs": ["get", "list"]}]));
    let folder = bed.folder.path().join("live");
    let flags = ["-f", "manifests.yaml", "--objects"];
    let refused = snapshot(&bed, cp, &user, &flags);
    refused.code(1).stderr_contains("nothing was written").stderr_contains("--skip-unreadable");
    assert!(!folder.exists());
    assert_eq!(fs::read_dir(bed.folder.path()).unwrap().count(), 1, "nothing is left beside it");
    let partial = snapshot(&bed, cp, &user, &["-f", "manifests.yaml", "--objects", "--skip-unreadable"]);
    partial.code(0).stderr_contains("notice: left out of the snapshot: ").stdout_contains("Wrote 1 CRD to live");
    // Without the CRDs, or without a server, `--skip-unreadable` does not help.
    let nobody = snapshot(&bed, cp, "nobody", &["--skip-unreadable"]);
    nobody.code(1).stderr_contains("customresourcedefinitions");
    let closed = "{apiVersion: v1, kind: Config, current-context: a, users: [{name: a, user: {token: x}}],\n  \
        clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a, user: a}}]}";
    bed.write("closed.kubeconfig", closed);
    let away = ["snapshot", "-o", "live", "--objects", "--skip-unreadable"];
    bed.gantry(bed.folder.path().join("closed.kubeconfig"), &away)
        .run()
        .code(1)
        .stderr_contains("refused the connection");
    assert_eq!(files(&folder).len(), 2);

    // A Secret is not even read.
    let secret = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {}}}\nstringData: {{key: {SECRET}}}\n",
        bed.names.namespace
    );
    bed.write("manifests.yaml", &[bed.crd("first: {type: string}"), secret].join("---\n"));
    let without = snapshot(&bed, cp, &user, &["-f", "manifests.yaml"]);
    without.code(0).stderr_contains("left out of the snapshot: 1 Secret");

    fs::create_dir(bed.folder.path().join("own")).unwrap();
    bed.write("own/crd.yaml", "mine: true\n");
    let own = bed.gantry(cp.kubeconfig("admin"), &["snapshot", "-o", "own"]).run();
    own.code(2).stderr_contains("own is not empty and is not a snapshot: it contains crd.yaml");
    assert_eq!(files(&bed.folder.path().join("own")), BTreeMap::from([("crd.yaml".into(), "mine: true\n".into())]));
}

/// What `gantry permissions` prints for a user that has no rights.
fn printed(bed: &Bed, cp: &ControlPlane, user: &str, flags: &[&str]) -> String {
    let arguments = ["permissions", "--for", "snapshot", "--name", &bed.names.namespace, "--as", user];
    let run = bed.gantry(cp.kubeconfig("admin"), &arguments).args(flags).run();
    run.code(0).stdout.clone()
}

#[test]
fn the_printed_rights_for_a_snapshot_are_exactly_those_needed() {
    let cp = control_plane();
    let bed = Bed::new();
    let namespace = &bed.names.namespace;
    let secret = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {namespace}}}\n");
    let crd = bed.crd("first: {type: string}");
    let all =
        [&bed.namespace(), &crd, &bed.config_map("a", "a"), &secret, &bed.sample()].map(String::as_str).join("---\n");
    bed.write("manifests.yaml", &all);
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    // Also an object that is not there: nobody knows that without reading it.
    bed.write("manifests.yaml", &[&all, &bed.config_map("b", "b")].map(String::as_str).join("---\n"));
    let user = cp.user(&json!([]));
    let flags = ["-f", "manifests.yaml", "--objects"];
    let refused = snapshot(&bed, cp, &user, &flags);
    refused.code(1).stderr_contains("gantry permissions --for snapshot");
    let printed = printed(&bed, cp, &user, &flags);
    assert!(printed.starts_with("# Minimal RBAC for a snapshot of 5 objects and the CRDs of their kinds"), "{printed}");
    for word in ["secrets", "patch", "create", "watch", "kind: Namespace"] {
        assert!(!printed.contains(word), "{word}\n{printed}");
    }
    let roles = grant(cp, &user, &printed);
    snapshot(&bed, cp, &user, &flags).code(0).stdout_contains("Wrote 1 CRD and 3 other objects");
    // Without any of the rules it is not written.
    for role in &roles {
        let rules = role["rules"].as_array().expect("rules");
        for (left_out, rule) in rules.iter().enumerate() {
            let mut fewer = role.clone();
            fewer["rules"].as_array_mut().expect("rules").remove(left_out);
            replace(cp, &user, &fewer, rule);
            let output = snapshot(&bed, cp, &user, &flags);
            assert_eq!(output.code, Some(1), "{rule:#}\n{}", output.stderr);
        }
        replace(cp, &user, role, &Value::Null);
    }
    snapshot(&bed, cp, &user, &flags).code(0);
}

#[test]
fn the_rights_for_a_snapshot_of_everything_name_all_served_kinds() {
    let cp = ControlPlane::start();
    let bed = Bed::new();
    bed.write("manifests.yaml", &[bed.namespace(), bed.crd("first: {type: string}"), bed.sample()].join("---\n"));
    bed.deploy(cp.kubeconfig("admin"), &[]).run().code(0);
    let user = cp.user(&json!([]));
    snapshot(&bed, &cp, &user, &[]).code(1).stderr_contains("gantry permissions --for snapshot prints the rights");
    grant(&cp, &user, &printed(&bed, &cp, &user, &[]));
    snapshot(&bed, &cp, &user, &[]).code(0).stdout_contains("Wrote 1 CRD to live");
    let objects = snapshot(&bed, &cp, &user, &["--objects"]);
    objects.code(1).stderr_contains("gantry permissions --for snapshot prints");
    let printed = printed(&bed, &cp, &user, &["--objects"]);
    assert!(printed.contains("print again for CRDs that are added later"), "{printed}");
    grant(&cp, &user, &printed);
    snapshot(&bed, &cp, &user, &["--objects"]).code(0).stdout_contains("Wrote 1 CRD and 1 other object to live");

    let permissions = |flags: &[&str]| bed.gantry(cp.kubeconfig("admin"), &["permissions"]).args(flags).run();
    permissions(&["--for", "snapshot", "--as", "x"]).code(0).stdout_contains("name: gantry-snapshot");
    permissions(&["-f", "manifests.yaml", "--as", "x"]).code(0).stdout_contains("name: gantry-deploy");
    permissions(&[]).code(2).stderr_contains("--file");
    permissions(&["--for", "deploy"]).code(2).stderr_contains("-f PATH");
    permissions(&["--for", "deploy", "-f", "manifests.yaml", "--objects"]).code(2).stderr_contains("--for snapshot");
    permissions(&["--for", "snapshot", "-a", "shop"]).code(2).stderr_contains("are about a deploy");
}
