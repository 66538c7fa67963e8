//! Go's formatting of values: the server's messages use `%q`, `%v` and `json.Marshal`.
//!
//! These three are reproduced exactly, so that users can search for a message as the server writes it.

use serde_json::{Number, Value};

use super::num::Num;

/// `%q`: a double-quoted Go string literal.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c if (c as u32) < 0x80 => out.push_str(&format!("\\x{:02x}", c as u32)),
            c if (c as u32) < 0x1_0000 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push_str(&format!("\\U{:08x}", c as u32)),
        }
    }
    out.push('"');
    out
}

/// `strings.ToLower`: maps each character separately, including the one whose lowercase form has two.
pub fn lower(text: &str) -> String {
    text.chars().map(|c| if c == 'İ' { 'i' } else { c.to_lowercase().next().unwrap_or(c) }).collect()
}

/// Whether `c` is a letter, mark, number, punctuation character, symbol or the ASCII space.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // `escape_debug` escapes a combining mark only at the beginning of a text.
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().count() == 2
}

/// `%v` of a float64: the shortest digits, with an exponent below 1e-4 and from 1e6 on.
pub fn float(value: f64) -> String {
    with_exponent_outside(value, -4..6, 2)
}

/// The shortest digits of `value`, with an exponent unless it is within `plain`.
fn with_exponent_outside(value: f64, plain: std::ops::Range<i32>, exponent_digits: usize) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if value != 0.0 && !plain.contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:0exponent_digits$}", exponent.unsigned_abs());
    }
    format!("{value}")
}

/// `%v` of a JSON value as decoded by Go.
pub fn format_v(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => match Num::from(n) {
            Num::Int(i) => i.to_string(),
            Num::Float(f) => float(f),
        },
        Value::String(s) => s.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(format_v).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by(|a, b| a.0.cmp(b.0));
            let entries: Vec<_> = keys.iter().map(|(k, v)| format!("{k}:{}", format_v(v))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// Removes Go type names from a line such as `expected string, got &value.valueUnstructured{Value:true}`. A long value
/// is removed as well: it adds nothing to the expected type.
pub fn without_types(line: &str) -> String {
    let Some((expected, got)) = line.split_once(", got &") else { return line.to_owned() };
    let Some(value) = ["value.valueUnstructured{Value:", "{"].iter().find_map(|start| got.strip_prefix(start)) else {
        return line.to_owned();
    };
    match value.strip_suffix('}') {
        Some(value) if value.len() <= 60 && !value.contains(['{', '(', '[']) => format!("{expected}, got {value}"),
        _ => expected.to_owned(),
    }
}

/// `json.Marshal`: sorted keys, with `<`, `>` and `&` escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    push_json(&mut out, value);
    out
}

fn push_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&json_number(n)),
        Value::String(s) => push_json_string(out, s),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_json(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.cmp(b.0));
            out.push('{');
            for (at, (key, item)) in entries.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                push_json_string(out, key);
                out.push(':');
                push_json(out, item);
            }
            out.push('}');
        }
    }
}

fn json_number(number: &Number) -> String {
    match Num::from(number) {
        Num::Int(i) => i.to_string(),
        Num::Float(f) => with_exponent_outside(f, -6..21, 1),
    }
}

fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as j;

    #[test]
    fn strings_are_quoted_as_go_quotes_them() {
        for (text, quoted) in [
            ("a\"b\\", r#""a\"b\\""#),
            ("\u{7}\n\u{1}\u{7f}", r#""\a\n\x01\x7f""#),
            ("é日\u{301}", "\"é日\u{301}\""),
            ("\u{a0}\u{200b}\u{e0001}", r#""\u00a0\u200b\U000e0001""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn floats_turn_to_an_exponent_where_go_does() {
        for (value, v, marshalled) in [
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "0.00001"),
            (0.0000001, "1e-07", "1e-7"),
            (1e20, "1e+20", "100000000000000000000"),
            (123456.0, "123456", "123456"),
            (1234567.0, "1.234567e+06", "1234567"),
            (1.5e21, "1.5e+21", "1.5e+21"),
            (-2.5, "-2.5", "-2.5"),
        ] {
            assert_eq!((float(value).as_str(), json(&j!(value)).as_str()), (v, marshalled));
        }
    }

    #[test]
    fn json_is_sorted_and_html_safe() {
        assert_eq!(json(&j!({"b": [1, 1.0, null], "a": "<&>"})), r#"{"a":"\u003c\u0026\u003e","b":[1,1,null]}"#);
        assert_eq!(format_v(&j!({"b": [1, "x"], "a": null})), "map[a:<nil> b:[1 x]]");
    }
}
