//! A document as nodes in one flat list.

use std::borrow::Cow;

use super::Error;
use super::limits::MAX_DEPTH;

/// A document that was read but not expanded: its nodes in the order of the text, each collection followed by its
/// children. It takes a fraction of a tree's memory and gives JSON, a tree, or single places.
pub struct Document<'t> {
    pub(super) nodes: Vec<Raw<'t>>,
    /// The bytes of all scalars as they are written.
    pub(super) written: usize,
}

#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct Raw<'t> {
    pub kind: Kind<'t>,
    pub at: Place,
    /// The byte after the node's text.
    pub end: u32,
}

/// Where a node starts: line and column from 0, and the byte.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct Place {
    pub line: u32,
    pub column: u32,
    pub start: u32,
}

#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) enum Kind<'t> {
    Scalar {
        /// A part of the text where nothing had to be unfolded or unescaped.
        value: Cow<'t, str>,
        tag: Option<Box<str>>,
        plain: bool,
    },
    /// `next` is the index of the first node behind the collection.
    Sequence {
        next: u32,
    },
    Mapping {
        next: u32,
    },
    Alias {
        target: u32,
    },
}

impl<'t> Raw<'t> {
    /// A scalar without a tag.
    pub fn scalar(value: Cow<'t, str>, plain: bool, at: Place, end: u32) -> Self {
        Raw { kind: Kind::Scalar { value, tag: None, plain }, at, end }
    }

    /// What a scalar says; nothing for all else.
    pub fn text(&self) -> &str {
        match &self.kind {
            Kind::Scalar { value, .. } => value,
            _ => "",
        }
    }
}

impl<'t> Document<'t> {
    /// `None` where there are no nodes.
    pub(super) fn of(nodes: Vec<Raw<'t>>) -> Option<Self> {
        let written = nodes.iter().map(|raw| raw.text().len()).sum();
        (!nodes.is_empty()).then_some(Document { nodes, written })
    }

    /// The index of the node that follows `index` and everything inside it.
    pub(super) fn next(&self, index: u32) -> u32 {
        match self.nodes[index as usize].kind {
            Kind::Sequence { next } | Kind::Mapping { next } => next,
            _ => index + 1,
        }
    }
}

pub(super) fn too_deep() -> String {
    format!("the document nests more than {MAX_DEPTH} levels deep")
}

pub(super) fn error_at(at: Place, message: String) -> Error {
    Error { line: at.line as usize + 1, column: at.column as usize + 1, message }
}
