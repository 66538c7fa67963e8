//! Splits a text into its documents without parsing it.
//!
//! `---` and `...` at the start of a line always end a document, even inside a quoted scalar. So documents can be found
//! by looking at lines, and then be parsed independently, on all cores.

use std::ops::Range;

use memchr::{memchr, memmem};
use serde::de::IgnoredAny;

/// A document of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub bytes: Range<usize>,
    /// The lines before it, and the characters before it on its first line.
    pub line: usize,
    pub column: usize,
}

/// The documents of `text`, in order, without those that contain only markers, blank lines and comments. `None` if
/// there are more than `most`.
pub(super) fn split(text: &str, most: usize) -> Option<Vec<Piece>> {
    let (mut at, mut line, mut column) = (0, 0, 0);
    let locate = |bytes: Range<usize>| {
        let between = &text[at..bytes.start];
        at = bytes.start;
        match between.rfind('\n') {
            Some(last) => {
                line += between.bytes().filter(|byte| *byte == b'\n').count();
                column = between[last + 1..].chars().count();
            }
            None => column += between.chars().count(),
        }
        Piece { bytes, line, column }
    };
    let ranges = ranges(text, most);
    (ranges.len() <= most).then(|| ranges.into_iter().map(locate).collect())
}

/// The byte range of each document. Stops soon after `most` is exceeded.
fn ranges(text: &str, most: usize) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for line in marker_lines(text) {
        if pieces.len() > most {
            break;
        }
        let end = memchr(b'\n', &text.as_bytes()[line..]).map_or(text.len(), |length| line + length + 1);
        let bytes = &text.as_bytes()[line..end];
        if is_marker(bytes, b"---") && line > start && !is_prologue(&text[start..line]) {
            add_document(text, start..line, most, &mut pieces);
            start = line;
        } else if is_marker(bytes, b"...") {
            add_document(text, start..end, most, &mut pieces);
            start = end;
        }
    }
    if pieces.len() <= most {
        add_document(text, start..text.len(), most, &mut pieces);
    }
    pieces
}

/// The starts of the lines that may be markers, in order.
fn marker_lines(text: &str) -> impl Iterator<Item = usize> + '_ {
    const MARKERS: [&str; 2] = ["\n---", "\n..."];
    let first = MARKERS.iter().any(|marker| text.starts_with(&marker[1..])).then_some(0);
    let mut found = MARKERS.map(|marker| memmem::find_iter(text.as_bytes(), marker).map(|at| at + 1).peekable());
    let next = move || {
        let [starts, ends] = &mut found;
        match (starts.peek(), ends.peek()) {
            (Some(start), Some(end)) if end < start => ends.next(),
            (Some(_), _) => starts.next(),
            (None, _) => ends.next(),
        }
    };
    first.into_iter().chain(std::iter::from_fn(next))
}

/// Whether a document is certainly empty. The parser decides about anything unusual, such as a control character in a
/// comment, or an end (`...`) without a start.
fn is_blank(text: &str) -> bool {
    let mut started = false;
    text.lines().all(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let is_start = is_marker(line.as_bytes(), b"---");
        started |= is_start;
        match if is_start { &line[3..] } else { line }.trim_start_matches(' ') {
            "" => true,
            "..." => started,
            rest => rest.starts_with('#') && rest.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')),
        }
    })
}

fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    line.starts_with(marker) && matches!(line.get(3), None | Some(b' ' | b'\t' | b'\r' | b'\n'))
}

/// Whether the text contains only directives (`%YAML 1.1`), which belong to the document that follows.
fn is_prologue(text: &str) -> bool {
    let mut directives = 0;
    for line in text.lines() {
        match line.trim_start().bytes().next() {
            None | Some(b'#') => {}
            Some(b'%') if line.starts_with('%') => directives += 1,
            _ => return false,
        }
    }
    directives > 0
}

/// Adds one document, or several if it is a sequence of JSON values.
fn add_document(text: &str, bytes: Range<usize>, most: usize, pieces: &mut Vec<Range<usize>>) {
    let document = &text[bytes.clone()];
    if is_blank(document) {
        return;
    }
    let mut from = bytes.start;
    let head = if is_marker(document.as_bytes(), b"---") { 3 } else { 0 };
    if document[head..].trim_start().starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(&document[head..]).into_iter::<IgnoredAny>();
        let mut ends = Vec::new();
        while ends.len() <= most
            && let Some(Ok(_)) = values.next()
        {
            ends.push(bytes.start + head + values.byte_offset());
        }
        // Anything after the last value (a comment, invalid text) is a separate document, unless it is blank.
        for end in ends {
            pieces.push(from..end);
            from = end;
        }
        if from > bytes.start && text[from..bytes.end].trim().is_empty() {
            return;
        }
    }
    if from < bytes.end {
        pieces.push(from..bytes.end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<&str> {
        split(text, 9).unwrap().into_iter().map(|piece| &text[piece.bytes]).collect()
    }

    #[test]
    fn markers_at_the_start_of_a_line_end_a_document() {
        assert_eq!(pieces("a: 1\n---\nb: 2\n--- # c\nc: 3"), ["a: 1\n", "---\nb: 2\n", "--- # c\nc: 3"]);
        assert_eq!(pieces("---\r\na: |\r\n  ---\r\n---\r\nb: 1"), ["---\r\na: |\r\n  ---\r\n", "---\r\nb: 1"]);
        assert_eq!(pieces("a: 1\n...\nb: 2\n"), ["a: 1\n...\n", "b: 2\n"]);
        assert_eq!(pieces("---a: 1\n----\n"), ["---a: 1\n----\n"]);
        assert_eq!(pieces("--- a\n--- b\n---"), ["--- a\n", "--- b\n"]);
        assert_eq!(pieces(""), Vec::<&str>::new());
    }

    #[test]
    fn documents_have_their_lines() {
        let places = |text| split(text, 9).unwrap().iter().map(|piece| (piece.line, piece.column)).collect::<Vec<_>>();
        assert_eq!(places("a: 1\n\n---\nb: 1\n---\n"), [(0, 0), (2, 0)]);
        assert_eq!(places("{\"é\":1}{\"b\":1}{}\n{}"), [(0, 0), (0, 7), (0, 14), (0, 16)]);
    }

    #[test]
    fn directives_stay_with_their_document() {
        assert_eq!(pieces("%YAML 1.1\n# c\n---\na: 1\n---\nb"), ["%YAML 1.1\n# c\n---\na: 1\n", "---\nb"]);
        assert_eq!(pieces("# only a comment\n---\na: 1\n"), ["---\na: 1\n"]);
    }

    #[test]
    fn empty_documents_are_left_out() {
        assert_eq!(pieces(&"---\n".repeat(1000)), Vec::<&str>::new());
        assert_eq!(pieces(&"--- # c\r\n\n  # d\n...\n".repeat(1000)), Vec::<&str>::new());
        for kept in [
            "null\n",
            "...\n...\n",
            "--- ~\n",
            "# \u{7}\n",
            "# \u{85}\n",
            "---\n\t\n",
            "--- |\n",
            "---x",
            "%YAML 1.1\n",
        ] {
            assert_eq!(pieces(&format!("a\n---\n{kept}")).len(), 2, "{kept:?}");
        }
        // The parser also finds nothing in the documents that are left out.
        for blank in ["", "---\n", "---\n...\n", "--- # c\n  # d\n\n", "# c\r\n---\r\n"] {
            let read = gantry_yaml::to_json(blank).unwrap();
            assert!(is_blank(blank) && read.is_none_or(|json| json.text == "null"), "{blank:?}");
        }
    }

    #[test]
    fn too_many_documents_are_not_collected() {
        assert_eq!(split("--- a\n--- b\n--- c\n", 3).map(|pieces| pieces.len()), Some(3));
        for text in ["--- a\n".repeat(1000), "{}".repeat(1000), "a\n...\n".repeat(1000)] {
            assert_eq!(split(&text, 3), None);
            assert!(ranges(&text, 3).len() <= 5);
        }
    }

    #[test]
    fn json_values_may_follow_each_other() {
        assert_eq!(pieces("{\"a\":1}{\"b\":\"}\"}\n {\"c\":1}\n"), ["{\"a\":1}", "{\"b\":\"}\"}", "\n {\"c\":1}"]);
        assert_eq!(pieces("{\"a\":1}\n---\n{\"b\":1}\n"), ["{\"a\":1}", "---\n{\"b\":1}"]);
        assert_eq!(pieces("{\"a\":1}\n{\"b\":}"), ["{\"a\":1}", "\n{\"b\":}"]);
        assert_eq!(pieces("{a: 1}\n"), ["{a: 1}\n"]);
    }
}
