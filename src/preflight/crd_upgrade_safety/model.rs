//! What the rules look at: a CRD beside the one that is to replace it, and a schema node beside its successor.
//!
//! Only what a rule needs is read; everything else of a CRD (its managed fields above all) is passed over.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::json::{Json, Map};
use crate::resource::Step;
use crate::text::plain;
use gantry_schema::Scale;
use gantry_schema::keywords;

/// A CRD as far as this check looks at it. The schemas are still text.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a mapping")]
pub struct Crd<'a> {
    #[serde(rename = "apiVersion", borrow)]
    api_version: Option<Cow<'a, str>>,
    metadata: Metadata,
    #[serde(borrow)]
    pub spec: Spec<'a>,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(expecting = "a mapping")]
struct Head<'a> {
    #[serde(rename = "apiVersion", borrow)]
    api_version: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a mapping")]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a mapping")]
#[serde(rename_all = "camelCase")]
pub struct Spec<'a> {
    pub scope: String,
    #[serde(default)]
    pub group: String,
    #[serde(default)]
    pub names: Names,
    #[serde(borrow, default, deserialize_with = "json")]
    conversion: Option<Json<'a>>,
    #[serde(default)]
    preserve_unknown_fields: Option<bool>,
    #[serde(borrow)]
    pub versions: Vec<Version<'a>>,
}

/// The names of a kind. The server fills in those that are missing; [`Names::singular`] and [`Names::list_kind`] do
/// the same.
#[derive(Debug, Default, Deserialize)]
#[serde(expecting = "a mapping")]
#[serde(rename_all = "camelCase", default)]
pub struct Names {
    pub kind: String,
    pub plural: String,
    singular: String,
    list_kind: String,
    pub short_names: Option<Vec<String>>,
    pub categories: Option<Vec<String>>,
}

impl Names {
    pub fn singular(&self) -> String {
        if self.singular.is_empty() { self.kind.to_lowercase() } else { self.singular.clone() }
    }

    pub fn list_kind(&self) -> String {
        if self.list_kind.is_empty() { format!("{}List", self.kind) } else { self.list_kind.clone() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a mapping")]
#[serde(rename_all = "camelCase")]
pub struct Version<'a> {
    pub name: String,
    #[serde(default)]
    pub served: bool,
    #[serde(default)]
    pub storage: bool,
    #[serde(default)]
    pub deprecated: bool,
    #[serde(borrow, default, deserialize_with = "json")]
    subresources: Option<Json<'a>>,
    #[serde(borrow, default, deserialize_with = "json")]
    selectable_fields: Option<Json<'a>>,
    #[serde(borrow, default, deserialize_with = "json")]
    additional_printer_columns: Option<Json<'a>>,
    #[serde(borrow)]
    schema: Option<Schema<'a>>,
}

/// Any value, borrowed from the text.
fn json<'de: 'a, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json<'a>>, D::Error> {
    Option::<Json<'de>>::deserialize(deserializer)
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a mapping")]
struct Schema<'a> {
    #[serde(rename = "openAPIV3Schema", borrow)]
    open_api_v3_schema: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(expecting = "a mapping")]
#[serde(rename_all = "camelCase")]
struct Status {
    stored_versions: Option<Vec<String>>,
}

/// Which of the two CRDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Live,
    Desired,
}

/// A CRD that cannot be judged, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub side: Side,
    pub reason: String,
}

impl<'a> Crd<'a> {
    pub fn parse(text: &'a str, side: Side) -> Result<Self, Malformed> {
        // The API version is told first: a CRD of another one has other fields, and a word about those would mislead.
        let version = |found: Option<&str>| match found {
            Some("apiextensions.k8s.io/v1") => None,
            Some("apiextensions.k8s.io/v1beta1") => {
                Some("it is written at apiextensions.k8s.io/v1beta1, which Kubernetes removed in 1.22".to_owned())
            }
            other => Some(format!(
                "its apiVersion is {:?}; only apiextensions.k8s.io/v1 is understood",
                other.unwrap_or_default()
            )),
        };
        let reason = match serde_json::from_str::<Crd>(text) {
            Ok(crd) => match version(crd.api_version.as_deref()) {
                None if crd.spec.versions.is_empty() => "spec.versions is empty".to_owned(),
                None => return Ok(crd),
                Some(reason) => reason,
            },
            Err(error) => {
                let head: Option<Head> = serde_json::from_str(text).ok();
                let other_version = head.and_then(|head| version(head.api_version.as_deref()));
                other_version.unwrap_or_else(|| plain(&error))
            }
        };
        Err(Malformed { side, reason })
    }

    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    pub fn version(&self, name: &str) -> Option<(usize, &Version<'a>)> {
        self.spec.versions.iter().enumerate().find(|(_, version)| version.name == name)
    }

    /// The versions that objects in storage may be written at. Where the status does not say, it is the storage
    /// version, as in the API server's own defaulting.
    pub fn stored_versions(&self) -> Vec<&str> {
        match self.status.as_ref().and_then(|status| status.stored_versions.as_ref()) {
            Some(stored) if !stored.is_empty() => stored.iter().map(String::as_str).collect(),
            _ => {
                self.spec.versions.iter().find(|version| version.storage).map(|v| v.name.as_str()).into_iter().collect()
            }
        }
    }
}

impl<'a> Crd<'a> {
    /// `status.storedVersions` as it is written, without the fallback of [`Crd::stored_versions`].
    pub fn status_stored_versions(&self) -> &[String] {
        self.status.as_ref().and_then(|status| status.stored_versions.as_deref()).unwrap_or_default()
    }

    /// Whether a webhook converts between the versions.
    pub fn converts_by_webhook(&self) -> bool {
        self.webhook().is_some()
    }

    pub fn has_conversion(&self) -> bool {
        self.spec.conversion.is_some()
    }

    /// What is said of the conversion webhook, where there is one.
    pub fn webhook(&self) -> Option<&Map<'a>> {
        let conversion = self.spec.conversion.as_ref()?.map()?;
        (conversion.get("strategy").and_then(Json::text) == Some("Webhook")).then_some(conversion)
    }

    /// Whether unknown fields are pruned; an old CRD may say that they are not.
    pub fn prunes(&self) -> bool {
        self.spec.preserve_unknown_fields != Some(true)
    }

    /// The version that objects are written at.
    pub fn storage_version(&self) -> Option<&Version<'a>> {
        self.spec.versions.iter().find(|version| version.storage)
    }

    /// `samples.test.example.com`, as kubectl takes it.
    pub fn resource(&self) -> String {
        format!("{}.{}", self.spec.names.plural, self.spec.group)
    }
}

impl<'a> Version<'a> {
    /// The schema as text. A version of `apiextensions.k8s.io/v1` always has one; one that came from an older
    /// API may have none, which accepts everything, as the empty schema does.
    pub fn schema(&self) -> Option<&'a str> {
        self.schema.as_ref()?.open_api_v3_schema.map(RawValue::get).filter(|text| *text != "null")
    }
}

impl<'a> Version<'a> {
    pub fn has_status(&self) -> bool {
        self.subresource("status").is_some()
    }

    /// A path of the scale subresource (`specReplicasPath`, …), where there is such a subresource.
    pub fn scale(&self) -> Option<&Map<'a>> {
        self.subresource("scale")?.map()
    }

    /// What the scale subresource reads; nothing where there is none.
    pub fn scale_paths(&self) -> Scale {
        let scale = self.scale();
        Scale::with_paths(|path| scale?.get(path).and_then(Json::text))
    }

    fn subresource(&self, name: &str) -> Option<&Json<'a>> {
        self.subresources.as_ref()?.map()?.get(name).filter(|value| !matches!(value, Json::Null))
    }

    /// The JSON paths that field selectors may name.
    pub fn selectable_fields(&self) -> Vec<&str> {
        texts(self.selectable_fields.as_ref(), "jsonPath")
    }

    /// The names of the columns that `kubectl get` shows besides its own.
    pub fn printer_columns(&self) -> Vec<&str> {
        texts(self.additional_printer_columns.as_ref(), "name")
    }
}

/// The text under `key` of each item.
fn texts<'n>(list: Option<&'n Json<'_>>, key: &str) -> Vec<&'n str> {
    let items = list.and_then(Json::list).unwrap_or_default();
    items.iter().filter_map(|item| item.map()?.get(key)?.text()).collect()
}

/// A CRD and the one that is to replace it.
#[derive(Debug)]
pub struct CrdPair<'a> {
    pub live: Crd<'a>,
    pub desired: Crd<'a>,
}

impl<'a> CrdPair<'a> {
    /// Reads both CRDs from their JSON.
    ///
    /// # Errors
    /// The side that is no CRD that could be compared.
    pub fn parse(live: &'a str, desired: &'a str) -> Result<Self, Malformed> {
        Ok(CrdPair { live: Crd::parse(live, Side::Live)?, desired: Crd::parse(desired, Side::Desired)? })
    }

    /// Each version that both CRDs have: live's, and desired's with its index there.
    pub fn common_versions(&self) -> impl Iterator<Item = (&Version<'a>, usize, &Version<'a>)> {
        self.live.spec.versions.iter().filter_map(|live| {
            let (index, desired) = self.desired.version(&live.name)?;
            Some((live, index, desired))
        })
    }
}

/// What became of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transition {
    Added,
    Changed,
    Removed,
}

/// A keyword that does not mean the same on both sides of a node.
#[derive(Debug, Clone, Copy)]
pub struct Change<'n, 'a> {
    pub keyword: &'n str,
    pub live: Option<&'n Json<'a>>,
    pub desired: Option<&'n Json<'a>>,
}

impl Change<'_, '_> {
    pub fn transition(&self) -> Transition {
        match (self.live, self.desired) {
            (None, _) => Transition::Added,
            (_, None) => Transition::Removed,
            _ => Transition::Changed,
        }
    }
}

/// Where a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the CRD.
    pub crd: String,
    pub version: String,
    /// `^.spec.pollInterval`
    pub path: String,
    /// From the root of the desired CRD to this node of its schema.
    pub steps: Vec<Step>,
}

impl Place {
    /// The field as a person names it: `spec.pollInterval`.
    pub fn field(&self) -> &str {
        self.path.strip_prefix("^.").unwrap_or("the object itself")
    }
}

/// A schema node that both CRDs have, where something of its own differs.
#[derive(Debug)]
pub struct NodePair<'n, 'a> {
    pub place: &'n Place,
    pub live: &'n Map<'a>,
    pub desired: &'n Map<'a>,
    /// Sorted by keyword. Nodes below are not looked at: each is a pair of its own.
    pub changes: &'n [Change<'n, 'a>],
    /// Those that no rule claims but the one for unknown changes.
    pub unclaimed: &'n [&'n Change<'n, 'a>],
}

impl<'n, 'a> NodePair<'n, 'a> {
    pub fn change(&self, keyword: &str) -> Option<&'n Change<'n, 'a>> {
        self.changes.iter().find(|change| change.keyword == keyword)
    }

    /// The desired node's value of a keyword, unless it means nothing.
    pub fn desired(&self, keyword: &str) -> Option<&'n Json<'a>> {
        keywords::get(self.desired, keyword)
    }
}

/// A schema node of the live CRD that the desired one lacks.
#[derive(Debug)]
pub struct RemovedNode<'n, 'a> {
    pub place: &'n Place,
    pub live: &'n Map<'a>,
}
