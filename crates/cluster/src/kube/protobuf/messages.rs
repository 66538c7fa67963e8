//! The messages of the API types that gantry reads as Protocol Buffers: for each field its number, its name in JSON,
//! its type, and when the server's JSON has it.
//!
//! Source: the struct tags of `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1` and
//! `k8s.io/apimachinery/pkg/apis/meta/v1` in Kubernetes 1.36. The messages of schemas and metadata are made from the
//! tables of `gantry_schema`. A field that a later version adds is not in these tables; a message that has one is not
//! decoded, so that it cannot be lost.

use gantry_schema::keywords::{GoField, GoFieldType, KEYWORDS_IN_ORDER, RULE_FIELDS};
use gantry_schema::object_meta::{self, MetadataField, MetadataFieldType};

use super::transcode::{Message, ProtobufField, WireValueKind};
use WireValueKind::{Base64, Bool, Double, Integer, Json, Text, Time};

/// Stands in an array that is being filled.
const NO_FIELD: ProtobufField = ProtobufField::new(0, "", Text);

/// A field that is always in the JSON, also if it is empty.
const fn always_written(number: u32, name: &'static str, kind: WireValueKind) -> ProtobufField {
    ProtobufField::new(number, name, kind).always()
}

/// A field that is left out of the JSON if it is empty: `omitempty`.
const fn written_if_filled(number: u32, name: &'static str, kind: WireValueKind) -> ProtobufField {
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
    always_written(1, "metadata", WireValueKind::Message(&METADATA)),
    always_written(2, "spec", WireValueKind::Message(&SPEC)),
    always_written(3, "status", WireValueKind::Message(&STATUS)),
];

/// `ObjectMeta`
static METADATA: Message = &metadata_fields::<{ object_meta::METADATA.len() }>(object_meta::METADATA);
static OWNER_REFERENCE: Message =
    &metadata_fields::<{ object_meta::OWNER_REFERENCE.len() }>(object_meta::OWNER_REFERENCE);
static MANAGED_FIELDS_ENTRY: Message =
    &metadata_fields::<{ object_meta::MANAGED_FIELDS_ENTRY.len() }>(object_meta::MANAGED_FIELDS_ENTRY);

const fn metadata_fields<const N: usize>(fields: &[MetadataField]) -> [ProtobufField; N] {
    let mut message = [NO_FIELD; N];
    let mut at = 0;
    while at < N {
        let MetadataField { name, number, field_type, .. } = fields[at];
        message[at] = match field_type {
            MetadataFieldType::Text => written_if_filled(number, name, Text),
            MetadataFieldType::RequiredText => always_written(number, name, Text),
            MetadataFieldType::Integer => written_if_filled(number, name, Integer),
            MetadataFieldType::IntPointer => set(number, name, Integer),
            MetadataFieldType::FlagPointer => set(number, name, Bool),
            MetadataFieldType::Time => written_if_filled(number, name, Time),
            MetadataFieldType::TimePointer => set(number, name, Time),
            MetadataFieldType::Opaque => set(number, name, Json),
            MetadataFieldType::TextSet => list(number, name, Text),
            MetadataFieldType::TextMap => map(number, name, Text),
            MetadataFieldType::Structs { key: Some(_), .. } => {
                list(number, name, WireValueKind::Message(&OWNER_REFERENCE))
            }
            MetadataFieldType::Structs { key: None, .. } => {
                list(number, name, WireValueKind::Message(&MANAGED_FIELDS_ENTRY))
            }
        };
        at += 1;
    }
    message
}

static SPEC: Message = &[
    always_written(1, "group", Text),
    always_written(3, "names", WireValueKind::Message(&NAMES)),
    always_written(4, "scope", Text),
    list(7, "versions", WireValueKind::Message(&VERSION)).always(),
    set(9, "conversion", WireValueKind::Message(&CONVERSION)),
    written_if_filled(10, "preserveUnknownFields", Bool),
];

static NAMES: Message = &[
    always_written(1, "plural", Text),
    written_if_filled(2, "singular", Text),
    list(3, "shortNames", Text),
    always_written(4, "kind", Text),
    written_if_filled(5, "listKind", Text),
    list(6, "categories", Text),
];

static CONVERSION: Message =
    &[always_written(1, "strategy", Text), set(2, "webhook", WireValueKind::Message(&WEBHOOK))];

static WEBHOOK: Message = &[
    set(2, "clientConfig", WireValueKind::Message(&CLIENT_CONFIG)),
    list(3, "conversionReviewVersions", Text).always(),
];

static CLIENT_CONFIG: Message = &[
    set(1, "service", WireValueKind::Message(&SERVICE_REFERENCE)),
    written_if_filled(2, "caBundle", Base64),
    set(3, "url", Text),
];

static SERVICE_REFERENCE: Message = &[
    always_written(1, "namespace", Text),
    always_written(2, "name", Text),
    set(3, "path", Text),
    set(4, "port", Integer),
];

static VERSION: Message = &[
    always_written(1, "name", Text),
    always_written(2, "served", Bool),
    always_written(3, "storage", Bool),
    set(4, "schema", WireValueKind::Message(&VALIDATION)),
    set(5, "subresources", WireValueKind::Message(&SUBRESOURCES)),
    list(6, "additionalPrinterColumns", WireValueKind::Message(&PRINTER_COLUMN)),
    written_if_filled(7, "deprecated", Bool),
    set(8, "deprecationWarning", Text),
    list(9, "selectableFields", WireValueKind::Message(&SELECTABLE_FIELD)),
];

static VALIDATION: Message = &[set(1, "openAPIV3Schema", WireValueKind::Message(&SCHEMA))];

static SUBRESOURCES: Message =
    &[set(1, "status", WireValueKind::Message(&NOTHING)), set(2, "scale", WireValueKind::Message(&SCALE))];

/// `CustomResourceSubresourceStatus`
static NOTHING: Message = &[];

static SCALE: Message = &[
    always_written(1, "specReplicasPath", Text),
    always_written(2, "statusReplicasPath", Text),
    set(3, "labelSelectorPath", Text),
];

static PRINTER_COLUMN: Message = &[
    always_written(1, "name", Text),
    always_written(2, "type", Text),
    written_if_filled(3, "format", Text),
    written_if_filled(4, "description", Text),
    written_if_filled(5, "priority", Integer),
    always_written(6, "jsonPath", Text),
];

static SELECTABLE_FIELD: Message = &[always_written(1, "jsonPath", Text)];

static STATUS: Message = &[
    list(1, "conditions", WireValueKind::Message(&CONDITION)).always(),
    always_written(2, "acceptedNames", WireValueKind::Message(&NAMES)),
    list(3, "storedVersions", Text).always(),
    written_if_filled(4, "observedGeneration", Integer),
];

static CONDITION: Message = &[
    always_written(1, "type", Text),
    always_written(2, "status", Text),
    always_written(3, "lastTransitionTime", Time),
    written_if_filled(4, "reason", Text),
    written_if_filled(5, "message", Text),
    written_if_filled(6, "observedGeneration", Integer),
];

/// `JSONSchemaProps`
static SCHEMA: Message = &schema_fields::<{ KEYWORDS_IN_ORDER.len() }>();

const fn schema_fields<const N: usize>() -> [ProtobufField; N] {
    let mut message = [NO_FIELD; N];
    let mut at = 0;
    while at < N {
        message[at] = field(KEYWORDS_IN_ORDER[at].field);
        at += 1;
    }
    message
}

static VALIDATION_RULE: Message = &rule_fields::<{ RULE_FIELDS.len() }>();

const fn rule_fields<const N: usize>() -> [ProtobufField; N] {
    let mut message = [NO_FIELD; N];
    let mut at = 0;
    while at < N {
        message[at] = field(RULE_FIELDS[at]);
        at += 1;
    }
    message
}

const fn field(field: GoField) -> ProtobufField {
    let GoField { name, number, go_type, .. } = field;
    match go_type {
        GoFieldType::Text => written_if_filled(number, name, Text),
        GoFieldType::RequiredText => always_written(number, name, Text),
        GoFieldType::TextPointer => set(number, name, Text),
        GoFieldType::Flag => written_if_filled(number, name, Bool),
        GoFieldType::FlagPointer => set(number, name, Bool),
        GoFieldType::IntPointer => set(number, name, Integer),
        GoFieldType::FloatPointer => set(number, name, Double),
        GoFieldType::Value => set(number, name, Json),
        GoFieldType::Values => list(number, name, Json),
        GoFieldType::Texts => list(number, name, Text),
        GoFieldType::Schema => set(number, name, WireValueKind::Message(&SCHEMA)),
        GoFieldType::Schemas => list(number, name, WireValueKind::Message(&SCHEMA)),
        GoFieldType::Items => set(number, name, WireValueKind::OrList(&SCHEMA)),
        GoFieldType::SchemaOrFlag => set(number, name, WireValueKind::OrBool(&SCHEMA)),
        GoFieldType::Named | GoFieldType::Definitions => map(number, name, WireValueKind::Message(&SCHEMA)),
        GoFieldType::Dependencies => map(number, name, WireValueKind::OrTexts(&SCHEMA)),
        GoFieldType::Rules => list(number, name, WireValueKind::Message(&VALIDATION_RULE)),
        GoFieldType::Documentation => set(number, name, WireValueKind::Message(&EXTERNAL_DOCS)),
    }
}

static EXTERNAL_DOCS: Message = &[written_if_filled(1, "description", Text), written_if_filled(2, "url", Text)];

/// `Status`, a refusal of the server.
pub static REFUSAL: Message = &[
    always_written(1, "metadata", WireValueKind::Message(&LIST_METADATA)),
    written_if_filled(2, "status", Text),
    written_if_filled(3, "message", Text),
    written_if_filled(4, "reason", Text),
    set(5, "details", WireValueKind::Message(&DETAILS)),
    written_if_filled(6, "code", Integer),
];

static LIST_METADATA: Message = &[
    written_if_filled(1, "selfLink", Text),
    written_if_filled(2, "resourceVersion", Text),
    written_if_filled(3, "continue", Text),
    set(4, "remainingItemCount", Integer),
];

static DETAILS: Message = &[
    written_if_filled(1, "name", Text),
    written_if_filled(2, "group", Text),
    written_if_filled(3, "kind", Text),
    list(4, "causes", WireValueKind::Message(&CAUSE)),
    written_if_filled(5, "retryAfterSeconds", Integer),
    written_if_filled(6, "uid", Text),
];

static CAUSE: Message =
    &[written_if_filled(1, "reason", Text), written_if_filled(2, "message", Text), written_if_filled(3, "field", Text)];
