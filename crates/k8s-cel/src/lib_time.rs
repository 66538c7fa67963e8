//! Parts of timestamps and durations.

use super::fault::{CelResult, EvaluationError};
use super::library::{Function, OverloadResult};
use super::value::CelValue;
use crate::golang::time::{Timestamp, TimestampParts};
use crate::gotext::quote;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::member("getFullYear", 1, |args, _| part(args, |parts, _| parts.year)).or_one_more(),
    Function::member("getMonth", 1, |args, _| part(args, |parts, _| parts.month - 1)).or_one_more(),
    Function::member("getDayOfYear", 1, |args, _| part(args, |parts, _| parts.day_of_year)).or_one_more(),
    Function::member("getDayOfMonth", 1, |args, _| part(args, |parts, _| parts.day - 1)).or_one_more(),
    Function::member("getDate", 1, |args, _| part(args, |parts, _| parts.day)).or_one_more(),
    Function::member("getDayOfWeek", 1, |args, _| part(args, |parts, _| parts.weekday)).or_one_more(),
    Function::member("getHours", 1, |args, _| {
        units(args, 3_600_000_000_000).or_else(|| part(args, |parts, _| parts.hour))
    })
    .or_one_more(),
    Function::member("getMinutes", 1, |args, _| {
        units(args, 60_000_000_000).or_else(|| part(args, |parts, _| parts.minute))
    })
    .or_one_more(),
    Function::member("getSeconds", 1, |args, _| {
        units(args, 1_000_000_000).or_else(|| part(args, |parts, _| parts.second))
    })
    .or_one_more(),
    Function::member("getMilliseconds", 1, |args, _| {
        units(args, 1_000_000).or_else(|| part(args, |_, time| i64::from(time.nanos / 1_000_000)))
    })
    .or_one_more(),
];

/// A part of a timestamp.
fn part<'a>(args: &[CelValue<'a>], pick: fn(TimestampParts, Timestamp) -> i64) -> OverloadResult<'a> {
    match args {
        [CelValue::Timestamp(time)] => Some(Ok(CelValue::Int(pick(time.parts(0), *time)))),
        [CelValue::Timestamp(time), CelValue::String(zone)] => {
            Some(offset(zone).map(|offset| CelValue::Int(pick(time.parts(offset), *time))))
        }
        _ => None,
    }
}

/// A duration in whole units.
fn units<'a>(args: &[CelValue<'a>], unit: i64) -> OverloadResult<'a> {
    match args {
        [CelValue::Duration(nanos)] => Some(Ok(CelValue::Int(nanos / unit))),
        _ => None,
    }
}

/// The offset from UTC, in seconds east, of a zone such as `+02:00`.
fn offset(zone: &str) -> CelResult<i64> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        return match zone {
            "" | "UTC" => Ok(0),
            _ if zone.contains("..") || zone.starts_with(['/', '\\']) => {
                Err(EvaluationError::error("time: invalid location name"))
            }
            _ if zone.contains('\0') => Err(EvaluationError::error("invalid argument")),
            _ if may_be_zone(zone) => {
                Err(EvaluationError::Undecided(format!("the time zone {} is not supported", quote(zone))))
            }
            _ => Err(EvaluationError::error(format!("unknown time zone {zone}"))),
        };
    };
    let number = |text: &str| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        is_number
            .then(|| text.parse::<i32>().ok())
            .flatten()
            .map(i64::from)
            .ok_or_else(|| EvaluationError::error(format!("strconv.Atoi: parsing {}: invalid syntax", quote(text))))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    Ok(60 * if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes })
}

/// Whether the server could have a time zone with that name.
fn may_be_zone(name: &str) -> bool {
    name.len() > 1
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_+-/.".contains(&b))
}
