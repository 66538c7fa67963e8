//! Sets of fields, as `metadata.managedFields` writes them (`fieldsV1`).
//!
//! `{"f:spec": {"f:replicas": {}}}` owns `.spec.replicas`; a `"."` owns the node that it stands in. Steps that are
//! not field names (`k:`, `v:`, `i:`, which lead into lists) are carried along as they are.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of field paths, as a tree. An empty tree that is not `own` holds nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Whether this node itself is in the set.
    own: bool,
    /// Keyed by the step as written: `f:name`.
    below: BTreeMap<String, Fields>,
}

impl Fields {
    /// The fields that a manifest sets: every value that is not a mapping with something in it. A list is one field.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Object(map) if !map.is_empty() => Fields {
                own: false,
                below: map.iter().map(|(key, value)| (format!("f:{key}"), Fields::of(value))).collect(),
            },
            _ => Fields { own: true, below: BTreeMap::new() },
        }
    }

    /// Reads a `fieldsV1`. What does not look like one holds nothing.
    pub fn from_json(value: &Value) -> Self {
        let Value::Object(map) = value else { return Fields::default() };
        let mut fields = Fields { own: map.is_empty() || map.contains_key("."), below: BTreeMap::new() };
        for (step, value) in map.iter().filter(|(step, _)| *step != ".") {
            fields.below.insert(step.clone(), Fields::from_json(value));
        }
        fields
    }

    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        if self.own && !self.below.is_empty() {
            map.insert(".".into(), Value::Object(Map::new()));
        }
        map.extend(self.below.iter().map(|(step, below)| (step.clone(), below.to_json())));
        Value::Object(map)
    }

    /// Whether nothing at or below this node is in the set.
    pub fn is_empty(&self) -> bool {
        !self.own && self.below.values().all(Fields::is_empty)
    }

    pub fn field(&self, name: &str) -> Option<&Fields> {
        self.below.get(&format!("f:{name}"))
    }

    /// The field names below this node, without those steps that lead into a list.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Fields)> {
        self.below.iter().filter_map(|(step, below)| Some((step.strip_prefix("f:")?, below)))
    }

    /// Takes every field out of the set that is in `other`, too. Answers whether there was one.
    pub fn subtract(&mut self, other: &Fields) -> bool {
        let mut changed = self.own && other.own;
        self.own &= !other.own;
        self.below.retain(|step, below| {
            changed |= other.below.get(step).is_some_and(|other| below.subtract(other));
            !below.is_empty()
        });
        changed
    }

    /// Takes the field at `path`, and everything below it, out of the set.
    pub fn remove(&mut self, path: &[&str]) {
        let Some((first, rest)) = path.split_first() else { return };
        let step = format!("f:{first}");
        let Some(below) = self.below.get_mut(&step) else { return };
        if rest.is_empty() {
            self.below.remove(&step);
        } else {
            below.remove(rest);
            if below.is_empty() {
                self.below.remove(&step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_manifest_sets_its_leaves_and_lists_whole() {
        let fields = Fields::of(&json!({"data": {"x": "1", "y": null}, "list": [{"a": 1}], "none": {}}));
        assert_eq!(fields.to_json(), json!({"f:data": {"f:x": {}, "f:y": {}}, "f:list": {}, "f:none": {}}));
    }

    #[test]
    fn what_the_server_wrote_is_written_back_as_it_was() {
        let written =
            json!({"f:labels": {".": {}, "f:k": {}}, "f:list": {"k:{\"name\":\"c\"}": {".": {}, "f:image": {}}}});
        assert_eq!(Fields::from_json(&written).to_json(), written);
        assert!(Fields::from_json(&json!("nonsense")).is_empty());
    }

    #[test]
    fn removing_leaves_no_empty_nodes() {
        let mut fields = Fields::of(&json!({"data": {"x": 1}, "spec": {"y": 2}}));
        fields.remove(&["data", "x"]);
        assert_eq!(fields.to_json(), json!({"f:spec": {"f:y": {}}}));
        fields.remove(&["spec"]);
        assert!(fields.is_empty());
    }

    #[test]
    fn a_difference_keeps_what_only_one_holds() {
        let mut theirs = Fields::from_json(&json!({"f:spec": {"f:a": {}, "f:b": {}}, "f:data": {".": {}, "f:x": {}}}));
        let ours = Fields::from_json(&json!({"f:spec": {"f:b": {}, "f:c": {}}, "f:data": {"f:x": {}}}));
        assert!(theirs.subtract(&ours));
        assert_eq!(theirs.to_json(), json!({"f:spec": {"f:a": {}}, "f:data": {}}));
        assert!(!theirs.subtract(&ours));
    }
}
