//! Semantic versions, parsed and ordered as blang/semver does it, which accepts complete versions only. OLM and the
//! CEL rules of CRDs use it.

use std::cmp::Ordering;
use std::fmt;

use super::GoParseError;
use crate::gotext::quote;

/// A semantic version. Equality compares the text; [`SemanticVersion::precedence`] ignores build metadata.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SemanticVersion {
    /// The major version.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
    /// The patch version.
    pub patch: u64,
    /// The pre-release identifiers after `-`; empty for a release.
    pub pre: Vec<Identifier>,
    /// The build metadata after `+`. Comparisons ignore it.
    pub build: Vec<String>,
}

/// One dot-separated identifier of a pre-release. Numbers sort before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// Digits only.
    Number(u64),
    /// Anything else.
    Word(String),
}

impl SemanticVersion {
    /// Parses a version.
    ///
    /// # Errors
    /// The text is not a complete version; the error is the library's text.
    pub fn parse(text: &str) -> Result<SemanticVersion, GoParseError> {
        if text.is_empty() {
            return Err("Version string empty".to_owned().into());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned().into());
        };
        let (major, minor) = (core(major, "Major", "major")?, core(minor, "Minor", "minor")?);
        let (rest, build) = split(rest, '+');
        let (patch, pre) = split(rest, '-');
        let patch = core(patch, "Patch", "patch")?;
        let pre = pre.into_iter().flat_map(|pre| pre.split('.')).map(Identifier::parse).collect::<Result<_, _>>()?;
        let build = build.into_iter().flat_map(|build| build.split('.')).map(metadata).collect::<Result<_, _>>()?;
        Ok(SemanticVersion { major, minor, patch, pre, build })
    }

    /// The order of two versions: a pre-release sorts before its release, and build metadata is ignored.
    pub fn precedence(&self, other: &SemanticVersion) -> Ordering {
        [self.major, self.minor, self.patch]
            .cmp(&[other.major, other.minor, other.patch])
            // A release sorts last.
            .then_with(|| self.pre.is_empty().cmp(&other.pre.is_empty()))
            .then_with(|| self.pre.cmp(&other.pre))
    }

    /// Whether this is a pre-release.
    pub fn is_pre_release(&self) -> bool {
        !self.pre.is_empty()
    }

    /// The pre-release identifiers as text, without the leading `-`.
    pub fn pre_text(&self) -> String {
        join(&self.pre)
    }
}

impl fmt::Display for SemanticVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.pre.is_empty() {
            write!(f, "-{}", self.pre_text())?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build.join("."))?;
        }
        Ok(())
    }
}

impl Identifier {
    /// Parses one identifier of a pre-release.
    ///
    /// # Errors
    /// The identifier is empty, contains other characters, or is a number with leading zeroes.
    pub fn parse(text: &str) -> Result<Identifier, GoParseError> {
        if text.is_empty() {
            return Err("Prerelease is empty".to_owned().into());
        }
        if !is_digits(text) {
            return match is_word(text) {
                true => Ok(Identifier::Word(text.to_owned())),
                false => Err(format!("Invalid character(s) found in prerelease {}", quote(text)).into()),
            };
        }
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!("Numeric PreRelease version must not contain leading zeroes {}", quote(text)).into());
        }
        number(text).map(Identifier::Number)
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Identifier::Number(number) => number.fmt(f),
            Identifier::Word(word) => word.fmt(f),
        }
    }
}

fn join(identifiers: &[Identifier]) -> String {
    identifiers.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
}

fn split(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

fn core(text: &str, name: &str, in_lower_case: &str) -> Result<u64, GoParseError> {
    if !is_digits(text) {
        return Err(format!("Invalid character(s) found in {in_lower_case} number {}", quote(text)).into());
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)).into());
    }
    number(text)
}

/// Parses a string of digits.
///
/// # Errors
/// The string is empty or the number is too large; the error is the text of Go's `strconv`.
pub fn number(text: &str) -> Result<u64, GoParseError> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", quote(text)).into())
}

fn metadata(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    match is_word(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("Invalid character(s) found in build meta data {}", quote(text))),
    }
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether the text contains only digits.
pub fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
