//! JSON that is no YAML, and what is wrong with JSON, for people.
//!
//! Nearly all JSON is YAML as well. What is not (surrogate pairs, keys longer than 1,024 characters, a line break before
//! the colon) reaches kubectl through a JSON reader, and this is ours.

use serde::Deserialize;
use serde_json::{Deserializer, Value};

use super::limits::MAX_DEPTH;

/// The value of a JSON text; `None` if it is not JSON or nests too deep.
pub(super) fn read(text: &str) -> Option<Value> {
    let text = text.trim_start_matches("---").trim_start();
    if !text.starts_with(['{', '[']) || depth(text) > MAX_DEPTH {
        return None;
    }
    let mut reader = Deserializer::from_str(text);
    reader.disable_recursion_limit();
    let value = Value::deserialize(&mut reader).ok()?;
    reader.end().ok()?;
    Some(value)
}

/// What serde says of a JSON value, for people: without a place in a text that nobody sees, and with JSON's word for what is
/// read as a Rust struct.
pub fn explain_json(error: &serde_json::Error) -> String {
    const STRUCT: &str = "expected struct ";
    let message = error.to_string();
    let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    match what.split_once(STRUCT) {
        // A struct is also read from a list of its fields, which nobody means to write.
        Some((start, _)) if start.starts_with("invalid length") => {
            "invalid type: sequence, expected an object".to_owned()
        }
        Some((start, _)) => format!("{start}expected an object"),
        None => what.to_owned(),
    }
}

/// How deep the brackets of a JSON text nest.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let mut quoted = false;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if quoted => drop(bytes.next()),
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Outer {
        #[serde(rename = "inner")]
        _inner: Inner,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[serde(rename = "number")]
        _number: u8,
    }

    #[test]
    fn errors_name_no_type_of_rust() {
        for (text, said) in [
            ("[]", "invalid type: sequence, expected an object"),
            ("3", "invalid type: integer `3`, expected an object"),
            (r#"{"inner": "x at line 3"}"#, "invalid type: string \"x at line 3\", expected an object"),
            (r#"{"inner": {"number": "x"}}"#, "invalid type: string \"x\", expected u8"),
            (r#"{"inner": {"#, "EOF while parsing an object"),
        ] {
            assert_eq!(explain_json(&serde_json::from_str::<Outer>(text).unwrap_err()), said, "{text}");
        }
    }
}
