//! JSON that is no YAML.
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
