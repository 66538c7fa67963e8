//! Pruning and defaulting: how the server changes an object before validating it.

use serde_json::{Map, Value};

use super::node::{AdditionalKeys, SchemaNode};
use super::path::LinkedPath;
use crate::Step;

/// A field that the server drops, with its value.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PrunedField {
    /// The path, such as `spec.list[0].x`.
    pub path: String,
    /// The path as steps.
    pub at: Vec<Step>,
    /// The dropped value.
    pub value: Value,
}

impl PrunedField {
    pub(super) fn new(path: &LinkedPath, value: Value) -> Self {
        Self { path: path.openapi(), at: path.steps(), value }
    }
}

/// A field that the server sets to its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaulted {
    /// The path, such as `spec.list[0].x`.
    pub path: String,
    /// The path as steps.
    pub at: Vec<Step>,
}

impl Defaulted {
    fn new(path: &LinkedPath) -> Self {
        Self { path: path.openapi(), at: path.steps() }
    }
}

fn is_meta(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

/// Drops the fields that `node` does not describe. The kind, version and metadata of the object itself are kept.
pub fn prune(object: &mut Value, node: &SchemaNode) -> Vec<PrunedField> {
    let mut pruned = Vec::new();
    if node.preserve_unknown {
        keep(object, node, true, &LinkedPath::Root, &mut pruned);
    } else {
        drop_unknown(object, Some(node), true, &LinkedPath::Root, &mut pruned);
    }
    pruned.sort_by(|a, b| a.path.cmp(&b.path));
    pruned
}

/// Drops what `node` does not describe from a value that is not the whole object, such as a default.
pub fn prune_part(value: &mut Value, node: &SchemaNode) {
    drop_unknown(value, Some(node), node.embedded, &LinkedPath::Root, &mut Vec::new());
}

fn drop_unknown(
    value: &mut Value,
    node: Option<&SchemaNode>,
    is_resource: bool,
    path: &LinkedPath,
    pruned: &mut Vec<PrunedField>,
) {
    if let Some(node) = node
        && node.preserve_unknown
    {
        return keep(value, node, is_resource, path, pruned);
    }
    match value {
        Value::Object(map) => {
            map.retain(|key, value| {
                let path = LinkedPath::Name(path, key);
                if is_resource && is_meta(key) {
                    return true;
                }
                let child = node.and_then(|n| n.properties.get(key));
                let is_entry = node.is_some_and(|n| !matches!(n.additional, AdditionalKeys::Absent));
                if child.is_none() && !is_entry {
                    pruned.push(PrunedField::new(&path, value.take()));
                    return false;
                }
                // `additionalProperties: true` keeps the entry but nothing inside it.
                let child = child.or_else(|| node.and_then(|n| n.additional.schema()));
                drop_unknown(value, child, child.is_some_and(|c| c.embedded), &path, pruned);
                true
            });
        }
        Value::Array(items) => {
            let item_node = node.and_then(|n| n.items.as_deref());
            for (at, item) in items.iter_mut().enumerate() {
                let is_resource = item_node.is_some_and(|n| n.embedded);
                drop_unknown(item, item_node, is_resource, &LinkedPath::Index(path, at), pruned);
            }
        }
        _ => {}
    }
}

/// Below `x-kubernetes-preserve-unknown-fields`, pruning applies only inside the described fields.
fn keep(value: &mut Value, node: &SchemaNode, is_resource: bool, path: &LinkedPath, pruned: &mut Vec<PrunedField>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if is_resource && is_meta(key) {
                    continue;
                }
                let described = node.properties.contains_key(key) || !matches!(node.additional, AdditionalKeys::Absent);
                if described {
                    let child = node.child(key);
                    let is_resource = child.is_some_and(|c| c.embedded);
                    drop_unknown(value, child, is_resource, &LinkedPath::Name(path, key), pruned);
                }
            }
        }
        Value::Array(items) => {
            // Items are kept as they are unless a schema describes them; even then their own unknown fields are kept.
            if let Some(item_node) = node.items.as_deref() {
                for (at, item) in items.iter_mut().enumerate() {
                    keep(item, item_node, item_node.embedded, &LinkedPath::Index(path, at), pruned);
                }
            }
        }
        _ => {}
    }
}

/// Drops nulls that are neither allowed nor replaced by a default, and returns them.
pub fn drop_nulls(object: &mut Value, node: &SchemaNode) -> Vec<PrunedField> {
    let mut dropped = Vec::new();
    without_nulls(object, node, &LinkedPath::Root, &mut dropped);
    dropped
}

fn without_nulls(value: &mut Value, node: &SchemaNode, path: &LinkedPath, dropped: &mut Vec<PrunedField>) {
    match value {
        Value::Object(map) => map.retain(|key, value| {
            let Some(child) = node.child(key) else { return true };
            let path = LinkedPath::Name(path, key);
            if !value.is_null() {
                without_nulls(value, child, &path, dropped);
                return true;
            }
            let is_kept = child.nullable || child.default.is_some();
            if !is_kept {
                dropped.push(PrunedField::new(&path, Value::Null));
            }
            is_kept
        }),
        Value::Array(items) => {
            if let Some(item_node) = node.items.as_deref() {
                for (at, item) in items.iter_mut().enumerate() {
                    without_nulls(item, item_node, &LinkedPath::Index(path, at), dropped);
                }
            }
        }
        _ => {}
    }
}

/// Applies defaults to missing fields, and to nulls where null is not allowed.
pub fn default(object: &mut Value, node: &SchemaNode) -> Vec<Defaulted> {
    let mut defaulted = Vec::new();
    fill(object, node, &LinkedPath::Root, &mut Some(&mut defaulted));
    defaulted.sort_by(|a, b| a.path.cmp(&b.path));
    defaulted
}

/// The approximate size of the value in memory after defaulting, in bytes, computed without applying the defaults.
pub fn filled_weight(value: &Value, node: &SchemaNode) -> u64 {
    weigh(value, Some(node))
}

fn weigh(value: &Value, node: Option<&SchemaNode>) -> u64 {
    const VALUE: u64 = 32;
    const ENTRY: u64 = 48;
    let node = node.filter(|node| node.has_defaults);
    match value {
        Value::Null => node.map_or(VALUE, |node| VALUE.max(node.default_weight.into())),
        Value::String(text) => VALUE + text.len() as u64,
        Value::Array(items) => {
            let of = node.and_then(|node| node.items.as_deref());
            items.iter().fold(VALUE, |sum, item| sum.saturating_add(weigh(item, of)))
        }
        Value::Object(map) => {
            let there = map.iter().map(|(key, value)| {
                (ENTRY + key.len() as u64).saturating_add(weigh(value, node.and_then(|node| node.child(key))))
            });
            let missing = node
                .into_iter()
                .flat_map(|node| node.properties.iter())
                .filter(|(name, child)| child.default.is_some() && !map.contains_key(*name));
            let missing = missing.map(|(name, child)| ENTRY + name.len() as u64 + u64::from(child.default_weight));
            there.chain(missing).fold(VALUE + ENTRY, u64::saturating_add)
        }
        _ => VALUE,
    }
}

/// Fills `defaulted` with the fields set to their defaults; fields inside a default are not recorded.
fn fill(value: &mut Value, node: &SchemaNode, path: &LinkedPath, defaulted: &mut Option<&mut Vec<Defaulted>>) {
    if !node.has_defaults {
        return;
    }
    match value {
        Value::Object(map) => fill_object(map, node, path, defaulted),
        Value::Array(items) => {
            let Some(item_node) = node.items.as_deref() else { return };
            for (at, item) in items.iter_mut().enumerate() {
                fill_null_then_inside(item, item_node, &LinkedPath::Index(path, at), defaulted);
            }
        }
        _ => {}
    }
}

fn fill_object(
    map: &mut Map<String, Value>,
    node: &SchemaNode,
    path: &LinkedPath,
    defaulted: &mut Option<&mut Vec<Defaulted>>,
) {
    for (name, child) in node.properties.iter() {
        let Some(default) = &child.default else { continue };
        if map.get(name).is_some_and(|v| !v.is_null() || child.nullable) {
            continue;
        }
        let path = LinkedPath::Name(path, name);
        if let Some(defaulted) = defaulted {
            defaulted.push(Defaulted::new(&path));
        }
        let mut value = default.as_ref().clone();
        fill(&mut value, child, &path, &mut None);
        map.insert(name.to_owned(), value);
    }
    for (key, value) in map.iter_mut() {
        let path = LinkedPath::Name(path, key);
        match node.properties.get(key) {
            Some(child) => fill(value, child, &path, defaulted),
            None => {
                if let Some(entry) = node.additional.schema() {
                    fill_null_then_inside(value, entry, &path, defaulted);
                }
            }
        }
    }
}

fn fill_null_then_inside(
    value: &mut Value,
    node: &SchemaNode,
    path: &LinkedPath,
    defaulted: &mut Option<&mut Vec<Defaulted>>,
) {
    match &node.default {
        Some(default) if value.is_null() && !node.nullable => {
            if let Some(defaulted) = defaulted {
                defaulted.push(Defaulted::new(path));
            }
            *value = default.as_ref().clone();
            fill(value, node, path, &mut None);
        }
        _ => fill(value, node, path, defaulted),
    }
}
