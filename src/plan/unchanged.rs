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

use std::borrow::Cow;

use base64::Engine;
use serde::Deserialize;
use serde_json::Value;

use super::built_in;
use crate::json::{Json, Map};
use crate::resource::{ObjectRef, RawObject};

/// What the comparison may know beside the two objects.
pub struct Facts<'a> {
    /// The field manager of this deploy.
    pub field_manager: &'a str,
    /// For a custom resource: the structural schema of its version, for defaults inside atomic lists and maps.
    pub schema: Option<&'a Json<'a>>,
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
    let is_secret = facts.built_in && object.kind == "Secret" && object.group().is_empty();
    let [desired, live] = [(desired, fold_desired as fn(&mut Value)), (live, fold_records)].map(|(raw, fold)| {
        if is_secret {
            let mut secret = raw.value();
            fold(&mut secret);
            return Cow::Owned(secret.to_string());
        }
        Cow::Borrowed(raw.json())
    });
    let (Ok(desired), Ok(live)) = (Json::parse_bounded(&desired), Json::parse_bounded(&live)) else { return false };
    let owned = entry.and_then(|index| record(&live, index));
    let walk = Walk { facts, is_crd: object.is_crd() };
    walk.granular(&desired, &live, owned, facts.schema, Level::Object)
}

/// `metadata.managedFields[index].fieldsV1`
fn record<'j>(live: &'j Json<'j>, index: usize) -> Option<&'j Json<'j>> {
    live.map()?.get("metadata")?.map()?.get("managedFields")?.list()?.get(index)?.map()?.get("fieldsV1")
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
fn fold_desired(secret: &mut Value) {
    if let Some(Value::Object(text)) = secret.as_object_mut().and_then(|map| map.shift_remove("stringData")) {
        let data = &mut secret["data"];
        if !data.is_object() {
            *data = Value::Object(serde_json::Map::new());
        }
        for (key, value) in text {
            let encoded = base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap_or_default());
            data[key] = Value::String(encoded);
        }
    }
}

/// The same for the records of a live Secret.
fn fold_records(secret: &mut Value) {
    let records = secret.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for record in records.into_iter().flatten() {
        if let Some(Value::Object(owned)) = record.get_mut("fieldsV1")
            && let Some(Value::Object(text)) = owned.shift_remove("f:stringData")
            && let Some(data) =
                owned.entry("f:data").or_insert_with(|| Value::Object(serde_json::Map::new())).as_object_mut()
        {
            data.extend(text);
        }
    }
}

/// How far down a walk is, as far as that matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
    Below,
}

impl Level {
    fn below(self, key: &str) -> Self {
        if self == Level::Object && key == "metadata" { Level::Metadata } else { Level::Below }
    }

    /// Whether a manager can own the member. The others are set by the request itself or by the server.
    fn is_ownable(self, key: &str) -> bool {
        match self {
            Level::Object => !matches!(key, "apiVersion" | "kind"),
            Level::Metadata => !matches!(
                key,
                "name" | "namespace" | "uid" | "resourceVersion" | "generation" | "creationTimestamp" | "managedFields"
            ),
            Level::Below => true,
        }
    }
}

struct Walk<'a> {
    facts: &'a Facts<'a>,
    is_crd: bool,
}

impl Walk<'_> {
    /// A node of which other managers may own other parts. `owned` is `None` where no record is kept.
    fn granular(
        &self,
        desired: &Json<'_>,
        live: &Json<'_>,
        owned: Option<&Json<'_>>,
        schema: Option<&Json<'_>>,
        level: Level,
    ) -> bool {
        let owned = owned.map(Json::map);
        let owned = match owned {
            // A leaf of the record: a scalar, or a list or map that is owned as a whole.
            Some(None) => return self.whole(desired, live, schema),
            Some(Some(children)) if children.is_empty() => return self.whole(desired, live, schema),
            Some(Some(children)) => Some(children),
            None => None,
        };
        match (desired, live) {
            (Json::Map(desired), Json::Map(live)) => self.map(desired, live, owned, schema, level),
            (Json::List(desired), Json::List(live)) => match owned {
                Some(owned) => self.list(desired, live, owned, schema),
                None => self.whole_list(desired, live, schema),
            },
            _ => self.whole(desired, live, schema),
        }
    }

    fn map(
        &self,
        desired: &Map<'_>,
        live: &Map<'_>,
        owned: Option<&Map<'_>>,
        schema: Option<&Json<'_>>,
        level: Level,
    ) -> bool {
        for (key, value) in desired.iter().filter(|(key, _)| level.is_ownable(key)) {
            let below = level.below(key);
            let record = match owned {
                Some(owned) => match owned.get(&format!("f:{key}")) {
                    Some(record) => Some(record),
                    // Written through the status subresource only: the server ignores it here.
                    None if level == Level::Object && key == "status" => continue,
                    None if self.dropped(key, value) && live.get(key).is_none() => continue,
                    None if below == Level::Metadata && says_nothing(value) => continue,
                    None => return false,
                },
                None => None,
            };
            let same = match live.get(key).filter(|live| **live != Json::Null) {
                Some(live) => self.granular(value, live, record, child(schema, key), below),
                None => self.dropped(key, value),
            };
            if !same {
                return false;
            }
        }
        // A field of ours that the manifest no longer has is about to be removed.
        let has = |key: &str| level.is_ownable(key) && desired.get(key).is_some();
        owned.is_none_or(|owned| owned.iter().filter_map(|(step, _)| step.strip_prefix("f:")).all(has))
    }

    fn list(&self, desired: &[Json<'_>], live: &[Json<'_>], owned: &Map<'_>, schema: Option<&Json<'_>>) -> bool {
        let items = member(schema, "items");
        let mut seen = 0;
        for item in desired {
            let found = owned.iter().find_map(|(record, children)| {
                if let Some(value) = record.strip_prefix("v:") {
                    let value = Json::parse(value).ok()?;
                    return (value == *item && live.contains(item)).then_some(true);
                }
                let keys = Json::parse(record.strip_prefix("k:")?).ok()?;
                let keys = keys.map()?;
                // A key that the manifest leaves out was defaulted (`protocol: TCP` of a port).
                let is_item = keys.iter().all(|(key, value)| member(Some(item), key).is_none_or(|own| own == value));
                if !is_item {
                    return None;
                }
                let is_live = |live: &&Json<'_>| keys.iter().all(|(k, value)| member(Some(live), k) == Some(value));
                let live = live.iter().find(is_live)?;
                let children = without_defaulted_keys(children, item, keys);
                Some(self.granular(item, live, Some(children.as_ref()), items, Level::Below))
            });
            match found {
                Some(true) => seen += 1,
                _ => return false,
            }
        }
        seen == owned.iter().filter(|(step, _)| *step != ".").count()
    }

    /// A value that belongs to one manager as a whole: equal up to what the server defaults or normalises.
    fn whole(&self, desired: &Json<'_>, live: &Json<'_>, schema: Option<&Json<'_>>) -> bool {
        match (desired, live) {
            (Json::Map(desired), Json::Map(live)) => {
                let wanted = desired.iter().all(|(key, value)| match live.get(key) {
                    Some(Json::Null) | None => self.dropped(key, value),
                    Some(live) => self.whole(value, live, child(schema, key)),
                });
                wanted
                    && live
                        .iter()
                        .filter(|(key, _)| desired.get(key).is_none())
                        .all(|(key, value)| self.is_default(key, value, child(schema, key)))
            }
            (Json::List(desired), Json::List(live)) => self.whole_list(desired, live, schema),
            (a, b) if a == b => true,
            (Json::Int(_) | Json::Float(_), Json::Int(_) | Json::Float(_)) => {
                built_in::number(desired) == built_in::number(live)
            }
            (a, b) => self.facts.built_in && built_in::same_quantity(a, b),
        }
    }

    fn whole_list(&self, desired: &[Json<'_>], live: &[Json<'_>], schema: Option<&Json<'_>>) -> bool {
        let items = member(schema, "items");
        desired.len() == live.len() && desired.iter().zip(live).all(|(a, b)| self.whole(a, b, items))
    }

    /// Whether the server keeps no trace of such a value: null everywhere, zero values in its own types.
    fn dropped(&self, key: &str, value: &Json<'_>) -> bool {
        match value {
            Json::Null => true,
            _ if !self.facts.built_in => false,
            _ if self.is_crd => built_in::is_dropped_from_crd(key, value),
            Json::Bool(value) => !value,
            Json::Int(number) => *number == 0,
            Json::Float(number) => *number == 0.0,
            Json::Text(text) => text.is_empty(),
            Json::List(items) => items.is_empty(),
            Json::Map(map) => map.iter().all(|(key, value)| self.dropped(key, value)),
        }
    }

    fn is_default(&self, key: &str, live: &Json<'_>, schema: Option<&Json<'_>>) -> bool {
        if self.facts.built_in {
            return built_in::is_default(key, live);
        }
        schema.is_some_and(|schema| is_what_is_defaulted(schema, live))
    }
}

fn member<'j>(node: Option<&'j Json<'_>>, key: &str) -> Option<&'j Json<'j>> {
    node?.map()?.get(key)
}

fn child<'s>(schema: Option<&'s Json<'_>>, key: &str) -> Option<&'s Json<'s>> {
    member(member(schema, "properties"), key).or_else(|| member(schema, "additionalProperties"))
}

/// Metadata of which a manager owns nothing.
fn says_nothing(metadata: &Json<'_>) -> bool {
    metadata.map().is_some_and(|metadata| !metadata.iter().any(|(key, _)| Level::Metadata.is_ownable(key)))
}

/// Whether this is what the server makes of an absent value under this schema: its default, and the defaults of the
/// properties that the default leaves out.
fn is_what_is_defaulted(schema: &Json<'_>, live: &Json<'_>) -> bool {
    let Some(default) = member(Some(schema), "default") else { return false };
    let (Json::Map(default), Json::Map(live)) = (default, live) else { return default == live };
    let properties = member(Some(schema), "properties").and_then(Json::map);
    let added = |key| properties.and_then(|properties| properties.get(key)).filter(|_| default.get(key).is_none());
    let keeps_all = default.iter().all(|(key, value)| live.get(key) == Some(value));
    let adds_no_other = live
        .iter()
        .filter(|(key, _)| default.get(key).is_none())
        .all(|(key, value)| added(key).is_some_and(|schema| is_what_is_defaulted(schema, value)));
    let adds_all = properties.into_iter().flat_map(Map::iter).all(|(key, schema)| {
        default.get(key).is_some() || member(Some(schema), "default").is_none() || live.get(key).is_some()
    });
    keeps_all && adds_no_other && adds_all
}

/// The record of a list item names its keys, also the one that the server defaulted and the manifest leaves out.
fn without_defaulted_keys<'j>(children: &'j Json<'j>, item: &Json<'_>, keys: &Map<'_>) -> Cow<'j, Json<'j>> {
    let is_defaulted = |key: &str| keys.get(key).is_some() && member(Some(item), key).is_none();
    match children {
        Json::Map(map) if keys.iter().any(|(key, _)| is_defaulted(key)) => {
            Cow::Owned(Json::Map(map.filtered(|step| !step.strip_prefix("f:").is_some_and(is_defaulted))))
        }
        children => Cow::Borrowed(children),
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
        let schema = r#"{"properties": {"spec": {"properties": {"routes": {"items": {"properties": {
            "port": {"default": 80}}}}}}}}"#;
        let schema = Json::parse(schema).unwrap();
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
    fn a_zero_that_means_something_in_a_crd_is_a_change() {
        let crd = ObjectRef {
            api_version: "apiextensions.k8s.io/v1".into(),
            kind: "CustomResourceDefinition".into(),
            namespace: None,
            name: "x".into(),
        };
        let live = json!({"metadata": {"managedFields": [{"manager": "gantry", "operation": "Apply",
            "apiVersion": "apiextensions.k8s.io/v1", "fieldsV1": {"f:spec": {"f:versions": {}}}}]},
            "spec": {"versions": [{"name": "v1", "schema": {"type": "object"}}]}});
        let is_unchanged = |version: Value| {
            let desired = RawObject::from_value(&json!({"spec": {"versions": [version]}}));
            is_unchanged(&crd, &desired, &RawObject::from_value(&live), &BUILT_IN)
        };
        assert!(is_unchanged(json!({"name": "v1", "deprecated": false, "schema":
            {"type": "object", "nullable": false, "description": "", "required": [], "properties": {}}})));
        for version in [
            json!({"name": "v1", "schema": {"type": "object"}, "subresources": {"status": {}}}),
            json!({"name": "v1", "schema": {"type": "object"}, "subresources": {}}),
            json!({"name": "v1", "schema": {"type": "object", "minimum": 0}}),
            json!({"name": "v1", "schema": {"type": "object", "default": false}}),
            json!({"name": "v1", "schema": {"type": "object", "additionalProperties": false}}),
            json!({"name": "v1", "schema": {"type": "object", "additionalProperties": {}}}),
        ] {
            assert!(!is_unchanged(version.clone()), "{version}");
        }
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
