//! Semantic versions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::budget::CelBudget;
use super::fault::EvaluationError;
use super::library::{Function, OverloadResult};
use super::value::CelValue;
use crate::golang::semver::SemanticVersion;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("semver", 1, semver).or_one_more(),
    Function::global("isSemver", 1, is_semver).or_one_more(),
    Function::member("major", 1, |args, _| part(args, |version| version.major)),
    Function::member("minor", 1, |args, _| part(args, |version| version.minor)),
    Function::member("patch", 1, |args, _| part(args, |version| version.patch)),
    Function::member("isGreaterThan", 2, |args, _| ordered(args, |ordering| CelValue::Bool(ordering.is_gt()))),
    Function::member("isLessThan", 2, |args, _| ordered(args, |ordering| CelValue::Bool(ordering.is_lt()))),
    Function::member("compareTo", 2, |args, _| ordered(args, |ordering| CelValue::Int(ordering as i64))),
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

fn read(args: &[CelValue]) -> Option<std::result::Result<SemanticVersion, String>> {
    Some(match args {
        [CelValue::String(text)] | [CelValue::String(text), CelValue::Bool(false)] => {
            SemanticVersion::parse(text).map_err(String::from)
        }
        [CelValue::String(text), CelValue::Bool(true)] => {
            normalize(text).and_then(|text| SemanticVersion::parse(&text).map_err(String::from))
        }
        _ => return None,
    })
}

fn semver<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    Some(read(args)?.map(|version| CelValue::Semver(Rc::new(version))).map_err(EvaluationError::Error))
}

fn is_semver<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    Some(Ok(CelValue::Bool(read(args)?.is_ok())))
}

fn part<'a>(args: &[CelValue<'a>], of: fn(&SemanticVersion) -> u64) -> OverloadResult<'a> {
    let [CelValue::Semver(version)] = args else { return None };
    // Go's conversion wraps around.
    Some(Ok(CelValue::Int(of(version).cast_signed())))
}

fn ordered<'a>(args: &[CelValue<'a>], map: fn(Ordering) -> CelValue<'static>) -> OverloadResult<'a> {
    let [CelValue::Semver(left), CelValue::Semver(right)] = args else { return None };
    Some(Ok(map(left.precedence(right))))
}
