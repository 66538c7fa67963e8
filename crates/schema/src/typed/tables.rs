//! Schemas of the server itself: of the metadata of every resource, and of CustomResourceDefinitions.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// Definitions in OpenAPI documents whose values can be of several scalar types, although older servers describe them
/// as strings. Source: `k8s.io/kube-openapi/pkg/schemaconv`
pub const ANY_SCALAR: [&str; 2] =
    ["io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString"];

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// The properties of this type with these names.
fn all(kind: &str, names: &[&str]) -> Map<String, Value> {
    names.iter().map(|name| ((*name).to_owned(), json!({"type": kind}))).collect()
}

/// An object with these fields that are strings, and others.
fn fields(texts: &[&str], others: Value) -> Value {
    let mut properties = all("string", texts);
    properties.extend(others.as_object().cloned().unwrap_or_default());
    object(properties.into())
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

/// The server's own schema of every resource, including embedded ones.
/// Source: `ObjectMeta` of `k8s.io/apimachinery/pkg/apis/meta/v1`
pub static RESOURCE: LazyLock<Value> = LazyLock::new(|| {
    let (flag, integer) = (json!({"type": "boolean"}), json!({"type": "integer"}));
    let time = json!({"type": "string", "format": "date-time"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let owner = fields(
        &["apiVersion", "kind", "name"],
        json!({"blockOwnerDeletion": flag, "controller": flag, "uid": {"type": "string", "default": ""}}),
    );
    let managed = fields(
        &["apiVersion", "fieldsType", "manager", "operation", "subresource"],
        json!({"fieldsV1": {"type": "object"}, "time": time}),
    );
    let metadata = fields(
        &["generateName", "name", "namespace", "resourceVersion", "selfLink", "uid"],
        json!({
            "annotations": texts,
            "creationTimestamp": time,
            "deletionGracePeriodSeconds": integer,
            "deletionTimestamp": time,
            "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "generation": integer,
            "labels": texts,
            "managedFields": {"type": "array", "items": managed},
            "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["uid"], "items": owner},
        }),
    );
    fields(&["apiVersion", "kind"], json!({"metadata": metadata}))
});

/// The schemas of a CustomResourceDefinition and of the JSONSchemaProps in it, which refer to themselves. A field
/// without a type can have several: `items` is a schema or a list of schemas, and is parsed later. Source: `types.go`
/// and `types_jsonschema.go` of `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`
pub static CRD: LazyLock<Value> = LazyLock::new(|| {
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
            "type": {"type": "string", "default": ""},
        }),
    );
    let status = object(json!({
        "acceptedNames": names,
        "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": condition},
        "observedGeneration": integer,
        "storedVersions": texts,
    }));
    json!({
        "CustomResourceDefinition": fields(&["apiVersion", "kind"], json!({"spec": spec, "status": status})),
        "JSONSchemaProps": json_schema_props(),
    })
});

fn json_schema_props() -> Value {
    let schema = json!({"$ref": "JSONSchemaProps"});
    let schemas = list(schema.clone());
    let by_name = json!({"type": "object", "additionalProperties": schema});
    let mut properties = all(
        "string",
        &[
            "$ref",
            "$schema",
            "description",
            "format",
            "id",
            "pattern",
            "title",
            "type",
            "x-kubernetes-list-type",
            "x-kubernetes-map-type",
        ],
    );
    properties.extend(all(
        "boolean",
        &[
            "exclusiveMaximum",
            "exclusiveMinimum",
            "nullable",
            "uniqueItems",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
            "x-kubernetes-preserve-unknown-fields",
        ],
    ));
    properties.extend(all(
        "number",
        &[
            "maxItems",
            "maxLength",
            "maxProperties",
            "maximum",
            "minItems",
            "minLength",
            "minProperties",
            "minimum",
            "multipleOf",
        ],
    ));
    let rule = fields(
        &["fieldPath", "message", "messageExpression", "reason"],
        json!({"optionalOldSelf": {"type": "boolean"}, "rule": {"type": "string", "default": ""}}),
    );
    let others = json!({
        "additionalItems": {}, "additionalProperties": {}, "default": {}, "dependencies": {"type": "object"},
        "example": {}, "items": {},
        "allOf": schemas, "anyOf": schemas, "oneOf": schemas, "not": schema,
        "definitions": by_name, "patternProperties": by_name, "properties": by_name,
        "enum": list(json!({})),
        "externalDocs": fields(&["description", "url"], json!({})),
        "required": list(json!({"type": "string"})),
        "x-kubernetes-list-map-keys": list(json!({"type": "string"})),
        "x-kubernetes-validations": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["rule"], "items": rule},
    });
    properties.extend(others.as_object().cloned().unwrap_or_default());
    object(properties.into())
}
