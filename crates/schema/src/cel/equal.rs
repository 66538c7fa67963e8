//! Equality and order of values.
//!
//! Numbers are equal by value regardless of type. Values of different types are not equal, with one exception made by
//! the server: comparing a list or an object of the validated object with another type is an error.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::budget::Budget;
use super::convert::{native, opened_misfit, typed};
use super::fault::{Fault, Result};
use super::types::{Kind, ListKind};
use super::value::{Items, Key, List, Map, Value};

type Fields = serde_json::Map<String, Json>;

/// `left == right`
pub(crate) fn equal<'a>(left: &Value<'a>, right: &Value<'a>, budget: &mut Budget) -> Result<bool> {
    budget.take(1)?;
    Ok(match (left, right) {
        (Value::Misfit(text), _) => return Err(Fault::error(&**text)),
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => **left == **right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        (Value::Timestamp(left), Value::Timestamp(right)) => left.total_nanos() == right.total_nanos(),
        (Value::Type(left), Value::Type(right)) => left == right,
        (Value::List(left), right) => return lists(left, right, budget),
        (Value::Map(left), right) => return maps(left, right, budget),
        (Value::Optional(left), Value::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => return equal(left, right, budget),
            (left, right) => left.is_none() && right.is_none(),
        },
        (Value::Unknown(left), right) => is_data(left, right),
        (Value::Quantity(left), Value::Quantity(right)) if !right.computed => left.compare(right) == Ordering::Equal,
        (Value::Url(left), Value::Url(right)) => left.to_string() == right.to_string(),
        (Value::Ip(left), Value::Ip(right)) => left == right,
        (Value::Cidr(left), Value::Cidr(right)) => left == right,
        (Value::Format(left), Value::Format(right)) => left == right,
        (Value::Semver(left), Value::Semver(right)) => left.precedence(right) == Ordering::Equal,
        (
            Value::Quantity(_) | Value::Url(_) | Value::Ip(_) | Value::Cidr(_) | Value::Format(_) | Value::Semver(_),
            _,
        ) => return Err(Fault::no_such_overload()),
        _ => numbers(left, right) == Some(Ordering::Equal),
    })
}

/// The order of two numbers of any type; `None` if either is not a number.
fn numbers(left: &Value, right: &Value) -> Option<Ordering> {
    let integer = |value: &Value| match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (left, right) {
        (Value::Double(left), Value::Double(right)) => left.partial_cmp(right),
        (Value::Double(left), right) => integer(right).and_then(|right| double_and_integer(*left, right)),
        (left, Value::Double(right)) => {
            integer(left).and_then(|left| double_and_integer(*right, left)).map(Ordering::reverse)
        }
        (left, right) => Some(integer(left)?.cmp(&integer(right)?)),
    }
}

/// The integer is first rounded to a double, as the server does.
fn double_and_integer(double: f64, integer: i128) -> Option<Ordering> {
    double.partial_cmp(&(integer as f64))
}

/// Whether values of this type are ordered.
pub(crate) fn is_ordered(value: &Value) -> bool {
    matches!(
        value,
        Value::Bool(_)
            | Value::Int(_)
            | Value::Uint(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Bytes(_)
            | Value::Duration(_)
            | Value::Timestamp(_)
    )
}

/// The order of `left` and `right`, for `<`, `<=`, `>` and `>=`.
pub(crate) fn compare(left: &Value, right: &Value) -> Result<Ordering> {
    let nan = |value: &Value| matches!(value, Value::Double(value) if value.is_nan());
    Ok(match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::String(left), Value::String(right)) => (**left).cmp(&**right),
        (Value::Bytes(left), Value::Bytes(right)) => left.cmp(right),
        (Value::Duration(left), Value::Duration(right)) => left.cmp(right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.total_nanos().cmp(&right.total_nanos()),
        _ => match numbers(left, right) {
            Some(ordering) => ordering,
            None if nan(left) || nan(right) => return Err(Fault::error("NaN values cannot be ordered")),
            None => return Err(Fault::no_such_overload()),
        },
    })
}

fn lists<'a>(left: &List<'a>, right: &Value<'a>, budget: &mut Budget) -> Result<bool> {
    let Value::List(right) = right else {
        return if left.kind.is_some() { Err(Fault::no_such_overload()) } else { Ok(false) };
    };
    if left.len() != right.len() {
        return Ok(false);
    }
    match (left.kind, &left.items) {
        (Some(ListKind::Set), _) => {
            left_data(left).try_for_each(|item| hashable(&item))?;
            for value in right.iter() {
                let value = match value {
                    // A value that does not match its schema is not in any set.
                    Err(Fault::Error(_)) => return Ok(false),
                    value => value?,
                };
                hashable(&value)?;
                budget.take(left.len() as u64)?;
                if !left_data(left).any(|item| is_same(&item, &value)) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Some(ListKind::Map(keys)), _) => keyed_lists(left, right, keys, budget),
        (Some(_), _) => {
            for index in 0..left.len() {
                if !elements(left.get(index), right.get(index), budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (None, items) => {
            let mut fault = None;
            for index in 0..left.len() {
                match elements(left.get(index), right.get(index), budget) {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(problem) if problem.is_final() => return Err(problem),
                    // In a list that a rule built, the server treats elements that cannot be compared as equal.
                    Err(problem) => fault = fault.or(matches!(items, Items::Joined(_)).then_some(problem)),
                }
            }
            fault.map_or(Ok(true), Err)
        }
    }
}

/// Equality of elements in lists and maps. An element that does not match its schema is a fault on the left; on the
/// right it is merely unequal to a scalar.
fn elements<'a>(left: Result<Value<'a>>, right: Result<Value<'a>>, budget: &mut Budget) -> Result<bool> {
    let left = left?;
    let is_of_object =
        matches!(&left, Value::Map(Map::Json { .. })) || matches!(&left, Value::List(list) if list.kind.is_some());
    match right {
        Ok(Value::Null) if is_of_object => Err(Fault::no_such_overload()),
        Ok(right) => equal(&left, &right, budget),
        Err(Fault::Error(_)) if !is_of_object => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Whether `value` equals the data, ignoring the schema of both.
fn is_data(json: &Json, value: &Value) -> bool {
    match (json, value) {
        (json, Value::Unknown(value)) => json_equal(json, value),
        (Json::String(json), Value::String(value)) => **json == **value,
        (Json::Bool(json), Value::Bool(value)) => json == value,
        (Json::Number(json), Value::Int(value)) => json.as_i64() == Some(*value),
        (Json::Number(json), Value::Double(value)) => !json.is_i64() && json.as_f64() == Some(*value),
        (Json::Array(json), Value::List(List { items: Items::Json(value, _) | Items::Plain(value), .. })) => {
            arrays_equal(json, value)
        }
        (Json::Object(json), Value::Map(Map::Json { fields: value, .. } | Map::Plain(value))) => {
            objects_equal(json, value)
        }
        _ => false,
    }
}

/// Whether two elements of sets are the same data.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Unknown(left), right) => is_data(left, right),
        (left, Value::Unknown(right)) => is_data(right, left),
        (Value::String(left), Value::String(right)) => **left == **right,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Double(left), Value::Double(right)) => left == right,
        (Value::Duration(left), Value::Duration(right)) => left == right,
        _ => false,
    }
}

/// The elements of a list in the validated object, as written.
fn left_data<'l, 'a>(list: &'l List<'a>) -> impl Iterator<Item = Value<'a>> + 'l {
    let item = |index: usize| match &list.items {
        Items::Json(items, _) => Value::Unknown(&items[index]),
        Items::Merged(items, _) => items[index].clone(),
        _ => Value::Null,
    };
    (0..list.len()).map(item)
}

/// The server keeps the elements of sets, and the keys of elements in lists of type `map`, in a Go map. Lists and maps
/// cannot be keys of a Go map, and abort the evaluation.
pub(crate) fn hashable(data: &Value) -> Result<()> {
    let of = match data {
        Value::List(_) | Value::Unknown(Json::Array(_)) => "[]interface {}",
        Value::Map(_) | Value::Unknown(Json::Object(_)) => "map[string]interface {}",
        _ => return Ok(()),
    };
    Err(Fault::Abort(format!("internal error: runtime error: hash of unhashable type {of}")))
}

/// The key values of an element, which identify it in a list of type `map`.
pub(crate) fn element_key<'a>(element: &Value<'a>, keys: &[String]) -> Result<Option<Vec<Option<&'a Json>>>> {
    let fields = match element {
        Value::Map(Map::Json { fields, .. } | Map::Plain(fields)) => fields,
        Value::Unknown(Json::Object(fields)) => fields,
        _ => return Ok(None),
    };
    let key: Vec<_> = keys.iter().map(|key| fields.get(key)).collect();
    // The server joins more than three keys as text.
    if keys.len() <= 3 {
        key.iter().flatten().try_for_each(|value| hashable(&Value::Unknown(value)))?;
    }
    Ok(Some(key))
}

fn keyed_lists<'a>(left: &List<'a>, right: &List<'a>, keys: &[String], budget: &mut Budget) -> Result<bool> {
    // An element can be found even if parts of it do not match the schema.
    let known = left_data(left).map(|item| element_key(&item, keys)).collect::<Result<Vec<_>>>()?;
    for element in right.iter() {
        let element = match element {
            Err(Fault::Error(_)) => return Ok(false),
            element => element?,
        };
        let key = element_key(&element, keys)?;
        budget.take(left.len() as u64)?;
        // The last of several elements with the same key wins.
        match known.iter().rposition(|known| key.is_some() && *known == key) {
            Some(index) if elements(left.get(index), Ok(element), budget)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn maps<'a>(left: &Map<'a>, right: &Value<'a>, budget: &mut Budget) -> Result<bool> {
    let Value::Map(right) = right else {
        return if matches!(left, Map::Json { .. }) { Err(Fault::no_such_overload()) } else { Ok(false) };
    };
    if left.len() != right.len() {
        return Ok(false);
    }
    match left {
        Map::Plain(_) | Map::Values(_) => {
            for key in left.keys() {
                let value = find(left, &key)?.unwrap_or(Value::Null);
                let Some(other) = find(right, &key).transpose() else { return Ok(false) };
                // In a map that a rule built, the server treats values that cannot be compared as equal.
                match elements(Ok(value), other, budget) {
                    Ok(false) => return Ok(false),
                    Err(fault) if fault.is_final() => return Err(fault),
                    _ => {}
                }
            }
        }
        Map::Json { fields, of } => {
            for (name, json) in *fields {
                budget.take(1)?;
                if of.property(name).is_none() {
                    // Undeclared fields are compared as plain data.
                    let Map::Json { fields: others, .. } = right else { return Err(Fault::no_such_overload()) };
                    if others.get(name).is_some_and(|other| !json_equal(json, other)) {
                        return Ok(false);
                    }
                    continue;
                }
                let key = Value::from(name.as_str());
                match (find(left, &key).transpose(), find(right, &key).transpose()) {
                    (Some(value), Some(other)) => {
                        if !elements(value, other, budget)? {
                            return Ok(false);
                        }
                    }
                    (None, None) => {}
                    _ => return Ok(false),
                }
            }
        }
    }
    Ok(true)
}

/// The value at `key`, if there is one. A null field of an object counts as missing.
pub(crate) fn find<'a>(map: &Map<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>> {
    match map {
        Map::Plain(fields) => Ok(match key {
            Value::String(name) => fields.get(&**name).map(native),
            _ => None,
        }),
        Map::Values(entries) => {
            let keys = std::iter::once(Key::of(key)).chain(Key::others(key));
            keys.flatten().find_map(|key| entries.get(&key)).map(|(_, value)| opened_misfit(value.clone())).transpose()
        }
        Map::Json { fields, of } => {
            let Value::String(name) = key else { return Err(Fault::no_such_overload()) };
            field(fields, of, name)
        }
    }
}

/// The field with the identifier `name`.
pub(crate) fn field<'a>(
    fields: &'a serde_json::Map<String, Json>,
    of: &'a super::types::Type,
    name: &str,
) -> Result<Option<Value<'a>>> {
    let found = match &of.kind {
        // Only names with two underscores can be escaped.
        Kind::Object(properties) if !properties.is_empty() && name.contains("__") => {
            super::types::unescape(name).and_then(|name| fields.get_key_value(&name))
        }
        _ => fields.get_key_value(name),
    };
    let Some((name, json)) = found else { return Ok(None) };
    if json.is_null() && matches!(of.kind, Kind::Object(_)) {
        return Ok(None);
    }
    of.property(name).map(|of| typed(json, of)).transpose()
}

/// Equality of untyped data: missing, null and empty values differ, and numbers are compared by type and value.
fn json_equal(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Number(left), Json::Number(right)) => {
            left.is_i64() == right.is_i64() && left.as_i64() == right.as_i64() && left.as_f64() == right.as_f64()
        }
        (Json::Array(left), Json::Array(right)) => arrays_equal(left, right),
        (Json::Object(left), Json::Object(right)) => objects_equal(left, right),
        (left, right) => left == right,
    }
}

fn arrays_equal(left: &[Json], right: &[Json]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| json_equal(left, right))
}

fn objects_equal(left: &Fields, right: &Fields) -> bool {
    left.len() == right.len()
        && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| json_equal(left, right)))
}
