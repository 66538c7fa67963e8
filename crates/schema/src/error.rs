//! The server's errors about single fields.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::path::LinkedPath;
use crate::Step;
use gantry_k8s_cel::gotext;

/// The kinds of errors, named as in the server's `causes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FieldErrorKind {
    /// A required value is missing.
    Required,
    /// A keyword or rule rejects the value.
    Invalid,
    /// The value is not in the `enum`.
    NotSupported,
    /// An item occurs twice in a set or in a list of type `map`.
    Duplicate,
    /// A string is longer than its `maxLength`.
    TooLong,
    /// A list or map has too many items.
    TooMany,
    /// The value has the wrong type.
    TypeInvalid,
    /// The field is not allowed.
    Forbidden,
    /// The server could not check the value.
    Internal,
}

impl FieldErrorKind {
    /// The value of `details.causes[].reason` in a status, such as `FieldValueRequired`.
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

    /// The words that begin the server's message, such as `Required value`.
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

/// The source of an error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RefusedBy {
    /// A keyword, as the path from the root of the schema: `properties`, `size`, `maximum`. The path of a rule ends
    /// with its index: …, `x-kubernetes-validations`, 2.
    Keyword(Vec<Step>),
    /// A rule that cannot be evaluated on the value, as the path of the rule. The `detail` is the evaluation error.
    Evaluation(Vec<Step>),
    /// A requirement on metadata or on embedded resources, in words that contain no value of the object.
    ObjectMeta(String),
    /// The scale subresource, which reads the value; the string is its requirement.
    Scale(&'static str),
    /// A requirement on a CustomResourceDefinition.
    Definition,
    /// Not a requirement: the server adds that it did not evaluate the rules because of the other errors.
    RulesNotEvaluated,
}

/// Whether these steps from the root of a schema lead to `x-kubernetes-validations` or to one of its rules.
pub fn is_path_of_rule(at: &[Step]) -> bool {
    at.iter().rev().take(2).any(|step| *step == Step::from("x-kubernetes-validations"))
}

/// One error. Its `Display` is the server's text: `spec.x: Invalid value: "abc": spec.x in body should match '^a$'`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FieldError {
    /// The path as the server prints it: `spec.list[0].x`, or `<nil>` for the object itself.
    pub path: String,
    /// The path as steps, to the rejected value or to the missing field. It cannot always be parsed from `path`: keys
    /// can contain dots and brackets, and errors of `allOf`, `anyOf`, `oneOf` and `not` have the path `<nil>`.
    pub at: Vec<Step>,
    /// The source of the error.
    pub by: RefusedBy,
    /// The kind of error.
    pub kind: FieldErrorKind,
    /// The value that the server prints. For a type error it is the name of the actual type.
    pub bad_value: Option<Value>,
    /// The rest of the server's text.
    pub detail: Arc<str>,
}

impl FieldError {
    /// An error about the value at `path`, reported by a keyword of its schema node.
    pub(super) fn keyword(
        path: &LinkedPath,
        keyword: &str,
        kind: FieldErrorKind,
        bad_value: Option<Value>,
        detail: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            at: path.steps(),
            path: path.field(),
            by: RefusedBy::Keyword(path.keyword(keyword)),
            kind,
            bad_value,
            detail: detail.into(),
        }
    }

    /// The same error from the OpenAPI layer, which writes keys in paths without brackets.
    pub(super) fn openapi(
        path: &LinkedPath,
        keyword: &str,
        kind: FieldErrorKind,
        bad_value: Option<Value>,
        detail: impl Into<Arc<str>>,
    ) -> Self {
        Self { path: named(&path.openapi()), ..Self::keyword(path, keyword, kind, bad_value, detail) }
    }

    /// An error that the server does not attribute to a field.
    pub(super) fn unplaced(path: &LinkedPath, keyword: &str, detail: String) -> Self {
        let bad_value = Some(Value::String(String::new()));
        Self { path: "<nil>".to_owned(), ..Self::keyword(path, keyword, FieldErrorKind::Invalid, bad_value, detail) }
    }

    /// An error for a field that is missing in the object at `path`.
    pub(super) fn missing(path: &LinkedPath, name: &str) -> Self {
        let by = RefusedBy::Keyword(path.keyword("required"));
        let (at, text) = (LinkedPath::Name(path, name).steps(), named(&format!("{}.{name}", path.openapi())));
        Self { at, path: text, by, kind: FieldErrorKind::Required, bad_value: None, detail: "".into() }
    }

    /// An error about the metadata, kind or version of an object; `detail` contains no value of the object.
    pub(super) fn object_meta(
        path: &LinkedPath,
        kind: FieldErrorKind,
        bad_value: Option<Value>,
        detail: String,
    ) -> Self {
        let by = RefusedBy::ObjectMeta(detail.clone());
        Self { at: path.steps(), path: path.field(), by, kind, bad_value, detail: detail.into() }
    }

    /// The text without the path, as in `details.causes[].message` of a status.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if !matches!(
            self.kind,
            FieldErrorKind::Required | FieldErrorKind::Forbidden | FieldErrorKind::TooLong | FieldErrorKind::Internal
        ) && let Some(value) = &self.bad_value
        {
            text.push_str(": ");
            match value {
                Value::String(s) => text.push_str(&gotext::quote(s)),
                Value::Number(_) | Value::Bool(_) => text.push_str(&gotext::format_v(value)),
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

/// Paths of the OpenAPI layer can begin with a dot, and the path of its root is empty.
fn named(path: &str) -> String {
    let path = if path.is_empty() || path == "." { "<nil>" } else { path.strip_prefix('.').unwrap_or(path) };
    path.to_owned()
}

/// Something this validator could not decide: a pattern or rule that it cannot evaluate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Undecided {
    /// The path in the object.
    pub path: String,
    /// The path as steps.
    pub at: Vec<Step>,
    /// The pattern or rule, as written.
    pub rule: String,
    /// The reason it could not be evaluated.
    pub reason: String,
}
