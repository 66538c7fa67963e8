//! From nodes to values: aliases and merge keys expanded, keys turned into strings, one value for each key.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::compose::{Document, Kind, Raw, error_at, too_deep};
use super::limits::{MAX_DEPTH, MAX_EXPANDED_BYTES, MAX_EXPANDED_NODES};
use super::resolve::{MERGE, Scalar, resolve};
use super::{Data, Duplicate, Entry, Error, Node, Span};

pub(super) struct Decoder<'a> {
    document: &'a Document,
    nodes_left: usize,
    bytes_left: usize,
    /// Keys that were written twice in one mapping.
    pub duplicates: Vec<Duplicate>,
}

/// One entry of a mapping: its key and the indexes of key and value.
struct Pair<'a> {
    key: Cow<'a, str>,
    key_node: u32,
    value: u32,
    /// Came through a merge key: then another value for the same key is no duplicate.
    merged: bool,
}

/// The entries of a mapping in the order in which their keys were first seen.
#[derive(Default)]
struct Pairs<'a> {
    list: Vec<Pair<'a>>,
    /// Only built for large mappings.
    index: HashMap<Cow<'a, str>, usize>,
}

/// Up to this many keys a walk along the list is faster than a hash table.
const SMALL: usize = 12;

impl<'a> Pairs<'a> {
    fn find(&mut self, key: &str) -> Option<usize> {
        if self.list.len() <= SMALL {
            return self.list.iter().position(|pair| pair.key == key);
        }
        if self.index.is_empty() {
            self.index = self.list.iter().enumerate().map(|(at, pair)| (pair.key.clone(), at)).collect();
        }
        self.index.get(key).copied()
    }

    /// Sets the key; gives back the key's earlier pair, if there was one.
    fn set(&mut self, pair: Pair<'a>) -> Option<Pair<'a>> {
        if let Some(at) = self.find(&pair.key) {
            return Some(std::mem::replace(&mut self.list[at], pair));
        }
        if !self.index.is_empty() {
            self.index.insert(pair.key.clone(), self.list.len());
        }
        self.list.push(pair);
        None
    }
}

impl<'a> Decoder<'a> {
    pub fn new(document: &'a Document) -> Self {
        let written: usize = document.nodes.iter().map(|raw| raw.text().len()).sum();
        Decoder {
            document,
            nodes_left: document.nodes.len() + MAX_EXPANDED_NODES,
            bytes_left: written + MAX_EXPANDED_BYTES,
            duplicates: Vec::new(),
        }
    }

    fn raw(&self, index: u32) -> &'a Raw {
        &self.document.nodes[index as usize]
    }

    /// The node that `index` stands for: itself, or what an alias points to.
    fn target(&self, mut index: u32) -> u32 {
        // An alias points backwards and never to an alias, because an alias cannot carry an anchor.
        while let Kind::Alias { target } = self.raw(index).kind {
            index = target;
        }
        index
    }

    fn spend(&mut self, index: u32, depth: usize) -> Result<(), Error> {
        let raw = self.raw(index);
        if depth > MAX_DEPTH {
            return Err(error_at(raw.at, too_deep()));
        }
        let length = raw.text().len();
        if self.nodes_left == 0 || self.bytes_left < length {
            return Err(error_at(raw.at, "the aliases of this document expand to far more than is written".into()));
        }
        self.nodes_left -= 1;
        self.bytes_left -= length;
        Ok(())
    }

    fn scalar(&self, index: u32) -> Result<Scalar<'a>, Error> {
        let raw = self.raw(index);
        match &raw.kind {
            Kind::Scalar { value, tag, plain } => {
                resolve(tag.as_deref(), *plain, value).map_err(|message| error_at(raw.at, message))
            }
            _ => Ok(Scalar::Null),
        }
    }

    pub fn node(&mut self, index: u32, depth: usize) -> Result<Node, Error> {
        self.spend(index, depth)?;
        let target = self.target(index);
        let data = match &self.raw(target).kind {
            Kind::Sequence { next } => {
                let mut items = Vec::new();
                let mut item = target + 1;
                while item < *next {
                    items.push(self.node(item, depth + 1)?);
                    item = self.document.next(item);
                }
                Data::Sequence(items)
            }
            Kind::Mapping { .. } => {
                let mut entries = Vec::new();
                for pair in self.pairs(target, depth)? {
                    let value = self.node(pair.value, depth + 1)?;
                    let key_span = self.span(pair.key_node);
                    entries.push(Entry { key: pair.key.into_owned(), key_span, value });
                }
                Data::Mapping(entries)
            }
            _ => Data::Scalar(self.value(target)?),
        };
        Ok(Node { span: self.span(index), data })
    }

    fn value(&self, index: u32) -> Result<Value, Error> {
        self.scalar(index)?.to_value().map_err(|message| error_at(self.raw(index).at, message))
    }

    /// Writes the node as compact JSON: what `node` would give, without the tree.
    pub fn json(&mut self, index: u32, depth: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        self.spend(index, depth)?;
        let target = self.target(index);
        match &self.raw(target).kind {
            Kind::Sequence { next } => {
                out.push(b'[');
                let mut item = target + 1;
                while item < *next {
                    if item > target + 1 {
                        out.push(b',');
                    }
                    self.json(item, depth + 1, out)?;
                    item = self.document.next(item);
                }
                out.push(b']');
            }
            Kind::Mapping { .. } => {
                out.push(b'{');
                for (at, pair) in self.pairs(target, depth)?.into_iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_string(&pair.key, out);
                    out.push(b':');
                    self.json(pair.value, depth + 1, out)?;
                }
                out.push(b'}');
            }
            _ => match self.scalar(target)? {
                Scalar::Str(text) => write_string(&text, out),
                scalar => {
                    let value = scalar.to_value().map_err(|message| error_at(self.raw(target).at, message))?;
                    out.extend_from_slice(value.to_string().as_bytes());
                }
            },
        }
        Ok(())
    }

    fn pairs(&mut self, mapping: u32, depth: usize) -> Result<Vec<Pair<'a>>, Error> {
        let mut pairs = Pairs::default();
        self.collect(mapping, depth, false, &mut pairs)?;
        Ok(pairs.list)
    }

    /// Adds the entries of `mapping`, one after the other as go-yaml does: what comes later wins, also when it comes
    /// through a merge key.
    fn collect(&mut self, mapping: u32, depth: usize, merged: bool, pairs: &mut Pairs<'a>) -> Result<(), Error> {
        let next = self.document.next(mapping);
        let mut key = mapping + 1;
        while key < next {
            let value = self.document.next(key);
            if self.is_merge(key) {
                self.merge(value, depth + 1, pairs)?;
            } else {
                self.spend(key, depth)?;
                let name = self.key(key)?;
                let pair = Pair { key: name, key_node: key, value, merged };
                if let Some(earlier) = pairs.set(pair)
                    && !earlier.merged
                    && !merged
                {
                    let duplicate = Duplicate {
                        key: self.key(key)?.into_owned(),
                        first: self.span(earlier.key_node),
                        again: self.span(key),
                    };
                    self.duplicates.push(duplicate);
                }
            }
            key = self.document.next(value);
        }
        Ok(())
    }

    fn is_merge(&self, key: u32) -> bool {
        matches!(&self.raw(key).kind,
            Kind::Scalar { value, tag, plain } if &**value == "<<" && (*plain || tag.as_deref() == Some(MERGE)))
    }

    fn merge(&mut self, source: u32, depth: usize, pairs: &mut Pairs<'a>) -> Result<(), Error> {
        self.spend(source, depth)?;
        let target = self.target(source);
        match &self.raw(target).kind {
            Kind::Mapping { .. } => self.collect(target, depth, true, pairs),
            // A list must stand here itself: go-yaml takes no alias of a list.
            Kind::Sequence { next } if target == source => {
                let mut items = Vec::new();
                let mut item = target + 1;
                while item < *next {
                    items.push(item);
                    item = self.document.next(item);
                }
                // The first of the list wins, so it is set last.
                for item in items.into_iter().rev() {
                    self.spend(item, depth + 1)?;
                    let target = self.target(item);
                    match self.raw(target).kind {
                        Kind::Mapping { .. } => self.collect(target, depth + 1, true, pairs)?,
                        _ => return Err(self.not_mergeable(item)),
                    }
                }
                Ok(())
            }
            _ => Err(self.not_mergeable(source)),
        }
    }

    fn not_mergeable(&self, index: u32) -> Error {
        error_at(self.raw(index).at, "a merge key (<<) takes a mapping or a list of mappings".into())
    }

    fn key(&self, index: u32) -> Result<Cow<'a, str>, Error> {
        let at = self.raw(index).at;
        let target = self.target(index);
        match &self.raw(target).kind {
            Kind::Scalar { .. } => match self.scalar(target)? {
                Scalar::Str(text) => Ok(text),
                other => {
                    other.to_key().map(|key| Cow::Owned(key.into_owned())).map_err(|message| error_at(at, message))
                }
            },
            _ => Err(error_at(at, "a mapping's key must be a scalar, not a list or a mapping".into())),
        }
    }

    fn span(&self, index: u32) -> Span {
        let raw = self.raw(index);
        Span {
            line: raw.at.line as usize + 1,
            column: raw.at.column as usize + 1,
            bytes: raw.at.start as usize..(raw.end.max(raw.at.start)) as usize,
        }
    }
}

impl Raw {
    fn text(&self) -> &str {
        match &self.kind {
            Kind::Scalar { value, .. } => value,
            _ => "",
        }
    }
}

/// A JSON string. Quote, backslash and control characters are escaped, everything else stands for itself.
fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text.as_bytes()[from..at]);
        from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&text.as_bytes()[from..]);
    out.push(b'"');
}
