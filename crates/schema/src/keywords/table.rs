//! The one table of the fields of `JSONSchemaProps`, and that of the fields of a CEL rule.
//!
//! Everything that has to know all fields is made from these rows: [`KEYWORDS`], how the server decodes and prints a
//! schema (`crd/props`), what server-side apply can parse (`typed`), and in gantry the messages of Protocol Buffers and
//! crdify's texts. A field that a later Kubernetes adds is a row here, and the code that gives it meaning.

use super::{Absent, Decides, KeywordShape};

/// The Go type of a field, which determines its JSON, its Protocol Buffers and how Go prints it. A pointer
/// distinguishes an empty value from a missing one; other empty values are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoFieldType {
    /// `string`
    Text,
    /// `string`, written even if it is empty.
    RequiredText,
    /// `*string`
    TextPointer,
    /// `bool`
    Flag,
    /// `*bool`
    FlagPointer,
    /// `*int64`
    IntPointer,
    /// `*float64`
    FloatPointer,
    /// `*JSON`
    Value,
    /// `[]JSON`
    Values,
    /// `[]string`
    Texts,
    /// `*JSONSchemaProps`
    Schema,
    /// `[]JSONSchemaProps`
    Schemas,
    /// `*JSONSchemaPropsOrArray`
    Items,
    /// `*JSONSchemaPropsOrBool`
    SchemaOrFlag,
    /// `map[string]JSONSchemaProps`
    Named,
    /// `JSONSchemaDefinitions`
    Definitions,
    /// `JSONSchemaDependencies`
    Dependencies,
    /// `ValidationRules`
    Rules,
    /// `*ExternalDocumentation`
    Documentation,
}

impl GoFieldType {
    /// Whether this is a pointer to a string, boolean or number.
    pub const fn is_scalar_pointer(self) -> bool {
        matches!(self, Self::TextPointer | Self::FlagPointer | Self::IntPointer | Self::FloatPointer)
    }
}

/// A field of a Go struct of the API.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GoField {
    /// The name in JSON.
    pub name: &'static str,
    /// The name in Go.
    pub go_name: &'static str,
    /// The number in Protocol Buffers.
    pub number: u32,
    /// The type in Go.
    pub go_type: GoFieldType,
}

/// One keyword.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SchemaKeyword {
    /// The name in a schema.
    pub name: &'static str,
    /// The field of `JSONSchemaProps`.
    pub field: GoField,
    /// The shape of its value.
    pub shape: KeywordShape,
    /// What depends on it.
    pub decides: Decides,
    /// The value that is equivalent to omitting it.
    pub absent: Absent,
    /// Whether the server needs it to merge a value in a server-side apply. Keywords that contain the schemas of parts
    /// of the value do not count.
    pub is_merge: bool,
}

impl SchemaKeyword {
    const fn new(field: GoField) -> Self {
        let shape = match field.go_type {
            GoFieldType::Text | GoFieldType::RequiredText => KeywordShape::Text,
            GoFieldType::TextPointer => KeywordShape::KeptText,
            GoFieldType::Flag | GoFieldType::FlagPointer => KeywordShape::Flag,
            GoFieldType::IntPointer | GoFieldType::FloatPointer => KeywordShape::Number,
            GoFieldType::Value | GoFieldType::Dependencies | GoFieldType::Documentation => KeywordShape::Value,
            GoFieldType::Values | GoFieldType::Texts => KeywordShape::Set,
            GoFieldType::Schema => KeywordShape::Schema,
            GoFieldType::Schemas => KeywordShape::Schemas,
            GoFieldType::Items => KeywordShape::SchemaOrSchemas,
            GoFieldType::SchemaOrFlag => KeywordShape::SchemaOrFlag,
            GoFieldType::Named | GoFieldType::Definitions => KeywordShape::Named,
            GoFieldType::Rules => KeywordShape::Rules,
        };
        Self { name: field.name, field, shape, decides: Decides::Objects, absent: Absent::None, is_merge: false }
    }

    const fn decides_nothing(self, reason: &'static str) -> Self {
        Self { decides: Decides::Nothing(reason), ..self }
    }

    const fn choice(self) -> Self {
        Self { shape: KeywordShape::Choice, ..self }
    }

    const fn ownership(self) -> Self {
        Self { decides: Decides::Ownership, ..self }
    }

    const fn merge(self) -> Self {
        Self { is_merge: true, ..self }
    }

    const fn absent(self, absent: Absent) -> Self {
        Self { absent, ..self }
    }
}

/// The fields of `JSONSchemaProps`, in the order of the Go struct, which is that of the numbers: number, name in JSON,
/// name in Go, Go type, member of `crd::props::Props` (`rare` for those that most schemas lack), and what else differs
/// from most keywords. Source: `types_jsonschema.go` of `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1` in
/// Kubernetes 1.36.
macro_rules! schema_keywords {
    ($make:ident) => {
        $make! {
            (1 "id" ID Text, rare id, decides_nothing("a name for the schema itself; the API server refuses it in a CRD"))
            (2 "$schema" Schema Text, rare schema,
                decides_nothing("says which dialect the schema is written in; the API server refuses it in a CRD"))
            (3 "$ref" Ref TextPointer, rare reference)
            (4 "description" Description Text, common description, decides_nothing("documentation"))
            (5 "type" Type Text, common kind, merge())
            (6 "format" Format Text, common format)
            (7 "title" Title Text, rare title, decides_nothing("documentation"))
            (8 "default" Default Value, common default)
            (9 "maximum" Maximum FloatPointer, rare maximum)
            (10 "exclusiveMaximum" ExclusiveMaximum Flag, rare exclusive_maximum)
            (11 "minimum" Minimum FloatPointer, rare minimum)
            (12 "exclusiveMinimum" ExclusiveMinimum Flag, rare exclusive_minimum)
            (13 "maxLength" MaxLength IntPointer, rare max_length)
            (14 "minLength" MinLength IntPointer, rare min_length, absent(Absent::Zero))
            (15 "pattern" Pattern Text, rare pattern)
            (16 "maxItems" MaxItems IntPointer, rare max_items)
            (17 "minItems" MinItems IntPointer, rare min_items, absent(Absent::Zero))
            (18 "uniqueItems" UniqueItems Flag, rare unique_items)
            (19 "multipleOf" MultipleOf FloatPointer, rare multiple_of)
            (20 "enum" Enum Values, rare enumeration)
            (21 "maxProperties" MaxProperties IntPointer, rare max_properties)
            (22 "minProperties" MinProperties IntPointer, rare min_properties, absent(Absent::Zero))
            (23 "required" Required Texts, common required)
            (24 "items" Items Items, common items)
            (25 "allOf" AllOf Schemas, rare all_of)
            (26 "oneOf" OneOf Schemas, rare one_of, choice())
            (27 "anyOf" AnyOf Schemas, rare any_of)
            (28 "not" Not Schema, rare not)
            (29 "properties" Properties Named, common properties)
            (30 "additionalProperties" AdditionalProperties SchemaOrFlag, common additional)
            (31 "patternProperties" PatternProperties Named, rare pattern_properties)
            (32 "dependencies" Dependencies Dependencies, rare dependencies)
            (33 "additionalItems" AdditionalItems SchemaOrFlag, rare additional_items)
            (34 "definitions" Definitions Definitions, rare definitions)
            (35 "externalDocs" ExternalDocs Documentation, rare external_docs, decides_nothing("documentation"))
            (36 "example" Example Value, rare example, decides_nothing("documentation"))
            (37 "nullable" Nullable Flag, common nullable)
            (38 "x-kubernetes-preserve-unknown-fields" XPreserveUnknownFields FlagPointer, common preserve_unknown,
                merge())
            (39 "x-kubernetes-embedded-resource" XEmbeddedResource Flag, common embedded, merge())
            (40 "x-kubernetes-int-or-string" XIntOrString Flag, common int_or_string, merge())
            (41 "x-kubernetes-list-map-keys" XListMapKeys Texts, rare map_keys, merge())
            (42 "x-kubernetes-list-type" XListType TextPointer, common list_type,
                merge(), absent(Absent::Text("atomic")))
            (43 "x-kubernetes-map-type" XMapType TextPointer, common map_type,
                ownership(), merge(), absent(Absent::Text("granular")))
            (44 "x-kubernetes-validations" XValidations Rules, rare rules)
        }
    };
}
pub(crate) use schema_keywords;

/// The fields of `ValidationRule`, an entry of `x-kubernetes-validations`, with their members of
/// `crd::props::ValidationRule`.
macro_rules! rule_fields {
    ($make:ident) => {
        $make! {
            (1 "rule" Rule RequiredText, rule)
            (2 "message" Message Text, message)
            (3 "messageExpression" MessageExpression Text, message_expression)
            (4 "reason" Reason TextPointer, reason)
            (5 "fieldPath" FieldPath Text, field_path)
            (6 "optionalOldSelf" OptionalOldSelf FlagPointer, optional_old_self)
        }
    };
}
pub(crate) use rule_fields;

macro_rules! field {
    ($number:literal $name:literal $go_name:ident $go_type:ident) => {
        GoField { name: $name, go_name: stringify!($go_name), number: $number, go_type: GoFieldType::$go_type }
    };
}

macro_rules! keywords {
    ($(($number:literal $name:literal $go_name:ident $go_type:ident, $group:ident $member:ident
        $(, $word:ident($($argument:expr)?))*))*) => {
        [$(SchemaKeyword::new(field!($number $name $go_name $go_type))$(.$word($($argument)?))*),*]
    };
}

macro_rules! fields {
    ($(($number:literal $name:literal $go_name:ident $go_type:ident, $member:ident))*) => {
        &[$(field!($number $name $go_name $go_type)),*]
    };
}

/// The keywords in the order of the Go struct, which is that of their numbers in Protocol Buffers.
pub const KEYWORDS_IN_ORDER: &[SchemaKeyword] = &schema_keywords!(keywords);

/// The keywords, sorted by name.
pub static KEYWORDS: &[SchemaKeyword] = &sorted_by_name::<{ KEYWORDS_IN_ORDER.len() }>();

/// The fields of `ValidationRule`, an entry of `x-kubernetes-validations`, in the order of the Go struct.
pub const RULE_FIELDS: &[GoField] = rule_fields!(fields);

const fn sorted_by_name<const N: usize>() -> [SchemaKeyword; N] {
    let mut sorted = [KEYWORDS_IN_ORDER[0]; N];
    let mut end = 1;
    while end < N {
        let mut at = end;
        while at > 0 && is_before(KEYWORDS_IN_ORDER[end].name, sorted[at - 1].name) {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = KEYWORDS_IN_ORDER[end];
        end += 1;
    }
    sorted
}

/// `a < b`, which cannot be written in a constant.
const fn is_before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}
