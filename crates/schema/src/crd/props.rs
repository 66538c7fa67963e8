//! A CRD schema in the form of the API: every keyword, including those that are rejected.

use std::ops::{Deref, DerefMut};
use std::sync::LazyLock;

use serde_json::Value;

use crate::by_name::ByName;

use super::decode::{Decoded, DecodedObject, Given, flag, integer, list, number, text, texts, within, wrong_type};

/// `JSONSchemaProps`. Members that most schemas lack are in [`Uncommon`] and are accessed through `Deref`, so a schema
/// without them takes a quarter of the memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Props<'v> {
    pub description: &'v str,
    pub kind: &'v str,
    pub nullable: bool,
    pub format: &'v str,
    pub default: Option<&'v Value>,
    pub required: Given<Vec<&'v str>>,
    pub items: Option<Box<ItemsSchema<'v>>>,
    pub properties: Given<ByName<&'v str, Props<'v>>>,
    pub additional: Option<Box<AdditionalSchema<'v>>>,
    pub preserve_unknown: Option<bool>,
    pub embedded: bool,
    pub int_or_string: bool,
    pub list_type: Option<&'v str>,
    pub map_type: Option<&'v str>,
    uncommon: Sparse<'v>,
    /// The schema as written, for code that reads it directly.
    pub raw: IgnoredValue<'v>,
}

/// The members that most schemas lack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Uncommon<'v> {
    pub id: &'v str,
    pub schema: &'v str,
    pub reference: Option<&'v str>,
    pub title: &'v str,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: &'v str,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub multiple_of: Option<f64>,
    pub enumeration: Given<Vec<&'v Value>>,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub all_of: Given<Vec<Props<'v>>>,
    pub one_of: Given<Vec<Props<'v>>>,
    pub any_of: Given<Vec<Props<'v>>>,
    pub not: Option<Box<Props<'v>>>,
    pub pattern_properties: Given<ByName<&'v str, Props<'v>>>,
    pub dependencies: Given<ByName<&'v str, Dependency<'v>>>,
    pub additional_items: Option<Box<AdditionalSchema<'v>>>,
    pub definitions: Given<ByName<&'v str, Props<'v>>>,
    pub external_docs: Option<(&'v str, &'v str)>,
    pub example: Option<&'v Value>,
    pub map_keys: Given<Vec<&'v str>>,
    pub rules: Given<Vec<ValidationRule<'v>>>,
}

/// [`Uncommon`] members, which take no memory in a schema that has none.
#[derive(Clone, Debug, Default)]
struct Sparse<'v>(Option<Box<Uncommon<'v>>>);

impl<'v> Deref for Sparse<'v> {
    type Target = Uncommon<'v>;

    fn deref(&self) -> &Uncommon<'v> {
        static NONE: LazyLock<Uncommon<'static>> = LazyLock::new(Uncommon::default);
        self.0.as_deref().unwrap_or(&NONE)
    }
}

/// `exclusiveMaximum: false` is equal to a missing keyword.
impl PartialEq for Sparse<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<'v> Deref for Props<'v> {
    type Target = Uncommon<'v>;

    fn deref(&self) -> &Uncommon<'v> {
        &self.uncommon
    }
}

impl DerefMut for Props<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.uncommon.0.get_or_insert_default()
    }
}

/// Data that is ignored when schemas are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct IgnoredValue<'v>(pub Option<&'v Value>);

impl PartialEq for IgnoredValue<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// `items`: a schema, or a list of schemas, which is rejected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ItemsSchema<'v> {
    pub schema: Option<Props<'v>>,
    pub schemas: Given<Vec<Props<'v>>>,
}

/// `additionalProperties`
#[derive(Clone, Debug, PartialEq)]
pub struct AdditionalSchema<'v> {
    pub allows: bool,
    pub schema: Option<Props<'v>>,
}

/// The value of one entry in `dependencies`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependency<'v> {
    pub schema: Option<Props<'v>>,
    pub names: Vec<&'v str>,
}

/// An entry of `x-kubernetes-validations`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValidationRule<'v> {
    pub rule: &'v str,
    pub message: &'v str,
    pub message_expression: &'v str,
    pub reason: Option<&'v str>,
    pub field_path: &'v str,
    pub optional_old_self: Option<bool>,
}

impl<'v> Props<'v> {
    pub fn decode(value: &'v Value) -> Decoded<Self> {
        // A schema in a list or map can be null, which decodes to an empty schema.
        if value.is_null() {
            return Ok(Self::default());
        }
        let mut props = Self { raw: IgnoredValue(Some(value)), ..Self::default() };
        // Iterate over the members, because there are more keywords than any schema has members.
        for (key, value) in DecodedObject::of(value)?.entries().filter(|(_, value)| !value.is_null()) {
            within(key, props.member(key, value))?;
        }
        Ok(props)
    }

    fn member(&mut self, key: &str, value: &'v Value) -> Decoded<()> {
        let schemas = |value| list(value, Props::decode);
        match key {
            "id" => self.id = text(value)?,
            "$schema" => self.schema = text(value)?,
            "$ref" => self.reference = Some(text(value)?),
            "description" => self.description = text(value)?,
            "type" => self.kind = text(value)?,
            "nullable" => self.nullable = flag(value)?,
            "format" => self.format = text(value)?,
            "title" => self.title = text(value)?,
            "default" => self.default = Some(value),
            "maximum" => self.maximum = Some(number(value)?),
            "exclusiveMaximum" => self.exclusive_maximum = flag(value)?,
            "minimum" => self.minimum = Some(number(value)?),
            "exclusiveMinimum" => self.exclusive_minimum = flag(value)?,
            "maxLength" => self.max_length = Some(integer(value)?),
            "minLength" => self.min_length = Some(integer(value)?),
            "pattern" => self.pattern = text(value)?,
            "maxItems" => self.max_items = Some(integer(value)?),
            "minItems" => self.min_items = Some(integer(value)?),
            "uniqueItems" => self.unique_items = flag(value)?,
            "multipleOf" => self.multiple_of = Some(number(value)?),
            "enum" => self.enumeration = list(value, Ok)?,
            "maxProperties" => self.max_properties = Some(integer(value)?),
            "minProperties" => self.min_properties = Some(integer(value)?),
            "required" => self.required = texts(value)?,
            "items" => self.items = Some(items(value)?),
            "allOf" => self.all_of = schemas(value)?,
            "oneOf" => self.one_of = schemas(value)?,
            "anyOf" => self.any_of = schemas(value)?,
            "not" => self.not = Some(Box::new(Props::decode(value)?)),
            "properties" => self.properties = map(value, Props::decode)?,
            "additionalProperties" => self.additional = Some(additional(value)?),
            "patternProperties" => self.pattern_properties = map(value, Props::decode)?,
            "dependencies" => self.dependencies = map(value, dependency)?,
            "additionalItems" => self.additional_items = Some(additional(value)?),
            "definitions" => self.definitions = map(value, Props::decode)?,
            "externalDocs" => {
                let docs = DecodedObject::of(value)?;
                let text = |key| docs.text(key).map(Option::unwrap_or_default);
                self.external_docs = Some((text("description")?, text("url")?));
            }
            "example" => self.example = Some(value),
            "x-kubernetes-preserve-unknown-fields" => self.preserve_unknown = Some(flag(value)?),
            "x-kubernetes-embedded-resource" => self.embedded = flag(value)?,
            "x-kubernetes-int-or-string" => self.int_or_string = flag(value)?,
            "x-kubernetes-list-map-keys" => self.map_keys = texts(value)?,
            "x-kubernetes-list-type" => self.list_type = Some(text(value)?),
            "x-kubernetes-map-type" => self.map_type = Some(text(value)?),
            "x-kubernetes-validations" => self.rules = list(value, rule)?,
            _ => {}
        }
        Ok(())
    }

    /// The schema in `items`, if it is a single schema.
    pub fn item(&self) -> Option<&Props<'v>> {
        self.items.as_ref()?.schema.as_ref()
    }

    /// The schema in `additionalProperties`, if it is a schema.
    pub fn entry(&self) -> Option<&Props<'v>> {
        self.additional.as_ref()?.schema.as_ref()
    }

    /// Whether this schema or any schema inside it satisfies `is_such`.
    pub fn has(&self, is_such: &mut dyn FnMut(&Props<'v>) -> bool) -> bool {
        if is_such(self) {
            return true;
        }
        let items = self.items.iter().flat_map(|items| items.schema.iter().chain(items.schemas.iter()));
        let additional = self.additional.iter().chain(&self.additional_items).filter_map(|of| of.schema.as_ref());
        let mut below = items
            .chain(self.all_of.iter())
            .chain(self.any_of.iter())
            .chain(self.one_of.iter())
            .chain(self.not.as_deref())
            .chain(self.properties.values())
            .chain(additional)
            .chain(self.pattern_properties.values())
            .chain(self.definitions.values())
            .chain(self.dependencies.values().filter_map(|dependency| dependency.schema.as_ref()));
        below.any(|schema| schema.has(is_such))
    }
}

fn map<'v, T>(value: &'v Value, read: impl Fn(&'v Value) -> Decoded<T>) -> Decoded<Given<ByName<&'v str, T>>> {
    let map = DecodedObject::of(value)?;
    let mut items = Vec::with_capacity(map.len());
    for (name, value) in map.entries() {
        items.push((name, within(format_args!("[{name}]"), read(value))?));
    }
    Ok(Given { items: items.into_iter().collect(), is_given: true })
}

fn items(value: &Value) -> Decoded<Box<ItemsSchema<'_>>> {
    Ok(Box::new(match value {
        Value::Object(_) => ItemsSchema { schema: Some(Props::decode(value)?), schemas: Given::default() },
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let schemas = items.map(|(at, item)| within(format_args!("[{at}]"), Props::decode(item)));
            ItemsSchema { schema: None, schemas: Given { items: schemas.collect::<Decoded<_>>()?, is_given: true } }
        }
        _ => ItemsSchema::default(),
    }))
}

fn additional(value: &Value) -> Decoded<Box<AdditionalSchema<'_>>> {
    Ok(Box::new(match value {
        Value::Bool(allows) => AdditionalSchema { allows: *allows, schema: None },
        Value::Object(_) => AdditionalSchema { allows: true, schema: Some(Props::decode(value)?) },
        _ => return wrong_type("true, false or a schema"),
    }))
}

fn dependency(value: &Value) -> Decoded<Dependency<'_>> {
    match value {
        Value::Object(_) => Ok(Dependency { schema: Some(Props::decode(value)?), names: Vec::new() }),
        Value::Array(names) => Ok(Dependency { schema: None, names: names.iter().filter_map(Value::as_str).collect() }),
        _ => Ok(Dependency::default()),
    }
}

fn rule(value: &Value) -> Decoded<ValidationRule<'_>> {
    if value.is_null() {
        return Ok(ValidationRule::default());
    }
    let object = DecodedObject::of(value)?;
    let text = |key| object.text(key).map(Option::unwrap_or_default);
    Ok(ValidationRule {
        rule: text("rule")?,
        message: text("message")?,
        message_expression: text("messageExpression")?,
        reason: object.text("reason")?,
        field_path: text("fieldPath")?,
        optional_old_self: object.flag("optionalOldSelf")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_that_says_what_holds_without_it_makes_no_difference() {
        let [without, with, other] = [json!({}), json!({"exclusiveMaximum": false}), json!({"exclusiveMaximum": true})];
        let props = |value| Props::decode(value).unwrap();
        assert_eq!(props(&without), props(&with));
        assert_ne!(props(&without), props(&other));
    }
}
