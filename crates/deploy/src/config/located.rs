//! A value of the merged configuration, with its origin.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::origin::{Layer, SettingOrigin};

/// A merged value.
#[derive(Debug, Clone, PartialEq)]
pub struct LocatedValue {
    /// The value itself.
    pub data: LocatedData,
    /// The layer that set the value; for a mapping, the last one that added to it.
    pub layer: Layer,
    /// The place of the value.
    pub place: SettingOrigin,
    /// The place of its key.
    pub key: SettingOrigin,
}

/// The value of a configuration file, whose parts know their places.
#[derive(Debug, Clone, PartialEq)]
pub enum LocatedData {
    /// Null, boolean, number or string.
    Scalar(Json),
    /// In the order of the file.
    List(Vec<LocatedValue>),
    /// The entries of all layers, by key.
    Map(BTreeMap<String, LocatedValue>),
}

impl LocatedValue {
    /// The entries of a mapping; none for anything else.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &LocatedValue)> {
        let map = match &self.data {
            LocatedData::Map(map) => Some(map),
            _ => None,
        };
        map.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// The value below a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&LocatedValue> {
        match &self.data {
            LocatedData::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// The boolean that this is.
    pub(super) fn as_bool(&self) -> Option<bool> {
        match &self.data {
            LocatedData::Scalar(value) => value.as_bool(),
            _ => None,
        }
    }

    /// The value below a dotted path of keys.
    pub(super) fn at(&self, path: &str) -> Option<&LocatedValue> {
        path.split('.').try_fold(self, |node, step| node.get(step))
    }

    /// The value as JSON, without places.
    pub fn to_value(&self) -> Json {
        match &self.data {
            LocatedData::Scalar(value) => value.clone(),
            LocatedData::List(items) => items.iter().map(LocatedValue::to_value).collect(),
            LocatedData::Map(map) => {
                Json::Object(map.iter().map(|(key, value)| (key.clone(), value.to_value())).collect::<Map<_, _>>())
            }
        }
    }
}

/// The message for a value that is not a string. It suggests quotes for a scalar such as `namespace: n`, which YAML 1.1
/// reads as a boolean.
pub(super) fn not_a_string(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => format!("{value} is not a string; quote it"),
        _ => format!("{value} is not a string"),
    }
}
