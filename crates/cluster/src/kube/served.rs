//! Everything that the API server serves, and its release: for suggestions, and to find deprecated versions.

use futures::stream::{self, StreamExt};
use serde::Deserialize;

use super::discover;
use super::errors;
use super::request::ApiRequest;
use super::transport::Transport;
use gantry_core::problem::{Error, Result};
use gantry_core::resource::Resource;
use gantry_k8s_cel::KubernetesRelease;

/// The number of concurrent requests for group versions, on a server without aggregated discovery.
const CONCURRENCY: usize = 8;

/// The response to `/api` or `/apis`: all kinds or, from an older server, only the names of the versions.
#[derive(Deserialize)]
struct DiscoveryDocument {
    #[serde(default)]
    items: Vec<DiscoveredGroup>,
    #[serde(default)]
    groups: Vec<OldGroup>,
    #[serde(default)]
    versions: Vec<String>,
}

#[derive(Deserialize)]
struct DiscoveredGroup {
    #[serde(default)]
    metadata: ApiGroupMetadata,
    #[serde(default)]
    versions: Vec<DiscoveredVersion>,
}

#[derive(Deserialize, Default)]
struct ApiGroupMetadata {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct DiscoveredVersion {
    version: String,
    #[serde(default)]
    resources: Vec<DiscoveredResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoveredResource {
    resource: String,
    #[serde(default)]
    response_kind: Option<ResponseKind>,
    scope: String,
    /// Empty if the server does not list them.
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    kind: String,
}

#[derive(Deserialize)]
struct OldGroup {
    name: String,
    versions: Vec<OldVersion>,
}

#[derive(Deserialize)]
struct OldVersion {
    version: String,
}

/// A kind at one version, and its verbs.
pub struct ServedResource {
    pub resource: Resource,
    verbs: Vec<String>,
}

impl ServedResource {
    /// Whether its objects are stored and can be listed. Request-only kinds, such as reviews, can only be created.
    pub fn can_list(&self) -> bool {
        self.verbs.is_empty() || self.verbs.iter().any(|verb| verb == "list")
    }
}

/// Every kind at each version, sorted. APIs that are down are omitted.
pub async fn served(transport: &Transport) -> Result<Vec<ServedResource>> {
    let (core, groups) = futures::try_join!(document(transport, "/api"), document(transport, "/apis"))?;
    let mut resources = Vec::new();
    let mut names = Vec::new();
    for DiscoveryDocument { items, groups, versions } in [core, groups] {
        for group in items {
            let name = group.metadata.name;
            for DiscoveredVersion { version, resources: entries } in group.versions {
                resources.extend(entries.into_iter().filter_map(|entry| {
                    let resource = Resource {
                        group: name.clone(),
                        version: version.clone(),
                        kind: entry.response_kind?.kind,
                        plural: entry.resource,
                        namespaced: entry.scope == "Namespaced",
                    };
                    Some(ServedResource { resource, verbs: entry.verbs })
                }));
            }
        }
        names.extend(versions.into_iter().map(|version| (String::new(), version)));
        for OldGroup { name, versions } in groups {
            names.extend(versions.into_iter().map(|OldVersion { version }| (name.clone(), version)));
        }
    }
    let mut lists = stream::iter(names)
        .map(|(group, version)| async move {
            let list = discover::served(transport, &group, &version).await;
            (group, version, list.unwrap_or_default())
        })
        .buffer_unordered(CONCURRENCY);
    while let Some((group, version, list)) = lists.next().await {
        resources.extend(list.into_iter().filter(|entry| !entry.name.contains('/')).map(|entry| {
            let resource = Resource {
                group: group.clone(),
                version: version.clone(),
                kind: entry.kind,
                plural: entry.name,
                namespaced: entry.namespaced,
            };
            ServedResource { resource, verbs: entry.verbs }
        }));
    }
    resources.sort_by(|a, b| a.resource.cmp(&b.resource));
    Ok(resources)
}

async fn document(transport: &Transport, uri: &str) -> Result<DiscoveryDocument> {
    let call = ApiRequest { uri: uri.to_owned(), ..ApiRequest::default() };
    let answer = transport.send(&call).await;
    let answer = answer.map_err(|failure| Error::failed(failure.into_problem(&call, transport.peer())))?;
    let unexpected = |_| {
        Error::failed(errors::unexpected_response(transport.peer(), answer.code.as_u16(), "not a list of API groups"))
    };
    serde_json::from_str(&answer.body).map_err(unexpected)
}

/// The release in `/version`; some servers write their minor version as `36+`.
pub async fn release(transport: &Transport) -> Option<KubernetesRelease> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RawServerVersion {
        major: String,
        minor: String,
        /// Set if the server behaves as an earlier release: `--emulated-version`.
        #[serde(default)]
        emulation_major: String,
        #[serde(default)]
        emulation_minor: String,
    }
    let answer = transport.send(&ApiRequest { uri: "/version".to_owned(), ..ApiRequest::default() }).await.ok()?;
    let version: RawServerVersion = serde_json::from_str(&answer.body).ok()?;
    let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    let release = |major: &str, minor: &str| Some(KubernetesRelease { major: number(major)?, minor: number(minor)? });
    let emulated = release(&version.emulation_major, &version.emulation_minor);
    emulated.or_else(|| release(&version.major, &version.minor))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fake_server::{self, text_reply};
    use super::*;

    fn names(resources: &[Resource]) -> Vec<String> {
        let name = |r: &Resource| format!("{}/{} {} {} {}", r.group, r.version, r.kind, r.plural, r.namespaced);
        resources.iter().map(name).collect()
    }

    #[tokio::test]
    async fn discovery_needs_one_document_for_each_prefix() {
        let entry = |plural: &str, kind: &str, scope: &str| json!({"resource": plural, "scope": scope, "responseKind": {"group": "", "version": "", "kind": kind}});
        let (target, seen) = fake_server::target(move |seen| {
            let items = match seen.uri.as_str() {
                "/api" => json!([{"metadata": {}, "versions": [{"version": "v1", "resources": [
                    entry("pods", "Pod", "Namespaced")], "freshness": "Current"}]}]),
                "/apis" => json!([
                    {"metadata": {"name": "t.example.com"}, "versions": [
                        {"version": "v1", "resources": [entry("samples", "Sample", "Cluster"),
                            {"resource": "odd", "scope": "Cluster"}]}]},
                    {"metadata": {"name": "down.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}]),
                other => panic!("{other}"),
            };
            fake_server::json(200, json!({"kind": "APIGroupDiscoveryList", "items": items}))
        });
        let served = target.served().await.unwrap();
        assert_eq!(names(&served), ["/v1 Pod pods true", "t.example.com/v1 Sample samples false"]);
        assert_eq!(seen.lock().unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn discovery_of_an_older_server_requests_each_version() {
        let list = |plural: &str, kind: &str| {
            json!({"resources": [{"name": plural, "kind": kind, "namespaced": true},
                {"name": format!("{plural}/status"), "kind": kind, "namespaced": true}]})
        };
        let (target, _) = fake_server::target(move |seen| match seen.uri.as_str() {
            "/api" => fake_server::json(200, json!({"kind": "APIVersions", "versions": ["v1"]})),
            "/apis" => {
                let versions = |names: &[&str]| names.iter().map(|name| json!({"version": name})).collect::<Vec<_>>();
                let groups = json!([{"name": "apps", "versions": versions(&["v1"])},
                    {"name": "down", "versions": versions(&["v1"])}]);
                fake_server::json(200, json!({"kind": "APIGroupList", "groups": groups}))
            }
            "/api/v1" => fake_server::json(200, list("pods", "Pod")),
            "/apis/apps/v1" => fake_server::json(200, list("deployments", "Deployment")),
            _ => text_reply(503, "text/plain", "service unavailable"),
        });
        let served = target.served().await.unwrap();
        assert_eq!(names(&served), ["/v1 Pod pods true", "apps/v1 Deployment deployments true"]);
    }

    #[tokio::test]
    async fn the_release_is_read_whatever_a_vendor_adds() {
        for (minor, expected) in [("36", Some(36)), ("27+", Some(27)), ("", None)] {
            let (target, _) =
                fake_server::target(move |_| fake_server::json(200, json!({"major": "1", "minor": minor})));
            assert_eq!(target.release().await, expected.map(KubernetesRelease::minor));
        }
    }
}
