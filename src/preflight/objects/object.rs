//! A live object from a list, parsed once and only as far as needed. `metadata.managedFields` alone is often half of an
//! object.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// How much of `metadata.managedFields` is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    #[default]
    Nothing,
    /// The managers, with version and time of their writes.
    Writers,
    /// The same, and the fields.
    Fields,
}

/// The parts of an object that are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    pub managed: Keep,
    /// Whether only the names are read from its metadata.
    pub only_names: bool,
    /// The top-level fields that are not read.
    pub without: Vec<String>,
}

/// One entry of `metadata.managedFields`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Managed {
    pub manager: String,
    pub api_version: String,
    pub time: Option<String>,
    pub subresource: Option<String>,
    #[serde(rename = "fieldsV1")]
    pub fields: Option<Value>,
}

#[derive(Debug, Clone, Default)]
pub struct Item {
    /// The requested parts, without `metadata.managedFields`.
    pub value: Value,
    pub managed: Vec<Managed>,
}

impl Item {
    /// # Errors
    /// The text is not an object with metadata, which an API server never returns.
    pub fn parse(json: &str, parts: &Parts) -> Result<Self, serde_json::Error> {
        let mut item = Item::default();
        let mut deserializer = serde_json::Deserializer::from_str(json);
        deserializer.disable_recursion_limit();
        let members = Members { level: Level::Object, parts, managed: &mut item.managed };
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
        self.managed.iter().filter_map(|entry| entry.fields.as_ref()).any(|fields| {
            let mut at = Some(fields);
            for name in names {
                at = at.and_then(|at| at.get(format!("f:{name}")));
            }
            at.is_some()
        })
    }
}

/// The part of an object that is read member by member.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
}

struct Members<'m> {
    level: Level,
    parts: &'m Parts,
    managed: &'m mut Vec<Managed>,
}

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match (self.level, key.as_str()) {
                (Level::Object, "metadata") => {
                    let below = Members { level: Level::Metadata, parts: self.parts, managed: &mut *self.managed };
                    Value::Object(map.next_value_seed(below)?)
                }
                (Level::Metadata, "managedFields") => {
                    match self.parts.managed {
                        Keep::Nothing => {
                            map.next_value::<IgnoredAny>()?;
                        }
                        Keep::Writers => {
                            let mut entries: Option<Vec<Writer>> = map.next_value()?;
                            *self.managed = entries.take().into_iter().flatten().map(Managed::from).collect();
                        }
                        Keep::Fields => {
                            *self.managed = map.next_value::<Option<Vec<Managed>>>()?.unwrap_or_default();
                        }
                    }
                    continue;
                }
                (Level::Object, name) if self.parts.without.iter().any(|left_out| left_out == name) => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Level::Metadata, name)
                    if self.parts.only_names && !matches!(name, "name" | "generateName" | "namespace") =>
                {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                _ => map.next_value::<Value>()?,
            };
            members.insert(key, value);
        }
        if self.level == Level::Object && !members.contains_key("metadata") {
            return Err(A::Error::custom("an object without metadata"));
        }
        Ok(members)
    }
}

/// An entry of `metadata.managedFields` without its fields.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Writer {
    manager: String,
    api_version: String,
    time: Option<String>,
    subresource: Option<String>,
}

impl From<Writer> for Managed {
    fn from(Writer { manager, api_version, time, subresource }: Writer) -> Self {
        Managed { manager, api_version, time, subresource, fields: None }
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
        for keep in [Keep::Nothing, Keep::Writers, Keep::Fields] {
            let item = Item::parse(TEXT, &Parts { managed: keep, ..Parts::default() }).unwrap();
            assert_eq!((item.namespace(), item.name()), (Some("n"), "a"));
            assert_eq!(item.value["metadata"].as_object().unwrap().len(), 3);
            assert_eq!(item.managed.len(), usize::from(keep > Keep::Nothing));
            assert_eq!(item.managed.iter().any(|entry| entry.fields.is_some()), keep == Keep::Fields);
        }
    }

    #[test]
    fn what_nobody_looks_at_is_not_read() {
        let parts = Parts { managed: Keep::Writers, only_names: true, without: vec!["spec".into()] };
        let item = Item::parse(TEXT, &parts).unwrap();
        let expected = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a", "namespace": "n"}});
        assert_eq!((&item.value, item.managed.len()), (&expected, 1));
    }

    #[test]
    fn a_field_is_owned_by_the_managers_on_record_for_it() {
        let item = Item::parse(TEXT, &Parts { managed: Keep::Fields, ..Parts::default() }).unwrap();
        assert!(item.is_owned(&["spec", "x"]) && item.is_owned(&["spec"]));
        assert!(!item.is_owned(&["spec", "y"]) && !item.is_owned(&["spec", "x", "y"]));
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["[]", "{}", r#"{"metadata":1}"#, r#"{"metadata":{}"#] {
            assert!(Item::parse(text, &Parts { managed: Keep::Writers, ..Parts::default() }).is_err(), "{text}");
        }
    }
}
