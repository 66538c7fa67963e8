//! Conversions between types, and the text form of values.

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::library::Function;
use super::value::Value;
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
    Function::global("dyn", 1, dyn_),
    Function::global("type", 1, type_),
];

type Answer<'a> = Option<Result<Value<'a>>>;

const INT: &str = "integer overflow";
const UINT: &str = "unsigned integer overflow";

/// The error for a string that cannot be converted.
fn unconvertible(to: &str) -> Fault {
    Fault::error(format!("type conversion error from 'string' to '{to}'"))
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn int<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(match args {
        [Value::Int(value)] => Ok(Value::Int(*value)),
        [Value::Uint(value)] => i64::try_from(*value).map(Value::Int).map_err(|_| Fault::error(INT)),
        // The bounds themselves count as overflow.
        [Value::Double(value)] if value.abs() < 2f64.powi(63) => Ok(Value::Int(*value as i64)),
        [Value::Double(_)] => Err(Fault::error(INT)),
        [Value::String(text)] if is_number(text) => text.parse().map(Value::Int).map_err(|_| unconvertible("int")),
        [Value::String(_)] => Err(unconvertible("int")),
        [Value::Timestamp(time)] => Ok(Value::Int(time.seconds)),
        [Value::Duration(nanos)] => Ok(Value::Int(*nanos)),
        _ => return None,
    })
}

fn uint<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(match args {
        [Value::Uint(value)] => Ok(Value::Uint(*value)),
        [Value::Int(value)] => u64::try_from(*value).map(Value::Uint).map_err(|_| Fault::error(UINT)),
        [Value::Double(value)] if (0.0..2f64.powi(64)).contains(value) => Ok(Value::Uint(*value as u64)),
        [Value::Double(_)] => Err(Fault::error(UINT)),
        [Value::String(text)] if text.starts_with(|c: char| c.is_ascii_digit()) => {
            text.parse().map(Value::Uint).map_err(|_| unconvertible("uint"))
        }
        [Value::String(_)] => Err(unconvertible("uint")),
        _ => return None,
    })
}

fn double<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(match args {
        [Value::Double(value)] => Ok(Value::Double(*value)),
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::String(text)] => {
            if text.contains(['x', 'X']) && text.contains(['p', 'P']) {
                return Some(Err(Fault::Undecided("hexadecimal doubles are not supported".to_owned())));
            }
            let Some(text) = without_underscores(text) else { return Some(Err(unconvertible("double"))) };
            match text.parse::<f64>() {
                // A number that is too large does not become infinity, which must be spelled out.
                Ok(value) if value.is_finite() || !text.contains(|c: char| c.is_ascii_digit()) => {
                    Ok(Value::Double(value))
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

fn bool_<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(match args {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => Err(unconvertible("bool")),
        },
        _ => return None,
    })
}

fn string<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [value] = args else { return None };
    match value {
        Value::String(_) => Some(Ok(value.clone())),
        Value::Bytes(bytes) => Some(budget.take(bytes.len() as u64 / 10).and_then(|()| {
            std::str::from_utf8(bytes)
                .map(Value::from)
                .map_err(|_| Fault::error("invalid UTF-8 in bytes, cannot convert to string"))
        })),
        other => text(other).map(|text| Ok(Value::from(text))),
    }
}

/// A scalar as `string()` formats it.
pub(crate) fn text(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go_double(*value),
        Value::String(value) => value.to_string(),
        Value::Duration(nanos) => duration::in_seconds(*nanos),
        Value::Timestamp(time) => time.to_string(),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(cidr) => cidr.to_string(),
        _ => return None,
    })
}

/// A value as the server's error messages print it.
pub(crate) fn display(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Type(name) => (*name).to_owned(),
        Value::Bytes(bytes) => format!("{bytes:?}").replace(',', ""),
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

fn bytes<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    match args {
        [Value::Bytes(_)] => args.first().cloned().map(Ok),
        [Value::String(text)] => {
            Some(budget.take(text.len() as u64 / 10).map(|()| Value::Bytes(text.as_bytes().into())))
        }
        _ => None,
    }
}

fn duration<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(match args {
        [Value::Duration(nanos)] => Ok(Value::Duration(*nanos)),
        // Declared in the server, but not implemented.
        [Value::Int(_)] => Err(Fault::error("type conversion error from 'int' to 'google.protobuf.Duration'")),
        [Value::String(text)] => {
            duration::parse(text).map(Value::Duration).ok_or_else(|| unconvertible("google.protobuf.Duration"))
        }
        _ => return None,
    })
}

fn timestamp<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let in_range = |time: Timestamp| match (MIN_SECONDS..=MAX_SECONDS).contains(&time.seconds) {
        true => Ok(Value::Timestamp(time)),
        false => Err(Fault::error("timestamp overflow")),
    };
    Some(match args {
        [Value::Timestamp(time)] => Ok(Value::Timestamp(*time)),
        [Value::Int(seconds)] => in_range(Timestamp { seconds: *seconds, nanos: 0, offset: 0 }),
        [Value::String(text)] => {
            Timestamp::from_rfc3339(text).ok_or_else(|| unconvertible("google.protobuf.Timestamp")).and_then(in_range)
        }
        _ => return None,
    })
}

fn dyn_<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    args.first().cloned().map(Ok)
}

fn type_<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    args.first().map(|value| Ok(Value::Type(value.type_name())))
}
