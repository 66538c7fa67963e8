//! What the API server does to a Secret: `stringData` is only for writing and is kept as base64 in `data`.

use base64::Engine;
use serde_json::{Map, Value};

use crate::resource::ObjectRef;

pub(super) fn is_secret(object: &ObjectRef) -> bool {
    object.kind == "Secret" && object.group().is_empty()
}

/// Moves `stringData` into `data`. Values that are no strings are left for the reader to find.
pub(super) fn fold_string_data(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    let Some(Value::Object(text)) = secret.get("stringData") else { return };
    if !text.values().all(Value::is_string) {
        return;
    }
    let encoded: Vec<(String, Value)> = text
        .iter()
        .map(|(key, value)| {
            let text = value.as_str().unwrap_or_default();
            (key.clone(), Value::String(base64::engine::general_purpose::STANDARD.encode(text)))
        })
        .collect();
    secret.shift_remove("stringData");
    let data = secret.entry("data").or_insert(Value::Null);
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    if let Some(data) = data.as_object_mut() {
        data.extend(encoded);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn string_data_wins_over_data_and_is_gone() {
        let mut secret = json!({"data": {"x": "AAAA", "z": "AQ=="}, "stringData": {"x": "hi", "y": "z"}});
        fold_string_data(&mut secret);
        assert_eq!(secret, json!({"data": {"x": "aGk=", "z": "AQ==", "y": "eg=="}}));
        let mut odd = json!({"stringData": {"x": 1}});
        fold_string_data(&mut odd);
        assert_eq!(odd, json!({"stringData": {"x": 1}}));
    }
}
