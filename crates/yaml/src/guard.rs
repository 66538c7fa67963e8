//! Rejects texts that must not reach the parser.
//!
//! libyaml-safer panics if a tag is directly followed by a comma in a flow collection. Such texts are detected first,
//! so that no manifest can crash the process. [`super::libyaml`] prevents the other panics.

use libyaml_safer::EventData;

use super::YamlError;
use super::document::error_at;
use super::libyaml::{explain, parser, place};

/// Rejects texts that must not reach the parser.
pub(super) fn check(text: &str) -> Result<(), YamlError> {
    if let Some((spaced, marked)) = space_out_tags(text) {
        // Parsing the text with a space before each such comma shows whether one of them follows an actual tag.
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

fn drain(text: &str, mut look: impl FnMut(&libyaml_safer::Event) -> Result<(), YamlError>) -> Result<(), YamlError> {
    let mut parser = parser(text);
    loop {
        let event = parser.parse().map_err(|error| explain(&error, text))?;
        if event.data == EventData::StreamEnd {
            return Ok(());
        }
        look(&event)?;
    }
}

/// The text with a space before each comma that directly follows a possible tag, and the positions of these spaces.
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
