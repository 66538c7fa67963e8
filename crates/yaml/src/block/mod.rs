//! Reads block-style YAML without a YAML parser.
//!
//! Nearly every manifest is written by a program, or looks like it: block mappings and lists, scalars that are plain,
//! quoted, literal or folded, `{}`, `[]` and comments. This reader accepts only that, line by line, and gives up
//! (`None`) at anything else: anchors, aliases, tags, other flow collections, explicit keys, tabs as indentation, and
//! errors. Then libyaml reads the text and reports any errors. Both must produce the same nodes for every text that
//! this reader accepts, and the tests compare them.
//!
//! This reader exists for speed: it reads CRDs about five times as fast as libyaml (`cargo bench --bench yaml`), and
//! `gantry check` on 600 of them takes 0.66 s instead of 1.11 s (`docs/internals/benchmarks.md`).

mod scalar;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use super::document::{NodeStart, RawYamlNode, YamlDocument, YamlNodeKind};
use super::limits::{MAX_BYTES, MAX_DEPTH, MAX_NODES};

/// libyaml searches for the colon of a key within 1,024 bytes.
pub(super) const LONGEST_KEY: usize = 1000;

/// Reads a block-style document; `None` for everything else, including an empty document.
pub(super) fn compose(text: &str) -> Option<YamlDocument<'_>> {
    if text.len() > MAX_BYTES || !text.ends_with('\n') || !is_ordinary(text) {
        return None;
    }
    let nodes = Vec::with_capacity(text.len() / 32);
    let reader = BlockReader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        line: 0,
        nodes,
        open: Vec::new(),
        pending_value: None,
        end: 0,
    };
    reader.run()
}

/// Whether the text has only ordinary characters: no control characters, no line breaks other than `\n`, no byte order
/// mark.
pub(super) fn is_ordinary(text: &str) -> bool {
    // In branch-free chunks, which the compiler can vectorize.
    let plain = |chunk: &[u8]| chunk.iter().fold(true, |plain, b| plain & (matches!(b, b' '..=b'~' | b'\n' | b'\t')));
    if text.as_bytes().chunks(64).all(plain) {
        return true;
    }
    text.chars().all(|character| match character {
        '\n' | '\t' | ' '..='~' => true,
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
        character => character >= '\u{a0}',
    })
}

struct BlockReader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// The start of the current line, and its number from 0.
    at: usize,
    line: u32,
    nodes: Vec<RawYamlNode<'t>>,
    open: Vec<OpenBlockCollection>,
    /// After a key or a dash whose value has not been read yet: the position of the value if it is missing.
    pending_value: Option<NodeStart>,
    /// The end of the last scalar or bracket.
    end: usize,
}

/// A collection that is still open.
struct OpenBlockCollection {
    node: u32,
    column: usize,
    is_list: bool,
}

/// A scalar and the offset after it.
struct ScannedScalar<'t> {
    value: Cow<'t, str>,
    plain: bool,
    end: usize,
}

#[derive(PartialEq, Eq)]
enum Stop {
    /// A colon after the text, which makes it a key, with the offset of the colon.
    Colon(usize),
    Comment,
    LineBreak,
}

impl<'t> BlockReader<'t> {
    fn run(mut self) -> Option<YamlDocument<'t>> {
        if self.bytes.starts_with(b"---") {
            (self.bytes[3] == b'\n').then_some(())?;
            self.start_line(4);
        }
        while self.at < self.bytes.len() {
            let column = self.spaces(self.at);
            match self.bytes[self.at + column] {
                b'\n' => self.start_line(self.at + column + 1),
                b'#' => self.skip_line(self.at),
                b'%' | b'-' | b'.' if column == 0 && self.is_special(self.at) => return None,
                _ => self.line(self.at + column, column)?,
            }
        }
        self.finish_value();
        while self.close() {}
        YamlDocument::from_nodes(self.nodes)
    }

    /// Continues at the next line, which starts at `start`.
    fn start_line(&mut self, start: usize) {
        self.at = start;
        self.line += 1;
    }

    fn skip_line(&mut self, from: usize) {
        let length = self.bytes[from..].iter().position(|byte| *byte == b'\n').unwrap_or_default();
        self.start_line(from + length + 1);
    }

    fn spaces(&self, from: usize) -> usize {
        self.bytes[from..].iter().take_while(|byte| **byte == b' ').count()
    }

    /// Whether a line starts with a document marker or a directive.
    fn is_special(&self, start: usize) -> bool {
        let line = &self.bytes[start..];
        line.starts_with(b"%") || line.starts_with(b"---") || line.starts_with(b"...")
    }

    fn is_dash(&self, start: usize) -> bool {
        self.bytes[start] == b'-' && matches!(self.bytes[start + 1], b' ' | b'\n')
    }

    fn place(&self, start: usize) -> NodeStart {
        NodeStart { line: self.line, column: (start - self.at) as u32, start: start as u32 }
    }

    /// Reads the content that begins on this line; its text starts at `start`.
    fn line(&mut self, start: usize, column: usize) -> Option<()> {
        let is_dash = self.is_dash(start);
        if let (Some(_), Some(parent)) = (self.pending_value, self.open.last())
            && (column > parent.column || (column == parent.column && is_dash && !parent.is_list))
        {
            return self.node(start);
        }
        if self.nodes.is_empty() {
            return self.node(start);
        }
        self.finish_value();
        // A list can begin at the column of its key. It ends with the next key.
        while self.open.last().is_some_and(|o| o.column > column || (o.column == column && o.is_list && !is_dash)) {
            self.close();
        }
        let OpenBlockCollection { column: expected, is_list, .. } = *self.open.last()?;
        match (expected == column, is_list, is_dash) {
            (true, true, true) => self.item(start),
            (true, false, false) => {
                let key = self.key(start)?;
                self.entry(start, key)
            }
            _ => None,
        }
    }

    /// Reads the node at `start`, which is the first text on its line or follows a dash.
    fn node(&mut self, start: usize) -> Option<()> {
        self.pending_value = None;
        if self.is_dash(start) {
            self.open(start, true)?;
            return self.item(start);
        }
        if let Some(key) = self.key(start) {
            self.open(start, false)?;
            return self.entry(start, key);
        }
        self.value(start)
    }

    /// Reads the item after the dash at `start`.
    fn item(&mut self, start: usize) -> Option<()> {
        let next = start + 1 + self.spaces(start + 1);
        match self.bytes[next] {
            b'\n' | b'#' => self.expect_value(start + 1, next),
            _ => return self.node(next),
        }
        Some(())
    }

    /// Reads the rest of an entry after its key.
    fn entry(&mut self, start: usize, key: ScannedScalar<'t>) -> Option<()> {
        let after = key.end + 1;
        let place = self.place(start);
        self.scalar(place, key)?;
        let next = after + self.spaces(after);
        match self.bytes[next] {
            b'\n' | b'#' => self.expect_value(after, next),
            _ if self.is_dash(next) => return None,
            _ => return self.value(next),
        }
        Some(())
    }

    fn expect_value(&mut self, after: usize, rest: usize) {
        self.pending_value = Some(self.place(after));
        self.skip_line(rest);
    }

    /// Adds a null for a value that is missing.
    fn finish_value(&mut self) {
        if let Some(at) = self.pending_value.take() {
            self.end = at.start as usize;
            self.nodes.push(RawYamlNode::scalar(Cow::Borrowed(""), true, at, at.start));
        }
    }

    fn open(&mut self, start: usize, is_list: bool) -> Option<()> {
        let at = self.place(start);
        self.open.push(OpenBlockCollection { node: self.nodes.len() as u32, column: start - self.at, is_list });
        let kind = if is_list { YamlNodeKind::Sequence { next: 0 } } else { YamlNodeKind::Mapping { next: 0 } };
        self.nodes.push(RawYamlNode { kind, at, end: at.start });
        (self.open.len() <= MAX_DEPTH && self.nodes.len() < MAX_NODES).then_some(())
    }

    /// Closes the innermost collection, if any.
    fn close(&mut self) -> bool {
        let Some(OpenBlockCollection { node, .. }) = self.open.pop() else { return false };
        let following = self.nodes.len() as u32;
        let raw = &mut self.nodes[node as usize];
        raw.end = raw.end.max(self.end as u32);
        if let YamlNodeKind::Sequence { next } | YamlNodeKind::Mapping { next } = &mut raw.kind {
            *next = following;
        }
        true
    }

    fn scalar(&mut self, at: NodeStart, ScannedScalar { value, plain, end }: ScannedScalar<'t>) -> Option<()> {
        self.end = end;
        self.nodes.push(RawYamlNode::scalar(value, plain, at, end as u32));
        (self.nodes.len() < MAX_NODES).then_some(())
    }

    /// Reads the key at `start`; `None` if there is no key. A key must be on one line and be ASCII, so that the column
    /// of its value can be computed from bytes.
    fn key(&self, start: usize) -> Option<ScannedScalar<'t>> {
        let quote = self.bytes[start];
        let (from, end) = if matches!(quote, b'"' | b'\'') {
            let inner = &self.bytes[start + 1..];
            let length = inner.iter().position(|byte| *byte == quote || matches!(byte, b'\\' | b'\t' | b'\n'))?;
            (inner[length] == quote).then_some(())?;
            (start + 1, start + 1 + length)
        } else {
            let line = self.plain_line(start).filter(|_| self.starts_plain(start))?;
            (line.stop == Stop::Colon(line.end)).then_some((start, line.end))?
        };
        let after = if from > start { end + 1 } else { end };
        let text = &self.text[from..end];
        let is_key = self.bytes[after] == b':' && matches!(self.bytes[after + 1], b' ' | b'\n');
        (is_key && text.is_ascii() && text.len() <= LONGEST_KEY).then_some(())?;
        Some(ScannedScalar { value: Cow::Borrowed(text), plain: from == start, end: after })
    }

    /// Reads a scalar or an empty collection, and the rest of its last line.
    fn value(&mut self, start: usize) -> Option<()> {
        let place = self.place(start);
        let parent = self.open.last()?.column;
        let scalar = match self.bytes[start] {
            b'"' | b'\'' => self.quoted(start)?,
            b'|' | b'>' => return self.block(start, parent).and_then(|scalar| self.scalar(place, scalar)),
            b'{' | b'[' => return self.empty(start, place),
            _ => return self.read_plain_scalar(start, parent).and_then(|scalar| self.scalar(place, scalar)),
        };
        self.read_rest_of_line(scalar.end)?;
        self.scalar(place, scalar)
    }

    fn empty(&mut self, start: usize, at: NodeStart) -> Option<()> {
        let next = self.nodes.len() as u32 + 1;
        let kind = match &self.bytes[start..start + 2] {
            b"{}" => YamlNodeKind::Mapping { next },
            b"[]" => YamlNodeKind::Sequence { next },
            _ => return None,
        };
        self.end = start + 2;
        self.nodes.push(RawYamlNode { kind, at, end: self.end as u32 });
        self.read_rest_of_line(self.end)
    }

    /// Reads the rest of a line after a value: nothing, or a comment.
    fn read_rest_of_line(&mut self, from: usize) -> Option<()> {
        let next = from + self.spaces(from);
        let is_over = match self.bytes[next] {
            b'\n' => true,
            b'#' => next > from,
            _ => false,
        };
        is_over.then(|| self.skip_line(next))
    }
}
