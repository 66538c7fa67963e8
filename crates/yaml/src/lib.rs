//! YAML as the Kubernetes ecosystem reads it, with the position of every value.
//!
//! kubectl, kapp and every Go tool read YAML 1.1 as go-yaml does (`yes` is a boolean, `0777` is 511, merge keys are
//! expanded). A deploy tool that reads a manifest differently deploys something else, so this crate reads it the same
//! way.

mod block;
mod compose;
mod decode;
mod document;
mod flow;
mod guard;
mod json;
mod libyaml;
mod limits;
mod resolve;
pub mod write;

use std::ops::Range;

use serde_json::Value;

pub use decode::KnownCollections;
pub use document::YamlDocument;
pub use json::explain_json;
pub use limits::{MAX_BYTES, MAX_DEPTH};

/// The position of a node in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// The line of the first character, from 1.
    pub line: usize,
    /// The column of the first character, from 1, in characters.
    pub column: usize,
    /// The byte range of the node's own text within the text that was parsed.
    pub bytes: Range<usize>,
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct YamlNode {
    /// The position of the value.
    pub span: Span,
    /// The value.
    pub data: Data,
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// A null, boolean, number or string.
    Scalar(Value),
    /// A list.
    Sequence(Vec<YamlNode>),
    /// A mapping, in text order.
    Mapping(Vec<MappingEntry>),
}

/// One entry of a mapping. Merge keys are already expanded; their entries keep their own positions.
#[derive(Debug, Clone, PartialEq)]
pub struct MappingEntry {
    /// The key as a string, because JSON has no other keys.
    pub key: String,
    /// The position of the key.
    pub key_span: Span,
    /// The value for the key.
    pub value: YamlNode,
}

/// One step of a path into a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum YamlStep<'a> {
    /// The value of a mapping key.
    Key(&'a str),
    /// An item of a sequence, counted from 0.
    Index(usize),
}

impl<'a> From<&'a str> for YamlStep<'a> {
    fn from(key: &'a str) -> Self {
        YamlStep::Key(key)
    }
}

impl From<usize> for YamlStep<'_> {
    fn from(index: usize) -> Self {
        YamlStep::Index(index)
    }
}

/// The reason a document could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
#[non_exhaustive]
pub struct YamlError {
    /// The line of the error, from 1.
    pub line: usize,
    /// The column of the error, from 1, in characters.
    pub column: usize,
    /// A message for the user.
    pub message: String,
}

/// A key that occurs twice in a mapping. As in kubectl, the last value wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The key as a string.
    pub key: String,
    /// The position of the first occurrence.
    pub first: Span,
    /// The position of the repeated occurrence.
    pub again: Span,
}

/// A document as compact JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonDocument {
    /// The JSON without whitespace.
    pub text: String,
    /// The duplicate keys, in text order.
    pub duplicates: Vec<Duplicate>,
}

/// Parses a YAML document (JSON is YAML). `text` must contain exactly one document; line numbers are relative to it.
/// `None` if the document is empty or contains only comments.
pub fn parse(text: &str) -> Result<Option<YamlNode>, YamlError> {
    Ok(parse_with_duplicates(text)?.map(|(node, _)| node))
}

/// [`parse`], which also returns the duplicate keys.
pub fn parse_with_duplicates(text: &str) -> Result<Option<(YamlNode, Vec<Duplicate>)>, YamlError> {
    let read = YamlDocument::read(text).and_then(|document| document.map(|document| document.tree()).transpose());
    read.or_else(|error| match json::read(text) {
        Some(value) => Ok(Some((YamlNode::from_json(value), Vec::new()))),
        None => Err(error),
    })
}

/// Converts a YAML document to compact JSON: the same values as [`parse`] in the same order, without building a tree.
pub fn to_json(text: &str) -> Result<Option<JsonDocument>, YamlError> {
    let read = YamlDocument::read(text).and_then(|document| document.map(|document| document.json()).transpose());
    read.or_else(|error| json_only(text).map(Some).ok_or(error))
}

/// Converts a text that is JSON but not YAML: a few things are valid JSON only, such as `"\ud83d\ude00"`.
pub fn json_only(text: &str) -> Option<JsonDocument> {
    json::read(text).map(|value| JsonDocument { text: value.to_string(), duplicates: Vec::new() })
}

impl YamlNode {
    /// A tree without positions: every node is at the start of the text.
    fn from_json(value: Value) -> YamlNode {
        let span = Span { line: 1, column: 1, bytes: 0..0 };
        let data = match value {
            Value::Array(items) => Data::Sequence(items.into_iter().map(YamlNode::from_json).collect()),
            Value::Object(map) => Data::Mapping(
                map.into_iter()
                    .map(|(key, value)| MappingEntry { key, key_span: span.clone(), value: YamlNode::from_json(value) })
                    .collect(),
            ),
            scalar => Data::Scalar(scalar),
        };
        YamlNode { span, data }
    }

    /// The values without their positions.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::Sequence(items) => Value::Array(items.iter().map(YamlNode::to_value).collect()),
            Data::Mapping(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct YamlReadme;
