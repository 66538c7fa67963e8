//! CustomResourceDefinitions: what gantry reads of one, once, and shares.
//!
//! ```text
//! JSON ─► read ─► Crd ──► Pair      a CRD, and the one that is to replace it
//!           └──► Unreadable         what is wrong, and where
//! steps                             where its parts are, for places in a manifest
//! versions                          the order of versions, and which are served together
//! ```
//!
//! Schemas stay text until somebody asks, and the text is the object's own: a CRD that was read takes little more memory
//! than its names. Which keywords a schema has, and when two schemas say the same, [`gantry_schema`] knows
//! ([`gantry_schema::keywords`], [`gantry_schema::same`]); what the API server refuses in a CRD, [`gantry_schema::crd`].

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

pub use self::pair::{CrdPair, Malformed, Side, Sides};
pub use self::unreadable::{Fault, Unreadable};
use crate::resource::{RawObject, Resource};
use gantry_schema::json::{self, Json};
use gantry_schema::{Scale, Sense, gotext, same_schema};

/// The version of the API that CRDs are written at.
pub const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// A CRD.
#[derive(Debug, Clone)]
pub struct Crd {
    api_version: String,
    /// `samples.test.example.com`
    pub name: String,
    pub group: String,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
    pub names: Names,
    /// `None` where the CRD does not say.
    pub conversion: Option<Conversion>,
    /// A leftover of CRDs from before 1.16: unknown fields of all objects are kept.
    pub preserve_unknown_fields: bool,
    /// At least one.
    pub versions: Vec<Version>,
    /// As it is written; see [`Crd::stored_versions`].
    pub status_stored_versions: Vec<String>,
    text: Arc<str>,
}

/// The names of a kind. The server fills in those that are missing; [`Names::singular`] and [`Names::list_kind`] do
/// the same.
#[derive(Debug, Clone)]
pub struct Names {
    pub kind: String,
    pub plural: String,
    singular: String,
    list_kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Version {
    pub name: Arc<str>,
    /// Index into `spec.versions`.
    pub index: usize,
    pub served: bool,
    pub storage: bool,
    pub deprecated: bool,
    /// What the server says of a deprecated version, where it is not its own sentence.
    pub deprecation_warning: String,
    pub status_subresource: bool,
    pub scale: Option<ScaleSubresource>,
    /// The JSON paths that field selectors may name.
    pub selectable_fields: Vec<String>,
    /// The names of the columns that `kubectl get` shows besides its own.
    pub printer_columns: Vec<String>,
    schema: Option<Part>,
}

/// What the scale subresource reads. Of a path that is not given the text is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScaleSubresource {
    pub spec_replicas_path: String,
    pub status_replicas_path: String,
    pub label_selector_path: String,
}

#[derive(Debug, Clone)]
pub struct Conversion {
    /// `None` where it is not given.
    pub strategy: Option<Strategy>,
    webhook: Option<Webhook>,
}

/// How objects get from one version to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// Objects differ between versions in `apiVersion` alone.
    None,
    Webhook,
}

#[derive(Debug, Clone, Default)]
pub struct Webhook {
    /// `conversionReviewVersions`
    pub review_versions: Vec<String>,
    pub client_config: ClientConfig,
}

#[derive(Debug, Clone, Default)]
pub struct ClientConfig {
    pub url: Option<String>,
    pub service: Option<ServiceReference>,
    /// As it is written, in base64.
    pub ca_bundle: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceReference {
    pub namespace: String,
    pub name: String,
    pub path: Option<String>,
    pub port: i64,
}

impl ServiceReference {
    /// What the API server takes for a port that is not given.
    const HTTPS: i64 = 443;
}

/// A part of a text that is held once.
#[derive(Clone)]
struct Part {
    whole: Arc<str>,
    range: Range<usize>,
}

impl Part {
    /// `part` must be a slice of `whole`.
    fn of(whole: &Arc<str>, part: &str) -> Self {
        let start = part.as_ptr().addr() - whole.as_ptr().addr();
        Part { whole: Arc::clone(whole), range: start..start + part.len() }
    }

    fn text(&self) -> &str {
        &self.whole[self.range.clone()]
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.range.len())
    }
}

/// Whether a CRD of this `apiVersion` is one that servers have today.
fn at_v1(api_version: &str) -> Result<(), Unreadable> {
    match api_version {
        API_VERSION => Ok(()),
        other => Err(Unreadable { fault: Fault::ApiVersion(other.to_owned()), at: vec!["apiVersion".into()] }),
    }
}

impl Crd {
    /// # Errors
    /// Why it cannot be read as a CRD of `apiextensions.k8s.io/v1`.
    pub fn read(object: &RawObject) -> Result<Self, Unreadable> {
        Self::read_at_any_version(object).and_then(Crd::into_v1)
    }

    /// The same of JSON text.
    ///
    /// # Errors
    /// As [`Crd::read`].
    pub fn parse(json: &str) -> Result<Self, Unreadable> {
        read::read(json.into()).and_then(Crd::into_v1)
    }

    /// Also one that is written at `apiextensions.k8s.io/v1beta1`, where names, group, scope and versions are the same.
    ///
    /// # Errors
    /// Why it cannot be read as a CRD.
    pub fn read_at_any_version(object: &RawObject) -> Result<Self, Unreadable> {
        read::read(object.text())
    }

    fn into_v1(self) -> Result<Self, Unreadable> {
        at_v1(&self.api_version).map(|()| self)
    }

    pub fn is_namespaced(&self) -> bool {
        self.scope == "Namespaced"
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    /// The version, if it is served.
    pub fn served(&self, name: &str) -> Option<&Version> {
        self.version(name).filter(|version| version.served)
    }

    pub fn served_versions(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| version.served)
    }

    /// The version that objects are written at.
    pub fn storage(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The versions that objects in storage may be written at. Where the status does not say, it is the storage
    /// version, as in the API server's own defaulting.
    pub fn stored_versions(&self) -> Vec<&str> {
        if self.status_stored_versions.is_empty() {
            return self.storage().map(|version| &*version.name).into_iter().collect();
        }
        self.status_stored_versions.iter().map(String::as_str).collect()
    }

    /// Whether objects in storage may be written at the version.
    pub fn is_stored(&self, version: &str) -> bool {
        self.stored_versions().contains(&version)
    }

    /// How objects are converted; `None` where the CRD does not say.
    pub fn strategy(&self) -> Option<Strategy> {
        self.conversion.as_ref()?.strategy
    }

    /// Whether a webhook converts between the versions.
    pub fn converts_by_webhook(&self) -> bool {
        self.strategy() == Some(Strategy::Webhook)
    }

    /// The webhook that converts, where one does and it is described.
    pub fn webhook(&self) -> Option<&Webhook> {
        self.conversion.as_ref().filter(|_| self.converts_by_webhook())?.webhook.as_ref()
    }

    /// The first version that has no schema and needs one. The server takes such a version only from a CRD that is live
    /// with one already, a leftover of the API before `apiextensions.k8s.io/v1`.
    pub fn lacks_schema(&self, live: Option<&Crd>) -> Option<Unreadable> {
        let bare = |crd: &Crd| crd.versions.iter().position(|version| version.schema.is_none());
        let first = bare(self).filter(|_| live.and_then(bare).is_none())?;
        self.versions.get(first).map(Version::without_schema)
    }

    /// `samples.test.example.com`, as kubectl takes it.
    pub fn plural_and_group(&self) -> String {
        format!("{}.{}", self.names.plural, self.group)
    }

    pub fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.group)
    }

    /// Where the objects are served at this version.
    pub fn resource(&self, version: &str) -> Resource {
        Resource {
            group: self.group.clone(),
            version: version.to_owned(),
            kind: self.names.kind.clone(),
            plural: self.names.plural.clone(),
            namespaced: self.is_namespaced(),
        }
    }

    /// Its kind at each version that it serves.
    pub fn resources(&self) -> impl Iterator<Item = Resource> {
        self.served_versions().map(|version| self.resource(&version.name))
    }

    /// The annotations, read at each call. They may be long: `kubectl apply` keeps the whole CRD in one.
    pub fn annotations(&self) -> BTreeMap<String, Value> {
        #[derive(Deserialize)]
        struct Metadata {
            annotations: Option<BTreeMap<String, Value>>,
        }
        let metadata = json::member(&self.text, "metadata");
        let metadata = metadata.and_then(|metadata| serde_json::from_str::<Metadata>(metadata).ok());
        metadata.and_then(|metadata| metadata.annotations).unwrap_or_default()
    }
}

impl Names {
    pub fn singular(&self) -> String {
        if self.singular.is_empty() { gotext::lower(&self.kind) } else { self.singular.clone() }
    }

    pub fn list_kind(&self) -> String {
        if self.list_kind.is_empty() { format!("{}List", self.kind) } else { self.list_kind.clone() }
    }
}

impl ScaleSubresource {
    /// Its paths, by the names of their fields.
    pub fn paths(&self) -> [(&'static str, &str); 3] {
        [
            ("specReplicasPath", &self.spec_replicas_path),
            ("statusReplicasPath", &self.status_replicas_path),
            ("labelSelectorPath", &self.label_selector_path),
        ]
    }
}

impl Version {
    /// The schema as text. A version of `apiextensions.k8s.io/v1` always has one; one that came from an older
    /// API may have none, which accepts everything, as the empty schema does.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_ref().map(Part::text)
    }

    /// The schema as a tree.
    ///
    /// # Errors
    /// A schema that is no JSON.
    pub fn schema_value(&self) -> Result<Value, String> {
        match self.schema() {
            Some(text) => serde_json::from_str(text).map_err(|error| explain_json(&error)),
            None => Ok(serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        }
    }

    /// The error of a version that has no schema and needs one.
    pub fn without_schema(&self) -> Unreadable {
        Unreadable { fault: Fault::NoSchema(self.name.to_string()), at: steps::version(self.index) }
    }

    /// What the scale subresource reads; nothing where there is none.
    pub fn scale_paths(&self) -> Scale {
        let paths = self.scale.as_ref().map(ScaleSubresource::paths).unwrap_or_default();
        Scale::with_paths(|name| paths.iter().find(|(known, _)| *known == name).map(|(_, path)| *path))
    }

    /// Whether objects meet the same at both: texts for people do not count.
    pub fn same_schema(&self, other: &Version) -> bool {
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
