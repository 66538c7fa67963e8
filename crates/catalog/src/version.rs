//! Versions of bundles, as OLM parses and orders them.

use std::cmp::Ordering;
use std::fmt;

use super::error::OlmError;
use gantry_k8s_cel::golang::semver::Identifier;
pub use gantry_k8s_cel::golang::semver::SemanticVersion;
use gantry_k8s_cel::gotext::quote;

/// The maximum length of a release: `release` of a ClusterServiceVersion has this limit.
const MOST_BYTES_OF_RELEASE: usize = 20;

/// A version with the release that OLM v1 reads from its build metadata: the release of `1.0.0+2` is 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRelease {
    /// The version. It keeps its build metadata only if that is not a release.
    pub version: SemanticVersion,
    /// The release; empty if there is none.
    pub release: Vec<Identifier>,
}

impl VersionRelease {
    /// Parses the version of a bundle.
    ///
    /// # Errors
    /// The library's text.
    pub fn parse(text: &str) -> Result<VersionRelease, OlmError> {
        let mut version = SemanticVersion::parse(text)?;
        let release = match release(&version.build.join(".")) {
            Ok(release) => {
                version.build.clear();
                release
            }
            // Build metadata that is not a release stays in the version.
            Err(_) => Vec::new(),
        };
        Ok(VersionRelease { version, release })
    }

    /// The order by version, then by release; a version without a release comes first.
    pub fn precedence(&self, other: &VersionRelease) -> Ordering {
        self.version.precedence(&other.version).then_with(|| self.release.cmp(&other.release))
    }
}

impl fmt::Display for VersionRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.version.fmt(f)?;
        match self.release.is_empty() {
            true => Ok(()),
            false => write!(f, "+{}", join(&self.release)),
        }
    }
}

/// Parses a release; an empty text is no release.
///
/// # Errors
/// The library's text.
pub fn release(text: &str) -> Result<Vec<Identifier>, OlmError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    if text.len() > MOST_BYTES_OF_RELEASE {
        let quoted = quote(text);
        let why = format!("exceeds maximum length of {MOST_BYTES_OF_RELEASE} characters");
        return Err(format!("invalid release {quoted}: {why}").into());
    }
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for (at, part) in text.split('.').enumerate() {
        match Identifier::parse(part) {
            Ok(identifier) => found.push(identifier),
            Err(error) => errors.push(format!("segment {at}: {error}")),
        }
    }
    match errors.is_empty() {
        true => Ok(found),
        false => Err(format!("invalid release {}: {}", quote(text), errors.join("\n")).into()),
    }
}

fn join(identifiers: &[Identifier]) -> String {
    identifiers.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
}
