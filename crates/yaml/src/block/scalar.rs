//! Scalars: plain, quoted, and block scalars, which can span several lines.

use std::borrow::Cow;

use super::{BlockReader, ScannedScalar, Stop};

/// The end of a plain scalar's part on one line.
pub(super) struct PlainScalarLine {
    pub(super) end: usize,
    pub(super) stop: Stop,
}

impl<'t> BlockReader<'t> {
    pub(super) fn starts_plain(&self, start: usize) -> bool {
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
    pub(super) fn plain_line(&self, start: usize) -> Option<PlainScalarLine> {
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
        Some(PlainScalarLine { end: start + length, stop })
    }

    /// Reads a plain scalar, which continues as long as the following lines are indented more than its parent.
    pub(super) fn read_plain_scalar(&mut self, start: usize, parent: usize) -> Option<ScannedScalar<'t>> {
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
                    None => return Some(ScannedScalar { value, plain: true, end }),
                }
                blank_lines += 1;
            };
            let start = next + column;
            if line.stop == Stop::Comment || column <= parent || self.bytes[start] == b'#' {
                return Some(ScannedScalar { value, plain: true, end });
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

    pub(super) fn quoted(&mut self, start: usize) -> Option<ScannedScalar<'t>> {
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
                    return Some(ScannedScalar { value, plain: false, end: at + 1 });
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
    pub(super) fn block(&mut self, start: usize, parent: usize) -> Option<ScannedScalar<'t>> {
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
        Some(ScannedScalar { value: Cow::Owned(out), plain: false, end: self.at })
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
