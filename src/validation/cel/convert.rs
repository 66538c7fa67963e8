//! Gives a piece of an object the type that its schema says it has.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value as Json;

use super::fault::{Fault, Result};
use super::time::{Timestamp, format_duration};
use super::types::{Kind, Type};
use super::value::{Items, List, Map, Text, Value};

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// `json` as a value of the type `of`.
pub(crate) fn typed<'a>(json: &'a Json, of: &'a Type) -> Result<Value<'a>> {
    match of.kind {
        _ if json.is_null() && of.nullable => Ok(Value::Null),
        _ if json.is_null() => Err(Fault::error("invalid data, got null for schema with nullable=false")),
        Kind::Unknown => Ok(Value::Unknown(json)),
        _ => read(native(json), of),
    }
}

/// Data that a list holds (see [`data`]) as a value of the type `of`.
pub(crate) fn read<'a>(data: Value<'a>, of: &'a Type) -> Result<Value<'a>> {
    let unexpected = |wanted: &str, data: &Value| {
        Err(Fault::error(format!("invalid data, expected {wanted}, got {}", go_type(data))))
    };
    match (&of.kind, data) {
        (_, Value::Unknown(json)) => typed(json, of),
        (Kind::Unknown | Kind::Untyped, _) => Err(Fault::Undecided("the schema gives the value no type".to_owned())),
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
        _ => Timestamp::from_date_time(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Fault::error(format!("Invalid date-time formatted string {text}: cannot parse it"))),
    }
}

/// A value without what the schema says of it, under the names as they are written: what the server puts into a list,
/// and what it looks at to tell whether a set or a list of type `map` has it.
pub(crate) fn data<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Map(Map::Json { fields, .. }) => Value::Map(Map::Plain(fields)),
        Value::List(List { items: Items::Json(items, _), .. }) => native_list(items),
        other => other.clone(),
    }
}

/// A list or object of the validated object as an optional gives it: as plain data. The server unwraps optionals that
/// way.
pub(crate) fn untyped<'a>(value: &Value<'a>) -> Result<Value<'a>> {
    opened(&data(value))
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
        Json::Object(fields) => Value::Map(Map::Plain(fields)),
    }
}

fn native_list<'a>(items: &'a [Json]) -> Value<'a> {
    Value::List(List { items: Items::Plain(items), kind: None })
}

/// How the server's messages name the type of a piece of data.
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
