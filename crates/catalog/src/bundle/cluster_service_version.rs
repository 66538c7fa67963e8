//! The parts of a ClusterServiceVersion that OLM v1 reads.

use std::collections::BTreeMap;

use gantry_yaml::explain_json;
use serde::{Deserialize, Deserializer};

use crate::error::OlmError;

/// A ClusterServiceVersion, as far as this crate uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterServiceVersion {
    /// Its name, which is the bundle's: `example-operator.v1.0.0`.
    pub name: String,
    /// The annotation `olm.skipRange`; empty if there is none.
    pub skip_range: String,
    /// Its version.
    pub version: String,
    /// The bundle that it replaces; empty if there is none.
    pub replaces: String,
    /// The bundles that it skips.
    pub skips: Vec<String>,
    /// The oldest Kubernetes version that it runs on; empty if it does not say.
    pub min_kube_version: String,
    /// The install modes, supported or not.
    pub install_modes: Vec<InstallMode>,
    /// The kinds whose CRDs are part of the bundle.
    pub owned_crds: Vec<ApiDescription>,
    /// The kinds whose CRDs another operator must provide.
    pub required_crds: Vec<ApiDescription>,
    /// The kinds that it serves with its own aggregated API server.
    pub owned_api_services: Vec<ApiDescription>,
    /// The kinds that another aggregated API server must serve.
    pub required_api_services: Vec<ApiDescription>,
    /// Its webhooks.
    pub webhooks: Vec<CsvWebhook>,
    /// The Deployments that OLM creates.
    pub deployments: Vec<DeploymentSpec>,
    /// The permissions that it needs in the namespaces that it watches.
    pub permissions: Vec<Permissions>,
    /// The permissions that it needs in the whole cluster.
    pub cluster_permissions: Vec<Permissions>,
}

/// An install mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct InstallMode {
    /// `OwnNamespace`, `SingleNamespace`, `MultiNamespace` or `AllNamespaces`.
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub mode: String,
    /// Whether the operator supports the mode.
    #[serde(default, deserialize_with = "or_default")]
    pub supported: bool,
}

/// An API that a ClusterServiceVersion owns or requires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ApiDescription {
    /// The name of the CRD. For an API service, which has no name of its own, `VERSION.GROUP` or any other text.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The group, if it is given; a CRD has it in its name.
    #[serde(default, deserialize_with = "or_default")]
    group: String,
    /// The version.
    #[serde(default, deserialize_with = "or_default")]
    pub version: String,
    /// The kind.
    #[serde(default, deserialize_with = "or_default")]
    pub kind: String,
}

impl ApiDescription {
    /// The group of the API. For a CRD it is the part of the name after the plural.
    pub fn group(&self) -> &str {
        match self.group.as_str() {
            "" => self.name.split_once('.').map_or("", |(_, group)| group),
            group => group,
        }
    }
}

/// A webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CsvWebhook {
    /// `ValidatingAdmissionWebhook`, `MutatingAdmissionWebhook` or `ConversionWebhook`.
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// The base of its name.
    #[serde(default, deserialize_with = "or_default")]
    pub generate_name: String,
    /// The Deployment that serves it.
    #[serde(default, deserialize_with = "or_default")]
    pub deployment_name: String,
    /// The port of its Service; 0 for the default port.
    #[serde(default, deserialize_with = "or_default")]
    pub container_port: i64,
    /// The URL path of the webhook.
    pub webhook_path: Option<String>,
    /// The review versions that it supports.
    #[serde(default, deserialize_with = "or_default")]
    pub admission_review_versions: Vec<String>,
    /// The requests that it is called for.
    #[serde(default, deserialize_with = "or_default")]
    pub rules: Vec<WebhookRule>,
    /// The CRDs whose objects it converts.
    #[serde(default, rename = "conversionCRDs", deserialize_with = "or_default")]
    pub conversion_crds: Vec<String>,
}

impl CsvWebhook {
    /// Whether it converts between the versions of a CRD.
    pub fn is_conversion(&self) -> bool {
        self.kind == "ConversionWebhook"
    }
}

/// The requests that an admission webhook is called for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct WebhookRule {
    /// The API groups; `*` for all.
    #[serde(default, deserialize_with = "or_default")]
    pub api_groups: Vec<String>,
    /// The resources; `*` for all.
    #[serde(default, deserialize_with = "or_default")]
    pub resources: Vec<String>,
}

/// The definition of a Deployment that OLM creates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeploymentSpec {
    /// The name of the Deployment.
    pub name: String,
    /// The service account of its Pods; empty for the default service account of the namespace.
    pub service_account: String,
}

/// The permissions of a service account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Permissions {
    /// The service account, which OLM creates; empty for the default service account of the namespace.
    #[serde(default, deserialize_with = "or_default")]
    pub service_account_name: String,
    /// The rules of the role that OLM creates for it.
    #[serde(default, deserialize_with = "or_default")]
    pub rules: Vec<BundlePolicyRule>,
}

/// A rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BundlePolicyRule {
    /// The allowed verbs.
    #[serde(default, deserialize_with = "or_default")]
    pub verbs: Vec<String>,
    /// The API groups of the resources.
    #[serde(default, deserialize_with = "or_default")]
    pub api_groups: Vec<String>,
    /// The resources.
    #[serde(default, deserialize_with = "or_default")]
    pub resources: Vec<String>,
    /// The names of the objects; empty for all.
    #[serde(default, deserialize_with = "or_default")]
    pub resource_names: Vec<String>,
    /// URL paths that are not resources.
    #[serde(default, rename = "nonResourceURLs", deserialize_with = "or_default")]
    pub non_resource_urls: Vec<String>,
}

impl ClusterServiceVersion {
    /// Reads a ClusterServiceVersion from JSON.
    ///
    /// # Errors
    /// Fields of the wrong type, which OLM cannot read either.
    pub fn read(json: &str) -> Result<Self, OlmError> {
        let CsvObject { metadata, spec } = serde_json::from_str(json).map_err(|error| explain_json(&error))?;
        let install = spec.install.spec;
        Ok(ClusterServiceVersion {
            name: metadata.name,
            skip_range: metadata.annotations.get("olm.skipRange").cloned().flatten().unwrap_or_default(),
            version: spec.version,
            replaces: spec.replaces,
            skips: spec.skips,
            min_kube_version: spec.min_kube_version,
            install_modes: spec.install_modes,
            owned_crds: spec.crds.owned,
            required_crds: spec.crds.required,
            owned_api_services: spec.api_services.owned,
            required_api_services: spec.api_services.required,
            webhooks: spec.webhooks,
            deployments: install.deployments.into_iter().map(deployment).collect(),
            permissions: install.permissions,
            cluster_permissions: install.cluster_permissions,
        })
    }

    /// Reads the value of an `olm.csv.metadata`, which has neither webhooks nor the install strategy.
    ///
    /// # Errors
    /// Fields of the wrong type.
    pub fn read_metadata(json: &str) -> Result<Self, OlmError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CsvMetadataBlob {
            #[serde(default, deserialize_with = "or_default")]
            annotations: BTreeMap<String, Option<String>>,
            #[serde(default, deserialize_with = "or_default")]
            min_kube_version: String,
            #[serde(default, deserialize_with = "or_default")]
            install_modes: Vec<InstallMode>,
            #[serde(default, deserialize_with = "or_default")]
            crd_descriptions: Apis,
            #[serde(default, deserialize_with = "or_default")]
            api_service_definitions: Apis,
        }
        let metadata: CsvMetadataBlob = serde_json::from_str(json).map_err(|error| explain_json(&error))?;
        Ok(ClusterServiceVersion {
            skip_range: metadata.annotations.get("olm.skipRange").cloned().flatten().unwrap_or_default(),
            min_kube_version: metadata.min_kube_version,
            install_modes: metadata.install_modes,
            owned_crds: metadata.crd_descriptions.owned,
            required_crds: metadata.crd_descriptions.required,
            owned_api_services: metadata.api_service_definitions.owned,
            required_api_services: metadata.api_service_definitions.required,
            ..ClusterServiceVersion::default()
        })
    }

    /// Whether it supports an install mode.
    pub fn supports(&self, mode: &str) -> bool {
        self.install_modes.iter().any(|found| found.supported && found.mode == mode)
    }
}

fn deployment(named: NamedDeployment) -> DeploymentSpec {
    let service_account = named.spec.template.spec.service_account_name;
    DeploymentSpec { name: named.name, service_account }
}

/// As in Go, `null` leaves a field at its zero value.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
struct CsvObject {
    #[serde(default, deserialize_with = "or_default")]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    spec: CsvSpec,
}

#[derive(Deserialize, Default)]
struct ObjectMeta {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    annotations: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct CsvSpec {
    #[serde(default, deserialize_with = "or_default")]
    version: String,
    #[serde(default, deserialize_with = "or_default")]
    replaces: String,
    #[serde(default, deserialize_with = "or_default")]
    skips: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    min_kube_version: String,
    #[serde(default, deserialize_with = "or_default")]
    install_modes: Vec<InstallMode>,
    #[serde(default, rename = "customresourcedefinitions", deserialize_with = "or_default")]
    crds: Apis,
    #[serde(default, rename = "apiservicedefinitions", deserialize_with = "or_default")]
    api_services: Apis,
    #[serde(default, rename = "webhookdefinitions", deserialize_with = "or_default")]
    webhooks: Vec<CsvWebhook>,
    #[serde(default, deserialize_with = "or_default")]
    install: Install,
}

#[derive(Deserialize, Default)]
struct Apis {
    #[serde(default, deserialize_with = "or_default")]
    owned: Vec<ApiDescription>,
    #[serde(default, deserialize_with = "or_default")]
    required: Vec<ApiDescription>,
}

#[derive(Deserialize, Default)]
struct Install {
    #[serde(default, deserialize_with = "or_default")]
    spec: InstallStrategy,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct InstallStrategy {
    #[serde(default, deserialize_with = "or_default")]
    deployments: Vec<NamedDeployment>,
    #[serde(default, deserialize_with = "or_default")]
    permissions: Vec<Permissions>,
    #[serde(default, deserialize_with = "or_default")]
    cluster_permissions: Vec<Permissions>,
}

#[derive(Deserialize)]
struct NamedDeployment {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    spec: CsvDeploymentSpec,
}

#[derive(Deserialize, Default)]
struct CsvDeploymentSpec {
    #[serde(default, deserialize_with = "or_default")]
    template: Template,
}

#[derive(Deserialize, Default)]
struct Template {
    #[serde(default, deserialize_with = "or_default")]
    spec: CsvPodSpec,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct CsvPodSpec {
    #[serde(default, deserialize_with = "or_default")]
    service_account_name: String,
}
