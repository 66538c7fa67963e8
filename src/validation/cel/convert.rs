//! Gives a piece of an object the type that its schema says it has.

use std::rc::Rc;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value as Json;

use super::fault::{Fault, Result};
use super::time::{Timestamp, format_duration};
use super::types::{Kind, Type};
use super::value::{Items, Key, List, Map, Text, Value};

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// `json` as a value of the type `of`.
pub(crate) fn typed<'a>(json: &'a Json, of: &'a Type) -> Result<Value<'a>> {
    if json.is_null() {
        return match of.nullable {
            true => Ok(Value::Null),
            false => Err(Fault::error("invalid data, got null for schema with nullable=false")),
        };
    }
    let unexpected = |wanted: &str| Fault::error(format!("invalid data, expected {wanted}, got {}", go_type(json)));
    match &of.kind {
        Kind::IntOrString => match json {
            Json::String(text) => Ok(Value::String(Text::Borrowed(text))),
            Json::Number(number) if number.as_i64().is_some() => Ok(Value::Int(number.as_i64().unwrap_or_default())),
            _ => Err(Fault::error("invalid data, expected XIntOrString value to be either a string or integer")),
        },
        Kind::Bool => json.as_bool().map(Value::Bool).ok_or_else(|| unexpected("bool")),
        Kind::Int => json.as_i64().map(Value::Int).ok_or_else(|| unexpected("int")),
        Kind::Double => json.as_f64().map(Value::Double).ok_or_else(|| unexpected("float")),
        Kind::String | Kind::Bytes | Kind::Duration | Kind::Date | Kind::DateTime => {
            let text = json.as_str().ok_or_else(|| unexpected("string"))?;
            string(text, &of.kind)
        }
        Kind::List { items, kind } => {
            let list = json.as_array().ok_or_else(|| {
                Fault::error("invalid data, expected an array for the provided schema with type=array")
            })?;
            Ok(Value::List(List { items: Items::Json(list, items), kind: Some(kind) }))
        }
        Kind::Object(_) | Kind::Map(_) => match json.as_object() {
            Some(fields) => Ok(Value::Map(Map::Json { fields, of })),
            None => Err(Fault::error("invalid data, expected a map for the provided schema with type=object")),
        },
        Kind::Unknown => Ok(Value::Unknown(json)),
        Kind::Untyped => Err(Fault::Undecided("the schema gives the value no type".to_owned())),
    }
}

fn string<'a>(text: &'a str, kind: &Kind) -> Result<Value<'a>> {
    match kind {
        // The server reads the alphabet for URLs here, although the format is checked with the other one.
        Kind::Bytes => BASE64
            .decode(text.replace(['\r', '\n'], ""))
            .map(|bytes| Value::Bytes(bytes.into()))
            .map_err(|_| Fault::error(format!("Invalid byte formatted string {text}: illegal base64 data"))),
        Kind::Duration => format_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| Fault::error(format!("Invalid duration {text}: unable to parse {text} as duration"))),
        Kind::Date => Timestamp::from_date(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Fault::error(format!("Invalid date formatted string {text}: cannot parse it"))),
        Kind::DateTime => Timestamp::from_date_time(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Fault::error(format!("Invalid date-time formatted string {text}: cannot parse it"))),
        _ => Ok(Value::String(Text::Borrowed(text))),
    }
}

/// A list or object of the validated object as an optional gives it: as plain data, which knows nothing of the schema,
/// under the names as they are written. The server unwraps optionals that way.
pub(crate) fn untyped<'a>(value: &Value<'a>) -> Result<Value<'a>> {
    Ok(match value {
        Value::Map(Map::Json { fields, .. }) => native_map(fields),
        Value::List(List { items: Items::Json(items, _), .. }) => native_list(items),
        other => return opened(other),
    })
}

/// What is taken out of an optional. One can hold what does not fit its schema, but that cannot be taken out.
pub(crate) fn opened<'a>(value: &Value<'a>) -> Result<Value<'a>> {
    match value {
        Value::Unknown(_) => Err(Fault::error("unsupported conversion to ref.Val")),
        Value::Misfit(text) => Err(Fault::error(&**text)),
        other => Ok(other.clone()),
    }
}

/// Plain data, of which no schema is known.
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
        Json::Object(fields) => native_map(fields),
    }
}

fn native_list<'a>(items: &'a [Json]) -> Value<'a> {
    Value::List(List::new(items.iter().map(native).collect()))
}

fn native_map<'a>(fields: &'a serde_json::Map<String, Json>) -> Value<'a> {
    let entry = |(name, json): (&'a String, &'a Json)| {
        (Key::String(name.clone()), (Value::String(Text::Borrowed(name)), native(json)))
    };
    Value::Map(Map::Values(Rc::new(fields.iter().map(entry).collect())))
}

/// How the server's messages name the type of a piece of data.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
