//! The test bed, tested: what every end-to-end test relies on.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use support::{Api, ControlPlane, Gantry, Proxy, When, control_plane, eventually, isolated};

const NAMESPACES: &str = "/api/v1/namespaces";

fn namespace(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn crd(group: &str, field: &str) -> String {
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
        properties: {{{field}: {{type: string}}}}
"
    )
}

#[test]
fn the_server_is_ready_and_of_the_pinned_version() {
    let (status, version) = control_plane().get("/version");
    assert_eq!(status, 200);
    // With KUBEBUILDER_ASSETS, the version is the choice of whoever set it.
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        assert_eq!(version["gitVersion"], "v1.36.3");
        assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    }
}

#[test]
fn users_have_the_rights_that_their_names_say() {
    let cp = control_plane();
    let new = namespace(&isolated().namespace);
    let create_as = |user: &str| cp.api_as(user).post(NAMESPACES, &new).0;
    let list_as = |user: &str| cp.api_as(user).get(NAMESPACES).0;
    assert_eq!((list_as("nobody"), create_as("nobody")), (403, 403));
    assert_eq!((list_as("reader"), create_as("reader")), (200, 403));
    let creator = cp.user(&json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]}]));
    assert_eq!((list_as(&creator), create_as(&creator)), (403, 201));
    assert_eq!((list_as("admin"), create_as("admin")), (200, 409));
}

#[test]
fn yaml_is_applied_and_a_crd_can_be_used_at_once() {
    let cp = control_plane();
    let names = isolated();
    let group = &names.group;
    let object = format!("apiVersion: {group}/v1\nkind: Sample\nmetadata: {{name: one}}\n");
    let applied = cp.apply_yaml(&format!("{}---\n{object}first: x\n", crd(group, "first")));
    assert_eq!(applied[0]["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(applied[1]["first"], "x");

    let replaced = cp.apply_yaml(&format!("{object}first: y\n"));
    let (_, live) = cp.get(&cp.path_of(&applied[1]));
    assert_eq!((&live, &live["first"]), (&replaced[0], &json!("y")));
    assert_eq!(live["metadata"]["uid"], applied[1]["metadata"]["uid"]);
}

#[test]
fn metrics_count_the_requests_of_one_group() {
    let cp = control_plane();
    let names = isolated();
    let requests = |verb| cp.metrics("apiserver_request_total", &[("group", &names.group), ("verb", verb)]);
    let applied = cp.apply_yaml(&crd(&names.group, "field"));
    let object = json!({"apiVersion": format!("{}/v1", names.group), "kind": "Sample", "metadata": {"name": "one"}});
    let path = cp.path_of(&object);
    assert_eq!((applied.len(), requests("POST")), (1, 0.0));
    cp.post(path.trim_end_matches("/one"), &object);
    eventually("the request is counted", || (requests("POST") == 1.0).then_some(()));
}

#[test]
fn the_proxy_passes_on_records_and_runs_hooks() {
    let cp = control_plane();
    let proxy = Proxy::start(cp);
    let name = isolated().namespace;
    let hooked = Arc::new(AtomicU32::new(0));
    let (count, path) = (Arc::clone(&hooked), format!("{NAMESPACES}/{name}"));
    proxy.before(When::new("PATCH", &name).nth(2), move || {
        // The admin's own connection to the server does not go through the proxy.
        assert_eq!(control_plane().patch(&path, &json!({"metadata": {"labels": {"by": "the-hook"}}})).0, 200);
        count.fetch_add(1, Ordering::Relaxed);
    });
    let api = Api::new(proxy.url(), None, Some(cp.token("admin")));
    assert_eq!(api.post(NAMESPACES, &namespace(&name)).0, 201);
    let patched: Vec<Value> = (0..3)
        .map(|n| {
            api.patch(&format!("{NAMESPACES}/{name}?n={n}"), &json!({"metadata": {"labels": {"n": n.to_string()}}})).1
        })
        .collect();
    let by = |n: usize| patched[n]["metadata"]["labels"]["by"].clone();
    assert_eq!((by(0), by(1), by(2)), (Value::Null, json!("the-hook"), json!("the-hook")));
    assert_eq!(hooked.load(Ordering::Relaxed), 1);

    assert_eq!(api.get(NAMESPACES).0, 200);
    let recorded: Vec<String> =
        proxy.requests().iter().map(|r| format!("{} {}?{}", r.method, r.path, r.query)).collect();
    let patch = |n| format!("PATCH {NAMESPACES}/{name}?n={n}");
    let post = format!("POST {NAMESPACES}?");
    assert_eq!(recorded, [post, patch(0), patch(1), patch(2), format!("GET {NAMESPACES}?")]);
    assert_eq!(proxy.writes().len(), 4);
}

#[test]
fn the_proxy_keeps_the_callers_identity() {
    let proxy = Proxy::start(control_plane());
    let api = Api::new(proxy.url(), None, Some(control_plane().token("nobody")));
    assert_eq!(api.get(NAMESPACES).0, 403);
}

#[test]
fn the_proxy_answers_cuts_loses_and_refuses() {
    let cp = control_plane();
    let proxy = Proxy::start(cp);
    let api = Api::new(proxy.url(), None, Some(cp.token("admin")));
    proxy.answer(When::new("GET", "/api/v1/pods").query("continue="), 410, json!({"reason": "Expired"}));
    assert_eq!(api.get("/api/v1/pods").0, 200);
    assert_eq!(api.get("/api/v1/pods?continue=x"), (410, json!({"reason": "Expired"})));

    proxy.cut(When::new("GET", "/api/v1/secrets"));
    assert!(api.try_get("/api/v1/secrets").is_err());
    assert_eq!(api.get("/api/v1/pods").0, 200);

    let name = isolated().namespace;
    assert_eq!(cp.post(NAMESPACES, &namespace(&name)).0, 201);
    proxy.lose_answer(When::new("GET", &name).nth(1));
    assert!(api.try_get(&format!("{NAMESPACES}/{name}")).is_err());
    assert_eq!(api.get(&format!("{NAMESPACES}/{name}")).0, 200);

    proxy.refuse_from(When::new("GET", "/version"));
    assert!(api.try_get("/version").is_err());
    let address = proxy.url().trim_start_matches("http://");
    eventually("new connections are refused", || std::net::TcpStream::connect(address).err());
}

#[test]
fn gantry_runs_in_clean_surroundings() {
    let version = Gantry::new().args(["--version"]).run();
    version.code(0).stdout_contains(env!("CARGO_PKG_VERSION")).contains_nowhere("error");
    let missing = Gantry::new().args(["check", "-f", "-", "--target", "dir:nowhere"]).stdin("").run();
    assert_ne!(missing.code, Some(0), "{missing}");
}

#[test]
fn gantry_reaches_the_server_through_the_proxy() {
    let proxy = Proxy::start(control_plane());
    let name = isolated().namespace;
    let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}).to_string();
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("namespace.json"), manifest).expect("write the manifest");
    let gantry = Gantry::new().kubeconfig(proxy.kubeconfig("admin")).cwd(folder.path());
    let deploy = gantry.args(["deploy", "-f", "namespace.json"]).run();
    deploy.code(0).contains_nowhere(control_plane().token("admin"));
    assert_eq!(control_plane().get(&format!("{NAMESPACES}/{name}")).0, 200);
    assert!(proxy.writes().iter().any(|write| write.path == format!("{NAMESPACES}/{name}")), "{:?}", proxy.requests());
}

#[test]
fn an_api_server_can_be_killed_and_restarted_with_its_data() {
    let cp = ControlPlane::start();
    let (folder, pids) = (cp.folder().to_owned(), cp.pids());
    let name = isolated().namespace;
    assert_eq!(cp.post(NAMESPACES, &namespace(&name)).0, 201);
    cp.kill_api_server();
    assert!(cp.try_get(NAMESPACES).is_err());
    cp.restart_api_server();
    assert_eq!(cp.get(&format!("{NAMESPACES}/{name}")).0, 200);
    drop(cp);
    assert_gone(&folder, &pids);
}

#[test]
fn the_servers_end_when_the_test_process_is_killed() {
    let (mut child, folder, pids) = start_child("wait");
    child.kill().expect("kill the child");
    child.wait().expect("wait for the child");
    assert_gone(&folder, &pids);
}

#[test]
fn the_servers_end_when_a_test_panics() {
    let (mut child, folder, pids) = start_child("panic");
    assert!(!child.wait().expect("wait for the child").success());
    assert_gone(&folder, &pids);
}

#[test]
fn the_servers_end_with_the_last_test() {
    let (mut child, folder, pids) = start_child("end");
    assert!(child.wait().expect("wait for the child").success());
    assert_gone(&folder, &pids);
}

#[test]
fn missing_binaries_are_a_failure_that_says_what_to_do() {
    let output = child("end").env("KUBEBUILDER_ASSETS", "/nonexistent").output().expect("run the child");
    let stdout = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{stdout}");
    assert!(
        stdout.contains("/nonexistent/etcd does not exist") || stdout.contains("/nonexistent/kube-apiserver"),
        "{stdout}"
    );
    assert!(stdout.contains("unset it to have both built"), "{stdout}");
}

/// What the tests of the teardown run in a process of its own.
#[test]
#[ignore = "started by other tests"]
fn child_process() {
    let Ok(how) = std::env::var("TESTBED_CHILD") else { return };
    let cp = control_plane();
    let line = json!({"folder": cp.folder(), "pids": cp.pids()});
    println!("\nchild {line}");
    match how.as_str() {
        "wait" => _ = std::io::stdin().read(&mut [0]),
        "panic" => panic!("as asked"),
        _ => {}
    }
}

fn child(how: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test binary"));
    command.args(["--ignored", "--exact", "child_process", "--nocapture"]).env("TESTBED_CHILD", how);
    command
}

/// Returns once the child's servers are up: the child, the servers' folder and their process ids.
fn start_child(how: &str) -> (std::process::Child, PathBuf, Vec<u32>) {
    let mut child = child(how);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().expect("start the child");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let found = lines.find_map(|line| line.strip_prefix("child ").map(str::to_owned));
    // The child prints more, and would fail with nobody to read it.
    std::thread::spawn(move || lines.count());
    let found: Value = serde_json::from_str(&found.expect("the child's line")).expect("JSON");
    let folder = PathBuf::from(found["folder"].as_str().expect("a folder"));
    let pids: Vec<u32> = serde_json::from_value(found["pids"].clone()).expect("process ids");
    assert_eq!(pids.len(), 2);
    (child, folder, pids)
}

fn assert_gone(folder: &std::path::Path, pids: &[u32]) {
    let runs = |pid: &u32| {
        let kill = Command::new("kill").args(["-0", &pid.to_string()]).stderr(Stdio::null()).status();
        kill.expect("run `kill`").success()
    };
    eventually("the servers and their folder are gone", || (!folder.exists() && !pids.iter().any(runs)).then_some(()));
}
