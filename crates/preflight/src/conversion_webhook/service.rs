//! The Service of a webhook: whether it exists and has the port, and whether one of its endpoints is ready.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{Context, CouldNotCheck};
use gantry_cluster::{ListError, ListRequest, ObjectToRead};
use gantry_core::crd::ServiceReference;
use gantry_core::problem::{Error, Problem};
use gantry_core::resource::{ObjectRef, RawObject, Resource};
use gantry_deploy::plan::{Change, Plan};

#[derive(Debug, Deserialize)]
pub struct LiveService {
    spec: ServiceSpec,
}

#[derive(Debug, Deserialize)]
struct ServiceSpec {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    ports: Vec<ServicePort>,
    #[serde(default)]
    selector: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
struct ServicePort {
    port: i64,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct EndpointSlice {
    #[serde(default)]
    endpoints: Option<Vec<Endpoint>>,
    #[serde(default)]
    ports: Option<Vec<EndpointPort>>,
}

#[derive(Debug, Deserialize)]
struct Endpoint {
    #[serde(default)]
    addresses: Vec<String>,
    #[serde(default)]
    conditions: Option<EndpointConditions>,
}

#[derive(Debug, Deserialize)]
struct EndpointConditions {
    #[serde(default)]
    ready: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct EndpointPort {
    #[serde(default)]
    name: Option<String>,
}

impl LiveService {
    /// The Service after the deploy: the one in the manifests, else the live one. `None` if neither exists.
    pub async fn find(reference: &ServiceReference, context: &Context<'_>) -> Result<Option<Self>, CouldNotCheck> {
        let raw = match find_change(reference, context.plan) {
            Some(change) => Some(change.desired.raw.clone()),
            None => read_live(reference, context).await?,
        };
        let read = |raw: RawObject| {
            serde_json::from_str(&raw.json()).map_err(|error| CouldNotCheck {
                message: format!("the Service {}/{} cannot be read: {error}", reference.namespace, reference.name),
                help: None,
            })
        };
        raw.map(read).transpose()
    }

    /// The port numbers.
    pub fn ports(&self) -> Vec<i64> {
        self.spec.ports.iter().map(|port| port.port).collect()
    }

    /// Whether the Service has endpoints. The API server resolves an external name itself, so that cannot be checked
    /// here.
    pub fn has_endpoints(&self) -> bool {
        self.spec.kind != "ExternalName"
    }

    /// Whether Pods with these labels are its endpoints.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let selector = self.spec.selector.as_ref().filter(|selector| !selector.is_empty());
        selector.is_some_and(|selector| selector.iter().all(|(key, value)| labels.get(key) == Some(value)))
    }

    /// Whether a ready address has the port.
    pub async fn is_ready(&self, reference: &ServiceReference, context: &Context<'_>) -> Result<bool, CouldNotCheck> {
        let port = self.spec.ports.iter().find(|port| port.port == reference.port);
        let name = port.and_then(|port| port.name.as_deref()).unwrap_or_default();
        let resource = endpoint_slices();
        let selector = format!("kubernetes.io/service-name={}", reference.name);
        let request = ListRequest {
            namespace: Some(&reference.namespace),
            label_selector: Some(&selector),
            ..ListRequest::new(&resource, 500)
        };
        let mut pages = context.target.list(&request);
        while let Some(page) = pages.next().await.map_err(|error| unlisted(&error))? {
            let slices = page.items().filter_map(|item| serde_json::from_str::<EndpointSlice>(item).ok());
            if slices.into_iter().any(|slice| slice.is_ready(name)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl EndpointSlice {
    fn is_ready(&self, port: &str) -> bool {
        // As the API defines it: an unset condition means ready.
        let ready = |endpoint: &Endpoint| {
            let condition = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready);
            !endpoint.addresses.is_empty() && condition != Some(false)
        };
        let ports = self.ports.iter().flatten();
        ports.into_iter().any(|known| known.name.as_deref().unwrap_or_default() == port)
            && self.endpoints.iter().flatten().any(ready)
    }
}

/// The API resource of Services.
pub fn services() -> Resource {
    let (kind, plural) = ("Service".into(), "services".into());
    Resource { group: String::new(), version: "v1".into(), kind, plural, namespaced: true }
}

/// The API resource of EndpointSlices.
pub fn endpoint_slices() -> Resource {
    let (kind, plural) = ("EndpointSlice".into(), "endpointslices".into());
    Resource { group: "discovery.k8s.io".into(), version: "v1".into(), kind, plural, namespaced: true }
}

/// The Service among the manifests.
pub fn find_change<'p>(reference: &ServiceReference, plan: &'p Plan) -> Option<&'p Change> {
    plan.changes.iter().find(|change| {
        let object = &change.desired.object;
        object.kind == "Service"
            && object.group().is_empty()
            && object.name == reference.name
            && object.namespace.as_deref() == Some(&reference.namespace)
    })
}

async fn read_live(reference: &ServiceReference, context: &Context<'_>) -> Result<Option<RawObject>, CouldNotCheck> {
    let resource = services();
    let object = ObjectRef {
        api_version: "v1".into(),
        kind: "Service".into(),
        namespace: Some(reference.namespace.clone()),
        name: reference.name.clone(),
    };
    let read =
        context.target.read(&[ObjectToRead { resource: resource.into(), object: object.into() }], &|_, _| ()).await;
    let mut read = read.map_err(|error: Error| could_not_check(error.problems().first()))?;
    Ok(read.pop().flatten().map(|live| live.raw))
}

/// The "could not check" entry of a failed request.
pub fn could_not_check(problem: Option<&Problem>) -> CouldNotCheck {
    match problem {
        Some(problem) => CouldNotCheck { message: problem.message.clone(), help: problem.help.clone() },
        None => CouldNotCheck { message: "the target did not answer".into(), help: None },
    }
}

/// The "could not check" entry of a list that failed.
pub fn unlisted(error: &ListError) -> CouldNotCheck {
    match error {
        ListError::Expired => {
            CouldNotCheck { message: "a list expired while it was read".into(), help: Some("run again".into()) }
        }
        other => could_not_check(other.problem()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_without_a_ready_condition_is_ready() {
        let slice = |value| serde_json::from_value::<EndpointSlice>(value).unwrap();
        let ports = json!([{"name": "https", "port": 9443}]);
        for (endpoints, ports, port, ready) in [
            (json!([{"addresses": ["10.0.0.1"]}]), ports.clone(), "https", true),
            (json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}]), ports.clone(), "https", true),
            (json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": false}}]), ports.clone(), "https", false),
            (json!([{"addresses": []}]), ports.clone(), "https", false),
            (json!(null), ports.clone(), "https", false),
            (json!([{"addresses": ["10.0.0.1"]}]), ports, "other", false),
            (json!([{"addresses": ["10.0.0.1"]}]), json!([{"port": 1}]), "", true),
            (json!([{"addresses": ["10.0.0.1"]}]), json!(null), "", false),
        ] {
            let slice = slice(json!({"endpoints": endpoints, "ports": ports}));
            assert_eq!(slice.is_ready(port), ready, "{slice:?} {port}");
        }
    }
}
