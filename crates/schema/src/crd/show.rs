//! Formats the structures of the API like Go's `json.Marshal`: messages quote whole structures.

use crate::by_name::ByName;
use std::fmt::Write;

use serde_json::Value;

use super::model::{Column, CrdVersionModel, CrdVersionSchema, VersionSubresources};
use super::props::{AdditionalSchema, Dependency, ItemsSchema, Props, ValidationRule};
use crate::gotext;

/// Writes the fields of a structure in order.
struct StructPrinter(String);

impl StructPrinter {
    fn new() -> Self {
        StructPrinter("{".to_owned())
    }

    fn raw(mut self, name: &str, value: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        let _ = write!(self.0, "\"{name}\":{value}");
        self
    }

    fn value(self, name: &str, value: impl Into<Value>) -> Self {
        let value = gotext::json(&value.into());
        self.raw(name, &value)
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(","))
}

fn given<T>(items: &[T], is_given: bool, show: impl Fn(&T) -> String) -> String {
    if is_given { list(items, show) } else { "null".to_owned() }
}

fn map<T>(items: &ByName<&str, T>, is_given: bool, show: impl Fn(&T) -> String) -> String {
    if !is_given {
        return "null".to_owned();
    }
    let entry = |(name, item): (&str, &T)| format!("{}:{}", gotext::json(&Value::from(name)), show(item));
    format!("{{{}}}", items.iter().map(entry).collect::<Vec<_>>().join(","))
}

fn or_null<T>(item: Option<T>, show: impl Fn(T) -> String) -> String {
    item.map_or_else(|| "null".to_owned(), show)
}

fn text(text: &&str) -> String {
    gotext::json(&Value::from(*text))
}

/// A list of strings; a missing list is written as null.
pub fn texts(texts: &[&str], is_given: bool) -> String {
    given(texts, is_given, text)
}

pub fn versions(versions: &[CrdVersionModel]) -> String {
    given(versions, !versions.is_empty(), |version| {
        StructPrinter::new()
            .value("Name", version.name)
            .value("Served", version.served)
            .value("Storage", version.storage)
            .value("Deprecated", version.deprecated)
            .value("DeprecationWarning", version.deprecation_warning)
            .raw("Schema", &or_null(version.validation.as_ref(), validation))
            .raw("Subresources", &or_null(version.subresources.as_ref(), subresources))
            .raw("AdditionalPrinterColumns", &given(&version.columns, version.columns.is_given, column))
            .raw(
                "SelectableFields",
                &given(&version.selectable, version.selectable.is_given, |path| {
                    StructPrinter::new().value("JSONPath", *path).end()
                }),
            )
            .end()
    })
}

fn validation(validation: &CrdVersionSchema) -> String {
    StructPrinter::new().raw("OpenAPIV3Schema", &or_null(validation.schema.as_ref(), props)).end()
}

fn subresources(subresources: &VersionSubresources) -> String {
    let scale = or_null(subresources.scale.as_ref(), |scale| {
        StructPrinter::new()
            .value("SpecReplicasPath", scale.spec_replicas)
            .value("StatusReplicasPath", scale.status_replicas)
            .value("LabelSelectorPath", scale.label_selector)
            .end()
    });
    let status = if subresources.status { "{}" } else { "null" };
    StructPrinter::new().raw("Status", status).raw("Scale", &scale).end()
}

fn column(column: &Column) -> String {
    StructPrinter::new()
        .value("Name", column.name)
        .value("Type", column.kind)
        .value("Format", column.format)
        .value("Description", column.description)
        .value("Priority", column.priority)
        .value("JSONPath", column.json_path)
        .end()
}

/// A schema in the server's internal form.
pub fn props(schema: &Props) -> String {
    let json = |value: &&Value| gotext::json(value);
    let schemas = |schemas: &super::decode::Given<Vec<Props>>| given(schemas, schemas.is_given, props);
    let map_of = |schemas: &super::decode::Given<ByName<&str, Props>>| map(schemas, schemas.is_given, props);
    StructPrinter::new()
        .value("ID", schema.id)
        .value("Schema", schema.schema)
        .value("Ref", schema.reference)
        .value("Description", schema.description)
        .value("Type", schema.kind)
        .value("Nullable", schema.nullable)
        .value("Format", schema.format)
        .value("Title", schema.title)
        .raw("Default", &or_null(schema.default, gotext::json))
        .value("Maximum", schema.maximum)
        .value("ExclusiveMaximum", schema.exclusive_maximum)
        .value("Minimum", schema.minimum)
        .value("ExclusiveMinimum", schema.exclusive_minimum)
        .value("MaxLength", schema.max_length)
        .value("MinLength", schema.min_length)
        .value("Pattern", schema.pattern)
        .value("MaxItems", schema.max_items)
        .value("MinItems", schema.min_items)
        .value("UniqueItems", schema.unique_items)
        .value("MultipleOf", schema.multiple_of)
        .raw("Enum", &given(&schema.enumeration, schema.enumeration.is_given, json))
        .value("MaxProperties", schema.max_properties)
        .value("MinProperties", schema.min_properties)
        .raw("Required", &texts(&schema.required, schema.required.is_given))
        .raw("Items", &or_null(schema.items.as_deref(), items))
        .raw("AllOf", &schemas(&schema.all_of))
        .raw("OneOf", &schemas(&schema.one_of))
        .raw("AnyOf", &schemas(&schema.any_of))
        .raw("Not", &or_null(schema.not.as_deref(), props))
        .raw("Properties", &map_of(&schema.properties))
        .raw("AdditionalProperties", &or_null(schema.additional.as_deref(), additional))
        .raw("PatternProperties", &map_of(&schema.pattern_properties))
        .raw("Dependencies", &map(&schema.dependencies, schema.dependencies.is_given, dependency))
        .raw("AdditionalItems", &or_null(schema.additional_items.as_deref(), additional))
        .raw("Definitions", &map_of(&schema.definitions))
        .raw(
            "ExternalDocs",
            &or_null(schema.external_docs, |(description, url)| {
                StructPrinter::new().value("Description", description).value("URL", url).end()
            }),
        )
        .raw("Example", &or_null(schema.example, gotext::json))
        .value("XPreserveUnknownFields", schema.preserve_unknown)
        .value("XEmbeddedResource", schema.embedded)
        .value("XIntOrString", schema.int_or_string)
        .raw("XListMapKeys", &texts(&schema.map_keys, schema.map_keys.is_given))
        .value("XListType", schema.list_type)
        .value("XMapType", schema.map_type)
        .raw("XValidations", &given(&schema.rules, schema.rules.is_given, rule))
        .end()
}

pub fn items(items: &ItemsSchema) -> String {
    StructPrinter::new()
        .raw("Schema", &or_null(items.schema.as_ref(), props))
        .raw("JSONSchemas", &given(&items.schemas, items.schemas.is_given, props))
        .end()
}

fn additional(additional: &AdditionalSchema) -> String {
    StructPrinter::new()
        .value("Allows", additional.allows)
        .raw("Schema", &or_null(additional.schema.as_ref(), props))
        .end()
}

fn dependency(dependency: &Dependency) -> String {
    StructPrinter::new()
        .raw("Schema", &or_null(dependency.schema.as_ref(), props))
        .raw("Property", &texts(&dependency.names, dependency.schema.is_none()))
        .end()
}

/// A rule of `x-kubernetes-validations`.
pub fn rule(rule: &ValidationRule) -> String {
    StructPrinter::new()
        .value("Rule", rule.rule)
        .value("Message", rule.message)
        .value("MessageExpression", rule.message_expression)
        .value("Reason", rule.reason)
        .value("FieldPath", rule.field_path)
        .value("OptionalOldSelf", rule.optional_old_self)
        .end()
}
