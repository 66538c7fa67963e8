//! Collects the errors of a CRD and formats their values.

use serde_json::Value;

use super::{CrdValidationResult, DroppedField};
use crate::Step;
use crate::error::{FieldError, FieldErrorKind, RefusedBy, Undecided};
use crate::path::LinkedPath;
use crate::typed;
use gantry_k8s_cel::{KubernetesRelease, gotext};

/// An error about a value at or below `path`, with a path as the server writes it: parts common to all versions are at
/// the top level.
pub(super) fn refusal(path: &LinkedPath, error: FieldError) -> FieldError {
    let mut at = Vec::new();
    steps(path, &mut at);
    FieldError { at, by: RefusedBy::Definition, ..error }
}

/// Errors in the order in which they are found.
#[derive(Debug, Default)]
pub struct Errors {
    pub list: Vec<FieldError>,
    pub undecided: Vec<Undecided>,
    pub dropped: Vec<DroppedField>,
}

/// An error about the value at `path`.
pub(super) fn error(path: &LinkedPath, kind: FieldErrorKind, bad_value: Option<Value>, detail: String) -> FieldError {
    let at = Vec::new();
    refusal(
        path,
        FieldError { at, path: path.field(), by: RefusedBy::Definition, kind, bad_value, detail: detail.into() },
    )
}

fn steps(path: &LinkedPath, out: &mut Vec<Step>) {
    match path {
        LinkedPath::Root => {}
        LinkedPath::Name(parent, name) => {
            steps(parent, out);
            // Some names stand for two steps.
            out.extend(name.split('.').map(|part| Step::Key(part.to_owned())));
        }
        LinkedPath::Key(parent, key) => {
            steps(parent, out);
            out.push(Step::Key((*key).to_owned()));
        }
        LinkedPath::Index(parent, index) => {
            steps(parent, out);
            out.push(Step::Index(*index));
        }
        LinkedPath::Branch(of, ..) => steps(of, out),
    }
}

impl Errors {
    pub fn into_result(self) -> CrdValidationResult {
        CrdValidationResult { refusals: self.list, undecided: self.undecided, dropped: self.dropped }
    }

    fn push(&mut self, path: &LinkedPath, kind: FieldErrorKind, bad_value: Option<Value>, detail: impl Into<String>) {
        self.list.push(error(path, kind, bad_value, detail.into()));
    }

    /// Adds an error about a value at or below `path`.
    pub fn add(&mut self, path: &LinkedPath, error: FieldError) {
        self.list.push(refusal(path, error));
    }

    pub fn append(&mut self, other: Errors) {
        self.list.extend(other.list);
        self.undecided.extend(other.undecided);
    }

    /// Records a question that cannot be decided here.
    pub fn open(&mut self, path: &LinkedPath, rule: &str, reason: &str) {
        let mut at = Vec::new();
        steps(path, &mut at);
        self.undecided.push(Undecided { path: path.field(), at, rule: rule.to_owned(), reason: reason.to_owned() });
    }

    /// Records the fields that no known release has as questions: a newer one can have them.
    pub fn open_unknown_fields(&mut self, crd: &Value, release: KubernetesRelease) {
        for field in typed::undeclared_crd_fields(crd) {
            let newest = KubernetesRelease::NEWEST_KNOWN;
            let reason = format!("unknown in {newest}, the newest release known here, but the server has {release}");
            self.undecided.push(Undecided { path: field.path, at: field.at, rule: String::new(), reason });
        }
    }

    pub fn required(&mut self, path: &LinkedPath, detail: impl Into<String>) {
        self.push(path, FieldErrorKind::Required, None, detail);
    }

    pub fn forbidden(&mut self, path: &LinkedPath, detail: impl Into<String>) {
        self.push(path, FieldErrorKind::Forbidden, None, detail);
    }

    pub fn invalid(&mut self, path: &LinkedPath, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(path, FieldErrorKind::Invalid, Some(value.into()), detail);
    }

    /// Adds an error for an invalid value that the server prints as `shown`.
    pub fn invalid_as(&mut self, path: &LinkedPath, shown: &str, detail: &str) {
        self.push(path, FieldErrorKind::Invalid, None, format!("{shown}: {detail}"));
    }

    pub fn duplicate(&mut self, path: &LinkedPath, value: impl Into<Value>) {
        self.push(path, FieldErrorKind::Duplicate, Some(value.into()), "");
    }

    pub fn too_many(&mut self, path: &LinkedPath, count: usize, most: usize) {
        self.push(path, FieldErrorKind::TooMany, Some(count.into()), format!("must have at most {most} items"));
    }

    pub fn internal(&mut self, path: &LinkedPath, detail: impl Into<String>) {
        self.push(path, FieldErrorKind::Internal, None, detail);
    }

    /// Adds an error for a value that is not in the list of supported values.
    pub fn unsupported(&mut self, path: &LinkedPath, value: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|value| gotext::quote(value)).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.push(path, FieldErrorKind::NotSupported, Some(value.into()), detail);
    }

    /// Adds one error for all complaints about a value.
    pub fn complaints(&mut self, path: &LinkedPath, value: &str, complaints: &[String]) {
        if !complaints.is_empty() {
            self.invalid(path, value, complaints.join(","));
        }
    }
}
