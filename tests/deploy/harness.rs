//! Tests of the harness itself: the proxy, and the binary's environment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Api, Gantry, Proxy, When, control_plane, eventually, isolated};
use serde_json::{Value, json};

const NAMESPACES: &str = "/api/v1/namespaces";

fn namespace(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[test]
fn the_proxy_forwards_and_records_requests_and_runs_hooks() {
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
fn the_proxy_answers_requests_itself_and_breaks_connections() {
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
fn gantry_runs_with_an_empty_environment() {
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
