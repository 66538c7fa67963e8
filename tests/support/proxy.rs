//! A proxy on loopback in front of the API server, for behaviour that a test cannot trigger in the server.
//!
//! `gantry` talks plain HTTP to it. It forwards requests over TLS with the caller's own token. A test can read the
//! requests, answer some of them itself, run code right before one is forwarded, or break the connection.

use std::collections::BTreeMap;
use std::error::Error;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use futures::{StreamExt as _, stream};
use http::{HeaderValue, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::{Body, ClientBuilder};
use kube::{Client, Config};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;

use gantry_testbed::{ControlPlane, eventually, kubeconfig};

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub method: String,
    pub path: String,
    /// Without the question mark; empty if there is none.
    pub query: String,
    /// Whether only the metadata of objects is requested.
    pub metadata_only: bool,
}

impl Recorded {
    /// Whether it can change something on the server. Reviews and dry runs change nothing.
    pub fn is_write(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
            && !self.path.ends_with("reviews")
            && !self.query.split('&').any(|pair| pair == "dryRun=All")
    }
}

/// Selects requests: the `nth` request (from 1; without it, all) with a matching method, path and query.
#[derive(Clone)]
pub struct When {
    method: String,
    path_contains: String,
    /// The text is the end of the path.
    ends: bool,
    query_contains: String,
    nth: RangeInclusive<usize>,
}

impl When {
    /// Requests with this method whose path contains this text. An empty text matches every path.
    pub fn new(method: &str, path_contains: &str) -> Self {
        Self {
            method: method.into(),
            path_contains: path_contains.into(),
            ends: false,
            query_contains: String::new(),
            nth: 1..=usize::MAX,
        }
    }

    /// Only requests whose path ends with the text.
    pub fn ending(mut self) -> Self {
        self.ends = true;
        self
    }

    pub fn query(mut self, contains: &str) -> Self {
        self.query_contains = contains.into();
        self
    }

    pub fn nth(mut self, nth: usize) -> Self {
        self.nth = nth..=nth;
        self
    }

    /// The `nth` request and all after it.
    pub fn starting_at_nth(mut self, nth: usize) -> Self {
        self.nth = nth..=usize::MAX;
        self
    }

    fn fits(&self, request: &Recorded) -> bool {
        (self.method.is_empty() || self.method == request.method)
            && request.path.contains(&self.path_contains)
            && (!self.ends || request.path.ends_with(&self.path_contains))
            && request.query.contains(&self.query_contains)
    }
}

/// How to handle a selected request.
#[derive(Clone)]
enum Action {
    Hook(Arc<dyn Fn() + Send + Sync>),
    /// After the server has answered.
    LateHook(Arc<dyn Fn() + Send + Sync>),
    Answer(u16, &'static str, String),
    Header(&'static str, Vec<u8>),
    Cut,
    LoseAnswer,
    HalveAnswer,
    Refuse,
}

type Failure = Box<dyn Error + Send + Sync>;
type Answer = UnsyncBoxBody<Bytes, Failure>;

struct Rule {
    when: When,
    seen: usize,
    action: Action,
}

#[derive(Default)]
struct State {
    rules: Vec<Rule>,
    recorded: Vec<Recorded>,
}

impl State {
    /// Records a request and returns the actions for it, in the order in which the test added them.
    fn note(&mut self, request: Recorded) -> Vec<Action> {
        let mut actions = Vec::new();
        for rule in self.rules.iter_mut().filter(|rule| rule.when.fits(&request)) {
            rule.seen += 1;
            if rule.when.nth.contains(&rule.seen) {
                actions.push(rule.action.clone());
            }
        }
        self.recorded.push(request);
        actions
    }
}

/// A request that waits at the proxy. Dropping this value releases it.
pub struct Held {
    is_reached: mpsc::Receiver<()>,
    _release: mpsc::Sender<()>,
}

impl Held {
    /// The hook waits until the value is dropped.
    fn new() -> (Self, Arc<dyn Fn() + Send + Sync>) {
        let ((reached, is_reached), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
        let (reached, released) = (Mutex::new(reached), Mutex::new(released));
        let hook = move || {
            let _ = lock(&reached).send(());
            // Nothing is ever sent: the channel ends when the other side is dropped.
            let _ = lock(&released).recv();
        };
        (Held { is_reached, _release: release }, Arc::new(hook))
    }

    /// Waits until the request has arrived.
    #[track_caller]
    pub fn reached(&self) {
        let minute = Duration::from_secs(60);
        self.is_reached.recv_timeout(minute).expect("waited a minute in vain for a request to be held back");
    }
}

/// The proxy; it stops when dropped.
pub struct Proxy {
    runtime: Option<Runtime>,
    state: Arc<Mutex<State>>,
    refuse: watch::Sender<bool>,
    url: String,
    tokens: BTreeMap<String, String>,
    kubeconfigs: TempDir,
}

impl Proxy {
    pub fn start(control_plane: &ControlPlane) -> Self {
        let runtime = Runtime::new().expect("a runtime for the proxy");
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).expect("a free port on loopback");
        let url = format!("http://{}", listener.local_addr().expect("the port of a listener"));
        let state = Arc::<Mutex<State>>::default();
        let (refuse, refused) = watch::channel(false);
        let inside = runtime.enter();
        let upstream = client(control_plane);
        let handler = Handler { upstream, state: Arc::clone(&state), refuse: refuse.clone() };
        runtime.spawn(accept(listener, handler, refused));
        drop(inside);
        let tokens = control_plane.users().map(|(user, token)| (user.to_owned(), token.to_owned())).collect();
        let kubeconfigs = TempDir::new().expect("a temporary folder");
        Self { runtime: Some(runtime), state, refuse, url, tokens, kubeconfigs }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Like [`ControlPlane::kubeconfig`], but through the proxy.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        let path = self.kubeconfigs.path().join(format!("{user}.kubeconfig"));
        std::fs::write(&path, kubeconfig(&self.url, None, user, &self.tokens[user])).expect("write a kubeconfig");
        path
    }

    /// Runs `hook` to completion before a matching request is forwarded.
    pub fn before(&self, when: When, hook: impl Fn() + Send + Sync + 'static) {
        self.rule(when, Action::Hook(Arc::new(hook)));
    }

    /// Answers a matching request without forwarding it.
    pub fn answer(&self, when: When, status: u16, body: Value) {
        self.rule(when, Action::Answer(status, "application/json", body.to_string()));
    }

    /// Answers a matching request like something that is not an API server.
    pub fn answer_as(&self, when: When, status: u16, content_type: &'static str, body: &str) {
        self.rule(when, Action::Answer(status, content_type, body.to_owned()));
    }

    /// Adds a header to the answer to a matching request: to the server's, or to that of a later rule.
    pub fn add_header(&self, when: When, name: &'static str, value: &[u8]) {
        self.rule(when, Action::Header(name, value.to_owned()));
    }

    /// Holds a matching request back until [`Held`] is dropped; later requests pass.
    pub fn hold(&self, when: When) -> Held {
        let (held, hook) = Held::new();
        self.rule(when, Action::Hook(hook));
        held
    }

    /// Passes a matching request on, and holds its answer back until [`Held`] is dropped.
    pub fn hold_answer(&self, when: When) -> Held {
        let (held, hook) = Held::new();
        self.rule(when, Action::LateHook(hook));
        held
    }

    /// Closes the connection instead of forwarding a matching request.
    pub fn cut(&self, when: When) {
        self.rule(when, Action::Cut);
    }

    /// Forwards a matching request, lets the server execute it, and closes the connection instead of answering.
    pub fn lose_answer(&self, when: When) {
        self.rule(when, Action::LoseAnswer);
    }

    /// Forwards a matching request, lets the server execute it, and closes the connection after half of the answer's body.
    pub fn halve_answer(&self, when: When) {
        self.rule(when, Action::HalveAnswer);
    }

    /// From a matching request on, including that request, closes all connections and refuses new ones, like a dead
    /// server.
    pub fn refuse_from(&self, when: When) {
        self.rule(when, Action::Refuse);
    }

    /// Closes all connections and refuses new ones.
    pub fn refuse(&self) {
        self.refuse.send_replace(true);
        let address = self.url.trim_start_matches("http://");
        eventually("the proxy refuses connections", || std::net::TcpStream::connect(address).err());
    }

    /// All requests so far, in the order in which they arrived.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.state).recorded.clone()
    }

    /// The requests that can have changed something.
    pub fn writes(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(Recorded::is_write).collect()
    }

    fn rule(&self, when: When, action: Action) {
        lock(&self.state).rules.push(Rule { when, seen: 0, action });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A client that sends each request once, unchanged and without credentials. Must be called inside a runtime.
fn client(control_plane: &ControlPlane) -> Client {
    let mut config = Config::new(control_plane.url().parse().expect("a URL"));
    config.root_cert_file = Some(control_plane.ca_file());
    config.default_retry = false;
    config.disable_compression = true;
    ClientBuilder::try_from(config).expect("a client of the API server").build()
}

async fn accept(listener: TcpListener, handler: Handler, mut refused: watch::Receiver<bool>) {
    // Dropped at the end, which closes the connections.
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = refused.wait_for(|refused| *refused) => return,
        };
        let Ok((stream, _)) = accepted else { continue };
        let handler = handler.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| handler.clone().handle(request));
            // An error means that one side cut the connection.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

#[derive(Clone)]
struct Handler {
    upstream: Client,
    state: Arc<Mutex<State>>,
    refuse: watch::Sender<bool>,
}

impl Handler {
    /// An error makes the connection's server close it without an answer.
    async fn handle(self, request: Request<Incoming>) -> Result<Response<Answer>, Failure> {
        let recorded = Recorded {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().unwrap_or_default().to_owned(),
            metadata_only: request.headers().get("accept").is_some_and(|accept| {
                accept.to_str().is_ok_and(|accept| accept.contains("as=PartialObjectMetadataList"))
            }),
        };
        let actions = lock(&self.state).note(recorded);
        let (mut lose_answer, mut halve_answer) = (false, false);
        let mut late = Vec::new();
        let mut headers = Vec::new();
        for action in actions {
            match action {
                Action::Hook(hook) => tokio::task::spawn_blocking(move || hook()).await?,
                Action::LateHook(hook) => late.push(hook),
                Action::Answer(status, content_type, body) => {
                    let mut response = Response::builder().status(status).header(header::CONTENT_TYPE, content_type);
                    for (name, value) in headers {
                        response = response.header(name, value);
                    }
                    return Ok(response.body(Body::from(body.into_bytes()))?.map(answer));
                }
                Action::Header(name, value) => headers.push((name, HeaderValue::from_bytes(&value)?)),
                Action::Cut => return Err("cut by the test".into()),
                Action::LoseAnswer => lose_answer = true,
                Action::HalveAnswer => halve_answer = true,
                Action::Refuse => {
                    self.refuse.send_replace(true);
                    // The accepting task stops this task with all others.
                    std::future::pending::<()>().await;
                }
            }
        }
        let mut response = self.pass_on(request).await?;
        for hook in late {
            tokio::task::spawn_blocking(move || hook()).await?;
        }
        for (name, value) in headers {
            response.headers_mut().append(name, value);
        }
        match (lose_answer, halve_answer) {
            (true, _) => Err("answer lost by the test".into()),
            (false, true) => half(response).await,
            (false, false) => Ok(response.map(answer)),
        }
    }

    async fn pass_on(&self, request: Request<Incoming>) -> Result<Response<Body>, Failure> {
        let (mut parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        // These headers describe the connection to the proxy, not the request.
        for name in [header::HOST, header::CONNECTION, header::TRANSFER_ENCODING] {
            parts.headers.remove(name);
        }
        let mut response = self.upstream.send(Request::from_parts(parts, Body::from(body.to_vec()))).await?;
        for name in [header::CONNECTION, header::TRANSFER_ENCODING] {
            response.headers_mut().remove(name);
        }
        *response.version_mut() = http::Version::HTTP_11;
        Ok(response)
    }
}

fn answer(body: Body) -> Answer {
    body.map_err(Failure::from).boxed_unsync()
}

/// The same response, whose body ends in its middle.
async fn half(response: Response<Body>) -> Result<Response<Answer>, Failure> {
    let (mut parts, body) = response.into_parts();
    let mut bytes = body.collect().await?.to_bytes();
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    bytes.truncate(bytes.len() / 2);
    // What is written before a body fails is sent only when the body keeps the connection waiting.
    let end = async {
        tokio::task::yield_now().await;
        Err("cut by the test".into())
    };
    let body = stream::iter([Ok(Frame::data(bytes))]).chain(stream::once(end));
    Ok(Response::from_parts(parts, StreamBody::new(body).boxed_unsync()))
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
