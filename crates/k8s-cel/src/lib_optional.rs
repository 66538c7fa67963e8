//! Optional values. `or`, `orValue`, `optMap` and `optFlatMap` are evaluated elsewhere, because they do not evaluate
//! all their arguments.

use super::budget::CelBudget;
use super::convert::opened;
use super::fault::EvaluationError;
use super::library::{Function, OverloadResult};
use super::value::{CelList, CelMap, CelValue};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("optional.of", 1, wrap_value),
    Function::global("optional.ofNonZeroValue", 1, wrap_non_zero_value),
    Function::global("optional.none", 0, none),
    Function::member("value", 1, value),
    Function::member("hasValue", 1, has_value),
    Function::member("or", 2, lazy),
    Function::member("orValue", 2, lazy),
];

/// A placeholder for a function that the evaluation handles by name.
fn lazy<'a>(_: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    None
}

fn wrap_value<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [value] = args else { return None };
    Some(Ok(CelValue::some(value.clone())))
}

fn wrap_non_zero_value<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [value] = args else { return None };
    let is_zero = match value {
        CelValue::Null => true,
        CelValue::Bool(value) => !value,
        CelValue::Int(value) => *value == 0,
        CelValue::Uint(value) => *value == 0,
        CelValue::Double(value) => *value == 0.0,
        CelValue::String(value) => value.is_empty(),
        CelValue::Bytes(value) => value.is_empty(),
        CelValue::Duration(value) => *value == 0,
        CelValue::Timestamp(value) => value.is_zero(),
        // As in the server, lists and objects of the validated object never count as zero values.
        CelValue::List(CelList { kind: None, .. }) | CelValue::Map(CelMap::Values(_) | CelMap::Plain(_)) => match value
        {
            CelValue::List(list) => list.len() == 0,
            CelValue::Map(map) => map.len() == 0,
            _ => false,
        },
        _ => false,
    };
    Some(Ok(if is_zero { CelValue::Optional(None) } else { CelValue::some(value.clone()) }))
}

fn none<'a>(_: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    Some(Ok(CelValue::Optional(None)))
}

fn value<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::Optional(value)] = args else { return None };
    Some(
        value
            .as_ref()
            .map_or_else(|| Err(EvaluationError::error("optional.none() dereference")), |value| opened(value)),
    )
}

fn has_value<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::Optional(value)] = args else { return None };
    Some(Ok(CelValue::Bool(value.is_some())))
}
