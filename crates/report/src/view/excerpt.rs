//! The line that a finding points to, with a mark below it. Drawn by annotate-snippets.
//!
//! The text is sanitized first, and the position of the mark is adjusted: an escaped character is longer than in the
//! file. A line may be a whole JSON file, so only the part around the mark is kept.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};

use super::{Excerpts, LineIndex};
use gantry_core::finding::Source;
use gantry_core::text;

/// The number of characters that are kept before and after the start of the mark.
const BEFORE: usize = 120;
const BEHIND: usize = 200;
/// A mark covers at most this many characters.
const LONGEST_MARK: usize = 80;
/// How many lines above the place are searched for the enclosing key.
const PARENT_WITHIN: usize = 30;
/// Keys that do not identify the place, so that the key above them is shown.
const STRUCTURAL: [&str; 4] = ["properties", "items", "schema", "openAPIV3Schema"];

/// A drawn excerpt.
pub struct Excerpt {
    pub text: String,
    /// The width of its line numbers, to align the text around it.
    pub gutter: usize,
}

/// How the mark looks.
pub struct Style<'a> {
    pub level: Level<'a>,
    pub color: bool,
    pub width: usize,
}

/// Draws the line at `place`; `None` if it is unavailable.
pub fn draw(place: &Source, label: Option<&str>, excerpts: &dyn Excerpts, style: Style<'_>) -> Option<Excerpt> {
    let raw = excerpts.line(&place.file, place.line)?;
    let line = ShownLine::of_place(place, raw, excerpts);
    let label = label.map(|label| text::cut(&text::sanitize(label), 200).into_owned());

    let parent = parent_of(place, raw, excerpts);
    let mut source = String::new();
    let mut first = place.line;
    let mut visible = None;
    if let Some((number, parent)) = parent {
        // The lines between the two are left out, unless it is only one.
        first = number;
        source.push_str(&ShownLine::new(parent, 1).text);
        visible = Some(0..source.len());
        for between in number + 1..place.line {
            source.push('\n');
            source.push_str(&ShownLine::new(excerpts.line(&place.file, between).unwrap_or_default(), 1).text);
        }
        source.push('\n');
    }
    let offset = source.len();
    source.push_str(&line.text);
    let mark = offset + line.mark.start..offset + line.mark.end;

    let mut snippet =
        Snippet::source(source).line_start(first).annotations(visible.map(|span| AnnotationKind::Visible.span(span)));
    let mut annotation = AnnotationKind::Primary.span(mark);
    if let Some(label) = label {
        annotation = annotation.label(label);
    }
    snippet = snippet.annotation(annotation);
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(style.width).decor_style(DecorStyle::Ascii);
    let text = renderer.render(&[Group::with_level(style.level).element(snippet)]);
    Some(Excerpt { text, gutter: place.line.to_string().len() })
}

/// A line of an excerpt.
pub struct ExcerptLine {
    pub number: usize,
    /// Sanitized, and cut around the mark if it is long.
    pub text: String,
    /// The bytes to mark.
    pub mark: Option<Range<usize>>,
}

/// The line at `place`, the line of the enclosing key, and a number of lines of the same document on either side;
/// nothing if it is unavailable.
pub fn lines(place: &Source, excerpts: &dyn Excerpts, context: usize) -> Vec<ExcerptLine> {
    let Some(raw) = excerpts.line(&place.file, place.line) else { return Vec::new() };
    let marked = ShownLine::of_place(place, raw, excerpts);
    let plain = |number: usize| {
        let raw = excerpts.line(&place.file, number).filter(|line| !line.starts_with("---"))?;
        Some(ExcerptLine { number, text: ShownLine::new(raw, 1).text, mark: None })
    };
    let before = (place.line.saturating_sub(context)..place.line).rev().map_while(plain);
    let mut lines: Vec<ExcerptLine> = before.collect();
    let first = lines.last().map_or(place.line, |line| line.number);
    if let Some((number, _)) = parent_of(place, raw, excerpts).filter(|(number, _)| *number < first) {
        lines.extend(plain(number));
    }
    lines.reverse();
    lines.push(ExcerptLine { number: place.line, text: marked.text, mark: Some(marked.mark) });
    lines.extend((place.line + 1..=place.line + context).map_while(plain));
    lines
}

/// A line as it is shown, and the bytes of it that are marked.
struct ShownLine {
    text: String,
    mark: Range<usize>,
}

impl ShownLine {
    /// The line at `place`.
    fn of_place(place: &Source, raw: &str, excerpts: &dyn Excerpts) -> Self {
        let index = excerpts.index(&place.file, place.line);
        Self::with_index(raw, place.column.unwrap_or(0), index.as_deref())
    }

    /// `column` counts characters from 1; 0 marks the whole line except its indentation.
    fn new(raw: &str, column: usize) -> Self {
        Self::with_index(raw, column, None)
    }

    fn with_index(raw: &str, column: usize, index: Option<&LineIndex>) -> Self {
        let raw = raw.strip_suffix('\r').unwrap_or(raw);
        let indent = raw.chars().take_while(|c| matches!(c, ' ' | '\t')).count();
        let start = if column == 0 { indent } else { column - 1 };
        let skipped = start.saturating_sub(BEFORE);
        let from_character = |number: usize| {
            let offset = match index {
                Some(index) => index.offset_of(raw, number),
                None => raw.char_indices().nth(number).map(|(at, _)| at),
            };
            offset.map(|offset| &raw[offset..])
        };

        let mut text = String::new();
        let mut mark = None;
        let mut rest = from_character(skipped).unwrap_or_default().chars().peekable();
        if skipped > 0 && rest.peek().is_some() {
            text.push('…');
        }
        let marked = match from_character(start) {
            Some(from) if column == 0 => from.trim_end().chars().take(LONGEST_MARK).count(),
            Some(from) => token(from),
            None => 0,
        };
        let kept = rest.by_ref().take(start - skipped + BEHIND);
        for (number, c) in (skipped..).zip(kept) {
            if number == start {
                mark = Some(text.len()..text.len());
            }
            match c {
                '\t' => text.push('\t'),
                c if text::is_hostile(c) => text::push_escaped(&mut text, c),
                c => text.push(c),
            }
            if let Some(mark) = mark.as_mut().filter(|_| number < start + marked) {
                mark.end = text.len();
            }
        }
        if rest.peek().is_some() {
            text.push('…');
        }
        let end = text.len();
        ShownLine { text, mark: mark.unwrap_or(end..end) }
    }
}

/// How many characters the YAML or JSON token at the start of `text` has: a quoted scalar, else up to what ends a
/// plain word.
fn token(text: &str) -> usize {
    let mut chars = text.chars().peekable();
    let quote = chars.next_if(|c| matches!(c, '"' | '\''));
    let mut length = usize::from(quote.is_some());
    while length < LONGEST_MARK {
        let Some(c) = chars.next() else { break };
        let next = chars.peek();
        let ends = match quote {
            Some('"') if c == '\\' => {
                length += usize::from(chars.next().is_some());
                false
            }
            Some(quote) if c == quote => return length + 1,
            Some(_) => false,
            None => {
                c.is_whitespace()
                    || matches!(c, ',' | ']' | '}')
                    || c == ':' && next.is_none_or(|next| next.is_whitespace())
            }
        };
        if ends {
            break;
        }
        length += 1;
    }
    length.max(1)
}

/// The nearest line above with less indentation, if its key identifies the place.
fn parent_of<'a>(place: &Source, raw: &str, excerpts: &'a dyn Excerpts) -> Option<(usize, &'a str)> {
    let indent = |line: &str| line.chars().take_while(|c| *c == ' ').count();
    let inner = indent(raw);
    let lines = (1..place.line).rev().take(PARENT_WITHIN);
    let (number, parent) =
        lines.map_while(|number| excerpts.line(&place.file, number).map(|line| (number, line))).find(|(_, line)| {
            let words = line.trim();
            indent(line) < inner && !words.is_empty() && !words.starts_with('#')
        })?;
    let key = parent.trim().trim_start_matches("- ").split(':').next()?.trim_matches(['"', '\'']);
    (parent.contains(':') && !parent.starts_with("---") && !STRUCTURAL.contains(&key)).then_some((number, parent))
}

/// Whether the line at `place` contains `kind: Secret`.
pub fn place_names_secret(place: &Source, excerpts: &dyn Excerpts) -> bool {
    match excerpts.index(&place.file, place.line) {
        Some(index) => index.names_secret(),
        None => excerpts.line(&place.file, place.line).is_some_and(names_secret),
    }
}

/// Whether a line contains `kind: Secret`, in YAML or JSON.
pub fn names_secret(line: &str) -> bool {
    line.match_indices("kind").any(|(at, word)| {
        let rest = line[at + word.len()..].trim_start_matches(['"', '\'']).trim_start();
        let Some(value) = rest.strip_prefix(':') else { return false };
        let value = value.trim_start().trim_start_matches(['"', '\'']);
        value.strip_prefix("Secret").is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
    })
}

/// Whether an object on these lines of one document may be a Secret. A file may be cut off, and kubectl writes `data`
/// before `kind`: so an object with `data` may be a Secret unless its kind is known.
pub fn may_hold_secret(lines: &[&str]) -> bool {
    let last = lines.iter().rposition(|line| !line.trim().is_empty());
    let (mut has_version, mut has_data, mut has_kind) = (false, false, false);
    for (number, line) in lines.iter().enumerate() {
        if line.contains("stringData") || names_secret(line) {
            return true;
        }
        for (key, value) in keys(line) {
            match key {
                // The next object of a list.
                "apiVersion" if has_version || has_data => {
                    if has_data && !has_kind {
                        return true;
                    }
                    (has_version, has_data, has_kind) = (true, false, false);
                }
                "apiVersion" => has_version = true,
                "data" => has_data = true,
                // The kind itself may be cut off.
                "kind" => has_kind |= last != Some(number) || !"Secret".starts_with(value),
                _ => {}
            }
        }
    }
    has_data && !has_kind
}

/// The words before a colon on a line of YAML or JSON, and the rest of the line after it.
fn keys(line: &str) -> impl Iterator<Item = (&str, &str)> {
    const QUOTES: [char; 2] = ['"', '\''];
    line.match_indices(':').map(|(at, _)| {
        let before = line[..at].trim_end().trim_end_matches(QUOTES);
        let is_of_key = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        let key = before.rsplit(|c| !is_of_key(c)).next().unwrap_or_default();
        (key, line[at + 1..].trim().trim_start_matches(QUOTES))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(raw: &str, column: usize) -> (String, String) {
        let line = ShownLine::new(raw, column);
        (line.text[line.mark.clone()].to_owned(), line.text)
    }

    #[test]
    fn the_token_at_the_column_is_marked() {
        let of = |raw, column| marked(raw, column).0;
        assert_eq!(of("  spec:", 3), "spec");
        assert_eq!(of("a: {b: 1, c: [x, y]}", 5), "b");
        assert_eq!(of("a: {b: 1, c: [x, y]}", 18), "y");
        assert_eq!(of(r#"{"a b": "c\"d"}"#, 2), r#""a b""#);
        assert_eq!(of(r#"{"a b": "c\"d"}"#, 9), r#""c\"d""#);
        assert_eq!(of("url: http://x:80/a", 6), "http://x:80/a");
        assert_eq!(of("  two words  ", 0), "two words");
        assert_eq!(of("名前: 整数", 5), "整数");
        assert_eq!(of("'open", 1), "'open");
    }

    #[test]
    fn places_beyond_the_line_are_its_end() {
        for (raw, column) in [("", 0), ("", 1), ("", 9), ("abc", 99), ("abc", 4)] {
            let line = ShownLine::new(raw, column);
            assert_eq!(line.mark, raw.len()..raw.len(), "{raw:?} {column}");
        }
    }

    #[test]
    fn escaped_characters_move_the_mark() {
        let (mark, text) = marked("\u{1b}[31m\t\u{202e}key: v", 8);
        assert_eq!((mark.as_str(), text.as_str()), ("key", "\\u{1b}[31m\t\\u{202e}key: v"));
        assert_eq!(marked("a: \u{1b}[2J b\r", 4), ("\\u{1b}[2J".into(), "a: \\u{1b}[2J b".into()));
    }

    #[test]
    fn a_file_in_one_line_is_shown_around_the_mark() {
        let raw = format!("{{\"a\":[{}],\"target\":1,\"b\":[{}]}}", "1,".repeat(5000), "2,".repeat(5000));
        let column = raw.find("\"target\"").expect("it is there") + 1;
        let (mark, text) = marked(&raw, column);
        assert_eq!(mark, "\"target\"");
        assert!(text.starts_with('…') && text.ends_with('…'), "{text}");
        assert!(text.chars().count() <= BEFORE + BEHIND + 2, "{}", text.len());
    }

    #[test]
    fn lines_of_other_documents_are_not_shown() {
        struct Lines(Vec<&'static str>);
        impl Excerpts for Lines {
            fn line(&self, _: &str, line: usize) -> Option<&str> {
                self.0.get(line.checked_sub(1)?).copied()
            }
        }
        let file = ["password: x", "---", "spec:", "  a: 1", "  b: 2", "---", "token: y"];
        let place = |line, column| Source { file: "f".into(), line, column: Some(column) };
        let shown = |line, context| {
            let lines = lines(&place(line, 3), &Lines(file.to_vec()), context);
            let mark = |line: &ExcerptLine| line.mark.clone().map(|mark| line.text[mark].to_owned());
            lines.iter().map(|line| (line.number, mark(line))).collect::<Vec<_>>()
        };
        assert_eq!(shown(4, 2), [(3, None), (4, Some("a".to_owned())), (5, None)]);
        assert_eq!(shown(5, 0), [(3, None), (5, Some("b".to_owned()))]);
        assert_eq!(shown(9, 2), []);
    }

    #[test]
    fn a_secret_is_recognised_by_its_kind() {
        for yes in ["kind: Secret", "- kind: \"Secret\"", r#"{"kind":"Secret","data":{}}"#, "{kind: Secret}"] {
            assert!(names_secret(yes), "{yes}");
        }
        for no in ["kind: SecretStore", "kind: ConfigMap", "secret: kind", "", "kind"] {
            assert!(!names_secret(no), "{no}");
        }
    }

    #[test]
    fn data_without_a_known_kind_may_be_of_a_secret() {
        let may = |text: &str| may_hold_secret(&text.lines().collect::<Vec<_>>());
        for yes in [
            "apiVersion: v1\ndata:\n  password: aA==\n  passwo",
            "data:\n  password: aA==",
            "apiVersion: v1\ndata:\n  password: aA==\nkind: Sec\n",
            "apiVersion: v1\ndata:\n  password: aA==\nkind:",
            r#"{"apiVersion":"v1","data":{"password":"aA==","pass"#,
            r#"{"apiVersion":"v1","data":{"password":"aA=="},"kind":"Se"#,
            "{\n  \"apiVersion\": \"v1\",\n  \"data\": {\n    \"pass",
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  data:\n    a: b\n  kind: ConfigMap\n- apiVersion: v1\n  data:\n    pas",
            r#"{"items":[{"apiVersion":"v1","data":{},"kind":"ConfigMap"},{"apiVersion":"v1","data":{"pas"#,
            "apiVersion: v1\nitems:\n- apiVersion: v1\n  data:\n    a: b\n- apiVersion: v1\n  kind: Pod",
        ] {
            assert!(may(yes), "{yes}");
        }
        for no in [
            "kind: ConfigMap\napiVersion: v1\ndata:\n  a: b\n  c",
            "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: b\n  c",
            "apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata",
            "apiVersion: v1\nbinaryData:\n  meta.data: 1\n  c",
            "apiVersion: a/v1\nkind: CustomResourceDefinition\nspec:\n  properties:\n    apiVersion:\n      type: string\n    kind:\n      type: string\n    spec:\n      data: {}",
        ] {
            assert!(!may(no), "{no}");
        }
    }
}
