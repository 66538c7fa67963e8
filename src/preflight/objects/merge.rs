//! What becomes of a live custom resource when a manifest is applied to it by server-side apply, as far as a verdict
//! needs it: which values stand where. Conflicts are not looked at; they are told when the manifest is applied.

use serde_json::{Map, Value};

use crate::resource::SERVER_METADATA;

/// The manifest without what is not its to say.
pub fn intent(mut manifest: Value, status_is_subresource: bool) -> Value {
    if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
    }
    if let (true, Some(object)) = (status_is_subresource, manifest.as_object_mut()) {
        object.shift_remove("status");
    }
    manifest
}

/// The live object once `manager` has applied `intent` to it.
pub fn merge(live: &Value, intent: &Value, schema: &Value, manager: &str) -> Value {
    let mut merged = live.clone();
    let records = live.pointer("/metadata/managedFields").and_then(Value::as_array).map(Vec::as_slice);
    let is_ours = |entry: &&Value| {
        entry["manager"] == manager && entry["operation"] == "Apply" && entry.get("subresource").is_none()
    };
    let entries = records.unwrap_or_default();
    let fields = |entry: &Value| entry.get("fieldsV1").cloned().unwrap_or_default();
    let ours = entries.iter().find(is_ours).map(fields);
    let others: Vec<Value> = entries.iter().filter(|entry| !is_ours(entry)).map(fields).collect();
    write(&mut merged, intent, Some(schema));
    if let Some(ours) = ours {
        drop_abandoned(&mut merged, Some(intent), Some(schema), &ours, &others.iter().collect::<Vec<_>>());
    }
    merged
}

/// Writes what the manifest sets. Objects are merged unless they are atomic, lists by what their type says.
fn write(live: &mut Value, intent: &Value, schema: Option<&Value>) {
    let keyword = |name: &str| schema.and_then(|schema| schema.get(name));
    let is_atomic = keyword("x-kubernetes-map-type").is_some_and(|kind| kind == "atomic");
    match (live, intent) {
        (Value::Object(live), Value::Object(intent)) if !is_atomic => {
            for (key, value) in intent {
                let child = keyword("properties")
                    .and_then(|properties| properties.get(key))
                    .or_else(|| keyword("additionalProperties").filter(|entries| entries.is_object()));
                write(live.entry(key).or_insert(Value::Null), value, child);
            }
        }
        // A null says nothing about the fields that an object has.
        (Value::Object(live), Value::Null) if !is_atomic && !live.is_empty() => {}
        (Value::Array(live), Value::Array(intent)) if keyword("x-kubernetes-list-type").is_some_and(|t| t == "set") => {
            live.extend(intent.iter().filter(|item| !live.contains(item)).cloned().collect::<Vec<_>>());
        }
        (Value::Array(live), Value::Array(intent)) if keyword("x-kubernetes-list-type").is_some_and(|t| t == "map") => {
            let keys = keyword("x-kubernetes-list-map-keys").and_then(Value::as_array).cloned().unwrap_or_default();
            for item in intent {
                match live.iter_mut().find(|known| same_item(known, item, &keys, keyword("items"))) {
                    Some(known) => write(known, item, keyword("items")),
                    None => live.push(item.clone()),
                }
            }
        }
        (live, intent) => *live = intent.clone(),
    }
}

/// Whether two items of a list have the same keys; a key that is missing has its default.
fn same_item(a: &Value, b: &Value, keys: &[Value], schema: Option<&Value>) -> bool {
    keys.iter().filter_map(Value::as_str).all(|key| {
        let default = || schema.and_then(|schema| schema.get("properties")?.get(key)?.get("default"));
        a.get(key).or_else(default) == b.get(key).or_else(default)
    })
}

/// Removes what the manager applied before, sets no longer, and nobody else is on record for. Answers whether anything
/// went.
fn drop_abandoned(
    live: &mut Value,
    intent: Option<&Value>,
    schema: Option<&Value>,
    ours: &Value,
    others: &[&Value],
) -> bool {
    let keyword = |name: &str| schema.and_then(|schema| schema.get(name));
    let Some(ours) = ours.as_object() else { return false };
    let mut went = false;
    for (entry, below) in ours {
        let held: Vec<&Value> = others.iter().filter_map(|other| other.get(entry)).collect();
        let has_below = below.as_object().is_some_and(|below| below.keys().any(|key| key != "."));
        if let Some(name) = entry.strip_prefix("f:") {
            let wanted = intent.and_then(|intent| intent.get(name));
            let Some(map) = live.as_object_mut() else { continue };
            let Some(value) = map.get_mut(name) else { continue };
            let property = keyword("properties").and_then(|properties| properties.get(name));
            let child = property.or_else(|| keyword("additionalProperties"));
            let some_went = has_below && drop_abandoned(value, wanted, child, below, &held);
            let is_empty = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
            // A declared object goes with all that is in it, such as what the server filled in.
            let goes_whole = property.is_some() && value.is_object();
            if wanted.is_none() && held.is_empty() && (!has_below || is_empty || goes_whole) {
                map.shift_remove(name);
                went = true;
            } else if some_went && is_empty {
                // The server leaves no empty object or list behind.
                *value = Value::Null;
            }
            went |= some_went;
        } else if let (Some(keys), Some(items)) = (entry.strip_prefix("k:"), live.as_array_mut()) {
            let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { continue };
            let is_it = |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
            let wanted = intent.and_then(Value::as_array).and_then(|items| items.iter().find(|item| is_it(item)));
            match items.iter().position(is_it) {
                Some(at) if wanted.is_none() && held.is_empty() => {
                    items.remove(at);
                    went = true;
                }
                Some(at) => went |= drop_abandoned(&mut items[at], wanted, keyword("items"), below, &held),
                None => {}
            }
        } else if let (Some(value), Some(items)) = (entry.strip_prefix("v:"), live.as_array_mut()) {
            let Ok(value) = serde_json::from_str::<Value>(value) else { continue };
            let is_wanted = intent.and_then(Value::as_array).is_some_and(|items| items.contains(&value));
            if !is_wanted && held.is_empty() {
                items.retain(|item| *item != value);
                went = true;
            }
        }
    }
    went
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"properties": {"spec": {"properties": {
            "ports": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"properties": {"protocol": {"default": "TCP"}}}},
            "tags": {"x-kubernetes-list-type": "set"},
            "selector": {"x-kubernetes-map-type": "atomic"}}}}})
    }

    #[test]
    fn a_null_takes_the_place_of_all_but_an_object_with_fields_of_its_own() {
        let live =
            json!({"spec": {"object": {"a": 1}, "empty": {}, "text": "x", "plain": [1], "selector": {"x": "y"}}});
        let intent = json!({"spec": {"object": null, "empty": null, "text": null, "plain": null, "new": null}});
        let merged = merge(&live, &intent, &schema(), "gantry");
        let expected = json!({"object": {"a": 1}, "empty": null, "text": null, "plain": null,
            "selector": {"x": "y"}, "new": null});
        assert_eq!(merged["spec"], expected);
    }

    #[test]
    fn what_is_emptied_becomes_null() {
        let ours = json!({"f:spec": {"f:map": {"f:a": {}}, "f:tags": {"v:\"a\"": {}}, "f:gone": {"f:a": {}}}});
        let live = json!({"metadata": {"managedFields": [{"manager": "gantry", "operation": "Apply", "fieldsV1": ours}]},
            "spec": {"map": {"a": 1}, "tags": ["a"], "gone": {"a": 1}}});
        let merged = merge(&live, &json!({"spec": {"map": {}, "tags": []}}), &schema(), "gantry");
        assert_eq!(merged["spec"], json!({"map": null, "tags": null}));
    }

    #[test]
    fn a_declared_field_goes_with_what_the_server_filled_in() {
        let ours =
            json!({"f:spec": {"f:service": {"f:name": {}}, "f:loose": {"f:name": {}}, "f:held": {"f:name": {}}}});
        let service = json!({"name": "a", "port": 443});
        let live = json!({"metadata": {"managedFields": [
                {"manager": "gantry", "operation": "Apply", "fieldsV1": ours},
                {"manager": "other", "operation": "Update", "fieldsV1": {"f:spec": {"f:held": {"f:ca": {}}}}}]},
            "spec": {"service": service, "loose": service, "held": {"name": "a", "port": 443, "ca": "x"}}});
        let schema = json!({"properties": {"spec": {"properties": {"service": {}, "held": {}}}}});
        let merged = merge(&live, &json!({"spec": {}}), &schema, "gantry");
        assert_eq!(merged["spec"], json!({"loose": {"port": 443}, "held": {"port": 443, "ca": "x"}}));
    }

    #[test]
    fn lists_and_maps_are_merged_as_their_type_says() {
        let live = json!({"spec": {"ports": [{"port": 1, "protocol": "TCP", "name": "a"}, {"port": 2, "protocol": "TCP"}],
            "tags": ["a"], "selector": {"x": "y"}, "plain": [1, 2], "kept": true}});
        let intent = json!({"spec": {"ports": [{"port": 1, "weight": 3}], "tags": ["b", "a"], "selector": {"z": "y"}, "plain": [3]}});
        let merged = merge(&live, &intent, &schema(), "gantry");
        assert_eq!(
            merged["spec"],
            json!({"ports": [{"port": 1, "protocol": "TCP", "name": "a", "weight": 3}, {"port": 2, "protocol": "TCP"}],
                "tags": ["a", "b"], "selector": {"z": "y"}, "plain": [3], "kept": true})
        );
    }

    #[test]
    fn what_the_manifest_no_longer_sets_goes_unless_somebody_else_holds_it() {
        let entry =
            |manager: &str, fields: Value| json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
        let ours = json!({"f:spec": {"f:gone": {}, "f:shared": {}, "f:kept": {}, "f:map": {"f:a": {}},
            "f:ports": {"k:{\"port\":2,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
            "f:tags": {"v:\"a\"": {}}}});
        let live = json!({
            "metadata": {"managedFields": [entry("gantry", ours), entry("other", json!({"f:spec": {"f:shared": {}}}))]},
            "spec": {"gone": 1, "shared": 1, "kept": 1, "map": {"a": "b"}, "foreign": 1,
                "ports": [{"port": 2, "protocol": "TCP"}, {"port": 3, "protocol": "TCP"}], "tags": ["a", "c"]}});
        let merged = merge(&live, &json!({"spec": {"kept": 2}}), &schema(), "gantry");
        assert_eq!(
            merged["spec"],
            json!({"shared": 1, "kept": 2, "foreign": 1, "ports": [{"port": 3, "protocol": "TCP"}], "tags": ["c"]})
        );
    }
}
