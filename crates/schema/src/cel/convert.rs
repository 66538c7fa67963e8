//! Converts parts of an object to the types that their schema declares.

use std::fmt::Display;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value as Json;

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::types::{Kind, Type};
use super::value::{Items, List, Map, Text, Value};
use crate::golang::{Timestamp, duration};

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// `json` as a value of type `of`.
pub(crate) fn typed<'a>(json: &'a Json, of: &'a Type) -> Result<Value<'a>> {
    match of.kind {
        _ if json.is_null() && of.nullable => Ok(Value::Null),
        _ if json.is_null() => Err(Fault::error("invalid data, got null for schema with nullable=false")),
        Kind::Unknown => Ok(Value::Unknown(json)),
        _ => read(native(json), of),
    }
}

/// Data in a list (see [`data`]) as a value of type `of`.
pub(crate) fn read<'a>(data: Value<'a>, of: &'a Type) -> Result<Value<'a>> {
    let unexpected = |wanted: &str, data: &Value| {
        Err(Fault::error(format!("invalid data, expected {wanted}, got {}", go_type(data))))
    };
    match (&of.kind, data) {
        (_, Value::Unknown(json)) => typed(json, of),
        (Kind::Unknown | Kind::Untyped, _) => Err(Fault::Undecided("the schema does not specify a type".to_owned())),
        (Kind::IntOrString, data @ (Value::String(_) | Value::Int(_))) => Ok(data),
        (Kind::IntOrString, _) => {
            Err(Fault::error("invalid data, expected XIntOrString value to be either a string or integer"))
        }
        (Kind::Bool, data @ Value::Bool(_))
        | (Kind::Int, data @ Value::Int(_))
        | (Kind::Double, data @ Value::Double(_)) => Ok(data),
        (Kind::Double, Value::Int(number)) => Ok(Value::Double(number as f64)),
        (Kind::Bool, data) => unexpected("bool", &data),
        (Kind::Int, data) => unexpected("int", &data),
        (Kind::Double, data) => unexpected("float", &data),
        (kind @ (Kind::String | Kind::Bytes | Kind::Duration | Kind::Date | Kind::DateTime), data) => match data {
            Value::String(text) => string(text, kind),
            data => unexpected("string", &data),
        },
        (Kind::List { items: of, kind }, Value::List(List { items: Items::Plain(items), .. })) => {
            Ok(Value::List(List { items: Items::Json(items, of), kind: Some(kind) }))
        }
        (Kind::List { .. }, _) => {
            Err(Fault::error("invalid data, expected an array for the provided schema with type=array"))
        }
        (Kind::Object(_) | Kind::Map(_), Value::Map(Map::Plain(fields))) => Ok(Value::Map(Map::Json { fields, of })),
        (Kind::Object(_) | Kind::Map(_), _) => {
            Err(Fault::error("invalid data, expected a map for the provided schema with type=object"))
        }
    }
}

fn string<'a>(text: Text<'a>, kind: &Kind) -> Result<Value<'a>> {
    let text = match kind {
        Kind::String => return Ok(Value::String(text)),
        _ => &*text,
    };
    match kind {
        // The server decodes the URL-safe alphabet here, although it validates the format with the standard one.
        Kind::Bytes => BASE64
            .decode(text.replace(['\r', '\n'], ""))
            .map(|bytes| Value::Bytes(bytes.into()))
            .map_err(|_| Fault::error(format!("Invalid byte formatted string {text}: illegal base64 data"))),
        Kind::Duration => duration::parse_worded(text)
            .map(Value::Duration)
            .ok_or_else(|| Fault::error(format!("Invalid duration {text}: unable to parse {text} as duration"))),
        Kind::Date => Timestamp::from_date(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Fault::error(format!("Invalid date formatted string {text}: cannot parse it"))),
        _ => Timestamp::from_date_time(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Fault::error(format!("Invalid date-time formatted string {text}: cannot parse it"))),
    }
}

/// A value without its schema, with the field names as written: the form in which the server puts it into a list, and
/// in which it looks it up in a set or in a list of type `map`.
pub(crate) fn data<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Map(Map::Json { fields, .. }) => Value::Map(Map::Plain(fields)),
        Value::List(List { items: Items::Json(items, _), .. }) => native_list(items),
        other => other.clone(),
    }
}

/// The value inside an optional after the optional passes through a variable, a selection or a conditional: the server
/// extracts the Go value and wraps it again. Data loses its schema, a nested optional is flattened, and types become
/// their names. Many other values cannot be wrapped again: the optional still has a value, but reading it fails.
pub(crate) fn unwrapped<'a>(value: &Value<'a>, budget: &mut Budget) -> Result<Value<'a>> {
    let lost = |of: &str, text: &dyn Display| Value::Misfit(format!("{UNCONVERTIBLE}: ({of}){text}").into());
    Ok(match value {
        Value::Optional(None) => Value::Null,
        Value::Optional(Some(value)) => return unwrapped(value, budget),
        Value::Type(name) => Value::from(*name),
        Value::Quantity(_) => lost("*resource.Quantity", &""),
        Value::Url(url) => lost("*url.URL", url),
        Value::Ip(ip) => lost("netip.Addr", ip),
        Value::Cidr(cidr) => lost("netip.Prefix", cidr),
        Value::Semver(_) => lost("semver.Version", &""),
        Value::Misfit(text) => lost("*errors.errorString", text),
        Value::Unknown(json) => native(json),
        Value::Map(map @ Map::Json { .. }) => {
            budget.take(map.len() as u64)?;
            data(value)
        }
        Value::List(List { items: Items::Merged(items, _), .. }) => {
            budget.take(items.len() as u64)?;
            let element = |item: &Value<'a>| match item {
                Value::Unknown(json) => Ok(native(json)),
                item => opened(item),
            };
            Value::List(List::taken(items.iter().map(element).collect()))
        }
        // A concatenated list in the server keeps references to its parts.
        Value::List(List { items: Items::Joined(items), .. }) => {
            budget.take(items.len() as u64)?;
            let mut out = Vec::with_capacity(items.len());
            for (item, _) in items.iter() {
                out.push(match item {
                    Ok(item) => opened(&unwrapped(item, budget)?),
                    Err(Fault::Error(text)) => opened(&lost("*errors.errorString", text)),
                    Err(fault) => Err(fault.clone()),
                });
            }
            Value::List(List::taken(out))
        }
        Value::List(list) => {
            budget.take(list.len() as u64)?;
            data(value)
        }
        other => other.clone(),
    })
}

const UNCONVERTIBLE: &str = "unsupported conversion to ref.Val";

/// Keeps a schema mismatch as a value, which an optional can contain.
pub(crate) fn misfit(value: Result<Value<'_>>) -> Result<Value<'_>> {
    match value {
        Err(Fault::Error(text)) => Ok(Value::Misfit(text.into())),
        value => value,
    }
}

/// A value of the wrong type is an error in any expression that does more than pass it on.
pub(crate) fn opened_misfit(value: Value<'_>) -> Result<Value<'_>> {
    match value {
        Value::Misfit(text) => Err(Fault::error(&*text)),
        value => Ok(value),
    }
}

/// Reads the value of an optional. An optional can contain a value that does not match its schema, but reading it
/// fails.
pub(crate) fn opened<'a>(value: &Value<'a>) -> Result<Value<'a>> {
    match value {
        Value::Unknown(_) => Err(Fault::error(UNCONVERTIBLE)),
        Value::Misfit(text) => Err(Fault::error(&**text)),
        other => Ok(other.clone()),
    }
}

/// Plain data without a schema.
pub(crate) fn native<'a>(json: &'a Json) -> Value<'a> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Text::Borrowed(text)),
        Json::Array(items) => native_list(items),
        Json::Object(fields) => Value::Map(Map::Plain(fields)),
    }
}

fn native_list<'a>(items: &'a [Json]) -> Value<'a> {
    Value::List(List { items: Items::Plain(items), kind: None })
}

/// The name of a value's type in the server's messages.
fn go_type(data: &Value) -> &'static str {
    match data {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::String(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Duration(_) => "time.Duration",
        Value::Timestamp(_) => "time.Time",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
        // A fault that was put into a list.
        _ => "*errors.errorString",
    }
}
