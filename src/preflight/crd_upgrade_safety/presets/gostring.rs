//! Schemas as crdify prints them: with the `String()` methods of the API's Go types.
//!
//! crdify's `oneOf` validation compares schemas by this text, so the text decides its verdict. In it, schemas below
//! `properties` are printed as plain Go structs, in which a number, boolean or string held by pointer is printed as an
//! address. Two addresses are never equal, so for crdify such a schema differs from its own copy.

use super::typed;
use crate::preflight::crd_upgrade_safety::json::{Json, JsonMap};
use gantry_schema::gotext;

/// The CRD that a schema belongs to. The two CRDs never share an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Live,
    Desired,
}

/// How a Go type holds a keyword.
#[derive(Clone, Copy)]
enum GoFieldType {
    Text,
    Flag,
    Texts,
    TextPointer,
    FlagPointer,
    IntPointer,
    FloatPointer,
    Value,
    Values,
    Schema,
    Schemas,
    Items,
    SchemaOrFlag,
    Named(&'static str),
    Rules,
    Documentation,
}

/// The fields of `JSONSchemaProps`, in order.
const FIELDS: &[(&str, &str, GoFieldType)] = &[
    ("ID", "id", GoFieldType::Text),
    ("Schema", "$schema", GoFieldType::Text),
    ("Ref", "$ref", GoFieldType::TextPointer),
    ("Description", "description", GoFieldType::Text),
    ("Type", "type", GoFieldType::Text),
    ("Format", "format", GoFieldType::Text),
    ("Title", "title", GoFieldType::Text),
    ("Default", "default", GoFieldType::Value),
    ("Maximum", "maximum", GoFieldType::FloatPointer),
    ("ExclusiveMaximum", "exclusiveMaximum", GoFieldType::Flag),
    ("Minimum", "minimum", GoFieldType::FloatPointer),
    ("ExclusiveMinimum", "exclusiveMinimum", GoFieldType::Flag),
    ("MaxLength", "maxLength", GoFieldType::IntPointer),
    ("MinLength", "minLength", GoFieldType::IntPointer),
    ("Pattern", "pattern", GoFieldType::Text),
    ("MaxItems", "maxItems", GoFieldType::IntPointer),
    ("MinItems", "minItems", GoFieldType::IntPointer),
    ("UniqueItems", "uniqueItems", GoFieldType::Flag),
    ("MultipleOf", "multipleOf", GoFieldType::FloatPointer),
    ("Enum", "enum", GoFieldType::Values),
    ("MaxProperties", "maxProperties", GoFieldType::IntPointer),
    ("MinProperties", "minProperties", GoFieldType::IntPointer),
    ("Required", "required", GoFieldType::Texts),
    ("Items", "items", GoFieldType::Items),
    ("AllOf", "allOf", GoFieldType::Schemas),
    ("OneOf", "oneOf", GoFieldType::Schemas),
    ("AnyOf", "anyOf", GoFieldType::Schemas),
    ("Not", "not", GoFieldType::Schema),
    ("Properties", "properties", GoFieldType::Named("map[string]JSONSchemaProps")),
    ("AdditionalProperties", "additionalProperties", GoFieldType::SchemaOrFlag),
    ("PatternProperties", "patternProperties", GoFieldType::Named("map[string]JSONSchemaProps")),
    ("Dependencies", "dependencies", GoFieldType::Named("JSONSchemaDependencies")),
    ("AdditionalItems", "additionalItems", GoFieldType::SchemaOrFlag),
    ("Definitions", "definitions", GoFieldType::Named("JSONSchemaDefinitions")),
    ("ExternalDocs", "externalDocs", GoFieldType::Documentation),
    ("Example", "example", GoFieldType::Value),
    ("Nullable", "nullable", GoFieldType::Flag),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", GoFieldType::FlagPointer),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", GoFieldType::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", GoFieldType::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", GoFieldType::Texts),
    ("XListType", "x-kubernetes-list-type", GoFieldType::TextPointer),
    ("XMapType", "x-kubernetes-map-type", GoFieldType::TextPointer),
    ("XValidations", "x-kubernetes-validations", GoFieldType::Rules),
];

/// The fields of `ValidationRule`, in order.
const RULE_FIELDS: &[(&str, &str, GoFieldType)] = &[
    ("Rule", "rule", GoFieldType::Text),
    ("Message", "message", GoFieldType::Text),
    ("MessageExpression", "messageExpression", GoFieldType::Text),
    ("Reason", "reason", GoFieldType::TextPointer),
    ("FieldPath", "fieldPath", GoFieldType::Text),
    ("OptionalOldSelf", "optionalOldSelf", GoFieldType::FlagPointer),
];

/// Keywords that crdify clears in the schemas of a `oneOf` before it compares them.
const BLANKED: &[&str] = &["description", "title", "example", "externalDocs"];

/// The texts of the schemas of a `oneOf`.
pub fn of_alternatives(alternatives: Option<&Json>, memory: Memory) -> Vec<String> {
    let schemas = alternatives.and_then(Json::list).unwrap_or_default().iter().filter_map(Json::map);
    schemas.map(|schema| alternative(schema, memory, &[])).collect()
}

/// The text that a schema would have as one schema of a `oneOf`, without its own `oneOf`.
pub fn as_alternative(schema: &JsonMap, memory: Memory) -> String {
    alternative(schema, memory, &["oneOf"])
}

fn alternative(schema: &JsonMap, memory: Memory, without: &[&str]) -> String {
    let left_out: Vec<&str> = BLANKED.iter().chain(without).copied().collect();
    Printer { memory }.schema(schema, &left_out)
}

struct Printer {
    memory: Memory,
}

impl Printer {
    /// `&JSONSchemaProps{ID:,Schema:,…}`
    fn schema(&self, schema: &JsonMap, without: &[&str]) -> String {
        let fields = FIELDS.iter().map(|(name, keyword, held)| {
            let value = typed::get(schema, keyword).filter(|_| !without.contains(keyword));
            format!("{name}:{},", self.field(value, *held))
        });
        format!("&JSONSchemaProps{{{}}}", fields.collect::<String>())
    }

    fn of(&self, json: &Json) -> String {
        json.map().map_or_else(|| "nil".into(), |schema| self.schema(schema, &[]))
    }

    fn field(&self, value: Option<&Json>, held: GoFieldType) -> String {
        let listed = |kind: &str, item: &dyn Fn(&Json) -> String| {
            let items = value.and_then(Json::list).unwrap_or_default().iter();
            format!("[]{kind}{{{}}}", items.map(|value| item(value).replacen('&', "", 1) + ",").collect::<String>())
        };
        match held {
            GoFieldType::Text | GoFieldType::Flag | GoFieldType::Texts => plain(value, held),
            GoFieldType::TextPointer
            | GoFieldType::FlagPointer
            | GoFieldType::IntPointer
            | GoFieldType::FloatPointer => {
                value.map_or_else(|| "nil".into(), |value| format!("*{}", scalar(value, held)))
            }
            GoFieldType::Value => value.map_or_else(|| "nil".into(), raw),
            GoFieldType::Values => listed("JSON", &raw),
            GoFieldType::Schema => value.map_or_else(|| "nil".into(), |value| self.of(value)),
            GoFieldType::Schemas => listed("JSONSchemaProps", &|value| self.of(value)),
            GoFieldType::Items => self.items(value),
            GoFieldType::SchemaOrFlag => self.schema_or_flag(value),
            GoFieldType::Named(kind) => {
                let all = entries(value).map(|(name, value)| format!("{name}: {},", self.as_struct(value)));
                format!("{kind}{{{}}}", all.collect::<String>())
            }
            GoFieldType::Rules => listed("ValidationRule", &|rule| {
                let fields = RULE_FIELDS.iter().map(|(name, key, held)| {
                    format!("{name}:{},", self.field(rule.map().and_then(|rule| rule.get(key)), *held))
                });
                format!("&ValidationRule{{{}}}", fields.collect::<String>())
            }),
            GoFieldType::Documentation => value.and_then(Json::map).map_or_else(
                || "nil".into(),
                |docs| {
                    let text = |key| plain(docs.get(key), GoFieldType::Text);
                    format!("&ExternalDocumentation{{Description:{},URL:{},}}", text("description"), text("url"))
                },
            ),
        }
    }

    fn items(&self, value: Option<&Json>) -> String {
        match value {
            None => "nil".into(),
            Some(Json::List(items)) => {
                let items = items.iter().map(|item| self.of(item).replacen('&', "", 1) + ",").collect::<String>();
                format!("&JSONSchemaPropsOrArray{{Schema:nil,JSONSchemas:[]JSONSchemaProps{{{items}}},}}")
            }
            Some(schema) => {
                format!("&JSONSchemaPropsOrArray{{Schema:{},JSONSchemas:[]JSONSchemaProps{{}},}}", self.of(schema))
            }
        }
    }

    fn schema_or_flag(&self, value: Option<&Json>) -> String {
        match value {
            None => "nil".into(),
            Some(Json::Bool(allows)) => format!("&JSONSchemaPropsOrBool{{Allows:{allows},Schema:nil,}}"),
            Some(schema) => format!("&JSONSchemaPropsOrBool{{Allows:true,Schema:{},}}", self.of(schema)),
        }
    }

    /// A schema as Go prints a struct without a `String()` method: `{  <nil>  string …}`.
    fn as_struct(&self, schema: &Json) -> String {
        let Some(schema) = schema.map() else { return "{}".into() };
        let fields: Vec<String> =
            FIELDS.iter().map(|(_, keyword, held)| self.nested(typed::get(schema, keyword), *held)).collect();
        format!("{{{}}}", fields.join(" "))
    }

    /// A field of such a struct. Pointers to structs have a `String()` method; other pointers are printed as addresses.
    fn nested(&self, value: Option<&Json>, held: GoFieldType) -> String {
        let listed = |item: &dyn Fn(&Json) -> String| {
            let items: Vec<String> = value.and_then(Json::list).unwrap_or_default().iter().map(item).collect();
            format!("[{}]", items.join(" "))
        };
        match held {
            GoFieldType::TextPointer
            | GoFieldType::FlagPointer
            | GoFieldType::IntPointer
            | GoFieldType::FloatPointer => match (value, self.memory) {
                (None, _) => "<nil>".into(),
                (Some(_), Memory::Live) => "0xc000000001".into(),
                (Some(_), Memory::Desired) => "0xc000000002".into(),
            },
            GoFieldType::Values => listed(&|value| format!("{{{}}}", bytes(value))),
            GoFieldType::Schemas => listed(&|value| self.as_struct(value)),
            GoFieldType::Named(_) => {
                let all: Vec<String> =
                    entries(value).map(|(name, value)| format!("{name}:{}", self.as_struct(value))).collect();
                format!("map[{}]", all.join(" "))
            }
            GoFieldType::Rules => listed(&|rule| {
                let fields: Vec<String> = RULE_FIELDS
                    .iter()
                    .map(|(_, key, held)| self.nested(rule.map().and_then(|rule| rule.get(key)), *held))
                    .collect();
                format!("{{{}}}", fields.join(" "))
            }),
            _ => self.field(value, held),
        }
    }
}

fn plain(value: Option<&Json>, held: GoFieldType) -> String {
    match (held, value) {
        (GoFieldType::Flag, value) => (value == Some(&Json::Bool(true))).to_string(),
        (GoFieldType::Texts, value) => {
            let texts: Vec<&str> =
                value.and_then(Json::list).unwrap_or_default().iter().filter_map(Json::text).collect();
            format!("[{}]", texts.join(" "))
        }
        (_, value) => value.and_then(Json::text).unwrap_or_default().to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the tool holds these bounds as float64")]
fn scalar(value: &Json, held: GoFieldType) -> String {
    match (value, held) {
        (Json::Int(int), GoFieldType::FloatPointer) => gotext::float(*int as f64),
        (Json::Float(float), _) => gotext::float(*float),
        (Json::Text(text), _) => text.to_string(),
        (value, _) => value.to_string(),
    }
}

/// `&JSON{Raw:*[34 97 34],}`: the bytes of the JSON text.
fn raw(value: &Json) -> String {
    format!("&JSON{{Raw:*{},}}", bytes(value))
}

fn bytes(value: &Json) -> String {
    let bytes: Vec<String> = value.to_string().bytes().map(|byte| byte.to_string()).collect();
    format!("[{}]", bytes.join(" "))
}

/// The entries of an object, which is sorted by name.
fn entries<'n, 'a: 'n>(value: Option<&'n Json<'a>>) -> impl Iterator<Item = (&'n str, &'n Json<'a>)> {
    value.and_then(Json::map).into_iter().flat_map(|map| map.iter())
}
