//! What the server says about a field that it refuses.

use std::fmt;

use serde_json::Value;

use super::gotext;
use super::path::Path;
use crate::Step;

/// The kinds of refusal, with the names that the server's `causes` use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A value is missing.
    Required,
    /// A value that a keyword or a rule refuses.
    Invalid,
    /// A value that an `enum` does not have.
    NotSupported,
    /// An item that a set or a list of type `map` has twice.
    Duplicate,
    /// A string beyond its `maxLength`.
    TooLong,
    /// A list or a map with too many items.
    TooMany,
    /// A value of another type.
    TypeInvalid,
    /// A field that may not be there.
    Forbidden,
    /// The server could not judge the value.
    Internal,
}

impl Kind {
    /// `FieldValueRequired` and the like, as in a status's `details.causes[].reason`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::Internal => "InternalError",
        }
    }

    /// As the server begins its text.
    pub fn words(self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Duplicate => "Duplicate value",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Forbidden => "Forbidden",
            Self::Internal => "Internal error",
        }
    }
}

/// One refusal. Its `Display` is the server's text: `spec.x: Invalid value: "abc": spec.x in body should match '^a$'`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// As the server prints it: `spec.list[0].x`, or `<nil>` for the object itself.
    pub path: String,
    /// Where the refused value is, as steps: keys may hold dots and brackets, so that the text does not always tell. It is
    /// known for `allOf` and its kin, too, whose `path` is `<nil>`. None where the error is about no value.
    pub at: Option<Vec<Step>>,
    /// What kind of refusal it is.
    pub kind: Kind,
    /// What the server shows as the value: for a wrong type, the name of the type that was found.
    pub bad_value: Option<Value>,
    /// The rest of the server's text.
    pub detail: String,
}

impl FieldError {
    /// An error about the value at `path`.
    pub(super) fn new(path: &Path, kind: Kind, bad_value: Option<Value>, detail: String) -> Self {
        Self { at: Some(path.steps()), path: path.field(), kind, bad_value, detail }
    }

    /// An error of the OpenAPI layer, whose names may begin with a dot and whose root has no name.
    pub(super) fn named(name: &str, kind: Kind, bad_value: Option<Value>, detail: String) -> Self {
        let path = if name.is_empty() || name == "." { "<nil>" } else { name.strip_prefix('.').unwrap_or(name) };
        Self { at: None, path: path.to_owned(), kind, bad_value, detail }
    }

    /// The text without the path, as in a status's `details.causes[].message`.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if !matches!(self.kind, Kind::Required | Kind::Forbidden | Kind::TooLong | Kind::Internal)
            && let Some(value) = &self.bad_value
        {
            text.push_str(": ");
            match value {
                Value::String(s) => text.push_str(&gotext::quote(s)),
                Value::Number(_) | Value::Bool(_) => text.push_str(&gotext::plain(value)),
                other => text.push_str(&gotext::json(other)),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

/// A question that this validator leaves open: a pattern or rule that it cannot evaluate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// Where in the object.
    pub path: String,
    /// The pattern or rule, as written.
    pub rule: String,
    /// Why it could not be evaluated.
    pub reason: String,
}
