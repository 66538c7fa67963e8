//! Conversions between types, and the text form of values.

use super::budget::CelBudget;
use super::fault::EvaluationError;
use super::library::{Function, OverloadResult};
use super::value::CelValue;
use crate::golang::time::{MAX_SECONDS, MIN_SECONDS};
use crate::golang::{Timestamp, duration};
use crate::gotext::float;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("int", 1, int),
    Function::global("uint", 1, uint),
    Function::global("double", 1, double),
    Function::global("bool", 1, bool_),
    Function::global("string", 1, string),
    Function::global("bytes", 1, bytes),
    Function::global("duration", 1, duration),
    Function::global("timestamp", 1, timestamp),
    Function::global("dyn", 1, |args, _| args.first().cloned().map(Ok)),
    Function::global("type", 1, |args, _| args.first().map(|value| Ok(CelValue::Type(value.type_name())))),
];

const INT: &str = "integer overflow";
const UINT: &str = "unsigned integer overflow";

/// The error for a string that cannot be converted.
fn unconvertible(to: &str) -> EvaluationError {
    EvaluationError::error(format!("type conversion error from 'string' to '{to}'"))
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn int<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    Some(match args {
        [CelValue::Int(value)] => Ok(CelValue::Int(*value)),
        [CelValue::Uint(value)] => i64::try_from(*value).map(CelValue::Int).map_err(|_| EvaluationError::error(INT)),
        // The bounds themselves count as overflow.
        [CelValue::Double(value)] if value.abs() < 2f64.powi(63) => Ok(CelValue::Int(*value as i64)),
        [CelValue::Double(_)] => Err(EvaluationError::error(INT)),
        [CelValue::String(text)] if is_number(text) => {
            text.parse().map(CelValue::Int).map_err(|_| unconvertible("int"))
        }
        [CelValue::String(_)] => Err(unconvertible("int")),
        [CelValue::Timestamp(time)] => Ok(CelValue::Int(time.seconds)),
        [CelValue::Duration(nanos)] => Ok(CelValue::Int(*nanos)),
        _ => return None,
    })
}

fn uint<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    Some(match args {
        [CelValue::Uint(value)] => Ok(CelValue::Uint(*value)),
        [CelValue::Int(value)] => u64::try_from(*value).map(CelValue::Uint).map_err(|_| EvaluationError::error(UINT)),
        [CelValue::Double(value)] if (0.0..2f64.powi(64)).contains(value) => Ok(CelValue::Uint(*value as u64)),
        [CelValue::Double(_)] => Err(EvaluationError::error(UINT)),
        [CelValue::String(text)] if text.starts_with(|c: char| c.is_ascii_digit()) => {
            text.parse().map(CelValue::Uint).map_err(|_| unconvertible("uint"))
        }
        [CelValue::String(_)] => Err(unconvertible("uint")),
        _ => return None,
    })
}

fn double<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    Some(match args {
        [CelValue::Double(value)] => Ok(CelValue::Double(*value)),
        [CelValue::Int(value)] => Ok(CelValue::Double(*value as f64)),
        [CelValue::Uint(value)] => Ok(CelValue::Double(*value as f64)),
        [CelValue::String(text)] => {
            if text.contains(['x', 'X']) && text.contains(['p', 'P']) {
                return Some(Err(EvaluationError::Undecided("hexadecimal doubles are not supported".to_owned())));
            }
            let Some(text) = without_underscores(text) else { return Some(Err(unconvertible("double"))) };
            match text.parse::<f64>() {
                // A number that is too large does not become infinity, which must be spelled out.
                Ok(value) if value.is_finite() || !text.contains(|c: char| c.is_ascii_digit()) => {
                    Ok(CelValue::Double(value))
                }
                _ => Err(unconvertible("double")),
            }
        }
        _ => return None,
    })
}

/// Removes underscores, which are allowed between digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let misplaced = |at: usize| bytes[at] == b'_' && !(is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)));
    (!(0..bytes.len()).any(misplaced)).then(|| text.replace('_', ""))
}

fn bool_<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    Some(match args {
        [CelValue::Bool(value)] => Ok(CelValue::Bool(*value)),
        [CelValue::String(text)] => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(CelValue::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(CelValue::Bool(false)),
            _ => Err(unconvertible("bool")),
        },
        _ => return None,
    })
}

fn string<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [value] = args else { return None };
    match value {
        CelValue::String(_) => Some(Ok(value.clone())),
        CelValue::Bytes(bytes) => Some(budget.take(bytes.len() as u64 / 10).and_then(|()| {
            std::str::from_utf8(bytes)
                .map(CelValue::from)
                .map_err(|_| EvaluationError::error("invalid UTF-8 in bytes, cannot convert to string"))
        })),
        other => text(other).map(|text| Ok(CelValue::from(text))),
    }
}

/// A scalar as `string()` formats it.
pub(crate) fn text(value: &CelValue) -> Option<String> {
    Some(match value {
        CelValue::Bool(value) => value.to_string(),
        CelValue::Int(value) => value.to_string(),
        CelValue::Uint(value) => value.to_string(),
        CelValue::Double(value) => go_double(*value),
        CelValue::String(value) => value.to_string(),
        CelValue::Duration(nanos) => duration::in_seconds(*nanos),
        CelValue::Timestamp(time) => time.to_string(),
        CelValue::Ip(ip) => ip.to_string(),
        CelValue::Cidr(cidr) => cidr.to_string(),
        _ => return None,
    })
}

/// A value as the server's error messages print it.
pub(crate) fn display(value: &CelValue) -> String {
    match value {
        CelValue::Null => "null".to_owned(),
        CelValue::Type(name) => (*name).to_owned(),
        CelValue::Bytes(bytes) => format!("{bytes:?}").replace(',', ""),
        other => text(other).unwrap_or_else(|| other.type_name().to_owned()),
    }
}

/// A double in its shortest form, with an exponent if it is large or small.
pub(crate) fn go_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    float(value)
}

fn bytes<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    match args {
        [CelValue::Bytes(_)] => args.first().cloned().map(Ok),
        [CelValue::String(text)] => {
            Some(budget.take(text.len() as u64 / 10).map(|()| CelValue::Bytes(text.as_bytes().into())))
        }
        _ => None,
    }
}

fn duration<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    Some(match args {
        [CelValue::Duration(nanos)] => Ok(CelValue::Duration(*nanos)),
        // The server has the overload up to 1.36, but its conversion always fails.
        [CelValue::Int(_)] => {
            Err(EvaluationError::error("type conversion error from 'int' to 'google.protobuf.Duration'"))
        }
        [CelValue::String(text)] => {
            duration::parse(text).map(CelValue::Duration).ok_or_else(|| unconvertible("google.protobuf.Duration"))
        }
        _ => return None,
    })
}

fn timestamp<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let in_range = |time: Timestamp| match (MIN_SECONDS..=MAX_SECONDS).contains(&time.seconds) {
        true => Ok(CelValue::Timestamp(time)),
        false => Err(EvaluationError::error("timestamp overflow")),
    };
    Some(match args {
        [CelValue::Timestamp(time)] => Ok(CelValue::Timestamp(*time)),
        [CelValue::Int(seconds)] => in_range(Timestamp { seconds: *seconds, nanos: 0, offset: 0 }),
        [CelValue::String(text)] => {
            Timestamp::from_rfc3339(text).ok_or_else(|| unconvertible("google.protobuf.Timestamp")).and_then(in_range)
        }
        _ => return None,
    })
}
