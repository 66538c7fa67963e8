//! Fields of maps and elements of lists.

use super::equal::{field, find};
use super::fault::{CelResult, EvaluationError};
use super::value::{CelMap, CelValue};

/// The field `name` of `value`, if it exists.
pub(super) fn select<'a>(value: &CelValue<'a>, name: &str) -> CelResult<Option<CelValue<'a>>> {
    match value {
        CelValue::Map(CelMap::Json { fields, of }) => field(fields, of, name),
        CelValue::Map(map) => find(map, &CelValue::from(name)),
        // Only a value of unknown type can be a list here.
        CelValue::List(_) => Err(EvaluationError::error("unsupported index type 'string' in list")),
        _ => Ok(None),
    }
}

/// The element of `value` at `index`, if it exists.
pub(super) fn at<'a>(value: &CelValue<'a>, index: &CelValue<'a>) -> CelResult<Option<CelValue<'a>>> {
    match value {
        CelValue::Map(map) => find(map, index),
        CelValue::List(list) => {
            let position = match index {
                CelValue::Int(index) => i128::from(*index),
                CelValue::Uint(index) => i128::from(*index),
                CelValue::Double(index) if index.fract() == 0.0 => *index as i128,
                CelValue::Double(index) => {
                    return Err(EvaluationError::error(format!(
                        "unsupported index value {} in list",
                        super::lib_convert::go_double(*index)
                    )));
                }
                _ => {
                    return Err(EvaluationError::error(format!(
                        "unsupported index type '{}' in list",
                        index.type_name()
                    )));
                }
            };
            match usize::try_from(position) {
                Ok(position) if position < list.len() => {
                    if list.is_object_list() && !matches!(index, CelValue::Int(_)) {
                        let index = super::lib_convert::display(index);
                        return Err(EvaluationError::error(format!("unsupported index: {index}")));
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
pub(super) fn is_element(value: &CelValue, index: &CelValue) -> bool {
    let is_whole = match index {
        CelValue::Int(_) | CelValue::Uint(_) => true,
        CelValue::Double(index) => index.fract() == 0.0,
        _ => false,
    };
    is_whole && matches!(value, CelValue::List(_))
}

/// The error for a missing `index`.
pub(super) fn missing(value: &CelValue, index: &CelValue) -> EvaluationError {
    let index = super::lib_convert::display(index);
    match value {
        CelValue::List(_) => EvaluationError::error(format!("index out of bounds: {index}")),
        _ => EvaluationError::error(format!("no such key: {index}")),
    }
}
