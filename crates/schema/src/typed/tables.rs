//! Schemas of the server itself: of the metadata of every resource, and of CustomResourceDefinitions.

use std::sync::{LazyLock, OnceLock};

use gantry_k8s_cel::KubernetesRelease;
use serde_json::{Map, Value, json};

use crate::keywords::{GoFieldType, KEYWORDS, RULE_FIELDS};
use crate::objectmeta::fields::{METADATA, MetadataField, MetadataFieldType};
use crate::older_releases::{OBSERVED_GENERATION, OPTIONAL_OLD_SELF, SELECTABLE_FIELDS};

/// Definitions in OpenAPI documents whose values can be of several scalar types, although older servers describe them
/// as strings. Source: `k8s.io/kube-openapi/pkg/schemaconv`
pub const ANY_SCALAR: [&str; 2] =
    ["io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString"];

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// An object with these fields that are strings, and others.
fn fields(texts: &[&str], others: Value) -> Value {
    let mut properties: Map<String, Value> =
        texts.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    properties.extend(others.as_object().cloned().unwrap_or_default());
    object(properties.into())
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// A list whose items are identified by this field.
fn keyed_list(key: &str, items: Value) -> Value {
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key], "items": items})
}

/// The server's own schema of every resource, including embedded ones.
pub static RESOURCE: LazyLock<Value> =
    LazyLock::new(|| fields(&["apiVersion", "kind"], json!({"metadata": metadata(METADATA)})));

/// A text that the server fills in if it is missing.
fn required_text() -> Value {
    json!({"type": "string", "default": ""})
}

fn metadata(fields: &[MetadataField]) -> Value {
    let schema = |field_type| match field_type {
        MetadataFieldType::Text => json!({"type": "string"}),
        MetadataFieldType::RequiredText => required_text(),
        MetadataFieldType::Integer | MetadataFieldType::IntPointer => json!({"type": "integer"}),
        MetadataFieldType::FlagPointer => json!({"type": "boolean"}),
        MetadataFieldType::Time | MetadataFieldType::TimePointer => json!({"type": "string", "format": "date-time"}),
        MetadataFieldType::Opaque => json!({"type": "object"}),
        MetadataFieldType::TextSet => {
            json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})
        }
        MetadataFieldType::TextMap => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        MetadataFieldType::Structs { fields, key: None } => list(metadata(fields)),
        MetadataFieldType::Structs { fields, key: Some(key) } => keyed_list(key, metadata(fields)),
    };
    let fields = fields.iter().map(|field| (field.name.to_owned(), schema(field.field_type)));
    object(fields.collect::<Map<_, _>>().into())
}

/// The schemas of a CustomResourceDefinition and of the JSONSchemaProps in it, which refer to themselves. A field
/// without a type can have several: `items` is a schema or a list of schemas, and is parsed later. Source: `types.go`
/// and `types_jsonschema.go` of `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`
pub fn crd(release: KubernetesRelease) -> &'static Value {
    const OLDEST: KubernetesRelease = KubernetesRelease::OLDEST_KNOWN;
    const NEWEST: KubernetesRelease = KubernetesRelease::NEWEST_KNOWN;
    const KNOWN: usize = (NEWEST.minor - OLDEST.minor + 1) as usize;
    // Most runs need those of one release.
    static CRDS: [OnceLock<Value>; KNOWN] = [const { OnceLock::new() }; KNOWN];
    let known = release.clamp(OLDEST, NEWEST);
    CRDS[(known.minor - OLDEST.minor) as usize].get_or_init(|| crd_definitions(known))
}

fn crd_definitions(release: KubernetesRelease) -> Value {
    let mut definitions = newest_crd_definitions();
    for added in [&OPTIONAL_OLD_SELF, &SELECTABLE_FIELDS, &OBSERVED_GENERATION] {
        if release < added.since {
            remove_field(&mut definitions, added.name);
        }
    }
    definitions
}

/// Removes every field of this name.
fn remove_field(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(map) => {
            map.shift_remove(name);
            map.values_mut().for_each(|value| remove_field(value, name));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_field(item, name)),
        _ => {}
    }
}

fn newest_crd_definitions() -> Value {
    let (text, flag, integer) = (json!({"type": "string"}), json!({"type": "boolean"}), json!({"type": "integer"}));
    let texts = list(text.clone());
    let names = fields(&["kind", "listKind", "plural", "singular"], json!({"categories": texts, "shortNames": texts}));
    let webhook = object(json!({
        "clientConfig": fields(&["caBundle", "url"], json!({
            "service": fields(&["name", "namespace", "path"], json!({"port": integer})),
        })),
        "conversionReviewVersions": texts,
    }));
    let subresources = object(json!({
        "scale": fields(&["labelSelectorPath", "specReplicasPath", "statusReplicasPath"], json!({})),
        "status": {"type": "object"},
    }));
    let column = fields(&["description", "format", "jsonPath", "name", "type"], json!({"priority": integer}));
    let version = fields(
        &["deprecationWarning", "name"],
        json!({
            "additionalPrinterColumns": list(column),
            "deprecated": flag,
            "schema": object(json!({"openAPIV3Schema": {"$ref": "JSONSchemaProps"}})),
            "selectableFields": list(fields(&["jsonPath"], json!({}))),
            "served": flag,
            "storage": flag,
            "subresources": subresources,
        }),
    );
    let spec = fields(
        &["group", "scope"],
        json!({
            "conversion": fields(&["strategy"], json!({"webhook": webhook})),
            "names": names,
            "preserveUnknownFields": flag,
            "versions": list(version),
        }),
    );
    let condition = fields(
        &["message", "reason", "status"],
        json!({
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": integer,
            "type": required_text(),
        }),
    );
    let status = object(json!({
        "acceptedNames": names,
        "conditions": keyed_list("type", condition),
        "observedGeneration": integer,
        "storedVersions": texts,
    }));
    json!({
        "CustomResourceDefinition": fields(&["apiVersion", "kind"], json!({"spec": spec, "status": status})),
        "JSONSchemaProps": json_schema_props(),
    })
}

fn json_schema_props() -> Value {
    let keywords = KEYWORDS.iter().map(|keyword| (keyword.name.to_owned(), field(keyword.field.go_type)));
    object(keywords.collect::<Map<_, _>>().into())
}

fn field(go_type: GoFieldType) -> Value {
    let schema = json!({"$ref": "JSONSchemaProps"});
    match go_type {
        GoFieldType::Text | GoFieldType::TextPointer => json!({"type": "string"}),
        GoFieldType::RequiredText => required_text(),
        GoFieldType::Flag | GoFieldType::FlagPointer => json!({"type": "boolean"}),
        GoFieldType::IntPointer | GoFieldType::FloatPointer => json!({"type": "number"}),
        GoFieldType::Value | GoFieldType::Items | GoFieldType::SchemaOrFlag => json!({}),
        GoFieldType::Values => list(json!({})),
        GoFieldType::Texts => list(json!({"type": "string"})),
        GoFieldType::Schema => schema,
        GoFieldType::Schemas => list(schema),
        GoFieldType::Named | GoFieldType::Definitions => json!({"type": "object", "additionalProperties": schema}),
        GoFieldType::Dependencies => json!({"type": "object"}),
        GoFieldType::Rules => {
            let fields = RULE_FIELDS.iter().map(|member| (member.name.to_owned(), field(member.go_type)));
            keyed_list("rule", object(fields.collect::<Map<_, _>>().into()))
        }
        GoFieldType::Documentation => fields(&["description", "url"], json!({})),
    }
}
