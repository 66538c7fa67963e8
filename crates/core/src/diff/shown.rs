//! The parts of an object that a diff shows.

use serde_json::Value;

use crate::resource::{LAST_APPLIED, SERVER_METADATA};

/// The label for membership in an app, which no manifest sets.
const PART_OF: &str = "applyset.kubernetes.io/part-of";

/// The object without server metadata, status and nulls.
pub fn without_server_fields(mut object: Value) -> Value {
    without_nulls(&mut object);
    let Some(members) = object.as_object_mut() else { return object };
    members.shift_remove("status");
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
        for (map, key) in [("annotations", LAST_APPLIED), ("labels", PART_OF)] {
            let Some(Value::Object(entries)) = metadata.get_mut(map) else { continue };
            entries.shift_remove(key);
            if entries.is_empty() {
                metadata.shift_remove(map);
            }
        }
    }
    object
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
