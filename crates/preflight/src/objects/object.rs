//! A live object from a list, parsed once and only as far as needed. `metadata.managedFields` alone is often half of an
//! object.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use gantry_core::managed_fields::FieldSet;

/// How much of `metadata.managedFields` is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ManagedFieldsDetail {
    #[default]
    Nothing,
    /// The managers, with version and time of their writes.
    Writers,
    /// The same, and the fields.
    Fields,
}

/// The parts of an object that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectProjection {
    pub managed: ManagedFieldsDetail,
    /// Whether only the names are read from its metadata.
    pub only_names: bool,
    /// The top-level fields that are not read.
    pub without: Vec<String>,
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldManagerEntry {
    pub manager: String,
    pub api_version: String,
    pub time: Option<String>,
    pub subresource: Option<String>,
    #[serde(rename = "fieldsV1")]
    pub fields: Option<FieldSet>,
}

#[derive(Debug, Clone, Default)]
pub struct ProjectedObject {
    /// The requested parts, without `metadata.managedFields`.
    pub value: Value,
    pub managed: Vec<FieldManagerEntry>,
}

impl ProjectedObject {
    /// # Errors
    /// The text is not an object with metadata, which an API server never returns.
    pub fn parse(json: &str, parts: &ObjectProjection) -> Result<Self, serde_json::Error> {
        let mut item = ProjectedObject::default();
        let mut deserializer = serde_json::Deserializer::from_str(json);
        deserializer.disable_recursion_limit();
        let members = ObjectPartsVisitor { level: ProjectionLevel::Object, parts, managed: &mut item.managed };
        let map = members.deserialize(&mut deserializer)?;
        deserializer.end()?;
        item.value = Value::Object(map);
        Ok(item)
    }

    pub fn namespace(&self) -> Option<&str> {
        self.value["metadata"]["namespace"].as_str()
    }

    pub fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Whether a manager owns the field at these names. If so, its value is stored, and is not a default filled in on
    /// read.
    pub fn is_owned(&self, names: &[&str]) -> bool {
        self.managed.iter().filter_map(|entry| entry.fields.as_ref()).any(|fields| fields.below(names).is_some())
    }
}

/// The part of an object that is read member by member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ProjectionLevel {
    Object,
    Metadata,
}

struct ObjectPartsVisitor<'m> {
    level: ProjectionLevel,
    parts: &'m ObjectProjection,
    managed: &'m mut Vec<FieldManagerEntry>,
}

impl<'de> DeserializeSeed<'de> for ObjectPartsVisitor<'_> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectPartsVisitor<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match (self.level, key.as_str()) {
                (ProjectionLevel::Object, "metadata") => {
                    let below = ObjectPartsVisitor {
                        level: ProjectionLevel::Metadata,
                        parts: self.parts,
                        managed: &mut *self.managed,
                    };
                    Value::Object(map.next_value_seed(below)?)
                }
                (ProjectionLevel::Metadata, "managedFields") => {
                    match self.parts.managed {
                        ManagedFieldsDetail::Nothing => {
                            map.next_value::<IgnoredAny>()?;
                        }
                        ManagedFieldsDetail::Writers => {
                            let mut entries: Option<Vec<FieldlessEntry>> = map.next_value()?;
                            *self.managed = entries.take().into_iter().flatten().map(FieldManagerEntry::from).collect();
                        }
                        ManagedFieldsDetail::Fields => {
                            *self.managed = map.next_value::<Option<Vec<FieldManagerEntry>>>()?.unwrap_or_default();
                        }
                    }
                    continue;
                }
                (ProjectionLevel::Object, name) if self.parts.without.iter().any(|left_out| left_out == name) => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                (ProjectionLevel::Metadata, name)
                    if self.parts.only_names && !matches!(name, "name" | "generateName" | "namespace") =>
                {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => map.next_value::<Value>()?,
            };
            members.insert(key, value);
        }
        if self.level == ProjectionLevel::Object && !members.contains_key("metadata") {
            return Err(A::Error::custom("an object without metadata"));
        }
        Ok(members)
    }
}

/// An entry of `metadata.managedFields` without its fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct FieldlessEntry {
    manager: String,
    api_version: String,
    time: Option<String>,
    subresource: Option<String>,
}

impl From<FieldlessEntry> for FieldManagerEntry {
    fn from(FieldlessEntry { manager, api_version, time, subresource }: FieldlessEntry) -> Self {
        FieldManagerEntry { manager, api_version, time, subresource, fields: None }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = r#"{"apiVersion":"g/v1","kind":"K","metadata":{"name":"a","namespace":"n","managedFields":[
        {"manager":"m","apiVersion":"g/v1","time":"2026-01-01T00:00:00Z","fieldsV1":{"f:spec":{"f:x":{}}}}],"labels":{"a":"b"}},
        "spec":{"x":1}}"#;

    #[test]
    fn managed_fields_never_become_part_of_the_object() {
        for keep in [ManagedFieldsDetail::Nothing, ManagedFieldsDetail::Writers, ManagedFieldsDetail::Fields] {
            let item = ProjectedObject::parse(TEXT, &ObjectProjection { managed: keep, ..ObjectProjection::default() })
                .unwrap();
            assert_eq!((item.namespace(), item.name()), (Some("n"), "a"));
            assert_eq!(item.value["metadata"].as_object().unwrap().len(), 3);
            assert_eq!(item.managed.len(), usize::from(keep > ManagedFieldsDetail::Nothing));
            assert_eq!(item.managed.iter().any(|entry| entry.fields.is_some()), keep == ManagedFieldsDetail::Fields);
        }
    }

    #[test]
    fn parts_of_an_object_that_no_check_needs_are_not_parsed() {
        let parts =
            ObjectProjection { managed: ManagedFieldsDetail::Writers, only_names: true, without: vec!["spec".into()] };
        let item = ProjectedObject::parse(TEXT, &parts).unwrap();
        let expected = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a", "namespace": "n"}});
        assert_eq!((&item.value, item.managed.len()), (&expected, 1));
    }

    #[test]
    fn a_field_is_owned_by_the_managers_on_record_for_it() {
        let item = ProjectedObject::parse(
            TEXT,
            &ObjectProjection { managed: ManagedFieldsDetail::Fields, ..ObjectProjection::default() },
        )
        .unwrap();
        assert!(item.is_owned(&["spec", "x"]) && item.is_owned(&["spec"]));
        assert!(!item.is_owned(&["spec", "y"]) && !item.is_owned(&["spec", "x", "y"]));
    }

    #[test]
    fn json_that_is_not_an_object_is_an_error() {
        for text in ["[]", "{}", r#"{"metadata":1}"#, r#"{"metadata":{}"#] {
            assert!(
                ProjectedObject::parse(
                    text,
                    &ObjectProjection { managed: ManagedFieldsDetail::Writers, ..ObjectProjection::default() }
                )
                .is_err(),
                "{text}"
            );
        }
    }
}
