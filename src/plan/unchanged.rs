//! Whether applying a manifest again would change anything, decided without asking the server.
//!
//! Server-side apply records in `metadata.managedFields` which fields each field manager set. An object is unchanged
//! when our manager's record names exactly the fields of the manifest and the live values are the manifest's. Values
//! that the server added (defaults) belong to no record of ours and do not matter. Inside an atomic list or map the
//! record names only the whole, so there a live key that the manifest lacks counts as a change unless it is a known
//! default: a needless apply is a no-op for the server, a skipped one would be silent.
//!
//! Source: <https://kubernetes.io/docs/reference/using-api/server-side-apply/>, and the `fieldsV1` format of
//! `sigs.k8s.io/structured-merge-diff` (`f:` a field, `k:` a list item by its keys, `v:` a set member).

use base64::Engine;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::resource::{ObjectRef, RawObject};

/// What the comparison may know beside the two objects.
pub struct Facts<'a> {
    /// The field manager of this deploy.
    pub field_manager: &'a str,
    /// For a custom resource: the structural schema of its version, for defaults inside atomic lists and maps.
    pub schema: Option<&'a Value>,
    /// A kind that is compiled into the API server, whose Go types drop zero values and normalise quantities.
    pub built_in: bool,
}

/// Whether a deploy of `desired` over `live` would leave the object as it is.
pub fn is_unchanged(object: &ObjectRef, desired: &RawObject, live: &RawObject, facts: &Facts<'_>) -> bool {
    // Most objects that change were last written by somebody else: that needs no tree of the whole object.
    let entry = match record_of(live, object, facts.field_manager) {
        Record::Ours(index) => Some(index),
        Record::Others => return false,
        // A folder of manifests may keep no such record: the values alone decide.
        Record::None => None,
    };
    let live = live.value();
    let owned = entry.and_then(|index| live.pointer(&format!("/metadata/managedFields/{index}/fieldsV1")));
    let mut desired = desired.value();
    for key in ["apiVersion", "kind"] {
        desired.as_object_mut().map(|map| map.shift_remove(key));
    }
    if let Some(metadata) = desired.get_mut("metadata").and_then(Value::as_object_mut) {
        // Set by the request itself or by the server, so never part of what a manager owns.
        for key in ["name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
            metadata.shift_remove(key);
        }
    }
    let mut owned = owned.cloned();
    if facts.built_in && object.kind == "Secret" && object.group().is_empty() {
        fold_string_data(&mut desired, owned.as_mut());
    }
    let walk = Walk { facts };
    walk.granular(&desired, &live, owned.as_ref(), facts.schema, true)
}

enum Record {
    None,
    Others,
    /// The index of our entry in `metadata.managedFields`.
    Ours(usize),
}

fn record_of(live: &RawObject, object: &ObjectRef, field_manager: &str) -> Record {
    #[derive(Deserialize)]
    struct Head {
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        #[serde(default)]
        managed_fields: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    #[derive(Default)]
    struct Entry {
        manager: String,
        operation: String,
        api_version: String,
        subresource: String,
    }
    let entries = serde_json::from_str(live.json()).map_or_else(|_| Vec::new(), |h: Head| h.metadata.managed_fields);
    let ours = |entry: &Entry| {
        entry.manager == field_manager
            && entry.operation == "Apply"
            && entry.api_version == object.api_version
            && entry.subresource.is_empty()
    };
    match entries.iter().position(ours) {
        Some(index) => Record::Ours(index),
        None if entries.is_empty() => Record::None,
        None => Record::Others,
    }
}

/// The server stores a Secret's `stringData` as base64 in `data`, and keeps the record under `stringData`.
fn fold_string_data(desired: &mut Value, owned: Option<&mut Value>) {
    if let Some(Value::Object(text)) = desired.as_object_mut().and_then(|map| map.shift_remove("stringData")) {
        let data = &mut desired["data"];
        if !data.is_object() {
            *data = Value::Object(Map::new());
        }
        for (key, value) in text {
            let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
            data[key] = Value::String(encoded);
        }
    }
    if let Some(Value::Object(owned)) = owned
        && let Some(Value::Object(text)) = owned.shift_remove("f:stringData")
        && let Some(data) = owned.entry("f:data").or_insert_with(|| Value::Object(Map::new())).as_object_mut()
    {
        data.extend(text);
    }
}

struct Walk<'a> {
    facts: &'a Facts<'a>,
}

impl Walk<'_> {
    /// A node of which other managers may own other parts. `owned` is `None` where no record is kept.
    fn granular(
        &self,
        desired: &Value,
        live: &Value,
        owned: Option<&Value>,
        schema: Option<&Value>,
        root: bool,
    ) -> bool {
        let owned = owned.map(|owned| owned.as_object());
        let owned = match owned {
            // A leaf of the record: a scalar, or a list or map that is owned as a whole.
            Some(None) => return self.whole(desired, live, schema),
            Some(Some(children)) if children.is_empty() => return self.whole(desired, live, schema),
            Some(Some(children)) => Some(children),
            None => None,
        };
        match (desired, live) {
            (Value::Object(desired), Value::Object(live)) => self.map(desired, live, owned, schema, root),
            (Value::Array(desired), Value::Array(live)) => match owned {
                Some(owned) => self.list(desired, live, owned, schema),
                None => self.whole_list(desired, live, schema),
            },
            _ => self.whole(desired, live, schema),
        }
    }

    fn map(
        &self,
        desired: &Map<String, Value>,
        live: &Map<String, Value>,
        owned: Option<&Map<String, Value>>,
        schema: Option<&Value>,
        root: bool,
    ) -> bool {
        for (key, value) in desired {
            let record = match owned {
                Some(owned) => match owned.get(&format!("f:{key}")) {
                    Some(record) => Some(record),
                    // Written through the status subresource only: the server ignores it here.
                    None if root && key == "status" => continue,
                    None if self.dropped(value) && !live.contains_key(key) => continue,
                    None if value.as_object().is_some_and(Map::is_empty) && root && key == "metadata" => continue,
                    None => return false,
                },
                None => None,
            };
            let same = match live.get(key) {
                Some(live) => self.granular(value, live, record, self.child(schema, key), false),
                None => self.dropped(value),
            };
            if !same {
                return false;
            }
        }
        // A field of ours that the manifest no longer has is about to be removed.
        owned.is_none_or(|owned| {
            owned.keys().filter_map(|key| key.strip_prefix("f:")).all(|key| desired.contains_key(key))
        })
    }

    fn list(&self, desired: &[Value], live: &[Value], owned: &Map<String, Value>, schema: Option<&Value>) -> bool {
        let items = schema.and_then(|schema| schema.get("items"));
        let mut seen = 0;
        for item in desired {
            let found = owned.iter().find_map(|(record, children)| {
                if let Some(value) = record.strip_prefix("v:") {
                    let value: Value = serde_json::from_str(value).ok()?;
                    return (value == *item && live.contains(item)).then_some(true);
                }
                let keys: Map<String, Value> = serde_json::from_str(record.strip_prefix("k:")?).ok()?;
                // A key that the manifest leaves out was defaulted (`protocol: TCP` of a port).
                let is_item = keys.iter().all(|(key, value)| item.get(key).is_none_or(|own| own == value));
                if !is_item {
                    return None;
                }
                let live = live.iter().find(|live| keys.iter().all(|(key, value)| live.get(key) == Some(value)))?;
                let children = without_defaulted_keys(children, item, &keys);
                Some(self.granular(item, live, Some(&children), items, false))
            });
            match found {
                Some(true) => seen += 1,
                _ => return false,
            }
        }
        seen == owned.keys().filter(|key| *key != ".").count()
    }

    /// A value that belongs to one manager as a whole: equal up to what the server defaults or normalises.
    fn whole(&self, desired: &Value, live: &Value, schema: Option<&Value>) -> bool {
        match (desired, live) {
            (Value::Object(desired), Value::Object(live)) => {
                let wanted = desired.iter().all(|(key, value)| match live.get(key) {
                    Some(live) => self.whole(value, live, self.child(schema, key)),
                    None => self.dropped(value),
                });
                wanted
                    && live
                        .iter()
                        .filter(|(key, _)| !desired.contains_key(*key))
                        .all(|(key, value)| self.is_default(key, value, self.child(schema, key)))
            }
            (Value::Array(desired), Value::Array(live)) => self.whole_list(desired, live, schema),
            (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
            (a, b) if a == b => true,
            (a, b) => self.facts.built_in && same_quantity(a, b),
        }
    }

    fn whole_list(&self, desired: &[Value], live: &[Value], schema: Option<&Value>) -> bool {
        let items = schema.and_then(|schema| schema.get("items"));
        desired.len() == live.len() && desired.iter().zip(live).all(|(a, b)| self.whole(a, b, items))
    }

    fn child<'s>(&self, schema: Option<&'s Value>, key: &str) -> Option<&'s Value> {
        let schema = schema?;
        schema.get("properties").and_then(|p| p.get(key)).or_else(|| schema.get("additionalProperties"))
    }

    /// Whether the server keeps no trace of such a value: null everywhere, zero values in its own types.
    fn dropped(&self, value: &Value) -> bool {
        match value {
            Value::Null => true,
            _ if !self.facts.built_in => false,
            Value::Bool(value) => !value,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.values().all(|value| self.dropped(value)),
        }
    }

    fn is_default(&self, key: &str, live: &Value, schema: Option<&Value>) -> bool {
        if self.facts.built_in {
            return BUILT_IN_DEFAULTS.iter().any(|(name, text)| *name == key && literal(text) == *live);
        }
        schema.is_some_and(|schema| defaulted(schema).as_ref() == Some(live))
    }
}

/// What the server makes of an absent value under this schema.
fn defaulted(schema: &Value) -> Option<Value> {
    let mut value = schema.get("default")?.clone();
    if let (Value::Object(map), Some(properties)) = (&mut value, schema.get("properties").and_then(Value::as_object)) {
        for (key, schema) in properties {
            if !map.contains_key(key)
                && let Some(default) = defaulted(schema)
            {
                map.insert(key.clone(), default);
            }
        }
    }
    Some(value)
}

/// The record of a list item names its keys, also the one that the server defaulted and the manifest leaves out.
fn without_defaulted_keys(children: &Value, item: &Value, keys: &Map<String, Value>) -> Value {
    let mut children = children.clone();
    if let Some(map) = children.as_object_mut() {
        for key in keys.keys().filter(|key| item.get(*key).is_none()) {
            map.shift_remove(&format!("f:{key}"));
        }
    }
    children
}

/// Defaults that the API server adds inside atomic lists and maps of its own kinds. To leave such a key out and to
/// write its default mean the same, so taking one for the other is never wrong.
const BUILT_IN_DEFAULTS: &[(&str, &str)] = &[
    ("apiGroup", "\"rbac.authorization.k8s.io\""), // RoleBinding: subjects, roleRef
    ("apiGroup", "\"\""),
    ("apiVersion", "\"v1\""), // fieldRef, volumeClaimTemplates
    ("conversion", "{\"strategy\":\"None\"}"),
    ("defaultMode", "420"),                // projected volumes
    ("divisor", "\"0\""),                  // resourceFieldRef
    ("expirationSeconds", "3600"),         // projected service account tokens
    ("kind", "\"PersistentVolumeClaim\""), // volumeClaimTemplates
    ("protocol", "\"TCP\""),               // NetworkPolicy: ports
    ("scope", "\"*\""),                    // webhook rules
    ("status", "{\"phase\":\"Pending\"}"), // volumeClaimTemplates
    ("volumeMode", "\"Filesystem\""),      // volumeClaimTemplates
];

fn literal(text: &str) -> Value {
    serde_json::from_str(text).expect("the table holds JSON")
}

/// Whether two scalars are the same Kubernetes quantity (`1000m` and `1`, `0.5` and `500m`), as the server rewrites
/// them in its own types. Source: `k8s.io/apimachinery/pkg/api/resource`.
fn same_quantity(a: &Value, b: &Value) -> bool {
    fn parse(value: &Value) -> Option<f64> {
        const SUFFIXES: &[(&str, f64)] = &[
            ("Ki", 1024.0),
            ("Mi", 1_048_576.0),
            ("Gi", 1_073_741_824.0),
            ("Ti", 1_099_511_627_776.0),
            ("Pi", 1_125_899_906_842_624.0),
            ("Ei", 1_152_921_504_606_846_976.0),
            ("n", 1e-9),
            ("u", 1e-6),
            ("m", 1e-3),
            ("k", 1e3),
            ("M", 1e6),
            ("G", 1e9),
            ("T", 1e12),
            ("P", 1e15),
            ("E", 1e18),
        ];
        let text = match value {
            Value::String(text) => text.as_str(),
            Value::Number(number) => return number.as_f64(),
            _ => return None,
        };
        if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
            return None;
        }
        let (digits, scale) = SUFFIXES
            .iter()
            .find_map(|(suffix, scale)| text.strip_suffix(suffix).map(|digits| (digits, *scale)))
            .unwrap_or((text, 1.0));
        digits.parse::<f64>().ok().map(|number| number * scale)
    }
    match (parse(a), parse(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= f64::EPSILON * a.abs().max(b.abs()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str) -> ObjectRef {
        ObjectRef { api_version: "v1".into(), kind: kind.into(), namespace: None, name: "x".into() }
    }

    fn unchanged(kind: &str, desired: &Value, live: &Value, facts: &Facts<'_>) -> bool {
        is_unchanged(&object(kind), &RawObject::from_value(desired), &RawObject::from_value(live), facts)
    }

    const BUILT_IN: Facts<'static> = Facts { field_manager: "gantry", schema: None, built_in: true };

    fn live(fields: &Value, spec: &Value) -> Value {
        json!({"metadata": {"name": "x", "managedFields": [
            {"manager": "gantry", "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields}
        ]}, "spec": spec})
    }

    #[test]
    fn server_defaults_beside_owned_fields_do_not_matter() {
        let record = json!({"f:spec": {"f:ports": {
            ".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}});
        let live = live(&record, &json!({"ports": [{"port": 80, "protocol": "TCP"}], "type": "ClusterIP"}));
        assert!(unchanged("Service", &json!({"spec": {"ports": [{"port": 80}]}}), &live, &BUILT_IN));
        assert!(!unchanged("Service", &json!({"spec": {"ports": [{"port": 81}]}}), &live, &BUILT_IN));
        assert!(!unchanged("Service", &json!({"spec": {"ports": []}}), &live, &BUILT_IN));
    }

    #[test]
    fn a_field_that_the_manifest_no_longer_has_is_a_change() {
        let live = live(&json!({"f:spec": {"f:a": {}, "f:b": {}}}), &json!({"a": 1, "b": 2}));
        assert!(unchanged("X", &json!({"spec": {"a": 1, "b": 2}}), &live, &BUILT_IN));
        assert!(!unchanged("X", &json!({"spec": {"a": 1}}), &live, &BUILT_IN));
    }

    #[test]
    fn a_field_that_someone_else_took_over_is_a_change() {
        let live = live(&json!({"f:spec": {"f:a": {}}}), &json!({"a": 1, "b": 2}));
        assert!(!unchanged("X", &json!({"spec": {"a": 1, "b": 2}}), &live, &BUILT_IN));
    }

    #[test]
    fn inside_an_atomic_map_an_extra_key_is_a_change_unless_it_is_a_default() {
        let record = json!({"f:spec": {"f:selector": {}}});
        let with_extra = live(&record, &json!({"selector": {"a": "1", "b": "2"}}));
        assert!(!unchanged("X", &json!({"spec": {"selector": {"a": "1"}}}), &with_extra, &BUILT_IN));
        let with_default = live(&record, &json!({"selector": {"a": "1", "protocol": "TCP"}}));
        assert!(unchanged("X", &json!({"spec": {"selector": {"a": "1"}}}), &with_default, &BUILT_IN));
    }

    #[test]
    fn a_custom_resource_takes_its_defaults_from_the_schema() {
        let schema = json!({"properties": {"spec": {"properties": {"routes": {"items": {"properties": {
            "port": {"default": 80}}}}}}}});
        let facts = Facts { schema: Some(&schema), built_in: false, ..BUILT_IN };
        let live = live(&json!({"f:spec": {"f:routes": {}}}), &json!({"routes": [{"host": "a", "port": 80}]}));
        let desired = json!({"spec": {"routes": [{"host": "a"}]}});
        assert!(unchanged("X", &desired, &live, &facts));
        assert!(!unchanged("X", &desired, &live, &Facts { schema: None, ..facts }));
    }

    #[test]
    fn zero_values_are_dropped_by_built_in_kinds_only() {
        let live = live(&json!({"f:spec": {"f:a": {}}}), &json!({"a": 1}));
        let desired = json!({"spec": {"a": 1, "b": false, "c": "", "d": {}}});
        assert!(unchanged("X", &desired, &live, &BUILT_IN));
        assert!(!unchanged("X", &desired, &live, &Facts { built_in: false, ..BUILT_IN }));
    }

    #[test]
    fn quantities_are_compared_by_value() {
        let live = live(&json!({"f:spec": {"f:cpu": {}}}), &json!({"cpu": "1"}));
        assert!(unchanged("X", &json!({"spec": {"cpu": "1000m"}}), &live, &BUILT_IN));
        assert!(unchanged("X", &json!({"spec": {"cpu": 1}}), &live, &BUILT_IN));
        assert!(!unchanged("X", &json!({"spec": {"cpu": "100m"}}), &live, &BUILT_IN));
        assert!(!unchanged("X", &json!({"spec": {"cpu": "x1"}}), &live, &BUILT_IN));
    }

    #[test]
    fn a_secret_in_plain_text_equals_its_stored_form() {
        let live = json!({"metadata": {"managedFields": [{"manager": "gantry", "operation": "Apply",
            "apiVersion": "v1", "fieldsV1": {"f:stringData": {"f:p": {}}, "f:data": {"f:q": {}}}}]},
            "data": {"p": "aGk=", "q": "eA=="}});
        assert!(unchanged("Secret", &json!({"stringData": {"p": "hi"}, "data": {"q": "eA=="}}), &live, &BUILT_IN));
        assert!(!unchanged("Secret", &json!({"stringData": {"p": "ho"}, "data": {"q": "eA=="}}), &live, &BUILT_IN));
    }

    #[test]
    fn without_any_record_the_values_decide_and_with_anothers_it_is_an_update() {
        let plain = json!({"metadata": {"name": "x"}, "spec": {"a": 1, "b": 2}});
        assert!(unchanged("X", &json!({"spec": {"a": 1}}), &plain, &BUILT_IN));
        let others = json!({"metadata": {"managedFields": [{"manager": "kubectl", "operation": "Apply",
            "apiVersion": "v1", "fieldsV1": {"f:spec": {"f:a": {}}}}]}, "spec": {"a": 1}});
        assert!(!unchanged("X", &json!({"spec": {"a": 1}}), &others, &BUILT_IN));
    }
}
