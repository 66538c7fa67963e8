//! The line and column of a value, found when somebody asks.

use std::ops::Range;

use super::Origin;
use crate::problem::Location;
use crate::resource::Step;
use gantry_yaml::Document;

/// An object read once more, to find places in it.
pub struct Spans<'a> {
    origin: &'a Origin,
    /// Absent where the text is JSON that no YAML reader takes: then the object's line is all that is known.
    read: Option<Read<'a>>,
}

struct Read<'a> {
    document: Document<'a>,
    /// The steps from the document's root to the object.
    within: Vec<Step>,
    /// Where the text that was read starts in the file.
    start: usize,
    /// The lines before that text.
    lines: usize,
}

/// The place of a value in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    pub location: Location,
    /// How many characters of that line to underline: those of the key, or of an item's first line.
    pub length: usize,
    /// How many steps of the path exist. The place is that of the last one.
    pub depth: usize,
}

impl<'a> Spans<'a> {
    /// Reads the object again: only its own text where that is known, its whole document otherwise.
    pub fn of(origin: &'a Origin) -> Spans<'a> {
        let read = if origin.within.is_empty() { None } else { Read::item(origin) };
        Spans { origin, read: read.or_else(|| Read::document(origin)) }
    }

    /// The place of the value at `path`, counted from the object's root; of its nearest ancestor if it does not exist.
    /// For a mapping's entry that is its key, for an item its first character.
    pub fn locate(&self, path: &[Step]) -> Located {
        let file = self.origin.source.name.to_string();
        let Some(read) = &self.read else {
            let location = Location { file, line: self.origin.line, column: 1 };
            return Located { location, length: 0, depth: 0 };
        };
        let (depth, span) = read.document.locate(steps(read.within.iter().chain(path)));
        let text = &self.origin.source.text;
        let begin = (read.start + span.bytes.start).min(text.len());
        let end = (read.start + span.bytes.end).min(text.len());
        let first_line = text.get(begin..end).and_then(|text| text.lines().next()).unwrap_or_default();
        let line_start = text[..begin].rfind('\n').map_or(0, |at| at + 1);
        Located {
            location: Location {
                file,
                line: read.lines + span.line,
                // Counted in the file: the text that was read may start within a line.
                column: text[line_start..begin].chars().count() + 1,
            },
            length: first_line.trim_end().chars().count().max(1),
            depth: depth.saturating_sub(read.within.len()),
        }
    }
}

impl<'a> Read<'a> {
    fn document(origin: &'a Origin) -> Option<Read<'a>> {
        let document = Document::read(origin.source.text.get(origin.bytes.clone())?).ok()??;
        let (_, object) = document.locate(steps(&origin.within));
        // The object's line is known in the file and in the document: no need to count the lines before.
        let lines = origin.line.saturating_sub(object.line);
        Some(Read { document, within: origin.within.clone(), start: origin.bytes.start, lines })
    }

    /// Only the text of one item of a list, because a list may be long and all of its items may be asked for.
    /// `None` where that text is not known or is not a whole by itself.
    fn item(origin: &'a Origin) -> Option<Read<'a>> {
        let range = item_text(origin)?;
        let document = Document::read(&origin.source.text[range.clone()]).ok()??;
        let block = origin.source.text[range.clone()].trim_start().starts_with("- ");
        let within = if block { vec![Step::Index(0)] } else { Vec::new() };
        Some(Read { document, within, start: range.start, lines: origin.line - 1 })
    }
}

/// A path as the reader of YAML takes it.
pub(super) fn steps<'a>(path: impl IntoIterator<Item = &'a Step>) -> impl Iterator<Item = gantry_yaml::Step<'a>> {
    path.into_iter().map(|step| match step {
        Step::Key(key) => gantry_yaml::Step::Key(key),
        Step::Index(index) => gantry_yaml::Step::Index(*index),
    })
}

/// The lines of a block list's item, from its dash to the next line that is indented no further; or a JSON object
/// that has its lines for itself.
fn item_text(origin: &Origin) -> Option<Range<usize>> {
    if origin.within.len() != 2 {
        return None;
    }
    let text = origin.source.text.get(origin.bytes.clone())?;
    let before = origin.source.text[..origin.bytes.start].matches('\n').count();
    let start = line_start(text, origin.line.checked_sub(before + 1)?)?;
    let rest = &text[start..];
    let indent = rest.len() - rest.trim_start_matches(' ').len();
    let length = if rest[indent..].starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        values.next()?.ok()?;
        let length = values.byte_offset();
        // Something before it, or it would be the list; nothing behind it, or the line might hold two items.
        let behind = rest[length..].lines().next().unwrap_or_default();
        if !text[..start].contains("items") || !behind.trim_matches([',', ']', '}', ' ', '\t', '\r']).is_empty() {
            return None;
        }
        length
    } else if rest[indent..].starts_with("- ") {
        let mut at = rest.find('\n').map_or(rest.len(), |end| end + 1);
        while at < rest.len() {
            let end = rest[at..].find('\n').map_or(rest.len(), |length| at + length + 1);
            let line = rest[at..end].trim_end();
            let content = line.trim_start_matches(' ');
            if !content.is_empty() && !content.starts_with('#') && line.len() - content.len() <= indent {
                break;
            }
            at = end;
        }
        at
    } else {
        return None;
    };
    let start = origin.bytes.start + start;
    Some(start..start + length)
}

/// The byte at which a line starts, counted from 0.
fn line_start(text: &str, line: usize) -> Option<usize> {
    match line {
        0 => Some(0),
        _ => text.match_indices('\n').nth(line - 1).map(|(at, _)| at + 1),
    }
}
