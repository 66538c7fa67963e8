//! The reason why an object cannot be parsed as a CRD.

use std::fmt;

use crate::resource::Step;
use crate::text;

/// A problem with a CRD, and its place. The caller adds the consequence (not compared, not validated, not converted).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrdReadError {
    /// What is wrong at `path`.
    pub fault: CrdReadErrorKind,
    /// The path from the root of the CRD.
    pub at: Vec<Step>,
}

/// Why an object is not a readable CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrdReadErrorKind {
    /// It has this `apiVersion`.
    ApiVersion(String),
    /// The value is absent or an empty string.
    Missing,
    /// `spec.versions` is an empty list.
    NoVersions,
    /// The value has the wrong type; the text is that of the JSON parser.
    Type(String),
    /// The version of this name has no schema.
    NoSchema(String),
    /// The schema of `field` is not an object.
    NotASchema {
        /// The path of the schema, from the root of the version's.
        field: String,
        /// The name of the version.
        version: String,
    },
    /// The value is invalid for the keyword.
    Value {
        /// The keyword of the schema, such as `pattern`.
        keyword: String,
        /// The path of the schema, from the root of the version's.
        field: String,
        /// The value as JSON.
        value: String,
    },
}

/// The schema of a version is not valid JSON. Displays where and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedSchema(pub(super) String);

impl From<MalformedSchema> for String {
    fn from(error: MalformedSchema) -> Self {
        error.0
    }
}

impl std::error::Error for CrdReadError {}

impl fmt::Display for CrdReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            CrdReadErrorKind::ApiVersion(version) if version == "apiextensions.k8s.io/v1beta1" => {
                write!(f, "its version is {version}, which Kubernetes removed in 1.22")
            }
            CrdReadErrorKind::ApiVersion(version) => {
                write!(f, "its apiVersion is {version:?}; gantry understands only apiextensions.k8s.io/v1")
            }
            CrdReadErrorKind::Missing if self.at.is_empty() => f.write_str("it is missing"),
            CrdReadErrorKind::Missing => write!(f, "{} is missing", text::field(&self.at)),
            CrdReadErrorKind::NoVersions => f.write_str("spec.versions is empty"),
            CrdReadErrorKind::Type(what) if self.at.is_empty() => f.write_str(what),
            CrdReadErrorKind::Type(what) => write!(f, "{}: {what}", text::field(&self.at)),
            CrdReadErrorKind::NoSchema(version) => write!(f, "version {version} has no schema"),
            CrdReadErrorKind::NotASchema { field, version } => {
                write!(f, "the schema of {field} in {version} is not an object")
            }
            CrdReadErrorKind::Value { keyword, field, value } => write!(f, "{keyword} of {field} cannot be {value}"),
        }
    }
}
