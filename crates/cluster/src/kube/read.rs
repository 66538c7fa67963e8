//! Reads live objects: a few CRDs by name, many with one paged list, everything else by name. Requests run
//! concurrently.

mod crd_list;

use std::sync::atomic::{AtomicUsize, Ordering};

use futures::stream::{self, StreamExt};

use super::errors;
use super::json;
use super::page::ObjectsOnPage;
use super::request::{ApiRequest, RequestError};
use super::transport::Transport;
use crate::{ObjectToRead, OnRead, ReadResult};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{LiveObject, Resource};

/// Up to this many CRDs are read by name. A `GET` costs as much as about two CRDs of a list, and the number of CRDs on
/// the server is unknown. This many `GET`s take as long as a list of about 250 CRDs, and a sixth of the time of a list
/// of 1,500.
const FEW_CRDS: usize = 128;
/// The number of concurrent requests for single objects. On loopback 16 are as fast; to a distant server each batch takes
/// a round trip. A server with HTTP/2 accepts 100 on a connection.
const CONCURRENCY: usize = 64;

/// Reads the wanted objects: one result each, in order.
pub async fn read(
    transport: &Transport,
    default_namespace: &str,
    wanted: &[ObjectToRead],
    on_read: OnRead<'_>,
) -> Result<Vec<ReadResult>> {
    let reader = ObjectReader { transport, default_namespace, wanted, on_read, done: AtomicUsize::new(0) };
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
    let mut answers: Vec<ReadResult> = std::iter::repeat_with(|| Ok(None)).take(wanted.len()).collect();
    for (index, read) in found {
        answers[index] = read.map(Some);
    }
    Ok(answers)
}

struct ObjectReader<'a> {
    transport: &'a Transport,
    default_namespace: &'a str,
    wanted: &'a [ObjectToRead],
    on_read: OnRead<'a>,
    done: AtomicUsize,
}

impl ObjectReader<'_> {
    fn report_read(&self, more: usize) {
        let done = self.done.fetch_add(more, Ordering::Relaxed) + more;
        (self.on_read)(done.min(self.wanted.len()), Some(self.wanted.len()));
    }

    /// Reports objects as read, unless an earlier attempt reported as many.
    fn report_read_up_to(&self, read: usize, counted: &mut usize) {
        if let Some(more @ 1..) = read.checked_sub(*counted) {
            self.report_read(more);
            *counted = read;
        }
    }

    /// Sends one `GET` for each. A refusal can concern only one kind or namespace; a lost connection ends it
    /// immediately.
    async fn by_name(&self, indices: Vec<usize>) -> Result<ObjectsOnPage> {
        let mut answers = stream::iter(indices).map(|index| self.read_one(index)).buffer_unordered(CONCURRENCY);
        let mut found = ObjectsOnPage::new();
        while let Some((index, answer)) = answers.next().await {
            match answer {
                Ok(live) => {
                    found.extend(live.map(|live| (index, Ok(live))));
                    self.report_read(1);
                }
                Err((problem, ReadFailureScope::ThisObject)) => found.push((index, Err(problem))),
                Err((problem, ReadFailureScope::Everything)) => return Err(Error::failed(problem)),
            }
        }
        Ok(found)
    }

    async fn read_one(
        &self,
        index: usize,
    ) -> (usize, std::result::Result<Option<LiveObject>, (Problem, ReadFailureScope)>) {
        let ObjectToRead { resource, object } = &self.wanted[index];
        let namespace = resource.namespaced.then(|| object.namespace.as_deref().unwrap_or(self.default_namespace));
        let call = ApiRequest::get(resource, namespace, &object.name);
        let answer = match self.transport.send(&call).await {
            Ok(answer) => match json::live(&answer.body, resource) {
                Some(live) => Ok(Some(live)),
                None => Err((
                    errors::unexpected_response(self.transport.peer(), 200, "not an object"),
                    ReadFailureScope::Everything,
                )),
            },
            // A missing object, namespace or resource all mean that the object does not exist.
            Err(RequestError::Refused(status)) if status.code == 404 => Ok(None),
            // No object can have such a name.
            Err(RequestError::Misnamed(_)) => Ok(None),
            Err(failure) => {
                let severity = if matches!(failure, RequestError::Refused(ref status) if status.code != 401) {
                    ReadFailureScope::ThisObject
                } else {
                    ReadFailureScope::Everything
                };
                Err((failure.into_problem(&call, self.transport.peer()), severity))
            }
        };
        (index, answer)
    }
}

/// What a failed read affects.
enum ReadFailureScope {
    ThisObject,
    Everything,
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use serde_json::{Value, json};

    use super::super::fake_server::{self, ReceivedRequest, Reply, status};
    use super::*;
    use crate::collect_reads;
    use gantry_core::resource::ObjectRef;

    const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

    fn pod(namespace: Option<&str>, name: &str) -> ObjectToRead {
        let resource = Resource {
            group: String::new(),
            version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
            namespaced: true,
        };
        let namespace = namespace.map(Into::into);
        let object = ObjectRef { api_version: "v1".into(), kind: "Pod".into(), namespace, name: name.into() };
        ObjectToRead { resource: resource.into(), object: object.into() }
    }

    /// Of a group that the server may not serve.
    fn custom(name: &str) -> ObjectToRead {
        let resource = Resource {
            group: "shop.example.com".into(),
            version: "v1".into(),
            kind: "Shop".into(),
            plural: "shops".into(),
            namespaced: false,
        };
        let api_version = resource.api_version();
        let object = ObjectRef { api_version, kind: "Shop".into(), namespace: None, name: name.into() };
        ObjectToRead { resource: resource.into(), object: object.into() }
    }

    fn many() -> Vec<ObjectToRead> {
        (0..=FEW_CRDS).rev().map(|number| ObjectToRead::crd(&format!("c{number:03}"))).collect()
    }

    fn item(name: &str) -> Value {
        json!({"metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "5"}, "spec": {"n": 1.0}})
    }

    fn names(answers: &[Option<LiveObject>]) -> Vec<&str> {
        answers.iter().map(|live| live.as_ref().map_or("-", |live| live.uid.trim_start_matches("uid-"))).collect()
    }

    /// A server that has c000, c001, … and returns `size` of them per page.
    fn list(seen: &ReceivedRequest, held: usize, size: usize) -> Reply {
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
    async fn answers_are_in_the_order_of_the_question() {
        let (target, seen) = fake_server::target(|seen| match seen.uri.rsplit('/').next().unwrap() {
            "gone" => status(404, "NotFound", "pods \"gone\" not found", json!({"name": "gone", "kind": "pods"})),
            "unrouted" => fake_server::text_reply(404, "text/plain; charset=utf-8", "404 page not found\n"),
            name => fake_server::json(200, item(name)),
        });
        let wanted = [
            pod(Some("a"), "z"),
            ObjectToRead::crd("x"),
            pod(None, "gone"),
            custom("unrouted"),
            pod(None, "b"),
            ObjectToRead::crd("x"),
        ];
        let counts = Mutex::new(Vec::new());
        let on_read = |done: usize, total: Option<usize>| counts.lock().unwrap().push((done, total));
        let answers = target.read(&wanted, &on_read).await.and_then(collect_reads).unwrap();
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
    async fn many_crds_are_read_with_one_list_beside_other_objects() {
        let (target, seen) = fake_server::target(|seen| match seen.uri.split_once('?') {
            Some(_) => list(seen, FEW_CRDS + 40, 50),
            None => fake_server::json(200, item("p")),
        });
        let mut wanted = many();
        wanted.push(pod(None, "p"));
        wanted.push(ObjectToRead::crd("absent"));
        wanted.push(ObjectToRead::crd("c007"));
        let last = AtomicUsize::new(0);
        let on_read = |done: usize, _: Option<usize>| last.store(done, Ordering::Relaxed);
        let answers = target.read(&wanted, &on_read).await.and_then(collect_reads).unwrap();
        let mut expected: Vec<String> = (0..=FEW_CRDS).rev().map(|number| format!("c{number:03}")).collect();
        expected.extend(["p", "-", "c007"].map(String::from));
        assert_eq!(names(&answers), expected);
        assert_eq!(last.load(Ordering::Relaxed), wanted.len());
        let seen = seen.lock().unwrap();
        assert_eq!(seen.iter().filter(|seen| seen.uri.starts_with(&format!("{CRDS}?limit="))).count(), 4);
        // The first request is for Protocol Buffers, which this server does not have.
        assert_eq!((seen.len(), seen.iter().filter(|seen| seen.uri == CRDS).count()), (6, 1));
    }

    #[tokio::test]
    async fn a_list_with_an_unknown_field_is_requested_as_json() {
        let listed = AtomicUsize::new(0);
        let (target, seen) = fake_server::target(move |seen| match listed.fetch_add(1, Ordering::Relaxed) {
            0 => fake_server::protobuf(200, b"k8s\0\xff\x01".to_vec()),
            _ => list(seen, FEW_CRDS + 1, 500),
        });
        let answers = target.read(&many(), &|_, _| ()).await.and_then(collect_reads).unwrap();
        assert_eq!(answers.iter().flatten().count(), FEW_CRDS + 1);
        let accepted: Vec<String> = seen.lock().unwrap().iter().map(|seen| seen.accept.clone()).collect();
        assert_eq!(accepted, ["application/vnd.kubernetes.protobuf,application/json", "application/json"]);
    }

    #[tokio::test(start_paused = true)]
    async fn pages_are_read_if_the_whole_list_takes_too_long() {
        let (target, seen) = fake_server::target(|seen| match seen.uri.contains('?') {
            true => list(seen, FEW_CRDS + 1, 100),
            false => fake_server::no_reply(),
        });
        let answers = target.read(&many(), &|_, _| ()).await.and_then(collect_reads).unwrap();
        assert_eq!(answers.iter().flatten().count(), FEW_CRDS + 1);
        assert_eq!(seen.lock().unwrap().len(), 3);
    }

    #[tokio::test]
    async fn a_refusal_in_protocol_buffers_is_understood() {
        // A `Status` with the code 403 only.
        let status = b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Status\x12\x05\x0a\x00\x30\x93\x03".to_vec();
        let (target, _) = fake_server::target(move |seen| match seen.uri.contains('?') {
            true => fake_server::protobuf(403, status.clone()),
            false => fake_server::json(200, item(seen.uri.rsplit('/').next().unwrap())),
        });
        let answers = target.read(&many(), &|_, _| ()).await.and_then(collect_reads).unwrap();
        assert_eq!(answers.iter().flatten().count(), FEW_CRDS + 1);
    }

    #[tokio::test]
    async fn an_expired_list_is_read_again_once() {
        for (expiries, is_read) in [(1, true), (2, false)] {
            let expired = AtomicUsize::new(0);
            let (target, _) = fake_server::target(move |seen| {
                if seen.uri.contains("continue=100") && expired.fetch_add(1, Ordering::Relaxed) < expiries {
                    return gone();
                }
                list(seen, FEW_CRDS + 1, 50)
            });
            match target.read(&many(), &|_, _| ()).await.and_then(collect_reads) {
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
    async fn a_user_who_may_not_list_reads_by_name() {
        let (target, _) = fake_server::target(|seen| match seen.uri.contains('?') {
            true => status(403, "Forbidden", "no", json!({})),
            false => fake_server::json(200, item(seen.uri.rsplit('/').next().unwrap())),
        });
        let answers = target.read(&many(), &|_, _| ()).await.and_then(collect_reads).unwrap();
        assert_eq!(answers.iter().flatten().count(), FEW_CRDS + 1);
    }

    #[tokio::test]
    async fn every_refusal_is_reported_once() {
        let (target, _) = fake_server::target(|seen| {
            let resource = if seen.uri.contains("/pods/") { "pods" } else { "customresourcedefinitions" };
            let message = format!(
                r#"x is forbidden: User "u" cannot get resource "{resource}" in API group "g" at the cluster scope"#
            );
            status(403, "Forbidden", &message, json!({}))
        });
        let error = target
            .read(&[pod(None, "a"), ObjectToRead::crd("a"), pod(None, "b"), ObjectToRead::crd("b")], &|_, _| ())
            .await
            .and_then(collect_reads)
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "user \"u\" may not get customresourcedefinitions.g at the cluster scope\nuser \"u\" may not get pods.g at the cluster scope"
        );
    }

    #[tokio::test]
    async fn an_answer_that_is_not_a_list_is_refused_and_not_taken_for_an_empty_list() {
        for body in [
            "{}",
            r#"{"items":[]}"#,
            r#"{"metadata":{}}"#,
            r#"{"metadata":{},"items":[{}]}"#,
            r#"{"metadata":{},"items":["#,
        ] {
            let (target, _) = fake_server::target(move |_| fake_server::json(200, body));
            let error = target.read(&many(), &|_, _| ()).await.and_then(collect_reads).unwrap_err();
            assert!(error.to_string().contains("does not answer like a Kubernetes API server"), "{body}: {error}");
        }
    }
}
