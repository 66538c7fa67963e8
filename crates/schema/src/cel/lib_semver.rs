//! Semantic versions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::library::Function;
use super::value::Value;
use crate::golang::semver::Version;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("semver", 1, semver),
    Function::global("semver", 2, semver),
    Function::global("isSemver", 1, is_semver),
    Function::global("isSemver", 2, is_semver),
    Function::member("major", 1, major),
    Function::member("minor", 1, minor),
    Function::member("patch", 1, patch),
    Function::member("isGreaterThan", 2, is_greater),
    Function::member("isLessThan", 2, is_less),
    Function::member("compareTo", 2, compare_to),
];

/// Converts common spellings such as `v1.2` and `01.2.3` to a semantic version.
fn normalize(text: &str) -> std::result::Result<String, String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            if part.len() <= 1 {
                return part.to_owned();
            }
            let trimmed = part.trim_start_matches('0');
            match trimmed.starts_with(|c: char| c.is_ascii_digit()) {
                true => trimmed.to_owned(),
                false => format!("0{trimmed}"),
            }
        })
        .collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err("short version cannot contain PreRelease/Build meta data".to_owned());
    }
    while parts.len() < 3 {
        parts.push("0".to_owned());
    }
    Ok(parts.join("."))
}

type Answer<'a> = Option<Result<Value<'a>>>;

fn read(args: &[Value]) -> Option<std::result::Result<Version, String>> {
    Some(match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Version::parse(text),
        [Value::String(text), Value::Bool(true)] => normalize(text).and_then(|text| Version::parse(&text)),
        _ => return None,
    })
}

fn semver<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(read(args)?.map(|version| Value::Semver(Rc::new(version))).map_err(Fault::Error))
}

fn is_semver<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(Ok(Value::Bool(read(args)?.is_ok())))
}

fn part<'a>(args: &[Value<'a>], of: fn(&Version) -> u64) -> Answer<'a> {
    let [Value::Semver(version)] = args else { return None };
    // Go's conversion wraps around.
    Some(Ok(Value::Int(of(version).cast_signed())))
}

fn major<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, |version| version.major)
}

fn minor<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, |version| version.minor)
}

fn patch<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, |version| version.patch)
}

fn ordered<'a>(args: &[Value<'a>], map: fn(Ordering) -> Value<'static>) -> Answer<'a> {
    let [Value::Semver(left), Value::Semver(right)] = args else { return None };
    Some(Ok(map(left.precedence(right))))
}

fn is_greater<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    ordered(args, |ordering| Value::Bool(ordering.is_gt()))
}

fn is_less<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    ordered(args, |ordering| Value::Bool(ordering.is_lt()))
}

fn compare_to<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    ordered(args, |ordering| Value::Int(ordering as i64))
}
