//! A document as a flat list of nodes.

use std::borrow::Cow;

use super::YamlError;
use super::limits::MAX_DEPTH;

/// A parsed document whose aliases are not expanded: its nodes in text order, each collection followed by its
/// children. It takes a fraction of the memory of a tree, and can be converted to JSON or to a tree, or searched for
/// positions.
pub struct YamlDocument<'t> {
    pub(super) nodes: Vec<RawYamlNode<'t>>,
    /// The total size of all scalars in bytes, before aliases are expanded.
    pub(super) written: usize,
}

#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct RawYamlNode<'t> {
    pub kind: YamlNodeKind<'t>,
    pub at: NodeStart,
    /// The offset after the node's text.
    pub end: u32,
}

/// The start of a node: line and column from 0, and the byte offset.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) struct NodeStart {
    pub line: u32,
    pub column: u32,
    pub start: u32,
}

#[cfg_attr(test, derive(Debug, PartialEq))]
pub(super) enum YamlNodeKind<'t> {
    Scalar {
        /// A slice of the text if it needed no unfolding or unescaping.
        value: Cow<'t, str>,
        tag: Option<Box<str>>,
        plain: bool,
    },
    /// `next` is the index of the first node after the collection.
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

impl<'t> RawYamlNode<'t> {
    /// A scalar without a tag.
    pub fn scalar(value: Cow<'t, str>, plain: bool, at: NodeStart, end: u32) -> Self {
        RawYamlNode { kind: YamlNodeKind::Scalar { value, tag: None, plain }, at, end }
    }

    /// The value of a scalar; empty for other nodes.
    pub fn text(&self) -> &str {
        match &self.kind {
            YamlNodeKind::Scalar { value, .. } => value,
            _ => "",
        }
    }
}

impl<'t> YamlDocument<'t> {
    /// `None` if there are no nodes.
    pub(super) fn from_nodes(nodes: Vec<RawYamlNode<'t>>) -> Option<Self> {
        let written = nodes.iter().map(|raw| raw.text().len()).sum();
        (!nodes.is_empty()).then_some(YamlDocument { nodes, written })
    }

    /// The index of the first node after `index` and its descendants.
    pub(super) fn next(&self, index: u32) -> u32 {
        match self.nodes[index as usize].kind {
            YamlNodeKind::Sequence { next } | YamlNodeKind::Mapping { next } => next,
            _ => index + 1,
        }
    }
}

pub(super) fn too_deep() -> String {
    format!("the document nests more than {MAX_DEPTH} levels deep")
}

pub(super) fn error_at(at: NodeStart, message: String) -> YamlError {
    YamlError { line: at.line as usize + 1, column: at.column as usize + 1, message }
}
