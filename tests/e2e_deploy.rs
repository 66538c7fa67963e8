//! `gantry deploy` and `gantry check` from the command line, against a real API server.

mod support;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};
use support::{Gantry, Isolated, Proxy, When, control_plane, isolated};
use tempfile::TempDir;

/// Manifests in a folder of their own, and the names that they use.
struct Bed {
    folder: TempDir,
    names: Isolated,
}

impl Bed {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder"), names: isolated() }
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.folder.path().join(file), text).expect("write a manifest");
    }

    /// `gantry`, started in the folder.
    fn gantry(&self, kubeconfig: PathBuf, arguments: &[&str]) -> Gantry {
        Gantry::new().kubeconfig(kubeconfig).cwd(self.folder.path()).args(arguments)
    }

    fn deploy(&self, kubeconfig: PathBuf, more: &[&str]) -> Gantry {
        self.gantry(kubeconfig, &["deploy", "-f", "manifests.yaml"]).args(more)
    }

    fn namespace(&self) -> String {
        format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {}}}\n", self.names.namespace)
    }

    fn crd(&self, fields: &str) -> String {
        let group = &self.names.group;
        format!(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: samples.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: samples, singular: sample, kind: Sample, listKind: SampleList}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {{{fields}}}
"
        )
    }

    fn config_map(&self, name: &str, value: &str) -> String {
        let namespace = &self.names.namespace;
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{key: {value}}}\n"
        )
    }

    fn sample(&self) -> String {
        let Isolated { group, namespace } = &self.names;
        format!("apiVersion: {group}/v1\nkind: Sample\nmetadata: {{name: one, namespace: {namespace}}}\nfirst: x\n")
    }

    fn crd_path(&self) -> String {
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.{}", self.names.group)
    }

    fn config_map_path(&self, name: &str) -> String {
        format!("/api/v1/namespaces/{}/configmaps/{name}", self.names.namespace)
    }
}

/// A kubeconfig for a port on which nothing listens.
fn closed_port(folder: &Path) -> PathBuf {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let port = listener.local_addr().expect("its address").port();
    let path = folder.join("closed.kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\nclusters:\n- name: test\n  cluster: {{server: \
         'http://127.0.0.1:{port}'}}\ncontexts:\n- name: test\n  context: {{cluster: test, user: test}}\nusers:\n- name: \
         test\n  user: {{}}\n"
    );
    std::fs::write(&path, text).expect("write a kubeconfig");
    path
}

/// Of each change: the object's kind and name, and its result.
fn results(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let changes = report["changes"].as_array().expect("a list of changes");
    let entry = |change: &Value| {
        let object = &change["object"];
        (format!("{} {}", text(&object["kind"]), text(&object["name"])), text(&change["result"]))
    };
    changes.iter().map(entry).collect()
}

#[test]
fn one_run_brings_a_namespace_a_crd_and_objects_in_them() {
    let bed = Bed::new();
    // In an order in which the server would not take them.
    let objects = [bed.sample(), bed.config_map("a", "x"), bed.crd("first: {type: string}"), bed.namespace()];
    bed.write("manifests.yaml", &objects.join("---\n"));
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    assert_eq!(control_plane().get(&bed.config_map_path("a")).1["data"]["key"], "x");
    let sample = format!("/apis/{}/v1/namespaces/{}/samples/one", bed.names.group, bed.names.namespace);
    assert_eq!(control_plane().get(&sample).1["first"], "x");
}

#[test]
fn a_second_deploy_has_nothing_to_do_and_writes_nothing() {
    let bed = Bed::new();
    let objects = [bed.namespace(), bed.crd("first: {type: string}"), bed.sample(), bed.config_map("a", "x")];
    bed.write("manifests.yaml", &objects.join("---\n"));
    let proxy = Proxy::start(control_plane());
    let first = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    assert_eq!(first.code(0).report()["summary"]["created"], 4, "{first}");
    let before = proxy.writes();
    assert_eq!(before.len(), 4, "{before:?}");
    let second = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    assert_eq!(second.code(0).report()["outcome"], "unchanged", "{second}");
    assert_eq!(proxy.writes(), before);
}

#[test]
fn wrong_check_names_end_a_run_before_it_needs_a_server() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.namespace());
    let closed = closed_port(bed.folder.path());
    let fails = |arguments: &[&str], message: &str| {
        let run = bed.deploy(closed.clone(), arguments).run();
        run.code(2).stderr_contains(message).contains_nowhere("127.0.0.1");
        run
    };
    fails(&["--preflight", "Nothing"], "unknown preflight check \"Nothing\" specified");
    fails(
        &["--preflight", "CRDUpgradeSafety,CRDUpgradeSafety"],
        "duplicate preflight check \"CRDUpgradeSafety\" specified",
    );
    fails(&["--preflight", "CRDUpgradeSafty"], "unknown preflight check \"CRDUpgradeSafty\" specified")
        .stderr_contains("did you mean \"CRDUpgradeSafety\"?");

    let config = |rules: &str| {
        bed.write(
            "c.yaml",
            &format!(
                "apiVersion: gantry.dev/v1alpha1\nkind: Config\npreflightRules:\n- name: CRDUpgradeSafety\n{rules}"
            ),
        );
    };
    config("- name: Nothing\n");
    fails(&["-c", "c.yaml"], "unknown preflight check in configuration: \"Nothing\"");
    config("- name: CRDUpgradeSafety\n");
    fails(&["-c", "c.yaml"], "duplicate preflight check in configuration: \"CRDUpgradeSafety\"");
    config("  config: {mode: eror}\n");
    fails(&["-c", "c.yaml"], "\"eror\" is not one of error, warn");
}

#[test]
fn the_flag_has_the_last_word_over_the_configuration() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.crd("first: {type: string}, second: {type: string}"));
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let config = |enabled: bool| {
        let rule = format!("preflightRules:\n- name: CRDUpgradeSafety\n  enabled: {enabled}\n");
        bed.write("gantry.yaml", &format!("apiVersion: gantry.dev/v1alpha1\nkind: Config\n{rule}"));
    };
    let check = |more: &[&str], code: i32| {
        let gantry = bed.gantry(control_plane().kubeconfig("reader"), &["check", "-f", "manifests.yaml"]).args(more);
        gantry.run().code(code);
    };
    config(true);
    check(&[], 3);
    config(false);
    check(&[], 0);
    check(&["--preflight", "CRDUpgradeSafety"], 3);
}

#[test]
fn a_blocked_deploy_writes_nothing() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.crd("first: {type: string}, second: {type: string}"));
    bed.write("manifests.yaml", &format!("{}---\n{}", bed.namespace(), bed.crd("first: {type: string}")));
    let proxy = Proxy::start(control_plane());
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    assert_eq!(run.code(3).report()["outcome"], "blocked", "{run}");
    assert_eq!(proxy.writes(), []);
}

#[test]
fn the_quickstart_is_blocked() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/quickstart");
    let run = Gantry::new().cwd(&folder).args(["deploy", "-f", "manifests", "--target", "dir:cluster"]).run();
    run.code(3).stdout_contains("NoExistingFieldRemoved").stdout_contains("NoMaximumTightened");
}

#[test]
fn a_kapp_config_among_the_manifests_is_read_and_not_applied() {
    let bed = Bed::new();
    let config = "apiVersion: kapp.k14s.io/v1alpha1\nkind: Config\nrebaseRules: []\npreflightRules:\n- name: \
                  CRDUpgradeSafety\n  enabled: true\n";
    bed.write("manifests.yaml", &format!("{config}---\n{}", bed.namespace()));
    let proxy = Proxy::start(control_plane());
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    run.code(0).stderr_contains("left alone in kapp's Config: rebaseRules");
    let namespace = (format!("Namespace {}", bed.names.namespace), "applied".to_owned());
    assert_eq!(results(&run.report()), [namespace]);
    assert_eq!(proxy.writes().len(), 1, "{:?}", proxy.writes());
}

#[test]
fn a_crd_that_changes_after_the_check_is_not_written() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    bed.deploy(control_plane().kubeconfig("admin"), &[]).run().code(0);
    bed.write("manifests.yaml", &bed.crd("first: {type: string}, second: {type: string}"));
    let proxy = Proxy::start(control_plane());
    let path = bed.crd_path();
    proxy.before(When::new("PATCH", &path).nth(1), move || {
        let label = json!({"metadata": {"labels": {"by": "someone-else"}}});
        assert_eq!(control_plane().patch(&path, &label).0, 200);
    });
    let run = bed.deploy(proxy.kubeconfig("admin"), &[]).run();
    run.code(1).stdout_contains("changed in the target after it was checked; it was not written");
    let live = control_plane().get(&bed.crd_path()).1;
    assert_eq!(live["metadata"]["labels"]["by"], "someone-else");
    let schema = &live["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"], json!({"first": {"type": "string"}}));

    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0);
}

#[test]
fn a_crd_that_turns_up_after_the_check_is_not_written() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.crd("first: {type: string}"));
    let theirs = bed.crd("theirs: {type: string}");
    let proxy = Proxy::start(control_plane());
    proxy.before(When::new("PATCH", &bed.crd_path()).nth(1), move || _ = control_plane().apply_yaml(&theirs));
    // Without force, the field conflict alone would keep it from being written.
    bed.deploy(proxy.kubeconfig("admin"), &["--force-conflicts"]).run().code(1);
    let live = control_plane().get(&bed.crd_path()).1;
    let schema = &live["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"], json!({"theirs": {"type": "string"}}));
}

#[test]
fn a_field_conflict_names_field_manager_and_way_out() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    let path = bed.config_map_path("a");
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "theirs"}});
    assert_eq!(control_plane().server_side_apply(&path, "other-tool", &theirs).0, 201);
    bed.write("manifests.yaml", &bed.config_map("a", "ours"));
    let admin = control_plane().kubeconfig("admin");
    let run = bed.deploy(admin.clone(), &[]).run();
    run.code(1).stdout_contains("other-tool").stdout_contains("data.key").stdout_contains("--force-conflicts");
    assert_eq!(control_plane().get(&path).1["data"]["key"], "theirs");

    bed.deploy(admin, &["--force-conflicts"]).run().code(0);
    assert_eq!(control_plane().get(&path).1["data"]["key"], "ours");
}

#[test]
fn missing_rights_are_named() {
    let bed = Bed::new();
    control_plane().apply_yaml(&bed.namespace());
    bed.write("manifests.yaml", &bed.config_map("a", "x"));
    let cannot_read = bed.deploy(control_plane().kubeconfig("nobody"), &[]).run();
    cannot_read.code(1).stderr_contains("user \"nobody\" may not get configmaps");
    cannot_read.contains_nowhere(control_plane().token("nobody"));

    let cannot_write = bed.deploy(control_plane().kubeconfig("reader"), &[]).run();
    cannot_write.code(1).stdout_contains("user \"reader\" may not patch configmaps");
    cannot_write.contains_nowhere(control_plane().token("reader"));
    bed.gantry(control_plane().kubeconfig("reader"), &["check", "-f", "manifests.yaml"]).run().code(0);
}

#[test]
fn a_server_that_dies_in_mid_deploy_leaves_an_exact_report() {
    let bed = Bed::new();
    let objects = [bed.namespace(), bed.crd("first: {type: string}"), bed.config_map("a", "x"), bed.sample()];
    bed.write("manifests.yaml", &objects.join("---\n"));
    let proxy = Proxy::start(control_plane());
    proxy.refuse_from(When::new("PATCH", &bed.crd_path()));
    let run = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).run();
    let Isolated { group, namespace } = &bed.names;
    let expected = [
        (format!("Namespace {namespace}"), "applied"),
        (format!("CustomResourceDefinition samples.{group}"), "failed"),
        ("ConfigMap a".to_owned(), "notReached"),
        ("Sample one".to_owned(), "notReached"),
    ];
    assert_eq!(results(&run.code(1).report()), expected.map(|(object, result)| (object, result.to_owned())), "{run}");
    assert_eq!(control_plane().get(&format!("/api/v1/namespaces/{namespace}")).0, 200);
    assert_eq!(control_plane().get(&bed.crd_path()).0, 404);

    let again = bed.deploy(control_plane().kubeconfig("admin"), &["-o", "json"]).run();
    let summary = &again.code(0).report()["summary"];
    assert_eq!((&summary["created"], &summary["unchanged"]), (&json!(3), &json!(1)), "{again}");
}

#[test]
fn a_lost_answer_is_not_called_unwritten() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.namespace());
    let proxy = Proxy::start(control_plane());
    proxy.lose_answer(When::new("PATCH", &bed.names.namespace));
    let run = bed.deploy(proxy.kubeconfig("admin"), &[]).run();
    run.code(1).stdout_contains("whether the object was written is not known").contains_nowhere("Nothing was written");
}

#[test]
fn an_interrupt_lets_the_request_under_way_end_and_sends_no_other() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &format!("{}---\n{}", bed.namespace(), bed.config_map("a", "x")));
    let proxy = Proxy::start(control_plane());
    let (reached, is_reached) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    proxy.before(When::new("PATCH", &bed.names.namespace).nth(1), move || {
        reached.send(()).expect("the test waits");
        may_go_on.lock().expect("used once").recv().expect("the test goes on");
    });
    let mut running = bed.deploy(proxy.kubeconfig("admin"), &["-o", "json"]).spawn();
    is_reached.recv().expect("the first write");
    running.interrupt();
    go_on.send(()).expect("the proxy waits");
    let run = running.wait();
    let expected =
        [(format!("Namespace {}", bed.names.namespace), "applied"), ("ConfigMap a".to_owned(), "notReached")];
    assert_eq!(results(&run.code(1).report()), expected.map(|(object, result)| (object, result.to_owned())), "{run}");
    assert_eq!(proxy.writes().len(), 1, "{:?}", proxy.writes());

    bed.deploy(proxy.kubeconfig("admin"), &[]).run().code(0);
    assert_eq!(control_plane().get(&bed.config_map_path("a")).0, 200);
}

#[test]
fn what_keeps_gantry_from_the_server_is_said_in_one_line() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.namespace());
    let admin = control_plane().kubeconfig("admin");
    let fails = |kubeconfig: PathBuf, more: &[&str], message: &str| {
        let run = bed.deploy(kubeconfig, more).run();
        assert!(matches!(run.code, Some(1 | 2)), "{run}");
        run.stderr_contains(message).contains_nowhere("panicked").contains_nowhere(control_plane().token("admin"));
    };
    fails(closed_port(bed.folder.path()), &[], "refuses the connection");
    fails(admin.clone(), &["--context", "tset"], "did you mean \"test\"?");
    fails(bed.folder.path().join("missing"), &[], "missing");
    let wrong =
        std::fs::read_to_string(&admin).expect("a kubeconfig").replace(control_plane().token("admin"), "s3cr3t");
    bed.write("wrong.kubeconfig", &wrong);
    let refused = bed.deploy(bed.folder.path().join("wrong.kubeconfig"), &[]).run();
    refused.code(1).stderr_contains("does not accept the credentials of user \"admin\"").contains_nowhere("s3cr3t");
}

#[test]
fn a_json_file_goes_with_the_human_report() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.namespace());
    let outputs = ["-o", "human", "-o", "json=report.json"];
    let run = bed.deploy(control_plane().kubeconfig("admin"), &outputs).run();
    run.code(0).stdout_contains("Target");
    let file = std::fs::read(bed.folder.path().join("report.json")).expect("the report's file");
    let report: Value = serde_json::from_slice(&file).expect("JSON");
    assert_eq!(report["outcome"], "deployed");
    assert_eq!(report["summary"]["created"], 1);
}
