//! Optional values. `or`, `orValue`, `optMap` and `optFlatMap` are evaluated elsewhere, because they do not evaluate
//! all their arguments.

use super::budget::Budget;
use super::convert::opened;
use super::fault::{Fault, Result};
use super::library::Function;
use super::value::{List, Map, Value};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("optional.of", 1, of),
    Function::global("optional.ofNonZeroValue", 1, of_non_zero),
    Function::global("optional.none", 0, none),
    Function::member("value", 1, value),
    Function::member("hasValue", 1, has_value),
    Function::member("or", 2, lazy),
    Function::member("orValue", 2, lazy),
];

type Answer<'a> = Option<Result<Value<'a>>>;

/// A placeholder for a function that the evaluation handles by name.
fn lazy<'a>(_: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    None
}

fn of<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [value] = args else { return None };
    Some(Ok(Value::some(value.clone())))
}

fn of_non_zero<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [value] = args else { return None };
    let is_zero = match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(value) => value.is_empty(),
        Value::Bytes(value) => value.is_empty(),
        Value::Duration(value) => *value == 0,
        Value::Timestamp(value) => value.is_zero(),
        // As in the server, lists and objects of the validated object never count as zero values.
        Value::List(List { kind: None, .. }) | Value::Map(Map::Values(_) | Map::Plain(_)) => match value {
            Value::List(list) => list.len() == 0,
            Value::Map(map) => map.len() == 0,
            _ => false,
        },
        _ => false,
    };
    Some(Ok(if is_zero { Value::Optional(None) } else { Value::some(value.clone()) }))
}

fn none<'a>(_: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(Ok(Value::Optional(None)))
}

fn value<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Optional(value)] = args else { return None };
    Some(value.as_ref().map_or_else(|| Err(Fault::error("optional.none() dereference")), |value| opened(value)))
}

fn has_value<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Optional(value)] = args else { return None };
    Some(Ok(Value::Bool(value.is_some())))
}
