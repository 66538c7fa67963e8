//! Replaces values that no output may contain with marks. The same value has the same mark in all objects of a run.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::matcher::FieldPathStep;
use crate::secret::{self, SecretValues};

/// The values of an object that are hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hiding {
    /// All values are shown.
    Nothing,
    /// The values of a Secret.
    Secret,
    /// Every value.
    All,
}

/// The marks of one run.
#[derive(Debug, Default)]
pub struct HiddenValueMarks(HashMap<Vec<u8>, usize>);

impl HiddenValueMarks {
    /// Hides values in the objects, which are different states of the same object.
    pub fn hide(&mut self, objects: &mut [&mut Value], hiding: Hiding) {
        match hiding {
            Hiding::Nothing => {}
            Hiding::Secret => {
                let values = SecretValues::collect(objects.iter().map(|object| object.to_string()));
                objects.iter_mut().for_each(|object| self.hide_secret(object, &values));
            }
            Hiding::All => objects.iter_mut().for_each(|object| self.hide_object(object)),
        }
    }

    /// Hides every value at a path.
    pub fn hide_at(&mut self, value: &mut Value, path: &[FieldPathStep]) {
        match (path.split_first(), value) {
            (None, value) => self.leaves(value, &|value| (bytes(value), "hidden")),
            (Some((FieldPathStep::Key(key), rest)), Value::Object(map)) => {
                if let Some(below) = map.get_mut(key) {
                    self.hide_at(below, rest);
                }
            }
            (Some((FieldPathStep::Matching(pattern), rest)), Value::Object(map)) => {
                let keys: Vec<String> = pattern.keys(map).cloned().collect();
                for key in keys {
                    if let Some(below) = map.get_mut(&key) {
                        self.hide_at(below, rest);
                    }
                }
            }
            (Some((FieldPathStep::All, rest)), Value::Array(items)) => {
                items.iter_mut().for_each(|item| self.hide_at(item, rest));
            }
            (Some((FieldPathStep::Index(index), rest)), Value::Array(items)) => {
                if let Some(item) = items.get_mut(*index) {
                    self.hide_at(item, rest);
                }
            }
            _ => {}
        }
    }

    fn hide_secret(&mut self, secret: &mut Value, values: &SecretValues) {
        for (key, value) in secret.as_object_mut().into_iter().flatten() {
            match key.as_str() {
                "metadata" => self.hide_metadata(value, values),
                "data" => self.leaves(value, &|value| match value {
                    // Decode it, so the value has the same mark as in `stringData`.
                    Value::String(text) => (STANDARD.decode(text).unwrap_or_else(|_| text.clone().into()), "hidden"),
                    other => (other.to_string().into(), "hidden"),
                }),
                key if secret::KNOWN.contains(&key) => {}
                _ => self.leaves(value, &|value| (bytes(value), "hidden")),
            }
        }
    }

    /// Hides copies of the values in annotations and labels.
    fn hide_metadata(&mut self, metadata: &mut Value, values: &SecretValues) {
        for map in ["annotations", "labels"] {
            for value in metadata.get_mut(map).and_then(Value::as_object_mut).into_iter().flatten().map(|(_, v)| v) {
                let Value::String(text) = value else { continue };
                *text = if secret::may_be_copy(text) {
                    self.mark(text.clone().into_bytes(), "hidden")
                } else {
                    values.hidden(text)
                };
            }
        }
    }

    /// Hides everything but the identity of the object.
    fn hide_object(&mut self, object: &mut Value) {
        let kind = |value: &Value| match value {
            Value::String(_) => "string",
            Value::Number(_) => "number",
            Value::Bool(_) => "boolean",
            _ => "value",
        };
        let leaf = |value: &Value| (bytes(value), kind(value));
        for (key, value) in object.as_object_mut().into_iter().flatten() {
            match key.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => {
                    let named = |key: &str| matches!(key, "name" | "namespace");
                    let members = value.as_object_mut().into_iter().flatten();
                    members.filter(|(key, _)| !named(key)).for_each(|(_, value)| self.leaves(value, &leaf));
                }
                _ => self.leaves(value, &leaf),
            }
        }
    }

    fn leaves(&mut self, value: &mut Value, leaf: &impl Fn(&Value) -> (Vec<u8>, &'static str)) {
        match value {
            Value::Object(map) => map.values_mut().for_each(|value| self.leaves(value, leaf)),
            Value::Array(items) => items.iter_mut().for_each(|value| self.leaves(value, leaf)),
            Value::Null => {}
            value => {
                let (bytes, word) = leaf(value);
                *value = self.mark(bytes, word).into();
            }
        }
    }

    /// The mark of a value, such as `[hidden 3]`.
    fn mark(&mut self, value: Vec<u8>, word: &str) -> String {
        let next = self.0.len() + 1;
        format!("[{word} {}]", self.0.entry(value).or_insert(next))
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::String(text) => text.clone().into_bytes(),
        other => other.to_string().into_bytes(),
    }
}
