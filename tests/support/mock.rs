//! An HTTP server inside the test, for servers that misbehave: for faults, not semantics.
//!
//! By default it answers like a very small API server without validation, so a run reaches each of its requests. A test
//! can replace any answer with a fault.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use gantry_testbed::kubeconfig;

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Without the question mark; empty if there is none.
    pub query: String,
    /// By their names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Request {
    /// Whether the server would store something for this request.
    pub fn is_write(&self) -> bool {
        self.method == "PATCH" && !self.query.contains("dryRun=All")
    }
}

/// How the server handles a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Status code, content type, body.
    Answer(u16, &'static str, String),
    /// Sends these bytes, and then closes the connection.
    Bytes(Vec<u8>),
    /// Sends the first bytes, and then the second ones again and again, with a pause after each time.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Sends nothing, and keeps the connection open.
    Hang,
    /// Sends half an answer, and then resets the connection.
    Reset,
    /// Executes the request, answers, and closes the connection.
    LoseAnswer,
}

impl Reply {
    pub fn json(code: u16, body: Value) -> Self {
        Reply::Answer(code, "application/json", body.to_string())
    }

    /// A `Status` like that of an API server's refusal.
    pub fn refuse(code: u16, reason: &str, message: &str) -> Self {
        Reply::json(
            code,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                "reason": reason, "code": code}),
        )
    }
}

type Plan = dyn Fn(&Request) -> Option<Reply> + Send + Sync;

/// The server; it stops when dropped.
pub struct Mock {
    url: String,
    state: Arc<State>,
}

struct State {
    plan: Box<Plan>,
    received: Mutex<Vec<Request>>,
    /// The stored objects by their paths.
    objects: Mutex<BTreeMap<String, Value>>,
    is_over: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mock {
    /// A server that follows `plan`, and behaves normally if that returns `None`.
    pub fn start(plan: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
        let url = format!("http://{}", listener.local_addr().expect("the port of a listener"));
        let state = Arc::new(State {
            plan: Box::new(plan),
            received: Mutex::default(),
            objects: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(stream), state) = (stream, Arc::clone(&accepting)) else { continue };
                // An error means that the other side closed the connection.
                thread::spawn(move || state.serve(&stream));
            }
        });
        Mock { url, state }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// For example `127.0.0.1:4711`.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// A kubeconfig for this server, with this token.
    pub fn kubeconfig(&self, folder: &Path, token: &str) -> PathBuf {
        let path = folder.join("mock.kubeconfig");
        std::fs::write(&path, kubeconfig(&self.url, None, "admin", token)).expect("write a kubeconfig");
        path
    }

    pub fn requests(&self) -> Vec<Request> {
        lock(&self.state.received).clone()
    }

    /// The object that is stored at a path.
    pub fn object(&self, path: &str) -> Option<Value> {
        lock(&self.state.objects).get(path).cloned()
    }

    /// Stores an object.
    pub fn put(&self, path: &str, object: Value) {
        lock(&self.state.objects).insert(path.to_owned(), object);
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::Relaxed);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address());
    }
}

impl State {
    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let (mut reader, mut writer) = (BufReader::new(stream), stream);
        loop {
            let request = read(&mut reader)?;
            lock(&self.received).push(request.clone());
            match (self.plan)(&request).unwrap_or_else(|| self.answer(&request)) {
                Reply::Answer(code, kind, body) => {
                    let head =
                        format!("HTTP/1.1 {code} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
                    writer.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
                }
                Reply::Bytes(bytes) => {
                    writer.write_all(&bytes).ok()?;
                    return stream.shutdown(Shutdown::Both).ok();
                }
                Reply::Endless(first, again, pause) => {
                    writer.write_all(&first).ok()?;
                    while !self.is_over.load(Ordering::Relaxed) {
                        writer.write_all(&again).ok()?;
                        thread::sleep(pause);
                    }
                    return None;
                }
                Reply::Hang => {
                    // Waits until the other side closes the connection.
                    let _ = reader.read(&mut [0]);
                    return None;
                }
                Reply::Reset => {
                    writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n").ok()?;
                    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).ok()?;
                    return None;
                }
                Reply::LoseAnswer => {
                    self.answer(&request);
                    return stream.shutdown(Shutdown::Both).ok();
                }
            }
        }
    }

    fn answer(&self, request: &Request) -> Reply {
        let path = request.path.as_str();
        let resources = |names: &[(&str, &str, bool)]| {
            let resource = |(name, kind, namespaced): &(&str, &str, bool)| {
                json!({"name": name, "kind": kind, "namespaced": namespaced,
                    "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"]})
            };
            let resources: Vec<Value> = names.iter().map(resource).collect();
            Reply::json(200, json!({"kind": "APIResourceList", "apiVersion": "v1", "resources": resources}))
        };
        match (request.method.as_str(), path) {
            ("GET", "/version") => Reply::json(200, json!({"major": "1", "minor": "36", "gitVersion": "v1.36.3"})),
            ("GET", "/api") => Reply::json(200, json!({"kind": "APIVersions", "versions": ["v1"]})),
            ("GET", "/apis") => {
                let group = |name: &str| json!({"name": name, "versions": [{"groupVersion": format!("{name}/v1"), "version": "v1"}]});
                Reply::json(
                    200,
                    json!({"kind": "APIGroupList", "groups": [group("apiextensions.k8s.io"), group("example.com")]}),
                )
            }
            ("GET", "/api/v1") => resources(&[
                ("namespaces", "Namespace", false),
                ("configmaps", "ConfigMap", true),
                ("secrets", "Secret", true),
            ]),
            ("GET", "/apis/apiextensions.k8s.io/v1") => {
                resources(&[("customresourcedefinitions", "CustomResourceDefinition", false)])
            }
            ("GET", "/apis/example.com/v1") => resources(&[("samples", "Sample", true)]),
            ("POST", _) if path.ends_with("selfsubjectrulesreviews") => {
                let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
                Reply::json(
                    201,
                    json!({"kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
                    "status": {"resourceRules": [all], "nonResourceRules": [], "incomplete": false}}),
                )
            }
            ("POST", _) if path.ends_with("selfsubjectaccessreviews") => Reply::json(
                201,
                json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": true}}),
            ),
            ("GET", _) if request.query.contains("limit=") => {
                let objects = lock(&self.objects);
                let last = path.rsplit('/').next().unwrap_or_default();
                let is_in = |other: &&String| {
                    other.starts_with(path) || (other.contains(&format!("/{last}/")) && !path.contains("/namespaces/"))
                };
                let items: Vec<&Value> =
                    objects.iter().filter(|(path, _)| is_in(path)).map(|(_, object)| object).collect();
                Reply::json(200, json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
            }
            ("GET", _) => match lock(&self.objects).get(path) {
                Some(object) => Reply::json(200, object.clone()),
                None => Reply::refuse(404, "NotFound", &format!("{path} not found")),
            },
            ("PATCH", _) => self.apply(request),
            _ => Reply::refuse(405, "MethodNotAllowed", "the server does not allow this method"),
        }
    }

    fn apply(&self, request: &Request) -> Reply {
        let Ok(mut object) = serde_yaml::from_str::<Value>(&request.body) else {
            return Reply::refuse(400, "BadRequest", "no YAML");
        };
        let mut objects = lock(&self.objects);
        let is_new = !objects.contains_key(&request.path);
        let version = request.body.len() + objects.len();
        object["metadata"]["uid"] = json!(format!("uid-{}", request.path));
        object["metadata"]["resourceVersion"] = json!(format!("{version}"));
        if object["kind"] == "CustomResourceDefinition" {
            let condition = |name: &str| json!({"type": name, "status": "True", "reason": "X", "message": "x"});
            object["status"] =
                json!({"storedVersions": ["v1"], "conditions": [condition("NamesAccepted"), condition("Established")]});
        }
        if !request.query.contains("dryRun=All") {
            objects.insert(request.path.clone(), object.clone());
        }
        Reply::json(if is_new { 201 } else { 200 }, object)
    }
}

fn read(reader: &mut impl BufRead) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.trim().to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let body = String::from_utf8_lossy(&body).into_owned();
    Some(Request { method, path: path.to_owned(), query: query.to_owned(), headers, body })
}
