//! What validating one value against one schema node yields: errors, and a score.
//!
//! The score is the server's count of passed checks. It decides which branch of an `anyOf` or `oneOf` that nothing
//! matches is quoted in the answer.

use serde_json::Value;

use super::error::{FieldError, Kind};

/// Errors in the order found, each text once.
#[derive(Debug, Default)]
pub struct Found {
    pub errors: Vec<FieldError>,
    pub matches: usize,
}

impl Found {
    pub fn add(&mut self, error: FieldError) {
        if !self.errors.iter().any(|known| same_text(known, &error)) {
            self.errors.push(error);
        }
    }

    /// Adds an error that the server attributes to no field.
    pub fn add_unplaced(&mut self, detail: String) {
        let bad_value = Some(Value::String(String::new()));
        self.add(FieldError { path: "<nil>".to_owned(), kind: Kind::Invalid, bad_value, detail });
    }

    pub fn merge(&mut self, other: Found) {
        self.matches += other.matches;
        for error in other.errors {
            self.add(error);
        }
    }

    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

/// The server keeps the first of two errors with the same text. The texts of the kinds that it rewrites for the answer
/// hold nothing but the path and the bound, so that comparing what is left of them is the same.
fn same_text(a: &FieldError, b: &FieldError) -> bool {
    a.kind == b.kind && a.path == b.path && a.detail == b.detail
}
