//! Finds the line and column of a value on demand.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

use gantry_catalog::bundle::CsvStep;
use gantry_catalog::render::RenamedField;

use super::ManifestOrigin;
use crate::problem::Location;
use crate::resource::Step;
use gantry_yaml::{KnownCollections, YamlDocument};

/// An object that is parsed again to find places in it.
pub struct Spans<'a> {
    origin: &'a ManifestOrigin,
    /// `None` if the text is valid JSON but not valid YAML. Then only the object's line is known.
    read: Option<ParsedManifest<'a>>,
}

struct ParsedManifest<'a> {
    document: YamlDocument<'a>,
    /// The collections that were searched already: an object can have thousands of findings.
    known: RefCell<KnownCollections>,
    /// The columns, from 0, at offsets in the file: a whole manifest can be one line.
    columns: RefCell<BTreeMap<usize, usize>>,
    /// The steps from the document's root to the object.
    within: Vec<Step>,
    /// The byte offset in the file of the text that was parsed.
    start: usize,
    /// The number of lines before that text.
    lines: usize,
}

/// The place of a value in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueLocation {
    /// The first character.
    pub location: Location,
    /// The number of characters to underline: those of the key, or of an item's first line.
    pub length: usize,
    /// The number of steps of the path that exist. The place is that of the last one.
    pub depth: usize,
}

impl<'a> Spans<'a> {
    /// Parses the object again: only its own text if that is known, otherwise its whole document.
    pub fn parse(origin: &'a ManifestOrigin) -> Spans<'a> {
        let read = if origin.within.is_empty() { None } else { ParsedManifest::item(origin) };
        Spans { origin, read: read.or_else(|| ParsedManifest::document(origin)) }
    }

    /// The place of the value at `path`, which starts at the object's root; if the value does not exist, the place of
    /// its nearest ancestor. For a mapping's entry this is its key, for an item its first character.
    pub fn locate(&self, path: &[Step]) -> ValueLocation {
        let file = self.origin.source.name.to_string();
        let Some(read) = &self.read else {
            let location = Location { file, line: self.origin.line, column: 1 };
            return ValueLocation { location, length: 0, depth: 0 };
        };
        let source = in_source(self.origin.renamed, path);
        let renamed = path.len().saturating_sub(source.len());
        let (depth, span) = {
            let path = steps(read.within.iter().chain(source.iter()));
            read.document.locate_with(&mut read.known.borrow_mut(), path)
        };
        let text = self.origin.source.text();
        let begin = (read.start + span.bytes.start).min(text.len());
        let end = (read.start + span.bytes.end).min(text.len());
        let first_line = text.get(begin..end).and_then(|text| text.lines().next()).unwrap_or_default();
        ValueLocation {
            location: Location {
                file,
                line: read.lines + span.line,
                // Count in the file, because the parsed text may start within a line.
                column: read.column(text, begin) + 1,
            },
            length: first_line.trim_end().chars().count().max(1),
            // A step that the source does not have counts as found.
            depth: depth.saturating_sub(read.within.len()) + renamed,
        }
    }
}

impl<'a> ParsedManifest<'a> {
    fn new(document: YamlDocument<'a>, within: Vec<Step>, start: usize, lines: usize) -> Self {
        let (known, columns) = (RefCell::default(), RefCell::default());
        ParsedManifest { document, known, columns, within, start, lines }
    }

    /// The number of characters before an offset in its line. They are counted from the nearest offset that is known.
    fn column(&self, text: &str, at: usize) -> usize {
        let mut known = self.columns.borrow_mut();
        let (from, column) = known.range(..=at).next_back().map_or((0, 0), |(from, column)| (*from, *column));
        let between = &text[from..at];
        let column = match between.rfind('\n') {
            Some(end) => between[end + 1..].chars().count(),
            None => column + between.chars().count(),
        };
        known.insert(at, column);
        column
    }

    fn document(origin: &'a ManifestOrigin) -> Option<ParsedManifest<'a>> {
        let document = YamlDocument::read(origin.source.text().get(origin.bytes.clone())?).ok()??;
        let (_, object) = document.locate(steps(&origin.within));
        // The object's line is known both in the file and in the document, so lines need not be counted.
        let lines = origin.line.saturating_sub(object.line);
        Some(ParsedManifest::new(document, origin.within.clone(), origin.bytes.start, lines))
    }

    /// Parses only the text of one item of a list, because a list may be long and every item may be needed.
    /// `None` if that text is unknown or cannot be parsed separately.
    fn item(origin: &'a ManifestOrigin) -> Option<ParsedManifest<'a>> {
        let range = item_text(origin)?;
        let document = YamlDocument::read(&origin.source.text()[range.clone()]).ok()??;
        let block = origin.source.text()[range.clone()].trim_start().starts_with("- ");
        let within = if block { vec![Step::Index(0)] } else { Vec::new() };
        Some(ParsedManifest::new(document, within, range.start, origin.line - 1))
    }
}

/// The path in the source of a rendered object.
fn in_source<'p>(renamed: &[RenamedField], path: &'p [Step]) -> Cow<'p, [Step]> {
    let step = |step: &CsvStep| match step {
        CsvStep::Key(key) => Step::from(*key),
        CsvStep::Index(index) => Step::from(*index),
    };
    for RenamedField { rendered, source } in renamed {
        let is_below = path.len() >= rendered.len() && rendered.iter().zip(path).all(|(known, of)| step(known) == *of);
        if is_below {
            return source.iter().map(step).chain(path[rendered.len()..].iter().cloned()).collect::<Vec<_>>().into();
        }
    }
    Cow::Borrowed(path)
}

/// Converts a path to the steps of the YAML parser.
pub(super) fn steps<'a>(path: impl IntoIterator<Item = &'a Step>) -> impl Iterator<Item = gantry_yaml::YamlStep<'a>> {
    path.into_iter().map(|step| match step {
        Step::Key(key) => gantry_yaml::YamlStep::Key(key),
        Step::Index(index) => gantry_yaml::YamlStep::Index(*index),
    })
}

/// The lines of a block list's item, from its dash to the next line that is not indented further; or those of a JSON
/// object that shares no line with others.
fn item_text(origin: &ManifestOrigin) -> Option<Range<usize>> {
    if origin.within.len() != 2 {
        return None;
    }
    let text = origin.source.text().get(origin.bytes.clone())?;
    let before = origin.source.text()[..origin.bytes.start].matches('\n').count();
    let start = line_start(text, origin.line.checked_sub(before + 1)?)?;
    let rest = &text[start..];
    let indent = rest.len() - rest.trim_start_matches(' ').len();
    let length = if rest[indent..].starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<serde::de::IgnoredAny>();
        values.next()?.ok()?;
        let length = values.byte_offset();
        // "items" must come before it, otherwise it is the list itself. Nothing may follow it, otherwise the line may
        // contain two items.
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

/// The byte offset at which a line starts. Lines are counted from 0.
fn line_start(text: &str, line: usize) -> Option<usize> {
    match line {
        0 => Some(0),
        _ => text.match_indices('\n').nth(line - 1).map(|(at, _)| at + 1),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::ManifestSource;
    use super::*;

    const RENAMED: &[RenamedField] = &[
        RenamedField {
            rendered: &[CsvStep::Key("webhooks"), CsvStep::Index(0), CsvStep::Key("name")],
            source: &[CsvStep::Key("generateName")],
        },
        RenamedField { rendered: &[CsvStep::Key("webhooks"), CsvStep::Index(0)], source: &[] },
    ];

    #[test]
    fn columns_count_characters_in_whatever_order_places_are_asked_for() {
        let text = "# é\n{\"é\": {\"ü\": 1}, \"b\": [2, {\"c\": \"é\"}],\n \"d\": 3}";
        let origin = ManifestOrigin {
            source: Arc::new(ManifestSource::new("a.json", text.to_owned())),
            document: 1,
            line: 2,
            bytes: 0..text.len(),
            within: Vec::new(),
            renamed: &[],
        };
        let spans = Spans::parse(&origin);
        let located = |path: &[Step]| {
            let Location { line, column, .. } = spans.locate(path).location;
            (line, column)
        };
        for _ in 0..2 {
            assert_eq!(located(&["d".into()]), (3, 2));
            assert_eq!(located(&["b".into(), 1.into(), "c".into()]), (2, 27));
            assert_eq!(located(&["é".into()]), (2, 2));
            assert_eq!(located(&["b".into()]), (2, 17));
            assert_eq!(located(&["é".into(), "ü".into()]), (2, 8));
        }
    }

    #[test]
    fn a_field_of_a_rendered_object_is_found_where_its_value_is_written() {
        let text =
            "spec:\n  hooks:\n  - generateName: a\n    rules:\n    - verbs: [x]\n  - generateName: b\n    port: 1\n";
        let origin = ManifestOrigin {
            source: Arc::new(ManifestSource::new("csv.yaml", text.to_owned())),
            document: 1,
            line: 3,
            bytes: 0..text.len(),
            within: vec!["spec".into(), "hooks".into(), 0.into()],
            renamed: RENAMED,
        };
        let of_first = |path: &[Step]| Spans::parse(&origin).locate(path).location.line;
        let webhook = |rest: &[Step]| [&["webhooks".into(), 0.into()], rest].concat();
        assert_eq!(of_first(&webhook(&["name".into()])), 3);
        assert_eq!(of_first(&webhook(&["rules".into(), 0.into(), "verbs".into()])), 5);
        // What is not written is at the part that the object is made from.
        assert_eq!((of_first(&webhook(&["missing".into()])), of_first(&["metadata".into()])), (3, 3));
        let second = ManifestOrigin { within: vec!["spec".into(), "hooks".into(), 1.into()], ..origin.clone() };
        assert_eq!(Spans::parse(&second).locate(&webhook(&["port".into()])).location.line, 7);
    }
}
