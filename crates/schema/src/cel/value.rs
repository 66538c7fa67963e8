//! The values of an expression.
//!
//! A value borrows from the validated object as long as possible: a rule that reads one field of a large object
//! accesses nothing else. Data of the object is converted to its type only when it is used, and data that does not
//! match its schema is a fault at that moment, as in the server.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use serde_json::Value as Json;

use super::convert::{native, read, typed};
use super::fault::Result;
use super::lib_format::NamedFormat;
use super::lib_net::Cidr;
use super::lib_quantity::Quantity;
use super::types::{Kind, ListKind, Type};
use crate::golang::Timestamp;
use crate::golang::ip::Ip;
use crate::golang::semver::Version;
use crate::golang::url::Url;

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Rc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(List<'a>),
    Map(Map<'a>),
    /// A type, identified by its name.
    Type(&'static str),
    Optional(Option<Rc<Value<'a>>>),
    Quantity(Rc<Quantity>),
    Url(Rc<Url>),
    Ip(Ip),
    Cidr(Cidr),
    Format(NamedFormat),
    Semver(Rc<Version>),
    /// Data without a type.
    Unknown(&'a Json),
    /// A value inside an optional that does not match its schema: an error for any expression that reads it.
    Misfit(Rc<str>),
}

/// A string, borrowed from the object or the rule where possible.
#[derive(Debug, Clone)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

/// A list that is part of the object or built by an expression.
#[derive(Debug, Clone)]
pub(crate) struct List<'a> {
    pub items: Items<'a>,
    /// The list semantics of the schema, if the list comes from the object.
    pub kind: Option<&'a ListKind>,
}

#[derive(Debug, Clone)]
pub(crate) enum Items<'a> {
    Json(&'a [Json], &'a Type),
    /// The elements of a list of the object and of those added to it, as data that is read with the element type of
    /// the first.
    Merged(Rc<Vec<Value<'a>>>, &'a Type),
    /// Data without a schema.
    Plain(&'a [Json]),
    Values(Rc<Vec<Value<'a>>>),
    /// Elements of other lists. Some of them might not match their schema, which only matters if they are used.
    Taken(Rc<Vec<Result<Value<'a>>>>),
    /// The elements of two concatenated lists, each with a flag that says whether it comes from a list of the object.
    Joined(Rc<Vec<Joined<'a>>>),
}

type Joined<'a> = (Result<Value<'a>>, bool);

impl<'a> List<'a> {
    /// A list built by an expression.
    pub(crate) fn new(items: Vec<Value<'a>>) -> Self {
        List { items: Items::Values(Rc::new(items)), kind: None }
    }

    /// A list of elements of other lists.
    pub(crate) fn taken(items: Vec<Result<Value<'a>>>) -> Self {
        List { items: Items::Taken(Rc::new(items)), kind: None }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.items {
            Items::Json(items, _) | Items::Plain(items) => items.len(),
            Items::Values(items) | Items::Merged(items, _) => items.len(),
            Items::Taken(items) => items.len(),
            Items::Joined(items) => items.len(),
        }
    }

    /// The element at `index`, which must exist.
    pub(crate) fn get(&self, index: usize) -> Result<Value<'a>> {
        match &self.items {
            Items::Json(items, of) => items.get(index).map_or(Ok(Value::Null), |item| typed(item, of)),
            Items::Merged(items, of) => items.get(index).map_or(Ok(Value::Null), |item| read(item.clone(), of)),
            Items::Plain(items) => Ok(items.get(index).map_or(Value::Null, native)),
            Items::Values(items) => Ok(items.get(index).cloned().unwrap_or(Value::Null)),
            Items::Taken(items) => items.get(index).cloned().unwrap_or(Ok(Value::Null)),
            Items::Joined(items) => items.get(index).map_or(Ok(Value::Null), |(item, _)| item.clone()),
        }
    }

    /// Whether the element at `index` comes from a list of the object, even after concatenation.
    pub(crate) fn is_of_object(&self, index: usize) -> bool {
        match &self.items {
            Items::Joined(items) => items.get(index).is_some_and(|(_, of_object)| *of_object),
            _ => self.kind.is_some(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Result<Value<'a>>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// All elements, or the first fault among them.
    pub(crate) fn values(&self) -> Result<Vec<Value<'a>>> {
        self.iter().collect()
    }
}

/// A map that is part of the object or built by an expression.
#[derive(Debug, Clone)]
pub(crate) enum Map<'a> {
    Json {
        fields: &'a serde_json::Map<String, Json>,
        of: &'a Type,
    },
    /// Data without a schema.
    Plain(&'a serde_json::Map<String, Json>),
    Values(Rc<BTreeMap<Key, (Value<'a>, Value<'a>)>>),
}

/// The key of a map entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a double.
    Double(u64),
    String(String),
}

impl Key {
    /// The key for `value`, if its type can be a key.
    pub(crate) fn of(value: &Value) -> Option<Key> {
        Some(match value {
            Value::Bool(value) => Key::Bool(*value),
            Value::Int(value) => Key::Int(*value),
            Value::Uint(value) => Key::Uint(*value),
            // NaN differs from every key, including itself.
            Value::Double(value) if value.is_nan() => return None,
            Value::Double(value) => Key::Double((value + 0.0).to_bits()),
            Value::String(value) => Key::String(value.to_string()),
            _ => return None,
        })
    }

    /// The other keys that match a number, in order: integers with the same value. An integer does not match a double.
    pub(crate) fn others(value: &Value) -> [Option<Key>; 2] {
        match value {
            Value::Int(value) => [u64::try_from(*value).ok().map(Key::Uint), None],
            Value::Uint(value) => [i64::try_from(*value).ok().map(Key::Int), None],
            Value::Double(value) if value.fract() == 0.0 && value.abs() < 2f64.powi(64) => {
                let value = *value as i128;
                [i64::try_from(value).ok().map(Key::Int), u64::try_from(value).ok().map(Key::Uint)]
            }
            _ => [None, None],
        }
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Map::Json { fields, .. } | Map::Plain(fields) => fields.len(),
            Map::Values(entries) => entries.len(),
        }
    }

    /// The keys, without undeclared fields of an object.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Json { fields, of } => fields
                .keys()
                .filter(|key| of.property(key).is_some())
                .map(|key| match (&of.kind, super::types::escape(key)) {
                    (Kind::Object(_), Some(escaped)) if escaped != *key => Value::from(escaped),
                    _ => Value::String(Text::Borrowed(key)),
                })
                .collect(),
            Map::Plain(fields) => fields.keys().map(|key| Value::String(Text::Borrowed(key))).collect(),
            Map::Values(entries) => entries.values().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl<'a> Value<'a> {
    /// The name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Type(_) => "type",
            Value::Optional(_) => "optional_type",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Url(_) => "kubernetes.URL",
            Value::Ip(_) => "net.IP",
            Value::Cidr(_) => "net.CIDR",
            Value::Format(_) => "kubernetes.NamedFormat",
            Value::Semver(_) => "kubernetes.Semver",
            Value::Unknown(_) | Value::Misfit(_) => "unknown",
        }
    }

    /// An optional that contains `value`.
    pub(crate) fn some(value: Value<'a>) -> Self {
        Value::Optional(Some(Rc::new(value)))
    }

    /// A list of strings.
    pub(crate) fn strings(items: impl IntoIterator<Item = String>) -> Self {
        Value::List(List::new(items.into_iter().map(Value::from).collect()))
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Value::Double(value)
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Value::String(Text::Shared(value.into()))
    }
}

impl From<&str> for Value<'_> {
    fn from(value: &str) -> Self {
        Value::String(Text::Shared(value.into()))
    }
}
