//! A CRD as far as its conversion goes.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::resource::{RawObject, Resource};

/// A promise that the CA bundle is written by a controller: cert-manager's, or OpenShift's.
const INJECTORS: [&str; 4] = [
    "cert-manager.io/inject-apiserver-ca",
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "service.beta.openshift.io/inject-cabundle",
];

#[derive(Debug, Deserialize)]
pub struct Crd {
    #[serde(default)]
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    annotations: Option<BTreeMap<String, Value>>,
}

#[derive(Debug, Deserialize)]
struct Spec {
    group: String,
    scope: String,
    names: Names,
    versions: Vec<Version>,
    #[serde(default)]
    conversion: Option<Conversion>,
}

#[derive(Debug, Deserialize)]
struct Names {
    plural: String,
    kind: String,
}

#[derive(Debug, Deserialize)]
pub struct Version {
    pub name: String,
    #[serde(default)]
    pub served: bool,
    #[serde(default)]
    pub storage: bool,
    #[serde(default)]
    schema: Option<VersionSchema>,
}

#[derive(Debug, Deserialize)]
struct VersionSchema {
    #[serde(rename = "openAPIV3Schema", default)]
    schema: Value,
}

#[derive(Debug, Deserialize)]
struct Conversion {
    #[serde(default)]
    strategy: String,
    #[serde(default)]
    webhook: Option<Webhook>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    #[serde(default)]
    pub conversion_review_versions: Vec<String>,
    #[serde(default)]
    pub client_config: ClientConfig,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub service: Option<ServiceReference>,
    #[serde(default)]
    pub ca_bundle: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct ServiceReference {
    pub namespace: String,
    pub name: String,
    #[serde(default = "https")]
    pub port: i64,
}

/// What the API server takes for a port that is not given.
fn https() -> i64 {
    443
}

impl Webhook {
    /// Whether somebody else is asked from now on than `live` says.
    pub fn moves(&self, live: &Webhook) -> bool {
        let (new, old) = (&self.client_config, &live.client_config);
        new.service.is_some() && new.service != old.service || new.url.is_some() && new.url != old.url
    }

    /// Whether the API server knows the webhook by something else than `live` says.
    pub fn is_known_anew(&self, live: &Webhook) -> bool {
        let compact =
            |config: &ClientConfig| config.ca_bundle.as_ref().map(|bundle| bundle.split_whitespace().collect());
        let new: Option<String> = compact(&self.client_config);
        new.is_some() && new != compact(&live.client_config)
    }
}

impl Crd {
    /// # Errors
    /// Why it is no CRD of `apiextensions.k8s.io/v1`.
    pub fn parse(object: &RawObject) -> Result<Self, String> {
        serde_json::from_str(&object.json()).map_err(|error| error.to_string())
    }

    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The webhook that converts its objects, if one does.
    pub fn webhook(&self) -> Option<&Webhook> {
        let conversion = self.spec.conversion.as_ref().filter(|conversion| conversion.strategy == "Webhook")?;
        conversion.webhook.as_ref()
    }

    /// Whether an annotation promises that a controller writes the CA bundle.
    pub fn is_injected(&self) -> bool {
        let annotations = self.metadata.annotations.iter().flatten();
        let is_promise = |value: &Value| value.as_str().is_some_and(|value| !value.is_empty() && value != "false");
        annotations.into_iter().any(|(key, value)| INJECTORS.contains(&key.as_str()) && is_promise(value))
    }

    pub fn resource(&self, version: &str) -> Resource {
        Resource {
            group: self.spec.group.clone(),
            version: version.to_owned(),
            kind: self.spec.names.kind.clone(),
            plural: self.spec.names.plural.clone(),
            namespaced: self.spec.scope == "Namespaced",
        }
    }

    pub fn storage(&self) -> Option<&Version> {
        self.spec.versions.iter().find(|version| version.storage)
    }

    /// The served versions that objects are not stored at.
    pub fn converted(&self) -> impl Iterator<Item = &Version> {
        self.spec.versions.iter().filter(|version| version.served && !version.storage)
    }
}

impl Version {
    /// Whether the schema describes the field at this path.
    pub fn describes(&self, path: &[crate::resource::Step]) -> bool {
        let mut node = self.schema.as_ref().map(|schema| &schema.schema);
        for step in path {
            node = match step {
                crate::resource::Step::Key(key) => node.and_then(|node| {
                    let declared = node.get("properties").and_then(|properties| properties.get(key));
                    declared.or_else(|| node.get("additionalProperties").filter(|values| values.is_object()))
                }),
                crate::resource::Step::Index(_) => node.and_then(|node| node.get("items")),
            };
        }
        node.is_some()
    }
}
