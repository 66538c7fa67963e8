//! Computes the live object after a manifest is applied to it. Fields that the manifest sets are written. Fields that
//! its manager owned before, that the manifest no longer sets, and that no other manager owns are removed. All others
//! stay.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::LazyLock;

use gantry_schema::Tree as _;
use serde_json::{Map, Value};

use super::handover::{Owners, without_applied};
use super::order;
use super::schema::{MergeSchema, MergeShape, OBJECT_META};
use crate::managed_fields::{FieldSet, ListItemKey};

/// The recorded fields of the managers.
#[derive(Debug, Default)]
pub struct ManagerFieldSets<'f> {
    /// The fields that the applying manager applied before.
    pub before: Option<&'f FieldSet>,
    /// The fields of each other manager.
    pub others: Vec<&'f FieldSet>,
}

/// What remains of a list or map that loses all of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptied {
    /// `null`, as with the API server.
    Null,
    /// An empty list or map.
    Empty,
}

/// The live object after `manager` applied `intent` to it, using the `openAPIV3Schema` of its kind. Conflicts are
/// ignored: the server reports them when the manifest is applied.
pub fn merge(live: &Value, intent: &Value, schema: &Value, manager: &str) -> Value {
    merge_by(live, intent, of_kind(schema, None), manager)
}

/// The schema of a kind, including `metadata`; `definitions` resolves its `$ref`s.
pub fn of_kind<'s>(schema: &'s Value, definitions: Option<&'s Value>) -> MergeSchema<'s, Value> {
    static METADATA: LazyLock<Value> = LazyLock::new(|| serde_json::from_str(OBJECT_META).unwrap_or_default());
    MergeSchema::of_object(schema, definitions, &METADATA)
}

/// Like [`merge`], with any schema. The fields of former deploy tools are taken over.
pub fn merge_by(live: &Value, intent: &Value, schema: MergeSchema<'_, Value>, manager: &str) -> Value {
    if let Some(rest) = without_applied(live) {
        return apply(&rest, intent, schema, &ManagerFieldSets::default(), Emptied::Null);
    }
    let version = intent["apiVersion"].as_str().unwrap_or_default();
    merge_owned(live, intent, schema, Owners::of_object(live, manager, version))
}

/// Like [`merge_by`], with these owners of the fields of the live object.
pub fn merge_owned(live: &Value, intent: &Value, schema: MergeSchema<'_, Value>, owners: Owners) -> Value {
    let Owners { mut ours, taken, others, .. } = owners;
    ours.add(&taken);
    let managers = ManagerFieldSets { before: Some(&ours), others: others.iter().map(|other| &other.fields).collect() };
    apply(live, intent, schema, &managers, Emptied::Null)
}

/// The live object after `intent` is applied to it.
pub fn apply(
    live: &Value,
    intent: &Value,
    schema: MergeSchema<'_, Value>,
    managers: &ManagerFieldSets<'_>,
    emptied: Emptied,
) -> Value {
    let mut applied = live.clone();
    write(&mut applied, intent, schema);
    if let Some(before) = managers.before {
        FieldRemoval { emptied }.run(&mut applied, Some(intent), schema, before, &managers.others);
    }
    applied
}

/// Writes what the manifest sets. Objects are merged unless they are atomic; lists are merged according to their type.
fn write(live: &mut Value, intent: &Value, schema: MergeSchema<'_, Value>) {
    match (live, intent, schema.shape(intent)) {
        (Value::Object(live), Value::Object(intent), MergeShape::Map) => {
            for (key, value) in intent {
                let schema = schema.member(key).unwrap_or(MergeSchema::Deduced);
                write(live.entry(key).or_insert(Value::Null), value, schema);
            }
        }
        // A null leaves existing parts alone.
        (live, Value::Null, _) if schema.merges(live) => {}
        (Value::Array(live), Value::Array(intent), MergeShape::Set) => {
            write_items(live, intent, MergeSchema::Scalar, |item| Some(ListItemKey::Value(item.canonical_text())));
        }
        (Value::Array(live), Value::Array(intent), MergeShape::Keyed(keyed)) => {
            write_items(live, intent, keyed.items, |item| keyed.key(item));
        }
        (live, intent, _) => *live = intent.clone(),
    }
}

/// Writes the items of a list that are separate fields. The server refuses a manifest that has an item twice; here, the
/// first counts.
fn write_items(
    live: &mut Vec<Value>,
    intent: &[Value],
    schema: MergeSchema<'_, Value>,
    key: impl Fn(&Value) -> Option<ListItemKey>,
) {
    let mut wanted: Vec<&Value> = Vec::with_capacity(intent.len());
    let mut index = BTreeMap::new();
    for item in intent {
        if let Entry::Vacant(entry) = index.entry(key(item)) {
            entry.insert(wanted.len());
            wanted.push(item);
        }
    }
    let of_live: Vec<Option<usize>> = live.iter().map(|item| index.get(&key(item)).copied()).collect();
    let mut old = std::mem::take(live);
    live.extend(order::merged_order(&of_live, wanted.len()).into_iter().map(|place| {
        let mut item = place.live.map(|at| old[at].take());
        if let Some(at) = place.intent {
            match &mut item {
                Some(known) => write(known, wanted[at], schema),
                None => item = Some(wanted[at].clone()),
            }
        }
        item.unwrap_or_default()
    }));
}

/// Removes the fields that the manager gives up.
struct FieldRemoval {
    emptied: Emptied,
}

impl FieldRemoval {
    /// Removes fields that are in `before`, that `intent` no longer sets, and that no other manager owns. Returns
    /// whether anything was removed.
    fn run(
        &self,
        live: &mut Value,
        intent: Option<&Value>,
        schema: MergeSchema<'_, Value>,
        before: &FieldSet,
        others: &[&FieldSet],
    ) -> bool {
        match live {
            Value::Object(map) => {
                let mut removed = false;
                for (name, before) in before.fields() {
                    let others: Vec<&FieldSet> = others.iter().filter_map(|other| other.field(name)).collect();
                    let intent = intent.and_then(|intent| intent.get(name));
                    removed |= self.remove_field(map, name, intent, schema, before, &others);
                }
                removed
            }
            Value::Array(list) => self.remove_items(list, intent, schema, before, others),
            _ => false,
        }
    }

    fn remove_field(
        &self,
        map: &mut Map<String, Value>,
        name: &str,
        intent: Option<&Value>,
        schema: MergeSchema<'_, Value>,
        before: &FieldSet,
        others: &[&FieldSet],
    ) -> bool {
        let Some(value) = map.get_mut(name) else { return false };
        let child = schema.member(name).unwrap_or(MergeSchema::Deduced);
        // If an atomic value was merged before, its recorded parts stand for the whole value.
        let has_below = before.has_below() && !matches!(child.shape(value), MergeShape::Atomic);
        let removed_below = has_below && self.run(value, intent, child, before, others);
        let is_empty = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
        // A declared field is removed with its whole content, such as values that the server defaulted.
        let is_whole = schema.declares(name) && (value.is_object() || value.is_array());
        if intent.is_none() && others.iter().all(|other| other.is_empty()) && (!has_below || is_empty || is_whole) {
            map.shift_remove(name);
            return true;
        }
        if removed_below && is_empty && self.emptied == Emptied::Null {
            *value = Value::Null;
        }
        removed_below
    }

    fn remove_items(
        &self,
        list: &mut Vec<Value>,
        intent: Option<&Value>,
        schema: MergeSchema<'_, Value>,
        before: &FieldSet,
        others: &[&FieldSet],
    ) -> bool {
        let live = Value::Array(std::mem::take(list));
        let shape = schema.shape(&live);
        if let Value::Array(items) = live {
            *list = items;
        }
        let wanted = intent.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut removed = false;
        for (item, before) in before.items() {
            let others: Vec<&FieldSet> = others.iter().filter_map(|other| other.item(item)).collect();
            match (item, &shape) {
                (ListItemKey::Keys(_), MergeShape::Keyed(keyed)) => {
                    let is_it = |known: &Value| keyed.key(known).as_ref() == Some(item);
                    let wanted = wanted.iter().find(|wanted| is_it(wanted));
                    match list.iter().position(is_it) {
                        Some(at) if wanted.is_none() && others.is_empty() => {
                            list.remove(at);
                            removed = true;
                        }
                        Some(at) => removed |= self.run(&mut list[at], wanted, keyed.items, before, &others),
                        None => {}
                    }
                }
                (ListItemKey::Value(text), _) => {
                    let is_it = |known: &Value| known.canonical_text() == *text;
                    if !wanted.iter().any(is_it) && others.is_empty() {
                        let length = list.len();
                        list.retain(|known| !is_it(known));
                        removed |= list.len() < length;
                    }
                }
                _ => {}
            }
        }
        removed
    }
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
    fn a_null_replaces_everything_but_an_object_with_fields() {
        let live =
            json!({"spec": {"object": {"a": 1}, "empty": {}, "text": "x", "plain": [1], "selector": {"x": "y"}}});
        let intent = json!({"spec": {"object": null, "empty": null, "text": null, "plain": null, "new": null}});
        let merged = merge(&live, &intent, &schema(), "gantry");
        let expected = json!({"object": {"a": 1}, "empty": null, "text": null, "plain": null,
            "selector": {"x": "y"}, "new": null});
        assert_eq!(merged["spec"], expected);
    }

    #[test]
    fn a_map_or_list_that_an_apply_empties_becomes_null() {
        let ours = json!({"f:spec": {"f:map": {"f:a": {}}, "f:tags": {"v:\"a\"": {}}, "f:gone": {"f:a": {}}}});
        let live = json!({"metadata": {"managedFields": [{"manager": "gantry", "operation": "Apply", "fieldsV1": ours}]},
            "spec": {"map": {"a": 1}, "tags": ["a"], "gone": {"a": 1}}});
        let merged = merge(&live, &json!({"spec": {"map": {}, "tags": []}}), &schema(), "gantry");
        assert_eq!(merged["spec"], json!({"map": null, "tags": null}));
    }

    #[test]
    fn a_declared_field_is_removed_with_what_the_server_defaulted() {
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
                "tags": ["b", "a"], "selector": {"z": "y"}, "plain": [3], "kept": true})
        );
    }

    #[test]
    fn a_field_that_the_manifest_no_longer_sets_is_removed_unless_another_manager_owns_it() {
        let entry =
            |manager: &str, fields: Value| json!({"manager": manager, "operation": "Apply", "fieldsV1": fields});
        let ours = json!({"f:spec": {"f:gone": {}, "f:shared": {}, "f:kept": {}, "f:map": {"f:a": {}},
            "f:ports": {"k:{\"port\":2,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
            "f:tags": {"v:\"a\"": {}}}});
        let others = json!({"f:spec": {"f:shared": {}, "f:tags": {"v:\"c\"": {}},
            "f:ports": {"k:{\"port\":3,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}});
        let live = json!({
            "metadata": {"managedFields": [entry("gantry", ours), entry("other", others)]},
            "spec": {"gone": 1, "shared": 1, "kept": 1, "map": {"a": "b"}, "foreign": 1,
                "ports": [{"port": 2, "protocol": "TCP"}, {"port": 3, "protocol": "TCP"}], "tags": ["a", "c"]}});
        let merged = merge(&live, &json!({"spec": {"kept": 2}}), &schema(), "gantry");
        assert_eq!(
            merged["spec"],
            json!({"shared": 1, "kept": 2, "foreign": 1, "ports": [{"port": 3, "protocol": "TCP"}], "tags": ["c"]})
        );
    }
}
