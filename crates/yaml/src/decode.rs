//! From nodes to values: expands aliases and merge keys, converts keys to strings, and keeps one value for each key.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::compose::compose;
use super::document::{RawYamlNode, YamlDocument, YamlNodeKind, error_at, too_deep};
use super::limits::{MAX_DEPTH, MAX_EXPANDED_BYTES, MAX_EXPANDED_NODES};
use super::resolve::{MERGE, ResolvedScalar, resolve};
use super::{Data, Duplicate, JsonDocument, MappingEntry, Span, YamlError, YamlNode, YamlStep};

impl<'t> YamlDocument<'t> {
    /// Reads one document; `None` if it contains nothing but comments.
    pub fn read(text: &'t str) -> Result<Option<YamlDocument<'t>>, YamlError> {
        compose(text)
    }

    /// Converts the document to compact JSON text.
    pub fn json(&self) -> Result<JsonDocument, YamlError> {
        let mut decoder = Decoder::new(self);
        let mut out = Vec::new();
        decoder.write_json(0, 0, &mut out)?;
        // The output consists of strings, so it is valid UTF-8, and the closure never runs.
        let text =
            String::from_utf8(out).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(JsonDocument { text, duplicates: decoder.duplicates })
    }

    /// Converts the document to a tree, and returns the duplicate keys.
    pub fn tree(&self) -> Result<(YamlNode, Vec<Duplicate>), YamlError> {
        let mut decoder = Decoder::new(self);
        let node = decoder.node(0, 0)?;
        Ok((node, decoder.duplicates))
    }

    /// Follows `path` as far as it exists. Returns the number of steps found and the position of the last one: the key
    /// of a mapping entry, or the value itself for an item or the document.
    pub fn locate<'p>(&self, path: impl IntoIterator<Item = YamlStep<'p>>) -> (usize, Span) {
        self.locate_with(&mut KnownCollections::default(), path)
    }

    /// Like [`Self::locate`], for many paths: each collection on their ways is searched once. `known` must be of this
    /// document.
    pub fn locate_with<'p>(
        &self,
        known: &mut KnownCollections,
        path: impl IntoIterator<Item = YamlStep<'p>>,
    ) -> (usize, Span) {
        let LocatedNode { depth, span, .. } = Decoder::new(self).follow(known, path);
        (depth, span)
    }

    /// The positions of the items in the list at `path`; empty if there is no list.
    pub fn items<'p>(&self, path: impl IntoIterator<Item = YamlStep<'p>>) -> Vec<Span> {
        let mut decoder = Decoder::new(self);
        let found = decoder.follow(&mut KnownCollections::default(), path);
        let list = decoder.target(found.node);
        if !found.whole || !matches!(self.nodes[list as usize].kind, YamlNodeKind::Sequence { .. }) {
            return Vec::new();
        }
        decoder.children(list).map(|item| decoder.span(item)).collect()
    }
}

/// The key and value nodes of a mapping, by key.
type EntryNodes = HashMap<Box<str>, (u32, u32)>;

/// The collections of one document that paths led through: see [`YamlDocument::locate_with`].
#[derive(Debug, Default)]
pub struct KnownCollections {
    items: HashMap<u32, Vec<u32>>,
    /// `None` for a mapping that must be decoded.
    plain: HashMap<u32, Option<EntryNodes>>,
    decoded: HashMap<u32, EntryNodes>,
}

/// The result of following a path.
struct LocatedNode {
    depth: usize,
    node: u32,
    span: Span,
    /// Whether the whole path exists.
    whole: bool,
}

struct Decoder<'a> {
    document: &'a YamlDocument<'a>,
    nodes_left: usize,
    bytes_left: usize,
    /// The outermost alias in the text that is being expanded: errors are reported at its position.
    alias: Option<u32>,
    /// The keys that occur twice in a mapping.
    pub duplicates: Vec<Duplicate>,
}

/// One entry of a mapping: its key, and the indexes of the key and value nodes.
struct YamlMappingEntry<'a> {
    key: Cow<'a, str>,
    key_node: u32,
    value: u32,
    /// Whether it came through a merge key; overriding such an entry is not a duplicate.
    merged: bool,
}

/// The entries of a mapping, ordered by the first occurrence of each key.
#[derive(Default)]
struct Pairs<'a> {
    list: Vec<YamlMappingEntry<'a>>,
    /// Built only for large mappings.
    index: HashMap<Cow<'a, str>, usize>,
}

/// Up to this many keys, a linear search is faster than a hash table.
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

    /// Sets the key and returns its previous pair, if any.
    fn set(&mut self, pair: YamlMappingEntry<'a>) -> Option<YamlMappingEntry<'a>> {
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
    pub fn new(document: &'a YamlDocument<'a>) -> Self {
        Decoder {
            document,
            nodes_left: document.nodes.len() + MAX_EXPANDED_NODES,
            bytes_left: document.written + MAX_EXPANDED_BYTES,
            alias: None,
            duplicates: Vec::new(),
        }
    }

    fn raw(&self, index: u32) -> &'a RawYamlNode<'a> {
        &self.document.nodes[index as usize]
    }

    /// The node itself or, for an alias, the node that it refers to.
    fn target(&self, mut index: u32) -> u32 {
        // An alias refers to an earlier node, which is never an alias itself, because an alias cannot have an anchor.
        while let YamlNodeKind::Alias { target } = self.raw(index).kind {
            index = target;
        }
        index
    }

    fn spend(&mut self, index: u32, depth: usize) -> Result<(), YamlError> {
        let at = self.raw(self.alias.unwrap_or(index)).at;
        if depth > MAX_DEPTH {
            return Err(error_at(at, too_deep()));
        }
        let length = self.raw(self.target(index)).text().len();
        if self.nodes_left == 0 || self.bytes_left < length {
            return Err(error_at(at, "the aliases in this document expand to too much data".into()));
        }
        self.nodes_left -= 1;
        self.bytes_left -= length;
        Ok(())
    }

    /// The items of a list, or the keys and values of a mapping.
    fn children(&self, collection: u32) -> impl Iterator<Item = u32> + use<'a> {
        let document = self.document;
        let end = document.next(collection);
        let mut index = collection + 1;
        std::iter::from_fn(move || {
            let child = (index < end).then_some(index)?;
            index = document.next(child);
            Some(child)
        })
    }

    fn follow<'p>(
        &mut self,
        known: &mut KnownCollections,
        path: impl IntoIterator<Item = YamlStep<'p>>,
    ) -> LocatedNode {
        let mut at = LocatedNode { depth: 0, node: 0, span: self.span(0), whole: true };
        for step in path {
            let target = self.target(at.node);
            let found = match (step, &self.raw(target).kind) {
                (YamlStep::Index(index), YamlNodeKind::Sequence { .. }) => {
                    let items = known.items.entry(target).or_insert_with(|| self.children(target).collect());
                    items.get(index).map(|item| (*item, self.span(*item)))
                }
                (YamlStep::Key(key), YamlNodeKind::Mapping { .. }) => {
                    let entry = self.entry(known, target, key, at.depth);
                    entry.map(|(key_node, value)| (value, self.span(key_node)))
                }
                _ => None,
            };
            match found {
                Some((node, span)) => at = LocatedNode { depth: at.depth + 1, node, span, whole: true },
                None => return LocatedNode { whole: false, ..at },
            }
        }
        at
    }

    /// The entry for `key`, as key and value nodes.
    fn entry(&mut self, known: &mut KnownCollections, mapping: u32, key: &str, depth: usize) -> Option<(u32, u32)> {
        // A key that resolves to a number or another type can be spelled in several ways.
        if matches!(resolve(None, true, key), Ok(ResolvedScalar::Str(_)))
            && let Some(plain) = known.plain.entry(mapping).or_insert_with(|| self.plain_entries(mapping))
        {
            return plain.get(key).copied();
        }
        let decoded = known.decoded.entry(mapping).or_insert_with(|| {
            let pairs = self.pairs(mapping, depth).map(|pairs| pairs.into_iter()).into_iter().flatten();
            pairs.map(|pair| (pair.key.into(), (pair.key_node, pair.value))).collect()
        });
        decoded.get(key).copied()
    }

    /// The entries of a simple mapping; the last one of a key wins. `None` means that the mapping is not simple (it has
    /// merge keys, aliases, tags, or keys that are not strings) and must be decoded.
    fn plain_entries(&self, mapping: u32) -> Option<EntryNodes> {
        let mut entries = EntryNodes::new();
        let mut children = self.children(mapping);
        while let Some(node) = children.next() {
            let value = children.next()?;
            match &self.raw(node).kind {
                YamlNodeKind::Scalar { value: text, tag: None, .. } if text != "<<" => {
                    entries.insert(text.as_ref().into(), (node, value));
                }
                _ => return None,
            }
        }
        Some(entries)
    }

    fn scalar(&self, index: u32) -> Result<ResolvedScalar<'a>, YamlError> {
        let raw = self.raw(index);
        match &raw.kind {
            YamlNodeKind::Scalar { value, tag, plain } => {
                resolve(tag.as_deref(), *plain, value).map_err(|message| error_at(raw.at, message))
            }
            _ => Ok(ResolvedScalar::Null),
        }
    }

    /// Charges the node to the budget and returns its target, and the alias to restore with [`Decoder::leave`].
    fn enter(&mut self, index: u32, depth: usize) -> Result<(u32, Option<u32>), YamlError> {
        let outer = self.alias;
        let target = self.target(index);
        if target != index {
            self.alias = outer.or(Some(index));
        }
        self.spend(index, depth)?;
        Ok((target, outer))
    }

    fn leave(&mut self, outer: Option<u32>) {
        self.alias = outer;
    }

    pub fn node(&mut self, index: u32, depth: usize) -> Result<YamlNode, YamlError> {
        let (target, outer) = self.enter(index, depth)?;
        let data = match &self.raw(target).kind {
            YamlNodeKind::Sequence { .. } => {
                // A loop, because a chain of iterators would take several stack frames per level.
                let mut items = Vec::new();
                for item in self.children(target) {
                    items.push(self.node(item, depth + 1)?);
                }
                Data::Sequence(items)
            }
            YamlNodeKind::Mapping { .. } => {
                let mut entries = Vec::new();
                for pair in self.pairs(target, depth)? {
                    let value = self.node(pair.value, depth + 1)?;
                    let key_span = self.span(pair.key_node);
                    entries.push(MappingEntry { key: pair.key.into_owned(), key_span, value });
                }
                Data::Mapping(entries)
            }
            _ => Data::Scalar(self.value(target)?),
        };
        self.leave(outer);
        Ok(YamlNode { span: self.span(index), data })
    }

    fn value(&self, index: u32) -> Result<Value, YamlError> {
        self.scalar(index)?.to_value().map_err(|message| error_at(self.raw(index).at, message))
    }

    /// Writes the node as compact JSON: the same values as `node`, without the tree.
    pub fn write_json(&mut self, index: u32, depth: usize, out: &mut Vec<u8>) -> Result<(), YamlError> {
        let (target, outer) = self.enter(index, depth)?;
        match &self.raw(target).kind {
            YamlNodeKind::Sequence { .. } => {
                out.push(b'[');
                for item in self.children(target) {
                    if item > target + 1 {
                        out.push(b',');
                    }
                    self.write_json(item, depth + 1, out)?;
                }
                out.push(b']');
            }
            YamlNodeKind::Mapping { .. } => {
                out.push(b'{');
                for (at, pair) in self.pairs(target, depth)?.into_iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_string(&pair.key, out);
                    out.push(b':');
                    self.write_json(pair.value, depth + 1, out)?;
                }
                out.push(b'}');
            }
            _ => match self.scalar(target)? {
                ResolvedScalar::Str(text) => write_string(&text, out),
                scalar => {
                    let value = scalar.to_value().map_err(|message| error_at(self.raw(target).at, message))?;
                    out.extend_from_slice(value.to_string().as_bytes());
                }
            },
        }
        self.leave(outer);
        Ok(())
    }

    fn pairs(&mut self, mapping: u32, depth: usize) -> Result<Vec<YamlMappingEntry<'a>>, YamlError> {
        let mut pairs = Pairs::default();
        self.collect(mapping, depth, false, &mut pairs)?;
        Ok(pairs.list)
    }

    /// Adds the entries of `mapping` in order, as go-yaml does: later entries win, even if they come through a merge
    /// key.
    fn collect(&mut self, mapping: u32, depth: usize, merged: bool, pairs: &mut Pairs<'a>) -> Result<(), YamlError> {
        let mut children = self.children(mapping);
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            if self.is_merge(key) {
                self.merge(value, depth + 1, pairs)?;
            } else {
                self.spend(key, depth)?;
                let name = self.key(key)?;
                let pair = YamlMappingEntry { key: name, key_node: key, value, merged };
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
        }
        Ok(())
    }

    fn is_merge(&self, key: u32) -> bool {
        matches!(&self.raw(key).kind,
            YamlNodeKind::Scalar { value, tag, plain } if value == "<<" && (*plain || tag.as_deref() == Some(MERGE)))
    }

    fn merge(&mut self, source: u32, depth: usize, pairs: &mut Pairs<'a>) -> Result<(), YamlError> {
        let (target, outer) = self.enter(source, depth)?;
        match &self.raw(target).kind {
            YamlNodeKind::Mapping { .. } => self.collect(target, depth, true, pairs)?,
            // This must be a literal list: go-yaml does not accept an alias of a list.
            YamlNodeKind::Sequence { .. } if target == source => {
                let items: Vec<u32> = self.children(target).collect();
                // The first mapping in the list wins, so it is added last.
                for item in items.into_iter().rev() {
                    let (target, outer) = self.enter(item, depth + 1)?;
                    match self.raw(target).kind {
                        YamlNodeKind::Mapping { .. } => self.collect(target, depth + 1, true, pairs)?,
                        _ => return Err(self.not_mergeable(item)),
                    }
                    self.leave(outer);
                }
            }
            _ => return Err(self.not_mergeable(source)),
        }
        self.leave(outer);
        Ok(())
    }

    fn not_mergeable(&self, index: u32) -> YamlError {
        error_at(self.raw(index).at, "the value of a merge key (<<) must be a mapping or a list of mappings".into())
    }

    fn key(&self, index: u32) -> Result<Cow<'a, str>, YamlError> {
        let at = self.raw(index).at;
        let target = self.target(index);
        match &self.raw(target).kind {
            YamlNodeKind::Scalar { .. } => match self.scalar(target)? {
                ResolvedScalar::Str(text) => Ok(text),
                other => {
                    other.to_key().map(|key| Cow::Owned(key.into_owned())).map_err(|message| error_at(at, message))
                }
            },
            _ => Err(error_at(at, "a mapping key must be a scalar, not a list or a mapping".into())),
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

/// Writes a JSON string. Quotes, backslashes and control characters are escaped; everything else is written as is.
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
