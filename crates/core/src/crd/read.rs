//! Parses a CRD from JSON with the semantics of the API's Go types: `null` and the empty string mean absent.

use std::borrow::Cow;
use std::sync::Arc;

use gantry_yaml::explain_json;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_path_to_error::Segment;

use super::{
    ConversionClientConfig, ConversionStrategy, ConversionWebhookConfig, Crd, CrdConversion, CrdNames, CrdReadError,
    CrdReadErrorKind, CrdVersion, PrinterColumn, ScaleSubresource, ServiceReference, SharedSlice, steps,
};
use crate::resource::Step;

/// Only the fields that gantry needs; everything else in a CRD (especially its managed fields) is skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct RawCrd<'a> {
    api_version: Option<String>,
    metadata: Option<CrdNameMetadata>,
    #[serde(borrow)]
    spec: Option<RawCrdSpec<'a>>,
    status: Option<CrdStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CrdHead<'a> {
    #[serde(borrow)]
    api_version: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
#[serde(expecting = "a mapping")]
struct CrdNameMetadata {
    name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct RawCrdSpec<'a> {
    group: Option<String>,
    scope: Option<String>,
    names: Option<RawNames>,
    conversion: Option<RawConversion>,
    preserve_unknown_fields: Option<bool>,
    #[serde(borrow)]
    versions: Option<Vec<RawVersion<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct RawNames {
    kind: Option<String>,
    plural: Option<String>,
    singular: Option<String>,
    list_kind: Option<String>,
    short_names: Option<Vec<String>>,
    categories: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct RawVersion<'a> {
    name: Option<String>,
    served: Option<bool>,
    storage: Option<bool>,
    deprecated: Option<bool>,
    deprecation_warning: Option<String>,
    subresources: Option<RawSubresources>,
    selectable_fields: Option<Vec<SelectableField>>,
    additional_printer_columns: Option<Vec<RawPrinterColumn>>,
    #[serde(borrow)]
    schema: Option<RawSchema<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(expecting = "a mapping")]
struct RawSubresources {
    status: Option<IgnoredAny>,
    scale: Option<RawScale>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct RawScale {
    spec_replicas_path: Option<String>,
    status_replicas_path: Option<String>,
    label_selector_path: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct SelectableField {
    json_path: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct RawPrinterColumn {
    name: Option<String>,
    json_path: Option<String>,
    r#type: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "a mapping")]
struct RawSchema<'a> {
    #[serde(rename = "openAPIV3Schema", borrow)]
    open_api_v3_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(expecting = "a mapping")]
struct RawConversion {
    strategy: Option<String>,
    webhook: Option<RawWebhook>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct RawWebhook {
    conversion_review_versions: Option<Vec<String>>,
    client_config: Option<RawClientConfig>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct RawClientConfig {
    url: Option<String>,
    service: Option<RawService>,
    ca_bundle: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "a mapping")]
struct RawService {
    namespace: Option<String>,
    name: Option<String>,
    path: Option<String>,
    port: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", expecting = "a mapping")]
struct CrdStatus {
    stored_versions: Option<Vec<String>>,
}

/// Parses a CRD at any version of the API.
pub(super) fn read(text: Arc<str>) -> Result<Crd, CrdReadError> {
    let found = match serde_json::from_str::<RawCrd<'_>>(&text) {
        Ok(raw) => {
            let api_version = raw.api_version.clone().unwrap_or_default();
            crd(raw, &text).map_err(|unreadable| (api_version, unreadable))
        }
        Err(_) => {
            let head = serde_json::from_str::<CrdHead<'_>>(&text).ok().and_then(|head| head.api_version);
            Err((head.unwrap_or_default().into_owned(), find_type_error(&text)))
        }
    };
    // Report a wrong API version first: a CRD at another version has other fields, so an error about them would
    // mislead.
    found.map_err(|(api_version, unreadable)| super::at_v1(&api_version).err().unwrap_or(unreadable))
}

fn missing(at: Vec<Step>) -> CrdReadError {
    CrdReadError { fault: CrdReadErrorKind::Missing, at }
}

fn required(text: Option<String>, at: impl FnOnce() -> Vec<Step>) -> Result<String, CrdReadError> {
    text.filter(|text| !text.is_empty()).ok_or_else(|| missing(at()))
}

fn crd(raw: RawCrd<'_>, text: &Arc<str>) -> Result<Crd, CrdReadError> {
    let spec = raw.spec.unwrap_or_default();
    let names = spec.names.unwrap_or_default();
    let versions = spec.versions.ok_or_else(|| missing(steps::versions()))?;
    if versions.is_empty() {
        return Err(CrdReadError { fault: CrdReadErrorKind::NoVersions, at: steps::versions() });
    }
    let versions = versions.into_iter().enumerate().map(|(index, raw)| version(index, raw, text));
    Ok(Crd {
        api_version: raw.api_version.unwrap_or_default(),
        name: raw.metadata.and_then(|metadata| metadata.name).unwrap_or_default(),
        group: required(spec.group, || steps::spec("group"))?,
        scope: required(spec.scope, || steps::spec("scope"))?,
        names: CrdNames {
            kind: required(names.kind, || steps::name("kind"))?,
            plural: required(names.plural, || steps::name("plural"))?,
            singular: names.singular.unwrap_or_default(),
            list_kind: names.list_kind.unwrap_or_default(),
            short_names: names.short_names.unwrap_or_default(),
            categories: names.categories.unwrap_or_default(),
        },
        conversion: spec.conversion.map(conversion).transpose()?,
        preserve_unknown_fields: spec.preserve_unknown_fields.unwrap_or_default(),
        versions: versions.collect::<Result<_, _>>()?,
        status_stored_versions: raw.status.and_then(|status| status.stored_versions).unwrap_or_default(),
        text: Arc::clone(text),
    })
}

fn version(index: usize, raw: RawVersion<'_>, text: &Arc<str>) -> Result<CrdVersion, CrdReadError> {
    let subresources = raw.subresources.unwrap_or_default();
    let schema = raw.schema.and_then(|schema| schema.open_api_v3_schema);
    Ok(CrdVersion {
        name: required(raw.name, || steps::of_version(index, "name"))?.into(),
        index,
        served: raw.served.unwrap_or_default(),
        storage: raw.storage.unwrap_or_default(),
        deprecated: raw.deprecated.unwrap_or_default(),
        deprecation_warning: raw.deprecation_warning.unwrap_or_default(),
        status_subresource: subresources.status.is_some(),
        scale: subresources.scale.map(|scale| ScaleSubresource {
            spec_replicas_path: scale.spec_replicas_path.unwrap_or_default(),
            status_replicas_path: scale.status_replicas_path.unwrap_or_default(),
            label_selector_path: scale.label_selector_path.unwrap_or_default(),
        }),
        selectable_fields: raw.selectable_fields.into_iter().flatten().filter_map(|field| field.json_path).collect(),
        printer_columns: raw.additional_printer_columns.into_iter().flatten().filter_map(read_column).collect(),
        schema: schema.map(|schema| SharedSlice::new(text, schema.get())),
    })
}

fn read_column(raw: RawPrinterColumn) -> Option<PrinterColumn> {
    let RawPrinterColumn { name, json_path, r#type } = raw;
    Some(PrinterColumn {
        name: name?,
        json_path: json_path.unwrap_or_default(),
        value_type: r#type.unwrap_or_default(),
    })
}

fn conversion(raw: RawConversion) -> Result<CrdConversion, CrdReadError> {
    let strategy = match raw.strategy.as_deref().unwrap_or_default() {
        "" => None,
        "Webhook" => Some(ConversionStrategy::Webhook),
        _ => Some(ConversionStrategy::None),
    };
    Ok(CrdConversion { strategy, webhook: raw.webhook.map(webhook).transpose()? })
}

fn webhook(raw: RawWebhook) -> Result<ConversionWebhookConfig, CrdReadError> {
    let config = raw.client_config.unwrap_or_default();
    Ok(ConversionWebhookConfig {
        review_versions: raw.conversion_review_versions.unwrap_or_default(),
        client_config: ConversionClientConfig {
            url: config.url,
            service: config.service.map(service).transpose()?,
            ca_bundle: config.ca_bundle,
        },
    })
}

fn service(raw: RawService) -> Result<ServiceReference, CrdReadError> {
    let at = |key: &'static str| move || steps::client_config("service").into_iter().chain([key.into()]).collect();
    Ok(ServiceReference {
        namespace: required(raw.namespace, at("namespace"))?,
        name: required(raw.name, at("name"))?,
        path: raw.path,
        port: raw.port.unwrap_or(ServiceReference::HTTPS),
    })
}

/// Finds the value that has the wrong type by parsing the text again. Only an invalid CRD needs this.
fn find_type_error(text: &str) -> CrdReadError {
    let mut reader = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, RawCrd<'_>>(&mut reader) {
        Ok(_) => CrdReadError { fault: CrdReadErrorKind::Type("it is not a JSON object".to_owned()), at: Vec::new() },
        Err(error) => {
            let step = |segment: &Segment| match segment {
                Segment::Map { key } => Some(Step::from(key.as_str())),
                Segment::Seq { index } => Some(Step::from(*index)),
                Segment::Enum { .. } | Segment::Unknown => None,
            };
            let at = error.path().iter().filter_map(step).collect();
            CrdReadError { fault: CrdReadErrorKind::Type(explain_json(error.inner())), at }
        }
    }
}
