//! JSON that is not valid YAML, and user-friendly messages for JSON errors.
//!
//! Nearly all JSON is also YAML. The exceptions (surrogate pairs, keys longer than 1,024 characters, a line break
//! before the colon) are accepted by kubectl's JSON reader. This is the equivalent.

use serde::Deserialize;
use serde_json::{Deserializer, Value};

use super::limits::MAX_DEPTH;

/// The value of a JSON text; `None` if it is not JSON or is nested too deeply.
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

/// A serde error for a JSON value in user-friendly words: without a position, which would refer to a text that the
/// user does not see, and with "object" instead of the name of a Rust struct.
pub fn explain_json(error: &serde_json::Error) -> String {
    const STRUCT: &str = "expected struct ";
    let message = error.to_string();
    let what = message.rsplit_once(" at line ").map_or(message.as_str(), |(what, _)| what);
    match what.split_once(STRUCT) {
        // serde also accepts a list of fields for a struct, which no user intends.
        Some((start, _)) if start.starts_with("invalid length") => {
            "invalid type: sequence, expected an object".to_owned()
        }
        Some((start, _)) => format!("{start}expected an object"),
        None => what.to_owned(),
    }
}

/// The nesting depth of the brackets in a JSON text.
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
    fn error_messages_name_no_rust_types() {
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
