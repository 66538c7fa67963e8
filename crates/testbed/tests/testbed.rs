//! Tests a real control plane: its users, its client, and its shutdown with the process.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use gantry_testbed::{ControlPlane, eventually, isolated, kubectl, releases, shared};
use serde_json::{Value, json};

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
    let (status, version) = shared().get("/version");
    assert_eq!(status, 200);
    // With KUBEBUILDER_ASSETS, the user chooses the version.
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        assert_eq!(version["gitVersion"], "v1.36.3");
        assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    }
}

#[test]
#[ignore = "builds API servers of several releases"]
fn a_server_of_each_release_is_ready_and_says_which_it_is() {
    let chosen = std::env::var("GANTRY_RELEASES").ok();
    let is_chosen =
        |release: &&str| chosen.as_ref().is_none_or(|chosen| chosen.split(',').any(|name| name == *release));
    for release in releases().into_iter().filter(is_chosen) {
        let version = ControlPlane::start_release(release).get("/version").1;
        assert_eq!(format!("1.{}", version["minor"].as_str().unwrap_or_default()), release, "{version}");
        assert!(version["gitVersion"].as_str().is_some_and(|full| full.starts_with(&format!("v{release}."))));
    }
}

#[test]
fn kubectl_is_built_once_for_all_who_ask_for_it_and_is_of_the_pinned_version() {
    let version = || {
        let output =
            Command::new(kubectl()).args(["version", "--client", "-o", "json"]).output().expect("kubectl starts");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["clientVersion"]["gitVersion"].clone()
    };
    let versions =
        thread::scope(|scope| [0, 1].map(|_| scope.spawn(version)).map(|thread| thread.join().expect("a version")));
    assert_eq!(versions[0], versions[1]);
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        assert_eq!(versions[0], "v1.36.3");
    }
}

#[test]
fn users_have_the_rights_that_their_names_suggest() {
    let cp = shared();
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
    let cp = shared();
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
    let cp = shared();
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
fn a_server_of_the_test_is_reached_as_a_pod_of_a_service() {
    let cluster = ControlPlane::start_with_network();
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    cluster.route("192.0.2.10:8080", listener.local_addr().expect("its address").port());
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let head: Vec<String> = BufReader::new(&stream)
            .lines()
            .map(|line| line.expect("a request"))
            .take_while(|line| !line.is_empty())
            .collect();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\n\"hello\"";
        stream.write_all(answer).expect("a client that reads");
        head[0].clone()
    });
    let meta = |name: &str| json!({"name": name, "namespace": "default"});
    for (name, address) in [("here", "192.0.2.10"), ("nowhere", "192.0.2.11")] {
        let objects = [
            json!({"apiVersion": "v1", "kind": "Service", "metadata": meta(name), "spec": {"ports": [{"port": 80}]}}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta(name),
                "spec": {"containers": [{"name": "c", "image": "i"}]}}),
            json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": meta(name), "subsets": [{
                "addresses": [{"ip": address, "targetRef": {"kind": "Pod", "name": name, "namespace": "default"}}],
                "ports": [{"port": 8080}]}]}),
        ];
        cluster.apply_yaml(&objects.map(|object| object.to_string()).join("\n---\n"));
        let status = json!({"status": {"podIP": address, "podIPs": [{"ip": address}]}});
        assert_eq!(cluster.patch(&format!("/api/v1/namespaces/default/pods/{name}/status"), &status).0, 200);
    }
    let get = |name: &str| cluster.get(&format!("/api/v1/namespaces/default/services/http:{name}:80/proxy/path"));
    assert_eq!(get("here"), (200, json!("hello")));
    assert_eq!(server.join().expect("the server ends"), "GET /path HTTP/1.1");
    assert_eq!(get("nowhere").0, 503);
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

/// The process that the shutdown tests start.
#[test]
#[ignore = "started by other tests"]
fn child_process() {
    let Ok(how) = std::env::var("TESTBED_CHILD") else { return };
    let cp = shared();
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

/// Starts a child and returns when its servers are ready: the child, the servers' folder and their process IDs.
fn start_child(how: &str) -> (std::process::Child, PathBuf, Vec<u32>) {
    let mut child = child(how);
    child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = child.spawn().expect("start the child");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let found = lines.find_map(|line| line.strip_prefix("child ").map(str::to_owned));
    // The child prints more, and would fail if nothing read it.
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
