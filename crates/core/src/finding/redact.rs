//! `--redact`: shows the type of a value instead of the value.
//!
//! Values of objects can be secret. Values that a finding quotes from the schema (a maximum, an enum) are not.

use serde_json::Value;

use super::Finding;

impl Finding {
    /// Removes the values from the witnesses. Kind, version, namespace and name of the object stay.
    pub fn redact(&mut self) {
        for witness in &mut self.body.witnesses {
            redact_object(&mut witness.object);
            witness.old_object.iter_mut().for_each(redact_object);
            witness.message = without_values(&witness.message);
        }
    }
}

fn redact_object(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return redact_value(object) };
    for (key, value) in map {
        match (key.as_str(), value) {
            ("apiVersion" | "kind", _) => {}
            ("metadata", Value::Object(metadata)) => {
                metadata.iter_mut().filter(|(key, _)| *key != "name" && *key != "namespace").for_each(|(_, value)| {
                    redact_value(value);
                });
            }
            (_, value) => redact_value(value),
        }
    }
}

fn redact_value(value: &mut Value) {
    match value {
        Value::Object(map) => map.values_mut().for_each(redact_value),
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Null => {}
        Value::Bool(_) => *value = "(boolean)".into(),
        Value::Number(_) => *value = "(number)".into(),
        Value::String(_) => *value = "(string)".into(),
    }
}

/// An error such as `spec.x: Invalid value: "abc": should match …`, cut off after the kind of error, because the rest
/// may quote the value again.
pub fn without_values(text: &str) -> String {
    // The last two precede the message of a webhook or a policy.
    const KINDS: [&str; 5] =
        ["Invalid value: ", "Unsupported value: ", "Duplicate value: ", "denied the request: ", "denied request: "];
    let line = |line: &str| {
        // The message of a conversion webhook that fails follows.
        const FAILED: &str = " failed: ";
        let webhook = line.find("conversion webhook for ");
        let failed = webhook.and_then(|at| Some((at + line[at..].find(FAILED)?, FAILED.len())));
        let found = KINDS.iter().filter_map(|kind| Some((line.find(kind)?, kind.len()))).chain(failed).min();
        match found {
            Some((at, length)) => format!("{} (hidden)", &line[..at + length - 2]),
            None => line.to_owned(),
        }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A warning of the server, or `(hidden)` if it may quote a value. A warning about a deprecated API contains only kinds
/// and versions; any other warning may be the message of an admission webhook or a policy.
pub fn warning(text: &str) -> &str {
    let is_about_an_api = text.contains(" is deprecated in v1.") && !text.contains(['"', ':']);
    if is_about_an_api { text } else { "(hidden)" }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::finding::samples;

    #[test]
    fn witnesses_keep_their_shape_and_lose_their_values() {
        let mut finding = samples::removed_field("v1", 1);
        finding.body.witnesses[0].object["metadata"]["labels"] = json!({"a": "s3cret"});
        finding.body.witnesses[0].old_object =
            Some(json!({"kind": "Sample", "spec": {"list": [true, 7, null, {"x": "s3cret"}]}}));
        finding.body.witnesses[0].message = "spec.x: Invalid value: \"s3cret\": no".into();
        finding.redact();
        let witness = &finding.body.witnesses[0];
        assert_eq!(witness.object["metadata"], json!({"name": "x", "labels": {"a": "(string)"}}));
        assert_eq!(witness.object["spec"], json!({"pollInterval": "(string)"}));
        let old = witness.old_object.as_ref().unwrap();
        assert_eq!(old["spec"]["list"], json!(["(boolean)", "(number)", null, {"x": "(string)"}]));
        assert_eq!(
            (old["kind"].as_str(), witness.message.as_str()),
            (Some("Sample"), "spec.x: Invalid value (hidden)")
        );
    }

    #[test]
    fn messages_of_the_server_are_redacted_after_the_kind_of_refusal() {
        let text = "the API server refused it: \n  spec.a: Invalid value: \"x\": in body\n  spec.b: Required value";
        assert_eq!(
            without_values(text),
            "the API server refused it: \n  spec.a: Invalid value (hidden)\n  spec.b: Required value"
        );
        assert_eq!(without_values("spec.a: Unsupported value: \"x\": supported"), "spec.a: Unsupported value (hidden)");
        let denied = "admission webhook \"w\" denied the request: x is weak: Invalid value: \"x\"";
        assert_eq!(without_values(denied), "admission webhook \"w\" denied the request (hidden)");
    }

    #[test]
    fn messages_of_a_conversion_webhook_are_redacted() {
        let text = "refused to get x: conversion webhook for g/v1, Kind=K failed: cannot read s3cret";
        assert_eq!(without_values(text), "refused to get x: conversion webhook for g/v1, Kind=K failed (hidden)");
    }

    #[test]
    fn only_warnings_about_deprecated_apis_are_not_redacted() {
        let about_an_api = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
        assert_eq!(warning(about_an_api), about_an_api);
        for text in
            ["spec.password s3cret is weak", "spec.x: \"s3cret\" is deprecated in v1.33+", "unknown field \"s3cret\""]
        {
            assert_eq!(warning(text), "(hidden)");
        }
    }
}
