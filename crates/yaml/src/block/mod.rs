//! Reads block-style YAML without a YAML parser.
//!
//! Nearly every manifest is written by a program, or looks like it: block mappings and lists, scalars that are plain,
//! quoted, literal or folded, `{}`, `[]` and comments. This reader accepts only that, line by line, and gives up
//! (`None`) at anything else: anchors, aliases, tags, other flow collections, explicit keys, tabs as indentation, and
//! errors. Then libyaml reads the text and reports any errors. Both must produce the same nodes for every text that
//! this reader accepts, and the tests compare them.
//!
//! This reader exists for speed: it reads CRDs about five times as fast as libyaml (`cargo bench --bench yaml`), and
//! `gantry check` on 600 of them takes 0.66 s instead of 1.11 s (`docs/benchmarks.md`).

use std::borrow::Cow;

use super::document::{Document, Kind, Place, Raw};
use super::limits::{MAX_BYTES, MAX_DEPTH, MAX_NODES};

/// libyaml searches for the colon of a key within 1,024 bytes.
pub(super) const LONGEST_KEY: usize = 1000;

/// Reads a block-style document; `None` for everything else, including an empty document.
pub(super) fn compose(text: &str) -> Option<Document<'_>> {
    if text.len() > MAX_BYTES || !text.ends_with('\n') || !is_ordinary(text) {
        return None;
    }
    let nodes = Vec::with_capacity(text.len() / 32);
    let reader =
        Reader { text, bytes: text.as_bytes(), at: 0, line: 0, nodes, open: Vec::new(), pending_value: None, end: 0 };
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

struct Reader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    /// The start of the current line, and its number from 0.
    at: usize,
    line: u32,
    nodes: Vec<Raw<'t>>,
    open: Vec<Open>,
    /// After a key or a dash whose value has not been read yet: the position of the value if it is missing.
    pending_value: Option<Place>,
    /// The end of the last scalar or bracket.
    end: usize,
}

/// A collection that is still open.
struct Open {
    node: u32,
    column: usize,
    is_list: bool,
}

/// A scalar and the offset after it.
struct Scalar<'t> {
    value: Cow<'t, str>,
    plain: bool,
    end: usize,
}

/// The end of a plain scalar's part on one line.
struct PlainLine {
    end: usize,
    stop: Stop,
}

#[derive(PartialEq, Eq)]
enum Stop {
    /// A colon after the text, which makes it a key, with the offset of the colon.
    Colon(usize),
    Comment,
    LineBreak,
}

impl<'t> Reader<'t> {
    fn run(mut self) -> Option<Document<'t>> {
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
        Document::of(self.nodes)
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

    fn place(&self, start: usize) -> Place {
        Place { line: self.line, column: (start - self.at) as u32, start: start as u32 }
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
        let Open { column: expected, is_list, .. } = *self.open.last()?;
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
    fn entry(&mut self, start: usize, key: Scalar<'t>) -> Option<()> {
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
            self.nodes.push(Raw::scalar(Cow::Borrowed(""), true, at, at.start));
        }
    }

    fn open(&mut self, start: usize, is_list: bool) -> Option<()> {
        let at = self.place(start);
        self.open.push(Open { node: self.nodes.len() as u32, column: start - self.at, is_list });
        let kind = if is_list { Kind::Sequence { next: 0 } } else { Kind::Mapping { next: 0 } };
        self.nodes.push(Raw { kind, at, end: at.start });
        (self.open.len() <= MAX_DEPTH && self.nodes.len() < MAX_NODES).then_some(())
    }

    /// Closes the innermost collection, if any.
    fn close(&mut self) -> bool {
        let Some(Open { node, .. }) = self.open.pop() else { return false };
        let following = self.nodes.len() as u32;
        let raw = &mut self.nodes[node as usize];
        raw.end = raw.end.max(self.end as u32);
        if let Kind::Sequence { next } | Kind::Mapping { next } = &mut raw.kind {
            *next = following;
        }
        true
    }

    fn scalar(&mut self, at: Place, Scalar { value, plain, end }: Scalar<'t>) -> Option<()> {
        self.end = end;
        self.nodes.push(Raw::scalar(value, plain, at, end as u32));
        (self.nodes.len() < MAX_NODES).then_some(())
    }

    /// Reads the key at `start`; `None` if there is no key. A key must be on one line and be ASCII, so that the column
    /// of its value can be computed from bytes.
    fn key(&self, start: usize) -> Option<Scalar<'t>> {
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
        Some(Scalar { value: Cow::Borrowed(text), plain: from == start, end: after })
    }

    /// Reads a scalar or an empty collection, and the rest of its last line.
    fn value(&mut self, start: usize) -> Option<()> {
        let place = self.place(start);
        let parent = self.open.last()?.column;
        let scalar = match self.bytes[start] {
            b'"' | b'\'' => self.quoted(start)?,
            b'|' | b'>' => return self.block(start, parent).and_then(|scalar| self.scalar(place, scalar)),
            b'{' | b'[' => return self.empty(start, place),
            _ => return self.plain(start, parent).and_then(|scalar| self.scalar(place, scalar)),
        };
        self.rest(scalar.end)?;
        self.scalar(place, scalar)
    }

    fn empty(&mut self, start: usize, at: Place) -> Option<()> {
        let next = self.nodes.len() as u32 + 1;
        let kind = match &self.bytes[start..start + 2] {
            b"{}" => Kind::Mapping { next },
            b"[]" => Kind::Sequence { next },
            _ => return None,
        };
        self.end = start + 2;
        self.nodes.push(Raw { kind, at, end: self.end as u32 });
        self.rest(self.end)
    }

    /// Reads the rest of a line after a value: nothing, or a comment.
    fn rest(&mut self, from: usize) -> Option<()> {
        let next = from + self.spaces(from);
        let is_over = match self.bytes[next] {
            b'\n' => true,
            b'#' => next > from,
            _ => false,
        };
        is_over.then(|| self.skip_line(next))
    }

    fn starts_plain(&self, start: usize) -> bool {
        !matches!(
            self.bytes[start],
            b'?' | b':'
                | b','
                | b'['
                | b']'
                | b'{'
                | b'}'
                | b'#'
                | b'&'
                | b'*'
                | b'!'
                | b'|'
                | b'>'
                | b'\''
                | b'"'
                | b'%'
                | b'@'
                | b'`'
                | b'\t'
        )
    }

    /// `None` if there is a tab.
    fn plain_line(&self, start: usize) -> Option<PlainLine> {
        let mut at = start;
        let stop = loop {
            match self.bytes[at] {
                b'\n' => break Stop::LineBreak,
                b':' if matches!(self.bytes[at + 1], b' ' | b'\n' | b'\t') => break Stop::Colon(at),
                b'#' if at > start && self.bytes[at - 1] == b' ' => break Stop::Comment,
                b'\t' => return None,
                _ => at += 1,
            }
        };
        let length = self.text[start..at].trim_end_matches(' ').len();
        Some(PlainLine { end: start + length, stop })
    }

    /// Reads a plain scalar, which continues as long as the following lines are indented more than its parent.
    fn plain(&mut self, start: usize, parent: usize) -> Option<Scalar<'t>> {
        if !self.starts_plain(start) {
            return None;
        }
        let mut line = self.plain_line(start)?;
        let mut end = line.end;
        let mut value = Cow::Borrowed(&self.text[start..end]);
        loop {
            match line.stop {
                Stop::Colon(_) => return None,
                Stop::Comment | Stop::LineBreak => self.skip_line(end),
            }
            let mut next = self.at;
            let mut blank_lines = 0;
            let column = loop {
                let column = self.spaces(next);
                match self.bytes.get(next + column) {
                    Some(b'\n') => next += column + 1,
                    Some(b'\t') => return None,
                    Some(_) => break column,
                    None => return Some(Scalar { value, plain: true, end }),
                }
                blank_lines += 1;
            };
            let start = next + column;
            if line.stop == Stop::Comment || column <= parent || self.bytes[start] == b'#' {
                return Some(Scalar { value, plain: true, end });
            }
            self.line += blank_lines;
            self.at = next;
            line = self.plain_line(start)?;
            end = line.end;
            let value = value.to_mut();
            fold(blank_lines, value);
            value.push_str(&self.text[start..end]);
        }
    }

    fn quoted(&mut self, start: usize) -> Option<Scalar<'t>> {
        let quote = self.bytes[start];
        let mut out: Option<String> = None;
        let mut at = start + 1;
        loop {
            let from = at;
            let is_text =
                |byte: u8| byte != quote && !matches!(byte, b'\n' | b'\t') && (byte != b'\\' || quote == b'\'');
            at += self.bytes[from..].iter().position(|byte| !is_text(*byte))?;
            let run = &self.text[from..at];
            let next = *self.bytes.get(at + 1)?;
            match self.bytes[at] {
                b'\n' => {
                    let out = out.get_or_insert_default();
                    out.push_str(run.trim_end_matches(' '));
                    let blank_lines = self.skip_to_text(&mut at)?;
                    fold(blank_lines, out);
                }
                b'\\' => {
                    let out = out.get_or_insert_default();
                    out.push_str(run);
                    if next == b'\n' {
                        at += 1;
                        let blank_lines = self.skip_to_text(&mut at)?;
                        out.extend((0..blank_lines).map(|_| '\n'));
                    } else {
                        out.push(unescaped(next)?);
                        at += 2;
                    }
                }
                b'\'' if quote == b'\'' && next == b'\'' => {
                    let out = out.get_or_insert_default();
                    out.push_str(run);
                    out.push('\'');
                    at += 2;
                }
                byte if byte == quote => {
                    let value = match out {
                        None => Cow::Borrowed(run),
                        Some(out) => Cow::Owned(out + run),
                    };
                    return Some(Scalar { value, plain: false, end: at + 1 });
                }
                _ => return None,
            }
        }
    }

    /// Skips from a line break inside quotes, at `at`, to the next text. Returns the number of empty lines between.
    fn skip_to_text(&mut self, at: &mut usize) -> Option<u32> {
        self.start_line(*at + 1);
        let mut blank_lines = 0;
        loop {
            let next = self.at + self.spaces(self.at);
            match self.bytes.get(next)? {
                b'\n' => self.start_line(next + 1),
                _ if self.is_special(self.at) => return None,
                _ => {
                    *at = next;
                    return Some(blank_lines);
                }
            }
            blank_lines += 1;
        }
    }

    /// Reads a literal or folded scalar whose header is at `start`; its lines are indented more than `parent`.
    fn block(&mut self, start: usize, parent: usize) -> Option<Scalar<'t>> {
        let is_literal = self.bytes[start] == b'|';
        let chomping = match self.bytes[start + 1] {
            chomping @ (b'-' | b'+') => chomping,
            _ => b' ',
        };
        let header = start + if chomping == b' ' { 1 } else { 2 };
        let line_break = header + self.spaces(header);
        (self.bytes[line_break] == b'\n').then_some(())?;
        self.start_line(line_break + 1);

        let (mut blank_lines, mut widest) = (0, 0);
        let indent = loop {
            let column = self.spaces(self.at);
            match self.bytes.get(self.at + column)? {
                b'\n' => self.start_line(self.at + column + 1),
                b'\t' => return None,
                _ => break column,
            }
            widest = widest.max(column);
            blank_lines += 1;
        };
        if indent <= parent || widest > indent {
            return None;
        }
        let mut out = String::new();
        let mut is_first = true;
        let mut before_is_blank = false;
        loop {
            let from = self.at + indent;
            let length = self.bytes[from..].iter().position(|byte| *byte == b'\n')?;
            let is_blank = matches!(self.bytes[from], b' ' | b'\t');
            match (is_first, is_literal || before_is_blank || is_blank) {
                (true, _) | (false, true) => {
                    out.extend((0..blank_lines + u32::from(!is_first)).map(|_| '\n'));
                }
                (false, false) => fold(blank_lines, &mut out),
            }
            out.push_str(&self.text[from..from + length]);
            self.start_line(from + length + 1);
            (is_first, before_is_blank, blank_lines) = (false, is_blank, 0);
            let goes_on = loop {
                let column = self.spaces(self.at).min(indent);
                match self.bytes.get(self.at + column) {
                    Some(b'\n') => self.start_line(self.at + column + 1),
                    Some(b'\t') if column < indent => return None,
                    next => break next.is_some() && column == indent,
                }
                blank_lines += 1;
            };
            if !goes_on {
                break;
            }
        }
        let line_breaks = match chomping {
            b'-' => 0,
            b'+' => 1 + blank_lines,
            _ => 1,
        };
        out.extend((0..line_breaks).map(|_| '\n'));
        Some(Scalar { value: Cow::Owned(out), plain: false, end: self.at })
    }
}

/// Appends what a line break and `blank_lines` empty lines become in folded text.
fn fold(blank_lines: u32, out: &mut String) {
    match blank_lines {
        0 => out.push(' '),
        count => out.extend((0..count).map(|_| '\n')),
    }
}

/// The common escapes in double-quoted text.
fn unescaped(byte: u8) -> Option<char> {
    Some(match byte {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'0' => '\0',
        b'"' | b'\\' | b'/' | b' ' => char::from(byte),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
