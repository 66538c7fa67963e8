//! A CRD as far as this check looks at it. Schemas stay text until somebody asks.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::resource::{RawObject, Resource, Step};
use crate::text::plain;
use gantry_schema::json::Json;
use gantry_schema::{self as schema, Sense};
use gantry_schema::{Scale, Schema};

#[derive(Debug)]
pub struct Crd {
    pub group: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
    pub versions: Vec<Version>,
    /// `None` where the CRD does not say.
    pub conversion: Option<Conversion>,
    /// `status.storedVersions`; the storage version where there is none.
    pub stored_versions: Vec<String>,
    /// A leftover of CRDs from before 1.16: unknown fields of all objects are kept.
    pub keeps_unknown_fields: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// Objects differ between versions in `apiVersion` alone.
    Relabel,
    Webhook,
}

#[derive(Debug)]
pub struct Version {
    pub name: Arc<str>,
    pub served: bool,
    pub storage: bool,
    /// The text of `openAPIV3Schema`.
    pub schema: Option<String>,
    pub status_subresource: bool,
    /// What the scale subresource reads; empty where there is none.
    pub scale: Scale,
    /// Index into `spec.versions`.
    pub index: usize,
}

/// A version with its schema compiled.
#[derive(Debug, Clone)]
pub struct Compiled {
    pub name: Arc<str>,
    pub schema: Schema,
    /// `openAPIV3Schema` as it is written.
    pub raw: Arc<Value>,
    pub status_subresource: bool,
    /// Index into `spec.versions`.
    pub index: usize,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(rename = "apiVersion")]
    api_version: String,
    spec: RawSpec,
    #[serde(default)]
    status: Option<RawStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    group: String,
    scope: String,
    names: RawNames,
    versions: Vec<RawVersion>,
    #[serde(default)]
    conversion: Option<RawConversion>,
    #[serde(default)]
    preserve_unknown_fields: Option<bool>,
}

#[derive(Deserialize)]
struct RawNames {
    plural: String,
    kind: String,
}

#[derive(Deserialize)]
struct RawVersion {
    name: String,
    #[serde(default)]
    served: bool,
    #[serde(default)]
    storage: bool,
    #[serde(default)]
    schema: Option<RawSchema>,
    #[serde(default)]
    subresources: Option<RawSubresources>,
}

#[derive(Deserialize)]
struct RawSchema {
    #[serde(rename = "openAPIV3Schema", default)]
    open_api_v3_schema: Option<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
struct RawSubresources {
    #[serde(default)]
    status: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    scale: Option<Value>,
}

#[derive(Deserialize)]
struct RawConversion {
    #[serde(default)]
    strategy: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    #[serde(default)]
    stored_versions: Option<Vec<String>>,
}

impl Crd {
    /// # Errors
    /// Why it is no CRD of `apiextensions.k8s.io/v1`.
    pub fn parse(object: &RawObject) -> Result<Self, String> {
        let Raw { api_version, spec, status } = serde_json::from_str(&object.json()).map_err(|error| plain(&error))?;
        if api_version != "apiextensions.k8s.io/v1" {
            return Err(format!("its apiVersion is {api_version:?}; only apiextensions.k8s.io/v1 is understood"));
        }
        let versions: Vec<Version> = spec
            .versions
            .into_iter()
            .enumerate()
            .map(|(index, version)| {
                let subresources = version.subresources.unwrap_or_default();
                Version {
                    name: version.name.into(),
                    served: version.served,
                    storage: version.storage,
                    schema: version.schema.and_then(|schema| schema.open_api_v3_schema).map(|raw| raw.get().to_owned()),
                    status_subresource: subresources.status.is_some(),
                    scale: subresources.scale.as_ref().map(Scale::of).unwrap_or_default(),
                    index,
                }
            })
            .collect();
        let stored = status.and_then(|status| status.stored_versions).filter(|stored| !stored.is_empty());
        let by_default = || versions.iter().filter(|version| version.storage).map(|v| v.name.to_string()).collect();
        Ok(Crd {
            stored_versions: stored.unwrap_or_else(by_default),
            group: spec.group,
            kind: spec.names.kind,
            plural: spec.names.plural,
            namespaced: spec.scope == "Namespaced",
            conversion: spec.conversion.filter(|conversion| !conversion.strategy.is_empty()).map(|conversion| {
                if conversion.strategy == "Webhook" { Conversion::Webhook } else { Conversion::Relabel }
            }),
            keeps_unknown_fields: spec.preserve_unknown_fields == Some(true),
            versions,
        })
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| &*version.name == name)
    }

    pub fn served(&self, name: &str) -> Option<&Version> {
        self.version(name).filter(|version| version.served)
    }

    pub fn storage(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }

    /// The first version that has no schema and needs one. The server takes such a version only from a CRD that is live
    /// with one already, a leftover of the API before `apiextensions.k8s.io/v1`.
    pub fn lacks_schema(&self, live: Option<&Crd>) -> Option<&str> {
        let bare = |crd: &Crd| crd.versions.iter().position(|version| version.schema.is_none());
        let first = bare(self).filter(|_| live.and_then(bare).is_none())?;
        self.versions.get(first).map(|version| &*version.name)
    }

    /// Where the objects are served at this version.
    pub fn resource(&self, version: &str) -> Resource {
        Resource {
            group: self.group.clone(),
            version: version.to_owned(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
            namespaced: self.namespaced,
        }
    }

    pub fn api_version(&self, version: &str) -> String {
        format!("{}/{version}", self.group)
    }
}

impl Version {
    /// Whether its scale subresource reads what that of `before` does not.
    pub fn reads_more(&self, before: &Version) -> bool {
        !self.scale.beside(&before.scale).is_empty()
    }

    /// Whether objects meet the same at both: texts for people do not count.
    pub fn same_schema(&self, other: &Version) -> bool {
        match (&self.schema, &other.schema) {
            (None, None) => true,
            (Some(a), Some(b)) if a == b => true,
            (Some(a), Some(b)) => match (Json::parse(a), Json::parse(b)) {
                (Ok(a), Ok(b)) => schema::same_schema(&a, &b, Sense::Objects),
                _ => false,
            },
            _ => false,
        }
    }

    /// # Errors
    /// What no server could hold a custom resource against.
    pub fn compile(&self) -> Result<Compiled, String> {
        let raw = self.raw()?;
        let schema = Schema::compile(&raw).map_err(|error| error.to_string())?;
        Ok(self.compiled(raw, schema.with_scale(self.scale.clone())))
    }

    /// What of this version is not the same in `other`: see [`Schema::compile_beside`].
    ///
    /// # Errors
    /// As [`Version::compile`].
    pub fn compile_beside(&self, other: &Version) -> Result<Compiled, String> {
        let raw = self.raw()?;
        let schema = Schema::compile_beside(&raw, &other.raw()?).map_err(|error| error.to_string())?;
        Ok(self.compiled(raw, schema.with_scale(self.scale.beside(&other.scale))))
    }

    /// The schema as it is written.
    ///
    /// # Errors
    /// A schema that is no JSON.
    pub fn raw(&self) -> Result<Value, String> {
        match &self.schema {
            Some(text) => serde_json::from_str(text).map_err(|error| plain(&error)),
            // A version from an older API may have none, which accepts everything and keeps it.
            None => Ok(serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        }
    }

    fn compiled(&self, raw: Value, schema: Schema) -> Compiled {
        Compiled {
            name: self.name.clone(),
            schema,
            raw: Arc::new(raw),
            status_subresource: self.status_subresource,
            index: self.index,
        }
    }
}

impl Compiled {
    /// From the root of the CRD to the schema of this version.
    pub fn steps(&self) -> Vec<Step> {
        vec!["spec".into(), "versions".into(), self.index.into(), "schema".into(), "openAPIV3Schema".into()]
    }
}
