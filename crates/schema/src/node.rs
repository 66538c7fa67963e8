//! The compiled schema tree.
//!
//! A node of a real CRD mostly has a type and properties; what is rare lies behind one box each, so that the hundreds of
//! thousands of nodes of a large cluster stay small.

use std::sync::Arc;

use serde_json::Value;

use super::by_name::ByName;
use super::enumeration::Enumeration;
use super::formats::Format;
use super::number::NumberRules;
use super::re2::Pattern;
use super::rules::Rules;

/// The JSON types that a schema names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
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

/// Which types a value may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Types {
    #[default]
    Any,
    One(Type),
    IntOrString,
    /// One that does not exist, so that no value has it. Only defaults are judged by it; the schema is refused.
    Unheard,
}

impl Types {
    pub fn contains(self, kind: Type) -> bool {
        match self {
            Self::Any | Self::Unheard => false,
            Self::One(own) => own == kind,
            Self::IntOrString => matches!(kind, Type::Integer | Type::String),
        }
    }

    fn names(self) -> &'static str {
        match self {
            Self::Any | Self::Unheard => "",
            Self::One(own) => own.name(),
            Self::IntOrString => "integer,string",
        }
    }
}

/// What `additionalProperties` says.
#[derive(Debug, Default)]
pub enum Additional {
    /// Nothing: other keys are pruned.
    #[default]
    Absent,
    /// `true`
    Any,
    /// `false`
    Forbidden,
    Schema(Box<Node>),
}

impl Additional {
    pub fn schema(&self) -> Option<&Node> {
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

/// Keywords of strings.
#[derive(Debug, Default)]
pub struct StringRules {
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: Option<Arc<Pattern>>,
}

/// Bounds on the number of items or properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    pub min: Option<i64>,
    pub max: Option<i64>,
}

/// Value validations that combine others. The nodes inside carry no structure of their own.
#[derive(Debug, Default)]
pub struct Combined {
    pub all_of: Vec<Node>,
    pub any_of: Vec<Node>,
    pub one_of: Vec<Node>,
    pub not: Option<Box<Node>>,
}

/// One node of the schema.
#[derive(Debug, Default)]
pub struct Node {
    pub types: Types,
    /// The name of the type if it is one that does not exist.
    pub unheard_type: Option<Box<str>>,
    pub nullable: bool,
    pub preserve_unknown: bool,
    pub embedded: bool,
    /// `x-kubernetes-map-type` and the like do not matter here; the list type decides uniqueness and correlation.
    pub list_type: ListType,
    pub map_keys: Vec<String>,
    pub properties: ByName<Box<str>, Node>,
    pub additional: Additional,
    pub items: Option<Box<Node>>,
    pub required: Vec<String>,
    pub default: Option<Box<Value>>,
    /// How large the default is with all that is filled in inside of it, as [`super::prune::filled_weight`] weighs.
    pub default_weight: u32,
    pub format: Option<Format>,
    pub enumeration: Enumeration,
    pub number: Option<Box<NumberRules>>,
    pub string: Option<Box<StringRules>>,
    pub item_count: Bounds,
    /// `uniqueItems`, by which only defaults are judged; the schema is refused.
    pub unique_items: bool,
    pub property_count: Bounds,
    pub combined: Option<Box<Combined>>,
    /// `x-kubernetes-validations` of this node.
    pub rules: Option<Box<dyn Rules>>,
    /// Whether this node or one below it has rules.
    pub has_rules: bool,
    /// Whether this node or one below it has a default.
    pub has_defaults: bool,
    /// Whether this node or one below it is a list of type set or map.
    pub has_unique_lists: bool,
    /// Whether this node or one below it is an embedded resource.
    pub has_embedded: bool,
    /// Whether nothing but defaults is left of what the schema says here.
    pub is_forgotten: bool,
    /// Of a forgotten node, how values old and new are paired below it. None where it is enough to compare them.
    pub pairing: Option<Box<Node>>,
}

impl Node {
    /// The types that values may have, as the server lists them.
    pub fn type_names(&self) -> &str {
        self.unheard_type.as_deref().unwrap_or(self.types.names())
    }

    /// Whether null has the type, whatever else the schema says.
    pub fn is_of_null(&self) -> bool {
        self.types == Types::Any || self.unheard_type.as_deref() == Some("null")
    }

    /// The node that describes the value under `key`, if any does.
    pub fn child(&self, key: &str) -> Option<&Node> {
        self.properties.get(key).or_else(|| self.additional.schema())
    }
}
