//! Reads the keywords of a schema node.

use std::ops::{BitAnd, BitOr};
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use gantry_schema::enforced_format_accepts;
pub use gantry_schema::same_value;
use gantry_schema::{self as schema, Sense};

/// A schema that accepts anything: it stands for what is below `x-kubernetes-preserve-unknown-fields`.
pub static ANY: LazyLock<Value> = LazyLock::new(|| json!({"x-kubernetes-preserve-unknown-fields": true}));

/// Whether this is [`ANY`]: fields that no schema describes and that are kept unchanged, including nulls.
pub fn is_unknown(schema: &Value) -> bool {
    std::ptr::eq(schema, &*ANY)
}

/// Any string: for a `kind` and an `apiVersion` that the schema does not describe.
pub static TEXT: LazyLock<Value> = LazyLock::new(|| json!({"type": "string"}));

/// The empty schema: it accepts every value and prunes the fields of objects.
pub static EMPTY: LazyLock<Value> = LazyLock::new(|| json!({}));

/// Whether no schema describes the value: it is [`ANY`], or the [`EMPTY`] of an entry under
/// `additionalProperties: true`. The server keeps a null there.
pub fn is_undescribed(schema: &Value) -> bool {
    is_unknown(schema) || std::ptr::eq(schema, &*EMPTY)
}

/// The keywords that constrain a value independently, each with the keywords that are compared with it. Each is a
/// separate question.
pub const VALUE_KEYWORDS: [(&str, &[&str]); 12] = [
    ("enum", &["enum"]),
    ("pattern", &["pattern"]),
    ("format", &["format"]),
    ("maxLength", &["maxLength"]),
    ("minLength", &["minLength"]),
    ("maximum", &["maximum", "exclusiveMaximum"]),
    ("minimum", &["minimum", "exclusiveMinimum"]),
    ("multipleOf", &["multipleOf"]),
    ("maxItems", &["maxItems"]),
    ("minItems", &["minItems"]),
    ("maxProperties", &["maxProperties"]),
    ("minProperties", &["minProperties"]),
];

/// The kinds of JSON values that schemas distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonTypeSet(u8);

impl JsonTypeSet {
    pub const NONE: Self = Self(0);
    pub const NULL: Self = Self(1);
    pub const BOOLEAN: Self = Self(2);
    pub const INTEGER: Self = Self(4);
    /// Numbers that are not integers.
    pub const FRACTION: Self = Self(8);
    pub const STRING: Self = Self(16);
    pub const ARRAY: Self = Self(32);
    pub const OBJECT: Self = Self(64);
    pub const ALL: Self = Self(127);

    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl BitOr for JsonTypeSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for JsonTypeSet {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The keyword's value, even if it is null.
fn written_value<'s>(schema: &'s Value, keyword: &str) -> Option<&'s Value> {
    schema::get_member(schema.as_object()?, keyword)
}

/// The keyword's value, if it is present and not null.
pub fn get<'s>(schema: &'s Value, keyword: &str) -> Option<&'s Value> {
    written_value(schema, keyword).filter(|value| !value.is_null())
}

pub fn flag(schema: &Value, keyword: &str) -> bool {
    written_value(schema, keyword) == Some(&Value::Bool(true))
}

pub fn preserves(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-preserve-unknown-fields")
}

pub fn embedded(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-embedded-resource")
}

pub fn list<'s>(schema: &'s Value, keyword: &str) -> &'s [Value] {
    written_value(schema, keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub fn names<'s>(schema: &'s Value, keyword: &str) -> impl Iterator<Item = &'s str> {
    list(schema, keyword).iter().filter_map(Value::as_str)
}

pub fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    written_value(schema, "properties").and_then(Value::as_object)
}

/// Whether this is a field that every resource has and that no schema has to describe.
pub fn is_meta(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}

pub fn property<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    properties(schema).and_then(|properties| properties.get(name))
}

/// Whether a writer must set the field: it is required and has no default.
pub fn is_to_be_written(schema: &Value, name: &str) -> bool {
    names(schema, "required").any(|required| required == name)
        && property(schema, name).is_some_and(|own| default_of(own).is_none())
}

pub fn default_of(schema: &Value) -> Option<&Value> {
    get(schema, "default")
}

/// The value of a count such as `maxItems`. Go reads `5.0` as 5.
pub fn count(schema: &Value, keyword: &str) -> Option<i64> {
    let value = get(schema, keyword)?;
    value.as_i64().or_else(|| value.as_f64().map(|f| f as i64))
}

/// The schema that `additionalProperties` gives to keys without a property, if it allows them.
pub fn additional(schema: &Value) -> Option<&Value> {
    match written_value(schema, "additionalProperties") {
        // The server keeps the entry and prunes everything inside it.
        Some(Value::Bool(true)) => Some(&EMPTY),
        Some(schema @ Value::Object(_)) => Some(schema),
        _ => None,
    }
}

/// The name of the string format that the server enforces on this node, if any.
pub fn string_format(schema: &Value) -> Option<&str> {
    let name = written_value(schema, "format").and_then(Value::as_str)?;
    let is_for_strings =
        flag(schema, "x-kubernetes-int-or-string") || matches!(type_name(schema), None | Some("string"));
    (is_for_strings && enforced_format_accepts(name, "").is_some()).then_some(name)
}

pub fn type_name(schema: &Value) -> Option<&str> {
    written_value(schema, "type").and_then(Value::as_str).filter(|name| !name.is_empty())
}

/// The kinds of values that the node's type allows; null only if it is `nullable`.
///
/// The server also accepts a list where a `type: string` has an enforced format. Such lists are left out here: nobody
/// intends them, and with them every removed format would be a break.
pub fn kinds(schema: &Value) -> JsonTypeSet {
    let own = if flag(schema, "x-kubernetes-int-or-string") {
        JsonTypeSet::INTEGER | JsonTypeSet::STRING
    } else {
        match type_name(schema) {
            Some("object") => JsonTypeSet::OBJECT,
            Some("array") => JsonTypeSet::ARRAY,
            Some("string") => JsonTypeSet::STRING,
            Some("integer") => JsonTypeSet::INTEGER,
            Some("number") => JsonTypeSet::INTEGER | JsonTypeSet::FRACTION,
            Some("boolean") => JsonTypeSet::BOOLEAN,
            Some(_) => JsonTypeSet::NONE,
            None if string_format(schema).is_some() => JsonTypeSet::STRING | JsonTypeSet::ARRAY,
            None => JsonTypeSet::ALL.without(JsonTypeSet::NULL),
        }
    };
    if flag(schema, "nullable") { own | JsonTypeSet::NULL } else { own }
}

/// Whether the node has a type (int-or-string counts).
pub fn has_type(schema: &Value) -> bool {
    type_name(schema).is_some() || flag(schema, "x-kubernetes-int-or-string")
}

/// A schema with only those keywords of the node that say which JSON types a value may have: `type`, `nullable` and
/// `x-kubernetes-int-or-string`.
pub fn type_keywords(schema: &Value) -> Map<String, Value> {
    let of = |keyword: &str| Some((keyword.to_owned(), get(schema, keyword)?.clone()));
    ["type", "nullable", "x-kubernetes-int-or-string"].into_iter().filter_map(of).collect()
}

/// Whether two nodes, with everything below them, treat all objects in the same way.
pub fn is_same_node(a: &Value, b: &Value) -> bool {
    schema::same_schema(a, b, Sense::Objects)
}

/// Whether a keyword means the same on both sides.
pub fn same_keyword(keyword: &str, a: Option<&Value>, b: Option<&Value>) -> bool {
    schema::is_same_keyword(keyword, a, b, Sense::Objects)
}

/// The keywords of the two nodes that differ in meaning, sorted. The nodes below are not compared.
pub fn differing<'s>(a: &'s Value, b: &'s Value) -> Vec<&'s str> {
    let (Some(a_map), Some(b_map)) = (a.as_object(), b.as_object()) else { return Vec::new() };
    let added = b_map.keys().filter(|keyword| written_value(a, keyword).is_none());
    let differs = |keyword: &&str| match *keyword {
        "properties" | "items" => false,
        "additionalProperties" => additional(a).is_some() != additional(b).is_some(),
        keyword => {
            !schema::is_left_out(keyword, Sense::Objects)
                && !same_keyword(keyword, written_value(a, keyword), written_value(b, keyword))
        }
    };
    let mut keywords: Vec<&str> = a_map.keys().chain(added).map(String::as_str).filter(differs).collect();
    keywords.sort_unstable();
    keywords
}

/// The node's constraints on a value whose structure another node determines.
pub fn without_structure(schema: &Value) -> Value {
    let is_kept = |keyword: &str| keyword != "type" && !keyword.starts_with("x-kubernetes-");
    let entries = schema.as_object().into_iter().flatten().filter(|(keyword, _)| is_kept(keyword));
    Value::Object(entries.map(|(keyword, value)| (keyword.clone(), value.clone())).collect())
}

/// The number of JSON values in the schema.
pub fn size(schema: &Value) -> usize {
    match schema {
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Roughly the number of bytes of memory that the value takes.
pub fn weight(value: &Value) -> u64 {
    const VALUE: u64 = 32;
    const ENTRY: u64 = 48;
    match value {
        Value::String(text) => VALUE + text.len() as u64,
        Value::Array(items) => VALUE + items.iter().map(weight).sum::<u64>(),
        Value::Object(map) => {
            VALUE + ENTRY + map.iter().map(|(key, value)| ENTRY + key.len() as u64 + weight(value)).sum::<u64>()
        }
        _ => VALUE,
    }
}

/// Whether the schema has a default at any level.
pub fn has_defaults(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("default") || map.values().any(has_defaults),
        Value::Array(items) => items.iter().any(has_defaults),
        _ => false,
    }
}

/// Whether the schema is nested more than `limit` levels deep.
pub fn is_deeper_than(schema: &Value, limit: usize) -> bool {
    match schema {
        Value::Object(map) => limit == 0 || map.values().any(|value| is_deeper_than(value, limit - 1)),
        Value::Array(items) => limit == 0 || items.iter().any(|value| is_deeper_than(value, limit - 1)),
        _ => false,
    }
}

/// Whether `stored` contains everything in `written`; it can contain more.
pub fn contains_all(stored: &Value, written: &Value) -> bool {
    match (stored, written) {
        (Value::Object(stored), Value::Object(written)) => {
            written.iter().all(|(key, value)| stored.get(key).is_some_and(|kept| contains_all(kept, value)))
        }
        (Value::Array(stored), Value::Array(written)) => {
            stored.len() == written.len() && stored.iter().zip(written).all(|(a, b)| contains_all(a, b))
        }
        _ => same_value(stored, written),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_keyword_is_a_keyword_on_which_objects_depend() {
        for keyword in VALUE_KEYWORDS.iter().flat_map(|(_, compared)| compared.iter()) {
            let known = gantry_schema::keywords::find(keyword);
            assert!(known.is_some_and(|known| known.decides == gantry_schema::keywords::Decides::Objects), "{keyword}");
        }
    }

    #[test]
    fn kinds_follow_types_nullable_and_formats() {
        for (schema, expected) in [
            (json!({"type": "number"}), JsonTypeSet::INTEGER | JsonTypeSet::FRACTION),
            (json!({"type": "string", "nullable": true}), JsonTypeSet::STRING | JsonTypeSet::NULL),
            (json!({"x-kubernetes-int-or-string": true}), JsonTypeSet::INTEGER | JsonTypeSet::STRING),
            (json!({"format": "date"}), JsonTypeSet::STRING | JsonTypeSet::ARRAY),
            (json!({"format": "quantity"}), JsonTypeSet::ALL.without(JsonTypeSet::NULL)),
        ] {
            assert_eq!(kinds(&schema), expected, "{schema}");
        }
    }
}
