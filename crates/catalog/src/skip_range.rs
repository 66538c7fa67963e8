//! The range language of `skipRange` and `olm.package.required`: that of blang/semver v4.0.0.
//!
//! It accepts only full versions, compares pre-releases like any other version, and allows `x` at the end of a version.
//! Error texts and results are the library's, including its quirks; a test compares them with the library.

use std::cmp::Ordering;
use std::sync::LazyLock;

use gantry_k8s_cel::gotext::quote;
use regex::Regex;

use super::error::OlmError;
use super::version::SemanticVersion;

/// A digit of any script: the library searches for these, although a version can contain only ASCII digits.
static DIGIT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\p{Nd}").expect("a pattern"));

/// A range of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkipRange {
    /// One of the groups must hold: all of its comparisons.
    groups: Vec<Vec<SkipRangeComparison>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SkipRangeComparison {
    operator: SkipRangeOperator,
    version: SemanticVersion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SkipRangeOperator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl SkipRange {
    /// Parses a range.
    ///
    /// # Errors
    /// The library's text.
    pub fn parse(text: &str) -> Result<SkipRange, OlmError> {
        let parts = parts(text);
        let mut groups = Vec::new();
        // As in the library, wildcards of all groups are expanded before the first comparison is parsed, so errors come
        // in that order.
        for group in alternatives(&parts)? {
            let mut expanded = Vec::new();
            for part in group {
                match part.contains('x') {
                    true => expanded.extend(expand(part)?),
                    false => expanded.push(part.clone()),
                }
            }
            groups.push(expanded);
        }
        let groups = groups.iter().map(|group| group.iter().map(|part| comparison(part)).collect());
        Ok(SkipRange { groups: groups.collect::<Result<_, String>>()? })
    }

    /// Whether the range contains the version.
    pub fn contains(&self, version: &SemanticVersion) -> bool {
        // The library has no function for an empty group (`a || || b`) and panics when it reaches one. After a panic
        // nothing is updated.
        let reached = self.groups.iter().take_while(|group| !group.is_empty());
        reached.into_iter().any(|group| group.iter().all(|comparison| comparison.holds(version)))
    }
}

impl SkipRangeComparison {
    fn holds(&self, version: &SemanticVersion) -> bool {
        let order = version.precedence(&self.version);
        match self.operator {
            SkipRangeOperator::Equal => order == Ordering::Equal,
            SkipRangeOperator::NotEqual => order != Ordering::Equal,
            SkipRangeOperator::Greater => order == Ordering::Greater,
            SkipRangeOperator::GreaterOrEqual => order != Ordering::Less,
            SkipRangeOperator::Less => order == Ordering::Less,
            SkipRangeOperator::LessOrEqual => order != Ordering::Greater,
        }
    }
}

/// The parts between spaces. A space after an operator does not separate, and a part of one byte is dropped.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<&str> = Vec::new();
    let (mut start, mut before) = (0, b' ');
    for (at, byte) in text.bytes().enumerate() {
        if byte == b' ' && !matches!(before, b'>' | b'<' | b'=') {
            if start + 1 < at {
                parts.push(&text[start..at]);
            }
            start = at + 1;
        } else if byte != b' ' {
            before = byte;
        }
    }
    if start + 1 < text.len() {
        parts.push(&text[start..]);
    }
    parts.into_iter().map(|part| part.replace(' ', "")).collect()
}

/// The groups between `||`.
fn alternatives(parts: &[String]) -> Result<Vec<&[String]>, String> {
    let (mut groups, mut start) = (Vec::new(), 0);
    for (at, _) in parts.iter().enumerate().filter(|(_, part)| *part == "||") {
        if at == 0 {
            return Err("First element in range is '||'".to_owned());
        }
        groups.push(&parts[start..at]);
        start = at + 1;
    }
    if start == parts.len() {
        return Err("Last element in range is '||'".to_owned());
    }
    groups.push(&parts[start..]);
    Ok(groups)
}

/// The operator and the version, which begins at the first digit.
fn split(part: &str) -> Result<(&str, &str), String> {
    match DIGIT.find(part) {
        Some(found) => Ok((part[..found.start()].trim(), &part[found.start()..])),
        None => Err(format!("Could not get version from string: {}", quote(part))),
    }
}

fn comparison(part: &str) -> Result<SkipRangeComparison, String> {
    let (operator, text) = split(part)?;
    let whole = || quote(&format!("{operator}{text}"));
    let read = || {
        let known = match operator {
            "" | "=" | "==" => SkipRangeOperator::Equal,
            "!" | "!=" => SkipRangeOperator::NotEqual,
            ">" => SkipRangeOperator::Greater,
            ">=" => SkipRangeOperator::GreaterOrEqual,
            "<" => SkipRangeOperator::Less,
            "<=" => SkipRangeOperator::LessOrEqual,
            _ => return Err(format!("Could not parse comparator {} in {}", quote(operator), whole())),
        };
        let version = SemanticVersion::parse(text)
            .map_err(|error| format!("Could not parse version {} in {}: {error}", quote(text), whole()))?;
        Ok(SkipRangeComparison { operator: known, version })
    };
    read().map_err(|error| format!("Could not parse Range {}: {error}", quote(part)))
}

/// Which part of a version is a wildcard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wildcard {
    Minor,
    Patch,
    /// None that the library supports: `x` is in another position.
    Unknown,
}

/// The comparisons that a part with an `x` stands for.
fn expand(part: &str) -> Result<Vec<String>, String> {
    let (operator, text) = split(part)?;
    let wildcard = match text.split('.').collect::<Vec<_>>()[..] {
        [_, "x"] => Wildcard::Minor,
        [_, _, "x"] => Wildcard::Patch,
        _ => Wildcard::Unknown,
    };
    let lowest = lowest(text);
    let above = || match wildcard {
        Wildcard::Minor => increment(&lowest, 0),
        Wildcard::Patch => increment(&lowest, 1),
        Wildcard::Unknown => String::new(),
    };
    Ok(match operator {
        ">" => vec![format!(">={}", above())],
        ">=" => vec![format!(">={lowest}")],
        "<" => vec![format!("<{lowest}")],
        "<=" => vec![format!("<{}", above())],
        "" | "=" | "==" => vec![format!(">={lowest}"), format!("<{}", above())],
        "!" | "!=" => vec![format!("<{lowest}"), format!(">={}", above())],
        // The library drops an unknown operator here, and with it the error.
        _ => vec![lowest],
    })
}

/// The version with its wildcards replaced by zeros.
fn lowest(text: &str) -> String {
    let text = text.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    match text.matches('.').count() {
        1 => format!("{text}.0"),
        _ => text,
    }
}

/// The version with the number at `at` incremented; empty if that is not a number.
fn increment(text: &str, at: usize) -> String {
    let mut parts: Vec<String> = text.split('.').map(str::to_owned).collect();
    let Some(next) = parts.get(at).and_then(|part| one_more(part)) else { return String::new() };
    parts[at] = next;
    parts.join(".")
}

/// Go's `Atoi` and `Itoa` around an addition, which wraps.
fn one_more(text: &str) -> Option<String> {
    let number: i64 = text.parse().ok()?;
    Some(number.wrapping_add(1).to_string())
}
