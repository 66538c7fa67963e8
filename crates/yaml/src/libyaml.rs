//! The parser of libyaml-safer, with the input and errors that this crate needs.
//!
//! libyaml-safer panics on a text that ends within a line of a block scalar or after a backslash, so every text that
//! it receives ends with a line break. The parser also decodes everything that a reader offers at once; [`Chunks`]
//! offers small pieces, so that memory does not grow with the document.

use std::io::{self, BufRead, Read};

use libyaml_safer::{Encoding, ErrorKind, Event, Parser};

use super::YamlError;
use super::document::NodeStart;

const CHUNK: usize = 4096;

pub(super) fn parser(text: &str) -> Parser<Chunks<'_>> {
    let mut parser = Parser::new();
    parser.set_encoding(Encoding::Utf8);
    parser.set_input(Chunks::new(text));
    parser
}

/// A reader for a text that returns pieces of whole characters and always ends with a line break.
pub(super) struct Chunks<'a> {
    rest: &'a str,
    end: &'static str,
}

impl<'a> Chunks<'a> {
    pub fn new(text: &'a str) -> Self {
        Chunks { rest: text, end: if ends_with_break(text) { "" } else { "\n" } }
    }
}

impl Read for Chunks<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = out.len().min(available.len());
        out[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Chunks<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.rest.is_empty() {
            self.rest = std::mem::take(&mut self.end);
        }
        let mut end = self.rest.len().min(CHUNK);
        while !self.rest.is_char_boundary(end) {
            end -= 1;
        }
        Ok(&self.rest.as_bytes()[..end])
    }

    fn consume(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }
}

fn ends_with_break(text: &str) -> bool {
    text.ends_with(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
}

/// Removes the line break that [`Chunks`] added, if it became part of a block scalar at the end of the text.
pub(super) fn trim_added_break(text: &str, start: usize, end: usize, value: &mut String) {
    if end < text.len() || ends_with_break(text) || !value.ends_with('\n') {
        return;
    }
    let blank = |line: &str| line.bytes().all(|byte| byte == b' ');
    let last_text_line = text.rsplit('\n').next().unwrap_or_default();
    let last_value_line = value[..value.len() - 1].rsplit('\n').next().unwrap_or_default();
    // A last line of spaces is content only if it is longer than the indentation.
    let last_line_is_content = !blank(last_text_line) || (!last_value_line.is_empty() && blank(last_value_line));
    let indicator = text.get(start..end).unwrap_or_default().lines().find_map(|line| {
        let line = line.split(" #").next().unwrap_or_default();
        line.split_whitespace().last().filter(|word| word.starts_with(['|', '>']))
    });
    let keeps_breaks = indicator.is_some_and(|indicator| indicator.contains('+'));
    if last_line_is_content || keeps_breaks {
        value.pop();
    }
}

pub(super) fn place(event: &Event) -> NodeStart {
    let mark = &event.start_mark;
    NodeStart { line: mark.line as u32, column: mark.column as u32, start: mark.index as u32 }
}

/// The parser's error, at the position where a user would look for the cause.
pub(super) fn explain(error: &libyaml_safer::Error, text: &str) -> YamlError {
    if error.kind() == ErrorKind::Reader {
        return control_character(text);
    }
    let context = error.context().unwrap_or_default();
    // The scanner detects an open quote or a missing colon long after the position where it began.
    let began = matches!(context, "while scanning a simple key" | "while scanning a quoted scalar");
    let mark = error.context_mark().filter(|_| began).or(error.problem_mark()).unwrap_or_default();
    let mut message = match error.problem() {
        "did not find expected <document start>" => "there is text after the end of the document's value",
        problem => problem,
    }
    .to_owned();
    if !context.is_empty() {
        message = format!("{message} {context}");
    }
    let (line, column) = (mark.line as usize + 1, mark.column as usize + 1);
    if text.as_bytes().get(mark.index as usize) == Some(&b'\t') {
        message.push_str(" (a tab; YAML is indented with spaces)");
    }
    YamlError { line, column, message }
}

/// The error for the first character that YAML does not allow.
fn control_character(text: &str) -> YamlError {
    let (mut line, mut column) = (1, 1);
    for character in text.chars() {
        let allowed =
            matches!(character, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
        if !allowed {
            let message = format!("the control character U+{:04X} is not allowed in YAML", u32::from(character));
            return YamlError { line, column, message };
        }
        if character == '\n' {
            line += 1;
            column = 0;
        }
        column += 1;
    }
    YamlError { line: 1, column: 1, message: "the text could not be read".into() }
}
