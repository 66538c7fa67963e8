//! What a Service of the cluster serves, through the API server's service proxy: with the credentials of this target, and
//! from wherever the API server can be reached.

use std::io;

use http::StatusCode;
use kube::core::Status;
use tokio::sync::mpsc;

use super::download::Part;
use super::errors::words;
use super::request::{Call, Failure};
use super::transport::Transport;
use crate::cluster::service::ServiceUrl;
use crate::problem::Problem;

/// Sends the content behind a URL to a reader, part by part. It ends with the content, with the reader, or where nothing
/// comes for so long as a request may take.
pub async fn download(transport: &Transport, url: &ServiceUrl, to: mpsc::Sender<Part>) -> Result<(), Problem> {
    let (resource, name) = (ServiceUrl::resource(), url.resource_name());
    let call = Call {
        verb: "get",
        resource: Some(&resource),
        namespace: Some(&url.namespace),
        name: Some(&name),
        uri: url.proxy_path(),
        ..Call::default()
    };
    let mut content = match transport.content(&call).await {
        Ok(Ok(content)) => content,
        Ok(Err(code)) => return Err(refused_by_service(code, url)),
        Err(Failure::Refused(status)) => {
            let known = refused_by_proxy(&status, url);
            return Err(known.unwrap_or_else(|| Failure::Refused(status).into_problem(&call, transport.peer())));
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

/// What answers is not the API server.
fn refused_by_service(code: StatusCode, url: &ServiceUrl) -> Problem {
    let ServiceUrl { name, namespace, .. } = url;
    if code.is_redirection() {
        return Problem::new(format!("the Service {name} in namespace {namespace} answers with a redirect ({code})"))
            .help("redirects are not followed here; name the content of the catalog: --catalog NAME=PATH|URL");
    }
    let problem = Problem::new(format!("the Service {name} in namespace {namespace} answers {code}"));
    match code {
        StatusCode::NOT_FOUND => problem.help("does it serve this catalog yet? Run again"),
        _ => problem.help(format!("see the log of its Pods, in namespace {namespace}")),
    }
}

/// The API server's own answers that are about the Service.
fn refused_by_proxy(status: &Status, url: &ServiceUrl) -> Option<Problem> {
    let ServiceUrl { name, namespace, port, .. } = url;
    let says = |words: &str| status.message.starts_with(words);
    let pods = format!("do its Pods run? kubectl get endpointslices,pods -n {namespace}");
    let ports = format!("does it have that port? kubectl describe service {name} -n {namespace}");
    match status.code {
        // It says the same where there is no Endpoints object.
        404 if says("services ") => Some(
            Problem::new(format!("there is no Service {name} in namespace {namespace}, or none with endpoints"))
                .help("is catalogd installed, and is it still that Service which serves its catalogs?"),
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
                    "the API server does not reach the Service {name} in namespace {namespace}: {said}"
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
