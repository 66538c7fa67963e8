//! Writes an object as YAML or JSON text that every parser reads as the same object.
//!
//! Tools that write YAML 1.2 leave `y`, `off` and `1_000` unquoted, and the YAML 1.1 parsers of the Kubernetes world
//! read them as booleans and numbers. So a string is written plain only if no parser can read it as anything else.

use std::fmt::Write as _;

use serde_json::Value;

/// Writes block style with lists at the indentation of their key, like `kubectl get -o yaml`.
pub fn to_block_style(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => write_block(&mut out, value, 0, false),
        Value::Array(items) if !items.is_empty() => write_block(&mut out, value, 0, false),
        scalar => {
            write_inline(&mut out, scalar, 0);
            out.push('\n');
        }
    }
    out
}

/// Indented JSON, with the characters escaped that YAML treats differently.
pub fn to_json_style(value: &Value) -> String {
    let mut out = escaped(&format!("{value:#}"));
    out.push('\n');
    out
}

/// Writes a non-empty mapping or list. `started` means that the indentation of its first line has already been written.
fn write_block(out: &mut String, value: &Value, indent: usize, mut started: bool) {
    let mut begin = |out: &mut String| {
        if !std::mem::replace(&mut started, false) {
            out.extend(std::iter::repeat_n(' ', indent));
        }
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                begin(out);
                out.push_str(&if is_written_plain(key) { key.clone() } else { quoted(key) });
                out.push(':');
                match value {
                    Value::Object(below) if !below.is_empty() => {
                        out.push('\n');
                        write_block(out, value, indent + 2, false);
                    }
                    Value::Array(below) if !below.is_empty() => {
                        out.push('\n');
                        write_block(out, value, indent, false);
                    }
                    scalar => {
                        out.push(' ');
                        write_inline(out, scalar, indent + 2);
                        out.push('\n');
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                begin(out);
                out.push_str("- ");
                match item {
                    Value::Object(below) if !below.is_empty() => write_block(out, item, indent + 2, true),
                    Value::Array(below) if !below.is_empty() => write_block(out, item, indent + 2, true),
                    scalar => {
                        write_inline(out, scalar, indent + 2);
                        out.push('\n');
                    }
                }
            }
        }
        _ => {}
    }
}

/// Writes a value after its key. The lines of a block scalar are indented by `indent`.
fn write_inline(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::String(text) if is_written_plain(text) => out.push_str(text),
        Value::String(text) if is_literal(text) => {
            out.push_str(if text.ends_with('\n') { "|" } else { "|-" });
            for line in text.lines() {
                out.push('\n');
                if !line.is_empty() {
                    out.extend(std::iter::repeat_n(' ', indent));
                    out.push_str(line);
                }
            }
        }
        Value::String(text) => out.push_str(&quoted(text)),
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn quoted(text: &str) -> String {
    escaped(&Value::from(text).to_string())
}

/// Escapes what JSON allows in a string but YAML treats as a line break, a byte order mark or an invalid character.
fn escaped(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            other => out.push(other),
        }
    }
    out
}

/// Whether every parser reads the unquoted text as a string in block style, if it has only characters that `is_allowed`.
/// Numbers, dates and indicators do not begin with a letter, which leaves the words for booleans and null. In flow
/// style, `is_allowed` must exclude commas and brackets.
pub fn is_plain(text: &str, is_allowed: impl Fn(char) -> bool) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    text.starts_with(|first: char| first.is_alphabetic() || first == '/')
        && text.chars().all(is_allowed)
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([' ', ':'])
        && !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn is_written_plain(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii()) && is_plain(text, is_printable) && !may_be_command(text)
}

/// Whether the text can be written as a literal block scalar below its key.
fn is_literal(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n'])
        && !text.ends_with("\n\n")
        && text.chars().all(|character| character == '\n' || is_printable(character))
        && !may_be_command(text)
}

/// Whether a build server could read a line of the text as a command, which is then escaped within quotes.
fn may_be_command(text: &str) -> bool {
    text.contains("##") || text.contains("::")
}

/// ASCII, and letters of other scripts. Everything else is quoted, which is simpler.
fn is_printable(character: char) -> bool {
    matches!(character, ' '..='~') || character.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_objects_look_as_kubectl_prints_them() {
        let object = json!({
            "kind": "A", "none": {}, "list": [{"a": 1, "b": [true, null]}, ["x", []], "on"], "text": "two\nlines\n",
            "metadata": {"name": "b: c", "labels": {"1": "1"}},
        });
        let text = "kind: A\nnone: {}\nlist:\n- a: 1\n  b:\n  - true\n  - null\n- - x\n  - []\n- \"on\"\ntext: |\n  two\n  \
                    lines\nmetadata:\n  name: \"b: c\"\n  labels:\n    \"1\": \"1\"\n";
        assert_eq!(to_block_style(&object), text);
    }

    #[test]
    fn every_string_reads_back_as_itself() {
        let texts = [
            "",
            "yes",
            "Off",
            "y",
            "N",
            "TRUE",
            "null",
            "Null",
            "~",
            "0777",
            "0o7",
            "1_000",
            "0x_1",
            "1e3",
            ".5",
            ".inf",
            "12:30:45",
            "2001-01-01",
            "<<",
            "=",
            "- a",
            "-",
            "?",
            "*a",
            "&a",
            "!x",
            "%a",
            "@a",
            "`a",
            "{a",
            "[a",
            "a #b",
            "a: b",
            "a:",
            "a: ",
            " a",
            "a ",
            "'",
            "\"",
            "\\",
            "|",
            ">",
            "#",
            "a\n",
            "a\n\n",
            "\na",
            "a\n b\n",
            " a\nb",
            "a\n\nb",
            "a\r\nb",
            "a\tb",
            "\t",
            "a\n\tb",
            "# a\nb\n--- \n...\nc",
            "\u{0}",
            "\u{7f}",
            "\u{85}",
            "\u{2028}a",
            "\u{feff}",
            "a\u{feff}",
            "\u{fffe}",
            "😀",
            "é",
            "日本",
            "a\u{301}",
            "x\n\u{2029}y\n",
            "a \n b \n",
            "a,b]}",
        ];
        for text in texts {
            for value in [json!({"k": text}), json!({"a": {text: "v"}}), json!({"l": [text, [text], {text: text}]})] {
                for written in [to_block_style(&value), to_json_style(&value)] {
                    let read = crate::parse(&written).map(|node| node.map(|node| node.to_value()));
                    assert_eq!(read, Ok(Some(value.clone())), "{written}");
                }
            }
        }
    }
}
