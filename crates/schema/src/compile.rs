//! Compiles `openAPIV3Schema` into the node tree.
//!
//! Keywords that the API server rejects in a structural schema are rejected here too: they have no meaning for the
//! validation of a custom resource.

use serde_json::{Map, Value};
use thiserror::Error;

use super::enumeration::Enumeration;
use super::formats;
use super::node::{AdditionalKeys, Bounds, Combined, JsonType, ListType, SchemaNode, StringRules, Types, is_declared};
use super::number::{self, NumberRange, NumberRules};
use super::objectmeta;
use super::prune;
use super::rules::CompileRules;
use super::tree;
use gantry_k8s_cel::re2::Patterns;

/// A schema that cannot be compiled, and the position of the error.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{path}: {reason}")]
#[non_exhaustive]
pub struct CompileError {
    /// The path of the faulty keyword, such as `openAPIV3Schema.properties[spec].maximum`.
    pub path: String,
    /// The reason.
    pub reason: String,
}

/// Keywords that a structural schema must not use.
const FORBIDDEN: [&str; 5] = ["$ref", "definitions", "dependencies", "patternProperties", "additionalItems"];

/// The maximum size of a default in bytes, including the defaults nested in it: nested defaults multiply.
const MAX_DEFAULT_WEIGHT: u64 = 16 << 20;

/// The structural counterpart of the schema being compiled: schemas below `allOf`, `anyOf`, `oneOf` and `not` restrict
/// values but declare no types of their own.
#[derive(Clone, Copy)]
struct Spine<'s> {
    schema: &'s Value,
    is_root: bool,
}

impl Spine<'_> {
    fn property(self, name: &str) -> Self {
        let schema = self.schema.get("properties").and_then(|properties| properties.get(name));
        Self { schema: schema.unwrap_or(&Value::Null), is_root: false }
    }

    fn child(self, keyword: &str) -> Self {
        Self { schema: self.schema.get(keyword).unwrap_or(&Value::Null), is_root: false }
    }
}

pub struct Compiler<'a> {
    rules: &'a dyn CompileRules,
    /// Shared, because patterns repeat: each is compiled once.
    patterns: Patterns,
    path: Vec<String>,
    of_defaults: bool,
}

impl<'a> Compiler<'a> {
    pub fn new(rules: &'a dyn CompileRules, patterns: &Patterns) -> Self {
        Self { rules, patterns: patterns.clone(), path: vec!["openAPIV3Schema".to_owned()], of_defaults: false }
    }

    /// Compiles a schema for the validation of its defaults. Errors in the schema itself are reported elsewhere.
    pub fn of_defaults(rules: &'a dyn CompileRules, patterns: &Patterns) -> Self {
        Self { of_defaults: true, ..Self::new(rules, patterns) }
    }

    pub fn root(&mut self, schema: &Value) -> Result<SchemaNode, CompileError> {
        self.node(schema, Spine { schema, is_root: true })
    }

    fn fail<T>(&self, keyword: &str, reason: impl Into<String>) -> Result<T, CompileError> {
        let mut path = self.path.concat();
        if !keyword.is_empty() {
            path.push('.');
            path.push_str(keyword);
        }
        Err(CompileError { path, reason: reason.into() })
    }

    fn below<T>(
        &mut self,
        step: String,
        work: impl FnOnce(&mut Self) -> Result<T, CompileError>,
    ) -> Result<T, CompileError> {
        self.path.push(step);
        let result = work(self);
        self.path.pop();
        result
    }

    fn node(&mut self, schema: &Value, spine: Spine) -> Result<SchemaNode, CompileError> {
        let Some(map) = schema.as_object() else { return self.fail("", "a schema is an object") };
        for keyword in FORBIDDEN {
            if tree::get(map, keyword).is_some_and(|v| !v.is_null()) && !self.of_defaults {
                return self.fail(keyword, "not allowed in a structural schema");
            }
        }
        if self.flag(map, "uniqueItems")? && !self.of_defaults {
            return self.fail("uniqueItems", "not allowed in a structural schema; x-kubernetes-list-type: set is");
        }
        let mut node = SchemaNode {
            types: self.compile_types(map)?,
            is_declared: is_declared(schema),
            nullable: self.flag(map, "nullable")?,
            preserve_unknown: self.flag(map, "x-kubernetes-preserve-unknown-fields")?,
            embedded: self.flag(map, "x-kubernetes-embedded-resource")?,
            list_type: self.list_type(map)?,
            map_keys: self.strings(map, "x-kubernetes-list-map-keys")?,
            required: self.strings(map, "required")?,
            default: tree::get(map, "default").filter(|v| !v.is_null()).map(|v| Box::new(stored(v))),
            // When the server validates a default, neither side of an `enum` comparison has been through storage.
            enumeration: Enumeration::new(match self.of_defaults {
                true => self.array(map, "enum")?.to_vec(),
                false => self.array(map, "enum")?.iter().map(stored).collect(),
            }),
            unique_items: self.flag(map, "uniqueItems")?,
            item_count: Bounds { min: self.integer(map, "minItems")?, max: self.integer(map, "maxItems")? },
            property_count: Bounds {
                min: self.integer(map, "minProperties")?,
                max: self.integer(map, "maxProperties")?,
            },
            ..SchemaNode::default()
        };
        if node.types == Types::Unknown {
            node.unknown_type = self.text(map, "type")?.map(Into::into);
        }
        let format = self.text(map, "format")?;
        let format_of =
            if self.of_defaults { formats::EnforcedFormat::of_default } else { formats::EnforcedFormat::find };
        node.format = format.and_then(|name| format_of(name, node.types));
        node.number = self.number_rules(map, node.types, format)?;
        node.string = self.string_rules(map)?;
        node.combined = self.combined(map, spine)?;
        self.compile_structure(map, &mut node, spine)?;
        let rules = self.array(map, "x-kubernetes-validations")?;
        if !rules.is_empty() {
            node.rules = Some(self.rules.compile(spine.schema, spine.is_root, rules));
        }
        update_summary(&mut node);
        if let Some(mut default) = node.default.take() {
            objectmeta::coerce_part(&mut default, &node);
            prune::prune_part(&mut default, &node);
            let weight = prune::filled_weight(&default, &node);
            if weight > MAX_DEFAULT_WEIGHT {
                return self.fail("default", format!("more than {} MiB are filled in", MAX_DEFAULT_WEIGHT >> 20));
            }
            node.default_weight = u32::try_from(weight).unwrap_or(u32::MAX);
            node.default = Some(default);
        }
        Ok(node)
    }

    fn compile_structure(
        &mut self,
        map: &Map<String, Value>,
        node: &mut SchemaNode,
        spine: Spine,
    ) -> Result<(), CompileError> {
        if let Some(properties) = self.object(map, "properties")? {
            let of = |(name, schema): (&String, &Value)| {
                let child = self.below(format!(".properties[{name}]"), |c| c.node(schema, spine.property(name)))?;
                Ok((name.as_str().into(), child))
            };
            node.properties = properties.iter().map(of).collect::<Result<_, CompileError>>()?;
        }
        node.additional = match tree::get(map, "additionalProperties") {
            None | Some(Value::Null) => AdditionalKeys::Absent,
            Some(Value::Bool(true)) => AdditionalKeys::Any,
            Some(Value::Bool(false)) => AdditionalKeys::Forbidden,
            Some(schema) => {
                let spine = spine.child("additionalProperties");
                let values = self.below(".additionalProperties".to_owned(), |c| c.node(schema, spine))?;
                AdditionalKeys::Schema(Box::new(values))
            }
        };
        node.items = match tree::get(map, "items") {
            None | Some(Value::Null) => None,
            Some(items) if self.of_defaults && !items.is_object() => None,
            Some(Value::Array(_)) => {
                return self.fail("items", "a list of schemas is not allowed in a structural schema");
            }
            Some(schema) => Some(Box::new(self.below(".items".to_owned(), |c| c.node(schema, spine.child("items")))?)),
        };
        Ok(())
    }

    fn combined(&mut self, map: &Map<String, Value>, spine: Spine) -> Result<Option<Box<Combined>>, CompileError> {
        let not = match tree::get(map, "not") {
            None | Some(Value::Null) => None,
            Some(schema) => Some(Box::new(self.below(".not".to_owned(), |c| c.node(schema, spine))?)),
        };
        let combined = Combined {
            all_of: self.branches(map, "allOf", spine)?,
            any_of: self.branches(map, "anyOf", spine)?,
            one_of: self.branches(map, "oneOf", spine)?,
            not,
        };
        let used = combined.not.is_some()
            || !(combined.all_of.is_empty() && combined.any_of.is_empty() && combined.one_of.is_empty());
        Ok(used.then(|| Box::new(combined)))
    }

    fn branches(
        &mut self,
        map: &Map<String, Value>,
        keyword: &str,
        spine: Spine,
    ) -> Result<Vec<SchemaNode>, CompileError> {
        let schemas = self.array(map, keyword)?;
        let mut nodes = Vec::with_capacity(schemas.len());
        for (at, schema) in schemas.iter().enumerate() {
            nodes.push(self.below(format!(".{keyword}[{at}]"), |c| c.node(schema, spine))?);
        }
        Ok(nodes)
    }

    /// The types that `type` and `x-kubernetes-int-or-string` name; for defaults the latter does not count.
    fn compile_types(&self, map: &Map<String, Value>) -> Result<Types, CompileError> {
        if self.flag(map, "x-kubernetes-int-or-string")? && !self.of_defaults {
            return Ok(Types::IntOrString);
        }
        Ok(match self.text(map, "type")?.unwrap_or("") {
            "" => Types::Any,
            "object" => Types::One(JsonType::Object),
            "array" => Types::One(JsonType::Array),
            "string" => Types::One(JsonType::String),
            "integer" => Types::One(JsonType::Integer),
            "number" => Types::One(JsonType::Number),
            "boolean" => Types::One(JsonType::Boolean),
            _ if self.of_defaults => Types::Unknown,
            other => return self.fail("type", format!("unknown type {other:?}")),
        })
    }

    fn list_type(&self, map: &Map<String, Value>) -> Result<ListType, CompileError> {
        Ok(match self.text(map, "x-kubernetes-list-type")?.unwrap_or("atomic") {
            "atomic" => ListType::Atomic,
            "set" => ListType::Set,
            "map" => ListType::Map,
            _ if self.of_defaults => ListType::Atomic,
            other => return self.fail("x-kubernetes-list-type", format!("unknown list type {other:?}")),
        })
    }

    fn number_rules(
        &self,
        map: &Map<String, Value>,
        types: Types,
        format: Option<&str>,
    ) -> Result<Option<Box<NumberRules>>, CompileError> {
        let rules = NumberRules {
            range: match types {
                Types::One(JsonType::Integer) => NumberRange::for_type(Some("integer"), format),
                Types::One(JsonType::Number) => NumberRange::for_type(Some("number"), format),
                _ => NumberRange::Any,
            },
            multiple_of: self.float(map, "multipleOf")?,
            maximum: self.float(map, "maximum")?,
            exclusive_maximum: self.flag(map, "exclusiveMaximum")?,
            minimum: self.float(map, "minimum")?,
            exclusive_minimum: self.flag(map, "exclusiveMinimum")?,
        };
        Ok((rules != NumberRules::default()).then(|| Box::new(rules)))
    }

    fn string_rules(&mut self, map: &Map<String, Value>) -> Result<Option<Box<StringRules>>, CompileError> {
        let pattern = self.text(map, "pattern")?.filter(|p| !p.is_empty()).map(|pattern| self.patterns.get(pattern));
        let rules = StringRules {
            max_length: self.integer(map, "maxLength")?,
            min_length: self.integer(map, "minLength")?,
            pattern,
        };
        let used = rules.max_length.is_some() || rules.min_length.is_some() || rules.pattern.is_some();
        Ok(used.then(|| Box::new(rules)))
    }

    fn flag(&self, map: &Map<String, Value>, keyword: &str) -> Result<bool, CompileError> {
        match tree::get(map, keyword) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => self.fail(keyword, "must be true or false"),
        }
    }

    fn text<'m>(&self, map: &'m Map<String, Value>, keyword: &str) -> Result<Option<&'m str>, CompileError> {
        match tree::get(map, keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => self.fail(keyword, "must be a string"),
        }
    }

    fn float(&self, map: &Map<String, Value>, keyword: &str) -> Result<Option<f64>, CompileError> {
        match tree::get(map, keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(f) => Ok(Some(f)),
                None => self.fail(keyword, "must be a number"),
            },
        }
    }

    fn integer(&self, map: &Map<String, Value>, keyword: &str) -> Result<Option<i64>, CompileError> {
        match tree::get(map, keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                match value.as_i64().or_else(|| value.as_f64().filter(|f| f.fract() == 0.0).map(|f| f as i64)) {
                    Some(i) => Ok(Some(i)),
                    None => self.fail(keyword, "must be an integer"),
                }
            }
        }
    }

    fn array<'m>(&self, map: &'m Map<String, Value>, keyword: &str) -> Result<&'m [Value], CompileError> {
        match tree::get(map, keyword) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => self.fail(keyword, "must be a list"),
        }
    }

    fn object<'m>(
        &self,
        map: &'m Map<String, Value>,
        keyword: &str,
    ) -> Result<Option<&'m Map<String, Value>>, CompileError> {
        match tree::get(map, keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(_) => self.fail(keyword, "must be an object"),
        }
    }

    fn strings(&self, map: &Map<String, Value>, keyword: &str) -> Result<Vec<String>, CompileError> {
        let mut texts = Vec::new();
        for item in self.array(map, keyword)? {
            match item {
                Value::String(text) => texts.push(text.clone()),
                _ => return self.fail(keyword, "must be a list of strings"),
            }
        }
        Ok(texts)
    }
}

/// The value as storage returns it: the values in a stored schema have been written and read once.
fn stored(value: &Value) -> Value {
    let mut value = value.clone();
    number::as_stored(&mut value);
    value
}

/// Updates the summary flags that let later walks skip subtrees.
pub(super) fn update_summary(node: &mut SchemaNode) {
    let in_combined = node.combined.as_ref().is_some_and(|c| c.all_of.iter().any(|n| n.has_rules));
    let mut rules = node.rules.is_some() || in_combined;
    let mut defaults = node.default.is_some();
    let mut unique = node.list_type != ListType::Atomic;
    let mut embedded = node.embedded;
    for child in node.properties.values().chain(node.additional.schema()).chain(node.items.as_deref()) {
        rules |= child.has_rules;
        defaults |= child.has_defaults;
        unique |= child.has_unique_lists;
        embedded |= child.has_embedded;
    }
    (node.has_rules, node.has_defaults) = (rules, defaults);
    (node.has_unique_lists, node.has_embedded) = (unique, embedded);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::rules::NoEngine;
    use super::*;

    fn error(schema: Value) -> String {
        Compiler::new(&NoEngine, &Patterns::default()).root(&schema).expect_err("not compiled").to_string()
    }

    #[test]
    fn an_error_of_a_schema_that_is_not_structural_has_its_path() {
        assert_eq!(
            error(json!({"properties": {"spec": {"items": [{}]}}})),
            "openAPIV3Schema.properties[spec].items: a list of schemas is not allowed in a structural schema"
        );
        assert_eq!(error(json!({"anyOf": [{"maximum": "1"}]})), "openAPIV3Schema.anyOf[0].maximum: must be a number");
        assert!(
            error(json!({"additionalProperties": {"$ref": "#"}}))
                .starts_with("openAPIV3Schema.additionalProperties.$ref")
        );
        assert!(error(json!({"type": "null"})).contains("unknown type"));
    }
}
