//! Collects the errors of a CRD and formats their values.

use serde_json::Value;

use crate::Step;
use crate::error::{FieldError, Kind, RefusedBy, Undecided};
use crate::gotext;
use crate::path::Path;

/// An error about a value at or below `path`, with a path as the server writes it: parts common to all versions are at
/// the top level.
pub(super) fn refusal(path: &Path, error: FieldError) -> FieldError {
    let mut at = Vec::new();
    steps(path, &mut at);
    FieldError { at, by: RefusedBy::Definition, ..error }
}

/// Errors in the order in which they are found.
#[derive(Debug, Default)]
pub struct Errors {
    pub list: Vec<FieldError>,
    pub undecided: Vec<Undecided>,
}

/// An error about the value at `path`.
pub(super) fn error(path: &Path, kind: Kind, bad_value: Option<Value>, detail: String) -> FieldError {
    let at = Vec::new();
    refusal(path, FieldError { at, path: path.field(), by: RefusedBy::Definition, kind, bad_value, detail })
}

fn steps(path: &Path, out: &mut Vec<Step>) {
    match path {
        Path::Root => {}
        Path::Name(parent, name) => {
            steps(parent, out);
            // Some names stand for two steps.
            out.extend(name.split('.').map(|part| Step::Key(part.to_owned())));
        }
        Path::Key(parent, key) => {
            steps(parent, out);
            out.push(Step::Key((*key).to_owned()));
        }
        Path::Index(parent, index) => {
            steps(parent, out);
            out.push(Step::Index(*index));
        }
        Path::Branch(of, ..) => steps(of, out),
    }
}

impl Errors {
    fn push(&mut self, path: &Path, kind: Kind, bad_value: Option<Value>, detail: impl Into<String>) {
        self.list.push(error(path, kind, bad_value, detail.into()));
    }

    /// Adds an error about a value at or below `path`.
    pub fn add(&mut self, path: &Path, error: FieldError) {
        self.list.push(refusal(path, error));
    }

    pub fn append(&mut self, other: Errors) {
        self.list.extend(other.list);
        self.undecided.extend(other.undecided);
    }

    /// Records a question that cannot be decided here.
    pub fn open(&mut self, path: &Path, rule: &str, reason: &str) {
        let mut at = Vec::new();
        steps(path, &mut at);
        self.undecided.push(Undecided { path: path.field(), at, rule: rule.to_owned(), reason: reason.to_owned() });
    }

    pub fn required(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(path, Kind::Required, None, detail);
    }

    pub fn forbidden(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(path, Kind::Forbidden, None, detail);
    }

    pub fn invalid(&mut self, path: &Path, value: impl Into<Value>, detail: impl Into<String>) {
        self.push(path, Kind::Invalid, Some(value.into()), detail);
    }

    /// Adds an error for an invalid value that the server prints as `shown`.
    pub fn invalid_as(&mut self, path: &Path, shown: &str, detail: &str) {
        self.push(path, Kind::Invalid, None, format!("{shown}: {detail}"));
    }

    pub fn duplicate(&mut self, path: &Path, value: impl Into<Value>) {
        self.push(path, Kind::Duplicate, Some(value.into()), "");
    }

    pub fn too_many(&mut self, path: &Path, count: usize, most: usize) {
        self.push(path, Kind::TooMany, Some(count.into()), format!("must have at most {most} items"));
    }

    pub fn internal(&mut self, path: &Path, detail: impl Into<String>) {
        self.push(path, Kind::Internal, None, detail);
    }

    /// Adds an error for a value that is not in the list of supported values.
    pub fn unsupported(&mut self, path: &Path, value: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|value| gotext::quote(value)).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.push(path, Kind::NotSupported, Some(value.into()), detail);
    }

    /// Adds one error for all complaints about a value.
    pub fn complaints(&mut self, path: &Path, value: &str, complaints: &[String]) {
        if !complaints.is_empty() {
            self.invalid(path, value, complaints.join(","));
        }
    }
}
