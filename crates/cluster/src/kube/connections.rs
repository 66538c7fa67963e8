//! The connections to the API server. A server with HTTP/2 gets one connection for all requests: each further one costs
//! two round trips before its first request, and a signature on both sides. Any other server gets one connection for
//! each concurrent request.
//!
//! hyper's pooled client offers only one of the two: without knowing the protocol it opens a connection for each of the
//! first requests. So the protocol is found out here, with the connection that the first request waits for.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connection as _, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use tower::{BoxError, Service, ServiceExt as _};

/// How much a server may send before gantry has read it, for one response and for all. At a round trip of 50 ms a
/// response gets 80 MB/s.
const WINDOW_OF_RESPONSE: u32 = 4 << 20;
const WINDOW: u32 = 16 << 20;
/// The size of the pieces in which a server sends a response. One is in memory before it is passed on.
const MAX_FRAME: u32 = 64 << 10;
/// The maximum size of the headers of a response. A server can send many warnings.
const MAX_HEADERS: u32 = 256 << 10;
/// A connection that is idle for this long while a response is awaited is probed.
const PROBE_AFTER: Duration = Duration::from_secs(20);
/// How often a request is sent if the server closes each connection without having looked at it.
const ATTEMPTS: usize = 3;

type Connector = HttpsConnector<HttpConnector>;
type ServerStream = <Connector as Service<Uri>>::Response;

/// Sends requests to one server.
#[derive(Clone)]
pub struct Connections(Arc<ConnectionState>);

struct ConnectionState {
    /// Offers the server both versions of HTTP.
    connector: Connector,
    /// For HTTP/1.1.
    single: legacy::Client<FirstStream, Body>,
    /// The connection that showed that the server has only HTTP/1.1, for the first request.
    unused: Arc<Mutex<Option<ServerStream>>>,
    /// The last attempt to connect.
    current: Mutex<Option<Connecting>>,
    timeout: Duration,
}

type Connecting = Shared<BoxFuture<'static, Result<Protocol, ConnectionError>>>;

/// How requests are sent.
#[derive(Clone)]
enum Protocol {
    Http1,
    Http2(SendRequest<Body>),
}

impl Connections {
    /// `connector` offers both versions of HTTP, `single` only HTTP/1.1. A connection that does not answer within
    /// `timeout` is given up.
    pub fn new(connector: Connector, single: Connector, timeout: Duration) -> Self {
        let unused = Arc::<Mutex<Option<ServerStream>>>::default();
        let first = FirstStream { unused: Arc::clone(&unused), connector: single };
        let single = legacy::Client::builder(TokioExecutor::new()).build(first);
        Connections(Arc::new(ConnectionState { connector, single, unused, current: Mutex::default(), timeout }))
    }

    async fn send(self, mut request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        // Without TLS there is no negotiation.
        if request.uri().scheme_str() != Some("https") {
            return Ok(self.0.single.request(request).await?);
        }
        for attempt in 1.. {
            let connecting = self.connecting(request.uri());
            let mut sender = match connecting.clone().await? {
                Protocol::Http1 => return Ok(self.0.single.request(request).await?),
                Protocol::Http2(sender) => sender,
            };
            let copy = copy_of(&request);
            let mut error = match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            let unsent = error.take_message();
            if unsent.is_some() || is_closing(error.error()) {
                self.forget(&connecting);
            }
            let is_unprocessed = unsent.is_some() || is_unprocessed(error.error());
            match unsent.or(copy).filter(|_| is_unprocessed && attempt < ATTEMPTS) {
                Some(again) => request = again,
                None => return Err(error.into_error().into()),
            }
        }
        unreachable!("the last attempt returns")
    }

    /// The connection, or the attempt to open it. Requests that need one at the same time wait for the same attempt, and
    /// get its error.
    fn connecting(&self, uri: &Uri) -> Connecting {
        let mut current = lock(&self.0.current);
        let is_usable = |connecting: &Connecting| match connecting.peek() {
            Some(Ok(Protocol::Http2(sender))) => !sender.is_closed(),
            Some(Err(_)) => false,
            Some(Ok(Protocol::Http1)) | None => true,
        };
        if let Some(connecting) = current.as_ref().filter(|connecting| is_usable(connecting)) {
            return connecting.clone();
        }
        let (state, uri) = (Arc::clone(&self.0), uri.clone());
        let connecting = async move {
            // A handshake that never ends must not hold up the requests that come later.
            let connected = tokio::time::timeout(state.timeout, connect(&state, uri)).await;
            let connected = connected.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()));
            connected.map_err(ConnectionError::new)
        };
        let connecting = connecting.boxed().shared();
        // The request that begins it may be dropped while others wait.
        tokio::spawn(connecting.clone());
        *current = Some(connecting.clone());
        connecting
    }

    /// The next request opens another connection.
    fn forget(&self, closing: &Connecting) {
        let mut current = lock(&self.0.current);
        if current.as_ref().is_some_and(|current| current.ptr_eq(closing)) {
            *current = None;
        }
    }
}

async fn connect(state: &ConnectionState, uri: Uri) -> Result<Protocol, BoxError> {
    let stream = state.connector.clone().oneshot(uri).await?;
    if !stream.connected().is_negotiated_h2() {
        *lock(&state.unused) = Some(stream);
        return Ok(Protocol::Http1);
    }
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW_OF_RESPONSE)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(MAX_FRAME)
        .max_header_list_size(MAX_HEADERS)
        .keep_alive_interval(PROBE_AFTER)
        .keep_alive_timeout(state.timeout)
        .handshake(stream)
        .await?;
    // Each request gets the error of its response.
    tokio::spawn(async { connection.await.ok() });
    Ok(Protocol::Http2(sender))
}

/// The same request again. gantry sends no body that is a stream.
fn copy_of(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

fn h2_error(error: &hyper::Error) -> Option<&h2::Error> {
    error.source()?.downcast_ref()
}

/// Whether the server has announced that it closes the connection.
fn is_closing(error: &hyper::Error) -> bool {
    h2_error(error).is_some_and(h2::Error::is_go_away)
}

/// Whether the server says that it has not looked at the request: it came after the last one that the server accepted on
/// this connection, or while it had too many. Then it can be sent again, also if it writes.
/// Source: <https://www.rfc-editor.org/rfc/rfc9113#section-8.7>
fn is_unprocessed(error: &hyper::Error) -> bool {
    h2_error(error).is_some_and(|error| {
        let (reason, is_remote) = (error.reason(), error.is_remote());
        let is_refused = error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM);
        is_remote && (is_refused || error.is_go_away() && reason == Some(h2::Reason::NO_ERROR))
    })
}

impl Service<Request<Body>> for Connections {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Incoming>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.clone().send(request).boxed()
    }
}

/// Returns the connection that exists already, and then opens others.
#[derive(Clone)]
struct FirstStream {
    unused: Arc<Mutex<Option<ServerStream>>>,
    connector: Connector,
}

impl Service<Uri> for FirstStream {
    type Response = ServerStream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<ServerStream, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        match lock(&self.unused).take() {
            Some(stream) => Box::pin(std::future::ready(Ok(stream))),
            None => self.connector.call(uri).boxed(),
        }
    }
}

/// Why there is no connection, for every request that waited for it.
#[derive(Debug, Clone)]
struct ConnectionError(Arc<dyn StdError + Send + Sync>);

impl ConnectionError {
    fn new(error: BoxError) -> Self {
        ConnectionError(Arc::from(error))
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no connection")
    }
}

impl StdError for ConnectionError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&*self.0)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
