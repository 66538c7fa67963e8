//! The meaning of a scalar.
//!
//! YAML leaves the meaning of `yes`, `0777` or `1_000` to the reader. The relevant reader is the one in kubectl:
//! go-yaml v2, converted to JSON by `sigs.k8s.io/yaml`. Its rules are a mixture of YAML 1.1, YAML 1.2 and Go's number
//! syntax; this file implements them exactly, including their quirks.

use std::borrow::Cow;
use std::str::FromStr;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use jiff::civil::Date;
use serde_json::{Number, Value};

const BOOL: &str = "tag:yaml.org,2002:bool";
const INT: &str = "tag:yaml.org,2002:int";
const FLOAT: &str = "tag:yaml.org,2002:float";
const NULL: &str = "tag:yaml.org,2002:null";
const TIMESTAMP: &str = "tag:yaml.org,2002:timestamp";
const BINARY: &str = "tag:yaml.org,2002:binary";
/// The tag of the merge key `<<`.
pub(super) const MERGE: &str = "tag:yaml.org,2002:merge";

/// The value of one scalar.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ResolvedScalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// Only for values that are too large for `Int`.
    Uint(u64),
    Float(f64),
    Str(Cow<'a, str>),
}

/// The value of `text` with the tag `tag`. `plain` is whether the scalar is neither quoted nor in a block style, which
/// would make it a string.
pub(super) fn resolve<'a>(tag: Option<&str>, plain: bool, text: &'a str) -> Result<ResolvedScalar<'a>, String> {
    let string = ResolvedScalar::Str(Cow::Borrowed(text));
    let tag = match tag {
        None if plain => return Ok(untagged(text, true)),
        None => return Ok(string),
        Some(tag) => tag,
    };
    let value = match tag {
        BOOL | INT | NULL => untagged(text, false),
        FLOAT => match untagged(text, false) {
            ResolvedScalar::Int(number) => ResolvedScalar::Float(number as f64),
            other => other,
        },
        // A timestamp keeps its text, but it must be valid.
        TIMESTAMP if is_timestamp(text) => return Ok(string),
        TIMESTAMP => untagged(text, false),
        BINARY => return decode_base64(text).map(|text| ResolvedScalar::Str(Cow::Owned(text))),
        // For `!!str`, `!` and unknown tags, Go drops the tag and keeps the text.
        _ => return Ok(string),
    };
    match (tag, &value) {
        (BOOL, ResolvedScalar::Bool(_)) | (INT, ResolvedScalar::Int(_) | ResolvedScalar::Uint(_)) => Ok(value),
        (FLOAT, ResolvedScalar::Float(_)) | (NULL, ResolvedScalar::Null) => Ok(value),
        _ => {
            let wanted = tag.rsplit(':').next().unwrap_or(tag);
            Err(format!("the tag !!{wanted} does not match this value, which is {}", value.type_name()))
        }
    }
}

/// Resolves a scalar by its text alone. The first byte selects the attempts, as in go-yaml's table.
fn untagged(text: &str, timestamps: bool) -> ResolvedScalar<'_> {
    let string = ResolvedScalar::Str(Cow::Borrowed(text));
    let Some(first) = text.bytes().next() else {
        return ResolvedScalar::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text).unwrap_or(string),
        b'.' => word(text).or_else(|| fraction(text).map(ResolvedScalar::Float)).unwrap_or(string),
        b'+' | b'-' | b'0'..=b'9' => {
            if let Some(special) = word(text) {
                return special;
            }
            if timestamps && is_timestamp(text) {
                return string;
            }
            number(text).unwrap_or(string)
        }
        _ => string,
    }
}

fn word(text: &str) -> Option<ResolvedScalar<'static>> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => ResolvedScalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            ResolvedScalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => ResolvedScalar::Null,
        ".nan" | ".NaN" | ".NAN" => ResolvedScalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => ResolvedScalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => ResolvedScalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

/// Parses integers with Go's prefixes, then decimal floats; underscores are ignored everywhere.
fn number(text: &str) -> Option<ResolvedScalar<'static>> {
    let plain: Cow<str> = if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    let (negative, digits) = match plain.as_bytes().first()? {
        b'-' => (true, &plain[1..]),
        b'+' => (false, &plain[1..]),
        _ => (false, &plain[..]),
    };
    let signed = digits.len() != plain.len();
    let (radix, body) = radix(digits);
    if let Some(magnitude) = parse_digits(body, radix) {
        if let Some(number) = with_sign(negative, magnitude) {
            return Some(ResolvedScalar::Int(number));
        }
        if !signed {
            return Some(ResolvedScalar::Uint(magnitude));
        }
    }
    if is_decimal_float(&plain)
        && let Some(float) = parse_float(&plain)
    {
        return Some(ResolvedScalar::Float(float));
    }
    // go-yaml then parses the digits after `0b` separately, which allows a second sign.
    let rest = plain.strip_prefix("0b")?;
    let (negative, body) = match rest.as_bytes().first()? {
        b'-' => (true, &rest[1..]),
        b'+' => (false, &rest[1..]),
        _ => return None,
    };
    with_sign(negative, parse_digits(body, 2)?).map(ResolvedScalar::Int)
}

/// The radix for Go's integer prefixes: `0x`, `0b`, `0o`, and the plain `0` of C's octal numbers.
fn radix(digits: &str) -> (u32, &str) {
    match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    }
}

fn parse_digits(digits: &str, radix: u32) -> Option<u64> {
    // `from_str_radix` would accept another sign.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn with_sign(negative: bool, magnitude: u64) -> Option<i64> {
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Whether the text matches `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn is_decimal_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => digits(fraction),
        Some((whole, fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
        None => digits(mantissa),
    };
    mantissa_fits && exponent.is_none_or(|exponent| digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
}

/// Go's `ParseFloat` for the decimal syntax; a value out of range is not a number.
fn parse_float(text: &str) -> Option<f64> {
    if !is_decimal_float(text) {
        return None;
    }
    text.parse::<f64>().ok().filter(|float| float.is_finite())
}

/// Parses a number that starts with its decimal point. Only here, an underscore must be between two digits.
fn fraction(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let stray = bytes.iter().enumerate().any(|(at, byte)| *byte == b'_' && !(at > 0 && digit(at - 1) && digit(at + 1)));
    if stray { None } else { parse_float(&text.replace('_', "")) }
}

/// Whether go-yaml accepts the text as a time: a date with or without a time of day.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || !bytes[..4].iter().all(u8::is_ascii_digit) || bytes[4] != b'-' {
        return false;
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some((bytes[at], &text[at + 1..]))),
        None => (text, None),
    };
    let mut parts = date.splitn(3, '-');
    let (Some(year), Some(month), Some(day)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let date = || Date::new(small(year, 4)?, small(month, 2)?, small(day, 2)?).ok();
    if date().is_none() {
        return false;
    }
    match time {
        None => true,
        Some((b' ', time)) => is_time_of_day(time),
        Some((_, time)) => match time.strip_suffix('Z') {
            Some(time) => is_time_of_day(time),
            None => time.rfind(['+', '-']).is_some_and(|at| {
                is_time_of_day(&time[..at])
                    && time[at + 1..].split_once(':').is_some_and(|(hours, minutes)| {
                        hours.len() == 2
                            && minutes.len() == 2
                            && small(hours, 2).is_some_and(|hours: u8| hours <= 24)
                            && small(minutes, 2).is_some_and(|minutes: u8| minutes < 60)
                    })
            }),
        },
    }
}

fn is_time_of_day(time: &str) -> bool {
    let (clock, fraction) = match time.find(['.', ',']) {
        Some(at) => (&time[..at], Some(&time[at + 1..])),
        None => (time, None),
    };
    let parts: Vec<_> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts[..] else {
        return false;
    };
    small(hours, 2).is_some_and(|hours: u8| hours < 24)
        && [minutes, seconds].iter().all(|part| small(part, 2).is_some_and(|number: u8| number < 60))
        && fraction.is_none_or(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn small<T: FromStr>(digits: &str, most: usize) -> Option<T> {
    let fits = !digits.is_empty() && digits.len() <= most && digits.bytes().all(|byte| byte.is_ascii_digit());
    if fits { digits.parse().ok() } else { None }
}

/// Go ignores leftover bits after the last byte.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// Decodes `!!binary`: padded standard base64, with optional line breaks. JSON has only strings, so each invalid UTF-8
/// byte becomes U+FFFD, as in Go.
fn decode_base64(text: &str) -> Result<String, String> {
    let bytes = BASE64.decode(text.replace(['\r', '\n'], "")).map_err(|_| "a !!binary value must be base64")?;
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(out)
}

impl ResolvedScalar<'_> {
    fn type_name(&self) -> &'static str {
        match self {
            ResolvedScalar::Null => "null",
            ResolvedScalar::Bool(_) => "a boolean",
            ResolvedScalar::Int(_) | ResolvedScalar::Uint(_) => "an integer",
            ResolvedScalar::Float(_) => "a float",
            ResolvedScalar::Str(_) => "a string",
        }
    }

    /// The JSON value: `1.0` and `1` are the same number, and infinity is an error.
    pub(super) fn to_value(&self) -> Result<Value, String> {
        Ok(match self {
            ResolvedScalar::Null => Value::Null,
            ResolvedScalar::Bool(value) => Value::Bool(*value),
            ResolvedScalar::Int(value) => Value::from(*value),
            ResolvedScalar::Uint(value) => Value::from(*value),
            ResolvedScalar::Float(value) => Value::Number(json_number(*value)?),
            ResolvedScalar::Str(value) => Value::String(value.clone().into_owned()),
        })
    }

    /// The string for this scalar as a mapping key.
    pub(super) fn to_key(&self) -> Result<Cow<'_, str>, String> {
        match self {
            ResolvedScalar::Str(text) => Ok(Cow::Borrowed(text)),
            ResolvedScalar::Bool(value) => Ok(Cow::Borrowed(if *value { "true" } else { "false" })),
            ResolvedScalar::Int(value) => Ok(Cow::Owned(value.to_string())),
            ResolvedScalar::Float(value) => Ok(Cow::Owned(float_key(*value))),
            ResolvedScalar::Null => Err("a mapping key is null; use a string".into()),
            ResolvedScalar::Uint(_) => {
                Err("a mapping key is an integer above 9223372036854775807; put it in quotes".into())
            }
        }
    }
}

/// Go writes a float without a fraction as an integer: its shortest digits padded with zeros. A reader of that JSON
/// gets an integer if it is in range.
fn json_number(float: f64) -> Result<Number, String> {
    let minus_zero = float == 0.0 && float.is_sign_negative();
    if float.fract() == 0.0 && !minus_zero && float.abs() < 1e20 {
        let digits = float.to_string();
        if let Ok(number) = digits.parse::<i64>() {
            return Ok(Number::from(number));
        }
        if let Ok(number) = digits.parse::<u64>() {
            return Ok(Number::from(number));
        }
    }
    Number::from_f64(float).ok_or_else(|| "JSON has no infinity or NaN; put the value in quotes".to_owned())
}

/// Go's `FormatFloat(value, 'g', -1, 32)`: the shortest digits of the single-precision number.
fn float_key(float: f64) -> String {
    let single = float as f32;
    if single.is_nan() {
        return ".nan".into();
    }
    if single.is_infinite() {
        return if single > 0.0 { ".inf" } else { "-.inf" }.into();
    }
    let scientific = format!("{single:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}e{sign}{:02}", exponent.abs())
    } else {
        format!("{single}")
    }
}
