//! Reads live objects: a few CRDs by name, many with one paged list, everything else by name. Requests run
//! concurrently.
//!
//! The next page of a list is requested as soon as the head of this one is read, so the server writes while gantry
//! reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{self, StreamExt};
use tokio::sync::oneshot;

use super::errors;
use super::json;
use super::list::{self, Progress};
use super::page::{Found, Scanned, Unreadable, scan};
use super::request::{Call, Encoded, Failure, Format, encode};
use super::transport::Transport;
use crate::cluster::{OnRead, Read, Wanted};
use crate::problem::{Error, Problem, Result};
use crate::resource::{Live, Resource};

/// Up to this many CRDs are read by name. A `GET` costs as much as about two CRDs of a list, and the number of CRDs on
/// the server is unknown. This many `GET`s take as long as a list of about 250 CRDs, and a sixth of the time of a list
/// of 1,500.
const FEW_CRDS: usize = 128;
/// The number of CRDs per page of the list. Above 50, larger pages save no time; each doubling adds about 10 MB of
/// memory, and each halving doubles the round trips to a distant server.
const PAGE: usize = 100;
/// The number of concurrent requests for single objects; 32 are not faster.
const CONCURRENCY: usize = 16;

/// Reads the wanted objects: one result each, in order.
pub async fn read(
    transport: &Transport,
    default_namespace: &str,
    wanted: &[Wanted],
    on_read: OnRead<'_>,
) -> Result<Vec<Read>> {
    let reader = Reader { transport, default_namespace, wanted, on_read, done: AtomicUsize::new(0) };
    let crd = Resource::crd();
    let (crds, others): (Vec<usize>, Vec<usize>) = (0..wanted.len()).partition(|&index| *wanted[index].resource == crd);
    let found = if crds.len() <= FEW_CRDS {
        reader.by_name((0..wanted.len()).collect()).await?
    } else {
        let (listed, mut found) = futures::try_join!(reader.by_list(&crds), reader.by_name(others))?;
        match listed {
            Some(listed) => found.extend(listed),
            // A user who is not allowed to list CRDs can still be allowed to get those that the manifests name.
            None => found.extend(reader.by_name(crds).await?),
        }
        found
    };
    let mut answers: Vec<Read> = std::iter::repeat_with(|| Ok(None)).take(wanted.len()).collect();
    for (index, read) in found {
        answers[index] = read.map(Some);
    }
    Ok(answers)
}

struct Reader<'a> {
    transport: &'a Transport,
    default_namespace: &'a str,
    wanted: &'a [Wanted],
    on_read: OnRead<'a>,
    done: AtomicUsize,
}

impl Reader<'_> {
    fn count(&self, more: usize) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        (self.on_read)(done.min(self.wanted.len()), Some(self.wanted.len()));
    }

    /// Sends one `GET` for each. A refusal can concern only one kind or namespace; a lost connection ends it
    /// immediately.
    async fn by_name(&self, indices: Vec<usize>) -> Result<Found> {
        let mut answers = stream::iter(indices).map(|index| self.one(index)).buffer_unordered(CONCURRENCY);
        let mut found = Found::new();
        while let Some((index, answer)) = answers.next().await {
            match answer {
                Ok(live) => {
                    found.extend(live.map(|live| (index, Ok(live))));
                    self.count(1);
                }
                Err((problem, Severity::ThisObject)) => found.push((index, Err(problem))),
                Err((problem, Severity::Everything)) => return Err(Error::failed(problem)),
            }
        }
        Ok(found)
    }

    async fn one(&self, index: usize) -> (usize, std::result::Result<Option<Live>, (Problem, Severity)>) {
        let Wanted { resource, object } = &self.wanted[index];
        let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(self.default_namespace));
        let call = Call::get(resource, namespace, &object.name);
        let answer = match self.transport.send(&call).await {
            Ok(answer) => match json::live(&answer.body, resource) {
                Some(live) => Ok(Some(live)),
                None => Err((
                    errors::unexpected_response(self.transport.peer(), 200, "not an object"),
                    Severity::Everything,
                )),
            },
            // A missing object, namespace or resource all mean that the object does not exist.
            Err(Failure::Refused(status)) if status.code == 404 => Ok(None),
            Err(failure) => {
                let severity = if matches!(failure, Failure::Refused(ref status) if status.code != 401) {
                    Severity::ThisObject
                } else {
                    Severity::Everything
                };
                Err((failure.into_problem(&call, self.transport.peer()), severity))
            }
        };
        (index, answer)
    }

    /// Reads the wanted CRDs with a list of all CRDs. Returns `None` if the user is not allowed to list them.
    async fn by_list(&self, indices: &[usize]) -> Result<Option<Found>> {
        let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for &index in indices {
            by_name.entry(self.wanted[index].object.name.clone()).or_default().push(index);
        }
        let by_name = Arc::new(by_name);
        let crd = Resource::crd();
        let call = Call { verb: "list", resource: Some(&crd), ..Call::default() };
        let (mut counted, mut format, mut has_expired) = (0, Format::Protobuf, false);
        loop {
            match self.pages(&by_name, format, &mut counted).await {
                Ok(Some(found)) => {
                    self.count(indices.len().saturating_sub(counted));
                    return Ok(Some(found));
                }
                // A field of a newer server, for instance. In JSON nothing is lost.
                Ok(None) => format = Format::Json,
                Err(Failure::Refused(status)) if status.code == 403 => return Ok(None),
                // A list that takes longer than the server keeps its snapshot ends with 410. It is retried once.
                Err(Failure::Refused(status)) if status.code == 410 && !has_expired => has_expired = true,
                Err(Failure::Refused(status)) if status.code == 410 => break,
                Err(failure) => return Err(Error::failed(failure.into_problem(&call, self.transport.peer()))),
            }
        }
        Err(Error::failed(
            Problem::new(format!(
                "{} dropped the list of CustomResourceDefinitions twice while gantry read it",
                self.transport.peer().server
            ))
            .help("the connection is too slow for this many CRDs: run again, or deploy fewer manifests at a time"),
        ))
    }

    /// `counted` is how many of the wanted objects have been reported as read, including by an earlier attempt. Returns
    /// `None` if a page in Protocol Buffers could not be decoded.
    async fn pages(
        &self,
        by_name: &Arc<BTreeMap<String, Vec<usize>>>,
        format: Format,
        counted: &mut usize,
    ) -> std::result::Result<Option<Found>, Failure> {
        let endless = |why| Failure::sent(list::endless(self.transport, &Resource::crd(), why));
        let mut progress = Progress::default();
        let mut found = Found::new();
        let mut page = Some(self.page(None, format).await?);
        while let Some(content) = page {
            let (send, token) = oneshot::channel();
            let names = Arc::clone(by_name);
            let scan = tokio::task::spawn_blocking(move || scan(&content, &names, send));
            let next = async {
                match token.await {
                    Ok(Some(token)) => {
                        progress.check_token(&token).map_err(endless)?;
                        self.page(Some(&token), format).await.map(Some)
                    }
                    // The end of the list, or a scan that failed and returns its own error.
                    _ => Ok(None),
                }
            };
            let (scanned, next) = futures::join!(scan, next);
            let Scanned { found: scanned, objects } = match scanned {
                Ok(Ok(scanned)) => scanned,
                Ok(Err(Unreadable::Protobuf)) => return Ok(None),
                _ => return Err(Failure::sent(errors::unexpected_response(self.transport.peer(), 200, "not a list"))),
            };
            progress.page(objects).map_err(endless)?;
            found.extend(scanned);
            if let Some(more @ 1..) = found.len().checked_sub(*counted) {
                self.count(more);
                *counted = found.len();
            }
            page = next?;
        }
        Ok(Some(found))
    }

    async fn page(&self, token: Option<&str>, format: Format) -> std::result::Result<Encoded, Failure> {
        let crd = Resource::crd();
        let mut limit = PAGE;
        loop {
            let mut uri = format!("{}?limit={limit}", crd.path(None, None));
            if let Some(token) = token {
                uri.push_str("&continue=");
                uri.push_str(&encode(token));
            }
            let call = Call { verb: "list", resource: Some(&crd), uri, format, ..Call::default() };
            match self.transport.send_for_protobuf(&call).await {
                Err(Failure::TooLong(_)) if limit > 1 => limit /= 10,
                answer => return answer,
            }
        }
    }
}

/// What a failed read affects.
enum Severity {
    ThisObject,
    Everything,
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use serde_json::{Value, json};

    use super::super::fake_server::{self, Reply, Seen, status};
    use super::*;
    use crate::cluster::all;
    use crate::resource::ObjectRef;

    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

    fn pod(namespace: Option<&str>, name: &str) -> Wanted {
        let resource = Resource {
            group: String::new(),
            version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
            namespaced: true,
        };
        let namespace = namespace.map(Into::into);
        let object = ObjectRef { api_version: "v1".into(), kind: "Pod".into(), namespace, name: name.into() };
        Wanted { resource: resource.into(), object: object.into() }
    }

    fn many() -> Vec<Wanted> {
        (0..=FEW_CRDS).rev().map(|number| Wanted::crd(&format!("c{number:03}"))).collect()
    }

    fn item(name: &str) -> Value {
        json!({"metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "5"}, "spec": {"n": 1.0}})
    }

    fn names(answers: &[Option<Live>]) -> Vec<&str> {
        answers.iter().map(|live| live.as_ref().map_or("-", |live| live.uid.trim_start_matches("uid-"))).collect()
    }

    /// A server that has c000, c001, … and returns `size` of them per page.
    fn list(seen: &Seen, held: usize, size: usize) -> Reply {
        let start = seen.uri.split("continue=").nth(1).map_or(0, |token| token.parse().unwrap());
        let end = held.min(start + size);
        let token = if end < held { end.to_string() } else { String::new() };
        let items: Vec<Value> = (start..end).map(|number| item(&format!("c{number:03}"))).collect();
        fake_server::json(200, json!({"kind": "List", "metadata": {"continue": token}, "items": items}))
    }

    fn gone() -> Reply {
        status(410, "Expired", "The provided continue parameter is too old", json!({}))
    }

    #[tokio::test]
    async fn answers_stand_in_the_order_of_the_question() {
        let (target, seen) = fake_server::target(|seen| match seen.uri.rsplit('/').next().unwrap() {
            "gone" => status(404, "NotFound", "pods \"gone\" not found", json!({"name": "gone", "kind": "pods"})),
            "unrouted" => fake_server::plain(404, "text/plain; charset=utf-8", "404 page not found\n"),
            name => fake_server::json(200, item(name)),
        });
        let wanted = [
            pod(Some("a"), "z"),
            Wanted::crd("x"),
            pod(None, "gone"),
            Wanted::crd("unrouted"),
            pod(None, "b"),
            Wanted::crd("x"),
        ];
        let counts = Mutex::new(Vec::new());
        let on_read = |done: usize, total: Option<usize>| counts.lock().unwrap().push((done, total));
        let answers = target.read(&wanted, &on_read).await.and_then(all).unwrap();
        assert_eq!(names(&answers), ["z", "x", "-", "-", "b", "x"]);
        assert!(
            answers[1].as_ref().unwrap().raw.json().starts_with(r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"#)
        );
        assert_eq!(*counts.lock().unwrap(), (1..=6).map(|done| (done, Some(6))).collect::<Vec<_>>());
        let mut uris: Vec<_> = seen.lock().unwrap().iter().map(|seen| seen.uri.clone()).collect();
        uris.sort();
        assert_eq!(uris[0], "/api/v1/namespaces/a/pods/z");
        assert_eq!(uris[1], "/api/v1/namespaces/default/pods/b");
    }

    #[tokio::test]
    async fn many_crds_come_from_one_list_whatever_else_is_asked_for() {
        let (target, seen) = fake_server::target(|seen| match seen.uri.split_once('?') {
            Some(_) => list(seen, FEW_CRDS + 40, 50),
            None => fake_server::json(200, item("p")),
        });
        let mut wanted = many();
        wanted.push(pod(None, "p"));
        wanted.push(Wanted::crd("absent"));
        wanted.push(Wanted::crd("c007"));
        let last = AtomicUsize::new(0);
        let on_read = |done: usize, _: Option<usize>| last.store(done, Ordering::Relaxed);
        let answers = target.read(&wanted, &on_read).await.and_then(all).unwrap();
        let mut expected: Vec<String> = (0..=FEW_CRDS).rev().map(|number| format!("c{number:03}")).collect();
        expected.extend(["p", "-", "c007"].map(String::from));
        assert_eq!(names(&answers), expected);
        assert_eq!(last.load(Ordering::Relaxed), wanted.len());
        let seen = seen.lock().unwrap();
        assert_eq!(seen.iter().filter(|seen| seen.uri.starts_with(&format!("{CRDS}?limit="))).count(), 4);
        assert_eq!(seen.len(), 5);
    }

    #[tokio::test]
    async fn a_page_with_an_unknown_field_is_requested_as_json() {
        let listed = AtomicUsize::new(0);
        let (target, seen) = fake_server::target(move |seen| match listed.fetch_add(1, Ordering::Relaxed) {
            0 => fake_server::protobuf(200, b"k8s\0\xff\x01".to_vec()),
            _ => list(seen, FEW_CRDS + 1, 500),
        });
        let answers = target.read(&many(), &|_, _| ()).await.and_then(all).unwrap();
        assert_eq!(answers.iter().flatten().count(), FEW_CRDS + 1);
        let accepted: Vec<String> = seen.lock().unwrap().iter().map(|seen| seen.accept.clone()).collect();
        assert_eq!(accepted, ["application/vnd.kubernetes.protobuf,application/json", "application/json"]);
    }

    #[tokio::test]
    async fn a_refusal_in_protocol_buffers_is_understood() {
        // A `Status` with the code 403 only.
        let status = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x05\x0a\x00\x30\x93\x03".to_vec();
        let (target, _) = fake_server::target(move |seen| match seen.uri.contains('?') {
            true => fake_server::protobuf(403, status.clone()),
            false => fake_server::json(200, item(seen.uri.rsplit('/').next().unwrap())),
        });
        let answers = target.read(&many(), &|_, _| ()).await.and_then(all).unwrap();
        assert_eq!(answers.iter().flatten().count(), FEW_CRDS + 1);
    }

    #[tokio::test]
    async fn an_expired_list_is_read_anew_once() {
        for (expiries, is_read) in [(1, true), (2, false)] {
            let expired = AtomicUsize::new(0);
            let (target, _) = fake_server::target(move |seen| {
                if seen.uri.contains("continue=100") && expired.fetch_add(1, Ordering::Relaxed) < expiries {
                    return gone();
                }
                list(seen, FEW_CRDS + 1, 50)
            });
            match target.read(&many(), &|_, _| ()).await.and_then(all) {
                Ok(answers) => {
                    assert!(is_read);
                    assert_eq!(answers.iter().flatten().count(), FEW_CRDS + 1);
                }
                Err(error) => {
                    assert!(!is_read);
                    assert_eq!(
                        error.to_string(),
                        "https://10.0.0.1:6443 dropped the list of CustomResourceDefinitions twice while gantry read it"
                    );
                }
            }
        }
    }

    #[tokio::test]
    async fn who_may_not_list_reads_by_name() {
        let (target, _) = fake_server::target(|seen| match seen.uri.contains('?') {
            true => status(403, "Forbidden", "no", json!({})),
            false => fake_server::json(200, item(seen.uri.rsplit('/').next().unwrap())),
        });
        let answers = target.read(&many(), &|_, _| ()).await.and_then(all).unwrap();
        assert_eq!(answers.iter().flatten().count(), FEW_CRDS + 1);
    }

    #[tokio::test]
    async fn every_refusal_is_told_once() {
        let (target, _) = fake_server::target(|seen| {
            let resource = if seen.uri.contains("/pods/") { "pods" } else { "customresourcedefinitions" };
            let message = format!(
                r#"x is forbidden: User "u" cannot get resource "{resource}" in API group "g" at the cluster scope"#
            );
            status(403, "Forbidden", &message, json!({}))
        });
        let error = target
            .read(&[pod(None, "a"), Wanted::crd("a"), pod(None, "b"), Wanted::crd("b")], &|_, _| ())
            .await
            .and_then(all)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "user \"u\" may not get customresourcedefinitions.g at the cluster scope\nuser \"u\" may not get pods.g at the cluster scope"
        );
    }

    #[tokio::test]
    async fn what_is_no_list_is_refused_and_not_taken_for_an_empty_one() {
        for body in [
            "{}",
            r#"{"items":[]}"#,
            r#"{"metadata":{}}"#,
            r#"{"metadata":{},"items":[{}]}"#,
            r#"{"metadata":{},"items":["#,
        ] {
            let (target, _) = fake_server::target(move |_| fake_server::json(200, body));
            let error = target.read(&many(), &|_, _| ()).await.and_then(all).unwrap_err();
            assert!(error.to_string().contains("does not answer like a Kubernetes API server"), "{body}: {error}");
        }
    }
}
