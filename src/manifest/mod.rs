//! Manifests: what `-f` names, as objects that know where they stand.
//!
//! A document is read once into compact JSON. Line and column of a value inside it are found only when a finding
//! needs them, by reading that one document again ([`Spans`]): findings are few and documents are many.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::problem::Location;
use crate::resource::{ObjectRef, RawObject, Step};

/// A file (or standard input) that was read, kept for excerpts.
pub struct Source {
    /// The path as the user gave it, or as it was found below a directory that the user gave; `-` for standard input.
    pub name: String,
    pub text: String,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Source({}, {} bytes)", self.name, self.text.len())
    }
}

/// Where an object was written.
#[derive(Debug, Clone)]
pub struct Origin {
    pub source: Arc<Source>,
    /// Counts from 1 within the file.
    pub document: usize,
    /// The line on which the object starts, from 1.
    pub line: usize,
    /// The bytes of the document in `source.text`.
    pub bytes: Range<usize>,
    /// The steps from the document's root to the object: empty, or `items`, N for a member of a List.
    pub within: Vec<Step>,
}

impl Origin {
    pub fn location(&self) -> Location {
        Location { file: self.source.name.clone(), line: self.line, column: 0 }
    }
}

/// An object that is to be deployed.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub object: ObjectRef,
    pub raw: RawObject,
    pub origin: Origin,
}
