//! Fields of maps and elements of lists.

use super::equal::{field, find};
use super::fault::{Fault, Result};
use super::value::{Map, Value};

/// The field `name` of `value`, if it exists.
pub(super) fn select<'a>(value: &Value<'a>, name: &str) -> Result<Option<Value<'a>>> {
    match value {
        Value::Map(Map::Json { fields, of }) => field(fields, of, name),
        Value::Map(map) => find(map, &Value::from(name)),
        // Only a value of unknown type can be a list here.
        Value::List(_) => Err(Fault::error("unsupported index type 'string' in list")),
        _ => Ok(None),
    }
}

/// The element of `value` at `index`, if it exists.
pub(super) fn at<'a>(value: &Value<'a>, index: &Value<'a>) -> Result<Option<Value<'a>>> {
    match value {
        Value::Map(map) => find(map, index),
        Value::List(list) => {
            let position = match index {
                Value::Int(index) => i128::from(*index),
                Value::Uint(index) => i128::from(*index),
                Value::Double(index) if index.fract() == 0.0 => *index as i128,
                Value::Double(index) => {
                    return Err(Fault::error(format!(
                        "unsupported index value {} in list",
                        super::lib_convert::go_double(*index)
                    )));
                }
                _ => return Err(Fault::error(format!("unsupported index type '{}' in list", index.type_name()))),
            };
            match usize::try_from(position) {
                Ok(position) if position < list.len() => {
                    if list.kind.is_some() && !matches!(index, Value::Int(_)) {
                        let index = super::lib_convert::display(index);
                        return Err(Fault::error(format!("unsupported index: {index}")));
                    }
                    list.get(position).map(Some)
                }
                _ => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// Whether `value` is a list and `index` is of a type that can index it, regardless of the element.
pub(super) fn is_element(value: &Value, index: &Value) -> bool {
    let is_whole = match index {
        Value::Int(_) | Value::Uint(_) => true,
        Value::Double(index) => index.fract() == 0.0,
        _ => false,
    };
    is_whole && matches!(value, Value::List(_))
}

/// The error for a missing `index`.
pub(super) fn missing(value: &Value, index: &Value) -> Fault {
    let index = super::lib_convert::display(index);
    match value {
        Value::List(_) => Fault::error(format!("index out of bounds: {index}")),
        _ => Fault::error(format!("no such key: {index}")),
    }
}
