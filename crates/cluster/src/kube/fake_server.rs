//! A fake API server at the HTTP boundary: a function from requests to responses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use kube::client::{Body, Client};

use super::KubeTarget;
use super::credentials::Credentials;
use super::request::Peer;
use super::transport::Transport;

/// A request that the fake server received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedRequest {
    pub method: String,
    pub uri: String,
    pub accept: String,
    pub body: String,
}

/// A response of the fake server.
pub struct Reply {
    code: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
    /// Never responds.
    hangs: bool,
}

pub fn json(code: u16, body: impl ToString) -> Reply {
    Reply {
        code,
        headers: vec![("content-type", "application/json".into())],
        body: body.to_string().into_bytes(),
        hangs: false,
    }
}

pub fn text_reply(code: u16, content_type: &str, body: &str) -> Reply {
    Reply { code, headers: vec![("content-type", content_type.into())], body: body.into(), hangs: false }
}

pub fn protobuf(code: u16, body: Vec<u8>) -> Reply {
    Reply { body, ..text_reply(code, super::protobuf::MEDIA_TYPE, "") }
}

pub fn no_reply() -> Reply {
    Reply { hangs: true, ..json(200, "") }
}

/// A `Status` document of the API server.
pub fn status(code: u16, reason: &str, message: &str, details: serde_json::Value) -> Reply {
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": details, "code": code,
    });
    json(code, status)
}

impl Reply {
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

pub fn peer() -> Peer {
    Peer {
        context: "staging".into(),
        server: "https://10.0.0.1:6443".into(),
        address: "10.0.0.1:6443".into(),
        user: Some("dev".into()),
        acts_as: None,
        proxy: None,
    }
}

/// A target whose server is `answer`, and the requests that it receives, in order.
pub fn target(
    answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> (KubeTarget, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let requests: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
    let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
        async move {
            let (parts, body) = request.into_parts();
            let body = String::from_utf8(body.collect_bytes().await?.into()).unwrap();
            let accept = parts.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
            let accept = accept.unwrap_or_default().to_owned();
            let seen = ReceivedRequest { method: parts.method.to_string(), uri: parts.uri.to_string(), accept, body };
            log.lock().unwrap().push(seen.clone());
            let reply = answer(&seen);
            if reply.hangs {
                std::future::pending::<()>().await;
            }
            let mut response = Response::builder().status(reply.code);
            for (name, value) in reply.headers {
                response = response.header(name, value);
            }
            Ok::<_, kube::Error>(response.body(Body::from(reply.body)).unwrap())
        }
    });
    let transport =
        Transport::new(Client::new(service, "default"), peer(), Credentials::default(), Duration::from_secs(60));
    (
        KubeTarget {
            transport: Arc::new(transport),
            default_namespace: "default".into(),
            fresh: Default::default(),
            openapi: Default::default(),
            release: Default::default(),
        },
        requests,
    )
}
