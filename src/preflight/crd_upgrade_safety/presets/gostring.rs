//! Schemas as crdify prints them: with the `String()` methods of the API's Go types.
//!
//! crdify's `oneOf` validation compares schemas by this text, so the text decides its verdict. In it, schemas below
//! `properties` are printed as plain Go structs, in which a number, boolean or string held by pointer is printed as an
//! address. Two addresses are never equal, so for crdify such a schema differs from its own copy.

use super::typed;
use crate::preflight::crd_upgrade_safety::json::{Json, Map};
use gantry_schema::gotext;

/// The CRD that a schema belongs to. The two CRDs never share an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Live,
    Desired,
}

/// How a Go type holds a keyword.
#[derive(Clone, Copy)]
enum Held {
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
const FIELDS: &[(&str, &str, Held)] = &[
    ("ID", "id", Held::Text),
    ("Schema", "$schema", Held::Text),
    ("Ref", "$ref", Held::TextPointer),
    ("Description", "description", Held::Text),
    ("Type", "type", Held::Text),
    ("Format", "format", Held::Text),
    ("Title", "title", Held::Text),
    ("Default", "default", Held::Value),
    ("Maximum", "maximum", Held::FloatPointer),
    ("ExclusiveMaximum", "exclusiveMaximum", Held::Flag),
    ("Minimum", "minimum", Held::FloatPointer),
    ("ExclusiveMinimum", "exclusiveMinimum", Held::Flag),
    ("MaxLength", "maxLength", Held::IntPointer),
    ("MinLength", "minLength", Held::IntPointer),
    ("Pattern", "pattern", Held::Text),
    ("MaxItems", "maxItems", Held::IntPointer),
    ("MinItems", "minItems", Held::IntPointer),
    ("UniqueItems", "uniqueItems", Held::Flag),
    ("MultipleOf", "multipleOf", Held::FloatPointer),
    ("Enum", "enum", Held::Values),
    ("MaxProperties", "maxProperties", Held::IntPointer),
    ("MinProperties", "minProperties", Held::IntPointer),
    ("Required", "required", Held::Texts),
    ("Items", "items", Held::Items),
    ("AllOf", "allOf", Held::Schemas),
    ("OneOf", "oneOf", Held::Schemas),
    ("AnyOf", "anyOf", Held::Schemas),
    ("Not", "not", Held::Schema),
    ("Properties", "properties", Held::Named("map[string]JSONSchemaProps")),
    ("AdditionalProperties", "additionalProperties", Held::SchemaOrFlag),
    ("PatternProperties", "patternProperties", Held::Named("map[string]JSONSchemaProps")),
    ("Dependencies", "dependencies", Held::Named("JSONSchemaDependencies")),
    ("AdditionalItems", "additionalItems", Held::SchemaOrFlag),
    ("Definitions", "definitions", Held::Named("JSONSchemaDefinitions")),
    ("ExternalDocs", "externalDocs", Held::Documentation),
    ("Example", "example", Held::Value),
    ("Nullable", "nullable", Held::Flag),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Held::FlagPointer),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Held::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Held::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Held::Texts),
    ("XListType", "x-kubernetes-list-type", Held::TextPointer),
    ("XMapType", "x-kubernetes-map-type", Held::TextPointer),
    ("XValidations", "x-kubernetes-validations", Held::Rules),
];

/// The fields of `ValidationRule`, in order.
const RULE_FIELDS: &[(&str, &str, Held)] = &[
    ("Rule", "rule", Held::Text),
    ("Message", "message", Held::Text),
    ("MessageExpression", "messageExpression", Held::Text),
    ("Reason", "reason", Held::TextPointer),
    ("FieldPath", "fieldPath", Held::Text),
    ("OptionalOldSelf", "optionalOldSelf", Held::FlagPointer),
];

/// Keywords that crdify clears in the schemas of a `oneOf` before it compares them.
const BLANKED: &[&str] = &["description", "title", "example", "externalDocs"];

/// The texts of the schemas of a `oneOf`.
pub fn of_alternatives(alternatives: Option<&Json>, memory: Memory) -> Vec<String> {
    let schemas = alternatives.and_then(Json::list).unwrap_or_default().iter().filter_map(Json::map);
    schemas.map(|schema| alternative(schema, memory, &[])).collect()
}

/// The text that a schema would have as one schema of a `oneOf`, without its own `oneOf`.
pub fn as_alternative(schema: &Map, memory: Memory) -> String {
    alternative(schema, memory, &["oneOf"])
}

fn alternative(schema: &Map, memory: Memory, without: &[&str]) -> String {
    let left_out: Vec<&str> = BLANKED.iter().chain(without).copied().collect();
    Printer { memory }.schema(schema, &left_out)
}

struct Printer {
    memory: Memory,
}

impl Printer {
    /// `&JSONSchemaProps{ID:,Schema:,…}`
    fn schema(&self, schema: &Map, without: &[&str]) -> String {
        let fields = FIELDS.iter().map(|(name, keyword, held)| {
            let value = typed::get(schema, keyword).filter(|_| !without.contains(keyword));
            format!("{name}:{},", self.field(value, *held))
        });
        format!("&JSONSchemaProps{{{}}}", fields.collect::<String>())
    }

    fn of(&self, json: &Json) -> String {
        json.map().map_or_else(|| "nil".into(), |schema| self.schema(schema, &[]))
    }

    fn field(&self, value: Option<&Json>, held: Held) -> String {
        let listed = |kind: &str, item: &dyn Fn(&Json) -> String| {
            let items = value.and_then(Json::list).unwrap_or_default().iter();
            format!("[]{kind}{{{}}}", items.map(|value| item(value).replacen('&', "", 1) + ",").collect::<String>())
        };
        match held {
            Held::Text | Held::Flag | Held::Texts => plain(value, held),
            Held::TextPointer | Held::FlagPointer | Held::IntPointer | Held::FloatPointer => {
                value.map_or_else(|| "nil".into(), |value| format!("*{}", scalar(value, held)))
            }
            Held::Value => value.map_or_else(|| "nil".into(), raw),
            Held::Values => listed("JSON", &raw),
            Held::Schema => value.map_or_else(|| "nil".into(), |value| self.of(value)),
            Held::Schemas => listed("JSONSchemaProps", &|value| self.of(value)),
            Held::Items => self.items(value),
            Held::SchemaOrFlag => self.schema_or_flag(value),
            Held::Named(kind) => {
                let all = entries(value).map(|(name, value)| format!("{name}: {},", self.as_struct(value)));
                format!("{kind}{{{}}}", all.collect::<String>())
            }
            Held::Rules => listed("ValidationRule", &|rule| {
                let fields = RULE_FIELDS.iter().map(|(name, key, held)| {
                    format!("{name}:{},", self.field(rule.map().and_then(|rule| rule.get(key)), *held))
                });
                format!("&ValidationRule{{{}}}", fields.collect::<String>())
            }),
            Held::Documentation => value.and_then(Json::map).map_or_else(
                || "nil".into(),
                |docs| {
                    let text = |key| plain(docs.get(key), Held::Text);
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
    fn nested(&self, value: Option<&Json>, held: Held) -> String {
        let listed = |item: &dyn Fn(&Json) -> String| {
            let items: Vec<String> = value.and_then(Json::list).unwrap_or_default().iter().map(item).collect();
            format!("[{}]", items.join(" "))
        };
        match held {
            Held::TextPointer | Held::FlagPointer | Held::IntPointer | Held::FloatPointer => match (value, self.memory)
            {
                (None, _) => "<nil>".into(),
                (Some(_), Memory::Live) => "0xc000000001".into(),
                (Some(_), Memory::Desired) => "0xc000000002".into(),
            },
            Held::Values => listed(&|value| format!("{{{}}}", bytes(value))),
            Held::Schemas => listed(&|value| self.as_struct(value)),
            Held::Named(_) => {
                let all: Vec<String> =
                    entries(value).map(|(name, value)| format!("{name}:{}", self.as_struct(value))).collect();
                format!("map[{}]", all.join(" "))
            }
            Held::Rules => listed(&|rule| {
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

fn plain(value: Option<&Json>, held: Held) -> String {
    match (held, value) {
        (Held::Flag, value) => (value == Some(&Json::Bool(true))).to_string(),
        (Held::Texts, value) => {
            let texts: Vec<&str> =
                value.and_then(Json::list).unwrap_or_default().iter().filter_map(Json::text).collect();
            format!("[{}]", texts.join(" "))
        }
        (_, value) => value.and_then(Json::text).unwrap_or_default().to_owned(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the tool holds these bounds as float64")]
fn scalar(value: &Json, held: Held) -> String {
    match (value, held) {
        (Json::Int(int), Held::FloatPointer) => gotext::float(*int as f64),
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
