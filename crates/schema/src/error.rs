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

/// What refuses a value.
#[derive(Clone, Debug, PartialEq)]
pub enum RefusedBy {
    /// A keyword, by the steps from the root of the schema: `properties`, `size`, `maximum`. A rule is named by its index:
    /// …, `x-kubernetes-validations`, 2.
    Keyword(Vec<Step>),
    /// What the API asks of metadata and of embedded resources, in words that show no value of the object.
    ObjectMeta(String),
    /// The scale subresource, which reads the value: what it has to be.
    Scale(&'static str),
    /// What the API asks of a CustomResourceDefinition.
    Definition,
    /// Nothing: the server adds that it did not evaluate the rules, since other errors come first.
    RulesNotEvaluated,
}

/// One refusal. Its `Display` is the server's text: `spec.x: Invalid value: "abc": spec.x in body should match '^a$'`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// As the server prints it: `spec.list[0].x`, or `<nil>` for the object itself.
    pub path: String,
    /// The steps to the refused value, or to the field that is missing. The text does not always show it: keys may have dots
    /// and brackets, and errors of `allOf` and its kin have the path `<nil>`.
    pub at: Vec<Step>,
    /// What refuses it.
    pub by: RefusedBy,
    /// What kind of refusal it is.
    pub kind: Kind,
    /// What the server shows as the value: for a wrong type, the name of the type that was found.
    pub bad_value: Option<Value>,
    /// The rest of the server's text.
    pub detail: String,
}

impl FieldError {
    /// An error about the value at `path`, by a keyword of the schema node there.
    pub(super) fn keyword(path: &Path, keyword: &str, kind: Kind, bad_value: Option<Value>, detail: String) -> Self {
        Self {
            at: path.steps(),
            path: path.field(),
            by: RefusedBy::Keyword(path.keyword(keyword)),
            kind,
            bad_value,
            detail,
        }
    }

    /// The same from the OpenAPI layer, whose paths have no brackets around keys.
    pub(super) fn openapi(path: &Path, keyword: &str, kind: Kind, bad_value: Option<Value>, detail: String) -> Self {
        Self { path: named(&path.openapi()), ..Self::keyword(path, keyword, kind, bad_value, detail) }
    }

    /// An error that the server attributes to no field.
    pub(super) fn unplaced(path: &Path, keyword: &str, detail: String) -> Self {
        let bad_value = Some(Value::String(String::new()));
        Self { path: "<nil>".to_owned(), ..Self::keyword(path, keyword, Kind::Invalid, bad_value, detail) }
    }

    /// A field that is missing in the object at `path`.
    pub(super) fn missing(path: &Path, name: &str) -> Self {
        let by = RefusedBy::Keyword(path.keyword("required"));
        let (at, text) = (Path::Name(path, name).steps(), named(&format!("{}.{name}", path.openapi())));
        Self { at, path: text, by, kind: Kind::Required, bad_value: None, detail: String::new() }
    }

    /// An error about the metadata, kind or version of an object; `detail` shows no value of it.
    pub(super) fn object_meta(path: &Path, kind: Kind, bad_value: Option<Value>, detail: String) -> Self {
        let by = RefusedBy::ObjectMeta(detail.clone());
        Self { at: path.steps(), path: path.field(), by, kind, bad_value, detail }
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

/// The OpenAPI layer's names may begin with a dot, and its root has none.
fn named(path: &str) -> String {
    let path = if path.is_empty() || path == "." { "<nil>" } else { path.strip_prefix('.').unwrap_or(path) };
    path.to_owned()
}

/// A question that this validator leaves open: a pattern or rule that it cannot evaluate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// Where in the object.
    pub path: String,
    /// The steps to it.
    pub at: Vec<Step>,
    /// The pattern or rule, as written.
    pub rule: String,
    /// Why it could not be evaluated.
    pub reason: String,
}
