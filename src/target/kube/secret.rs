//! Keeps the values of a Secret out of the server's words about it.
//!
//! The API server's own validation is careful with them, its decoding is not (`expected string, got …`), and what an
//! admission webhook says is its author's choice.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::text;

const HIDDEN: &str = "[hidden]";
/// A shorter value is part of too many words to be taken out of them.
const SHORTEST: usize = 3;

/// The message without what stands below `data` and `stringData` of the manifest, as it is, decoded or encoded.
pub fn without_values(message: &str, manifest: &str) -> String {
    // Whatever was got instead of what was expected is a value, even one that is too short to be looked for.
    let mut message = message
        .split("; ")
        .map(|cause| cause.split_once(", got ").map_or(cause, |(expected, _)| expected))
        .collect::<Vec<_>>()
        .join("; ");
    let manifest: Value = serde_json::from_str(manifest).unwrap_or_default();
    let mut values = BTreeSet::new();
    // Any member may be a misspelt one of the two.
    let members = manifest.as_object().into_iter().flatten();
    let known = ["apiVersion", "kind", "metadata", "type", "immutable"];
    members.filter(|(key, _)| !known.contains(&key.as_str())).for_each(|(_, value)| collect(value, &mut values));
    let mut values: Vec<String> = values.into_iter().filter(|value| value.chars().count() >= SHORTEST).collect();
    // One value may be part of another.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    for value in values {
        message = message.replace(&value, HIDDEN);
    }
    message
}

fn collect(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.values().for_each(|value| collect(value, into)),
        Value::Array(items) => items.iter().for_each(|value| collect(value, into)),
        Value::String(text) => {
            let decoded = STANDARD.decode(text.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            // What stands in `stringData` comes to a webhook in `data`.
            let encoded = STANDARD.encode(text);
            let encoded = encoded.trim_end_matches('=').to_owned();
            for text in decoded.iter().chain([text, &encoded]) {
                // As it stands, and as a message shows it: on one line, harmless, maybe quoted.
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let quoted = format!("{text:?}");
                into.insert(quoted.trim_matches('"').to_owned());
                into.insert(text::sanitize(&line).into_owned());
                into.insert(text.clone());
            }
        }
        Value::Number(number) => drop(into.insert(number.to_string())),
        Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_as_they_are_decoded_and_quoted() {
        let manifest = r#"{"kind": "Secret", "metadata": {"name": "hunter"}, "data": {"a": "aHVudGVyMg=="},
            "stringData": {"b": 704177, "c": ["two\nlines"], "d": "q\"uote", "e": "x"}, "stringdata": {"f": "misspelt"}}"#;
        for (said, shown) in [
            ("hunter: \"aHVudGVyMg==\" is no hunter2", "hunter: \"[hidden]\" is no [hidden]"),
            (".stringData.b: expected string, got 704177; other", ".stringData.b: expected string; other"),
            ("webhook: 704177 is weak", "webhook: [hidden] is weak"),
            ("webhook: bWlzc3BlbHQ= is weak", "webhook: [hidden]= is weak"),
            ("two lines, or two\\nlines", "[hidden], or [hidden]"),
            ("\"q\\\"uote\" and misspelt", "\"[hidden]\" and [hidden]"),
            ("expected string, got x", "expected string"),
            ("no Secret at all", "no Secret at all"),
        ] {
            assert_eq!(without_values(said, manifest), shown);
        }
        assert_eq!(without_values("expected string, got x", "no JSON"), "expected string");
    }
}
