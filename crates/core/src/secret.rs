//! Removes the values of a Secret from messages about it, and from the input of programs.
//!
//! The API server's validation does not quote them, but its decoding does (`expected string, got …`), and an admission
//! webhook or a custom check can write any message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::mask::Mask;
use crate::text;

const HIDDEN: &str = "[hidden]";
/// [`HIDDEN`] in base64, for `data`.
const HIDDEN_DATA: &str = "W2hpZGRlbl0=";
/// The members of a Secret that are not secret. Any other member may be a misspelt `data` or `stringData`.
pub(crate) const KNOWN: [&str; 5] = ["apiVersion", "kind", "metadata", "type", "immutable"];
/// The minimum length of a value that is removed. A shorter one occurs in too many words.
const SHORTEST: usize = 3;
/// The minimum length of a line of a longer value that is removed separately.
const SHORTEST_LINE: usize = 8;

/// The message without the values of `data` and `stringData` of the manifest, whether unchanged, decoded or encoded.
pub fn without_values(message: &str, manifest: &str) -> String {
    SecretValues::collect([manifest]).taken_out(message)
}

/// The values of objects, to remove from texts.
#[derive(Debug, Default)]
pub struct SecretValues(Mask);

impl SecretValues {
    /// Collects the values of objects (JSON), except in the members that are not secret.
    pub fn collect(objects: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut mask = Mask::default();
        for object in objects {
            let object: Value = serde_json::from_str(object.as_ref()).unwrap_or_default();
            let members = object.as_object().into_iter().flatten();
            members.filter(|(key, _)| !KNOWN.contains(&key.as_str())).for_each(|(_, value)| collect(value, &mut mask));
        }
        SecretValues(mask)
    }

    /// The message without the values.
    pub fn taken_out(&self, message: &str) -> String {
        let message = self.hidden(message);
        // The text after "got" is a value, even if it is too short to be removed otherwise.
        let causes =
            message.split("; ").map(|cause| cause.split_once(", got ").map_or(cause, |(expected, _)| expected));
        causes.collect::<Vec<_>>().join("; ")
    }

    /// Any text with the values hidden, even if they are encoded, truncated or split.
    pub fn hidden(&self, text: &str) -> String {
        self.0.hidden(text)
    }
}

/// Replaces the values of a Secret. Its keys stay, and an API server would still accept it.
pub fn hide_values(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    for (key, value) in secret.iter_mut() {
        match key.as_str() {
            "metadata" => hide_copies(value),
            "data" => replace(value, HIDDEN_DATA),
            key if KNOWN.contains(&key) => {}
            _ => replace(value, HIDDEN),
        }
    }
}

/// The start of base64 of gzipped data.
const GZIP: &str = "H4sI";

/// Hides annotations in which deploy tools store the whole applied object, as JSON or compressed.
fn hide_copies(metadata: &mut Value) {
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
    for (_, value) in annotations.into_iter().flatten() {
        if value.as_str().is_some_and(may_be_copy) {
            *value = HIDDEN.into();
        }
    }
}

/// Whether an annotation may contain a whole object.
pub(crate) fn may_be_copy(annotation: &str) -> bool {
    annotation.contains('{') || annotation.trim_start().starts_with(GZIP)
}

/// Moves `stringData` into `data`, like the API server. If a value is not a string, nothing is moved, so validation can
/// report it.
pub fn fold_string_data(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    let Some(Value::Object(text)) = secret.get("stringData") else { return };
    if !text.values().all(Value::is_string) {
        return;
    }
    let encode = |value: &Value| Value::String(STANDARD.encode(value.as_str().unwrap_or_default()));
    let encoded: Vec<(String, Value)> = text.iter().map(|(key, value)| (key.clone(), encode(value))).collect();
    secret.shift_remove("stringData");
    let data = secret.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = Value::Object(serde_json::Map::new());
    }
    if let Some(data) = data.as_object_mut() {
        data.extend(encoded);
    }
}

fn replace(value: &mut Value, with: &str) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| replace(value, with)),
        Value::Array(items) => items.iter_mut().for_each(|value| replace(value, with)),
        Value::Null => {}
        value => *value = with.into(),
    }
}

fn collect(value: &Value, into: &mut Mask) {
    match value {
        Value::Object(map) => map.values().for_each(|value| collect(value, into)),
        Value::Array(items) => items.iter().for_each(|value| collect(value, into)),
        Value::String(text) => {
            // A folded YAML scalar has line breaks, which the API server ignores.
            let compact: String = text.split_whitespace().collect();
            let bytes = STANDARD.decode(&compact).ok();
            let is_base64 = bytes.is_some();
            for text in [Some(text.as_bytes()), bytes.as_deref()].into_iter().flatten() {
                if text.len() >= SHORTEST {
                    into.add(text);
                }
            }
            let decoded = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            // A webhook receives the values of `stringData` in `data`.
            let encoded = STANDARD.encode(text);
            let encoded = encoded.trim_end_matches('=').to_owned();
            let compact = is_base64.then(|| compact.trim_end_matches('=').to_owned());
            for text in decoded.iter().chain(&compact).chain([text, &encoded]) {
                let lines = text.lines().map(str::trim).filter(|line| line.chars().count() >= SHORTEST_LINE);
                lines.for_each(|line| into.add_exact(line.as_bytes()));
                // Unchanged, and as messages show it: on one line, sanitized, possibly quoted.
                let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
                let quoted = format!("{text:?}");
                for shown in [text, quoted.trim_matches('"'), &text::sanitize(&line)] {
                    if shown.chars().count() >= SHORTEST {
                        into.add_exact(shown.as_bytes());
                    }
                }
            }
        }
        Value::Number(number) if number.to_string().len() >= SHORTEST => into.add_exact(number.to_string().as_bytes()),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_data_is_folded_into_data() {
        let mut secret = serde_json::json!({"data": {"x": "AAAA", "z": "AQ=="}, "stringData": {"x": "hi", "y": "z"}});
        fold_string_data(&mut secret);
        assert_eq!(secret, serde_json::json!({"data": {"x": "aGk=", "z": "AQ==", "y": "eg=="}}));
        let mut odd = serde_json::json!({"stringData": {"x": 1}});
        fold_string_data(&mut odd);
        assert_eq!(odd, serde_json::json!({"stringData": {"x": 1}}));
    }

    #[test]
    fn a_secret_without_its_values_keeps_its_shape() {
        let copy = r#"{"kind":"Secret","data":{"a":"aHVudGVyMg=="}}"#;
        let mut secret = serde_json::json!({"kind": "Secret", "type": "Opaque",
            "metadata": {"name": "x", "annotations": {"owner": "me", "kubectl.kubernetes.io/last-applied-configuration": copy,
                "objectset.rio.cattle.io/applied": "H4sIAAAAAAAA/packed"}},
            "data": {"a": "aHVudGVyMg==", "b": null}, "stringData": {"c": "hunter2"}, "stringdata": {"d": ["hunter2"]}});
        hide_values(&mut secret);
        assert_eq!(secret["metadata"]["annotations"]["owner"], "me");
        assert_eq!(secret["data"], serde_json::json!({"a": STANDARD.encode(HIDDEN), "b": null}));
        assert_eq!(secret["stringData"]["c"], HIDDEN);
        let text = secret.to_string();
        for value in ["hunter2", "aHVudGVyMg==", "packed"] {
            assert!(!text.contains(value), "{text}");
        }
    }

    #[test]
    fn values_are_hidden_as_they_are_decoded_and_quoted() {
        let manifest = r#"{"kind": "Secret", "metadata": {"name": "hunter"}, "data": {"a": "aHVudGVyMg=="},
            "stringData": {"b": 704177, "c": ["two\nlines"], "d": "q\"uote", "e": "x", "g": "a; b, got 12",
                "h": "first line\nlast line\n"}, "stringdata": {"f": "misspelt"}, "binaryData": {"i": "Zm9s\nZGVk\n"}}"#;
        for (said, shown) in [
            ("hunter: \"aHVudGVyMg==\" is no hunter2", "hunter: \"[hidden]\" is no [hidden]"),
            (".stringData.b: expected string, got 704177; other", ".stringData.b: expected string; other"),
            ("webhook: 704177 is weak", "webhook: [hidden] is weak"),
            ("webhook: bWlzc3BlbHQ= is weak", "webhook: [hidden]= is weak"),
            ("two lines, or two\\nlines", "[hidden], or [hidden]"),
            ("\"q\\\"uote\" and misspelt", "\"[hidden]\" and [hidden]"),
            ("expected string, got x", "expected string"),
            ("weak: a; b, got 12", "weak: [hidden]"),
            ("cannot read \"last line\"", "cannot read \"[hidden]\""),
            ("folded, Zm9sZGVk", "[hidden], [hidden]"),
            ("no Secret at all", "no Secret at all"),
            ("hunter2misspelthunter2 hunter2", "[hidden] [hidden]"),
            ("%68%75%6eter2 is cut of\nf", "[hidden] is cut of\nf"),
            ("two \" + \"lines or miss...", "[hidden] or miss..."),
            ("c3RyaW5nRGF0YTogbWlzc3BlbHQK", "c3RyaW5nRGF0YTog[hidden]K"),
        ] {
            assert_eq!(without_values(said, manifest), shown);
        }
        assert_eq!(without_values("expected string, got x", "no JSON"), "expected string");
    }
}
