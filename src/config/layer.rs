//! A layer: one place that settings come from, as a figment provider that remembers where each value stands.
//!
//! figment merges the layers and keeps for every value which provider gave it. The line is ours: each layer holds a
//! [`Place`] for each path, so that the merged value leads back to `gantry.yaml:4:9`.

use std::collections::BTreeMap;

use figment::value::{Dict, Empty, Map, Tag, Value};
use figment::{Metadata, Profile, Provider};

use super::located::Located;
use super::origin::{Layer, Place};

/// The keys that lead to a value; list items count from 0, checks go by their name.
pub(super) type Path = Vec<String>;

/// Where a key and its value are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Places {
    pub key: Place,
    pub value: Place,
}

/// A JSON value as figment's. Every JSON value has one.
pub(super) fn value(json: &serde_json::Value) -> Value {
    Value::serialize(json).unwrap_or(Value::Empty(Tag::Default, Empty::Unit))
}

/// Everything that one document, or the environment, or the flags, set.
#[derive(Debug, Clone)]
pub(super) struct LayerData {
    pub layer: Layer,
    /// Tells the document from others of the same layer.
    pub name: String,
    pub values: Dict,
    pub places: BTreeMap<Path, Places>,
    /// The names in `preflightRules` in their order; `None` where the key is absent.
    pub rules: Option<Vec<String>>,
    /// The lists that are added to those of other layers, by their keys.
    pub lists: BTreeMap<&'static str, Located>,
    /// Where kapp's document says how references to versioned objects are found.
    pub templates: Option<Place>,
    /// Where the document gives a check a program that is not run for coming from here.
    pub not_run: BTreeMap<String, Place>,
}

impl LayerData {
    pub fn new(layer: Layer, name: impl Into<String>) -> Self {
        LayerData {
            layer,
            name: name.into(),
            values: Dict::new(),
            places: BTreeMap::new(),
            rules: None,
            lists: BTreeMap::new(),
            templates: None,
            not_run: BTreeMap::new(),
        }
    }

    /// Whether it has an entry for the check.
    pub fn has(&self, check: &str) -> bool {
        self.rules.iter().flatten().any(|name| name == check)
    }

    /// Where the key is to which these steps lead.
    pub fn place(&self, steps: &[&str]) -> Place {
        let path: Path = steps.iter().map(|step| (*step).to_owned()).collect();
        self.places.get(&path).map_or(Place::Default, |places| places.key.clone())
    }

    /// Sets the value at a dotted path of the table of keys, from one place.
    pub fn set(&mut self, path: &str, value: Value, place: Place) {
        let steps: Path = path.split('.').map(str::to_owned).collect();
        let mut dict = &mut self.values;
        let (parents, last) = match steps.split_last() {
            Some((last, parents)) => (parents, last),
            None => return,
        };
        for step in parents {
            let below = dict.entry(step.clone()).or_insert_with(|| Dict::new().into());
            match below {
                Value::Dict(_, below) => dict = below,
                _ => return,
            }
        }
        dict.insert(last.clone(), value);
        self.places.insert(steps, Places { key: place.clone(), value: place });
    }
}

impl Provider for LayerData {
    fn metadata(&self) -> Metadata {
        Metadata::from(self.layer.to_string(), self.name.clone())
    }

    fn data(&self) -> figment::Result<Map<Profile, Dict>> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}
