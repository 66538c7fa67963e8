//! Schemas as crdify prints them: with the `String()` methods of the API's Go types.
//!
//! crdify's `oneOf` validation compares schemas by this text, so the text decides its verdict. In it, schemas below
//! `properties` are printed as plain Go structs, in which a number, boolean or string held by pointer is printed as an
//! address. Two addresses are never equal, so for crdify such a schema differs from its own copy.

use super::typed;
use crate::crd_upgrade_safety::json::{Json, JsonMap};
use gantry_k8s_cel::gotext;
use gantry_schema::keywords::{GoFieldType, KEYWORDS_IN_ORDER, RULE_FIELDS};

/// The CRD that a schema belongs to. The two CRDs never share an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    Live,
    Desired,
}

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
        let fields = KEYWORDS_IN_ORDER.iter().map(|keyword| {
            let value = typed::get(schema, keyword.name).filter(|_| !without.contains(&keyword.name));
            format!("{}:{},", keyword.field.go_name, self.field(value, keyword.field.go_type))
        });
        format!("&JSONSchemaProps{{{}}}", fields.collect::<String>())
    }

    fn props(&self, json: &Json) -> String {
        json.map().map_or_else(|| "nil".into(), |schema| self.schema(schema, &[]))
    }

    fn field(&self, value: Option<&Json>, held: GoFieldType) -> String {
        let listed = |kind: &str, item: &dyn Fn(&Json) -> String| {
            let items = value.and_then(Json::list).unwrap_or_default().iter();
            format!("[]{kind}{{{}}}", items.map(|value| item(value).replacen('&', "", 1) + ",").collect::<String>())
        };
        match held {
            GoFieldType::Text | GoFieldType::RequiredText | GoFieldType::Flag | GoFieldType::Texts => {
                format_plain(value, held)
            }
            GoFieldType::TextPointer
            | GoFieldType::FlagPointer
            | GoFieldType::IntPointer
            | GoFieldType::FloatPointer => {
                value.map_or_else(|| "nil".into(), |value| format!("*{}", scalar(value, held)))
            }
            GoFieldType::Value => value.map_or_else(|| "nil".into(), raw),
            GoFieldType::Values => listed("JSON", &raw),
            GoFieldType::Schema => value.map_or_else(|| "nil".into(), |value| self.props(value)),
            GoFieldType::Schemas => listed("JSONSchemaProps", &|value| self.props(value)),
            GoFieldType::Items => self.items(value),
            GoFieldType::SchemaOrFlag => self.schema_or_flag(value),
            GoFieldType::Named | GoFieldType::Definitions | GoFieldType::Dependencies => {
                let kind = match held {
                    GoFieldType::Definitions => "JSONSchemaDefinitions",
                    GoFieldType::Dependencies => "JSONSchemaDependencies",
                    _ => "map[string]JSONSchemaProps",
                };
                let all = entries(value).map(|(name, value)| format!("{name}: {},", self.as_struct(value)));
                format!("{kind}{{{}}}", all.collect::<String>())
            }
            GoFieldType::Rules => listed("ValidationRule", &|rule| {
                let fields = RULE_FIELDS.iter().map(|field| {
                    let value = rule.map().and_then(|rule| rule.get(field.name));
                    format!("{}:{},", field.go_name, self.field(value, field.go_type))
                });
                format!("&ValidationRule{{{}}}", fields.collect::<String>())
            }),
            GoFieldType::Documentation => value.and_then(Json::map).map_or_else(
                || "nil".into(),
                |docs| {
                    let text = |key| format_plain(docs.get(key), GoFieldType::Text);
                    format!("&ExternalDocumentation{{Description:{},URL:{},}}", text("description"), text("url"))
                },
            ),
        }
    }

    fn items(&self, value: Option<&Json>) -> String {
        match value {
            None => "nil".into(),
            Some(Json::List(items)) => {
                let items = items.iter().map(|item| self.props(item).replacen('&', "", 1) + ",").collect::<String>();
                format!("&JSONSchemaPropsOrArray{{Schema:nil,JSONSchemas:[]JSONSchemaProps{{{items}}},}}")
            }
            Some(schema) => {
                format!("&JSONSchemaPropsOrArray{{Schema:{},JSONSchemas:[]JSONSchemaProps{{}},}}", self.props(schema))
            }
        }
    }

    fn schema_or_flag(&self, value: Option<&Json>) -> String {
        match value {
            None => "nil".into(),
            Some(Json::Bool(allows)) => format!("&JSONSchemaPropsOrBool{{Allows:{allows},Schema:nil,}}"),
            Some(schema) => format!("&JSONSchemaPropsOrBool{{Allows:true,Schema:{},}}", self.props(schema)),
        }
    }

    /// A schema as Go prints a struct without a `String()` method: `{  <nil>  string …}`.
    fn as_struct(&self, schema: &Json) -> String {
        let Some(schema) = schema.map() else { return "{}".into() };
        let fields: Vec<String> = KEYWORDS_IN_ORDER
            .iter()
            .map(|keyword| self.nested(typed::get(schema, keyword.name), keyword.field.go_type))
            .collect();
        format!("{{{}}}", fields.join(" "))
    }

    /// A field of such a struct. Pointers to structs have a `String()` method; other pointers are printed as addresses.
    fn nested(&self, value: Option<&Json>, held: GoFieldType) -> String {
        let listed = |item: &dyn Fn(&Json) -> String| {
            let items: Vec<String> = value.and_then(Json::list).unwrap_or_default().iter().map(item).collect();
            format!("[{}]", items.join(" "))
        };
        match held {
            pointer if pointer.is_scalar_pointer() => match (value, self.memory) {
                (None, _) => "<nil>".into(),
                (Some(_), Memory::Live) => "0xc000000001".into(),
                (Some(_), Memory::Desired) => "0xc000000002".into(),
            },
            GoFieldType::Values => listed(&|value| format!("{{{}}}", bytes(value))),
            GoFieldType::Schemas => listed(&|value| self.as_struct(value)),
            GoFieldType::Named | GoFieldType::Definitions | GoFieldType::Dependencies => {
                let all: Vec<String> =
                    entries(value).map(|(name, value)| format!("{name}:{}", self.as_struct(value))).collect();
                format!("map[{}]", all.join(" "))
            }
            GoFieldType::Rules => listed(&|rule| {
                let fields: Vec<String> = RULE_FIELDS
                    .iter()
                    .map(|field| self.nested(rule.map().and_then(|rule| rule.get(field.name)), field.go_type))
                    .collect();
                format!("{{{}}}", fields.join(" "))
            }),
            _ => self.field(value, held),
        }
    }
}

fn format_plain(value: Option<&Json>, held: GoFieldType) -> String {
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
