//! Discovery: where the API server serves each kind, and whether it serves a new CRD yet.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use futures::stream::{self, StreamExt};
use serde::Deserialize;

use super::errors::{self, words};
use super::request::{ApiRequest, RequestError, encode};
use super::transport::Transport;
use crate::{Discovered, Established, Gvk};
use gantry_core::crd::Crd;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::rbac::or_default;
use gantry_core::resource::{ObjectRef, Resource};

/// The number of concurrent discovery requests.
const CONCURRENCY: usize = 32;

/// The discovery document of one group version.
#[derive(Deserialize)]
struct ResourceList {
    /// An answer without it is not from an API server. Go writes null for an empty list.
    #[serde(deserialize_with = "or_default")]
    resources: Vec<DiscoveryResource>,
}

#[derive(Deserialize)]
pub(super) struct DiscoveryResource {
    pub name: String,
    pub kind: String,
    pub namespaced: bool,
    /// Empty if the server does not list them.
    #[serde(default)]
    pub verbs: Vec<String>,
}

/// Finds out where each kind is served.
pub async fn discover(transport: &Transport, kinds: &BTreeSet<Gvk>) -> Result<Discovered> {
    let crd = Resource::crd();
    let is_crd = |kind: &Gvk| (&kind.group, &kind.version, &kind.kind) == (&crd.group, &crd.version, &crd.kind);
    let versions: BTreeSet<(&str, &str)> =
        kinds.iter().filter(|kind| !is_crd(kind)).map(|kind| (kind.group.as_str(), kind.version.as_str())).collect();
    // Collected first, because the compiler cannot prove that a stream of closures over references is `Send`.
    let requests: Vec<_> = versions
        .into_iter()
        .map(|(group, version)| async move { ((group, version), served(transport, group, version).await) })
        .collect();
    let mut answers = stream::iter(requests).buffer_unordered(CONCURRENCY);

    let mut served = BTreeMap::new();
    let mut down = BTreeMap::new();
    while let Some((version, answer)) = answers.next().await {
        match answer {
            Ok(resources) => {
                served.insert(version, resources);
            }
            Err(DiscoveryFailure::ThisOne(problem)) => {
                down.insert(version, problem);
            }
            Err(DiscoveryFailure::Everything(problem)) => return Err(Error::failed(problem)),
        }
    }
    let place = |kind: &Gvk| {
        if is_crd(kind) {
            return Some(crd.clone());
        }
        let resource = entry(&served, kind)?;
        Some(Resource {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            plural: resource.name.clone(),
            namespaced: resource.namespaced,
        })
    };
    let unanswered = |kind: &Gvk| down.get(&(kind.group.as_str(), kind.version.as_str())).cloned();
    let unwritable = |kind: &Gvk| {
        let verbs = &entry(&served, kind)?.verbs;
        (!verbs.is_empty() && !verbs.iter().any(|verb| verb == "patch")).then(|| verbs.clone())
    };
    Ok(Discovered {
        served: kinds.iter().filter_map(|kind| Some((kind.clone(), place(kind)?))).collect(),
        unanswered: kinds.iter().filter_map(|kind| Some((kind.clone(), unanswered(kind)?))).collect(),
        unwritable: kinds.iter().filter_map(|kind| Some((kind.clone(), unwritable(kind)?))).collect(),
    })
}

fn entry<'s>(
    served: &'s BTreeMap<(&str, &str), Vec<DiscoveryResource>>,
    kind: &'s Gvk,
) -> Option<&'s DiscoveryResource> {
    let resources = served.get(&(kind.group.as_str(), kind.version.as_str()))?;
    // Subresources such as `pods/status` also have a kind, but contain no objects.
    resources.iter().find(|resource| resource.kind == kind.kind && !resource.name.contains('/'))
}

pub(super) enum DiscoveryFailure {
    ThisOne(Problem),
    Everything(Problem),
}

/// The resources of one group version; empty if the server does not know it.
pub(super) async fn served(
    transport: &Transport,
    group: &str,
    version: &str,
) -> std::result::Result<Vec<DiscoveryResource>, DiscoveryFailure> {
    let any = Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: String::new(),
        plural: String::new(),
        namespaced: false,
    };
    let uri = any.version_path();
    let call = ApiRequest { uri, ..ApiRequest::default() };
    match transport.send(&call).await {
        Ok(answer) => match serde_json::from_str::<ResourceList>(&answer.body) {
            Ok(list) => Ok(list.resources),
            Err(_) => Err(DiscoveryFailure::Everything(errors::unexpected_response(
                transport.peer(),
                answer.code.as_u16(),
                "not a resource list",
            ))),
        },
        Err(RequestError::Refused(status)) if status.code == 404 => Ok(Vec::new()),
        Err(RequestError::Misnamed(_)) => Ok(Vec::new()),
        Err(failure) => {
            let about_this = matches!(&failure, RequestError::Refused(status) if status.code != 401);
            let problem = failure.into_problem(&call, transport.peer());
            Err(if about_this { DiscoveryFailure::ThisOne(problem) } else { DiscoveryFailure::Everything(problem) })
        }
    }
}

/// The state of a CRD on the server.
#[derive(Deserialize)]
struct CrdServingState {
    metadata: CrdDeletionMetadata,
    #[serde(default)]
    status: Option<CrdServingStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CrdDeletionMetadata {
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct CrdServingStatus {
    #[serde(default)]
    conditions: Option<Vec<ApiServiceCondition>>,
}

#[derive(Deserialize)]
struct ApiServiceCondition {
    #[serde(rename = "type")]
    name: String,
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
}

impl ApiServiceCondition {
    fn explained(&self) -> String {
        words(&format!("{}: {}", self.reason, self.message))
    }
}

/// The OpenAPI v3 document of a group version. By default every authenticated user is allowed to read it. Without it,
/// gantry can predict less, but nothing fails.
pub async fn openapi(transport: &Transport, group: &str, version: &str) -> Option<String> {
    let uri = match group {
        "" => format!("/openapi/v3/api/{}", encode(version)),
        group => format!("/openapi/v3/apis/{}/{}", encode(group), encode(version)),
    };
    let answer = transport.send(&ApiRequest { uri, ..ApiRequest::default() }).await;
    answer.ok().map(|answer| answer.body)
}

/// Whether the CRD is served: its conditions say so, and discovery lists every served version. Discovery is requested in
/// parallel for the versions that are `expected`.
pub async fn established(transport: &Transport, crd: &ObjectRef, expected: &[&str]) -> Result<Established> {
    let resource = Resource::crd();
    let call = ApiRequest::get(&resource, None, &crd.name);
    let fail =
        |failure: RequestError, call: &ApiRequest<'_>| Error::failed(failure.into_problem(call, transport.peer()));
    let (_, of_name) = crd.name.split_once('.').unwrap_or_default();
    let ahead = expected.iter().map(|version| served(transport, of_name, version));
    let (answer, ahead) = futures::join!(transport.send(&call), join_all(ahead));
    let answer = match answer {
        Ok(answer) => answer,
        Err(RequestError::Refused(status)) if status.code == 404 => {
            return Ok(Established::Never("it was deleted in the meantime".to_owned()));
        }
        Err(failure) => return Err(fail(failure, &call)),
    };
    let unexpected =
        || Error::failed(errors::unexpected_response(transport.peer(), 200, "not a CustomResourceDefinition"));
    let state: CrdServingState = serde_json::from_str(&answer.body).map_err(|_| unexpected())?;
    let crd = Crd::parse(&answer.body).map_err(|_| unexpected())?;
    let by_conditions = match established_by_conditions(&state) {
        Established::Never(said) => Established::Never(transport.hidden(&said)),
        Established::NotYet(said) => Established::NotYet(transport.hidden(&said)),
        Established::Yes => Established::Yes,
    };
    if by_conditions != Established::Yes {
        return Ok(by_conditions);
    }
    // Conditions are written a moment before the handlers are in place.
    let is_listed = |resources: &[DiscoveryResource]| {
        resources.iter().any(|resource| resource.name == crd.names.plural && of_name == crd.group)
    };
    // An answer that lacks the CRD may be older than the conditions.
    let known = expected.iter().zip(ahead).filter(|(_, answer)| answer.as_ref().is_ok_and(|found| is_listed(found)));
    let known: BTreeSet<&str> = known.map(|(version, _)| *version).collect();
    let versions: Vec<_> = crd.served_versions().filter(|version| !known.contains(&*version.name)).collect();
    let answers = join_all(versions.iter().map(|version| served(transport, &crd.group, &version.name))).await;
    for (version, answer) in versions.into_iter().zip(answers) {
        let resources = answer.map_err(|unserved| match unserved {
            DiscoveryFailure::ThisOne(problem) | DiscoveryFailure::Everything(problem) => Error::failed(problem),
        })?;
        if !resources.iter().any(|resource| resource.name == crd.names.plural) {
            return Ok(Established::NotYet(format!("version {} is not served yet", words(&version.name))));
        }
    }
    Ok(Established::Yes)
}

fn established_by_conditions(state: &CrdServingState) -> Established {
    if state.metadata.deletion_timestamp.is_some() {
        return Established::Never("it is being deleted".to_owned());
    }
    let conditions = state.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let condition = |name: &str| conditions.clone().find(|condition| condition.name == name);
    match (condition("NamesAccepted"), condition("Established")) {
        (Some(names), _) if names.status == "False" => Established::Never(names.explained()),
        (Some(names), Some(established))
            if (names.status.as_str(), established.status.as_str()) == ("True", "True") =>
        {
            Established::Yes
        }
        (_, Some(established)) if established.status != "True" => Established::NotYet(established.explained()),
        _ => Established::NotYet("the server has not processed it yet".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::{Value, json};

    use super::super::fake_server::{self, status, text_reply};
    use super::*;
    use gantry_core::crd::builder::CrdBuilder;

    fn kind(api_version: &str, kind: &str) -> Gvk {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Gvk { group: group.into(), version: version.into(), kind: kind.into() }
    }

    fn crd_ref() -> ObjectRef {
        ObjectRef::crd("samples.test.example.com")
    }

    #[tokio::test]
    async fn kinds_are_found_with_one_request_for_each_version() {
        let (target, seen) = fake_server::target(|seen| match seen.uri.as_str() {
            "/api/v1" => fake_server::json(
                200,
                json!({"resources": [
                {"name": "pods/status", "kind": "Pod", "namespaced": false},
                {"name": "pods", "kind": "Pod", "namespaced": true},
                {"name": "namespaces", "kind": "Namespace", "namespaced": false}]}),
            ),
            "/apis/old.example.com/v1" => text_reply(404, "text/plain; charset=utf-8", "404 page not found\n"),
            _ => status(404, "NotFound", "the server could not find the requested resource", json!({})),
        });
        let kinds = BTreeSet::from([
            kind("v1", "Pod"),
            kind("v1", "Namespace"),
            kind("v1", "Pot"),
            kind("apps/v9", "Deployment"),
            kind("old.example.com/v1", "Old"),
            kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ]);
        let found = target.discover(&kinds).await.unwrap().served;
        let found: Vec<_> = found.values().map(|resource| (resource.plural.as_str(), resource.namespaced)).collect();
        assert_eq!(found, [("namespaces", false), ("pods", true), ("customresourcedefinitions", false)]);
        let mut uris: Vec<_> = seen.lock().unwrap().iter().map(|seen| seen.uri.clone()).collect();
        uris.sort();
        assert_eq!(uris, ["/api/v1", "/apis/apps/v9", "/apis/old.example.com/v1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_that_is_down_is_reported_and_not_taken_for_absent() {
        let (target, _) = fake_server::target(|seen| match seen.uri.as_str() {
            "/apis/metrics.k8s.io/v1" => text_reply(503, "text/plain; charset=utf-8", "service unavailable\n"),
            _ => fake_server::json(200, json!({"resources": []})),
        });
        let kinds = BTreeSet::from([kind("metrics.k8s.io/v1", "X"), kind("v1", "Y")]);
        let found = target.discover(&kinds).await.unwrap();
        assert_eq!(found.served, BTreeMap::new());
        let [(unanswered, problem)] = &found.unanswered.iter().collect::<Vec<_>>()[..] else { panic!("{found:?}") };
        assert_eq!(**unanswered, kind("metrics.k8s.io/v1", "X"));
        assert_eq!(problem.message, "/apis/metrics.k8s.io/v1 is not available (503): service unavailable");
    }

    #[tokio::test]
    async fn json_that_is_not_a_list_of_resources_is_not_an_empty_one() {
        for body in [json!({}), json!([]), json!({"error": "login required"}), json!({"kind": "Status", "code": 200})] {
            let answer = body.clone();
            let (target, _) = fake_server::target(move |_| fake_server::json(200, answer.clone()));
            let error = target.discover(&BTreeSet::from([kind("v1", "Pod")])).await.expect_err("an error");
            let message = "does not answer like a Kubernetes API server (200, not a resource list)";
            assert!(matches!(error, Error::Failed(_)) && error.to_string().contains(message), "{body}: {error}");
        }
        let (target, _) = fake_server::target(|_| fake_server::json(200, json!({"resources": null})));
        assert!(target.discover(&BTreeSet::from([kind("v1", "Pod")])).await.unwrap().served.is_empty());
    }

    fn crd(conditions: Value) -> Value {
        let object = || json!({"type": "object"});
        let crd = CrdBuilder::samples("test.example.com").version("v1", object()).version("v0", object()).served(false);
        let mut crd = crd.build();
        crd["status"] = json!({"conditions": conditions});
        crd
    }

    #[tokio::test]
    async fn a_crd_is_established_once_discovery_shows_it() {
        let asked = AtomicUsize::new(0);
        let (target, _) = fake_server::target(move |seen| match seen.uri.as_str() {
            "/apis/test.example.com/v1" if asked.fetch_add(1, Ordering::Relaxed) == 0 => {
                text_reply(404, "text/plain", "404 page not found")
            }
            "/apis/test.example.com/v1" => fake_server::json(
                200,
                json!({"resources": [{"name": "samples", "kind": "Sample", "namespaced": true}]}),
            ),
            _ => fake_server::json(
                200,
                crd(json!([
                {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}])),
            ),
        });
        let first = target.established(&crd_ref(), &[]).await.unwrap();
        assert_eq!(first, Established::NotYet("version v1 is not served yet".into()));
        assert_eq!(target.established(&crd_ref(), &[]).await.unwrap(), Established::Yes);
    }

    #[tokio::test]
    async fn a_crd_that_will_never_be_served_is_distinguished_from_one_that_is_not_served_yet() {
        let refused =
            json!({"type": "NamesAccepted", "status": "False", "reason": "KindConflict", "message": "\"X\" is taken"});
        let waiting = json!({"type": "Established", "status": "False", "reason": "Installing", "message": "soon"});
        let mut going = crd(json!([]));
        going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        for (crd, expected) in [
            (crd(Value::Null), Established::NotYet("the server has not processed it yet".into())),
            (crd(json!([waiting])), Established::NotYet("Installing: soon".into())),
            (crd(json!([waiting, refused])), Established::Never("KindConflict: \"X\" is taken".into())),
            (going, Established::Never("it is being deleted".into())),
        ] {
            let (target, _) = fake_server::target(move |_| fake_server::json(200, &crd));
            assert_eq!(target.established(&crd_ref(), &[]).await.unwrap(), expected);
        }
        let (target, _) = fake_server::target(|_| status(404, "NotFound", "gone", json!({})));
        assert_eq!(
            target.established(&crd_ref(), &[]).await.unwrap(),
            Established::Never("it was deleted in the meantime".into())
        );
    }
}
