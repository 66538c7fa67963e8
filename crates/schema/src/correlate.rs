//! Ratcheting: which parts of an updated object are unchanged.
//!
//! The server tolerates an invalid value that an update does not change. It correlates new and old values along
//! declared properties, map entries and the items of lists of type map. Everything else (items of other lists, fields
//! that no schema describes) has no counterpart, and an object that contains such a field never counts as unchanged.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde_json::Value;

use super::node::{ListType, SchemaNode};
use gantry_k8s_cel::Num;

/// A new value, its old counterpart, and the node that describes both.
pub struct Correlated<'a> {
    new: &'a Value,
    old: &'a Value,
    node: &'a SchemaNode,
    /// Old items by key; built on first use.
    items: OnceCell<HashMap<ItemKey, &'a Value>>,
}

/// The key of a list item.
pub type ItemKey = Vec<ItemKeyPart>;

/// One part of the key of a list item.
#[derive(Debug, PartialEq, Eq, Hash)]
pub enum ItemKeyPart {
    Bool(bool),
    Int(i64),
    Float(u64),
    Rounded(String),
    Text(String),
}

impl<'a> Correlated<'a> {
    pub fn new(new: &'a Value, old: &'a Value, node: &'a SchemaNode) -> Self {
        let node = node.pairing.as_deref().unwrap_or(node);
        Self { new, old, node, items: OnceCell::new() }
    }

    pub fn old(&self) -> &'a Value {
        self.old
    }

    /// The correlated values under `key`, if both sides have one and the schema describes it.
    pub fn key(&self, key: &str) -> Option<Correlated<'a>> {
        let new = self.new.as_object()?.get(key)?;
        let old = self.old.as_object()?.get(key)?;
        Some(Correlated::new(new, old, self.node.child(key)?))
    }

    /// The correlated item at `index` of the new list, if it has a counterpart.
    pub fn index(&self, index: usize) -> Option<Correlated<'a>> {
        if self.node.list_type != ListType::Map {
            return None;
        }
        let new = self.new.as_array()?.get(index)?;
        let old_items = self.old.as_array()?;
        let items = self.items.get_or_init(|| {
            let mut by_key = HashMap::with_capacity(old_items.len());
            for item in old_items {
                if let Some(key) = key_of(item, &self.node.map_keys) {
                    by_key.entry(key).or_insert(item);
                }
            }
            by_key
        });
        let old = items.get(&key_of(new, &self.node.map_keys)?)?;
        Some(Correlated::new(new, old, self.node.items.as_deref()?))
    }

    /// Whether the new value equals the old one, as far as the two can be correlated.
    pub fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (new, old) if self.node.has_only_defaults => is_equal(new, old),
            (Value::Array(new), Value::Array(old)) => {
                new.len() == old.len()
                    && if self.node.list_type == ListType::Map {
                        (0..new.len()).all(|at| self.index(at).is_some_and(|pair| pair.is_unchanged()))
                    } else {
                        is_equal(self.new, self.old)
                    }
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|key| self.key(key).is_some_and(|pair| pair.is_unchanged()))
            }
            (new, old) => is_equal(new, old),
        }
    }
}

/// Equality of decoded values, in which an integer differs from the equal float. This is how the server compares
/// values of objects; [`mod@crate::same`] compares the values in schemas.
pub fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => Num::from(a) == Num::from(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        _ => a == b,
    }
}

/// The key of a list item; `None` if a part is missing or is not a scalar.
pub fn key_of(item: &Value, keys: &[String]) -> Option<ItemKey> {
    let map = item.as_object()?;
    if keys.is_empty() {
        return None;
    }
    keys.iter()
        .map(|key| match map.get(key)? {
            Value::Bool(b) => Some(ItemKeyPart::Bool(*b)),
            Value::String(s) => Some(ItemKeyPart::Text(s.clone())),
            Value::Number(n) => Some(match Num::from(n) {
                Num::Int(i) => ItemKeyPart::Int(i),
                // The server joins several parts as text, in which a float has six decimals.
                Num::Float(f) if keys.len() > 1 => ItemKeyPart::Rounded(format!("{f:.6}")),
                Num::Float(f) => ItemKeyPart::Float(if f == 0.0 { 0 } else { f.to_bits() }),
            }),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use serde_json::{Value, json};

    use super::Correlated;

    fn unchanged(schema: Value, new: Value, old: Value) -> bool {
        let schema = Schema::compile(&schema).expect("a schema");
        Correlated::new(&new, &old, schema.root()).is_unchanged()
    }

    #[test]
    fn an_undescribed_field_is_never_unchanged() {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"a": {"type": "string"}}});
        assert!(unchanged(schema.clone(), json!({"a": "x"}), json!({"a": "x"})));
        assert!(!unchanged(schema, json!({"a": "x", "b": 1}), json!({"a": "x", "b": 1})));
    }

    #[test]
    fn items_of_lists_of_type_map_are_paired_by_key_and_others_by_index() {
        let list = |kind: &str| {
            json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": kind,
                "x-kubernetes-list-map-keys": ["k"], "items": {"type": "object",
                "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}}}})
        };
        let (one, other) = (json!({"l": [{"k": "a"}, {"k": "b"}]}), json!({"l": [{"k": "b"}, {"k": "a"}]}));
        assert!(unchanged(list("map"), one.clone(), other.clone()));
        assert!(!unchanged(list("atomic"), one, other));
        let keys = |k: f64| json!({"l": [{"k": k, "p": "x"}]});
        let mut two = list("map");
        two["properties"]["l"]["x-kubernetes-list-map-keys"] = json!(["k", "p"]);
        two["properties"]["l"]["items"] = json!({"type": "object", "properties": {"p": {"type": "string"}}});
        let schema = Schema::compile(&two).expect("a schema");
        let paired = |new: Value, old: Value| {
            let list = Correlated::new(&new, &old, schema.root());
            list.key("l").is_some_and(|list| list.index(0).is_some())
        };
        assert!(paired(keys(0.123_456_71), keys(0.123_456_72)) && !paired(keys(0.123_456), keys(0.123_457)));
        let (int, float) = (json!({"l": [{"k": "a", "v": 1}]}), json!({"l": [{"k": "a", "v": 1.0}]}));
        assert!(!unchanged(list("map"), int, float));
    }
}
