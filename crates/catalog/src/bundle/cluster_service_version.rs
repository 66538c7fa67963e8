//! A ClusterServiceVersion: what OLM v1 reads of one.

use std::collections::BTreeMap;

use gantry_yaml::explain_json;
use serde::{Deserialize, Deserializer};

/// What a ClusterServiceVersion says, as far as anything here depends on it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterServiceVersion {
    /// Its name, which is the bundle's: `example-operator.v1.0.0`.
    pub name: String,
    /// The annotation `olm.skipRange`; empty where there is none.
    pub skip_range: String,
    /// Its version.
    pub version: String,
    /// The bundle that it replaces; empty where there is none.
    pub replaces: String,
    /// The bundles that it skips.
    pub skips: Vec<String>,
    /// The oldest Kubernetes that it runs on; empty where it does not say.
    pub min_kube_version: String,
    /// The install modes, supported or not.
    pub install_modes: Vec<InstallMode>,
    /// The kinds that it brings a CRD for.
    pub owned_crds: Vec<ApiDescription>,
    /// The kinds that somebody else has to bring.
    pub required_crds: Vec<ApiDescription>,
    /// The kinds that it serves with an API server of its own.
    pub owned_api_services: Vec<ApiDescription>,
    /// The kinds that the API server of somebody else has to serve.
    pub required_api_services: Vec<ApiDescription>,
    /// Its webhooks.
    pub webhooks: Vec<Webhook>,
    /// What OLM makes Deployments of.
    pub deployments: Vec<DeploymentSpec>,
    /// The rights that it needs in the namespaces that it watches.
    pub permissions: Vec<Permissions>,
    /// The rights that it needs in the whole cluster.
    pub cluster_permissions: Vec<Permissions>,
}

/// An install mode.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct InstallMode {
    /// `OwnNamespace`, `SingleNamespace`, `MultiNamespace` or `AllNamespaces`
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub mode: String,
    /// Whether it supports that.
    #[serde(default, deserialize_with = "or_default")]
    pub supported: bool,
}

/// An API that it owns or requires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ApiDescription {
    /// The name of the CRD; of an API service, which has no name, `VERSION.GROUP` or something else.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The group, where it says one: of a CRD it is a part of the name.
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
    /// The group of the API: what follows the plural in the name of a CRD.
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
pub struct Webhook {
    /// `ValidatingAdmissionWebhook`, `MutatingAdmissionWebhook` or `ConversionWebhook`
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub kind: String,
    /// What its name is made of.
    #[serde(default, deserialize_with = "or_default")]
    pub generate_name: String,
    /// The deployment that answers it.
    #[serde(default, deserialize_with = "or_default")]
    pub deployment_name: String,
    /// The port of its Service; 0 for the usual one.
    #[serde(default, deserialize_with = "or_default")]
    pub container_port: i64,
    /// The path at which it is asked.
    pub webhook_path: Option<String>,
    /// The versions of the question that it understands.
    #[serde(default, deserialize_with = "or_default")]
    pub admission_review_versions: Vec<String>,
    /// What it is asked about.
    #[serde(default, deserialize_with = "or_default")]
    pub rules: Vec<WebhookRule>,
    /// The CRDs that it converts the objects of.
    #[serde(default, rename = "conversionCRDs", deserialize_with = "or_default")]
    pub conversion_crds: Vec<String>,
}

impl Webhook {
    /// Whether it converts between the versions of a CRD.
    pub fn is_conversion(&self) -> bool {
        self.kind == "ConversionWebhook"
    }
}

/// What an admission webhook is asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookRule {
    /// Groups; `*` are all.
    #[serde(default, deserialize_with = "or_default")]
    pub api_groups: Vec<String>,
    /// Resources; `*` are all.
    #[serde(default, deserialize_with = "or_default")]
    pub resources: Vec<String>,
}

/// What OLM makes a Deployment of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeploymentSpec {
    /// The name of the Deployment.
    pub name: String,
    /// The service account of its Pods; empty for the namespace's default one.
    pub service_account: String,
}

/// Rights of a service account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permissions {
    /// The service account, which OLM creates; empty for the namespace's default one.
    #[serde(default, deserialize_with = "or_default")]
    pub service_account_name: String,
    /// The rules of the role that OLM creates for it.
    #[serde(default, deserialize_with = "or_default")]
    pub rules: Vec<PolicyRule>,
}

/// A rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// What may be done.
    #[serde(default, deserialize_with = "or_default")]
    pub verbs: Vec<String>,
    /// In these groups.
    #[serde(default, deserialize_with = "or_default")]
    pub api_groups: Vec<String>,
    /// With these resources.
    #[serde(default, deserialize_with = "or_default")]
    pub resources: Vec<String>,
    /// With objects of these names alone; none for all.
    #[serde(default, deserialize_with = "or_default")]
    pub resource_names: Vec<String>,
    /// Or with these paths.
    #[serde(default, rename = "nonResourceURLs", deserialize_with = "or_default")]
    pub non_resource_urls: Vec<String>,
}

impl ClusterServiceVersion {
    /// Reads the JSON of one.
    ///
    /// # Errors
    /// Fields of another type, which OLM cannot read either.
    pub fn read(json: &str) -> Result<Self, String> {
        let Object { metadata, spec } = serde_json::from_str(json).map_err(|error| explain_json(&error))?;
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

    /// Reads the value of an `olm.csv.metadata`, which has neither webhooks nor anything of what is installed.
    ///
    /// # Errors
    /// Fields of another type.
    pub fn read_metadata(json: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
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
        let metadata: Metadata = serde_json::from_str(json).map_err(|error| explain_json(&error))?;
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

fn deployment(named: Named) -> DeploymentSpec {
    let service_account = named.spec.template.spec.service_account_name;
    DeploymentSpec { name: named.name, service_account }
}

/// `null` leaves a field as it is, as in Go.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[derive(Deserialize)]
struct Object {
    #[serde(default, deserialize_with = "or_default")]
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    spec: Spec,
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
struct Spec {
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
    webhooks: Vec<Webhook>,
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
    spec: Strategy,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Strategy {
    #[serde(default, deserialize_with = "or_default")]
    deployments: Vec<Named>,
    #[serde(default, deserialize_with = "or_default")]
    permissions: Vec<Permissions>,
    #[serde(default, deserialize_with = "or_default")]
    cluster_permissions: Vec<Permissions>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    spec: Deployed,
}

#[derive(Deserialize, Default)]
struct Deployed {
    #[serde(default, deserialize_with = "or_default")]
    template: Template,
}

#[derive(Deserialize, Default)]
struct Template {
    #[serde(default, deserialize_with = "or_default")]
    spec: Pod,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Pod {
    #[serde(default, deserialize_with = "or_default")]
    service_account_name: String,
}
