//! What a text has to pass before it reaches the parser.
//!
//! libyaml-safer panics on inputs that its C original takes or refuses: a text that ends inside a line of a block scalar
//! or behind a backslash, and a tag directly before a comma in a flow collection. The first two are cured by ending
//! every text with a line break, the third is found before, so that no manifest can bring the process down.
//! The parser also decodes whatever a reader offers in one go; [`Chunks`] offers little at a time, so that its memory
//! does not grow with the document.

use std::io::{self, BufRead, Read};

use libyaml_safer::EventData;

use super::Error;
use super::compose::{error_at, explain, parser, place};

const CHUNK: usize = 4096;

/// A text as a reader that offers it in pieces of whole characters, and always ends with a line break.
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

/// Takes back the line break that [`Chunks`] added, where it became part of a block scalar that ends with the text.
pub(super) fn trim_added_break(text: &str, start: usize, end: usize, value: &mut String) {
    if end < text.len() || ends_with_break(text) || !value.ends_with('\n') {
        return;
    }
    let blank = |line: &str| line.bytes().all(|byte| byte == b' ');
    let last_text_line = text.rsplit('\n').next().unwrap_or_default();
    let last_value_line = value[..value.len() - 1].rsplit('\n').next().unwrap_or_default();
    // A last line of nothing but spaces is content only where it is longer than the indentation.
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

/// Refuses the texts that the parser must not see.
pub(super) fn check(text: &str) -> Result<(), Error> {
    if let Some((spaced, marked)) = space_out_tags(text) {
        // Reading the text with a space before each such comma shows whether one of them follows a real tag.
        drain(&spaced, |event| {
            let tagged = match &event.data {
                EventData::Scalar { tag, .. }
                | EventData::SequenceStart { tag, .. }
                | EventData::MappingStart { tag, .. } => tag.is_some(),
                _ => false,
            };
            let (start, end) = (event.start_mark.index as usize, event.end_mark.index as usize);
            let comma = marked.partition_point(|comma| *comma < start);
            match marked.get(comma) {
                Some(comma) if tagged && *comma <= end.max(start) => {
                    Err(error_at(place(event), "a tag must be followed by a space".into()))
                }
                _ => Ok(()),
            }
        })?;
    }
    Ok(())
}

fn drain(text: &str, mut look: impl FnMut(&libyaml_safer::Event) -> Result<(), Error>) -> Result<(), Error> {
    let mut parser = parser(text);
    loop {
        let event = parser.parse().map_err(|error| explain(&error, text))?;
        if event.data == EventData::StreamEnd {
            return Ok(());
        }
        look(&event)?;
    }
}

/// The text with a space put before each comma that directly follows what may be a tag, and where those spaces are.
fn space_out_tags(text: &str) -> Option<(String, Vec<usize>)> {
    let bytes = text.as_bytes();
    let mut commas = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('!') {
        let start = at + found;
        let run = bytes[start..].iter().take_while(|byte| is_tag_byte(**byte)).count();
        at = start + run;
        if bytes.get(at) == Some(&b',') {
            commas.push(at);
        }
    }
    if commas.is_empty() {
        return None;
    }
    let mut spaced = String::with_capacity(text.len() + commas.len());
    let mut from = 0;
    for comma in &mut commas {
        spaced.push_str(&text[from..*comma]);
        from = *comma;
        *comma = spaced.len();
        spaced.push(' ');
    }
    spaced.push_str(&text[from..]);
    Some((spaced, commas))
}

fn is_tag_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_;/?:@&=+$.!~*'()%".contains(&byte)
}

/// The first character that YAML does not allow.
pub(super) fn control_character(text: &str) -> Error {
    let (mut line, mut column) = (1, 1);
    for character in text.chars() {
        let allowed =
            matches!(character, '\t' | '\n' | '\r' | '\u{85}' | ' '..='~' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
        if !allowed {
            let message = format!("the control character U+{:04X} is not allowed in YAML", u32::from(character));
            return Error { line, column, message };
        }
        if character == '\n' {
            line += 1;
            column = 0;
        }
        column += 1;
    }
    Error { line: 1, column: 1, message: "the text could not be read".into() }
}
