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
use super::fault::CelResult;
use super::lib_format::NamedFormat;
use super::lib_net::Cidr;
use super::lib_quantity::CelQuantity;
use super::types::{CelType, CelTypeKind, ListKind};
use crate::golang::Timestamp;
use crate::golang::ip::Ip;
use crate::golang::semver::SemanticVersion;
use crate::golang::url::Url;

/// A value.
#[derive(Debug, Clone)]
pub(crate) enum CelValue<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(CelString<'a>),
    Bytes(Rc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(CelList<'a>),
    Map(CelMap<'a>),
    /// A type, identified by its name.
    Type(&'static str),
    Optional(Option<Rc<CelValue<'a>>>),
    Quantity(Rc<CelQuantity>),
    Url(Rc<Url>),
    Ip(Ip),
    Cidr(Cidr),
    Format(NamedFormat),
    Semver(Rc<SemanticVersion>),
    /// Data without a type.
    Unknown(&'a Json),
    /// A value inside an optional that does not match its schema: an error for any expression that reads it.
    Misfit(Rc<str>),
}

/// A string, borrowed from the object or the rule where possible.
#[derive(Debug, Clone)]
pub(crate) enum CelString<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl Deref for CelString<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            CelString::Borrowed(text) => text,
            CelString::Shared(text) => text,
        }
    }
}

/// A list that is part of the object or built by an expression.
#[derive(Debug, Clone)]
pub(crate) struct CelList<'a> {
    pub items: CelListItems<'a>,
    /// The list semantics of the schema, if the list or its left part comes from the object.
    pub kind: Option<&'a ListKind>,
}

#[derive(Debug, Clone)]
pub(crate) enum CelListItems<'a> {
    Json(&'a [Json], &'a CelType),
    /// The elements of a list of the object and of those added to it, as data that is read with the element type of
    /// the first.
    Merged(Rc<Vec<CelValue<'a>>>, &'a CelType),
    /// Data without a schema.
    Plain(&'a [Json]),
    Values(Rc<Vec<CelValue<'a>>>),
    /// Elements of other lists. Some of them might not match their schema, which only matters if they are used.
    Taken(Rc<Vec<CelResult<CelValue<'a>>>>),
    /// The elements of two concatenated lists, each with a flag that says whether it comes from a list of the object.
    Joined(Rc<Vec<Joined<'a>>>),
}

type Joined<'a> = (CelResult<CelValue<'a>>, bool);

impl<'a> CelList<'a> {
    /// A list built by an expression.
    pub(crate) fn new(items: Vec<CelValue<'a>>) -> Self {
        CelList { items: CelListItems::Values(Rc::new(items)), kind: None }
    }

    /// A list of elements of other lists.
    pub(crate) fn from_elements(items: Vec<CelResult<CelValue<'a>>>) -> Self {
        CelList { items: CelListItems::Taken(Rc::new(items)), kind: None }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.items {
            CelListItems::Json(items, _) | CelListItems::Plain(items) => items.len(),
            CelListItems::Values(items) | CelListItems::Merged(items, _) => items.len(),
            CelListItems::Taken(items) => items.len(),
            CelListItems::Joined(items) => items.len(),
        }
    }

    /// The element at `index`, which must exist.
    pub(crate) fn get(&self, index: usize) -> CelResult<CelValue<'a>> {
        match &self.items {
            CelListItems::Json(items, of) => items.get(index).map_or(Ok(CelValue::Null), |item| typed(item, of)),
            CelListItems::Merged(items, of) => {
                items.get(index).map_or(Ok(CelValue::Null), |item| read(item.clone(), of))
            }
            CelListItems::Plain(items) => Ok(items.get(index).map_or(CelValue::Null, native)),
            CelListItems::Values(items) => Ok(items.get(index).cloned().unwrap_or(CelValue::Null)),
            CelListItems::Taken(items) => items.get(index).cloned().unwrap_or(Ok(CelValue::Null)),
            CelListItems::Joined(items) => items.get(index).map_or(Ok(CelValue::Null), |(item, _)| item.clone()),
        }
    }

    /// Whether the element at `index` comes from a list of the object, even after concatenation.
    pub(crate) fn is_of_object(&self, index: usize) -> bool {
        match &self.items {
            CelListItems::Joined(items) => items.get(index).is_some_and(|(_, of_object)| *of_object),
            _ => self.is_object_list(),
        }
    }

    /// Whether the server accesses the list as one of the object. The sum of values keeps only the list type.
    pub(crate) fn is_object_list(&self) -> bool {
        self.kind.is_some() && !matches!(self.items, CelListItems::Taken(_))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = CelResult<CelValue<'a>>> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// All elements, or the first fault among them.
    pub(crate) fn values(&self) -> CelResult<Vec<CelValue<'a>>> {
        self.iter().collect()
    }
}

/// A map that is part of the object or built by an expression.
#[derive(Debug, Clone)]
pub(crate) enum CelMap<'a> {
    Json {
        fields: &'a serde_json::Map<String, Json>,
        of: &'a CelType,
    },
    /// Data without a schema.
    Plain(&'a serde_json::Map<String, Json>),
    Values(Rc<BTreeMap<MapKey, (CelValue<'a>, CelValue<'a>)>>),
}

/// The key of a map entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MapKey {
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// The bits of a double.
    Double(u64),
    String(String),
}

impl MapKey {
    /// The key for `value`, if its type can be a key.
    pub(crate) fn from_value(value: &CelValue) -> Option<MapKey> {
        Some(match value {
            CelValue::Bool(value) => MapKey::Bool(*value),
            CelValue::Int(value) => MapKey::Int(*value),
            CelValue::Uint(value) => MapKey::Uint(*value),
            // NaN differs from every key, including itself.
            CelValue::Double(value) if value.is_nan() => return None,
            CelValue::Double(value) => MapKey::Double((value + 0.0).to_bits()),
            CelValue::String(value) => MapKey::String(value.to_string()),
            _ => return None,
        })
    }

    /// The other keys that match a number, in order: integers with the same value. An integer does not match a double.
    pub(crate) fn equal_keys(value: &CelValue) -> [Option<MapKey>; 2] {
        match value {
            CelValue::Int(value) => [u64::try_from(*value).ok().map(MapKey::Uint), None],
            CelValue::Uint(value) => [i64::try_from(*value).ok().map(MapKey::Int), None],
            CelValue::Double(value) if value.fract() == 0.0 && value.abs() < 2f64.powi(64) => {
                let value = *value as i128;
                [i64::try_from(value).ok().map(MapKey::Int), u64::try_from(value).ok().map(MapKey::Uint)]
            }
            _ => [None, None],
        }
    }
}

impl<'a> CelMap<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            CelMap::Json { fields, .. } | CelMap::Plain(fields) => fields.len(),
            CelMap::Values(entries) => entries.len(),
        }
    }

    /// The keys, without undeclared fields of an object.
    pub(crate) fn keys(&self) -> Vec<CelValue<'a>> {
        match self {
            CelMap::Json { fields, of } => fields
                .keys()
                .filter(|key| of.property(key).is_some())
                .map(|key| match (&of.kind, super::types::escape(key)) {
                    (CelTypeKind::Object(_), Some(escaped)) if escaped != *key => CelValue::from(escaped),
                    _ => CelValue::String(CelString::Borrowed(key)),
                })
                .collect(),
            CelMap::Plain(fields) => fields.keys().map(|key| CelValue::String(CelString::Borrowed(key))).collect(),
            CelMap::Values(entries) => entries.values().map(|(key, _)| key.clone()).collect(),
        }
    }
}

impl<'a> CelValue<'a> {
    /// The name of the value's type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            CelValue::Null => "null_type",
            CelValue::Bool(_) => "bool",
            CelValue::Int(_) => "int",
            CelValue::Uint(_) => "uint",
            CelValue::Double(_) => "double",
            CelValue::String(_) => "string",
            CelValue::Bytes(_) => "bytes",
            CelValue::Duration(_) => "google.protobuf.Duration",
            CelValue::Timestamp(_) => "google.protobuf.Timestamp",
            CelValue::List(_) => "list",
            CelValue::Map(_) => "map",
            CelValue::Type(_) => "type",
            CelValue::Optional(_) => "optional_type",
            CelValue::Quantity(_) => "kubernetes.Quantity",
            CelValue::Url(_) => "kubernetes.URL",
            CelValue::Ip(_) => "net.IP",
            CelValue::Cidr(_) => "net.CIDR",
            CelValue::Format(_) => "kubernetes.NamedFormat",
            CelValue::Semver(_) => "kubernetes.Semver",
            CelValue::Unknown(_) | CelValue::Misfit(_) => "unknown",
        }
    }

    /// An optional that contains `value`.
    pub(crate) fn some(value: CelValue<'a>) -> Self {
        CelValue::Optional(Some(Rc::new(value)))
    }

    /// A list of strings.
    pub(crate) fn strings(items: impl IntoIterator<Item = String>) -> Self {
        CelValue::List(CelList::new(items.into_iter().map(CelValue::from).collect()))
    }
}

impl From<bool> for CelValue<'_> {
    fn from(value: bool) -> Self {
        CelValue::Bool(value)
    }
}

impl From<i64> for CelValue<'_> {
    fn from(value: i64) -> Self {
        CelValue::Int(value)
    }
}

impl From<f64> for CelValue<'_> {
    fn from(value: f64) -> Self {
        CelValue::Double(value)
    }
}

impl From<String> for CelValue<'_> {
    fn from(value: String) -> Self {
        CelValue::String(CelString::Shared(value.into()))
    }
}

impl From<&str> for CelValue<'_> {
    fn from(value: &str) -> Self {
        CelValue::String(CelString::Shared(value.into()))
    }
}
