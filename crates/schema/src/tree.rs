//! An abstraction over the types that hold JSON.

use serde_json::{Map, Value};

use crate::json::Json;

/// Maps with up to this many members are searched linearly, which is faster than hashing.
const FEW: usize = 10;

/// A member of a map. Schema nodes have few keywords, but are queried for dozens.
pub fn get<'v>(map: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    if map.len() > FEW {
        return map.get(key);
    }
    map.iter().find_map(|(known, value)| (known == key).then_some(value))
}

/// A JSON value, with the operations needed to compare schemas.
pub trait Tree: Sized {
    /// The type and content of the value.
    fn view(&self) -> ValueView<'_, Self>;

    /// A member of an object.
    fn member(&self, key: &str) -> Option<&Self>;

    /// Whether `check` holds for all members of an object.
    fn all_members(&self, check: &mut dyn FnMut(&str, &Self) -> bool) -> bool;

    /// Whether both are the same value: 1 and 1.0 are the same number, and the order of members is irrelevant.
    fn same_value(&self, other: &Self) -> bool;

    /// A canonical text: equal for equal values.
    fn canonical_text(&self) -> String;
}

/// The type and content of a value.
pub enum ValueView<'v, T> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, and whether it is zero.
    Number(bool),
    /// A string.
    Text(&'v str),
    /// An array.
    List(&'v [T]),
    /// An object, and whether it is empty.
    Map(bool),
}

impl Tree for Json<'_> {
    fn view(&self) -> ValueView<'_, Self> {
        match self {
            Json::Null => ValueView::Null,
            Json::Bool(flag) => ValueView::Bool(*flag),
            Json::Int(number) => ValueView::Number(*number == 0),
            Json::Float(number) => ValueView::Number(*number == 0.0),
            Json::Text(text) => ValueView::Text(text),
            Json::List(list) => ValueView::List(list),
            Json::Map(map) => ValueView::Map(map.is_empty()),
        }
    }

    fn member(&self, key: &str) -> Option<&Self> {
        self.map()?.get(key)
    }

    fn all_members(&self, check: &mut dyn FnMut(&str, &Self) -> bool) -> bool {
        self.map().is_none_or(|map| map.iter().all(|(key, value)| check(key, value)))
    }

    fn same_value(&self, other: &Self) -> bool {
        self == other
    }

    fn canonical_text(&self) -> String {
        self.to_string()
    }
}

impl Tree for Value {
    fn view(&self) -> ValueView<'_, Self> {
        match self {
            Value::Null => ValueView::Null,
            Value::Bool(flag) => ValueView::Bool(*flag),
            Value::Number(number) => ValueView::Number(number.as_f64() == Some(0.0)),
            Value::String(text) => ValueView::Text(text),
            Value::Array(list) => ValueView::List(list),
            Value::Object(map) => ValueView::Map(map.is_empty()),
        }
    }

    fn member(&self, key: &str) -> Option<&Self> {
        get(self.as_object()?, key)
    }

    fn all_members(&self, check: &mut dyn FnMut(&str, &Self) -> bool) -> bool {
        self.as_object().is_none_or(|map| map.iter().all(|(key, value)| check(key, value)))
    }

    fn same_value(&self, other: &Self) -> bool {
        same_value(self, other)
    }

    fn canonical_text(&self) -> String {
        match self {
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (None, Some(float)) if float.fract() == 0.0 && float.abs() < 1e15 => (float as i64).to_string(),
                _ => number.to_string(),
            },
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(Tree::canonical_text).collect();
                format!("[{}]", items.join(","))
            }
            Value::Object(map) => {
                let mut members: Vec<String> =
                    map.iter().map(|(key, value)| format!("{key:?}:{}", value.canonical_text())).collect();
                members.sort_unstable();
                format!("{{{}}}", members.join(","))
            }
            other => other.to_string(),
        }
    }
}

/// Whether two values are equal: 1 and 1.0 are the same number, as they are after the server stores them.
pub fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => x == y,
            _ => x.as_f64() == y.as_f64(),
        },
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        _ => a == b,
    }
}
