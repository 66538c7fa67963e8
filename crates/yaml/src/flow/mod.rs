//! Reads JSON without a YAML parser.
//!
//! JSON written by a program is flow-style YAML, which libyaml reads one character at a time. This reader accepts JSON
//! only, and only if it is also YAML: it gives up (`None`) at comments and errors. Then libyaml reads the text and
//! reports any errors. Both must produce the same nodes for every text that this reader accepts, and the tests compare
//! them. The only exception is surrogate pairs, which many programs write for emoji, and which libyaml cannot read.
//!
//! This reader exists for speed: see `cargo bench --bench yaml`.

use std::borrow::Cow;

use super::block::{LONGEST_KEY, is_ordinary};
use super::document::{NodeStart, RawYamlNode, YamlDocument, YamlNodeKind};
use super::limits::{MAX_BYTES, MAX_DEPTH, MAX_NODES};

/// Reads a document that is a JSON object or array; `None` for everything else.
pub(super) fn compose(text: &str) -> Option<YamlDocument<'_>> {
    let is_bracket = |byte: &u8| matches!(byte, b'{' | b'[');
    let first = text.bytes().find(|byte| !matches!(byte, b' ' | b'\n'))?;
    if !is_bracket(&first) || text.len() > MAX_BYTES || !is_ordinary(text) {
        return None;
    }
    let nodes = Vec::with_capacity(text.len() / 32);
    let mut reader =
        FlowReader { text, bytes: text.as_bytes(), at: 0, line: 0, line_start: 0, wide: 0, nodes, open: Vec::new() };
    reader.run()?;
    YamlDocument::from_nodes(reader.nodes)
}

struct FlowReader<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// The number of the current line, from 0.
    line: u32,
    line_start: usize,
    /// The number of bytes so far in the line that do not begin a character: columns count characters.
    wide: usize,
    nodes: Vec<RawYamlNode<'t>>,
    open: Vec<OpenFlowCollection>,
}

/// A collection that is still open.
struct OpenFlowCollection {
    node: u32,
    is_list: bool,
}

impl<'t> FlowReader<'t> {
    fn run(&mut self) -> Option<()> {
        self.skip_blanks();
        loop {
            // Read a value.
            match *self.bytes.get(self.at)? {
                bracket @ (b'{' | b'[') => {
                    let is_list = bracket == b'[';
                    let at = self.place();
                    self.open.push(OpenFlowCollection { node: u32::try_from(self.nodes.len()).ok()?, is_list });
                    (self.open.len() <= MAX_DEPTH).then_some(())?;
                    let kind =
                        if is_list { YamlNodeKind::Sequence { next: 0 } } else { YamlNodeKind::Mapping { next: 0 } };
                    self.push(kind, at, self.at)?;
                    self.at += 1;
                    self.skip_blanks();
                    let is_empty = *self.bytes.get(self.at)? == if is_list { b']' } else { b'}' };
                    if !is_empty {
                        if !is_list {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b'"' => self.string()?,
                _ => self.literal()?,
            }
            // Read what follows the value.
            loop {
                self.skip_blanks();
                let Some(&byte) = self.bytes.get(self.at) else { return self.open.is_empty().then_some(()) };
                let is_list = self.open.last()?.is_list;
                match byte {
                    b',' => {
                        self.at += 1;
                        self.skip_blanks();
                        if !is_list {
                            self.key()?;
                        }
                        break;
                    }
                    b']' if is_list => self.close()?,
                    b'}' if !is_list => self.close()?,
                    _ => return None,
                }
            }
        }
    }

    fn close(&mut self) -> Option<()> {
        let opened = self.open.pop()?;
        self.at += 1;
        let next_index = u32::try_from(self.nodes.len()).ok()?;
        let raw = &mut self.nodes[opened.node as usize];
        raw.end = u32::try_from(self.at).ok()?;
        if let YamlNodeKind::Sequence { next } | YamlNodeKind::Mapping { next } = &mut raw.kind {
            *next = next_index;
        }
        Some(())
    }

    /// Reads a key, its colon, and the space before the value.
    fn key(&mut self) -> Option<()> {
        (*self.bytes.get(self.at)? == b'"').then_some(())?;
        let start = self.at;
        self.string()?;
        // YAML requires the colon on the same line as the key.
        while *self.bytes.get(self.at)? == b' ' {
            self.at += 1;
        }
        (*self.bytes.get(self.at)? == b':' && self.at - start <= LONGEST_KEY).then_some(())?;
        self.at += 1;
        self.skip_blanks();
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let (place, start) = (self.place(), self.at);
        let mut out: Option<String> = None;
        let mut run = start + 1;
        let mut at = run;
        loop {
            // JSON does not allow a line break or a tab in a string.
            let length = self.bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n' | b'\t'))?;
            at += length;
            match self.bytes[at] {
                b'"' => break,
                b'\\' => {
                    let out = out.get_or_insert_default();
                    out.push_str(&self.text[run..at]);
                    let (character, length) = escaped(&self.bytes[at + 1..])?;
                    out.push(character);
                    at += 1 + length;
                    run = at;
                }
                _ => return None,
            }
        }
        let rest = &self.text[run..at];
        let value = match out {
            None => Cow::Borrowed(rest),
            Some(out) => Cow::Owned(out + rest),
        };
        self.at = at + 1;
        self.wide += self.bytes[start..self.at].iter().filter(|byte| (0x80..0xc0).contains(*byte)).count();
        self.push(YamlNodeKind::Scalar { value, tag: None, plain: false }, place, self.at)
    }

    /// Reads a number, `true`, `false` or `null`.
    fn literal(&mut self) -> Option<()> {
        let (place, start) = (self.place(), self.at);
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        let length = self.bytes[start..].iter().take_while(is_part).count();
        let text = &self.text[start..start + length];
        (matches!(text, "true" | "false" | "null") || is_number(text.as_bytes())).then_some(())?;
        self.at = start + length;
        self.push(YamlNodeKind::Scalar { value: Cow::Borrowed(text), tag: None, plain: true }, place, self.at)
    }

    fn push(&mut self, kind: YamlNodeKind<'t>, at: NodeStart, end: usize) -> Option<()> {
        (self.nodes.len() < MAX_NODES).then_some(())?;
        self.nodes.push(RawYamlNode { kind, at, end: u32::try_from(end).ok()? });
        Some(())
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    (self.line, self.line_start, self.wide) = (self.line + 1, self.at, 0);
                }
                _ => break,
            }
        }
    }

    fn place(&self) -> NodeStart {
        // The length of the text has been checked, so the casts do not truncate.
        NodeStart { line: self.line, column: (self.at - self.line_start - self.wide) as u32, start: self.at as u32 }
    }
}

/// The character for the escape after a backslash, and the length of the escape in bytes.
fn escaped(bytes: &[u8]) -> Option<(char, usize)> {
    let character = match bytes.first()? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'u' => {
            let first = code_unit(bytes)?;
            if let Some(character) = char::from_u32(u32::from(first)) {
                return Some((character, 5));
            }
            // Two surrogates form one character; YAML does not have such pairs.
            let second = code_unit(bytes.get(5..)?.strip_prefix(b"\\")?)?;
            return Some((char::decode_utf16([first, second]).next()?.ok()?, 11));
        }
        _ => return None,
    };
    Some((character, 1))
}

/// Reads `u` and four hexadecimal digits.
fn code_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"u")?.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Whether the text is a JSON number: `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    if whole == 0 || whole > 1 && text[0] == b'0' {
        return false;
    }
    let mut rest = &text[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = digits(fraction);
        if length == 0 {
            return false;
        }
        rest = &fraction[length..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', exponent @ ..] => exponent,
            _ => exponent,
        };
        let length = digits(exponent);
        return length > 0 && length == exponent.len();
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests;
