//! A value of the merged configuration, which knows where it comes from.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::origin::{Layer, Place};

/// A merged value.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    pub data: LocatedData,
    /// The layer that gave it; of a mapping, the last one that added to it.
    pub layer: Layer,
    /// Where the value is.
    pub place: Place,
    /// Where its key is.
    pub key: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub enum LocatedData {
    /// Null, boolean, number or string.
    Scalar(Json),
    List(Vec<Located>),
    Map(BTreeMap<String, Located>),
}

impl Located {
    /// The entries of a mapping; none for anything else.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Located)> {
        let map = match &self.data {
            LocatedData::Map(map) => Some(map),
            _ => None,
        };
        map.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// The value below a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Located> {
        match &self.data {
            LocatedData::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// The value below a dotted path of keys.
    pub(super) fn at(&self, path: &str) -> Option<&Located> {
        path.split('.').try_fold(self, |node, step| node.get(step))
    }

    pub fn to_value(&self) -> Json {
        match &self.data {
            LocatedData::Scalar(value) => value.clone(),
            LocatedData::List(items) => items.iter().map(Located::to_value).collect(),
            LocatedData::Map(map) => {
                Json::Object(map.iter().map(|(key, value)| (key.clone(), value.to_value())).collect::<Map<_, _>>())
            }
        }
    }
}

/// `namespace: n` is a boolean to every YAML reader in this field.
pub(super) fn not_a_string(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Bool(_) | serde_json::Value::Number(_) => format!("{value} is not a string; quote it"),
        _ => format!("{value} is not a string"),
    }
}
