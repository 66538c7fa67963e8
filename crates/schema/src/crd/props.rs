//! A schema of a CRD as the API has it: every keyword, also those that are refused.

use crate::by_name::ByName;

use serde_json::Value;

use super::decode::{Decoded, Given, Object, within};

/// `JSONSchemaProps`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Props<'v> {
    pub id: &'v str,
    pub schema: &'v str,
    pub reference: Option<&'v str>,
    pub description: &'v str,
    pub kind: &'v str,
    pub nullable: bool,
    pub format: &'v str,
    pub title: &'v str,
    pub default: Option<&'v Value>,
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
    pub required: Given<Vec<&'v str>>,
    pub items: Option<Box<Items<'v>>>,
    pub all_of: Given<Vec<Props<'v>>>,
    pub one_of: Given<Vec<Props<'v>>>,
    pub any_of: Given<Vec<Props<'v>>>,
    pub not: Option<Box<Props<'v>>>,
    pub properties: Given<ByName<&'v str, Props<'v>>>,
    pub additional: Option<Box<Additional<'v>>>,
    pub pattern_properties: Given<ByName<&'v str, Props<'v>>>,
    pub dependencies: Given<ByName<&'v str, Dependency<'v>>>,
    pub additional_items: Option<Box<Additional<'v>>>,
    pub definitions: Given<ByName<&'v str, Props<'v>>>,
    pub external_docs: Option<(&'v str, &'v str)>,
    pub example: Option<&'v Value>,
    pub preserve_unknown: Option<bool>,
    pub embedded: bool,
    pub int_or_string: bool,
    pub map_keys: Given<Vec<&'v str>>,
    pub list_type: Option<&'v str>,
    pub map_type: Option<&'v str>,
    pub rules: Given<Vec<Rule<'v>>>,
    /// The schema as it is written, for what reads it by itself.
    pub raw: Raw<'v>,
}

/// What two schemas are not compared by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw<'v>(pub Option<&'v Value>);

impl PartialEq for Raw<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// `items`: a schema, or (which is refused) a list of schemas. Anything else is neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Items<'v> {
    pub schema: Option<Props<'v>>,
    pub schemas: Given<Vec<Props<'v>>>,
}

/// `additionalProperties`
#[derive(Clone, Debug, PartialEq)]
pub struct Additional<'v> {
    pub allows: bool,
    pub schema: Option<Props<'v>>,
}

/// What one entry of `dependencies` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dependency<'v> {
    pub schema: Option<Props<'v>>,
    pub names: Vec<&'v str>,
}

/// An entry of `x-kubernetes-validations`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rule<'v> {
    pub rule: &'v str,
    pub message: &'v str,
    pub message_expression: &'v str,
    pub reason: Option<&'v str>,
    pub field_path: &'v str,
    pub optional_old_self: Option<bool>,
}

impl<'v> Props<'v> {
    pub fn decode(value: &'v Value) -> Decoded<Self> {
        // A schema in a list or map may be null, which is one that says nothing.
        if value.is_null() {
            return Ok(Self::default());
        }
        let object = Object::of(value)?;
        let text = |key| object.text(key).map(Option::unwrap_or_default);
        let flag = |key| object.flag(key).map(Option::unwrap_or_default);
        let schemas = |key| object.list(key, Props::decode);
        Ok(Self {
            id: text("id")?,
            schema: text("$schema")?,
            reference: object.text("$ref")?,
            description: text("description")?,
            kind: text("type")?,
            nullable: flag("nullable")?,
            format: text("format")?,
            title: text("title")?,
            default: object.get("default"),
            maximum: object.number("maximum")?,
            exclusive_maximum: flag("exclusiveMaximum")?,
            minimum: object.number("minimum")?,
            exclusive_minimum: flag("exclusiveMinimum")?,
            max_length: object.integer("maxLength")?,
            min_length: object.integer("minLength")?,
            pattern: text("pattern")?,
            max_items: object.integer("maxItems")?,
            min_items: object.integer("minItems")?,
            unique_items: flag("uniqueItems")?,
            multiple_of: object.number("multipleOf")?,
            enumeration: object.list("enum", Ok)?,
            max_properties: object.integer("maxProperties")?,
            min_properties: object.integer("minProperties")?,
            required: object.texts("required")?,
            items: within("items", object.get("items").map(items).transpose())?,
            all_of: schemas("allOf")?,
            one_of: schemas("oneOf")?,
            any_of: schemas("anyOf")?,
            not: within("not", object.get("not").map(Props::decode).transpose())?.map(Box::new),
            properties: map(object, "properties", Props::decode)?,
            additional: additional(object, "additionalProperties")?,
            pattern_properties: map(object, "patternProperties", Props::decode)?,
            dependencies: map(object, "dependencies", dependency)?,
            additional_items: additional(object, "additionalItems")?,
            definitions: map(object, "definitions", Props::decode)?,
            external_docs: object.object("externalDocs", |docs| {
                let text = |key| docs.text(key).map(Option::unwrap_or_default);
                Ok((text("description")?, text("url")?))
            })?,
            example: object.get("example"),
            preserve_unknown: object.flag("x-kubernetes-preserve-unknown-fields")?,
            embedded: flag("x-kubernetes-embedded-resource")?,
            int_or_string: flag("x-kubernetes-int-or-string")?,
            map_keys: object.texts("x-kubernetes-list-map-keys")?,
            list_type: object.text("x-kubernetes-list-type")?,
            map_type: object.text("x-kubernetes-map-type")?,
            rules: object.list("x-kubernetes-validations", rule)?,
            raw: Raw(Some(value)),
        })
    }

    /// The schema of `items`, if it is one.
    pub fn item(&self) -> Option<&Props<'v>> {
        self.items.as_ref()?.schema.as_ref()
    }

    /// The schema of `additionalProperties`, if it is one.
    pub fn entry(&self) -> Option<&Props<'v>> {
        self.additional.as_ref()?.schema.as_ref()
    }

    /// Whether this schema or one anywhere in it is such.
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

fn map<'v, T>(
    object: Object<'v>,
    key: &str,
    read: impl Fn(&'v Value) -> Decoded<T>,
) -> Decoded<Given<ByName<&'v str, T>>> {
    let items = object.object(key, |map| {
        map.entries().map(|(name, value)| Ok((name, within(&format!("[{name}]"), read(value))?))).collect()
    })?;
    Ok(Given { is_given: items.is_some(), items: items.unwrap_or_default() })
}

fn items(value: &Value) -> Decoded<Box<Items<'_>>> {
    Ok(Box::new(match value {
        Value::Object(_) => Items { schema: Some(Props::decode(value)?), schemas: Given::default() },
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let schemas = items.map(|(at, item)| within(&format!("[{at}]"), Props::decode(item)));
            Items { schema: None, schemas: Given { items: schemas.collect::<Decoded<_>>()?, is_given: true } }
        }
        _ => Items::default(),
    }))
}

fn additional<'v>(object: Object<'v>, key: &str) -> Decoded<Option<Box<Additional<'v>>>> {
    let read = |value: &'v Value| match value {
        Value::Bool(allows) => Ok(Additional { allows: *allows, schema: None }),
        Value::Object(_) => Ok(Additional { allows: true, schema: Some(Props::decode(value)?) }),
        _ => Err(super::Undecodable { path: String::new(), reason: "must be true, false or a schema".to_owned() }),
    };
    within(key, object.get(key).map(read).transpose()).map(|found| found.map(Box::new))
}

fn dependency(value: &Value) -> Decoded<Dependency<'_>> {
    match value {
        Value::Object(_) => Ok(Dependency { schema: Some(Props::decode(value)?), names: Vec::new() }),
        Value::Array(names) => Ok(Dependency { schema: None, names: names.iter().filter_map(Value::as_str).collect() }),
        _ => Ok(Dependency::default()),
    }
}

fn rule(value: &Value) -> Decoded<Rule<'_>> {
    if value.is_null() {
        return Ok(Rule::default());
    }
    let object = Object::of(value)?;
    let text = |key| object.text(key).map(Option::unwrap_or_default);
    Ok(Rule {
        rule: text("rule")?,
        message: text("message")?,
        message_expression: text("messageExpression")?,
        reason: object.text("reason")?,
        field_path: text("fieldPath")?,
        optional_old_self: object.flag("optionalOldSelf")?,
    })
}
