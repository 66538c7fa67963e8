//! Converts parts of an object to the types that their schema declares.

use std::fmt::Display;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value as Json;

use super::budget::CelBudget;
use super::fault::{CelResult, EvaluationError};
use super::release::KubernetesRelease;
use super::types::{CelType, CelTypeKind};
use super::value::{CelList, CelListItems, CelMap, CelString, CelValue};
use crate::golang::{Timestamp, duration};

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&URL_SAFE, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// `json` as a value of type `of`.
pub(crate) fn typed<'a>(json: &'a Json, of: &'a CelType) -> CelResult<CelValue<'a>> {
    match of.kind {
        _ if json.is_null() && of.nullable => Ok(CelValue::Null),
        _ if json.is_null() => Err(EvaluationError::error("invalid data, got null for schema with nullable=false")),
        CelTypeKind::Unknown => Ok(CelValue::Unknown(json)),
        _ => read(native(json), of),
    }
}

/// Data in a list (see [`data`]) as a value of type `of`.
pub(crate) fn read<'a>(data: CelValue<'a>, of: &'a CelType) -> CelResult<CelValue<'a>> {
    let unexpected = |wanted: &str, data: &CelValue| {
        Err(EvaluationError::error(format!("invalid data, expected {wanted}, got {}", go_type(data))))
    };
    match (&of.kind, data) {
        (_, CelValue::Unknown(json)) => typed(json, of),
        (CelTypeKind::Unknown | CelTypeKind::Untyped, _) => {
            Err(EvaluationError::Undecided("the schema does not specify a type".to_owned()))
        }
        (CelTypeKind::IntOrString, data @ (CelValue::String(_) | CelValue::Int(_))) => Ok(data),
        (CelTypeKind::IntOrString, _) => {
            Err(EvaluationError::error("invalid data, expected XIntOrString value to be either a string or integer"))
        }
        (CelTypeKind::Bool, data @ CelValue::Bool(_))
        | (CelTypeKind::Int, data @ CelValue::Int(_))
        | (CelTypeKind::Double, data @ CelValue::Double(_)) => Ok(data),
        (CelTypeKind::Double, CelValue::Int(number)) => Ok(CelValue::Double(number as f64)),
        (CelTypeKind::Bool, data) => unexpected("bool", &data),
        (CelTypeKind::Int, data) => unexpected("int", &data),
        (CelTypeKind::Double, data) => unexpected("float", &data),
        (
            kind @ (CelTypeKind::String
            | CelTypeKind::Bytes
            | CelTypeKind::Duration
            | CelTypeKind::Date
            | CelTypeKind::DateTime),
            data,
        ) => match data {
            CelValue::String(text) => string(text, kind),
            data => unexpected("string", &data),
        },
        (CelTypeKind::List { items: of, kind }, CelValue::List(CelList { items: CelListItems::Plain(items), .. })) => {
            Ok(CelValue::List(CelList { items: CelListItems::Json(items, of), kind: Some(kind) }))
        }
        (CelTypeKind::List { .. }, _) => {
            Err(EvaluationError::error("invalid data, expected an array for the provided schema with type=array"))
        }
        (CelTypeKind::Object(_) | CelTypeKind::Map(_), CelValue::Map(CelMap::Plain(fields))) => {
            Ok(CelValue::Map(CelMap::Json { fields, of }))
        }
        (CelTypeKind::Object(_) | CelTypeKind::Map(_), _) => {
            Err(EvaluationError::error("invalid data, expected a map for the provided schema with type=object"))
        }
    }
}

fn string<'a>(text: CelString<'a>, kind: &CelTypeKind) -> CelResult<CelValue<'a>> {
    let text = match kind {
        CelTypeKind::String => return Ok(CelValue::String(text)),
        _ => &*text,
    };
    match kind {
        // The server decodes the URL-safe alphabet here, although it validates the format with the standard one.
        CelTypeKind::Bytes => BASE64
            .decode(text.replace(['\r', '\n'], ""))
            .map(|bytes| CelValue::Bytes(bytes.into()))
            .map_err(|_| EvaluationError::error(format!("Invalid byte formatted string {text}: illegal base64 data"))),
        CelTypeKind::Duration => duration::parse_worded(text).map(CelValue::Duration).ok_or_else(|| {
            EvaluationError::error(format!("Invalid duration {text}: unable to parse {text} as duration"))
        }),
        CelTypeKind::Date => Timestamp::from_date(text)
            .map(CelValue::Timestamp)
            .ok_or_else(|| EvaluationError::error(format!("Invalid date formatted string {text}: cannot parse it"))),
        _ => Timestamp::from_date_time(text).map(CelValue::Timestamp).ok_or_else(|| {
            EvaluationError::error(format!("Invalid date-time formatted string {text}: cannot parse it"))
        }),
    }
}

/// A value without its schema, with the field names as written: the form in which the server puts it into a list, and
/// in which it looks it up in a set or in a list of type `map`.
pub(crate) fn data<'a>(value: &CelValue<'a>) -> CelValue<'a> {
    match value {
        CelValue::Map(CelMap::Json { fields, .. }) => CelValue::Map(CelMap::Plain(fields)),
        CelValue::List(CelList { items: CelListItems::Json(items, _), .. }) => native_list(items),
        other => other.clone(),
    }
}

/// The first release in which an optional keeps its value.
const OPTIONALS_KEEP_VALUES: KubernetesRelease = KubernetesRelease::minor(37);

/// The value inside an optional after the optional passes through a variable, a selection or a conditional. Before
/// [`OPTIONALS_KEEP_VALUES`] the server extracts the Go value and wraps it again: data loses its schema, a nested
/// optional is flattened, and types become their names. Many other values cannot be wrapped again: the optional still
/// has a value, but reading it fails.
pub(crate) fn unwrapped<'a>(value: &CelValue<'a>, budget: &mut CelBudget) -> CelResult<CelValue<'a>> {
    if budget.release() >= OPTIONALS_KEEP_VALUES {
        return Ok(value.clone());
    }
    let lost = |of: &str, text: &dyn Display| CelValue::Misfit(format!("{UNCONVERTIBLE}: ({of}){text}").into());
    Ok(match value {
        CelValue::Optional(None) => CelValue::Null,
        CelValue::Optional(Some(value)) => return unwrapped(value, budget),
        CelValue::Type(name) => CelValue::from(*name),
        CelValue::Quantity(_) => lost("*resource.Quantity", &""),
        CelValue::Url(url) => lost("*url.URL", url),
        CelValue::Ip(ip) => lost("netip.Addr", ip),
        CelValue::Cidr(cidr) => lost("netip.Prefix", cidr),
        CelValue::Semver(_) => lost("semver.Version", &""),
        CelValue::Misfit(text) => lost("*errors.errorString", text),
        CelValue::Unknown(json) => native(json),
        CelValue::Map(map @ CelMap::Json { .. }) => {
            budget.take(map.len() as u64)?;
            data(value)
        }
        CelValue::List(CelList { items: CelListItems::Merged(items, _), .. }) => {
            budget.take(items.len() as u64)?;
            let element = |item: &CelValue<'a>| match item {
                CelValue::Unknown(json) => Ok(native(json)),
                item => opened(item),
            };
            CelValue::List(CelList::from_elements(items.iter().map(element).collect()))
        }
        // A concatenated list in the server keeps references to its parts.
        CelValue::List(CelList { items: CelListItems::Joined(items), .. }) => {
            budget.take(items.len() as u64)?;
            let mut out = Vec::with_capacity(items.len());
            for (item, _) in items.iter() {
                out.push(match item {
                    Ok(item) => opened(&unwrapped(item, budget)?),
                    Err(EvaluationError::Error(text)) => opened(&lost("*errors.errorString", text)),
                    Err(fault) => Err(fault.clone()),
                });
            }
            CelValue::List(CelList::from_elements(out))
        }
        CelValue::List(list) => {
            budget.take(list.len() as u64)?;
            data(value)
        }
        other => other.clone(),
    })
}

const UNCONVERTIBLE: &str = "unsupported conversion to ref.Val";

/// Keeps a schema mismatch as a value, which an optional can contain.
pub(crate) fn misfit(value: CelResult<CelValue<'_>>) -> CelResult<CelValue<'_>> {
    match value {
        Err(EvaluationError::Error(text)) => Ok(CelValue::Misfit(text.into())),
        value => value,
    }
}

/// A value of the wrong type is an error in any expression that does more than pass it on.
pub(crate) fn opened_misfit(value: CelValue<'_>) -> CelResult<CelValue<'_>> {
    match value {
        CelValue::Misfit(text) => Err(EvaluationError::error(&*text)),
        value => Ok(value),
    }
}

/// Reads the value of an optional. An optional can contain a value that does not match its schema, but reading it
/// fails.
pub(crate) fn opened<'a>(value: &CelValue<'a>) -> CelResult<CelValue<'a>> {
    match value {
        CelValue::Unknown(_) => Err(EvaluationError::error(UNCONVERTIBLE)),
        CelValue::Misfit(text) => Err(EvaluationError::error(&**text)),
        other => Ok(other.clone()),
    }
}

/// Plain data without a schema.
pub(crate) fn native<'a>(json: &'a Json) -> CelValue<'a> {
    match json {
        Json::Null => CelValue::Null,
        Json::Bool(value) => CelValue::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(value) => CelValue::Int(value),
            None => CelValue::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => CelValue::String(CelString::Borrowed(text)),
        Json::Array(items) => native_list(items),
        Json::Object(fields) => CelValue::Map(CelMap::Plain(fields)),
    }
}

fn native_list<'a>(items: &'a [Json]) -> CelValue<'a> {
    CelValue::List(CelList { items: CelListItems::Plain(items), kind: None })
}

/// The name of a value's type in the server's messages.
fn go_type(data: &CelValue) -> &'static str {
    match data {
        CelValue::Null => "structpb.NullValue",
        CelValue::Bool(_) => "bool",
        CelValue::Int(_) => "int64",
        CelValue::Uint(_) => "uint64",
        CelValue::Double(_) => "float64",
        CelValue::String(_) => "string",
        CelValue::Bytes(_) => "[]uint8",
        CelValue::Duration(_) => "time.Duration",
        CelValue::Timestamp(_) => "time.Time",
        CelValue::List(_) => "[]interface {}",
        CelValue::Map(_) => "map[string]interface {}",
        // A fault that was put into a list.
        _ => "*errors.errorString",
    }
}
