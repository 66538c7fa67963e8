//! Decodes JSON into the structures of the API as the server does: null counts as missing, and unknown fields are
//! ignored.

use std::fmt;

use serde_json::{Map, Value};

use super::UndecodableCrd;
use super::api_value::ApiValue;
use crate::tree;

/// A list or map that can be omitted. The server treats an empty one as missing in comparisons, but not everywhere.
#[derive(Clone, Debug)]
pub struct Given<T> {
    pub items: T,
    pub is_given: bool,
}

impl<T: Default> Default for Given<T> {
    fn default() -> Self {
        Self { items: T::default(), is_given: false }
    }
}

impl<T: PartialEq> PartialEq for Given<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T> std::ops::Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.items
    }
}

pub type Decoded<T> = Result<T, UndecodableCrd>;

/// An object that is being decoded.
#[derive(Clone, Copy)]
pub struct DecodedObject<'v> {
    map: &'v Map<String, Value>,
}

pub fn wrong_type<T>(wanted: &str) -> Decoded<T> {
    Err(UndecodableCrd { path: String::new(), reason: format!("must be {wanted}") })
}

/// Prepends a step to the path of a decoding error.
pub fn prepend_step<T>(step: impl fmt::Display, decoded: Decoded<T>) -> Decoded<T> {
    decoded.map_err(|error| {
        let separator = if error.path.is_empty() || error.path.starts_with('[') { "" } else { "." };
        UndecodableCrd { path: format!("{step}{separator}{}", error.path), reason: error.reason }
    })
}

impl<'v> DecodedObject<'v> {
    pub fn decode(value: &'v Value) -> Decoded<Self> {
        match value {
            Value::Object(map) => Ok(Self { map }),
            _ => wrong_type("an object"),
        }
    }

    pub fn get(self, key: &str) -> Option<&'v Value> {
        tree::get(self.map, key).filter(|value| !value.is_null())
    }

    fn read<T>(self, key: &str, read: impl FnOnce(&'v Value) -> Decoded<T>) -> Decoded<Option<T>> {
        self.get(key).map(|value| prepend_step(key, read(value))).transpose()
    }

    pub fn value<T: ApiValue<'v>>(self, key: &str) -> Decoded<Option<T>> {
        self.read(key, T::decode)
    }

    pub fn text(self, key: &str) -> Decoded<Option<&'v str>> {
        self.read(key, text)
    }

    pub fn flag(self, key: &str) -> Decoded<Option<bool>> {
        self.read(key, flag)
    }

    pub fn integer(self, key: &str) -> Decoded<Option<i64>> {
        self.read(key, integer)
    }

    pub fn object<T>(self, key: &str, read: impl FnOnce(DecodedObject<'v>) -> Decoded<T>) -> Decoded<Option<T>> {
        self.read(key, |value| read(DecodedObject::decode(value)?))
    }

    /// Decodes a list item by item.
    pub fn list<T>(self, key: &str, read: impl Fn(&'v Value) -> Decoded<T>) -> Decoded<Given<Vec<T>>> {
        Ok(self.read(key, |value| list(value, read))?.unwrap_or_default())
    }

    pub fn texts(self, key: &str) -> Decoded<Given<Vec<&'v str>>> {
        Ok(self.value(key)?.unwrap_or_default())
    }

    pub fn len(self) -> usize {
        self.map.len()
    }

    pub fn entries(self) -> impl Iterator<Item = (&'v str, &'v Value)> {
        self.map.iter().map(|(key, value)| (key.as_str(), value))
    }
}

pub fn text(value: &Value) -> Decoded<&str> {
    value.as_str().map_or_else(|| wrong_type("a string"), Ok)
}

pub fn flag(value: &Value) -> Decoded<bool> {
    value.as_bool().map_or_else(|| wrong_type("true or false"), Ok)
}

pub fn integer(value: &Value) -> Decoded<i64> {
    let whole = || value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9.2e18).map(|f| f as i64);
    value.as_i64().or_else(whole).map_or_else(|| wrong_type("an integer"), Ok)
}

pub fn number(value: &Value) -> Decoded<f64> {
    value.as_f64().map_or_else(|| wrong_type("a number"), Ok)
}

/// Decodes a list item by item.
pub fn list<'v, T>(value: &'v Value, read: impl Fn(&'v Value) -> Decoded<T>) -> Decoded<Given<Vec<T>>> {
    let Value::Array(items) = value else { return wrong_type("a list") };
    let items = items.iter().enumerate().map(|(at, item)| prepend_step(format_args!("[{at}]"), read(item)));
    Ok(Given { items: items.collect::<Decoded<_>>()?, is_given: true })
}
