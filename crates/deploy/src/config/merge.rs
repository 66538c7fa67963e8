//! Merges the layers into one tree that records the origin of every value.

use figment::Figment;
use figment::value::{Tag, Value};

use super::catalogs::{self, CATALOGS};
use super::keys::{CRD_UPGRADE_SAFETY, KEYS, PRESET, RULES};
use super::layer::{self, ConfigKeyPath, KeyValuePlaces, LayerData};
use super::lists;
use super::located::{LocatedData, LocatedValue};
use super::origin::{Layer, SettingOrigin};

/// The result of merging all layers.
pub(super) struct Merged {
    pub tree: LocatedValue,
    /// The names in `preflightRules` in the order in which they first appear; `None` if no layer has the key.
    pub rules: Option<Vec<String>>,
}

/// The layer below all others.
pub(super) fn defaults() -> LayerData {
    let mut defaults = LayerData::new(Layer::Default, "defaults");
    for key in KEYS {
        if let Some(value) = key.default.and_then(|text| key.read_text(text).ok()) {
            defaults.set(key.path, layer::value(&value), SettingOrigin::Default);
        }
    }
    defaults
}

/// Merges the layers; a later one wins.
pub(super) fn merge(layers: &[LayerData]) -> Result<Merged, Box<figment::Error>> {
    let figment = layers.iter().fold(Figment::new(), |figment, layer| figment.merge(layer));
    let origins = Origins { figment: &figment, layers };
    let mut tree = origins.locate(&figment.find_value("")?, &mut Vec::new());
    if let LocatedData::Map(map) = &mut tree.data {
        map.extend(catalogs::merge(layers).map(|list| (CATALOGS.to_owned(), list)));
        map.extend(
            lists::concatenated_list_keys().filter_map(|name| Some((name.to_owned(), lists::merge(layers, name)?))),
        );
    }
    set_preset(&mut tree);
    let mut rules: Option<Vec<String>> = None;
    for name in layers.iter().filter_map(|layer| layer.rules.as_ref()) {
        let known = rules.get_or_insert_default();
        let new: Vec<String> = name.iter().filter(|name| !known.contains(name)).cloned().collect();
        known.extend(new);
    }
    Ok(Merged { tree, rules })
}

/// Replaces the preset of the check's own configuration if a later layer sets the preset of the run.
fn set_preset(tree: &mut LocatedValue) {
    let Some(preset) = tree.get(PRESET).cloned() else { return };
    let path = [RULES, CRD_UPGRADE_SAFETY, "config", PRESET];
    let own = path.iter().try_fold(tree, |node, step| match &mut node.data {
        LocatedData::Map(map) => map.get_mut(*step),
        _ => None,
    });
    if let Some(own) = own.filter(|own| own.layer < preset.layer) {
        *own = preset;
    }
}

struct Origins<'a> {
    figment: &'a Figment,
    layers: &'a [LayerData],
}

impl Origins<'_> {
    /// figment tags each value with its provider; the layer of that provider has the line.
    fn origin(&self, tag: Tag, path: &ConfigKeyPath) -> (Layer, KeyValuePlaces) {
        let nowhere = KeyValuePlaces { key: SettingOrigin::Default, value: SettingOrigin::Default };
        let Some(metadata) = self.figment.get_metadata(tag) else {
            return (Layer::Default, nowhere);
        };
        let same = |layer: &&LayerData| figment::Provider::metadata(*layer) == *metadata;
        match self.layers.iter().find(same) {
            Some(layer) => (layer.layer, layer.places.get(path).cloned().unwrap_or(nowhere)),
            None => (Layer::Default, nowhere),
        }
    }

    fn locate(&self, value: &Value, path: &mut ConfigKeyPath) -> LocatedValue {
        let (layer, places) = self.origin(value.tag(), path);
        let mut inner = |step: String, value: &Value| {
            path.push(step);
            let located = self.locate(value, path);
            path.pop();
            located
        };
        let data = match value {
            Value::Dict(_, dict) => {
                LocatedData::Map(dict.iter().map(|(key, value)| (key.clone(), inner(key.clone(), value))).collect())
            }
            Value::Array(_, items) => {
                let items = items.iter().enumerate().map(|(index, item)| inner(index.to_string(), item));
                LocatedData::List(items.collect())
            }
            scalar => LocatedData::Scalar(scalar.deserialize().unwrap_or_default()),
        };
        LocatedValue { data, layer, place: places.value, key: places.key }
    }
}
