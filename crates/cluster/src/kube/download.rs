//! Downloads from a URL in the configuration, with the same client as for an API server but without any credentials.

use std::io;
use std::path::Path;
use std::time::Duration;

use http::header::{ACCEPT, LOCATION, USER_AGENT};
use http::{Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use kube::Config;
use kube::client::Body;
use tokio::sync::mpsc;

use super::errors::{chain, io_words, words};
use super::kubeconfig::ProcessEnvironment;
use super::prepared_client::certificates_of;
use super::{client, proxy};
use gantry_core::bounded;
use gantry_core::problem::Problem;

/// A server that does not accept a connection in this time is considered unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of redirects. `curl -L` follows 50.
const REDIRECTS: usize = 5;

/// A part of the content, or the error that ended it early.
pub type DownloadChunk = io::Result<Vec<u8>>;

/// Downloads a URL and sends the content to a reader, part by part. It ends when the content ends, when the reader is
/// dropped, or when the server sends nothing within `timeout`.
pub async fn download(
    url: &str,
    ca_file: Option<&Path>,
    timeout: Duration,
    to: mpsc::Sender<DownloadChunk>,
) -> Result<(), Problem> {
    let surroundings = ProcessEnvironment::of_process();
    let not_a_url = || Problem::new(format!("{url:?} is not a URL"));
    let mut uri: Uri = url.parse().ok().filter(proxy::is_whole).ok_or_else(not_a_url)?;
    let mut config = Config::new(uri.clone());
    if let Some(path) = ca_file {
        let of_file = || format!("the file {}", words(&path.display().to_string()));
        let pem = bounded::read(path).map_err(|error| {
            Problem::new(format!("{} cannot be read: {}", of_file(), io_words(&error)))
                .help("check caFile of the catalog")
        })?;
        let certificates = certificates_of(&pem).ok_or_else(|| {
            Problem::new(format!("{} contains no PEM certificate", of_file())).help("check caFile of the catalog")
        })?;
        config.root_cert = Some(certificates);
    }
    config.proxy_url = proxy::choose(&uri, None, &surroundings)?;
    config.connect_timeout = Some(CONNECT_TIMEOUT.min(timeout));
    config.write_timeout = Some(timeout);
    config.disable_compression = proxy::is_this_machine(proxy::host_of(&uri));
    config.default_retry = false;
    // The path is part of each request.
    config.cluster_url = origin(&uri).unwrap_or_else(|| uri.clone());
    let server = address(&uri);
    let client = client::build(config, timeout, surroundings.disables_http2())
        .map_err(|_| Problem::new(format!("cannot set up a connection to {server}")))?;
    let limit = || Problem::new(format!("no answer from {server} within {} s", timeout.as_secs_f32())).help(REACHABLE);
    for _ in 0..=REDIRECTS {
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let request = Request::get(&path)
            .header(ACCEPT, "application/jsonl, application/json, application/yaml, */*")
            .header(USER_AGENT, concat!("gantry/", env!("CARGO_PKG_VERSION")))
            .body(Body::empty())
            .map_err(|_| Problem::new(format!("cannot request {url:?}")))?;
        let answer = tokio::time::timeout(timeout, client.send(request)).await.map_err(|_| limit())?;
        let answer = answer.map_err(|error| no_response(&error, &server, ca_file.is_some()))?;
        let status = answer.status();
        if status.is_redirection() {
            let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
            uri = redirect_target(&uri, location).ok_or_else(|| {
                Problem::new(format!("{server} redirects the catalog to another server: {}", words(location)))
                    .help("if you trust that server, use its URL")
            })?;
            continue;
        }
        if status != StatusCode::OK {
            return Err(Problem::new(format!("{server} responded with {status} to {}", words(&path)))
                .help("is the path of the URL right? catalogd has catalogs at /catalogs/NAME/api/v1/all"));
        }
        let mut body = answer.into_body();
        loop {
            let frame = match tokio::time::timeout(timeout, body.frame()).await {
                Err(_) => Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("{server} sent nothing for {} s", timeout.as_secs_f32()),
                )),
                Ok(None) => return Ok(()),
                Ok(Some(Err(error))) => Err(io::Error::other(no_response(&error, &server, false).message)),
                Ok(Some(Ok(frame))) => Ok(frame),
            };
            let part = frame.map(|frame| frame.into_data().map(|data| data.to_vec()).unwrap_or_default());
            let is_over = part.is_err();
            if to.send(part).await.is_err() || is_over {
                return Ok(());
            }
        }
    }
    Err(Problem::new(format!("{server} redirects the catalog more than {REDIRECTS} times")))
}

const REACHABLE: &str = "is the server reachable from here (VPN, firewall, proxy)?";

/// Only the scheme and authority.
fn origin(uri: &Uri) -> Option<Uri> {
    Uri::builder().scheme(uri.scheme()?.clone()).authority(uri.authority()?.clone()).path_and_query("/").build().ok()
}

/// The target of a redirect on the same server. Redirects to another server are not followed, because its content is
/// not what the user asked for.
fn redirect_target(from: &Uri, location: &str) -> Option<Uri> {
    let to: Uri = location.parse().ok()?;
    match to.authority() {
        None if location.starts_with('/') => Uri::builder()
            .scheme(from.scheme()?.clone())
            .authority(from.authority()?.clone())
            .path_and_query(to.path_and_query()?.clone())
            .build()
            .ok(),
        Some(authority) if Some(authority) == from.authority() && to.scheme() == from.scheme() => Some(to),
        _ => None,
    }
}

/// `host:port`, without the other parts of a URL.
fn address(uri: &Uri) -> String {
    let usual = if uri.scheme_str() == Some("http") { 80 } else { 443 };
    words(&format!("{}:{}", uri.host().unwrap_or_default(), uri.port_u16().unwrap_or(usual)))
}

/// The problem if there was no response at all.
fn no_response(error: &kube::Error, server: &str, has_ca_file: bool) -> Problem {
    let chain = chain(error);
    if let Some(error) = chain.iter().find_map(|error| error.downcast_ref::<rustls::Error>()) {
        let help = match has_ca_file {
            true => "is caFile of the catalog the CA that signed the server's certificate?",
            false => "set caFile of the catalog to the CA that signed the server's certificate",
        };
        return Problem::new(format!("the certificate of {server} is not trusted: {}", words(&error.to_string())))
            .help(help);
    }
    if chain.iter().any(|error| error.to_string().starts_with("dns error")) {
        return Problem::new(format!("cannot resolve the host name of {server} (DNS)")).help(REACHABLE);
    }
    match chain.iter().find_map(|error| error.downcast_ref::<io::Error>()).map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => Problem::new(format!("{server} refused the connection")).help(
            "is the server running? For catalogd: kubectl -n olmv1-system port-forward svc/catalogd-service 8443:443",
        ),
        Some(io::ErrorKind::TimedOut) => Problem::new(format!("timed out connecting to {server}")).help(REACHABLE),
        _ => Problem::new(format!("{server} closed the connection before the response was complete"))
            .help("is the scheme of the URL right, http or https?"),
    }
}
