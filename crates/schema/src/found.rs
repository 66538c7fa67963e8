//! The result of validating one value against one schema node: errors and a score.
//!
//! The score is the server's count of passed checks. When no branch of an `anyOf` or `oneOf` matches, the server
//! reports the branch with the highest score.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use super::error::FieldError;

/// Up to this many errors are compared with each other; beyond that, their hashes are.
const FEW: usize = 16;

/// The maximum number of bytes of a text that are hashed.
const HASHED: usize = 1024;

type Hashes = BuildHasherDefault<DefaultHasher>;

/// Errors in the order found, without repeated texts.
#[derive(Debug, Default)]
pub struct FieldErrors {
    pub errors: Vec<FieldError>,
    pub matches: usize,
    /// The indices of the errors by the hash of their texts: a value can have a hundred thousand errors.
    known: HashMap<u64, usize, Hashes>,
}

impl FieldErrors {
    pub fn add(&mut self, error: FieldError) {
        if self.errors.len() < FEW {
            if !self.errors.iter().any(|known| same_text(known, &error)) {
                self.errors.push(error);
            }
            return;
        }
        for at in self.known.len()..self.errors.len().min(FEW) {
            self.known.insert(hash(&self.errors[at]), at);
        }
        let hash = hash(&error);
        let is_known = match self.known.get(&hash) {
            None => false,
            Some(at) if same_text(&self.errors[*at], &error) => true,
            // A different text with the same hash.
            Some(_) => self.errors.iter().any(|known| same_text(known, &error)),
        };
        if !is_known {
            self.known.entry(hash).or_insert(self.errors.len());
            self.errors.push(error);
        }
    }

    pub fn clear(&mut self) {
        self.errors.clear();
        self.known.clear();
    }

    pub fn merge(&mut self, other: FieldErrors) {
        self.matches += other.matches;
        if self.errors.is_empty() {
            (self.errors, self.known) = (other.errors, other.known);
            return;
        }
        for error in other.errors {
            self.add(error);
        }
    }

    pub fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }
}

fn hash(error: &FieldError) -> u64 {
    // Many errors can share one long text: the values of an `enum`.
    let start = error.detail.as_bytes().get(..HASHED.min(error.detail.len()));
    Hashes::default().hash_one((error.kind, &error.path, error.detail.len(), start))
}

/// The server keeps the first of two errors with the same text. For the kinds whose text the server rewrites in the
/// response, the text contains only the path and the bound, so comparing the remaining fields gives the same result.
fn same_text(a: &FieldError, b: &FieldError) -> bool {
    let is_same = |a: &Arc<str>, b: &Arc<str>| Arc::ptr_eq(a, b) || a == b;
    a.kind == b.kind && a.path == b.path && is_same(&a.detail, &b.detail)
}

#[cfg(test)]
mod tests {
    use super::super::error::FieldErrorKind;
    use super::super::path::LinkedPath;
    use super::*;

    fn error(detail: usize) -> FieldError {
        FieldError::keyword(
            &LinkedPath::Name(&LinkedPath::Root, "a"),
            "pattern",
            FieldErrorKind::Invalid,
            None,
            detail.to_string(),
        )
    }

    #[test]
    fn equal_errors_are_kept_once_and_in_order() {
        for many in [3, FEW - 1, FEW, FEW + 1, 100] {
            let mut found = FieldErrors::default();
            (0..many).chain(0..many).for_each(|detail| found.add(error(detail)));
            let mut merged = FieldErrors::default();
            merged.add(error(many + 1));
            merged.merge(found);
            merged.merge(FieldErrors { errors: vec![error(0), error(many)], ..FieldErrors::default() });
            let wanted: Vec<_> = std::iter::once(many + 1).chain(0..=many).map(error).collect();
            assert_eq!(merged.errors, wanted, "{many}");
        }
    }
}
