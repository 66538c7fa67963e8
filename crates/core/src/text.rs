//! Text for a terminal: sanitizing, truncating, wrapping and counting.
//!
//! Text from a cluster or a manifest is untrusted. An escape sequence can clear the screen or change the title of the
//! window, a carriage return can overwrite a verdict, and a bidirectional override can show `deny` as `allow`.
//! Every such character is escaped, for example as `\u{1b}`, so the reader can see it.

pub(crate) mod commands;

use std::borrow::Cow;

use gantry_schema::Step;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Sanitizes text for a part of one line: line breaks and tabs are escaped too.
///
/// The same as [`sanitize_line`].
pub fn sanitize(text: &str) -> Cow<'_, str> {
    escape(text, |c| !is_hostile(c))
}

/// Sanitizes text for a part of one line: line breaks and tabs are shown as `\n`, `\r` and `\t`.
pub fn sanitize_line(text: &str) -> Cow<'_, str> {
    sanitize(text)
}

/// Sanitizes text of several lines: newlines and tabs stay, everything else is escaped as in [`sanitize_line`].
pub fn sanitize_block(text: &str) -> Cow<'_, str> {
    escape(text, |c| matches!(c, '\n' | '\t') || !is_hostile(c))
}

/// A field path such as `spec.ports[0].port`.
pub fn field(steps: &[Step]) -> String {
    field_with(steps, |index| format!("[{index}]"))
}

/// [`field`] for all items of the lists on the way: `spec.versions[*].selectableFields`.
pub fn field_of_any(steps: &[Step]) -> String {
    field_with(steps, |_| "[*]".to_owned())
}

fn field_with(steps: &[Step], show_index: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for step in steps {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.push_str(&format!(".{key}")),
            Step::Index(index) => text.push_str(&show_index(*index)),
        }
    }
    text
}

fn escape(text: &str, harmless: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(|c| !harmless(c)) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if harmless(c) {
            out.push(c);
        } else {
            push_escaped(&mut out, c);
        }
    }
    Cow::Owned(out)
}

/// Appends `c` in the escaped form of [`sanitize`].
pub fn push_escaped(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ => out.extend(c.escape_unicode()),
    }
}

/// Whether a terminal would not simply display `c`, or an XML or HTML parser would refuse it.
pub fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Direction marks, embeddings, overrides and isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line and paragraph separators.
            | '\u{2028}' | '\u{2029}'
            // Invisible: zero-width space, word joiner and its kin, byte order mark, interlinear and tag characters.
            | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{206a}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || is_noncharacter(c)
}

/// Whether `c` is a Unicode noncharacter. XML does not allow U+FFFE and U+FFFF, and HTML allows none of them.
fn is_noncharacter(c: char) -> bool {
    matches!(c, '\u{fdd0}'..='\u{fdef}') || u32::from(c) & 0xfffe == 0xfffe
}

/// Text as a double-quoted YAML scalar, with hostile characters escaped.
pub fn yaml_quoted(text: impl Iterator<Item = char>) -> String {
    let mut out = String::from("\"");
    for c in text {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if is_hostile(c) && u32::from(c) > 0xffff => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c if is_hostile(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key as one step of a JSON pointer. Source: <https://www.rfc-editor.org/rfc/rfc6901#section-3>
pub fn json_pointer_step(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// At most `max` characters of `text`. If it is truncated, the last one is `…`.
pub fn cut(text: &str, max: usize) -> Cow<'_, str> {
    let mut boundaries = text.char_indices().map(|(at, _)| at);
    // The byte offset of the last character to keep, and whether there are more than `max` characters.
    let last = boundaries.by_ref().nth(max.saturating_sub(1));
    match (last, boundaries.next()) {
        _ if max == 0 => Cow::Borrowed(""),
        (Some(last), Some(_)) => Cow::Owned(format!("{}…", &text[..last])),
        _ => Cow::Borrowed(text),
    }
}

/// A text as one word of a shell command. One that a shell cannot have, with a NUL in it, stays as it is.
pub fn shell_word(text: &str) -> Cow<'_, str> {
    shlex::try_quote(text).unwrap_or(Cow::Borrowed(text))
}

/// A message of a server. If it quotes something very long (a whole schema), only its start and end.
pub fn cut_quote(text: &str) -> Cow<'_, str> {
    const SHOWN: usize = 800;
    cut_middle(text, SHOWN)
}

/// A count such as `1 object` or `3 objects`, for words with a plural in `s`.
pub fn count(number: usize, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    }
}

/// A number with thousands separators, such as `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The width of the text in terminal columns.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The start of the text that fits in `columns` terminal columns. If it is truncated, it ends with `…`.
pub(crate) fn cut_to_width(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut cut, mut taken) = (String::new(), 1);
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        cut.push(c);
    }
    cut.push('…');
    cut
}

/// The text, padded with spaces to `columns` terminal columns.
pub fn pad(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// Rows of sanitized texts. Each column is as wide as its widest text, with two spaces between columns.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let shown: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|text| sanitize(text).into_owned())).collect();
    let wide = |column: usize| shown.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(wide).collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(text, width)| pad(text, *width)).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    shown.iter().map(line).collect()
}

/// The text as Markdown code within a line: inside code nothing is markup. The text has no line breaks.
pub fn markdown_code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let ticks = "`".repeat(longest_run_of_ticks(text) + 1);
    // Renderers strip one space from both ends if both are present.
    let space = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// The text as a Markdown code block.
pub fn markdown_code_block(text: &str, language: &str) -> String {
    let ticks = "`".repeat(longest_run_of_ticks(text).max(2) + 1);
    format!("{ticks}{language}\n{text}\n{ticks}")
}

fn longest_run_of_ticks(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Breaks text into lines of at most `columns` terminal columns, only at spaces. A longer word and a command stay
/// whole, so that a path or a command can be copied.
pub fn wrap(text: &str, columns: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let paragraph = paragraph.trim_end();
        let commands = commands::commands(paragraph);
        let mut start = 0;
        loop {
            let is_inside = |at: usize| commands.iter().any(|command| command.contains(&(start + at)));
            let (line, next) = split_line(&paragraph[start..], columns, is_inside);
            lines.push(line);
            match next {
                Some(next) => start += next,
                None => break,
            }
        }
    }
    lines
}

/// The first line of `text`, and where the rest starts, after the space at which it was broken.
fn split_line(text: &str, columns: usize, is_inside_command: impl Fn(usize) -> bool) -> (&str, Option<usize>) {
    let mut best = None;
    for (at, _) in text.match_indices(' ') {
        // Leading spaces are indentation, and the number of a step stays with it; do not break there.
        let before = text[..at].trim();
        let is_number = before.strip_suffix('.').is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        if before.is_empty() || is_number || is_inside_command(at) {
            continue;
        }
        if best.is_some() && width(&text[..at]) > columns {
            break;
        }
        best = Some(at);
        if width(&text[..at]) > columns {
            break;
        }
    }
    match best {
        Some(at) if width(text) > columns => {
            let rest = text[at..].trim_start();
            (text[..at].trim_end(), Some(text.len() - rest.len()))
        }
        _ => (text, None),
    }
}

/// The text, shortened to `max` characters by leaving out its middle; the end has a third of them.
pub fn cut_middle(text: &str, max: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= max {
        return Cow::Borrowed(text);
    }
    let end = max / 3;
    let rest = text.chars().skip(length - end);
    Cow::Owned(cut(text, max - end).chars().chain(rest).collect())
}

/// The text, cut to `most` characters. Lines with a command are not cut, because half a command is worse than none,
/// unless the text is much longer than that.
pub fn cut_between_commands(text: &str, most: usize) -> Cow<'_, str> {
    if text.chars().nth(most).is_none() {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut used) = (String::new(), 0);
    for (index, line) in text.split('\n').enumerate() {
        if index > 0 {
            shown.push('\n');
            used += 1;
        }
        let length = line.chars().count();
        if used + length <= most
            || used + length <= most.saturating_mul(WITH_COMMANDS) && !commands::commands(line).is_empty()
        {
            shown.push_str(line);
            used += length;
            continue;
        }
        shown.push_str(&cut(line, most.saturating_sub(used).max(1)));
        break;
    }
    Cow::Owned(shown)
}

/// How much longer than usual a text with commands may be.
const WITH_COMMANDS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortened_text_shows_both_ends() {
        let of = |length: usize| "ä".repeat(length);
        assert_eq!(cut_quote(&of(800)), of(800));
        assert_eq!(cut_quote(&format!("{}xyz{}", of(533), of(266))), format!("{}…{}", of(533), of(266)));
    }

    #[test]
    fn harmless_text_is_borrowed() {
        for text in ["", "plain", "größer 日本語 👩‍🚀", "a \"quoted\" \\ text"] {
            assert!(matches!(sanitize(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        let cases = [
            ("\u{1b}[2Jgone", "\\u{1b}[2Jgone"),
            ("ok\rno", "ok\\rno"),
            ("bell\u{7}", "bell\\u{7}"),
            ("c1 \u{9b}31m", "c1 \\u{9b}31m"),
            ("del\u{7f}", "del\\u{7f}"),
            ("a\u{202e}b\u{2066}c\u{200f}d", "a\\u{202e}b\\u{2066}c\\u{200f}d"),
            ("sep\u{2028}\u{2029}", "sep\\u{2028}\\u{2029}"),
            ("nel\u{85}", "nel\\u{85}"),
            (
                "none \u{fdd0}\u{fffe}\u{ffff}\u{1fffe}\u{10ffff}\u{fffd}",
                "none \\u{fdd0}\\u{fffe}\\u{ffff}\\u{1fffe}\\u{10ffff}\u{fffd}",
            ),
            ("tab\tnew\nline", "tab\\tnew\\nline"),
        ];
        for (text, shown) in cases {
            assert_eq!(sanitize_line(text), shown);
        }
        assert_eq!(sanitize_block("tab\tnew\nline\r\u{1b}"), "tab\tnew\nline\\r\\u{1b}");
    }

    #[test]
    fn control_and_bidi_characters_never_get_through() {
        let all: String = (0..=0x2fff).filter_map(char::from_u32).collect();
        let shown = sanitize(&all);
        assert!(!shown.chars().any(is_hostile));
        assert!(shown.contains("日") || shown.contains('é'));
    }

    #[test]
    fn cutting_a_text_counts_characters_and_splits_none() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdef", 5), "abcd…");
        assert_eq!(cut("日本語", 2), "日…");
        assert_eq!(cut("日本語", 1), "…");
        assert_eq!(cut("", 1), "");
        assert_eq!(cut("x", 0), "");
        assert_eq!(cut_middle("abcdefghi", 9), "abcdefghi");
        assert_eq!(cut_middle("日本語defghij", 9), "日本語de…hij");
    }

    #[test]
    fn counts_have_a_singular_and_a_plural() {
        assert_eq!(count(0, "object"), "0 objects");
        assert_eq!(count(1, "object"), "1 object");
        assert_eq!(count(3, "object"), "3 objects");
    }

    #[test]
    fn wrapping_breaks_at_spaces_and_keeps_long_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("short averyveryverylongword end", 8), ["short", "averyveryverylongword", "end"]);
        assert_eq!(wrap("first\nsecond line", 100), ["first", "second line"]);
        assert_eq!(wrap("日本 日本", 5), ["日本", "日本"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("anything at all", 0), ["anything", "at", "all"]);
    }

    #[test]
    fn commands_are_neither_wrapped_nor_cut() {
        let pipeline = "  12. kubectl get pods | jq .items";
        assert_eq!(
            wrap(&format!("one two\n{pipeline}\nkubectl get pods"), 8),
            ["one two", pipeline, "kubectl get pods"]
        );
        assert_eq!(
            wrap("look at it: kubectl describe pod web -n shop; then run gantry deploy -f . again", 20),
            ["look at it:", "kubectl describe pod web -n shop;", "then run", "gantry deploy -f . again"]
        );
        let steps = format!("first\n{pipeline}\n{}", "y ".repeat(50));
        assert_eq!(cut_between_commands(&steps, 10), format!("first\n{pipeline}\n…"));
        assert_eq!(cut_between_commands("first", 10), "first");
        assert_eq!(cut_between_commands(&"y".repeat(50), 10), format!("{}…", "y".repeat(9)));
    }

    #[test]
    fn padding_counts_terminal_columns() {
        assert_eq!(pad("ab", 4), "ab  ");
        assert_eq!(pad("日本", 5), "日本 ");
        assert_eq!(pad("longer", 2), "longer");
    }
}
