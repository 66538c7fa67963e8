//! CustomResourceDefinitions: the parts that gantry needs, parsed once and shared.
//!
//! ```text
//! JSON ─► read ─► Crd ──► Pair      a live CRD and the desired one
//!           └──► Unreadable         a problem, and its place
//! lost_fields, conversion_loss      what an object loses between two versions
//! steps                             the paths of its parts, for places in a manifest
//! versions                          the order of versions, and which are served together
//! ```
//!
//! Schemas stay text until they are needed, and the text is a slice of the object's text: a parsed CRD takes little
//! more memory than its names. [`gantry_schema`] defines the keywords of schemas ([`gantry_schema::keywords`]), their
//! equality ([`gantry_schema::same()`]), and what the API server refuses in a CRD ([`gantry_schema::crd`]).

#[cfg(any(test, feature = "samples"))]
pub mod builder;
pub mod conversion_loss;
pub mod lost_fields;
mod pair;
mod read;
pub mod steps;
mod unreadable;
pub mod versions;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use gantry_yaml::explain_json;
use serde::Deserialize;
use serde_json::Value;

pub use self::pair::{CrdPair, CrdSide, CrdSides, MalformedCrd};
pub use self::unreadable::{CrdReadError, CrdReadErrorKind, MalformedSchema};
use crate::resource::{RawObject, Resource};
use gantry_k8s_cel::{KubernetesRelease, gotext};
use gantry_schema::json::Json;
use gantry_schema::scan;
use gantry_schema::{ScalePaths, Sense, drop_ignored_formats, same_schema};

/// The `apiVersion` of CRDs.
pub const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// A CRD.
#[derive(Debug, Clone)]
pub struct Crd {
    api_version: String,
    /// The name, such as `samples.test.example.com`.
    pub name: String,
    /// The field `spec.group`.
    pub group: String,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    /// The field `spec.names`, without the server's defaults.
    pub names: CrdNames,
    /// `None` if the CRD does not have it.
    pub conversion: Option<CrdConversion>,
    /// A legacy field from before Kubernetes 1.16: the server keeps unknown fields of all objects.
    pub preserve_unknown_fields: bool,
    /// The versions; at least one.
    pub versions: Vec<CrdVersion>,
    /// The field `status.storedVersions`, without a default; see [`Crd::stored_versions`].
    pub status_stored_versions: Vec<String>,
    text: Arc<str>,
}

/// The names of a kind. The server defaults missing ones; [`CrdNames::singular`] and [`CrdNames::list_kind`] do the same.
#[derive(Debug, Clone)]
pub struct CrdNames {
    /// The kind of the objects, such as `Sample`.
    pub kind: String,
    /// The plural name, which is part of the URL of the objects.
    pub plural: String,
    singular: String,
    list_kind: String,
    /// In the order of the CRD.
    pub short_names: Vec<String>,
    /// The groups of kinds, such as `all`, that `kubectl get` lists it with.
    pub categories: Vec<String>,
}

/// An item of `spec.versions`.
#[derive(Debug, Clone)]
pub struct CrdVersion {
    /// Such as `v1alpha1`.
    pub name: Arc<str>,
    /// The index in `spec.versions`.
    pub index: usize,
    /// Whether requests can use the version.
    pub served: bool,
    /// Whether the server writes objects at this version. A valid CRD has one such version.
    pub storage: bool,
    /// Whether the server answers requests at this version with a warning.
    pub deprecated: bool,
    /// The warning for a deprecated version, if it is not the server's default text; otherwise empty.
    pub deprecation_warning: String,
    /// Whether `status` is written only through its subresource.
    pub status_subresource: bool,
    /// `None` if objects cannot be scaled.
    pub scale: Option<ScaleSubresource>,
    /// The JSON paths that field selectors can use.
    pub selectable_fields: Vec<String>,
    /// The additional columns of `kubectl get`.
    pub printer_columns: Vec<PrinterColumn>,
    schema: Option<SharedSlice>,
}

/// A column of `kubectl get`. What is absent is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Its heading.
    pub name: String,
    /// What it shows.
    pub json_path: String,
    /// The type of its value, which decides how it is printed.
    pub value_type: String,
}

/// The paths of the scale subresource. An absent path is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScaleSubresource {
    /// The path of the desired number of replicas, below `.spec`.
    pub spec_replicas_path: String,
    /// The path of the actual number of replicas, below `.status`.
    pub status_replicas_path: String,
    /// The path of the selector of the Pods as text. The server does not require it.
    pub label_selector_path: String,
}

/// The field `spec.conversion`.
#[derive(Debug, Clone)]
pub struct CrdConversion {
    /// `None` if it is absent.
    pub strategy: Option<ConversionStrategy>,
    webhook: Option<ConversionWebhookConfig>,
}

/// How objects are converted between versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversionStrategy {
    /// Only `apiVersion` changes between versions.
    None,
    /// The server calls a webhook, for reads as well as for writes.
    Webhook,
}

/// The field `spec.conversion.webhook`.
#[derive(Debug, Clone, Default)]
pub struct ConversionWebhookConfig {
    /// `conversionReviewVersions`
    pub review_versions: Vec<String>,
    /// Where the webhook is.
    pub client_config: ConversionClientConfig,
}

/// A webhook's address, as the API server's `WebhookClientConfig`: a URL or a Service.
#[derive(Debug, Clone, Default)]
pub struct ConversionClientConfig {
    /// `https://…`; `None` if the webhook is a Service.
    pub url: Option<String>,
    /// `None` if the webhook is a URL.
    pub service: Option<ServiceReference>,
    /// The base64 text from the CRD.
    pub ca_bundle: Option<String>,
}

/// A Service that the API server calls.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceReference {
    /// The namespace of the Service.
    pub namespace: String,
    /// The name of the Service.
    pub name: String,
    /// The path of the requests; `None` for `/`.
    pub path: Option<String>,
    /// The port of the Service, 443 by default. It may be out of range, as in the CRD.
    pub port: i64,
}

impl ServiceReference {
    /// The API server's default for an absent port.
    const HTTPS: i64 = 443;
}

/// A slice of a shared text.
#[derive(Clone)]
struct SharedSlice {
    whole: Arc<str>,
    range: Range<usize>,
}

impl SharedSlice {
    /// `part` must be a slice of `whole`.
    fn new(whole: &Arc<str>, part: &str) -> Self {
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        SharedSlice { whole: Arc::clone(whole), range: start..start + part.len() }
    }

    fn text(&self) -> &str {
        &self.whole[self.range.clone()]
    }
}

impl fmt::Debug for SharedSlice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.range.len())
    }
}

/// Checks that the `apiVersion` of a CRD is `apiextensions.k8s.io/v1`.
fn at_v1(api_version: &str) -> Result<(), CrdReadError> {
    match api_version {
        API_VERSION => Ok(()),
        other => {
            Err(CrdReadError { fault: CrdReadErrorKind::ApiVersion(other.to_owned()), at: vec!["apiVersion".into()] })
        }
    }
}

impl Crd {
    /// Parses a CRD.
    ///
    /// # Errors
    /// It is not a valid CRD of `apiextensions.k8s.io/v1`.
    pub fn read(object: &RawObject) -> Result<Self, CrdReadError> {
        Self::read_at_any_version(object).and_then(Crd::into_v1)
    }

    /// Parses a CRD from JSON text.
    ///
    /// # Errors
    /// As [`Crd::read`].
    pub fn parse(json: &str) -> Result<Self, CrdReadError> {
        read::read(json.into()).and_then(Crd::into_v1)
    }

    /// Parses a CRD at any version of the API. In `apiextensions.k8s.io/v1beta1`, names, group, scope and versions are
    /// the same as in `v1`.
    ///
    /// # Errors
    /// It is not a valid CRD.
    pub fn read_at_any_version(object: &RawObject) -> Result<Self, CrdReadError> {
        read::read(object.text())
    }

    fn into_v1(self) -> Result<Self, CrdReadError> {
        at_v1(&self.api_version).map(|()| self)
    }

    /// Whether each object has a namespace. Otherwise the objects are cluster-scoped.
    pub fn is_namespaced(&self) -> bool {
        self.scope == "Namespaced"
    }

    /// The version of this name. `None` if the CRD does not have it.
    pub fn version(&self, name: &str) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// The version, if it is served.
    pub fn served(&self, name: &str) -> Option<&CrdVersion> {
        self.version(name).filter(|version| version.served)
    }

    /// The versions that requests can use, in the order of the CRD.
    pub fn served_versions(&self) -> impl Iterator<Item = &CrdVersion> {
        self.versions.iter().filter(|version| version.served)
    }

    /// The storage version.
    pub fn storage(&self) -> Option<&CrdVersion> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The versions that objects may be stored at. Without `status.storedVersions`, this is the storage version, as in
    /// the API server's defaulting.
    pub fn stored_versions(&self) -> Vec<&str> {
        if self.status_stored_versions.is_empty() {
            return self.storage().map(|version| &*version.name).into_iter().collect();
        }
        self.status_stored_versions.iter().map(String::as_str).collect()
    }

    /// Whether objects may be stored at the version.
    pub fn is_stored(&self, version: &str) -> bool {
        self.stored_versions().contains(&version)
    }

    /// How objects are converted; `None` if the CRD does not define it.
    pub fn strategy(&self) -> Option<ConversionStrategy> {
        self.conversion.as_ref()?.strategy
    }

    /// Whether a webhook converts between the versions.
    pub fn converts_by_webhook(&self) -> bool {
        self.strategy() == Some(ConversionStrategy::Webhook)
    }

    /// Whether `managedFields` show that a manager owns the conversion which does not own the rest of the CRD.
    pub(crate) fn conversion_belongs_to_another(&self) -> bool {
        let of_all = self.managers_of(&["group"]);
        self.managers_of(&["conversion"]).iter().any(|owner| !of_all.contains(owner))
    }

    /// The managers that own a field of the spec, or something in it, as `managedFields` show.
    pub fn managers_of(&self, names: &[&str]) -> Vec<String> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct CrdFieldsMetadata {
            managed_fields: Vec<CrdFieldsEntry>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct CrdFieldsEntry {
            manager: String,
            fields_v1: Value,
        }
        let metadata = scan::member(&self.text, "metadata");
        let metadata =
            metadata.and_then(|metadata| serde_json::from_str::<CrdFieldsMetadata>(metadata).ok()).unwrap_or_default();
        let owns = |entry: &&CrdFieldsEntry| {
            let fields = entry.fields_v1.get("f:spec");
            names.iter().fold(fields, |fields, name| fields?.get(format!("f:{name}"))).is_some()
        };
        metadata.managed_fields.iter().filter(owns).map(|entry| entry.manager.clone()).collect()
    }

    /// The conversion webhook, if a webhook converts and the CRD describes it.
    pub fn webhook(&self) -> Option<&ConversionWebhookConfig> {
        self.conversion.as_ref().filter(|_| self.converts_by_webhook())?.webhook.as_ref()
    }

    /// The error for the first version without a schema. The server accepts such a version only if the live CRD already
    /// has one without a schema, which can remain from the API before `apiextensions.k8s.io/v1`.
    pub fn lacks_schema(&self, live: Option<&Crd>) -> Option<CrdReadError> {
        let bare = |crd: &Crd| crd.versions.iter().position(|version| version.schema.is_none());
        let first = bare(self).filter(|_| live.and_then(bare).is_none())?;
        self.versions.get(first).map(CrdVersion::without_schema)
    }

    /// The `apiVersion` of the objects at a version: `test.example.com/v1`.
    pub fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.group)
    }

    /// The API resource that serves the objects at this version.
    pub fn resource(&self, version: &str) -> Resource {
        Resource {
            group: self.group.clone(),
            version: version.to_owned(),
            kind: self.names.kind.clone(),
            plural: self.names.plural.clone(),
            namespaced: self.is_namespaced(),
        }
    }

    /// The API resource of each served version.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        self.served_versions().map(|version| self.resource(&version.name))
    }

    /// The annotations, parsed at each call. They may be long: `kubectl apply` stores the whole CRD in one.
    pub fn annotations(&self) -> BTreeMap<String, Value> {
        #[derive(Deserialize)]
        struct CrdAnnotationMetadata {
            annotations: Option<BTreeMap<String, Value>>,
        }
        let metadata = scan::member(&self.text, "metadata");
        let metadata = metadata.and_then(|metadata| serde_json::from_str::<CrdAnnotationMetadata>(metadata).ok());
        metadata.and_then(|metadata| metadata.annotations).unwrap_or_default()
    }
}

impl CrdNames {
    /// The singular name, by default the kind in lower case.
    pub fn singular(&self) -> String {
        if self.singular.is_empty() { gotext::lower(&self.kind) } else { self.singular.clone() }
    }

    /// The kind of the lists, by default the kind with `List` appended.
    pub fn list_kind(&self) -> String {
        if self.list_kind.is_empty() { format!("{}List", self.kind) } else { self.list_kind.clone() }
    }
}

impl ScaleSubresource {
    /// The paths, with the names of their fields.
    pub fn paths(&self) -> [(&'static str, &str); 3] {
        [
            ("specReplicasPath", &self.spec_replicas_path),
            ("statusReplicasPath", &self.status_replicas_path),
            ("labelSelectorPath", &self.label_selector_path),
        ]
    }
}

impl CrdVersion {
    /// The schema as text. A version of `apiextensions.k8s.io/v1` always has one; a version from an older API may have
    /// none, and then accepts everything, like the empty schema.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_ref().map(SharedSlice::text)
    }

    /// The schema as a tree.
    ///
    /// # Errors
    /// The schema is not valid JSON.
    pub fn schema_value(&self) -> Result<Value, MalformedSchema> {
        match self.schema() {
            Some(text) => serde_json::from_str(text).map_err(|error| MalformedSchema(explain_json(&error))),
            None => Ok(serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        }
    }

    /// The schema as a tree, without the formats that a server of this release ignores.
    ///
    /// # Errors
    /// The schema is not valid JSON.
    pub fn enforced_schema(&self, release: KubernetesRelease) -> Result<Value, MalformedSchema> {
        let mut schema = self.schema_value()?;
        drop_ignored_formats(&mut schema, release);
        Ok(schema)
    }

    /// The error for a version that lacks a required schema.
    pub fn without_schema(&self) -> CrdReadError {
        CrdReadError { fault: CrdReadErrorKind::NoSchema(self.name.to_string()), at: steps::version(self.index) }
    }

    /// The paths of the scale subresource; none without the subresource.
    pub fn scale_paths(&self) -> ScalePaths {
        let paths = self.scale.as_ref().map(ScaleSubresource::paths).unwrap_or_default();
        ScalePaths::with_paths(|name| paths.iter().find(|(known, _)| *known == name).map(|(_, path)| *path))
    }

    /// The subresources of this version that the other one lacks.
    pub fn subresources_missing_in(&self, other: &CrdVersion) -> impl Iterator<Item = &'static str> {
        let missing = [
            ("status", self.status_subresource && !other.status_subresource),
            ("scale", self.scale.is_some() && other.scale.is_none()),
        ];
        missing.into_iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| name)
    }

    /// Whether both versions treat objects the same way. Texts for people, such as descriptions, are ignored.
    pub fn same_schema(&self, other: &CrdVersion) -> bool {
        match (self.schema(), other.schema()) {
            (None, None) => true,
            (Some(a), Some(b)) if a == b => true,
            (Some(a), Some(b)) => match (Json::parse(a), Json::parse(b)) {
                (Ok(a), Ok(b)) => same_schema(&a, &b, Sense::Objects),
                _ => false,
            },
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
