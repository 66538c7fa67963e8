//! Downloads content from a Service of the cluster through the API server's service proxy: with the target's
//! credentials, and from anywhere that can reach the API server.

use std::io;

use http::StatusCode;
use kube::core::Status;
use tokio::sync::mpsc;

use super::download::DownloadChunk;
use super::errors::words;
use super::request::{ApiRequest, RequestError};
use super::transport::Transport;
use crate::service::ServiceUrl;
use gantry_core::problem::Problem;

/// Downloads a URL and sends the content to a reader, part by part. It ends when the content ends, when the reader is
/// dropped, or when nothing is received within the request timeout.
pub async fn download(transport: &Transport, url: &ServiceUrl, to: mpsc::Sender<DownloadChunk>) -> Result<(), Problem> {
    let (resource, name) = (ServiceUrl::resource(), url.resource_name());
    let call = ApiRequest {
        verb: "get",
        resource: Some(&resource),
        namespace: Some(&url.namespace),
        name: Some(&name),
        uri: url.proxy_path(),
        ..ApiRequest::default()
    };
    let mut content = match transport.content(&call).await {
        Ok(Ok(content)) => content,
        Ok(Err(code)) => return Err(refused_by_service(code, url)),
        Err(RequestError::Refused(status)) => {
            let known = refused_by_proxy(&status, url);
            return Err(known.unwrap_or_else(|| RequestError::Refused(status).into_problem(&call, transport.peer())));
        }
        Err(failure) => return Err(failure.into_problem(&call, transport.peer())),
    };
    loop {
        let part = match transport.next_part(&mut content).await {
            Ok(Some(part)) => Ok(part),
            Ok(None) => return Ok(()),
            Err(failure) => Err(io::Error::other(failure.into_problem(&call, transport.peer()).message)),
        };
        let is_over = part.is_err();
        if to.send(part).await.is_err() || is_over {
            return Ok(());
        }
    }
}

/// The response of the Service itself, not of the API server.
fn refused_by_service(code: StatusCode, url: &ServiceUrl) -> Problem {
    let ServiceUrl { name, namespace, .. } = url;
    if code.is_redirection() {
        return Problem::new(format!("the Service {name} in namespace {namespace} responded with a redirect ({code})"))
            .help("gantry does not follow this redirect; name the content of the catalog: --catalog NAME=PATH|URL");
    }
    let problem = Problem::new(format!("the Service {name} in namespace {namespace} responded with {code}"));
    match code {
        StatusCode::NOT_FOUND => problem.help("does it serve this catalog yet? Run again"),
        _ => problem.help(format!("see the log of its Pods, in namespace {namespace}")),
    }
}

/// Explains the API server's own responses about the Service.
fn refused_by_proxy(status: &Status, url: &ServiceUrl) -> Option<Problem> {
    let ServiceUrl { name, namespace, port, .. } = url;
    let says = |words: &str| status.message.starts_with(words);
    let pods = format!("do its Pods run? kubectl get endpointslices,pods -n {namespace}");
    let ports = format!("does it have that port? kubectl describe service {name} -n {namespace}");
    match status.code {
        // The server sends the same message if there is no Endpoints object.
        404 if says("services ") => Some(
            Problem::new(format!("there is no Service {name} in namespace {namespace}, or none with endpoints"))
                .help("is catalogd installed, and does this Service still serve its catalogs?"),
        ),
        503 if says("no endpoints available for service ") => Some(
            Problem::new(format!("the Service {name} in namespace {namespace} has no endpoints for port {port}"))
                .help(pods),
        ),
        503 if says("error trying to reach service") => {
            let said = words(&status.message);
            let said = said.strip_prefix("error trying to reach service: ").unwrap_or(&said);
            Some(
                Problem::new(format!(
                    "the API server cannot reach the Service {name} in namespace {namespace}: {said}"
                ))
                .help(pods),
            )
        }
        503 => Some(
            Problem::new(format!(
                "the Service {name} in namespace {namespace} is not available: {}",
                words(&status.message)
            ))
            .help(ports),
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake_server::{self, Reply, status, text_reply};
    use super::*;

    /// The outcome of a request that gets this response: the content, or why there is none.
    async fn asked(answer: impl Fn() -> Reply + Send + Sync + 'static) -> Result<Vec<u8>, String> {
        let (target, seen) = fake_server::target(move |_| answer());
        let url = ServiceUrl::parse("https://catalogd-service.olmv1-system.svc/catalogs/a/api/v1/all").unwrap();
        let (send, mut receive) = mpsc::channel(16);
        let downloaded = target.download(&url, send).await;
        let uri = "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs/a/api/v1/all";
        assert_eq!(seen.lock().unwrap()[0].uri, uri);
        let mut content = Vec::new();
        while let Some(part) = receive.recv().await {
            content.extend(part.map_err(|error| error.to_string())?);
        }
        downloaded.map(|()| content).map_err(|problem| problem.message)
    }

    #[tokio::test]
    async fn content_of_a_service_is_returned_as_it_is() {
        for (kind, content) in [("application/jsonl", "{}\n{}\n"), ("text/plain; charset=utf-8", "a: b")] {
            assert_eq!(asked(move || text_reply(200, kind, content)).await, Ok(content.as_bytes().to_vec()));
        }
    }

    #[tokio::test]
    async fn errors_of_the_api_server_are_distinguished_from_those_of_a_service_behind_it() {
        let service = "the Service catalogd-service in namespace olmv1-system responded with";
        for (code, kind, body, expected) in [
            (404, "text/plain", "404 page not found", format!("{service} 404 Not Found")),
            (500, "application/json", "{\"error\": \"x\"}", format!("{service} 500 Internal Server Error")),
            (204, "text/plain", "", format!("{service} 204 No Content")),
            (
                429,
                "text/plain",
                "Too many requests, please try again later.",
                "the API server https://10.0.0.1:6443 is overloaded (429); gave up after several attempts: \
                 Too many requests, please try again later."
                    .to_owned(),
            ),
        ] {
            assert_eq!(asked(move || text_reply(code, kind, body)).await, Err(expected));
        }
        let expired = "https://10.0.0.1:6443 does not accept the credentials of user \"dev\" (context \"staging\"): \
            expired or invalid";
        let unauthorized = || status(401, "Unauthorized", "Unauthorized", json!({}));
        assert_eq!(asked(unauthorized).await, Err(expired.to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn no_answer_within_the_limit_is_a_problem() {
        assert_eq!(asked(fake_server::no_reply).await, Err("no answer from 10.0.0.1:6443 within 60 s".to_owned()));
    }
}
