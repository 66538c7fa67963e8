//! Follows objects by a watch: a list, then the changes since its resourceVersion, then another list if that version
//! has expired on the server.
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes>

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::json;
use super::list::KubePages;
use super::request::{ApiRequest, RequestError, encode};
use super::transport::Transport;
use crate::list::{ListError, ListRequest};
use crate::watch::{FollowRequest, WatchEvent};
use gantry_core::resource::{LiveObject, Resource};

/// How long the server keeps one watch open. It is short, so that a connection that was silently dropped on the way is
/// noticed.
const WATCH_DURATION: Duration = Duration::from_secs(45);
/// How much longer than that a response can go on.
const GRACE: Duration = Duration::from_secs(15);
/// A watch that ends sooner than this does not reset the pauses between attempts.
const MIN_WATCH_DURATION: Duration = Duration::from_secs(1);
/// The pause between two attempts, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// After this many consecutive failures, the known version is discarded and the objects are listed again.
const RELIST_AFTER: u32 = 3;
const PAGE: u32 = 500;

/// Why a list or a watch has ended.
enum End {
    /// The server ended it, as it does regularly.
    Over,
    /// The changes since that version have expired on the server.
    Expired,
    /// The connection was lost, or the request failed temporarily.
    Broken,
    /// It will never succeed: forbidden, or not supported for this kind.
    Never,
}

/// Reports events about the objects. Ends if they cannot be watched.
pub async fn follow(transport: Arc<Transport>, request: FollowRequest, on_event: impl Fn(WatchEvent) + Send + Sync) {
    let mut pauses = Pauses::default();
    // The version that the next watch starts from.
    let mut version = request.since.clone();
    // Whether `Disconnected` was reported and `Resumed` was not yet.
    let mut is_lost = false;
    loop {
        let begun = Instant::now();
        let end = match &mut version {
            None => match list(&transport, &request).await {
                Ok((objects, resource_version)) => {
                    version = Some(resource_version.clone());
                    on_event(WatchEvent::Listed { objects, resource_version });
                    continue;
                }
                Err(end) => end,
            },
            Some(version) => {
                let resumed = || {
                    if std::mem::take(&mut is_lost) {
                        on_event(WatchEvent::Resumed);
                    }
                };
                watch(&transport, &request, version, resumed, &on_event).await
            }
        };
        match end {
            End::Over if begun.elapsed() >= MIN_WATCH_DURATION => pauses = Pauses::default(),
            // A watch that ends immediately every time is useless.
            End::Over if pauses.made < RELIST_AFTER => {}
            End::Expired => version = None,
            End::Broken | End::Over => {
                is_lost = true;
                on_event(WatchEvent::Disconnected);
                if pauses.made >= RELIST_AFTER {
                    version = None;
                }
            }
            End::Never => {
                on_event(WatchEvent::Disconnected);
                return;
            }
        }
        tokio::time::sleep(pauses.next()).await;
    }
}

/// The pauses between attempts; each one doubles.
#[derive(Default)]
struct Pauses {
    made: u32,
}

impl Pauses {
    fn next(&mut self) -> Duration {
        let pause = (FIRST_PAUSE * 2u32.pow(self.made.min(10))).min(MAX_PAUSE);
        self.made += 1;
        pause
    }
}

/// The existing objects, and the resourceVersion of the list.
async fn list(
    transport: &Arc<Transport>,
    request: &FollowRequest,
) -> std::result::Result<(Vec<(String, LiveObject)>, String), End> {
    let FollowRequest { resource, namespace, names, label_selector, .. } = request;
    let list = ListRequest {
        namespace: namespace.as_deref(),
        label_selector: label_selector.as_deref(),
        ..ListRequest::new(resource, PAGE)
    };
    let mut pages = KubePages::of_name(transport, &list, only_name(request));
    let (mut objects, mut version) = (Vec::new(), String::new());
    loop {
        match pages.next().await {
            Ok(Some(page)) => {
                // All pages show one state. If the server has dropped it, the rest shows a newer one, and the changes
                // in between are reported again.
                if version.is_empty() {
                    page.resource_version().clone_into(&mut version);
                }
                objects.extend(page.items().filter_map(|item| parse_followed(item, resource, names).ok()?));
            }
            // Without a version a watch cannot start.
            Ok(None) if version.is_empty() => return Err(End::Never),
            Ok(None) => return Ok((objects, version)),
            Err(ListError::Expired) => (objects, version) = Default::default(),
            Err(ListError::Forbidden(_) | ListError::NotServed(_) | ListError::Conversion { .. }) => {
                return Err(End::Never);
            }
            Err(ListError::Other(_)) => return Err(End::Broken),
        }
    }
}

/// The only name that is followed, if there is exactly one.
fn only_name(request: &FollowRequest) -> Option<&str> {
    (request.names.len() == 1).then(|| request.names.first().map(String::as_str)).flatten()
}

/// Reports the changes since a version, and updates it with each event.
async fn watch(
    transport: &Transport,
    request: &FollowRequest,
    version: &mut String,
    resumed: impl FnOnce(),
    on_event: &(impl Fn(WatchEvent) + Send + Sync),
) -> End {
    let call = call(request, version);
    let mut lines = match transport.lines(&call).await {
        Ok(lines) => lines,
        Err(RequestError::Refused(status)) => {
            return match status.code {
                410 => End::Expired,
                // A server that has just started can respond with 401, a busy one with 429 or 5xx.
                400 | 403 | 404 | 405 | 406 | 415 => End::Never,
                _ => End::Broken,
            };
        }
        Err(RequestError::TooLong(_) | RequestError::Misnamed(_)) => return End::Never,
        Err(RequestError::Lost { .. } | RequestError::TimedOut(_)) => return End::Broken,
    };
    resumed();
    let limit = tokio::time::sleep(WATCH_DURATION + GRACE);
    tokio::pin!(limit);
    loop {
        let line = tokio::select! {
            line = transport.next_line(&mut lines) => line,
            () = &mut limit => return End::Broken,
        };
        match line {
            Ok(Some(line)) => match read(&line, request) {
                Some(WatchLineEvent::Is(name, live)) => {
                    version.clone_from(&live.resource_version);
                    on_event(WatchEvent::Changed(name, live));
                }
                Some(WatchLineEvent::Gone(name, at)) => {
                    version.clone_from(&at);
                    on_event(WatchEvent::Deleted(name, at));
                }
                Some(WatchLineEvent::Other(at)) => *version = at,
                Some(WatchLineEvent::Error(410)) => return End::Expired,
                Some(WatchLineEvent::Error(_)) => return End::Broken,
                Some(WatchLineEvent::Unknown) => {}
                // Whatever this is, it is not a watch.
                None => return End::Never,
            },
            Ok(None) => return End::Over,
            // An object that is larger than any valid one.
            Err(RequestError::TooLong(_)) => return End::Never,
            Err(_) => return End::Broken,
        }
    }
}

fn call<'a>(request: &'a FollowRequest, version: &str) -> ApiRequest<'a> {
    let FollowRequest { resource, namespace, label_selector, .. } = request;
    let namespace = namespace.as_deref().filter(|_| resource.namespaced);
    let mut uri = resource.path(namespace, None);
    uri.push_str(&format!(
        "?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}",
        WATCH_DURATION.as_secs(),
        encode(version)
    ));
    if let Some(selector) = label_selector {
        uri.push_str(&format!("&labelSelector={}", encode(selector)));
    }
    if let Some(name) = only_name(request) {
        uri.push_str(&format!("&fieldSelector={}", encode(&format!("metadata.name={name}"))));
    }
    ApiRequest { verb: "watch", resource: Some(resource), namespace, uri, ..ApiRequest::default() }
}

enum WatchLineEvent {
    Is(String, LiveObject),
    Gone(String, String),
    /// A change of an object that is not followed, or a bookmark.
    Other(String),
    /// A `Status` with this code.
    Error(u16),
    /// A type that a later version of the API can add.
    Unknown,
}

/// Parses one line of a watch; `None` if it is not one.
fn read(line: &str, request: &FollowRequest) -> Option<WatchLineEvent> {
    #[derive(Deserialize)]
    struct WatchLine<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct WatchErrorStatus {
        #[serde(default)]
        code: u16,
    }
    #[derive(Deserialize)]
    struct Bookmark {
        metadata: BookmarkMetadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct BookmarkMetadata {
        resource_version: String,
    }
    // The JSON parsers recurse once per level.
    if json::is_too_deep(line) {
        return None;
    }
    let WatchLine { kind, object } = serde_json::from_str(line).ok()?;
    let object = object.get();
    Some(match &*kind {
        "ADDED" | "MODIFIED" | "DELETED" => match parse_followed(object, &request.resource, &request.names).ok()? {
            Some((name, live)) if kind == "DELETED" => WatchLineEvent::Gone(name, live.resource_version),
            Some((name, live)) => WatchLineEvent::Is(name, live),
            None => {
                let head: json::LiveObjectHead<'_> = serde_json::from_str(object).ok()?;
                WatchLineEvent::Other(head.metadata.resource_version.into_owned())
            }
        },
        "BOOKMARK" => WatchLineEvent::Other(serde_json::from_str::<Bookmark>(object).ok()?.metadata.resource_version),
        "ERROR" => WatchLineEvent::Error(serde_json::from_str::<WatchErrorStatus>(object).ok()?.code),
        _ => WatchLineEvent::Unknown,
    })
}

/// An object with its name, if it is followed. Others are not copied.
///
/// # Errors
/// It is not an object.
fn parse_followed(
    json: &str,
    resource: &Resource,
    names: &BTreeSet<String>,
) -> std::result::Result<Option<(String, LiveObject)>, NoObject> {
    let name = serde_json::from_str::<json::LiveObjectHead<'_>>(json).map_err(|_| NoObject)?.metadata.name.into_owned();
    if !names.contains(&name) {
        return Ok(None);
    }
    let live = json::live(json, resource).ok_or(NoObject)?;
    Ok(Some((name, live)))
}

struct NoObject;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::super::fake_server::{self, ReceivedRequest, Reply};
    use super::*;

    fn object(name: &str, version: &str) -> Value {
        json!({"metadata": {"name": name, "uid": "u", "resourceVersion": version}})
    }

    /// The events as text, up to the last one, and the queries that were sent.
    async fn told(answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> (Vec<String>, Vec<String>) {
        let (target, seen) = fake_server::target(answer);
        let request = FollowRequest {
            resource: Resource::built_in("apps", "Deployment", "deployments", true).into(),
            namespace: Some("a".into()),
            names: ["web".to_owned(), "worker".to_owned()].into(),
            label_selector: Some("app=shop".into()),
            since: None,
        };
        let words = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&words);
        let follow = target.follow(request, move |told| {
            list.lock().unwrap().push(match told {
                WatchEvent::Listed { objects, resource_version } => {
                    let names: Vec<String> = objects.into_iter().map(|(name, _)| name).collect();
                    format!("listed {} at {resource_version}", names.join(","))
                }
                WatchEvent::Changed(name, live) => format!("{name} at {}", live.resource_version),
                WatchEvent::Deleted(name, at) => format!("{name} gone at {at}"),
                WatchEvent::Disconnected => "lost".to_owned(),
                WatchEvent::Resumed => "again".to_owned(),
            });
        });
        let _ = tokio::time::timeout(Duration::from_secs(3600), follow).await;
        let queries = seen.lock().unwrap().iter().map(|seen| seen.uri.split_once('?').unwrap().1.to_owned()).collect();
        let words = words.lock().unwrap().clone();
        (words, queries)
    }

    fn list() -> Reply {
        fake_server::json(
            200,
            json!({"metadata": {"resourceVersion": "10"}, "items": [object("web", "7"), object("other", "8")]}),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_passes_on_wanted_events_and_resumes_where_it_ended() {
        let event = |kind: &str, object: Value| format!("{}\n", json!({"type": kind, "object": object}));
        let first = [
            event("ADDED", object("worker", "11")),
            event("MODIFIED", object("other", "12")),
            event("DELETED", object("web", "13")),
            event("BOOKMARK", json!({"metadata": {"resourceVersion": "20"}})),
        ];
        let first = first.concat();
        let (words, queries) = told(move |seen| match &seen.uri {
            uri if !uri.contains("watch=true") => list(),
            uri if uri.contains("resourceVersion=10") => fake_server::json(200, &first),
            _ => fake_server::status(403, "Forbidden", "no", json!({})),
        })
        .await;
        assert_eq!(words, ["listed web at 10", "worker at 11", "web gone at 13", "lost"]);
        let watch = "watch=true&allowWatchBookmarks=true&timeoutSeconds=45&resourceVersion=";
        assert_eq!(
            queries,
            [
                "labelSelector=app%3Dshop&limit=500".to_owned(),
                format!("{watch}10&labelSelector=app%3Dshop"),
                format!("{watch}20&labelSelector=app%3Dshop"),
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_closes_every_watch_is_not_flooded_with_requests() {
        let (words, queries) = told(|seen| match seen.uri.contains("watch=true") {
            true => fake_server::json(200, ""),
            false => list(),
        })
        .await;
        assert_eq!(words[..2], ["listed web at 10", "lost"]);
        // An hour of watches that end immediately: a list and a watch every ten seconds.
        assert!(queries.len() < 750, "{}", queries.len());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_a_watch_is_not_requested_again() {
        let long = format!("{{\"type\":\"ADDED\",\"object\":{{\"a\":\"{}", "x".repeat(9 << 20));
        let deep = format!("{{\"type\":\"ADDED\",\"object\":{}\n", "[".repeat(100_000));
        for line in
            ["{}\n".to_owned(), "no\n".to_owned(), "{\"type\":\"ADDED\",\"object\":{}}\n".to_owned(), long, deep]
        {
            let start: String = line.chars().take(40).collect();
            let (words, queries) = told(move |seen| match seen.uri.contains("watch=true") {
                true => fake_server::json(200, &line),
                false => list(),
            })
            .await;
            assert_eq!((words, queries.len()), (vec!["listed web at 10".to_owned(), "lost".to_owned()], 2), "{start}");
        }
    }
}
