//! What of a manifest an apply sends.

use serde_json::Value;

use crate::resource::SERVER_METADATA;

/// The manifest without fields that apply ignores: server metadata, and `status` if it is a subresource.
pub fn intent(mut manifest: Value, status_is_subresource: bool) -> Value {
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
    }
    if let (true, Some(object)) = (status_is_subresource, manifest.as_object_mut()) {
        object.shift_remove("status");
    }
    manifest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn exported_metadata_and_status_are_not_applied() {
        let desired = json!({"metadata": {"name": "a", "uid": "u", "creationTimestamp": null}, "status": {"x": 1}});
        assert_eq!(intent(desired.clone(), true), json!({"metadata": {"name": "a"}}));
        assert_eq!(intent(desired, false)["status"], json!({"x": 1}));
    }
}
