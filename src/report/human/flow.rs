//! An object in one line of YAML, fit to be pasted into a file.
//!
//! Strings are plain where every YAML reader, Go's too, takes them for that string; else they are quoted with YAML's
//! own escapes, which also keeps control characters from the terminal.

use serde_json::Value;

use crate::text;

/// Deeper values are left out.
const DEEPEST: usize = 32;
/// Words that some YAML reader takes for something else than a string.
const NO_STRINGS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];

/// `value` as YAML flow, cut with `…` at about `max` characters.
pub fn of(value: &Value, max: usize) -> String {
    let mut out = String::new();
    push(&mut out, value, 0, max);
    text::cut(&out, max).into_owned()
}

/// Stops adding once `max` bytes are there; what is missing then is cut off anyway.
fn push(out: &mut String, value: &Value, depth: usize, max: usize) {
    if out.len() > max.saturating_mul(4) {
        return;
    }
    match value {
        Value::Object(map) if !map.is_empty() && depth >= DEEPEST => out.push_str("{…}"),
        Value::Array(items) if !items.is_empty() && depth >= DEEPEST => out.push_str("[…]"),
        Value::Object(map) => {
            out.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                push_text(out, key, max);
                out.push_str(": ");
                push(out, value, depth + 1, max);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, value) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                push(out, value, depth + 1, max);
            }
            out.push(']');
        }
        Value::String(text) => push_text(out, text, max),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

fn push_text(out: &mut String, text: &str, max: usize) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars().take(max) {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if text::is_hostile(c) && u32::from(c) > 0xffff => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c if text::is_hostile(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-'))
        && !NO_STRINGS.contains(&text.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_reads_like_a_manifest() {
        let object = json!({
            "apiVersion": "test.example.com/v1alpha1", "kind": "Sample", "metadata": {"name": "x"},
            "spec": {"a": "b", "list": [1, true, null, "two words"], "empty": {}, "none": []},
        });
        assert_eq!(
            of(&object, 600),
            "{apiVersion: test.example.com/v1alpha1, kind: Sample, metadata: {name: x}, \
             spec: {a: b, list: [1, true, null, \"two words\"], empty: {}, none: []}}"
        );
    }

    #[test]
    fn it_means_the_same_when_it_is_read_again() {
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
        let text = of(&value, 10_000);
        assert!(!text.chars().any(text::is_hostile), "{text}");
        let read: Value = serde_yaml::from_str(&text).expect("YAML");
        assert_eq!(read, value);
    }

    #[test]
    fn it_is_bounded() {
        assert_eq!(of(&json!(["x".repeat(5000)]), 100).chars().count(), 100);
        assert!(of(&json!(vec![1; 100_000]), 100).ends_with('…'));
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(of(&deep, 1000).contains("[…]"));
    }
}
