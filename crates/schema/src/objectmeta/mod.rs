//! Metadata: of the object itself and of embedded resources.
//!
//! The server decodes metadata into a fixed structure and encodes it again: malformed fields are errors, unknown and
//! empty fields are dropped, and timestamps are converted to UTC.

mod check;
pub mod fields;

use serde_json::{Map, Value, json};

pub use check::{check_embedded, check_root};
use fields::{METADATA, MetadataField, MetadataFieldType};

use super::error::{FieldError, FieldErrorKind};
use super::node::SchemaNode;
use super::path::LinkedPath;
use super::prune::PrunedField;
use gantry_k8s_cel::golang::Timestamp;
use gantry_k8s_cel::gotext;

/// How to handle a metadata field that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedFieldPolicy {
    /// The request is rejected.
    Refused,
    /// The field is dropped when the object is read from storage.
    Dropped,
}

/// The state of a walk through an object.
struct Coercion {
    malformed: MalformedFieldPolicy,
    dropped: Vec<PrunedField>,
}

type Coerced<T = ()> = Result<T, Box<FieldError>>;

/// Normalizes the metadata of embedded resources and, with `own`, of the object itself.
///
/// Returns the dropped fields. An error means that the server cannot decode the object at all.
pub fn coerce(
    object: &mut Value,
    node: &SchemaNode,
    own: bool,
    malformed: MalformedFieldPolicy,
) -> Coerced<Vec<PrunedField>> {
    let mut coercion = Coercion { malformed, dropped: Vec::new() };
    if let Some(map) = object.as_object_mut().filter(|_| own) {
        coercion.resource(map, &LinkedPath::Root)?;
        if malformed == MalformedFieldPolicy::Refused {
            drop_repeated_owners(map);
        }
    }
    coercion.embedded(object, node, &LinkedPath::Root)?;
    Ok(coercion.dropped)
}

/// Removes repeated owners, as the server does for a request.
fn drop_repeated_owners(map: &mut Map<String, Value>) {
    if let Some(owners) = map.get_mut("metadata").and_then(|metadata| metadata.get_mut("ownerReferences"))
        && let Some(owners) = owners.as_array_mut()
    {
        let mut at = 0;
        while at < owners.len() {
            if owners[..at].contains(&owners[at]) {
                owners.remove(at);
            } else {
                at += 1;
            }
        }
    }
}

/// [`coerce`] for a value that is not the whole object, such as a default.
pub fn coerce_part(value: &mut Value, node: &SchemaNode) {
    // The server rejects a CRD whose defaults do not decode.
    let _ = coerce(value, node, false, MalformedFieldPolicy::Dropped);
}

impl Coercion {
    fn embedded(&mut self, value: &mut Value, node: &SchemaNode, path: &LinkedPath) -> Coerced {
        if !node.has_embedded {
            return Ok(());
        }
        match value {
            Value::Object(map) => {
                if node.embedded {
                    self.resource(map, path)?;
                }
                for (key, value) in map.iter_mut() {
                    if let Some(child) = node.properties.get(key) {
                        self.embedded(value, child, &LinkedPath::Name(path, key))?;
                    } else if let Some(entry) = node.additional.schema() {
                        self.embedded(value, entry, &LinkedPath::Key(path, key))?;
                    }
                }
            }
            Value::Array(items) => {
                if let Some(item_node) = node.items.as_deref() {
                    for (at, item) in items.iter_mut().enumerate() {
                        self.embedded(item, item_node, &LinkedPath::Index(path, at))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn resource(&mut self, map: &mut Map<String, Value>, path: &LinkedPath) -> Coerced {
        for key in ["apiVersion", "kind"] {
            let Some(value) = map.get(key).filter(|value| !value.is_string()) else { continue };
            let path = LinkedPath::Name(path, key);
            if self.malformed == MalformedFieldPolicy::Refused {
                return Err(Box::new(invalid(&path, value.clone(), "must be a string")));
            }
            if let Some(value) = map.shift_remove(key) {
                self.dropped.push(PrunedField::new(&path, value));
            }
        }
        let Some(metadata) = map.get_mut("metadata") else { return Ok(()) };
        if metadata.is_null() {
            *metadata = json!({});
        }
        self.fields(metadata, METADATA, &LinkedPath::Name(path, "metadata"), self.malformed)
    }

    fn fields(
        &mut self,
        value: &mut Value,
        fields: &[MetadataField],
        path: &LinkedPath,
        malformed: MalformedFieldPolicy,
    ) -> Coerced {
        let Value::Object(map) = value else {
            return Err(Box::new(invalid(path, value.clone(), "must be an object")));
        };
        let mut failure = None;
        map.retain(|key, value| {
            let path = LinkedPath::Name(path, key);
            let Some(field) = fields.iter().find(|field| field.name == key) else {
                self.dropped.push(PrunedField::new(&path, value.take()));
                return false;
            };
            let dropped = self.dropped.len();
            match self.field(value, field.field_type, &path) {
                Ok(keep) => keep,
                Err(_) if malformed == MalformedFieldPolicy::Dropped => {
                    // The whole field is dropped, which includes what was dropped inside it.
                    self.dropped.truncate(dropped);
                    self.dropped.push(PrunedField::new(&path, value.take()));
                    false
                }
                Err(error) => {
                    failure.get_or_insert(error);
                    true
                }
            }
        });
        for field in fields.iter().filter(|field| matches!(field.field_type, MetadataFieldType::RequiredText)) {
            if !map.contains_key(field.name) {
                map.insert(field.name.to_owned(), json!(""));
            }
        }
        failure.map_or(Ok(()), Err)
    }

    /// Normalizes a field and returns whether it is kept: an empty field is equivalent to a missing one.
    fn field(&mut self, value: &mut Value, field_type: MetadataFieldType, path: &LinkedPath) -> Coerced<bool> {
        if value.is_null() {
            return Ok(false);
        }
        let wrong =
            |value: &Value, wanted: &str| Err(Box::new(invalid(path, value.clone(), &format!("must be {wanted}"))));
        match (field_type, &mut *value) {
            (MetadataFieldType::Opaque, _) => Ok(true),
            (MetadataFieldType::Text, Value::String(text)) => Ok(!text.is_empty()),
            (MetadataFieldType::RequiredText, Value::String(_)) => Ok(true),
            (MetadataFieldType::FlagPointer, Value::Bool(_)) => Ok(true),
            (MetadataFieldType::Integer | MetadataFieldType::IntPointer, Value::Number(_)) => {
                // The server encodes it as JSON once more: 1.0 becomes 1.
                let Ok(integer) = gotext::json(value).parse::<i64>() else { return wrong(value, "an integer") };
                *value = json!(integer);
                Ok(integer != 0 || matches!(field_type, MetadataFieldType::IntPointer))
            }
            (MetadataFieldType::Time | MetadataFieldType::TimePointer, Value::String(text)) => {
                match Timestamp::from_rfc3339(text).map(Timestamp::to_the_second) {
                    // Conversion to UTC can lead to a year that cannot be written.
                    Some(time) if (0..=9999).contains(&time.parts(0).year) => {
                        *text = time.to_string();
                        Ok(!time.is_zero())
                    }
                    _ => wrong(value, "an RFC 3339 time"),
                }
            }
            (MetadataFieldType::TextSet, Value::Array(items)) => {
                for item in items.iter_mut() {
                    match item {
                        Value::String(_) => {}
                        Value::Null => *item = json!(""),
                        _ => return wrong(value, "a list of strings"),
                    }
                }
                Ok(!items.is_empty())
            }
            (MetadataFieldType::TextMap, Value::Object(entries)) => {
                for entry in entries.values_mut() {
                    match entry {
                        Value::String(_) => {}
                        Value::Null => *entry = json!(""),
                        _ => return wrong(value, "a map of strings"),
                    }
                }
                Ok(!entries.is_empty())
            }
            (MetadataFieldType::Structs { fields, .. }, Value::Array(items)) => {
                for (at, item) in items.iter_mut().enumerate() {
                    if item.is_null() {
                        *item = json!({});
                    }
                    self.fields(item, fields, &LinkedPath::Index(path, at), MalformedFieldPolicy::Refused)?;
                }
                Ok(!items.is_empty())
            }
            (MetadataFieldType::Text | MetadataFieldType::RequiredText, value) => wrong(value, "a string"),
            (MetadataFieldType::FlagPointer, value) => wrong(value, "true or false"),
            (MetadataFieldType::Integer | MetadataFieldType::IntPointer, value) => wrong(value, "an integer"),
            (MetadataFieldType::Time | MetadataFieldType::TimePointer, value) => wrong(value, "an RFC 3339 time"),
            (MetadataFieldType::TextSet, value) => wrong(value, "a list of strings"),
            (MetadataFieldType::TextMap, value) => wrong(value, "a map of strings"),
            (MetadataFieldType::Structs { .. }, value) => wrong(value, "a list"),
        }
    }
}

fn invalid(path: &LinkedPath, value: Value, detail: &str) -> FieldError {
    FieldError::object_meta(path, FieldErrorKind::Invalid, Some(value), detail.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use super::*;
    use gantry_k8s_cel::KubernetesRelease;

    fn schema() -> Schema {
        let pod = json!({"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true});
        Schema::compile(&json!({"type": "object", "properties": {"pod": pod}})).expect("a schema")
    }

    fn with(metadata: Value) -> Value {
        json!({"metadata": {"name": "x"}, "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}})
    }

    /// Each result comes from a real server.
    #[test]
    fn metadata_is_read_and_written_out_again() {
        for (given, made) in [
            (
                json!({"generation": 1.0, "deletionGracePeriodSeconds": 0}),
                json!({"generation": 1, "deletionGracePeriodSeconds": 0}),
            ),
            (json!({"generation": 0, "uid": "", "labels": {}, "finalizers": []}), json!({})),
            (
                json!({"creationTimestamp": "2024-01-01T00:00:00.5+01:00"}),
                json!({"creationTimestamp": "2023-12-31T23:00:00Z"}),
            ),
            (
                json!({"creationTimestamp": "2024-01-01T1:02:03,5Z"}),
                json!({"creationTimestamp": "2024-01-01T01:02:03Z"}),
            ),
            (json!({"deletionTimestamp": "0001-01-01T00:00:00.5Z"}), json!({})),
            (
                json!({"creationTimestamp": "2024-01-01T00:00:00+01:60"}),
                json!({"creationTimestamp": "2023-12-31T22:00:00Z"}),
            ),
            (json!({"annotations": {"İ/a": ""}}), json!({"annotations": {"İ/a": ""}})),
            (json!({"labels": {"a": null}, "zzz": 1}), json!({"labels": {"a": ""}})),
            (
                json!({"managedFields": [{"operation": "Apply", "time": "2024-01-01T00:00:00+02:00", "z": 1}]}),
                json!({"managedFields": [{"operation": "Apply", "time": "2023-12-31T22:00:00Z"}]}),
            ),
        ] {
            let mut object = with(given.clone());
            assert!(schema().process(&mut object, None).outcome.is_accepted(), "{given}");
            assert_eq!(object["pod"]["metadata"], made, "{given}");
        }
        for given in [
            json!({"generation": 1.5}),
            json!({"creationTimestamp": "2024-01-01t01:02:03z"}),
            json!({"creationTimestamp": "9999-12-31T23:59:59-02:00"}),
            json!("x"),
        ] {
            assert!(schema().prepare(&mut with(given.clone())).is_err(), "{given}");
        }
    }

    #[test]
    fn malformed_metadata_in_storage_is_dropped_when_read() {
        let mut stored = with(json!({"name": "x", "labels": {"a": 1, "b": "c"}, "annotations": {"k": "v"}}));
        stored["pod"]["kind"] = json!(2);
        assert!(schema().prepare(&mut stored.clone()).is_err());
        let (pruned, _) = schema().prepare_stored(&mut stored).expect("it can be read");
        let lost: Vec<&str> = pruned.iter().map(|pruned| pruned.path.as_str()).collect();
        assert_eq!(lost, ["pod.kind", "pod.metadata.labels"]);
        assert_eq!(stored["pod"], json!({"apiVersion": "v1", "metadata": {"name": "x", "annotations": {"k": "v"}}}));
        assert!(schema().prepare_stored(&mut with(json!("x"))).is_err(), "a string is not metadata");
        // Therefore an update can remove or fix the malformed field.
        let mut new = with(json!({"labels": {"a": "1"}}));
        assert!(schema().process(&mut new, Some(&with(json!({"labels": {"a": 1}})))).outcome.is_accepted());
    }

    fn said(metadata: Value) -> Vec<String> {
        said_by(36, metadata)
    }

    fn said_by(minor: u32, metadata: Value) -> Vec<String> {
        let schema = schema().with_release(KubernetesRelease::minor(minor));
        let outcome = schema.process(&mut with(metadata), None).outcome;
        let text = |error: &FieldError| error.to_string().replace("pod.metadata.", "");
        outcome.errors.iter().map(text).collect()
    }

    #[test]
    fn invalid_owners_finalizers_and_managed_fields_have_the_errors_of_the_server() {
        let owner = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "n", "uid": "1", "controller": true});
        assert_eq!(
            said(json!({"ownerReferences": [owner("A"), owner("B")]})),
            [concat!(
                r#"ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"A","name":"n","uid":"1","controller":true},"#,
                r#"{"apiVersion":"v1","kind":"B","name":"n","uid":"1","controller":true}]: Only one reference can have "#,
                r#"Controller set to true. Found "true" in references for A/n and B/n"#
            )]
        );
        let event = json!({"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "1"});
        assert_eq!(
            said(json!({"ownerReferences": [event]})),
            [
                r#"ownerReferences: Invalid value: {"apiVersion":"v1","kind":"Event","name":"n","uid":"1"}: /v1, Kind=Event is disallowed from being an owner"#
            ]
        );
        assert_eq!(
            said(json!({"ownerReferences": [{"apiVersion": "a/b/c", "kind": "A", "name": "n", "uid": "1"}]})),
            ["ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty"]
        );
        assert_eq!(
            said(json!({"finalizers": ["orphan", "foregroundDeletion"]})),
            [
                r#"finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set"#
            ]
        );
        assert_eq!(
            said(json!({"managedFields": [{"operation": "Foo", "fieldsType": "X", "manager": "a\u{1}b"}, null]})),
            [
                "managedFields[0].operation: Invalid value: \"Foo\": must be `Apply` or `Update`",
                "managedFields[0].fieldsType: Invalid value: \"X\": must be `FieldsV1`",
                "managedFields[0].manager: Invalid value: \"a\\x01b\": invalid character U+0001 (at position 1)",
                "managedFields[1].operation: Invalid value: \"\": must be `Apply` or `Update`",
            ]
        );
    }

    #[test]
    fn errors_name_the_item_and_what_is_missing_from_1_37_on() {
        let owner = |api_version: &str| json!({"apiVersion": api_version, "kind": "", "name": "n", "uid": "1"});
        assert_eq!(
            said_by(37, json!({"ownerReferences": [owner("v1"), owner(""), owner("a/")]})),
            [
                "ownerReferences[0].kind: Required value: must not be empty",
                "ownerReferences[1].apiVersion: Required value: must not be empty",
                "ownerReferences[1].kind: Required value: must not be empty",
                "ownerReferences[2].apiVersion: Invalid value: \"a/\": must be <group>/<version> or <version>",
                "ownerReferences[2].kind: Required value: must not be empty",
            ]
        );
        assert_eq!(
            said_by(37, json!({"managedFields": [{"operation": "Foo"}, null]})),
            [
                "managedFields[0].operation: Unsupported value: \"Foo\": supported values: \"Apply\", \"Update\"",
                "managedFields[1].operation: Required value: must not be empty",
            ]
        );
        assert_eq!(
            said_by(36, json!({"ownerReferences": [owner("v1"), owner("")]})),
            [
                "ownerReferences.kind: Invalid value: \"\": must not be empty",
                "ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
                "ownerReferences.kind: Invalid value: \"\": must not be empty",
            ]
        );
    }

    #[test]
    fn only_some_fields_of_an_objects_own_metadata_are_validated() {
        let schema = Schema::compile(&json!({"type": "object"})).expect("a schema");
        let errors = |metadata: Value, is_update: bool| {
            let old = json!({"metadata": {"name": "x"}});
            let outcome = schema.process(&mut json!({"metadata": metadata}), is_update.then_some(&old)).outcome;
            outcome.errors.len()
        };
        let theirs = json!({"name": "x", "generation": -1, "managedFields": [{"operation": "Foo"}]});
        assert_eq!((errors(theirs.clone(), false), errors(theirs, true)), (0, 0));
        // A generated name must be valid too, but the last two characters of a prefix are not checked.
        for (prefix, alone, beside_a_name) in [("ab-", 0, 0), ("a.-", 1, 0), ("A-", 1, 0), ("A", 2, 1), ("-", 2, 1)] {
            let with_name = json!({"name": "x", "generateName": prefix});
            assert_eq!(errors(json!({"generateName": prefix}), false), alone, "{prefix}");
            assert_eq!(errors(with_name, false), beside_a_name, "{prefix}");
        }
        assert_eq!(errors(json!({"generateName": format!("{}-", "x".repeat(253))}), false), 0);
        // Nothing is generated on an update.
        let prefix = json!({"name": "x", "generateName": "A_B"});
        assert_eq!((errors(prefix.clone(), false), errors(prefix, true)), (1, 0));
        assert_eq!(errors(json!({"name": "x", "generateName": "A/B"}), true), 1);
    }
}
