//! Matches the items of two lists by key.

use std::collections::BTreeMap;

use serde_json::Value;

use super::path;
use crate::managed_fields::ListItemKey;
use crate::merge::MergeShape;
use crate::text;

/// The keys of list items of the built-in kinds, used if the kind's schema declares none.
const KEYS: [&[&str]; 12] = [
    &["containerPort", "protocol"],
    &["port", "protocol"],
    &["name"],
    &["mountPath"],
    &["devicePath"],
    &["topologyKey", "whenUnsatisfiable"],
    &["type"],
    &["uid"],
    &["ip"],
    &["host"],
    &["key"],
    &["id"],
];

/// Two lists whose items have keys.
pub struct Matched {
    /// For each next item, the index of the live item with the same key.
    pub pairs: Vec<Option<usize>>,
    /// The name of each next item.
    pub labels: Vec<String>,
    /// The name of each live item.
    pub live_labels: Vec<String>,
}

impl Matched {
    /// Matches by the merge keys of the schema, or else by [`KEYS`]. `None` if items lack the keys or two have the
    /// same.
    pub fn match_items(live: &[Value], next: &[Value], shape: &MergeShape<'_, Value>) -> Option<Self> {
        if let MergeShape::Keyed(keyed) = shape {
            let key = |item: &Value| match keyed.key(item)? {
                ListItemKey::Keys(keys) => Some(keys.values().map(|value| unquoted(value)).collect()),
                _ => None,
            };
            if let Some(matched) = Self::match_by(live, next, key) {
                return Some(matched);
            }
        }
        if !live.iter().chain(next).all(Value::is_object) {
            return None;
        }
        KEYS.iter().find_map(|keys| {
            let key = |item: &Value| {
                item.get(keys[0])?;
                let values = keys.iter().filter_map(|key| item.get(key));
                Some(values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect())
            };
            Self::match_by(live, next, key)
        })
    }

    fn match_by(live: &[Value], next: &[Value], key: impl Fn(&Value) -> Option<Vec<String>>) -> Option<Self> {
        let (live_keys, live) = index(live, &key)?;
        let (next_keys, _) = index(next, &key)?;
        let labels = |keys: &[Vec<String>]| keys.iter().map(|key| path::label(key)).collect();
        let pairs = next_keys.iter().map(|key| live.get(key).copied()).collect();
        Some(Matched { pairs, labels: labels(&next_keys), live_labels: labels(&live_keys) })
    }

    /// `the order changed from a, b to b, a`, if items that exist on both sides are in another order.
    pub fn order(&self) -> Option<String> {
        let stay: Vec<usize> = self.pairs.iter().flatten().copied().collect();
        if stay.is_sorted() {
            return None;
        }
        let after: Vec<&str> = stay.iter().map(|index| self.live_labels[*index].as_str()).collect();
        let mut sorted = stay;
        sorted.sort_unstable();
        let before: Vec<&str> = sorted.iter().map(|index| self.live_labels[*index].as_str()).collect();
        let [before, after] = [before, after].map(|names| text::cut(&names.join(", "), 200).into_owned());
        Some(format!("the order changed from {before} to {after}"))
    }
}

type DiffItemKey = Vec<String>;

/// The key of each item, and the index of each key. `None` if an item has no key or two have the same.
fn index(
    items: &[Value],
    key: impl Fn(&Value) -> Option<DiffItemKey>,
) -> Option<(Vec<DiffItemKey>, BTreeMap<DiffItemKey, usize>)> {
    let keys: Vec<DiffItemKey> = items.iter().map(key).collect::<Option<_>>()?;
    let index: BTreeMap<DiffItemKey, usize> = keys.iter().cloned().enumerate().map(|(at, key)| (key, at)).collect();
    (index.len() == keys.len()).then_some((keys, index))
}

/// A string from its JSON text; any other JSON value as it is written.
fn unquoted(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}
