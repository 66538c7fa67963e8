//! An object in one line of YAML that can be pasted into a file.
//!
//! Strings are plain if every YAML reader, including Go's, reads them as that string. Otherwise they are quoted with
//! YAML's escapes, which also keeps control characters from the terminal. Long repetitive values are written with a
//! factor (`"a" × 1025`), so that they can be reproduced.

use serde_json::Value;

use gantry_core::text;
use gantry_yaml::write;

/// Deeper values are left out.
const DEEPEST: usize = 32;
/// The maximum number of items of a list and keys of a map to write, if there is room.
const ITEMS: [usize; 5] = [1000, 24, 8, 4, 2];
/// A text of this many equal characters, or a list of this many equal items, is written with a factor.
const SAME_CHARACTERS: usize = 32;
const SAME_ITEMS: usize = 8;
/// The maximum length of a repeated part of a text.
const LONGEST_PERIOD: usize = 8;
/// Of a longer text, only the start and the end are written.
const LONGEST_TEXT: usize = 200;

/// `value` as YAML flow, in about `max` characters.
pub fn to_one_line(value: &Value, max: usize) -> String {
    let mut out = String::new();
    for items in ITEMS {
        out.clear();
        Flow { max, items }.push(&mut out, value, 0);
        if out.chars().count() <= max {
            return out;
        }
    }
    text::cut(&out, max).into_owned()
}

struct Flow {
    max: usize,
    items: usize,
}

impl Flow {
    /// Stops adding once there is too much: the rest would not fit.
    fn push(&self, out: &mut String, value: &Value, depth: usize) {
        if out.len() > self.max.saturating_mul(4) {
            return;
        }
        match value {
            Value::Object(map) if !map.is_empty() && depth >= DEEPEST => out.push_str("{…}"),
            Value::Array(items) if !items.is_empty() && depth >= DEEPEST => out.push_str("[…]"),
            Value::Object(map) => {
                out.push('{');
                for (index, (key, value)) in map.iter().take(self.items).enumerate() {
                    if index > 0 {
                        out.push_str(", ");
                    }
                    push_text(out, key);
                    out.push_str(": ");
                    self.push(out, value, depth + 1);
                }
                if map.len() > self.items {
                    out.push_str(&format!(", … {}", text::count(map.len() - self.items, "more key")));
                }
                out.push('}');
            }
            Value::Array(items) => self.push_list(out, items, depth),
            Value::String(text) => push_text(out, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        }
    }

    fn push_list(&self, out: &mut String, items: &[Value], depth: usize) {
        if let [first, rest @ ..] = items
            && items.len() >= SAME_ITEMS
            && rest.iter().all(|item| item == first)
        {
            out.push('[');
            self.push(out, first, depth + 1);
            out.push_str(&format!("] × {}", items.len()));
            return;
        }
        out.push('[');
        // Show the last one, which is the end of a series.
        let (shown, last) = match items.split_last() {
            Some((last, others)) if items.len() > self.items => (&others[..self.items - 1], Some(last)),
            _ => (items, None),
        };
        for (index, value) in shown.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            self.push(out, value, depth + 1);
        }
        if let Some(last) = last {
            out.push_str(&format!(", … {} more, ", items.len() - shown.len() - 1));
            self.push(out, last, depth + 1);
        }
        out.push(']');
    }
}

fn push_text(out: &mut String, text: &str) {
    if text.len() <= SAME_CHARACTERS {
        return push_whole(out, text);
    }
    let chars: Vec<char> = text.chars().collect();
    if let Some(period) = (1..=LONGEST_PERIOD).find(|period| repeats(&chars, *period)) {
        push_quoted(out, &chars[..period]);
        out.push_str(&format!(" × {}", chars.len() / period));
        return;
    }
    // `"x" + "a" × 1024`
    let mut rest = &chars[..];
    let mut is_first = true;
    while let Some((start, length)) = first_run(rest) {
        for (part, factor) in [(&rest[..start], None), (&rest[start..=start], Some(length))] {
            if !part.is_empty() {
                out.push_str(if is_first { "" } else { " + " });
                push_quoted(out, part);
                factor.iter().for_each(|factor| out.push_str(&format!(" × {factor}")));
                is_first = false;
            }
        }
        rest = &rest[start + length..];
    }
    match is_first {
        true if chars.len() > LONGEST_TEXT => {
            let (start, end) = (&chars[..LONGEST_TEXT / 2], &chars[chars.len() - LONGEST_TEXT / 4..]);
            push_quoted(out, &[start, &['…'], end].concat());
            out.push_str(&format!(" ({} characters)", chars.len()));
        }
        true => push_whole(out, text),
        false if rest.is_empty() => {}
        false => {
            out.push_str(" + ");
            push_quoted(out, rest);
        }
    }
}

/// Whether the text repeats the same few characters.
fn repeats(chars: &[char], period: usize) -> bool {
    chars.len() >= SAME_CHARACTERS
        && chars.len().is_multiple_of(period)
        && chars.iter().zip(&chars[period..]).all(|(a, b)| a == b)
}

/// Where the first long run of one character starts, and how long it is.
fn first_run(chars: &[char]) -> Option<(usize, usize)> {
    let mut start = 0;
    for run in chars.chunk_by(|a, b| a == b) {
        if run.len() >= SAME_CHARACTERS {
            return Some((start, run.len()));
        }
        start += run.len();
    }
    None
}

fn push_whole(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        push_quoted(out, &text.chars().collect::<Vec<_>>());
    }
}

fn push_quoted(out: &mut String, chars: &[char]) {
    out.push_str(&text::yaml_quoted(chars.iter().copied()));
}

fn is_plain(text: &str) -> bool {
    write::is_plain(text, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_written_like_a_manifest() {
        let object = json!({
            "apiVersion": "test.example.com/v1alpha1", "kind": "Sample", "metadata": {"name": "x"},
            "spec": {"a": "b", "list": [1, true, null, "two words"], "empty": {}, "none": []},
        });
        assert_eq!(
            to_one_line(&object, 600),
            "{apiVersion: test.example.com/v1alpha1, kind: Sample, metadata: {name: x}, \
             spec: {a: b, list: [1, true, null, \"two words\"], empty: {}, none: []}}"
        );
    }

    #[test]
    fn written_values_mean_the_same_when_read_again() {
        let strings = [
            "",
            "yes",
            "No",
            "null",
            "1",
            "1.5",
            "0x1f",
            "a: b",
            "- a",
            "#",
            "~",
            "a #b",
            "\"",
            "\\",
            "é日",
            "\u{1b}[2J",
            "\u{202e}",
            "\u{e0001}",
            "a\nb\tc",
            "2001-01-01",
            "true",
            "..",
            "<<",
            "=",
            "!x",
            "&a",
            "*a",
        ];
        let value = json!({"strings": strings, "on": strings.map(|text| json!({text: 1.5}))});
        let text = to_one_line(&value, 10_000);
        assert!(!text.chars().any(text::is_hostile), "{text}");
        let read: Value = serde_yaml::from_str(&text).expect("YAML");
        assert_eq!(read, value);
    }

    #[test]
    fn repeated_parts_of_a_value_are_written_with_a_factor() {
        for (value, expected) in [
            (json!("a".repeat(1025)), r#""a" × 1025"#),
            (json!("ab".repeat(600)), r#""ab" × 600"#),
            (json!(format!("x-{}", "a".repeat(64))), r#""x-" + "a" × 64"#),
            (json!(format!("{}.{}", "a".repeat(63), "b".repeat(63))), r#""a" × 63 + "." + "b" × 63"#),
            (json!({"list": vec![0; 300]}), "{list: [0] × 300}"),
            (json!(["\u{1b}".repeat(40)]), r#"["\u001b" × 40]"#),
        ] {
            assert_eq!(to_one_line(&value, 600), expected);
        }
    }

    #[test]
    fn a_long_value_keeps_its_end_and_what_follows_it() {
        let numbers: Vec<usize> = (0..1025).collect();
        let text = to_one_line(&json!({"list": numbers, "then": 1}), 200);
        assert!(text.starts_with("{list: [0, 1, 2, ") && text.ends_with(" more, 1024], then: 1}"), "{text}");
        let map: serde_json::Map<String, Value> = (0..1025).map(|key| (format!("k{key}"), json!("v"))).collect();
        let text = to_one_line(&json!({"map": map, "then": 1}), 200);
        assert!(text.starts_with("{map: {k0: v, k1: v, ") && text.ends_with(" more keys}, then: 1}"), "{text}");
        let prose = (0..400).map(|word| format!("w{word} ")).collect::<String>();
        let text = to_one_line(&json!({"text": prose, "then": 1}), 600);
        assert!(text.contains("w0 w1 ") && text.contains("w399 \" (1890 characters), then: 1}"), "{text}");
    }

    #[test]
    fn a_written_value_is_bounded() {
        let prose = |number: usize| format!("{number} is a text of its own that is long enough to fill a line");
        let many: Vec<String> = (0..5000).map(prose).collect();
        assert!(to_one_line(&json!(many), 100).chars().count() <= 100);
        let numbers: Vec<usize> = (0..100_000).collect();
        assert_eq!(to_one_line(&json!(numbers), 30), "[0, 1, 2, … 99996 more, 99999]");
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(to_one_line(&deep, 1000).contains("[…]"));
    }
}
