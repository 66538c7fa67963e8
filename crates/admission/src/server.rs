//! The HTTPS server that the API server calls.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use gantry_core::parallel::processors;
use gantry_core::problem::Problem;
use gantry_deploy::config::AdmissionSettings;
use gantry_preflight::parts_hash::PartsHash;

use crate::certificates::Certificates;
use crate::decide::{Decision, Requester, ReviewOutcome, accepted_digests, decide};
use crate::judge::{ChangeVerdict, CrdJudge, is_harmless};
use crate::metrics::{AdmissionMetrics, MEDIA_TYPE};
use crate::review::{MAX_REVIEW_BYTES, ReviewedChange, ReviewedRequest};
use gantry_core::options::AdmissionMode;

/// The path of the webhook.
pub const PATH: &str = "/validate";

/// The most connections at a time. Each replica of the API server keeps a few.
const MAX_CONNECTIONS: usize = 512;
/// How long a client may take for a handshake, for the head of a request, and for its body.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the server goes on after the signal to stop: until then, the cluster may still send requests to it.
const NOTICE: Duration = Duration::from_secs(5);
/// How long requests in progress may take then. With the notice, it is less than the 30 seconds that a Pod gets.
const DRAIN: Duration = Duration::from_secs(20);
/// How long the API server waits if it does not say so: the default of `timeoutSeconds`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest `timeoutSeconds`.
const MAX_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a denial is repeated without judging again. Controllers retry for ever, and a denial that is no longer
/// necessary harms less than an allowance that is no longer right.
const CACHED_FOR: Duration = Duration::from_secs(10);
/// The most denials that are kept.
const MAX_CACHED: usize = 256;

/// What one configuration decides with.
pub struct AdmissionPolicy {
    /// What happens to which CRD.
    pub settings: AdmissionSettings,
    /// The checks and the cluster.
    pub judge: CrdJudge,
}

/// When a change was denied, and why.
type CachedDenial = (Instant, Arc<ChangeVerdict>);

/// Answers reviews, and keeps what outlives a configuration.
pub struct AdmissionServer {
    policy: RwLock<Arc<AdmissionPolicy>>,
    /// Why the newest configuration is not in force.
    broken: Mutex<Option<String>>,
    certificates: Arc<Certificates>,
    metrics: AdmissionMetrics,
    /// Reviews are judged by as many threads as there are processors: the others wait with their texts alone.
    turns: Arc<Semaphore>,
    denials: Mutex<HashMap<[u8; 32], CachedDenial>>,
    stops: AtomicBool,
    log: Box<dyn Fn(&str) + Send + Sync>,
}

impl AdmissionServer {
    /// A server that writes one JSON line for each decision to `log`.
    pub fn new(
        policy: AdmissionPolicy,
        certificates: Arc<Certificates>,
        log: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        AdmissionServer {
            policy: RwLock::new(Arc::new(policy)),
            broken: Mutex::default(),
            certificates,
            metrics: AdmissionMetrics::default(),
            turns: Arc::new(Semaphore::new(processors())),
            denials: Mutex::default(),
            stops: AtomicBool::new(false),
            log: Box::new(log),
        }
    }

    /// Puts a new configuration into force, or says why it cannot be: then the old one stays, and the server is not
    /// ready.
    pub fn configure(&self, new: Result<AdmissionPolicy, String>) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        let event = match new {
            Ok(policy) => {
                *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
                self.denials.lock().unwrap_or_else(PoisonError::into_inner).clear();
                *broken = None;
                json!({"event": "configured"})
            }
            Err(why) => {
                let event = json!({"event": "configurationInvalid", "reason": why});
                *broken = Some(why);
                event
            }
        };
        self.write_log(event);
    }

    /// Writes one line.
    pub fn write_log(&self, mut event: serde_json::Value) {
        event["time"] = jiff::Timestamp::now().to_string().into();
        (self.log)(&event.to_string());
    }

    /// Why the server is not ready.
    fn unready(&self) -> Option<String> {
        if self.stops.load(Ordering::Relaxed) {
            return Some("the webhook stops".to_owned());
        }
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let broken = broken.map(|why| format!("the configuration is invalid, and the old one is in force: {why}"));
        broken.or_else(|| self.certificates.error().map(|error| format!("the certificate: {error}")))
    }

    /// Serves connections until `stop` completes. Then it is not ready, but still answers for some seconds, until the
    /// cluster sends no more requests to it, and ends when those in progress are answered.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: impl Future<Output = ()>) {
        let graceful = GracefulShutdown::new();
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let server = Arc::clone(&self);
        let mut stop = std::pin::pin!(async move {
            stop.await;
            server.stops.store(true, Ordering::Relaxed);
            tokio::time::sleep(NOTICE).await;
        });
        loop {
            let permit = tokio::select! {
                permit = Arc::clone(&connections).acquire_owned() => permit,
                () = &mut stop => break,
            };
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = &mut stop => break,
            };
            let Ok((stream, peer)) = accepted else {
                // For example too many open files: others end meanwhile.
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            let (server, watcher) = (Arc::clone(&self), graceful.watcher());
            tokio::spawn(async move {
                server.serve_connection(stream, peer, watcher).await;
                drop(permit);
            });
        }
        drop(listener);
        let _ = tokio::time::timeout(DRAIN, graceful.shutdown()).await;
    }

    async fn serve_connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let config = match self.certificates.config() {
            Ok(config) => config,
            Err(error) => return self.write_log(json!({"event": "noCertificate", "reason": error.to_string()})),
        };
        // Answers are small and must not wait for each other.
        let _ = stream.set_nodelay(true);
        let handshake = tokio::time::timeout(PATIENCE, TlsAcceptor::from(config).accept(stream));
        let Ok(Ok(stream)) = handshake.await else { return };
        let service = service_fn(move |request| {
            let server = Arc::clone(&self);
            async move {
                let mut response = server.respond(request, peer).await;
                // Who reads this sends the next request over another connection, when the webhook stops to another
                // replica. A connection that ends without it may do so just when the next request is on its way.
                let is_cut = [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::REQUEST_TIMEOUT].contains(&response.status());
                if is_cut || server.stops.load(Ordering::Relaxed) {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(TokioIo::new(stream), service);
        let _ = watcher.watch(connection).await;
    }

    async fn respond(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        match (request.method(), request.uri().path()) {
            (&Method::POST, PATH) => self.review(request, peer).await,
            (&Method::GET, "/healthz") => text(StatusCode::OK, "ok"),
            (&Method::GET, "/readyz") => match self.unready() {
                None => text(StatusCode::OK, "ok"),
                Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, &why),
            },
            (&Method::GET, "/metrics") => body(StatusCode::OK, MEDIA_TYPE, self.metrics.to_text().into_bytes()),
            (_, PATH | "/healthz" | "/readyz" | "/metrics") => {
                text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
            }
            _ => text(StatusCode::NOT_FOUND, "not found"),
        }
    }

    async fn review(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        let began = Instant::now();
        let timeout = timeout_of(request.uri().query().unwrap_or_default());
        let malformed = |status, why: &str| {
            self.metrics.count_malformed();
            self.write_log(json!({"event": "malformed", "peer": peer.to_string(), "reason": why}));
            text(status, why)
        };
        let received =
            tokio::time::timeout(PATIENCE, Limited::new(request.into_body(), MAX_REVIEW_BYTES).collect()).await;
        let received = match received {
            Ok(Ok(received)) => received.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return malformed(StatusCode::PAYLOAD_TOO_LARGE, "the review is larger than 8 MiB");
            }
            Ok(Err(_)) => return malformed(StatusCode::BAD_REQUEST, "the body ended early"),
            Err(_) => return malformed(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
        };
        let reviewed = match ReviewedRequest::read(&received) {
            Ok(reviewed) => reviewed,
            Err(error) => return malformed(StatusCode::BAD_REQUEST, &error.to_string()),
        };
        drop(received);
        let (decision, verdict) = self.decide(&reviewed, began, timeout).await;
        self.metrics.count_review(&decision, began.elapsed());
        self.log_decision(&reviewed, &decision, verdict.as_deref(), began.elapsed());
        body(StatusCode::OK, "application/json", decision.answer.to_review(&reviewed.request))
    }

    /// Judges within half of the time that the API server waits.
    async fn decide(
        &self,
        reviewed: &ReviewedRequest,
        began: Instant,
        timeout: Duration,
    ) -> (Decision, Option<Arc<ChangeVerdict>>) {
        let policy = Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner));
        let (crd, change) = (reviewed.crd(), &reviewed.change);
        let mode = policy.settings.mode_of(crd);
        if mode == AdmissionMode::Ignore {
            return (Decision::allowed(mode, ReviewOutcome::Ignored), None);
        }
        if is_harmless(change, reviewed.user()) {
            return (Decision::allowed(mode, ReviewOutcome::Unchanged), None);
        }
        let accepts = accepted_digests(change);
        let by = Requester::from_request(reviewed, &accepts);
        let key = key(change);
        if let Some(verdict) = self.cached_denial(&key) {
            let decision = decide(&policy.settings, crd, change, &verdict, by);
            self.metrics.count_cached();
            return (decision, Some(verdict));
        }
        let budget = timeout / 2;
        let judged = judge_on_thread(Arc::clone(&policy), crd.to_owned(), change.clone(), &self.turns, began + budget);
        let verdict = match judged.await {
            JudgingResult::Verdict(verdict) => Arc::new(verdict),
            JudgingResult::TooSlow => {
                let seconds = budget.as_secs_f32();
                let why = format!("it took longer than {seconds} s, half of the time that the API server waits");
                let help = "raise timeoutSeconds of the webhook configuration, or check the CRD with gantry check";
                Arc::new(ChangeVerdict::unjudged(change, Problem::new(why).help(help)))
            }
            JudgingResult::Failed => {
                let help = "report it with both versions of the CRD, and check the CRD with gantry check meanwhile";
                Arc::new(ChangeVerdict::unjudged(
                    change,
                    Problem::new("gantry failed to judge it, which is a bug").help(help),
                ))
            }
        };
        self.metrics.count_verdict(&verdict);
        let decision = decide(&policy.settings, crd, change, &verdict, by);
        if decision.outcome == ReviewOutcome::Denied && verdict.unjudged.is_empty() {
            self.cache_denial(key, &verdict);
        }
        (decision, Some(verdict))
    }

    fn cached_denial(&self, key: &[u8; 32]) -> Option<Arc<ChangeVerdict>> {
        let denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        denials.get(key).filter(|(at, _)| at.elapsed() < CACHED_FOR).map(|(_, verdict)| Arc::clone(verdict))
    }

    fn cache_denial(&self, key: [u8; 32], verdict: &Arc<ChangeVerdict>) {
        let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        if denials.len() >= MAX_CACHED {
            denials.retain(|_, (at, _)| at.elapsed() < CACHED_FOR);
        }
        if denials.len() < MAX_CACHED {
            denials.insert(key, (Instant::now(), Arc::clone(verdict)));
        }
    }

    fn log_decision(
        &self,
        reviewed: &ReviewedRequest,
        decision: &Decision,
        verdict: Option<&ChangeVerdict>,
        took: Duration,
    ) {
        let rules: Vec<&str> = verdict
            .map(|verdict| verdict.findings().iter().map(|finding| finding.rule.as_str()).collect())
            .unwrap_or_default();
        let request = &reviewed.request;
        self.write_log(json!({
            "event": "decision",
            "crd": reviewed.crd(),
            "operation": format!("{:?}", request.operation).to_uppercase(),
            "subresource": request.sub_resource.as_deref().unwrap_or_default(),
            "user": reviewed.user(),
            "dryRun": request.dry_run,
            "mode": decision.mode.name(),
            "outcome": decision.outcome.word(),
            "digest": verdict.map(|verdict| verdict.digest.as_str()).unwrap_or_default(),
            "rules": rules,
            "unjudged": verdict.map(|verdict| verdict.unjudged.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>()).unwrap_or_default(),
            "milliseconds": took.as_millis() as u64,
        }));
    }
}

/// How judging a change ended.
enum JudgingResult {
    Verdict(ChangeVerdict),
    TooSlow,
    /// It panicked.
    Failed,
}

/// Judges on a thread of its own: it is work for a processor, and if it panics, nothing else does.
async fn judge_on_thread(
    policy: Arc<AdmissionPolicy>,
    crd: String,
    change: ReviewedChange,
    turns: &Arc<Semaphore>,
    end: Instant,
) -> JudgingResult {
    let turn = tokio::time::timeout_at(end.into(), Arc::clone(turns).acquire_owned());
    let Ok(Ok(turn)) = turn.await else { return JudgingResult::TooSlow };
    let runtime = tokio::runtime::Handle::current();
    let judging = tokio::task::spawn_blocking(move || {
        // As long as the processor works on it, and not as long as somebody waits for it.
        let _turn = turn;
        let judging = async { tokio::time::timeout_at(end.into(), policy.judge.judge(&crd, &change)).await };
        runtime.block_on(judging)
    });
    // Reading objects ends in time by itself, and a long proof does not.
    match tokio::time::timeout_at(end.into(), judging).await {
        Ok(Ok(Ok(verdict))) => JudgingResult::Verdict(verdict),
        Ok(Ok(Err(_))) | Err(_) => JudgingResult::TooSlow,
        Ok(Err(_)) => JudgingResult::Failed,
    }
}

/// What is judged: a denial of it is a denial of the same again.
fn key(change: &ReviewedChange) -> [u8; 32] {
    let mut hash = PartsHash::default();
    let mut add = |text: &str| hash.add(text);
    let mut part = |object: &gantry_core::resource::RawObject, names: &[&str]| {
        let json = object.json();
        names.iter().for_each(|name| add(gantry_schema::scan::member(&json, name).unwrap_or_default()));
    };
    match change {
        ReviewedChange::Created => {}
        ReviewedChange::Updated { live, desired } => {
            part(live, &["spec", "status"]);
            part(desired, &["spec"]);
        }
        ReviewedChange::StatusUpdated { live, desired } => {
            part(live, &["spec", "status"]);
            part(desired, &["status"]);
        }
        ReviewedChange::Deleted { live } => part(live, &["metadata", "spec"]),
    }
    add(match change {
        ReviewedChange::Created => "created",
        ReviewedChange::Updated { .. } => "updated",
        ReviewedChange::StatusUpdated { .. } => "status",
        ReviewedChange::Deleted { .. } => "deleted",
    });
    hash.finish()
}

/// The `timeout` that the API server adds to the address, such as `timeout=10s`.
/// Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go`
fn timeout_of(query: &str) -> Duration {
    let given = query.split('&').find_map(|pair| pair.strip_prefix("timeout="));
    let seconds = given.and_then(|text| text.strip_suffix('s')).and_then(|text| text.parse::<f64>().ok());
    let seconds = seconds.filter(|seconds| *seconds > 0.0);
    seconds.map_or(DEFAULT_TIMEOUT, |seconds| Duration::from_secs_f64(seconds.min(MAX_TIMEOUT.as_secs_f64())))
}

fn text(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    body(status, "text/plain; charset=utf-8", format!("{text}\n").into_bytes())
}

fn body(status: StatusCode, media_type: &'static str, content: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(content)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_limit_is_that_of_the_api_server() {
        assert_eq!(timeout_of("timeout=7s"), Duration::from_secs(7));
        assert_eq!(timeout_of("a=b&timeout=2.5s"), Duration::from_millis(2500));
        assert_eq!(timeout_of("timeout=1000s"), MAX_TIMEOUT);
        for text in ["", "timeout=", "timeout=-1s", "timeout=x", "timeout=NaNs"] {
            assert_eq!(timeout_of(text), DEFAULT_TIMEOUT, "{text}");
        }
    }
}
