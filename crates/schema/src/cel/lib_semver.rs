//! Semantic versions.

use std::cmp::Ordering;
use std::rc::Rc;

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::library::Function;
use super::value::Value;
use crate::gotext::quote;

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

/// A version. Build metadata is checked, but has no part in the order.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    core: [u64; 3],
    pre: Vec<Identifier>,
}

/// Numbers come before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Version {
    /// The order of two versions: a pre-release comes before its release.
    pub(crate) fn compare(&self, other: &Version) -> Ordering {
        self.core
            .cmp(&other.core)
            .then_with(|| other.pre.is_empty().cmp(&self.pre.is_empty()).reverse())
            .then_with(|| self.pre.cmp(&other.pre))
    }
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn number(text: &str) -> std::result::Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
}

fn core(text: &str, name: &str) -> std::result::Result<u64, String> {
    if !is_digits(text) {
        return Err(format!("Invalid character(s) found in {} number {}", name.to_lowercase(), quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    number(text)
}

fn parse(text: &str) -> std::result::Result<Version, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let parts: Vec<&str> = text.splitn(3, '.').collect();
    let &[major, minor, rest] = parts.as_slice() else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let (major, minor) = (core(major, "Major")?, core(minor, "Minor")?);
    let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
    let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
    let patch = core(patch, "Patch")?;
    let pre = pre.into_iter().flat_map(|pre| pre.split('.')).map(identifier).collect::<std::result::Result<_, _>>()?;
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_word(part) {
            return Err(format!("Invalid character(s) found in build meta data {}", quote(part)));
        }
    }
    Ok(Version { core: [major, minor, patch], pre })
}

fn identifier(text: &str) -> std::result::Result<Identifier, String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if !is_digits(text) {
        return match is_word(text) {
            true => Ok(Identifier::Word(text.to_owned())),
            false => Err(format!("Invalid character(s) found in prerelease {}", quote(text))),
        };
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)));
    }
    number(text).map(Identifier::Number)
}

/// Makes a version of what people write: `v1.2`, `01.2.3`.
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
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => parse(text),
        [Value::String(text), Value::Bool(true)] => normalize(text).and_then(|text| parse(&text)),
        _ => return None,
    })
}

fn semver<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(read(args)?.map(|version| Value::Semver(Rc::new(version))).map_err(Fault::Error))
}

fn is_semver<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    Some(Ok(Value::Bool(read(args)?.is_ok())))
}

fn part<'a>(args: &[Value<'a>], index: usize) -> Answer<'a> {
    let [Value::Semver(version)] = args else { return None };
    // Go's conversion wraps around.
    Some(Ok(Value::Int(version.core[index].cast_signed())))
}

fn major<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, 0)
}

fn minor<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, 1)
}

fn patch<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    part(args, 2)
}

fn ordered<'a>(args: &[Value<'a>], map: fn(Ordering) -> Value<'static>) -> Answer<'a> {
    let [Value::Semver(left), Value::Semver(right)] = args else { return None };
    Some(Ok(map(left.compare(right))))
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
