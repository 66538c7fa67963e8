//! A CRD in the form that the server validates: decoded, with defaults applied, and with everything that all versions
//! share moved to the top level. Therefore paths in its messages begin with `spec.validation` if all versions have the
//! same schema.

use serde_json::Value;

use super::api_value::ApiValue;
use super::decode::{Decoded, DecodedObject, Given, list, prepend_step};
use super::props::Props;
use gantry_k8s_cel::gotext;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdNamesModel<'v> {
    pub plural: &'v str,
    pub singular: String,
    pub short_names: Vec<&'v str>,
    pub kind: &'v str,
    pub list_kind: String,
    pub categories: Vec<&'v str>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column<'v> {
    pub name: &'v str,
    pub kind: &'v str,
    pub format: &'v str,
    pub description: &'v str,
    pub priority: i64,
    pub json_path: &'v str,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScaleDeclaration<'v> {
    pub spec_replicas: &'v str,
    pub status_replicas: &'v str,
    pub label_selector: Option<&'v str>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct VersionSubresources<'v> {
    pub status: bool,
    pub scale: Option<ScaleDeclaration<'v>>,
}

/// The `schema` of a version; the schema inside can be missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdVersionSchema<'v> {
    pub schema: Option<Props<'v>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdVersionModel<'v> {
    pub name: &'v str,
    pub served: bool,
    pub storage: bool,
    pub deprecated: bool,
    pub deprecation_warning: Option<&'v str>,
    pub validation: Option<CrdVersionSchema<'v>>,
    pub subresources: Option<VersionSubresources<'v>>,
    pub columns: Given<Vec<Column<'v>>>,
    pub selectable: Given<Vec<&'v str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServiceModel<'v> {
    pub namespace: &'v str,
    pub name: &'v str,
    pub path: Option<&'v str>,
    pub port: i64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrdClientConfig<'v> {
    pub url: Option<&'v str>,
    pub service: Option<ServiceModel<'v>>,
    /// As written, in base64.
    pub ca_bundle: &'v str,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConversionModel<'v> {
    pub strategy: &'v str,
    pub client: Option<CrdClientConfig<'v>>,
    pub review_versions: Vec<&'v str>,
}

#[derive(Clone, Debug, Default)]
pub struct CrdModel<'v> {
    pub raw: Option<&'v Value>,
    pub name: &'v str,
    pub group: &'v str,
    /// The name of the first version.
    pub version: &'v str,
    pub names: CrdNamesModel<'v>,
    pub scope: &'v str,
    pub validation: Option<CrdVersionSchema<'v>>,
    pub subresources: Option<VersionSubresources<'v>>,
    pub versions: Vec<CrdVersionModel<'v>>,
    pub columns: Given<Vec<Column<'v>>>,
    pub selectable: Given<Vec<&'v str>>,
    pub conversion: ConversionModel<'v>,
    pub preserve_unknown: bool,
    pub status: CrdStatusModel<'v>,
}

#[derive(Clone, Debug, Default)]
pub struct CrdStatusModel<'v> {
    /// Also true without conditions: a manifest that stands for a live CRD has none, and the CRD of a cluster is
    /// established nearly always.
    pub is_established: bool,
    pub accepted: CrdNamesModel<'v>,
    pub stored_versions: Vec<&'v str>,
}

impl<'v> CrdModel<'v> {
    pub fn decode(value: &'v Value) -> Decoded<Self> {
        Self::decode_with(value, value["spec"].get("versions"))
    }

    /// [`CrdModel::decode`] with these versions instead of those in `value`.
    pub fn decode_with(value: &'v Value, versions: Option<&'v Value>) -> Decoded<Self> {
        let object = DecodedObject::decode(value)?;
        let mut crd = object.object("spec", |spec| Self::spec(spec, versions))?.unwrap_or_default();
        crd.raw = Some(value);
        let name = |metadata: DecodedObject<'v>| metadata.text("name").map(Option::unwrap_or_default);
        crd.name = object.object("metadata", name)?.unwrap_or_default();
        crd.status = object.object("status", status)?.unwrap_or_default();
        crd.apply_defaults();
        crd.hoist();
        Ok(crd)
    }

    fn spec(spec: DecodedObject<'v>, versions: Option<&'v Value>) -> Decoded<Self> {
        let versions = versions.filter(|versions| !versions.is_null()).map(|versions| list(versions, version));
        let conversion = spec.object("conversion", conversion)?;
        Ok(Self {
            group: spec.text("group")?.unwrap_or_default(),
            names: spec.object("names", names)?.unwrap_or_default(),
            scope: spec.text("scope")?.unwrap_or_default(),
            versions: prepend_step("versions", versions.transpose())?.unwrap_or_default().items,
            conversion: conversion.unwrap_or(ConversionModel { strategy: "None", ..ConversionModel::default() }),
            preserve_unknown: spec.flag("preserveUnknownFields")?.unwrap_or_default(),
            ..Self::default()
        })
    }

    fn apply_defaults(&mut self) {
        let names = &mut self.names;
        if names.singular.is_empty() {
            names.singular = gotext::lower(names.kind);
        }
        if names.list_kind.is_empty() && !names.kind.is_empty() {
            names.list_kind = format!("{}List", names.kind);
        }
        if self.status.stored_versions.is_empty() {
            self.status.stored_versions.extend(self.storage());
        }
    }

    /// The name of the first storage version.
    fn storage(&self) -> Option<&'v str> {
        self.versions.iter().find(|version| version.storage).map(|version| version.name)
    }

    /// Moves everything that all versions share to the top level.
    fn hoist(&mut self) {
        let Some((first, others)) = self.versions.split_first() else { return };
        self.version = first.name;
        if others.iter().all(|version| version.subresources == first.subresources) {
            self.subresources.clone_from(&first.subresources);
            self.versions.iter_mut().for_each(|version| version.subresources = None);
        }
        let Some((first, others)) = self.versions.split_first() else { return };
        if others.iter().all(|version| version.columns == first.columns) {
            self.columns = first.columns.clone();
            self.versions.iter_mut().for_each(|version| version.columns = Given::default());
        }
        let Some((first, others)) = self.versions.split_first() else { return };
        if others.iter().all(|version| version.selectable == first.selectable) {
            self.selectable = first.selectable.clone();
            self.versions.iter_mut().for_each(|version| version.selectable = Given::default());
        }
        let Some((first, others)) = self.versions.split_first_mut() else { return };
        if others.iter().all(|version| version.validation == first.validation) {
            self.validation = first.validation.take();
            others.iter_mut().for_each(|version| version.validation = None);
        }
    }

    /// Sets the status as the server does before validation: a create starts with an empty status, and an update keeps
    /// the old one. A new storage version is added.
    pub fn take_status(&mut self, old: Option<&CrdModel<'v>>) {
        self.status = old.map_or_else(CrdStatusModel::default, |old| old.status.clone());
        if let Some(storage) = self.storage().filter(|name| !self.status.stored_versions.contains(name)) {
            self.status.stored_versions.push(storage);
        }
    }

    /// Every schema, beginning with the top-level one.
    pub fn schemas(&self) -> impl Iterator<Item = &Props<'v>> {
        let versions = self.versions.iter().filter_map(|version| version.validation.as_ref());
        self.validation.iter().chain(versions).filter_map(|validation| validation.schema.as_ref())
    }

    pub fn has_schema_with(&self, is_such: &mut dyn FnMut(&Props<'v>) -> bool) -> bool {
        self.schemas().any(|schema| schema.has(is_such))
    }

    /// The schema of the named version. A schema common to all versions also applies to a version that does not exist;
    /// otherwise the result is `None` for such a version.
    pub fn schema_of(&self, version: &str) -> Option<Option<&CrdVersionSchema<'v>>> {
        if !self.versions.iter().any(|version| version.validation.is_some()) {
            return Some(self.validation.as_ref());
        }
        self.versions.iter().find(|of| of.name == version).map(|version| version.validation.as_ref())
    }

    pub fn has_own_subresources(&self) -> bool {
        self.versions.iter().any(|version| version.subresources.is_some())
    }

    pub fn subresources_of(&self, version: &str) -> Option<&VersionSubresources<'v>> {
        if !self.has_own_subresources() {
            return self.subresources.as_ref();
        }
        self.versions.iter().find(|of| of.name == version)?.subresources.as_ref()
    }
}

fn names(object: DecodedObject<'_>) -> Decoded<CrdNamesModel<'_>> {
    let text = |key| object.text(key).map(Option::unwrap_or_default);
    Ok(CrdNamesModel {
        plural: text("plural")?,
        singular: text("singular")?.to_owned(),
        short_names: object.texts("shortNames")?.items,
        kind: text("kind")?,
        list_kind: text("listKind")?.to_owned(),
        categories: object.texts("categories")?.items,
    })
}

fn version(value: &Value) -> Decoded<CrdVersionModel<'_>> {
    if value.is_null() {
        return Ok(CrdVersionModel::default());
    }
    let object = DecodedObject::decode(value)?;
    let flag = |key| object.flag(key).map(Option::unwrap_or_default);
    Ok(CrdVersionModel {
        name: object.text("name")?.unwrap_or_default(),
        served: flag("served")?,
        storage: flag("storage")?,
        deprecated: flag("deprecated")?,
        deprecation_warning: object.text("deprecationWarning")?,
        validation: object.object("schema", |schema| {
            let schema = schema.get("openAPIV3Schema").map(Props::decode).transpose();
            Ok(CrdVersionSchema { schema: prepend_step("openAPIV3Schema", schema)? })
        })?,
        subresources: object.object("subresources", subresources)?,
        columns: object.list("additionalPrinterColumns", column)?,
        selectable: object.list("selectableFields", |field| {
            if field.is_null() {
                return Ok("");
            }
            DecodedObject::decode(field)?.text("jsonPath").map(Option::unwrap_or_default)
        })?,
    })
}

fn subresources(object: DecodedObject<'_>) -> Decoded<VersionSubresources<'_>> {
    Ok(VersionSubresources {
        status: object.object("status", |_| Ok(()))?.is_some(),
        scale: object.object("scale", |scale| {
            Ok(ScaleDeclaration {
                spec_replicas: scale.text("specReplicasPath")?.unwrap_or_default(),
                status_replicas: scale.text("statusReplicasPath")?.unwrap_or_default(),
                label_selector: scale.text("labelSelectorPath")?,
            })
        })?,
    })
}

fn column(value: &Value) -> Decoded<Column<'_>> {
    if value.is_null() {
        return Ok(Column::default());
    }
    let object = DecodedObject::decode(value)?;
    let text = |key| object.text(key).map(Option::unwrap_or_default);
    Ok(Column {
        name: text("name")?,
        kind: text("type")?,
        format: text("format")?,
        description: text("description")?,
        priority: object.integer("priority")?.unwrap_or_default(),
        json_path: text("jsonPath")?,
    })
}

fn conversion(object: DecodedObject<'_>) -> Decoded<ConversionModel<'_>> {
    let webhook = object.object("webhook", |webhook| {
        let client = webhook.object("clientConfig", |client| {
            Ok(CrdClientConfig {
                url: client.text("url")?,
                service: client.object("service", |service| {
                    let text = |key| service.text(key).map(Option::unwrap_or_default);
                    Ok(ServiceModel {
                        namespace: text("namespace")?,
                        name: text("name")?,
                        path: service.text("path")?,
                        port: service.integer("port")?.unwrap_or(443),
                    })
                })?,
                ca_bundle: client.text("caBundle")?.unwrap_or_default(),
            })
        })?;
        Ok((client, webhook.texts("conversionReviewVersions")?.items))
    })?;
    let (client, review_versions) = webhook.unwrap_or_default();
    Ok(ConversionModel { strategy: object.text("strategy")?.unwrap_or_default(), client, review_versions })
}

fn status(object: DecodedObject<'_>) -> Decoded<CrdStatusModel<'_>> {
    let conditions = object.list("conditions", DecodedObject::decode)?;
    let is_true = |condition: &DecodedObject<'_>| {
        let text = |key| condition.get(key).and_then(Value::as_str);
        text("type") == Some("Established") && text("status") == Some("True")
    };
    Ok(CrdStatusModel {
        is_established: conditions.is_empty() || conditions.iter().any(is_true),
        accepted: object.object("acceptedNames", names)?.unwrap_or_default(),
        stored_versions: object.texts("storedVersions")?.items,
    })
}
