//! The compiled schema tree.
//!
//! A node of a real CRD mostly has only a type and properties. Rare parts are boxed, because a large cluster has
//! hundreds of thousands of nodes.

use std::sync::Arc;

use serde_json::Value;

use super::by_name::ByName;
use super::enumeration::Enumeration;
use super::formats::EnforcedFormat;
use super::number::NumberRules;
use super::rules::EvaluateRules;
use gantry_k8s_cel::re2::Pattern;

/// The JSON types that a schema can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonType {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl JsonType {
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// The types that a value can have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Types {
    #[default]
    Any,
    One(JsonType),
    IntOrString,
    /// An unknown type, which no value has. It is only used to validate defaults; the schema itself is rejected.
    Unknown,
}

impl Types {
    /// Whether the schema names this type. False for [`Types::Any`], which names none.
    pub fn names_type(self, kind: JsonType) -> bool {
        match self {
            Self::Any | Self::Unknown => false,
            Self::One(own) => own == kind,
            Self::IntOrString => matches!(kind, JsonType::Integer | JsonType::String),
        }
    }

    fn names(self) -> &'static str {
        match self {
            Self::Any | Self::Unknown => "",
            Self::One(own) => own.name(),
            Self::IntOrString => "integer,string",
        }
    }
}

/// The value of `additionalProperties`.
#[derive(Debug, Default)]
pub enum AdditionalKeys {
    /// Not specified: other keys are pruned.
    #[default]
    Absent,
    /// `true`
    Any,
    /// `false`
    Forbidden,
    Schema(Box<SchemaNode>),
}

impl AdditionalKeys {
    pub fn schema(&self) -> Option<&SchemaNode> {
        match self {
            Self::Schema(node) => Some(node),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListType {
    #[default]
    Atomic,
    Set,
    Map,
}

/// The keywords for strings.
#[derive(Debug, Default)]
pub struct StringRules {
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: Option<Arc<Pattern>>,
}

/// The bounds on the number of items or properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub min: Option<i64>,
    pub max: Option<i64>,
}

/// Value validations that combine others. The nodes inside declare no structure of their own.
#[derive(Debug, Default)]
pub struct Combined {
    pub all_of: Vec<SchemaNode>,
    pub any_of: Vec<SchemaNode>,
    pub one_of: Vec<SchemaNode>,
    pub not: Option<Box<SchemaNode>>,
}

/// Whether rules can access values of a schema. The server evaluates no rule on or below other schemas: it omits fields
/// of unknown types.
///
/// Source: `SchemaDeclType` and `validator` in `k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel`.
pub fn is_declared(schema: &Value) -> bool {
    if schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true)) {
        return true;
    }
    match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
        "array" => schema.get("items").is_some_and(is_declared),
        "object" => schema.get("additionalProperties").filter(|values| values.is_object()).is_none_or(is_declared),
        name => ["string", "integer", "number", "boolean"].contains(&name),
    }
}

/// One schema node.
#[derive(Debug, Default)]
pub struct SchemaNode {
    pub types: Types,
    /// The name of the type if it is unknown.
    pub unknown_type: Option<Box<str>>,
    pub nullable: bool,
    pub preserve_unknown: bool,
    pub embedded: bool,
    /// `x-kubernetes-map-type` and similar keywords are irrelevant here; the list type determines uniqueness and
    /// correlation.
    pub list_type: ListType,
    pub map_keys: Vec<String>,
    pub properties: ByName<Box<str>, SchemaNode>,
    pub additional: AdditionalKeys,
    pub items: Option<Box<SchemaNode>>,
    pub required: Vec<String>,
    pub default: Option<Box<Value>>,
    /// The size of the default including nested defaults, measured by [`super::prune::filled_weight`].
    pub default_weight: u32,
    pub format: Option<EnforcedFormat>,
    pub enumeration: Enumeration,
    pub number: Option<Box<NumberRules>>,
    pub string: Option<Box<StringRules>>,
    pub item_count: Bounds,
    /// `uniqueItems`, which is only used to validate defaults; the schema itself is rejected.
    pub unique_items: bool,
    pub property_count: Bounds,
    pub combined: Option<Box<Combined>>,
    /// `x-kubernetes-validations` of this node.
    pub rules: Option<Box<dyn EvaluateRules>>,
    /// See [`is_declared`]; of the whole schema, even if the node is reduced.
    pub is_declared: bool,
    /// Whether this node or one below it has rules.
    pub has_rules: bool,
    /// Whether this node or one below it has a default.
    pub has_defaults: bool,
    /// Whether this node or one below it is a list of type set or map.
    pub has_unique_lists: bool,
    /// Whether this node or one below it is an embedded resource.
    pub has_embedded: bool,
    /// Whether the schema here is reduced to its defaults.
    pub has_only_defaults: bool,
    /// If the node is reduced to its defaults, how to correlate old and new values below it. `None` if comparing them
    /// is sufficient.
    pub pairing: Option<Box<SchemaNode>>,
}

impl SchemaNode {
    /// The allowed types, as the server lists them.
    pub fn type_names(&self) -> &str {
        self.unknown_type.as_deref().unwrap_or(self.types.names())
    }

    /// Whether the type allows null, regardless of other keywords.
    pub fn is_of_null(&self) -> bool {
        self.types == Types::Any || self.unknown_type.as_deref() == Some("null")
    }

    /// The node that describes the value under `key`, if any.
    pub fn child(&self, key: &str) -> Option<&SchemaNode> {
        self.properties.get(key).or_else(|| self.additional.schema())
    }
}
