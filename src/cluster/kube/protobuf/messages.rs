//! The messages of the API types that gantry reads as Protocol Buffers: for each field its number, its name in JSON,
//! its type, and when the server's JSON has it.
//!
//! Source: the struct tags of `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1` and
//! `k8s.io/apimachinery/pkg/apis/meta/v1` in Kubernetes 1.36. A field that a later version adds is not in these tables;
//! a message that has one is not decoded, so that it cannot be lost.

use super::transcode::{Message, ProtobufField, WireValueKind};
use WireValueKind::{Base64, Bool, Double, Integer, Json, Text, Time};

/// A field that is always in the JSON, also if it is empty.
const fn always(number: u32, name: &'static str, kind: WireValueKind) -> ProtobufField {
    ProtobufField::new(number, name, kind).always()
}

/// A field that is left out of the JSON if it is empty: `omitempty`.
const fn filled(number: u32, name: &'static str, kind: WireValueKind) -> ProtobufField {
    ProtobufField::new(number, name, kind)
}

/// A pointer in Go: in the JSON if it is set, also if the value is empty.
const fn set(number: u32, name: &'static str, kind: WireValueKind) -> ProtobufField {
    ProtobufField::new(number, name, kind).if_sent()
}

/// A list that is left out of the JSON if it is empty.
const fn list(number: u32, name: &'static str, kind: WireValueKind) -> ProtobufField {
    ProtobufField::new(number, name, kind).list()
}

/// A map from texts that is left out of the JSON if it is empty.
const fn map(number: u32, name: &'static str, kind: WireValueKind) -> ProtobufField {
    ProtobufField::new(number, name, kind).map()
}

pub static CRD: Message = &[
    always(1, "metadata", WireValueKind::Message(&METADATA)),
    always(2, "spec", WireValueKind::Message(&SPEC)),
    always(3, "status", WireValueKind::Message(&STATUS)),
];

static METADATA: Message = &[
    filled(1, "name", Text),
    filled(2, "generateName", Text),
    filled(3, "namespace", Text),
    filled(4, "selfLink", Text),
    filled(5, "uid", Text),
    filled(6, "resourceVersion", Text),
    filled(7, "generation", Integer),
    filled(8, "creationTimestamp", Time),
    set(9, "deletionTimestamp", Time),
    set(10, "deletionGracePeriodSeconds", Integer),
    map(11, "labels", Text),
    map(12, "annotations", Text),
    list(13, "ownerReferences", WireValueKind::Message(&OWNER_REFERENCE)),
    list(14, "finalizers", Text),
    list(17, "managedFields", WireValueKind::Message(&MANAGED_FIELDS_ENTRY)),
];

static OWNER_REFERENCE: Message = &[
    always(1, "kind", Text),
    always(3, "name", Text),
    always(4, "uid", Text),
    always(5, "apiVersion", Text),
    set(6, "controller", Bool),
    set(7, "blockOwnerDeletion", Bool),
];

static MANAGED_FIELDS_ENTRY: Message = &[
    filled(1, "manager", Text),
    filled(2, "operation", Text),
    filled(3, "apiVersion", Text),
    set(4, "time", Time),
    filled(6, "fieldsType", Text),
    set(7, "fieldsV1", Json),
    filled(8, "subresource", Text),
];

static SPEC: Message = &[
    always(1, "group", Text),
    always(3, "names", WireValueKind::Message(&NAMES)),
    always(4, "scope", Text),
    list(7, "versions", WireValueKind::Message(&VERSION)).always(),
    set(9, "conversion", WireValueKind::Message(&CONVERSION)),
    filled(10, "preserveUnknownFields", Bool),
];

static NAMES: Message = &[
    always(1, "plural", Text),
    filled(2, "singular", Text),
    list(3, "shortNames", Text),
    always(4, "kind", Text),
    filled(5, "listKind", Text),
    list(6, "categories", Text),
];

static CONVERSION: Message = &[always(1, "strategy", Text), set(2, "webhook", WireValueKind::Message(&WEBHOOK))];

static WEBHOOK: Message = &[
    set(2, "clientConfig", WireValueKind::Message(&CLIENT_CONFIG)),
    list(3, "conversionReviewVersions", Text).always(),
];

static CLIENT_CONFIG: Message = &[
    set(1, "service", WireValueKind::Message(&SERVICE_REFERENCE)),
    filled(2, "caBundle", Base64),
    set(3, "url", Text),
];

static SERVICE_REFERENCE: Message =
    &[always(1, "namespace", Text), always(2, "name", Text), set(3, "path", Text), set(4, "port", Integer)];

static VERSION: Message = &[
    always(1, "name", Text),
    always(2, "served", Bool),
    always(3, "storage", Bool),
    set(4, "schema", WireValueKind::Message(&VALIDATION)),
    set(5, "subresources", WireValueKind::Message(&SUBRESOURCES)),
    list(6, "additionalPrinterColumns", WireValueKind::Message(&PRINTER_COLUMN)),
    filled(7, "deprecated", Bool),
    set(8, "deprecationWarning", Text),
    list(9, "selectableFields", WireValueKind::Message(&SELECTABLE_FIELD)),
];

static VALIDATION: Message = &[set(1, "openAPIV3Schema", WireValueKind::Message(&SCHEMA))];

static SUBRESOURCES: Message =
    &[set(1, "status", WireValueKind::Message(&NOTHING)), set(2, "scale", WireValueKind::Message(&SCALE))];

/// `CustomResourceSubresourceStatus`
static NOTHING: Message = &[];

static SCALE: Message =
    &[always(1, "specReplicasPath", Text), always(2, "statusReplicasPath", Text), set(3, "labelSelectorPath", Text)];

static PRINTER_COLUMN: Message = &[
    always(1, "name", Text),
    always(2, "type", Text),
    filled(3, "format", Text),
    filled(4, "description", Text),
    filled(5, "priority", Integer),
    always(6, "jsonPath", Text),
];

static SELECTABLE_FIELD: Message = &[always(1, "jsonPath", Text)];

static STATUS: Message = &[
    list(1, "conditions", WireValueKind::Message(&CONDITION)).always(),
    always(2, "acceptedNames", WireValueKind::Message(&NAMES)),
    list(3, "storedVersions", Text).always(),
    filled(4, "observedGeneration", Integer),
];

static CONDITION: Message = &[
    always(1, "type", Text),
    always(2, "status", Text),
    always(3, "lastTransitionTime", Time),
    filled(4, "reason", Text),
    filled(5, "message", Text),
    filled(6, "observedGeneration", Integer),
];

/// `JSONSchemaProps`
pub static SCHEMA: Message = &[
    filled(1, "id", Text),
    filled(2, "$schema", Text),
    set(3, "$ref", Text),
    filled(4, "description", Text),
    filled(5, "type", Text),
    filled(6, "format", Text),
    filled(7, "title", Text),
    set(8, "default", Json),
    set(9, "maximum", Double),
    filled(10, "exclusiveMaximum", Bool),
    set(11, "minimum", Double),
    filled(12, "exclusiveMinimum", Bool),
    set(13, "maxLength", Integer),
    set(14, "minLength", Integer),
    filled(15, "pattern", Text),
    set(16, "maxItems", Integer),
    set(17, "minItems", Integer),
    filled(18, "uniqueItems", Bool),
    set(19, "multipleOf", Double),
    list(20, "enum", Json),
    set(21, "maxProperties", Integer),
    set(22, "minProperties", Integer),
    list(23, "required", Text),
    set(24, "items", WireValueKind::OrList(&SCHEMA)),
    list(25, "allOf", WireValueKind::Message(&SCHEMA)),
    list(26, "oneOf", WireValueKind::Message(&SCHEMA)),
    list(27, "anyOf", WireValueKind::Message(&SCHEMA)),
    set(28, "not", WireValueKind::Message(&SCHEMA)),
    map(29, "properties", WireValueKind::Message(&SCHEMA)),
    set(30, "additionalProperties", WireValueKind::OrBool(&SCHEMA)),
    map(31, "patternProperties", WireValueKind::Message(&SCHEMA)),
    map(32, "dependencies", WireValueKind::OrTexts(&SCHEMA)),
    set(33, "additionalItems", WireValueKind::OrBool(&SCHEMA)),
    map(34, "definitions", WireValueKind::Message(&SCHEMA)),
    set(35, "externalDocs", WireValueKind::Message(&EXTERNAL_DOCS)),
    set(36, "example", Json),
    filled(37, "nullable", Bool),
    set(38, "x-kubernetes-preserve-unknown-fields", Bool),
    filled(39, "x-kubernetes-embedded-resource", Bool),
    filled(40, "x-kubernetes-int-or-string", Bool),
    list(41, "x-kubernetes-list-map-keys", Text),
    set(42, "x-kubernetes-list-type", Text),
    set(43, "x-kubernetes-map-type", Text),
    list(44, "x-kubernetes-validations", WireValueKind::Message(&VALIDATION_RULE)),
];

static EXTERNAL_DOCS: Message = &[filled(1, "description", Text), filled(2, "url", Text)];

static VALIDATION_RULE: Message = &[
    always(1, "rule", Text),
    filled(2, "message", Text),
    filled(3, "messageExpression", Text),
    set(4, "reason", Text),
    filled(5, "fieldPath", Text),
    set(6, "optionalOldSelf", Bool),
];

/// `Status`, a refusal of the server.
pub static REFUSAL: Message = &[
    always(1, "metadata", WireValueKind::Message(&LIST_METADATA)),
    filled(2, "status", Text),
    filled(3, "message", Text),
    filled(4, "reason", Text),
    set(5, "details", WireValueKind::Message(&DETAILS)),
    filled(6, "code", Integer),
];

static LIST_METADATA: Message = &[
    filled(1, "selfLink", Text),
    filled(2, "resourceVersion", Text),
    filled(3, "continue", Text),
    set(4, "remainingItemCount", Integer),
];

static DETAILS: Message = &[
    filled(1, "name", Text),
    filled(2, "group", Text),
    filled(3, "kind", Text),
    list(4, "causes", WireValueKind::Message(&CAUSE)),
    filled(5, "retryAfterSeconds", Integer),
    filled(6, "uid", Text),
];

static CAUSE: Message = &[filled(1, "reason", Text), filled(2, "message", Text), filled(3, "field", Text)];
