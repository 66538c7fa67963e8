//! A layer: one source of settings, as a figment provider that records the place of each value.
//!
//! figment merges the layers and records the provider of every value. It does not record lines, so each layer keeps a
//! [`SettingOrigin`] for each path. A merged value can thus be traced to `gantry.yaml:4:9`.

use std::collections::BTreeMap;

use figment::value::{Dict, Empty, Map, Tag, Value};
use figment::{Metadata, Profile, Provider};

use super::located::LocatedValue;
use super::origin::{Layer, SettingOrigin};

/// The keys that lead to a value. List items have an index from 0; checks have their name.
pub(super) type ConfigKeyPath = Vec<String>;

/// Where a key and its value are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyValuePlaces {
    pub key: SettingOrigin,
    pub value: SettingOrigin,
}

/// Converts a JSON value to a figment value. The conversion never fails.
pub(super) fn value(json: &serde_json::Value) -> Value {
    Value::serialize(json).unwrap_or(Value::Empty(Tag::Default, Empty::Unit))
}

/// All settings of one document, of the environment, or of the flags.
#[derive(Debug, Clone)]
pub(super) struct LayerData {
    pub layer: Layer,
    /// Distinguishes the document from others of the same layer.
    pub name: String,
    pub values: Dict,
    pub places: BTreeMap<ConfigKeyPath, KeyValuePlaces>,
    /// The names in `preflightRules` in their order; `None` if the key is absent.
    pub rules: Option<Vec<String>>,
    /// The lists that are merged with those of other layers, by key.
    pub lists: BTreeMap<&'static str, LocatedValue>,
    /// The place of `templateRules` in kapp's document.
    pub templates: Option<SettingOrigin>,
    /// The checks whose program is not run because this document defines it, with the place of the definition.
    pub not_run: BTreeMap<String, SettingOrigin>,
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

    /// Whether the layer has an entry for the check.
    pub fn has(&self, check: &str) -> bool {
        self.rules.iter().flatten().any(|name| name == check)
    }

    /// The place of the key at these steps.
    pub fn place(&self, steps: &[&str]) -> SettingOrigin {
        let path: ConfigKeyPath = steps.iter().map(|step| (*step).to_owned()).collect();
        self.places.get(&path).map_or(SettingOrigin::Default, |places| places.key.clone())
    }

    /// Sets the value at a dotted path. `place` is recorded for both the key and the value.
    pub fn set(&mut self, path: &str, value: Value, place: SettingOrigin) {
        let steps: ConfigKeyPath = path.split('.').map(str::to_owned).collect();
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
        self.places.insert(steps, KeyValuePlaces { key: place.clone(), value: place });
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
