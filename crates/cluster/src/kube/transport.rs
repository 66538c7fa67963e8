//! Sends one request and reads its response: with a timeout, retries, and the warnings of the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::response::Parts;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::{Body, Client};
use kube::core::Status;

use super::credentials::Credentials;
use super::json;
use super::lines::ResponseLines;
use super::request::{ApiRequest, ApiResponse, Peer, RequestError, check_path};
use super::warnings::{self, Warnings};
use super::{errors, protobuf, refusals};
use gantry_core::text;

/// The number of retries of a request that the server is too busy for. The first wait is 0.2 s and each one doubles, 6
/// s in total: enough for a server that restarts, without waiting long for a broken one.
const RETRIES: u32 = 5;
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The maximum number of requests that are sent again at the same time: more would keep a busy server busy.
const RETRYING: usize = 16;
/// The maximum wait that a server can request with `Retry-After`.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The maximum size of a response. A list that would be longer is requested in smaller pages.
const MAX_BYTES: usize = 64 << 20;
/// The maximum size of one object; a server accepts up to 3 MB.
const MAX_BYTES_OF_OBJECT: usize = 8 << 20;
/// The maximum size of a refusal. A longer one is useless.
const MAX_BYTES_OF_REFUSAL: usize = 4 << 20;
/// The size up to which responses are read concurrently; only one at a time can exceed it.
const CONCURRENT_BYTES: usize = 4 << 20;
/// The maximum length of the texts of a refusal, and the maximum number of its causes.
const MAX_CHARS: usize = 64 << 10;
const MAX_CAUSES: usize = 1000;

pub struct Transport {
    client: Client,
    peer: Box<Peer>,
    credentials: Credentials,
    timeout: Duration,
    warnings: Warnings,
    /// Held by the response that is longer than [`CONCURRENT_BYTES`].
    long_answer: tokio::sync::Mutex<()>,
    /// A request was refused on every attempt. Until the server accepts one again, other requests are not retried.
    gave_up: AtomicBool,
    /// Held by the requests that are sent again.
    retrying: tokio::sync::Semaphore,
}

impl Transport {
    pub fn new(client: Client, peer: Peer, credentials: Credentials, timeout: Duration) -> Self {
        Transport {
            client,
            peer: Box::new(peer),
            credentials,
            timeout,
            warnings: Warnings::default(),
            long_answer: Default::default(),
            gave_up: AtomicBool::new(false),
            retrying: tokio::sync::Semaphore::new(RETRYING),
        }
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The warnings that have not been returned before. A dry run and the apply after it get the same warnings.
    pub fn take_warnings(&self) -> Vec<String> {
        self.warnings.take()
    }

    /// How long a request may take.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sends a request, with retries while the server is too busy.
    pub async fn send(&self, call: &ApiRequest<'_>) -> Result<ApiResponse, RequestError> {
        let (mut wait, mut turn) = (FIRST_WAIT, None);
        for tries_left in (0..=RETRIES).rev() {
            let (code, headers, body) = match tokio::time::timeout(self.timeout, self.exchange(call)).await {
                Ok(answer) => answer?,
                Err(_) => return Err(RequestError::TimedOut(errors::timed_out(&self.peer, self.timeout))),
            };
            let is_busy = is_worth_a_retry(call, code, &headers);
            // If the server stays busy, only a few of a thousand requests are sent again.
            let may_retry = is_busy && tries_left > 0 && !self.gave_up.load(Ordering::Relaxed);
            if may_retry && turn.is_none() {
                turn = self.retrying.acquire().await.ok();
            }
            // Those that were first may have given up in the meantime.
            if may_retry && !self.gave_up.load(Ordering::Relaxed) {
                let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
                let asked = asked.map_or(Duration::ZERO, Duration::from_secs);
                tokio::time::sleep(wait.max(asked.min(MAX_WAIT))).await;
                wait *= 2;
                continue;
            }
            self.gave_up.store(is_busy, Ordering::Relaxed);
            self.keep_warnings(call, &headers);
            return self.check_response(call, code, &headers, body);
        }
        unreachable!("the last try returns")
    }

    /// Sends a request with a streaming response, which is read line by line until one side ends it.
    pub async fn lines(&self, call: &ApiRequest<'_>) -> Result<ResponseLines, RequestError> {
        let (parts, body) = self.stream(call, StatusCode::is_success).await?;
        let kind = content_type(&parts.headers);
        match body {
            Ok(body) if kind.starts_with("application/json") => Ok(ResponseLines::new(body)),
            Ok(_) => Err(RequestError::sent(errors::unexpected_response(
                &self.peer,
                parts.status.as_u16(),
                &self.hidden(kind),
            ))),
            Err(refusal) => match self.check_response(call, parts.status, &parts.headers, refusal) {
                Err(failure) => Err(failure),
                Ok(_) => Err(RequestError::sent(errors::unexpected_response(
                    &self.peer,
                    parts.status.as_u16(),
                    &self.hidden(kind),
                ))),
            },
        }
    }

    /// Sends a request with a possibly long response, and waits for its head. Returns the body if `content` accepts the
    /// status code, else the whole refusal.
    async fn stream(
        &self,
        call: &ApiRequest<'_>,
        content: fn(&StatusCode) -> bool,
    ) -> Result<(Parts, Result<Body, Vec<u8>>), RequestError> {
        let begun = async {
            let (parts, body) = self.begin(call).await?;
            if content(&parts.status) {
                return Ok((parts, Ok(body)));
            }
            let body = self.collect(body, MAX_BYTES_OF_REFUSAL).await?;
            Ok((parts, Err(body)))
        };
        let Ok(begun) = tokio::time::timeout(self.timeout, begun).await else {
            return Err(RequestError::sent(errors::timed_out(&self.peer, self.timeout)));
        };
        let (parts, body) = begun?;
        self.keep_warnings(call, &parts.headers);
        Ok((parts, body))
    }

    /// Sends a request for [`super::request::Format::Protobuf`] whose response can be long. Returns `None` if the
    /// server responds with something else.
    pub async fn protobuf(&self, call: &ApiRequest<'_>) -> Result<Option<Body>, RequestError> {
        let (parts, body) = self.stream(call, StatusCode::is_success).await?;
        match body {
            Ok(body) => Ok(content_type(&parts.headers).starts_with(protobuf::MEDIA_TYPE).then_some(body)),
            Err(refusal) => self.check_response(call, parts.status, &parts.headers, refusal).map(|_| None),
        }
    }

    /// Sends a request whose response, of any type, comes from a server behind the API server. The inner error is the
    /// status code of a response without content.
    pub async fn content(&self, call: &ApiRequest<'_>) -> Result<Result<Body, StatusCode>, RequestError> {
        let (parts, body) = self.stream(call, |code| *code == StatusCode::OK).await?;
        match body {
            Ok(body) => Ok(Ok(body)),
            // The API server reports in plain text that it is too busy.
            Err(refusal) if json::is_status(&refusal) || parts.status == StatusCode::TOO_MANY_REQUESTS => {
                self.check_response(call, parts.status, &parts.headers, refusal).map(|_| Err(parts.status))
            }
            Err(_) => Ok(Err(parts.status)),
        }
    }

    /// The next part of the body; `None` at its end.
    pub async fn next_part(&self, body: &mut Body) -> Result<Option<Vec<u8>>, RequestError> {
        loop {
            let frame = tokio::time::timeout(self.timeout, body.frame()).await;
            let Some(frame) =
                frame.map_err(|_| RequestError::sent(errors::stalled_response(&self.peer, self.timeout)))?
            else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| errors::no_response(&error, &self.peer))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data.to_vec()));
            }
        }
    }

    /// The next line of a response from [`Self::lines`]; `None` at its end.
    pub async fn next_line(&self, lines: &mut ResponseLines) -> Result<Option<String>, RequestError> {
        lines.next(MAX_BYTES_OF_OBJECT, &self.peer).await
    }

    async fn exchange(&self, call: &ApiRequest<'_>) -> Result<(StatusCode, HeaderMap, Vec<u8>), RequestError> {
        let (parts, body) = self.begin(call).await?;
        let limit = match parts.status.is_success() {
            false => MAX_BYTES_OF_REFUSAL,
            true if call.name.is_some() => MAX_BYTES_OF_OBJECT,
            true => MAX_BYTES,
        };
        let body = self.collect(body, limit).await?;
        Ok((parts.status, parts.headers, body))
    }

    /// Sends a request and reads the head of its response.
    async fn begin(&self, call: &ApiRequest<'_>) -> Result<(Parts, Body), RequestError> {
        check_path(&call.uri).map_err(|segment| RequestError::Misnamed(errors::misnamed(&segment)))?;
        let mut request = Request::builder().uri(&call.uri).header(ACCEPT, call.accept());
        let body = match call.body {
            Some(payload) => {
                request = request.method(payload.method()).header(CONTENT_TYPE, payload.content_type());
                Body::from(payload.bytes())
            }
            None => Body::empty(),
        };
        if let Some(credentials) =
            self.credentials.header().await.map_err(|problem| RequestError::Lost { problem, sent: false })?
        {
            request = request.header(AUTHORIZATION, credentials);
        }
        let lost = |error: &kube::Error| errors::no_response(error, &self.peer);
        let request = request.body(body).map_err(|error| lost(&kube::Error::HttpError(error)))?;
        Ok(self.client.send(request).await.map_err(|error| lost(&error))?.into_parts())
    }

    /// Reads the whole body. However many responses are read concurrently, and whatever a compressed one expands to,
    /// they use at most [`CONCURRENT_BYTES`] of memory each, and [`MAX_BYTES`] for one.
    async fn collect(&self, mut body: Body, limit: usize) -> Result<Vec<u8>, RequestError> {
        let (mut bytes, mut alone) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| errors::no_response(&error, &self.peer))?;
            let Some(data) = frame.data_ref() else { continue };
            let length = bytes.len() + data.len();
            if length > limit {
                return Err(RequestError::TooLong(errors::too_long(&self.peer, limit)));
            }
            if length > CONCURRENT_BYTES && alone.is_none() {
                alone = Some(self.long_answer.lock().await);
            }
            bytes.extend_from_slice(data);
        }
        Ok(bytes)
    }

    /// Distinguishes responses of an API server from everything else that can be at an address.
    fn check_response(
        &self,
        call: &ApiRequest<'_>,
        code: StatusCode,
        headers: &HeaderMap,
        body: Vec<u8>,
    ) -> Result<ApiResponse, RequestError> {
        let kind = content_type(headers);
        let unexpected =
            || RequestError::sent(errors::unexpected_response(&self.peer, code.as_u16(), &self.hidden(kind)));
        let is_refusal = !code.is_success() && kind.starts_with(protobuf::MEDIA_TYPE);
        let is_json = is_refusal || kind.starts_with("application/json");
        let body = match is_refusal {
            true => protobuf::status(&body).map_err(|_| unexpected())?,
            false => String::from_utf8(body).map_err(|_| unexpected())?,
        };
        if code.is_success() && is_json {
            if json::is_too_deep(&body) {
                return Err(RequestError::sent(errors::unexpected_response(
                    &self.peer,
                    code.as_u16(),
                    "JSON nested too deeply",
                )));
            }
            return Ok(ApiResponse { code, body });
        }
        let mut status = match serde_json::from_str::<Status>(&body) {
            Ok(status) if is_json && !code.is_success() => status,
            // Parts of an API server respond in plain text: for paths that are not routed, and for requests that are
            // throttled.
            _ if kind.starts_with("text/plain")
                && (code.is_client_error() || code.is_server_error())
                && !(code == StatusCode::NOT_FOUND && call.body.is_none() && is_always_served(&call.uri)) =>
            {
                Status { message: body, ..Status::default() }
            }
            _ => return Err(unexpected()),
        };
        status.code = code.as_u16();
        let mut said = vec![&mut status.message];
        if let Some(details) = &mut status.details {
            details.causes.truncate(MAX_CAUSES);
            said.extend([&mut details.name, &mut details.kind]);
            said.extend(details.causes.iter_mut().flat_map(|cause| [&mut cause.message, &mut cause.field]));
        }
        for said in said {
            let end = said.char_indices().nth(MAX_CHARS).map_or(said.len(), |(end, _)| end);
            said.truncate(end);
            *said = self.hidden(said);
        }
        Err(RequestError::Refused(Box::new(status)))
    }

    fn keep_warnings(&self, call: &ApiRequest<'_>, headers: &HeaderMap) {
        for value in headers.get_all(WARNING) {
            if let Some(warning) = warnings::text(&String::from_utf8_lossy(value.as_bytes())) {
                let warning = refusals::hide_secrets(call, &self.hidden(&warning));
                self.warn(text::cut(&text::sanitize(&warning), 500).into_owned());
            }
        }
    }

    /// The server's text with our own credentials masked.
    pub fn hidden(&self, said: &str) -> String {
        self.credentials.hidden(said)
    }

    /// Keeps a warning for the user, without duplicates.
    pub fn warn(&self, warning: String) {
        self.warnings.add(warning);
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("no content type")
}

/// Whether the server has not started on the request and asks to retry it. A write whose gateway timed out can still
/// have been carried out; a retry would then find its own result and take it for someone else's change.
fn is_worth_a_retry(call: &ApiRequest<'_>, code: StatusCode, headers: &HeaderMap) -> bool {
    match code {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::SERVICE_UNAVAILABLE => call.body.is_none() || headers.contains_key(RETRY_AFTER),
        StatusCode::GATEWAY_TIMEOUT => call.body.is_none(),
        _ => false,
    }
}

/// Whether every API server serves the API of a path: it then reports what does not exist with a status, and only
/// another server answers that there is no such page.
fn is_always_served(uri: &str) -> bool {
    let path = uri.split('?').next().unwrap_or_default();
    ["/api/v1", "/apis/apiextensions.k8s.io/v1"]
        .iter()
        .any(|api| path.strip_prefix(api).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::super::fake_server::{self, Reply, status, text_reply};
    use super::super::request::Payload;
    use super::*;

    const CALL: ApiRequest<'_> = ApiRequest {
        verb: "",
        resource: None,
        namespace: None,
        name: None,
        uri: String::new(),
        body: None,
        live: None,
        format: super::super::request::ResponseFormat::Json,
    };

    /// The outcome of one call with these responses, and the number of requests sent.
    async fn ask(
        call: ApiRequest<'_>,
        answer: impl Fn(usize) -> Reply + Send + Sync + 'static,
    ) -> (Result<String, String>, usize) {
        let tries = AtomicUsize::new(0);
        let (target, seen) = fake_server::target(move |_| answer(tries.fetch_add(1, Ordering::Relaxed)));
        let call = ApiRequest { uri: "/api/v1".into(), ..call };
        let answer = target.transport.send(&call).await;
        let answer = answer.map(|answer| answer.body);
        (
            answer.map_err(|failure| failure.into_problem(&call, &fake_server::peer()).message),
            seen.lock().unwrap().len(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_to_a_busy_server_is_retried_a_limited_number_of_times() {
        let busy = || status(429, "TooManyRequests", "later", json!({})).header("retry-after", "1");
        let answer = move |tries| if tries < 2 { busy() } else { fake_server::json(200, "{}") };
        assert_eq!(ask(CALL, answer).await, (Ok("{}".into()), 3));
        let (message, tries) = ask(CALL, move |_| busy()).await;
        assert_eq!(
            message.unwrap_err(),
            "the API server https://10.0.0.1:6443 is overloaded (429); gave up after several attempts: later"
        );
        assert_eq!(tries, 6);
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_requests_to_a_busy_server_few_are_sent_again() {
        let call = ApiRequest { uri: "/api/v1".into(), ..CALL };
        let (target, seen) = fake_server::target(|_| status(429, "TooManyRequests", "later", json!({})));
        let answers = futures::future::join_all((0..64).map(|_| target.transport.send(&call))).await;
        assert!(answers.iter().all(Result::is_err));
        assert_eq!(seen.lock().unwrap().len(), 64 + RETRYING * RETRIES as usize);

        // All of them are, once the server has time for the first.
        let asked = AtomicUsize::new(0);
        let (target, _) = fake_server::target(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
            0..64 => status(429, "TooManyRequests", "later", json!({})),
            _ => fake_server::json(200, "{}"),
        });
        let answers = futures::future::join_all((0..64).map(|_| target.transport.send(&call))).await;
        assert!(answers.iter().all(Result::is_ok));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_retried_only_if_the_server_did_not_process_it() {
        let write = ApiRequest { body: Some(Payload::Apply("{}")), ..CALL };
        let tries = |code, retry_after: bool, call: ApiRequest<'static>| async move {
            let reply = move || text_reply(code, "text/plain", "no");
            ask(call, move |_| if retry_after { reply().header("retry-after", "999999") } else { reply() }).await.1
        };
        for (code, retry_after, expected) in
            [(429, false, 6), (503, true, 6), (503, false, 1), (504, true, 1), (500, true, 1)]
        {
            assert_eq!(tries(code, retry_after, write.clone()).await, expected, "{code}");
        }
        assert_eq!(
            (tries(503, false, CALL).await, tries(504, false, CALL).await, tries(500, false, CALL).await),
            (6, 6, 1)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn no_answer_within_the_limit_is_a_problem() {
        assert_eq!(
            ask(CALL, |_| fake_server::no_reply()).await.0.unwrap_err(),
            "no answer from 10.0.0.1:6443 within 60 s"
        );
    }

    #[tokio::test]
    async fn answers_of_servers_that_are_not_api_servers_are_recognised() {
        for (code, content_type, body) in [
            (200, "text/html", "<html>log in</html>"),
            (404, "text/html; charset=utf-8", "<html>404</html>"),
            (404, "text/plain", "404 page not found"),
            (302, "text/plain", "moved"),
            (500, "application/json", "\"no\""),
            (200, "text/plain", "{}"),
        ] {
            let message = ask(CALL, move |_| text_reply(code, content_type, body)).await.0.unwrap_err();
            let expected =
                format!("https://10.0.0.1:6443 does not answer like a Kubernetes API server ({code}, {content_type})");
            assert_eq!(message, expected);
        }
    }
}
