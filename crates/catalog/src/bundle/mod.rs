//! Bundles of the format registry+v1, and what OLM v1 makes of them.
//!
//! A bundle is a folder (or an image with that content): `metadata/annotations.yaml` names its package, `manifests/` has
//! a ClusterServiceVersion and the objects that OLM writes with it. [`Bundle::read`] takes texts; nothing here looks at
//! the file system.

mod cluster_service_version;
mod config;
pub mod install;
mod judge;
mod judgement;
#[cfg(test)]
mod tests;
mod validators;

use gantry_yaml::explain_json;
use serde::Deserialize;
use serde_json::value::RawValue;

pub use cluster_service_version::{
    ApiDescription, ClusterServiceVersion, DeploymentSpec, InstallMode, Permissions, PolicyRule, Webhook, WebhookRule,
};
pub use judge::{judge, unsupported};
pub use judgement::{Judgement, Known, Olm, Place, Profile, Reason, Step, Unchecked, Unsupported};

use crate::json::compact;
use crate::property::Property;

/// The annotation that says of which format a bundle is.
pub const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
/// The only format that is read here.
pub const REGISTRY_V1: &str = "registry+v1";

/// The largest text of the folder `metadata/` that is read; real ones have some KB.
const MOST_BYTES_OF_METADATA: usize = 4 << 20;

/// What `metadata/annotations.yaml` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The format: `registry+v1`; empty where there is none.
    pub media_type: String,
    /// The package that the bundle is of.
    pub package: String,
    /// The channels that it is to be in.
    pub channels: Vec<String>,
    /// The channel that is taken where none is asked for; empty where it does not say.
    pub default_channel: String,
}

/// A custom resource definition of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crd {
    /// Its `metadata.name`.
    pub name: String,
    /// Its versions, and whether each is served; `None` where that cannot be read.
    pub versions: Option<Vec<(String, bool)>>,
    /// The file that it is in.
    pub file: String,
}

/// Another object of a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Object {
    /// `v1`, `rbac.authorization.k8s.io/v1`
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its `metadata.name`.
    pub name: String,
    /// The file that it is in.
    pub file: String,
}

/// A bundle.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// What `metadata/annotations.yaml` says.
    pub annotations: Annotations,
    /// The ClusterServiceVersion, and its file; of several OLM takes the last one.
    pub csv: Option<(ClusterServiceVersion, String)>,
    /// The custom resource definitions, in the order of the files.
    pub crds: Vec<Crd>,
    /// All other objects, in the order of the files.
    pub others: Vec<Object>,
    /// Folders below `manifests/`, which there must not be: `manifests/more`.
    pub subdirectories: Vec<String>,
    /// What `metadata/dependencies.yaml` says that it depends on: the type (`olm.gvk`, `olm.package`, `olm.constraint`)
    /// and the value.
    pub dependencies: Vec<Property>,
    /// What `metadata/properties.yaml` says of it.
    pub properties: Vec<Property>,
}

/// The texts that a bundle consists of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts<'a> {
    /// `metadata/annotations.yaml`
    pub annotations: &'a str,
    /// `metadata/dependencies.yaml`, where there is one.
    pub dependencies: Option<&'a str>,
    /// `metadata/properties.yaml`, where there is one.
    pub properties: Option<&'a str>,
    /// The objects of `manifests/`: the file of each, and its JSON.
    pub objects: &'a [(&'a str, &'a str)],
    /// Folders below `manifests/`.
    pub subdirectories: &'a [String],
}

/// Why a bundle cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Of a file of `metadata/` its name, of another one the name that was given with the object.
    pub file: String,
    /// The line, from 1; 0 where it is not known.
    pub line: usize,
    /// What is wrong, for a person.
    pub message: String,
}

impl Unreadable {
    fn new(file: &str, message: impl Into<String>) -> Self {
        Unreadable { file: file.to_owned(), line: 0, message: message.into() }
    }
}

impl Annotations {
    /// Reads `metadata/annotations.yaml`. What it does not say is empty.
    pub fn read(text: &str) -> Result<Annotations, Unreadable> {
        #[derive(Deserialize)]
        struct File {
            annotations: Option<Keys>,
        }
        #[derive(Deserialize, Default)]
        struct Keys {
            #[serde(rename = "operators.operatorframework.io.bundle.mediatype.v1")]
            media_type: Option<String>,
            #[serde(rename = "operators.operatorframework.io.bundle.package.v1")]
            package: Option<String>,
            #[serde(rename = "operators.operatorframework.io.bundle.channels.v1")]
            channels: Option<String>,
            #[serde(rename = "operators.operatorframework.io.bundle.channel.default.v1")]
            default_channel: Option<String>,
        }
        let keys = parse_yaml::<File>("metadata/annotations.yaml", text)?.and_then(|file| file.annotations);
        let Keys { media_type, package, channels, default_channel } = keys.unwrap_or_default();
        let channels = channels.unwrap_or_default();
        let channels = channels.split(',').map(str::trim).filter(|channel| !channel.is_empty());
        Ok(Annotations {
            media_type: media_type.unwrap_or_default(),
            package: package.unwrap_or_default(),
            channels: channels.map(str::to_owned).collect(),
            default_channel: default_channel.unwrap_or_default(),
        })
    }

    /// Whether the bundle is of the format that is read here.
    pub fn is_registry_v1(&self) -> bool {
        self.media_type == REGISTRY_V1
    }
}

impl Bundle {
    /// Reads a bundle. Which objects it has decides the caller; their order is that of the files.
    ///
    /// # Errors
    /// What OLM cannot read either: text that is no YAML, fields of another type.
    pub fn read(texts: Texts<'_>) -> Result<Bundle, Unreadable> {
        let mut bundle = Bundle {
            annotations: Annotations::read(texts.annotations)?,
            dependencies: list("metadata/dependencies.yaml", texts.dependencies, |file| file.dependencies)?,
            properties: list("metadata/properties.yaml", texts.properties, |file| file.properties)?,
            subdirectories: texts.subdirectories.to_vec(),
            ..Bundle::default()
        };
        for (file, json) in texts.objects {
            bundle.add(file, json).map_err(|message| Unreadable::new(file, message))?;
        }
        Ok(bundle)
    }

    fn add(&mut self, file: &str, json: &str) -> Result<(), String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            api_version: Option<String>,
            kind: Option<String>,
            metadata: Option<Metadata>,
        }
        #[derive(Deserialize)]
        struct Metadata {
            name: Option<String>,
        }
        let head: Head = serde_json::from_str(json).map_err(|error| explain_json(&error))?;
        let name = head.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
        let (kind, file) = (head.kind.unwrap_or_default(), file.to_owned());
        // OLM looks at the kind alone.
        match kind.as_str() {
            "ClusterServiceVersion" => self.csv = Some((ClusterServiceVersion::read(json)?, file)),
            "CustomResourceDefinition" => self.crds.push(Crd { name, versions: versions(json), file }),
            _ => self.others.push(Object { api_version: head.api_version.unwrap_or_default(), kind, name, file }),
        }
        Ok(())
    }
}

fn versions(crd: &str) -> Option<Vec<(String, bool)>> {
    #[derive(Deserialize)]
    struct Crd {
        spec: Spec,
    }
    #[derive(Deserialize)]
    struct Spec {
        versions: Vec<Version>,
    }
    #[derive(Deserialize)]
    struct Version {
        name: String,
        served: bool,
    }
    let crd: Crd = serde_json::from_str(crd).ok()?;
    Some(crd.spec.versions.into_iter().map(|version| (version.name, version.served)).collect())
}

#[derive(Deserialize)]
struct Lists<'a> {
    #[serde(borrow)]
    dependencies: Option<Vec<Item<'a>>>,
    #[serde(borrow)]
    properties: Option<Vec<Item<'a>>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

fn list(
    name: &str,
    text: Option<&str>,
    of: impl for<'a> Fn(Lists<'a>) -> Option<Vec<Item<'a>>>,
) -> Result<Vec<Property>, Unreadable> {
    let Some(json) = text.map(|text| to_json(name, text)).transpose()?.flatten() else { return Ok(Vec::new()) };
    let lists: Lists<'_> = serde_json::from_str(&json).map_err(|error| Unreadable::new(name, explain_json(&error)))?;
    let property = |item: Item<'_>| Property {
        kind: item.kind,
        value: item.value.map_or_else(|| "null".to_owned(), |value| compact(value.get()).into_owned()),
    };
    Ok(of(lists).unwrap_or_default().into_iter().map(property).collect())
}

fn parse_yaml<T: for<'a> Deserialize<'a>>(name: &str, text: &str) -> Result<Option<T>, Unreadable> {
    let Some(json) = to_json(name, text)? else { return Ok(None) };
    serde_json::from_str(&json).map(Some).map_err(|error| Unreadable::new(name, explain_json(&error)))
}

fn to_json(name: &str, text: &str) -> Result<Option<String>, Unreadable> {
    if text.len() > MOST_BYTES_OF_METADATA {
        let message = format!("larger than the limit of {} MiB", MOST_BYTES_OF_METADATA >> 20);
        return Err(Unreadable::new(name, message));
    }
    match gantry_yaml::to_json(text) {
        Ok(json) => Ok(json.map(|json| json.text).filter(|json| json != "null")),
        Err(error) => Err(Unreadable { file: name.to_owned(), line: error.line, message: error.message }),
    }
}
