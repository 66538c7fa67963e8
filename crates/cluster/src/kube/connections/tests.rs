//! Against servers that do what an API server does rarely: they have no HTTP/2, close a connection with requests under
//! way, or break off.

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::BodyExt as _;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Config;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::*;
use crate::kube::client;
use crate::kube::errors::chain;

const TIMEOUT: Duration = Duration::from_secs(60);

/// A server on loopback, and a client of it.
struct Server {
    client: kube::Client,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Offers these protocols. `serve` gets each connection and its number, from 0.
    async fn start<F>(protocols: &[&str], serve: impl Fn(usize, TlsStream<TcpStream>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut tls = tls.with_no_client_auth().with_single_cert(vec![cert.der().clone()], key).unwrap();
        tls.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let mut config = Config::new(format!("https://{}", listener.local_addr().unwrap()).parse().unwrap());
        config.root_cert = Some(vec![cert.der().to_vec()]);
        let connections = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let stream = acceptor.accept(stream).await.unwrap();
                tokio::spawn(serve(counted.fetch_add(1, Ordering::SeqCst), stream));
            }
        });
        Server { client: client::build(config, TIMEOUT, false).unwrap(), connections }
    }

    async fn send(&self, method: &str) -> Result<Response<Body>, kube::Error> {
        let request = Request::builder().method(method).uri("/path").body(Body::from(b"{}".to_vec())).unwrap();
        self.client.send(request).await
    }

    /// The number of connections so far.
    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Answers each request with its body.
async fn echo(stream: TlsStream<TcpStream>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        tokio::spawn(async move {
            let body = read(request.into_body()).await;
            let mut send = respond.send_response(Response::new(()), false).unwrap();
            send.send_data(body.into(), true).unwrap();
        });
    }
}

async fn read(mut body: h2::RecvStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(Ok(part)) = body.data().await {
        bytes.extend_from_slice(&part);
    }
    bytes
}

async fn text(response: Response<Body>) -> String {
    String::from_utf8(response.into_body().collect_bytes().await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn concurrent_requests_share_one_connection() {
    let server = Server::start(&["h2", "http/1.1"], |_, stream| echo(stream)).await;
    let answers = futures::future::join_all((0..150).map(|_| server.send("PATCH"))).await;
    for answer in answers {
        assert_eq!(text(answer.unwrap()).await, "{}");
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_server_without_http2_is_asked_over_the_connection_that_showed_it() {
    for protocols in [&["http/1.1"][..], &[]] {
        let server = Server::start(protocols, |_, stream| async {
            let service = service_fn(|request: Request<Incoming>| async {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                Ok::<_, std::convert::Infallible>(Response::new(Body::from(body.to_vec())))
            });
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
        let server = server.await;
        for _ in 0..3 {
            assert_eq!(text(server.send("PATCH").await.unwrap()).await, "{}");
        }
        assert_eq!(server.connections(), 1, "{protocols:?}");
    }
}

/// Reads frames until one with headers, a request, has arrived.
async fn read_until_request(stream: &mut TlsStream<TcpStream>) {
    const HEADERS: u8 = 1;
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        if head[3] == HEADERS {
            return;
        }
    }
}

const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// `GOAWAY`: the last accepted request is this one, and the reason has this code.
fn go_away(last: u8, code: u8) -> Vec<u8> {
    [&SETTINGS[..], &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last, 0, 0, 0, code]].concat()
}

/// The first connection gets these bytes in place of an answer and stays open; all others answer.
async fn first_answered_with(bytes: Vec<u8>) -> Server {
    Server::start(&["h2"], move |number, mut stream| {
        let bytes = bytes.clone();
        async move {
            if number > 0 {
                return echo(stream).await;
            }
            read_until_request(&mut stream).await;
            stream.write_all(&bytes).await.unwrap();
            // Until the client closes it.
            while stream.read(&mut [0; 1024]).await.is_ok_and(|length| length > 0) {}
        }
    })
    .await
}

#[tokio::test]
async fn a_request_after_the_last_one_that_a_closing_server_accepts_is_sent_again() {
    let server = first_answered_with(go_away(0, 0)).await;
    assert_eq!(text(server.send("PATCH").await.unwrap()).await, "{}");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_request_that_the_server_may_have_seen_is_not_sent_again() {
    const INTERNAL_ERROR: u8 = 2;
    let server = first_answered_with(go_away(0, INTERNAL_ERROR)).await;
    assert!(server.send("PATCH").await.is_err());
    assert_eq!(server.connections(), 1);

    let server = Server::start(&["h2"], |number, mut stream| async move {
        match number {
            0 => read_until_request(&mut stream).await,
            _ => echo(stream).await,
        }
    });
    let server = server.await;
    assert!(server.send("PATCH").await.is_err());
    assert_eq!(server.connections(), 1);
    // The next request gets another connection.
    assert_eq!(text(server.send("PATCH").await.unwrap()).await, "{}");
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_request_that_is_one_too_many_is_sent_again() {
    let refused = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&refused);
    let server = Server::start(&["h2"], move |_, stream| {
        let refused = Arc::clone(&count);
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                match refused.fetch_add(1, Ordering::SeqCst) {
                    0 => respond.send_reset(h2::Reason::REFUSED_STREAM),
                    _ => drop(respond.send_response(Response::new(()), true)),
                }
            }
        }
    });
    let server = server.await;
    assert!(server.send("PATCH").await.is_ok());
    assert_eq!((server.connections(), refused.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn a_server_that_always_closes_ends_in_an_error() {
    let server = Server::start(&["h2"], |_, mut stream| async move {
        read_until_request(&mut stream).await;
        stream.write_all(&go_away(0, 0)).await.unwrap();
        while stream.read(&mut [0; 1024]).await.is_ok_and(|length| length > 0) {}
    });
    let server = server.await;
    assert!(server.send("PATCH").await.is_err());
    assert_eq!(server.connections(), ATTEMPTS);
}

#[tokio::test]
async fn half_an_answer_is_an_error() {
    const HEADERS_200: [u8; 10] = [0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
    const DATA: [u8; 9] = [0, 0, 4, 0, 0, 0, 0, 0, 1];
    let server = Server::start(&["h2"], |_, mut stream| async move {
        read_until_request(&mut stream).await;
        stream.write_all(&[&SETTINGS[..], &HEADERS_200, &DATA, b"half"].concat()).await.unwrap();
    });
    let server = server.await;
    let response = server.send("GET").await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect_bytes().await.is_err());
}

#[tokio::test]
async fn all_requests_that_wait_for_a_connection_get_its_error() {
    let address = TcpListener::bind(("127.0.0.1", 0)).await.unwrap().local_addr().unwrap();
    let client = client::build(Config::new(format!("https://{address}").parse().unwrap()), TIMEOUT, false).unwrap();
    let send = || client.send(Request::builder().uri("/path").body(Body::empty()).unwrap());
    for answer in futures::future::join_all([send(), send(), send()]).await {
        let error = answer.expect_err("an error");
        let found = chain(&error).into_iter().find_map(|error| error.downcast_ref::<std::io::Error>());
        assert_eq!(found.map(std::io::Error::kind), Some(std::io::ErrorKind::ConnectionRefused), "{error:?}");
    }
}
