//! Semantic versions as blang/semver reads and orders them, which takes whole versions only: OLM and the rules of CRDs use it.

use std::cmp::Ordering;
use std::fmt;

use crate::gotext::quote;

/// A semantic version. Equality is of the text; [`Version::precedence`] ignores build metadata.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    /// What follows `-`; empty for a release.
    pub pre: Vec<Identifier>,
    /// What follows `+`. It is ignored in comparisons.
    pub build: Vec<String>,
}

/// One part of a pre-release, between its dots. Numbers come before words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identifier {
    /// Digits only.
    Number(u64),
    /// Anything else.
    Word(String),
}

impl Version {
    /// Reads a version.
    ///
    /// # Errors
    /// It is not a whole one; the library's text.
    pub fn parse(text: &str) -> Result<Version, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (major, minor) = (core(major, "Major", "major")?, core(minor, "Minor", "minor")?);
        let (rest, build) = split(rest, '+');
        let (patch, pre) = split(rest, '-');
        let patch = core(patch, "Patch", "patch")?;
        let pre = pre.into_iter().flat_map(|pre| pre.split('.')).map(Identifier::parse).collect::<Result<_, _>>()?;
        let build = build.into_iter().flat_map(|build| build.split('.')).map(metadata).collect::<Result<_, _>>()?;
        Ok(Version { major, minor, patch, pre, build })
    }

    /// The order of two versions: a pre-release comes before its release, and build metadata does not count.
    pub fn precedence(&self, other: &Version) -> Ordering {
        [self.major, self.minor, self.patch]
            .cmp(&[other.major, other.minor, other.patch])
            // The one that is a release comes last.
            .then_with(|| self.pre.is_empty().cmp(&other.pre.is_empty()))
            .then_with(|| self.pre.cmp(&other.pre))
    }

    /// Whether it is one.
    pub fn is_pre_release(&self) -> bool {
        !self.pre.is_empty()
    }

    /// The pre-release as text, without its `-`.
    pub fn pre_text(&self) -> String {
        join(&self.pre)
    }
}

impl fmt::Display for Version {
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
    /// Reads one part of a pre-release.
    ///
    /// # Errors
    /// It is empty, has other characters, or is a number with leading zeroes.
    pub fn parse(text: &str) -> Result<Identifier, String> {
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

fn core(text: &str, name: &str, in_lower_case: &str) -> Result<u64, String> {
    if !is_digits(text) {
        return Err(format!("Invalid character(s) found in {in_lower_case} number {}", quote(text)));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!("{name} number must not contain leading zeroes {}", quote(text)));
    }
    number(text)
}

/// The number that a text of digits is, or the text of Go's `strconv`.
///
/// # Errors
/// It has no digits, or too many.
pub fn number(text: &str) -> Result<u64, String> {
    let why = if text.is_empty() { "invalid syntax" } else { "value out of range" };
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {}: {why}", quote(text)))
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

/// Whether there is nothing but digits.
pub fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
