//! Why an object cannot be read as a CRD.

use std::fmt;

use crate::resource::Step;
use crate::text;

/// What is wrong with a CRD, and where. What that means (not compared, not judged, not converted) says who reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub fault: Fault,
    /// From the root of the CRD.
    pub at: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is written at this version of the API.
    ApiVersion(String),
    /// There is nothing there, or an empty text.
    Missing,
    /// `spec.versions` is an empty list.
    NoVersions,
    /// Something of another type is there, in the words of the JSON reader.
    Type(String),
    /// The version of this name has no schema.
    NoSchema(String),
    /// Something other than an object is where the schema of `field` should be.
    NotASchema { field: String, version: String },
    /// A value that the keyword cannot have.
    Value { keyword: String, field: String, value: String },
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Fault::ApiVersion(version) if version == "apiextensions.k8s.io/v1beta1" => {
                write!(f, "its version is {version}, which Kubernetes removed in 1.22")
            }
            Fault::ApiVersion(version) => {
                write!(f, "its apiVersion is {version:?}; gantry understands only apiextensions.k8s.io/v1")
            }
            Fault::Missing if self.at.is_empty() => f.write_str("it is missing"),
            Fault::Missing => write!(f, "{} is missing", text::field(&self.at)),
            Fault::NoVersions => f.write_str("spec.versions is empty"),
            Fault::Type(what) if self.at.is_empty() => f.write_str(what),
            Fault::Type(what) => write!(f, "{}: {what}", text::field(&self.at)),
            Fault::NoSchema(version) => write!(f, "version {version} has no schema"),
            Fault::NotASchema { field, version } => write!(f, "the schema of {field} in {version} is not an object"),
            Fault::Value { keyword, field, value } => write!(f, "{keyword} of {field} cannot be {value}"),
        }
    }
}
