//! Where the errors of a CRD are collected, and how their values are shown.

use serde_json::Value;

use crate::error::{FieldError, Kind, Undecided};
use crate::gotext;
use crate::path::Path;

/// A step from the root of a CRD, as the server counts: what is common to all versions stands at the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A field, or the key of a map.
    Key(String),
    /// An item, counted from 0.
    Index(usize),
}

/// One thing that the server refuses in a CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// What the server says.
    pub error: FieldError,
    /// Where, as far as it is a part of the CRD.
    pub at: Vec<Step>,
}

impl Refusal {
    /// An error about something at or below `path`.
    pub(super) fn of(path: &Path, error: FieldError) -> Self {
        let mut at = Vec::new();
        steps(path, &mut at);
        Refusal { error, at }
    }
}

/// Refusals, in the order in which they are found.
#[derive(Debug, Default)]
pub struct Errors {
    pub list: Vec<Refusal>,
    pub undecided: Vec<Undecided>,
}

fn steps(path: &Path, out: &mut Vec<Step>) {
    match path {
        Path::Root => {}
        Path::Name(parent, name) => {
            steps(parent, out);
            // Some names are two steps at once.
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
    }
}

impl Errors {
    fn push(&mut self, path: &Path, kind: Kind, bad_value: Option<Value>, detail: impl Into<String>) {
        self.add(path, FieldError { at: None, path: path.field(), kind, bad_value, detail: detail.into() });
    }

    /// An error about something at or below `path`.
    pub fn add(&mut self, path: &Path, error: FieldError) {
        self.list.push(Refusal::of(path, error));
    }

    pub fn append(&mut self, other: Errors) {
        self.list.extend(other.list);
        self.undecided.extend(other.undecided);
    }

    /// What nobody here can decide.
    pub fn open(&mut self, path: &Path, rule: &str, reason: &str) {
        self.undecided.push(Undecided { path: path.field(), rule: rule.to_owned(), reason: reason.to_owned() });
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

    /// An invalid value that the server shows as `shown`.
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

    /// A value that is none of those that there are.
    pub fn unsupported(&mut self, path: &Path, value: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|value| gotext::quote(value)).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.push(path, Kind::NotSupported, Some(value.into()), detail);
    }

    /// Complaints about one value, joined to one error.
    pub fn complaints(&mut self, path: &Path, value: &str, complaints: &[String]) {
        if !complaints.is_empty() {
            self.invalid(path, value, complaints.join(","));
        }
    }
}
