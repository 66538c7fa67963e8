//! Equality and order of values.
//!
//! Numbers are equal by value regardless of type. Values of different types are not equal, with one exception made by
//! the server: comparing a list or an object of the validated object with another type is an error.

use std::cmp::Ordering;

use serde_json::Value as Json;

use super::budget::CelBudget;
use super::convert::{native, opened_misfit, typed};
use super::fault::{CelResult, EvaluationError};
use super::object_list;
use super::release::KubernetesRelease;
use super::types::{CelTypeKind, ListKind};
use super::value::{CelList, CelListItems, CelMap, CelValue, MapKey};

type JsonFields = serde_json::Map<String, Json>;

/// `left == right`
pub(crate) fn equal<'a>(left: &CelValue<'a>, right: &CelValue<'a>, budget: &mut CelBudget) -> CelResult<bool> {
    budget.take(1)?;
    Ok(match (left, right) {
        (CelValue::Misfit(text), _) => return Err(EvaluationError::error(&**text)),
        (CelValue::Null, CelValue::Null) => true,
        (CelValue::Null, _) | (_, CelValue::Null) => false,
        (CelValue::Bool(left), CelValue::Bool(right)) => left == right,
        (CelValue::String(left), CelValue::String(right)) => **left == **right,
        (CelValue::Bytes(left), CelValue::Bytes(right)) => left == right,
        (CelValue::Duration(left), CelValue::Duration(right)) => left == right,
        (CelValue::Timestamp(left), CelValue::Timestamp(right)) => left.total_nanos() == right.total_nanos(),
        (CelValue::Type(left), CelValue::Type(right)) => left == right,
        (CelValue::List(left), right) => return lists(left, right, budget),
        (CelValue::Map(left), right) => return maps(left, right, budget),
        (CelValue::Optional(left), CelValue::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => return equal(left, right, budget),
            (left, right) => left.is_none() && right.is_none(),
        },
        (CelValue::Unknown(left), right) => is_data(left, right),
        (CelValue::Quantity(left), CelValue::Quantity(right)) if !right.computed => {
            left.compare(right) == Ordering::Equal
        }
        (CelValue::Url(left), CelValue::Url(right)) => left.to_string() == right.to_string(),
        (CelValue::Ip(left), CelValue::Ip(right)) => left == right,
        (CelValue::Cidr(left), CelValue::Cidr(right)) => left == right,
        (CelValue::Format(left), CelValue::Format(right)) => left == right,
        (CelValue::Semver(left), CelValue::Semver(right)) => left.precedence(right) == Ordering::Equal,
        (
            CelValue::Quantity(_)
            | CelValue::Url(_)
            | CelValue::Ip(_)
            | CelValue::Cidr(_)
            | CelValue::Format(_)
            | CelValue::Semver(_),
            _,
        ) => return Err(EvaluationError::no_such_overload()),
        _ => numbers(left, right) == Some(Ordering::Equal),
    })
}

/// The order of two numbers of any type; `None` if either is not a number.
fn numbers(left: &CelValue, right: &CelValue) -> Option<Ordering> {
    let integer = |value: &CelValue| match value {
        CelValue::Int(value) => Some(i128::from(*value)),
        CelValue::Uint(value) => Some(i128::from(*value)),
        _ => None,
    };
    match (left, right) {
        (CelValue::Double(left), CelValue::Double(right)) => left.partial_cmp(right),
        (CelValue::Double(left), right) => integer(right).and_then(|right| double_and_integer(*left, right)),
        (left, CelValue::Double(right)) => {
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
pub(crate) fn is_ordered(value: &CelValue) -> bool {
    matches!(
        value,
        CelValue::Bool(_)
            | CelValue::Int(_)
            | CelValue::Uint(_)
            | CelValue::Double(_)
            | CelValue::String(_)
            | CelValue::Bytes(_)
            | CelValue::Duration(_)
            | CelValue::Timestamp(_)
    )
}

/// The order of `left` and `right`, for `<`, `<=`, `>` and `>=`.
pub(crate) fn compare(left: &CelValue, right: &CelValue) -> CelResult<Ordering> {
    let nan = |value: &CelValue| matches!(value, CelValue::Double(value) if value.is_nan());
    Ok(match (left, right) {
        (CelValue::Bool(left), CelValue::Bool(right)) => left.cmp(right),
        (CelValue::String(left), CelValue::String(right)) => (**left).cmp(&**right),
        (CelValue::Bytes(left), CelValue::Bytes(right)) => left.cmp(right),
        (CelValue::Duration(left), CelValue::Duration(right)) => left.cmp(right),
        (CelValue::Timestamp(left), CelValue::Timestamp(right)) => left.total_nanos().cmp(&right.total_nanos()),
        _ => match numbers(left, right) {
            Some(ordering) => ordering,
            None if nan(left) || nan(right) => return Err(EvaluationError::error("NaN values cannot be ordered")),
            None => return Err(EvaluationError::no_such_overload()),
        },
    })
}

fn lists<'a>(left: &CelList<'a>, right: &CelValue<'a>, budget: &mut CelBudget) -> CelResult<bool> {
    let CelValue::List(right) = right else {
        return if left.kind.is_some() { Err(EvaluationError::no_such_overload()) } else { Ok(false) };
    };
    if left.len() != right.len() {
        return Ok(false);
    }
    match (left.kind, &left.items) {
        (Some(ListKind::Set), _) => object_list::sets_are_equal(left, right, budget),
        (Some(ListKind::Map(keys)), _) => object_list::keyed_lists_are_equal(left, right, keys, budget),
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
                match built_elements(left.get(index), right.get(index), budget) {
                    Ok(true) => {}
                    Ok(false) => return Ok(false),
                    Err(problem) if problem.is_final() => return Err(problem),
                    // In a list that a rule built, the server treats elements that cannot be compared as equal.
                    Err(problem) => fault = fault.or(matches!(items, CelListItems::Joined(_)).then_some(problem)),
                }
            }
            fault.map_or(Ok(true), Err)
        }
    }
}

/// Equality of elements in lists and maps. An element that does not match its schema is a fault on the left; on the
/// right it is merely unequal to a scalar.
pub(crate) fn elements<'a>(
    left: CelResult<CelValue<'a>>,
    right: CelResult<CelValue<'a>>,
    budget: &mut CelBudget,
) -> CelResult<bool> {
    let left = left?;
    let is_of_object = matches!(&left, CelValue::Map(CelMap::Json { .. }))
        || matches!(&left, CelValue::List(list) if list.kind.is_some());
    match right {
        Ok(CelValue::Null) if is_of_object => Err(EvaluationError::no_such_overload()),
        Ok(right) => equal(&left, &right, budget),
        Err(EvaluationError::Error(_)) if !is_of_object => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Equality of elements in lists and maps that a rule built: null equals only null, also beside an element that does not
/// match its schema.
fn built_elements<'a>(
    left: CelResult<CelValue<'a>>,
    right: CelResult<CelValue<'a>>,
    budget: &mut CelBudget,
) -> CelResult<bool> {
    let is_final = |side: &CelResult<CelValue>| side.as_ref().is_err_and(EvaluationError::is_final);
    let is_null = |side: &CelResult<CelValue>| matches!(side, Ok(CelValue::Null));
    if !is_final(&left) && !is_final(&right) && (is_null(&left) || is_null(&right)) {
        return Ok(is_null(&left) == is_null(&right));
    }
    elements(left, right, budget)
}

/// Whether `value` equals the data, ignoring the schema of both.
pub(crate) fn is_data(json: &Json, value: &CelValue) -> bool {
    match (json, value) {
        (json, CelValue::Unknown(value)) => json_equal(json, value),
        (Json::String(json), CelValue::String(value)) => **json == **value,
        (Json::Bool(json), CelValue::Bool(value)) => json == value,
        (Json::Number(json), CelValue::Int(value)) => json.as_i64() == Some(*value),
        (Json::Number(json), CelValue::Double(value)) => !json.is_i64() && json.as_f64() == Some(*value),
        (
            Json::Array(json),
            CelValue::List(CelList { items: CelListItems::Json(value, _) | CelListItems::Plain(value), .. }),
        ) => arrays_equal(json, value),
        (Json::Object(json), CelValue::Map(CelMap::Json { fields: value, .. } | CelMap::Plain(value))) => {
            objects_equal(json, value)
        }
        _ => false,
    }
}

/// The first release in which two objects with a null field can be equal. Before, not even the same object is.
const NULL_FIELDS_ARE_EQUAL: KubernetesRelease = KubernetesRelease::minor(34);

fn maps<'a>(left: &CelMap<'a>, right: &CelValue<'a>, budget: &mut CelBudget) -> CelResult<bool> {
    let CelValue::Map(right) = right else {
        return if matches!(left, CelMap::Json { .. }) { Err(EvaluationError::no_such_overload()) } else { Ok(false) };
    };
    if left.len() != right.len() {
        return Ok(false);
    }
    match left {
        CelMap::Plain(_) | CelMap::Values(_) => {
            for key in left.keys() {
                let value = find(left, &key)?.unwrap_or(CelValue::Null);
                let Some(other) = find(right, &key).transpose() else { return Ok(false) };
                // In a map that a rule built, the server treats values that cannot be compared as equal.
                match built_elements(Ok(value), other, budget) {
                    Ok(false) => return Ok(false),
                    Err(fault) if fault.is_final() => return Err(fault),
                    _ => {}
                }
            }
        }
        CelMap::Json { fields, of } => {
            for (name, json) in *fields {
                budget.take(1)?;
                if of.property(name).is_none() {
                    // Undeclared fields are compared as plain data.
                    let CelMap::Json { fields: others, .. } = right else {
                        return Err(EvaluationError::no_such_overload());
                    };
                    if others.get(name).is_some_and(|other| !json_equal(json, other)) {
                        return Ok(false);
                    }
                    continue;
                }
                let key = CelValue::from(name.as_str());
                match (find(left, &key).transpose(), find(right, &key).transpose()) {
                    (Some(value), Some(other)) => {
                        if !elements(value, other, budget)? {
                            return Ok(false);
                        }
                    }
                    (None, None) if budget.release() >= NULL_FIELDS_ARE_EQUAL => {}
                    _ => return Ok(false),
                }
            }
        }
    }
    Ok(true)
}

/// The value at `key`, if there is one. A null field of an object counts as missing.
pub(crate) fn find<'a>(map: &CelMap<'a>, key: &CelValue<'a>) -> CelResult<Option<CelValue<'a>>> {
    match map {
        CelMap::Plain(fields) => Ok(match key {
            CelValue::String(name) => fields.get(&**name).map(native),
            _ => None,
        }),
        CelMap::Values(entries) => {
            let keys = std::iter::once(MapKey::from_value(key)).chain(MapKey::equal_keys(key));
            keys.flatten().find_map(|key| entries.get(&key)).map(|(_, value)| opened_misfit(value.clone())).transpose()
        }
        CelMap::Json { fields, of } => {
            let CelValue::String(name) = key else { return Err(EvaluationError::no_such_overload()) };
            field(fields, of, name)
        }
    }
}

/// The field with the identifier `name`.
pub(crate) fn field<'a>(
    fields: &'a serde_json::Map<String, Json>,
    of: &'a super::types::CelType,
    name: &str,
) -> CelResult<Option<CelValue<'a>>> {
    let found = match &of.kind {
        // Only names with two underscores can be escaped.
        CelTypeKind::Object(properties) if !properties.is_empty() && name.contains("__") => {
            super::types::unescape(name).and_then(|name| fields.get_key_value(&name))
        }
        _ => fields.get_key_value(name),
    };
    let Some((name, json)) = found else { return Ok(None) };
    if json.is_null() && matches!(of.kind, CelTypeKind::Object(_)) {
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

fn objects_equal(left: &JsonFields, right: &JsonFields) -> bool {
    left.len() == right.len()
        && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| json_equal(left, right)))
}
