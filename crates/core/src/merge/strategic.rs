//! The patches that Helm and `kubectl apply` without `--server-side` send: what an upgrade from one manifest to another
//! changes in the live object. For kinds that are compiled into the API server it is a strategic merge patch, made from
//! all three; for others a JSON merge patch.
//!
//! Helm and the server merge by hints that differ from those of server-side apply: the ports of a Service are told apart
//! by their number alone.
//!
//! Sources: `CreateThreeWayMergePatch` in `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`;
//! `CreateMergePatch` in `github.com/evanphx/json-patch/merge.go`.

mod diff;
mod lists;
mod schema;

use serde_json::{Map, Value};

pub use schema::PatchSchema;

/// The key of a directive, and its value for an item of a list that is deleted.
const DIRECTIVE: &str = "$patch";
const DELETE: &str = "delete";
/// The directive that names the fields of a map that stay.
const RETAIN_KEYS: &str = "$retainKeys";
/// The start of the directive with the order of a list.
const ORDER: &str = "$setElementOrder/";
/// The start of the directive with the scalars that leave a list.
const DELETE_SCALARS: &str = "$deleteFromPrimitiveList/";

/// A JSON map.
type Fields = Map<String, Value>;
/// The error says why client-go makes no patch.
type PatchResult<T> = std::result::Result<T, String>;

/// The strategic merge patch that brings `live` to the manifest `new`, and removes what only the manifest `former` has.
///
/// # Errors
/// The manifests have something that the kind cannot have, such as an item of a list without its key.
pub fn three_way_patch(former: &Value, new: &Value, live: &Value, schema: PatchSchema<'_>) -> PatchResult<Value> {
    let [former, new, live] = [former, new, live].map(|object| object.as_object().ok_or("not an object"));
    let (former, new, live) = (former?, new?, live?);
    let delta = diff::diff_maps(live, new, schema, diff::PatchPart::ADDITIONS)?;
    let deletions = diff::diff_maps(former, new, schema, diff::PatchPart::DELETIONS)?;
    merge_patches(deletions, delta, schema).map(Value::Object)
}

/// The JSON merge patch that makes `former` to `new`.
pub fn json_merge_patch(former: &Value, new: &Value) -> Value {
    let (Value::Object(former), Value::Object(new)) = (former, new) else { return new.clone() };
    let mut patch = Fields::new();
    for (key, value) in new {
        match (former.get(key), value) {
            (Some(Value::Object(_)), Value::Object(_)) => {
                let below = json_merge_patch(&former[key], value);
                if below.as_object().is_some_and(|below| !below.is_empty()) {
                    patch.insert(key.clone(), below);
                }
            }
            (Some(known), _) if is_same(known, value) => {}
            _ => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    let gone = former.keys().filter(|key| !new.contains_key(*key));
    patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    Value::Object(patch)
}

/// What a JSON merge patch makes of a value.
///
/// Source: RFC 7386
pub fn apply_json_merge_patch(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Fields::new());
    }
    let Value::Object(fields) = value else { return };
    for (key, patch) in patch {
        match patch {
            Value::Null => drop(fields.shift_remove(key)),
            patch => apply_json_merge_patch(fields.entry(key.clone()).or_insert(Value::Null), patch),
        }
    }
}

/// Whether two values are the same for the library, which reads all numbers as floats.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}

/// Adds the changes of the patch `delta` to the patch `deletions`.
///
/// Source: `mergeMap`, with `MergeOptions{}`
fn merge_patches(mut deletions: Fields, mut delta: Fields, schema: PatchSchema<'_>) -> PatchResult<Fields> {
    if delta.get(DIRECTIVE).is_some_and(|directive| directive == DELETE) {
        return Ok(Fields::new());
    }
    if let Some(retained) = delta.shift_remove(RETAIN_KEYS) {
        match deletions.get(RETAIN_KEYS) {
            Some(known) if *known != retained => {
                return Err(format!("{known} and {retained} are not deep equal"));
            }
            _ => drop(deletions.insert(RETAIN_KEYS.to_owned(), retained)),
        }
    }
    lists::merge_ordered(&mut deletions, &mut delta, schema)?;
    for (key, value) in delta {
        if key.starts_with(DELETE_SCALARS) {
            deletions.insert(key, value);
            continue;
        }
        let merged = match (deletions.get_mut(&key).map(Value::take), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let (below, hint) = schema.member(&key)?;
                match hint.strategy.as_str() {
                    "replace" => Some(Value::Object(new)),
                    _ => Some(Value::Object(merge_patches(old, new, below)?)),
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let (below, hint) = schema.items_of(&key)?;
                match hint.strategy.as_str() {
                    "merge" => Some(Value::Array(lists::merge(old, new, &hint.key, below)?)),
                    _ => Some(Value::Array(new)),
                }
            }
            (_, value) => without_directives(value),
        };
        match merged {
            Some(merged) => drop(deletions.insert(key, merged)),
            None => drop(deletions.shift_remove(&key)),
        }
    }
    Ok(deletions)
}

/// The value without what is only a directive; `None` if it is one itself.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        value => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definitions() -> Value {
        let list = |key: &str, strategy: &str, item: Value| {
            json!({"type": "array", "items": item, "x-kubernetes-patch-merge-key": key,
                "x-kubernetes-patch-strategy": strategy})
        };
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let port = json!({"type": "object", "properties": {"port": {"type": "integer"}}});
        let env = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        json!({
            "Spec": {"type": "object", "properties": {
                "ports": list("port", "merge", port), "env": list("name", "merge", json!({"allOf": [{"$ref": "#/x/Env"}]})),
                "volumes": list("name", "merge,retainKeys", json!({"type": "object", "properties": {
                    "emptyDir": {"type": "object"}, "secret": {"type": "object"}}})),
                "args": {"type": "array", "items": {"type": "string"}},
                "selector": map,
                "strategy": {"allOf": [{"$ref": "#/x/Env"}], "x-kubernetes-patch-strategy": "retainKeys"}}},
            "Env": env,
            "Kind": {"type": "object", "properties": {"spec": {"$ref": "#/x/Spec"}, "data": map,
                "metadata": {"type": "object", "properties": {
                    "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"}}}}}
        })
    }

    fn patch(former: Value, new: Value, live: Value) -> Value {
        let definitions = definitions();
        three_way_patch(&former, &new, &live, PatchSchema::new(&definitions["Kind"], &definitions)).unwrap()
    }

    #[test]
    fn only_what_the_former_manifest_had_is_deleted() {
        let data = |data: Value| json!({"data": data});
        let made = patch(data(json!({"a": "1", "b": "1"})), data(json!({"a": "2"})), data(json!({"a": "1", "x": "1"})));
        assert_eq!(made, data(json!({"a": "2", "b": null})), "b is gone already, and deleted all the same");
        let same = data(json!({"a": "1"}));
        assert_eq!(patch(same.clone(), same.clone(), same), json!({}));
    }

    #[test]
    fn two_ports_of_one_number_are_one_item() {
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let both = ports(json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]));
        let made = patch(both.clone(), ports(json!([{"port": 53, "protocol": "TCP"}])), both);
        let list = made["spec"]["ports"].as_array().unwrap();
        assert!(list.contains(&json!({"port": 53, "$patch": "delete"})), "{made}");
        assert_eq!(made["spec"]["$setElementOrder/ports"], json!([{"port": 53}]));
    }

    #[test]
    fn scalars_and_kept_keys_have_directives() {
        let object = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
        let made = patch(object(json!(["a", "b"])), object(json!(["a"])), object(json!(["a", "b", "x"])));
        let expected = json!({"metadata": {
            "$deleteFromPrimitiveList/finalizers": ["b"], "$setElementOrder/finalizers": ["a"]}});
        assert_eq!(made, expected);
        let volume = |source: &str| json!({"spec": {"volumes": [{"name": "v", source: {}}]}});
        let made = patch(volume("emptyDir"), volume("secret"), volume("emptyDir"));
        let expected = json!({"name": "v", "emptyDir": null, "secret": {}, "$retainKeys": ["name", "secret"]});
        assert_eq!(made["spec"]["volumes"], json!([expected]));
    }

    #[test]
    fn custom_resources_are_patched_whatever_the_live_object_has() {
        let patch = json_merge_patch(&json!({"a": 1, "b": {"x": 1}, "c": [1]}), &json!({"a": 1.0, "b": {}, "c": [2]}));
        assert_eq!(patch, json!({"b": {"x": null}, "c": [2]}));
        let mut live = json!({"a": 5, "b": {"x": 1, "y": 2}});
        apply_json_merge_patch(&mut live, &patch);
        assert_eq!(live, json!({"a": 5, "b": {"y": 2}, "c": [2]}));
    }
}
