//! Bundles of the format registry+v1, and whether OLM v1 installs them.
//!
//! A bundle is a folder, or an image with its content: `metadata/annotations.yaml` names its package, and `manifests/`
//! contains a ClusterServiceVersion and the objects that OLM installs with it. [`Bundle::read`] takes texts; this
//! module does not access the file system.

mod check;
mod cluster_service_version;
mod config;
mod support;
#[cfg(test)]
mod tests;
mod validators;

use std::fmt;

use gantry_yaml::explain_json;
use serde::Deserialize;
use serde_json::value::RawValue;

pub use crate::olm_release::OlmRelease;
pub use check::{check_support, unsupported};
pub use cluster_service_version::{
    ApiDescription, BundlePolicyRule, ClusterServiceVersion, CsvWebhook, DeploymentSpec, InstallMode, Permissions,
    WebhookRule,
};
pub use support::{
    BundleDetail, BundlePlace, CsvStep, Profile, Support, UncheckedBundlePart, Unsupported, UnsupportedKind,
};

use crate::json::compact;
use crate::property::Property;

/// The annotation with the format of a bundle.
pub const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
/// The only supported format.
pub const REGISTRY_V1: &str = "registry+v1";

/// The maximum size of a file in `metadata/`, in bytes; real ones have a few KB.
const MOST_BYTES_OF_METADATA: usize = 4 << 20;

/// The contents of `metadata/annotations.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotations {
    /// The format, such as `registry+v1`; empty if there is none.
    pub media_type: String,
    /// The package of the bundle; empty if there is none.
    pub package: String,
    /// The channels that the bundle belongs to.
    pub channels: Vec<String>,
    /// The channel to use if none is requested; empty if there is none.
    pub default_channel: String,
}

/// A custom resource definition of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleCrd {
    /// Its `metadata.name`.
    pub name: String,
    /// Its versions, and whether each is served; `None` if they cannot be read.
    pub versions: Option<Vec<(String, bool)>>,
    /// The kind that it defines; empty if it cannot be read.
    pub defined_kind: String,
    /// The file that contains it.
    pub file: String,
}

/// Another object of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleObject {
    /// Its `apiVersion`, such as `v1` or `rbac.authorization.k8s.io/v1`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its `metadata.name`.
    pub name: String,
    /// The file that contains it.
    pub file: String,
}

/// A bundle.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Bundle {
    /// The contents of `metadata/annotations.yaml`.
    pub annotations: Annotations,
    /// The ClusterServiceVersion, and its file. If there are several, OLM uses the last one.
    pub csv: Option<(ClusterServiceVersion, String)>,
    /// The custom resource definitions, in the order of the files.
    pub crds: Vec<BundleCrd>,
    /// All other objects, in the order of the files.
    pub others: Vec<BundleObject>,
    /// Folders below `manifests/`, such as `manifests/more`; OLM allows none.
    pub subdirectories: Vec<String>,
    /// The dependencies in `metadata/dependencies.yaml`: type (`olm.gvk`, `olm.package`, `olm.constraint`) and value.
    pub dependencies: Vec<Property>,
    /// The properties in `metadata/properties.yaml`.
    pub properties: Vec<Property>,
    /// Whether there is a `metadata/properties.yaml` that is not empty: OLM then writes an annotation for it.
    pub has_properties_file: bool,
}

/// The texts that a bundle consists of.
#[derive(Debug, Clone, Copy, Default)]
pub struct BundleTexts<'a> {
    /// `metadata/annotations.yaml`.
    pub annotations: &'a str,
    /// `metadata/dependencies.yaml`, if it exists.
    pub dependencies: Option<&'a str>,
    /// `metadata/properties.yaml`, if it exists.
    pub properties: Option<&'a str>,
    /// The objects of `manifests/`: the file of each, and its JSON.
    pub objects: &'a [(&'a str, &'a str)],
    /// Folders below `manifests/`.
    pub subdirectories: &'a [String],
}

/// Why a bundle cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleReadError {
    /// The name of the file: `metadata/…`, or the name that was passed with the object.
    pub file: String,
    /// The line, from 1; 0 if it is unknown.
    pub line: usize,
    /// The error message.
    pub message: String,
}

impl fmt::Display for BundleReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

impl std::error::Error for BundleReadError {}

impl BundleReadError {
    fn new(file: &str, message: impl Into<String>) -> Self {
        BundleReadError { file: file.to_owned(), line: 0, message: message.into() }
    }
}

impl Annotations {
    /// Reads `metadata/annotations.yaml`. Missing values are empty.
    ///
    /// # Errors
    /// Invalid YAML, or fields of the wrong type.
    pub fn read(text: &str) -> Result<Annotations, BundleReadError> {
        #[derive(Deserialize)]
        struct BundleAnnotationsFile {
            annotations: Option<BundleAnnotationKeys>,
        }
        #[derive(Deserialize, Default)]
        struct BundleAnnotationKeys {
            #[serde(rename = "operators.operatorframework.io.bundle.mediatype.v1")]
            media_type: Option<String>,
            #[serde(rename = "operators.operatorframework.io.bundle.package.v1")]
            package: Option<String>,
            #[serde(rename = "operators.operatorframework.io.bundle.channels.v1")]
            channels: Option<String>,
            #[serde(rename = "operators.operatorframework.io.bundle.channel.default.v1")]
            default_channel: Option<String>,
        }
        let keys =
            parse_yaml::<BundleAnnotationsFile>("metadata/annotations.yaml", text)?.and_then(|file| file.annotations);
        let BundleAnnotationKeys { media_type, package, channels, default_channel } = keys.unwrap_or_default();
        let channels = channels.unwrap_or_default();
        let channels = channels.split(',').map(str::trim).filter(|channel| !channel.is_empty());
        Ok(Annotations {
            media_type: media_type.unwrap_or_default(),
            package: package.unwrap_or_default(),
            channels: channels.map(str::to_owned).collect(),
            default_channel: default_channel.unwrap_or_default(),
        })
    }

    /// Whether the bundle has the supported format.
    pub fn is_registry_v1(&self) -> bool {
        self.media_type == REGISTRY_V1
    }
}

impl Bundle {
    /// Reads a bundle. The caller collects its objects, in the order of the files.
    ///
    /// # Errors
    /// Input that OLM cannot read either: invalid YAML, or fields of the wrong type.
    pub fn read(texts: BundleTexts<'_>) -> Result<Bundle, BundleReadError> {
        let mut bundle = Bundle {
            annotations: Annotations::read(texts.annotations)?,
            dependencies: list("metadata/dependencies.yaml", texts.dependencies, |file| file.dependencies)?,
            properties: list("metadata/properties.yaml", texts.properties, |file| file.properties)?,
            subdirectories: texts.subdirectories.to_vec(),
            has_properties_file: texts.properties.is_some_and(|text| !text.is_empty()),
            ..Bundle::default()
        };
        for (file, json) in texts.objects {
            bundle.add(file, json).map_err(|message| BundleReadError::new(file, message))?;
        }
        Ok(bundle)
    }

    fn add(&mut self, file: &str, json: &str) -> Result<(), String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct BundleObjectHead {
            api_version: Option<String>,
            kind: Option<String>,
            metadata: Option<BundleObjectMetadata>,
        }
        #[derive(Deserialize)]
        struct BundleObjectMetadata {
            name: Option<String>,
        }
        let head: BundleObjectHead = serde_json::from_str(json).map_err(|error| explain_json(&error))?;
        let name = head.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        let (kind, file) = (head.kind.unwrap_or_default(), file.to_owned());
        // OLM looks only at the kind.
        match kind.as_str() {
            "ClusterServiceVersion" => self.csv = Some((ClusterServiceVersion::read(json)?, file)),
            "CustomResourceDefinition" => {
                let (versions, defined_kind) = versions_and_kind(json).unzip();
                let defined_kind = defined_kind.unwrap_or_default();
                self.crds.push(BundleCrd { name, versions, defined_kind, file });
            }
            _ => self.others.push(BundleObject { api_version: head.api_version.unwrap_or_default(), kind, name, file }),
        }
        Ok(())
    }
}

/// The versions of a CRD, and whether each is served; and the kind that it defines.
fn versions_and_kind(crd: &str) -> Option<(Vec<(String, bool)>, String)> {
    #[derive(Deserialize)]
    struct BundleCrdManifest {
        spec: BundleCrdSpec,
    }
    #[derive(Deserialize)]
    struct BundleCrdSpec {
        versions: Vec<BundleCrdVersion>,
        #[serde(default)]
        names: BundleCrdNames,
    }
    #[derive(Default, Deserialize)]
    struct BundleCrdNames {
        #[serde(default)]
        kind: String,
    }
    #[derive(Deserialize)]
    struct BundleCrdVersion {
        name: String,
        served: bool,
    }
    let crd: BundleCrdManifest = serde_json::from_str(crd).ok()?;
    let versions = crd.spec.versions.into_iter().map(|version| (version.name, version.served)).collect();
    Some((versions, crd.spec.names.kind))
}

#[derive(Deserialize)]
struct Lists<'a> {
    #[serde(borrow)]
    dependencies: Option<Vec<BundleProperty<'a>>>,
    #[serde(borrow)]
    properties: Option<Vec<BundleProperty<'a>>>,
}

#[derive(Deserialize)]
struct BundleProperty<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

fn list(
    name: &str,
    text: Option<&str>,
    of: impl for<'a> Fn(Lists<'a>) -> Option<Vec<BundleProperty<'a>>>,
) -> Result<Vec<Property>, BundleReadError> {
    let Some(json) = text.map(|text| to_json(name, text)).transpose()?.flatten() else { return Ok(Vec::new()) };
    let lists: Lists<'_> =
        serde_json::from_str(&json).map_err(|error| BundleReadError::new(name, explain_json(&error)))?;
    let property = |item: BundleProperty<'_>| Property {
        kind: item.kind,
        value: item.value.map_or_else(|| "null".to_owned(), |value| compact(value.get()).into_owned()),
    };
    Ok(of(lists).unwrap_or_default().into_iter().map(property).collect())
}

fn parse_yaml<T: for<'a> Deserialize<'a>>(name: &str, text: &str) -> Result<Option<T>, BundleReadError> {
    let Some(json) = to_json(name, text)? else { return Ok(None) };
    serde_json::from_str(&json).map(Some).map_err(|error| BundleReadError::new(name, explain_json(&error)))
}

fn to_json(name: &str, text: &str) -> Result<Option<String>, BundleReadError> {
    if text.len() > MOST_BYTES_OF_METADATA {
        let message = format!("larger than the limit of {} MiB", MOST_BYTES_OF_METADATA >> 20);
        return Err(BundleReadError::new(name, message));
    }
    match gantry_yaml::to_json(text) {
        Ok(json) => Ok(json.map(|json| json.text).filter(|json| json != "null")),
        Err(error) => Err(BundleReadError { file: name.to_owned(), line: error.line, message: error.message }),
    }
}
