//! YAML as the Kubernetes ecosystem reads it, with the place of every value.
//!
//! kubectl, kapp and every Go tool read YAML 1.1 as go-yaml does (`yes` is a boolean, `0777` is 511, merge keys
//! expand). A deploy tool that reads a manifest differently deploys something else, so this is what we read too.

#![deny(missing_docs)]

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

use std::ops::Range;

use serde_json::Value;

pub use document::Document;
pub use json::explain_json;
pub use limits::{MAX_BYTES, MAX_DEPTH};

/// Where a node starts. Lines and columns count from 1; columns count characters; `bytes` is the node's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The line of the first character.
    pub line: usize,
    /// The column of the first character, in characters.
    pub column: usize,
    /// Where the node's text is in the text that was read.
    pub bytes: Range<usize>,
}

/// A value with the place it was written at.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it is written.
    pub span: Span,
    /// What it is.
    pub data: Data,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Null, boolean, number or string.
    Scalar(Value),
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping, in the order in which it is written.
    Mapping(Vec<Entry>),
}

/// One key of a mapping with its value. Merge keys are expanded already; their entries keep their own places.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key as text: JSON has no other keys.
    pub key: String,
    /// Where the key is written.
    pub key_span: Span,
    /// The value of the key.
    pub value: Node,
}

/// One step of a path into a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// The value of a mapping's key.
    Key(&'a str),
    /// An item of a sequence, counted from 0.
    Index(usize),
}

impl<'a> From<&'a str> for Step<'a> {
    fn from(key: &'a str) -> Self {
        Step::Key(key)
    }
}

impl From<usize> for Step<'_> {
    fn from(index: usize) -> Self {
        Step::Index(index)
    }
}

/// Why a document could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The line at which reading stopped.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
    /// What is wrong there, for a person.
    pub message: String,
}

/// A key that one mapping has twice. As in kubectl the last one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The key, as text.
    pub key: String,
    /// Where it is written first.
    pub first: Span,
    /// Where it is written again.
    pub again: Span,
}

/// A document as compact JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json {
    /// The JSON, without spaces.
    pub text: String,
    /// The keys that were written twice, in the order of the text.
    pub duplicates: Vec<Duplicate>,
}

/// Reads one YAML document (JSON is YAML). `text` holds exactly one document; line numbers count from its start.
/// `None` for a document that is empty or only comments.
pub fn parse(text: &str) -> Result<Option<Node>, Error> {
    Ok(parse_with_duplicates(text)?.map(|(node, _)| node))
}

/// [`parse`], together with the keys that were written twice.
pub fn parse_with_duplicates(text: &str) -> Result<Option<(Node, Vec<Duplicate>)>, Error> {
    let read = Document::read(text).and_then(|document| document.map(|document| document.tree()).transpose());
    read.or_else(|error| match json::read(text) {
        Some(value) => Ok(Some((Node::from_json(value), Vec::new()))),
        None => Err(error),
    })
}

/// Reads one YAML document into compact JSON: the same values as [`parse`] in the same order, without a tree.
pub fn to_json(text: &str) -> Result<Option<Json>, Error> {
    let read = Document::read(text).and_then(|document| document.map(|document| document.json()).transpose());
    read.or_else(|error| json_only(text).map(Some).ok_or(error))
}

/// Reads a text that is JSON but no YAML: a few things that JSON allows, such as `"\ud83d\ude00"`, YAML does not.
pub fn json_only(text: &str) -> Option<Json> {
    json::read(text).map(|value| Json { text: value.to_string(), duplicates: Vec::new() })
}

impl Node {
    /// A tree without places: every node is placed at the start of the text.
    fn from_json(value: Value) -> Node {
        let span = Span { line: 1, column: 1, bytes: 0..0 };
        let data = match value {
            Value::Array(items) => Data::Sequence(items.into_iter().map(Node::from_json).collect()),
            Value::Object(map) => Data::Mapping(
                map.into_iter()
                    .map(|(key, value)| Entry { key, key_span: span.clone(), value: Node::from_json(value) })
                    .collect(),
            ),
            scalar => Data::Scalar(scalar),
        };
        Node { span, data }
    }

    /// The values without their places.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::Sequence(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Data::Mapping(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect())
            }
        }
    }
}

#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
