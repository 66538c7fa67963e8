//! Sets of fields in the format of `metadata.managedFields` (`fieldsV1`).
//!
//! `{"f:spec": {"f:replicas": {}}}` owns `.spec.replicas`; a `"."` owns the node that it is in. `k:` identifies a list
//! item by its keys, `v:` by its value, `i:` by its index.

use std::collections::BTreeMap;
use std::fmt;

use gantry_schema::{Tree, ValueView};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::resource::Step;

/// One step of the path of a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MergePathStep {
    /// The member of a map.
    Field(String),
    /// The item of a list, by its key, value or index.
    Item(ListItemKey),
}

/// Identifies an item of a list. Values have the text form of [`Tree::canonical_text`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListItemKey {
    /// The item with these keys.
    Keys(BTreeMap<String, String>),
    /// The item with this value.
    Value(String),
    /// The item at this index.
    Index(usize),
    /// A step of another kind, unparsed.
    Other(String),
}

/// The notation of the API server in a conflict: `.image`, `[name="a"]`.
impl fmt::Display for MergePathStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergePathStep::Field(name) => write!(f, ".{name}"),
            MergePathStep::Item(ListItemKey::Keys(keys)) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(f, "[{}]", keys.join(","))
            }
            MergePathStep::Item(ListItemKey::Value(value)) => write!(f, "[={value}]"),
            MergePathStep::Item(ListItemKey::Index(index)) => write!(f, "[{index}]"),
            MergePathStep::Item(ListItemKey::Other(step)) => write!(f, "[{step}]"),
        }
    }
}

impl ListItemKey {
    fn parse(step: &str) -> ListItemKey {
        let json = |text| serde_json::from_str::<Value>(text).ok();
        let read = match step.split_once(':') {
            Some(("k", keys)) => match json(keys) {
                Some(Value::Object(keys)) => Some(ListItemKey::Keys(
                    keys.iter().map(|(name, value)| (name.clone(), value.canonical_text())).collect(),
                )),
                _ => None,
            },
            Some(("v", value)) => json(value).map(|value| ListItemKey::Value(value.canonical_text())),
            Some(("i", index)) => index.parse().ok().map(ListItemKey::Index),
            _ => None,
        };
        read.unwrap_or_else(|| ListItemKey::Other(step.to_owned()))
    }

    /// Whether it identifies this item of a list by its content. An index never does.
    pub fn identifies<T: Tree>(&self, value: &T) -> bool {
        match self {
            ListItemKey::Keys(keys) => {
                keys.iter().all(|(name, key)| value.member(name).is_some_and(|value| value.canonical_text() == *key))
            }
            ListItemKey::Value(text) => value.canonical_text() == *text,
            ListItemKey::Index(_) | ListItemKey::Other(_) => false,
        }
    }

    /// The index in a list of the item that it identifies.
    fn position(&self, list: &[Value]) -> Option<usize> {
        match self {
            ListItemKey::Index(index) => (*index < list.len()).then_some(*index),
            key => list.iter().position(|item| key.identifies(item)),
        }
    }

    fn to_text(&self) -> String {
        match self {
            ListItemKey::Keys(keys) => {
                let keys: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
                format!("k:{{{}}}", keys.join(","))
            }
            ListItemKey::Value(value) => format!("v:{value}"),
            ListItemKey::Index(index) => format!("i:{index}"),
            ListItemKey::Other(step) => step.clone(),
        }
    }
}

/// A set of field paths, as a tree. A node without children that is not `own` is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Whether this node itself is in the set.
    own: bool,
    fields: BTreeMap<String, FieldSet>,
    items: BTreeMap<ListItemKey, FieldSet>,
}

impl FieldSet {
    /// The fields that a manifest sets if its schema is unknown: every value that is not a non-empty mapping. A list is
    /// one field.
    pub fn of_manifest(value: &Value) -> Self {
        match value {
            Value::Object(map) if !map.is_empty() => FieldSet {
                fields: map.iter().map(|(key, value)| (key.clone(), FieldSet::of_manifest(value))).collect(),
                ..FieldSet::default()
            },
            _ => FieldSet { own: true, ..FieldSet::default() },
        }
    }

    /// Parses a `fieldsV1`. An invalid one gives an empty set.
    pub fn parse<T: Tree>(fields_v1: &T) -> Self {
        let mut set = FieldSet::default();
        let ValueView::Map(is_empty) = fields_v1.view() else { return set };
        set.own = is_empty || fields_v1.member(".").is_some();
        fields_v1.all_members(&mut |step, below| {
            let below = || FieldSet::parse(below);
            match step.strip_prefix("f:") {
                _ if step == "." => {}
                Some(name) => drop(set.fields.insert(name.to_owned(), below())),
                None => drop(set.items.insert(ListItemKey::parse(step), below())),
            }
            true
        });
        set
    }

    /// The set of only the field with these names.
    pub fn of_field(names: &[&str]) -> Self {
        match names.split_first() {
            Some((name, rest)) => FieldSet {
                fields: BTreeMap::from([((*name).to_owned(), FieldSet::of_field(rest))]),
                ..FieldSet::default()
            },
            None => FieldSet { own: true, ..FieldSet::default() },
        }
    }

    /// The set in the format of `fieldsV1`.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        if self.own && self.has_below() {
            map.insert(".".into(), Value::Object(Map::new()));
        }
        map.extend(self.fields.iter().map(|(name, below)| (format!("f:{name}"), below.to_json())));
        map.extend(self.items.iter().map(|(item, below)| (item.to_text(), below.to_json())));
        Value::Object(map)
    }

    /// Whether nothing at or below this node is in the set.
    pub fn is_empty(&self) -> bool {
        !self.own && self.fields.values().chain(self.items.values()).all(FieldSet::is_empty)
    }

    /// Whether the node itself is in the set, not only nodes below it.
    pub fn has_itself(&self) -> bool {
        self.own
    }

    /// Whether there are nodes below this one. They may be empty.
    pub fn has_below(&self) -> bool {
        !self.fields.is_empty() || !self.items.is_empty()
    }

    /// The part of the set at a member of a map.
    pub fn field(&self, name: &str) -> Option<&FieldSet> {
        self.fields.get(name)
    }

    /// Moves the fields below one field below another.
    pub fn rename(&mut self, from: &str, to: &str) {
        if let Some(below) = self.fields.remove(from) {
            self.fields.entry(to.to_owned()).or_default().add(&below);
        }
    }

    /// The parts of the set at the members of a map, sorted by name.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &FieldSet)> {
        self.fields.iter().map(|(name, below)| (name.as_str(), below))
    }

    /// The part of the set at the field with these names. It is part of the set, or nodes below it are.
    pub fn below(&self, names: &[&str]) -> Option<&FieldSet> {
        names.iter().try_fold(self, |set, name| set.field(name))
    }

    /// The part of the set at a path.
    pub fn at(&self, path: &[MergePathStep]) -> Option<&FieldSet> {
        path.iter().try_fold(self, |set, step| match step {
            MergePathStep::Field(name) => set.field(name),
            MergePathStep::Item(item) => set.item(item),
        })
    }

    /// Whether the field of `object` at these steps is in the set, a part of it, or a whole that contains it. Without
    /// the object, items of lists are not told apart: any item with the field matches.
    pub fn owns(&self, steps: &[Step], object: Option<&Value>) -> bool {
        let Some((step, rest)) = steps.split_first() else { return true };
        if !self.has_below() {
            return self.own;
        }
        match step {
            Step::Key(name) => {
                let value = object.map(|object| object.get(name).unwrap_or(&Value::Null));
                self.field(name).is_some_and(|below| below.owns(rest, value))
            }
            Step::Index(index) => {
                let item = object.map(|list| list.get(index).unwrap_or(&Value::Null));
                let is_of = |key: &ListItemKey| match (key, item) {
                    (ListItemKey::Index(known), Some(_)) => known == index,
                    (key, Some(item)) => key.identifies(item),
                    (key, None) => !matches!(key, ListItemKey::Other(_)),
                };
                self.items().any(|(key, below)| is_of(key) && below.owns(rest, item))
            }
        }
    }

    /// The part of the set at an item of a list.
    pub fn item(&self, item: &ListItemKey) -> Option<&FieldSet> {
        self.items.get(item)
    }

    /// The parts of the set at the items of a list, sorted.
    pub fn items(&self) -> impl Iterator<Item = (&ListItemKey, &FieldSet)> {
        self.items.iter()
    }

    /// Adds every field of `other`.
    pub fn add(&mut self, other: &FieldSet) {
        fn add_below<K: Ord + Clone>(ours: &mut BTreeMap<K, FieldSet>, other: &BTreeMap<K, FieldSet>) {
            for (step, other) in other {
                ours.entry(step.clone()).or_default().add(other);
            }
        }
        self.own |= other.own;
        add_below(&mut self.fields, &other.fields);
        add_below(&mut self.items, &other.items);
    }

    /// Takes the field at `path` and everything below it out of the set. What is taken is a set of its own, from the
    /// root.
    pub fn split_off(&mut self, path: &[&str]) -> FieldSet {
        let mut taken = FieldSet::default();
        let Some((name, rest)) = path.split_first() else { return taken };
        let Some(below) = self.fields.get_mut(*name) else { return taken };
        let of_below = if rest.is_empty() { std::mem::take(below) } else { below.split_off(rest) };
        if below.is_empty() {
            self.fields.remove(*name);
        }
        if !of_below.is_empty() {
            taken.fields.insert((*name).to_owned(), of_below);
        }
        taken
    }

    /// Keeps only fields that exist in `value`.
    pub fn retain_existing(&mut self, value: &Value) {
        self.fields.retain(|name, below| {
            let Some(value) = value.get(name) else { return false };
            below.retain_existing(value);
            !below.is_empty()
        });
        self.items.retain(|item, below| {
            let Some(list) = value.as_array() else { return false };
            let Some(at) = item.position(list) else { return false };
            below.retain_existing(&list[at]);
            !below.is_empty()
        });
    }

    /// The path of each field in the set, without those of maps and items that have fields of their own in it.
    pub fn paths(&self) -> Vec<Vec<MergePathStep>> {
        fn collect(set: &FieldSet, path: &mut Vec<MergePathStep>, found: &mut Vec<Vec<MergePathStep>>) {
            if set.own && !set.has_below() && !path.is_empty() {
                found.push(path.clone());
            }
            let fields = set.fields.iter().map(|(name, below)| (MergePathStep::Field(name.clone()), below));
            let items = set.items.iter().map(|(item, below)| (MergePathStep::Item(item.clone()), below));
            for (step, below) in fields.chain(items) {
                path.push(step);
                collect(below, path, found);
                path.pop();
            }
        }
        let mut found = Vec::new();
        collect(self, &mut Vec::new(), &mut found);
        found
    }

    /// Removes every field that is also in `other`. Returns whether there was one.
    pub fn subtract(&mut self, other: &FieldSet) -> bool {
        fn subtract_below<K: Ord>(ours: &mut BTreeMap<K, FieldSet>, other: &BTreeMap<K, FieldSet>, changed: &mut bool) {
            ours.retain(|step, below| {
                *changed |= other.get(step).is_some_and(|other| below.subtract(other));
                !below.is_empty()
            });
        }
        let mut changed = self.own && other.own;
        self.own &= !other.own;
        subtract_below(&mut self.fields, &other.fields, &mut changed);
        subtract_below(&mut self.items, &other.items, &mut changed);
        changed
    }

    /// Removes the fields that the value has, whatever their values are.
    pub fn subtract_existing(&mut self, value: &Value) {
        let Value::Object(map) = value else { return *self = FieldSet::default() };
        self.own = false;
        self.fields.retain(|name, below| {
            let Some(value) = map.get(name) else { return true };
            below.subtract_existing(value);
            !below.is_empty()
        });
    }

    /// Removes the field at `path` and everything below it.
    pub fn remove(&mut self, path: &[MergePathStep]) {
        fn remove<K: Ord>(below: &mut BTreeMap<K, FieldSet>, step: &K, rest: &[MergePathStep]) {
            let Some(set) = below.get_mut(step) else { return };
            if !rest.is_empty() {
                set.remove(rest);
            }
            if rest.is_empty() || set.is_empty() {
                below.remove(step);
            }
        }
        match path {
            [] => {}
            [MergePathStep::Field(name), rest @ ..] => remove(&mut self.fields, name, rest),
            [MergePathStep::Item(item), rest @ ..] => remove(&mut self.items, item, rest),
        }
    }
}

impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|fields_v1| FieldSet::parse(&fields_v1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_manifest_sets_leaves_and_whole_lists() {
        let fields = FieldSet::of_manifest(&json!({"data": {"x": "1", "y": null}, "list": [{"a": 1}], "none": {}}));
        assert_eq!(fields.to_json(), json!({"f:data": {"f:x": {}, "f:y": {}}, "f:list": {}, "f:none": {}}));
    }

    #[test]
    fn managed_fields_of_the_server_are_written_back_unchanged() {
        let written = json!({"f:labels": {".": {}, "f:k": {}}, "f:set": {"v:\"a\"": {}, "i:3": {}},
                "f:list": {"k:{\"name\":\"c\",\"port\":80}": {".": {}, "f:image": {}}}});
        assert_eq!(FieldSet::parse(&written).to_json(), written);
        assert!(FieldSet::parse(&json!("nonsense")).is_empty());
    }

    #[test]
    fn a_part_of_a_field_set_is_split_off() {
        let mut fields =
            FieldSet::parse(&json!({"f:metadata": {"f:finalizers": {"v:\"a\"": {}}, "f:labels": {"f:x": {}}}}));
        let taken = fields.split_off(&["metadata", "finalizers"]);
        assert_eq!(taken.to_json(), json!({"f:metadata": {"f:finalizers": {"v:\"a\"": {}}}}));
        assert_eq!(fields.to_json(), json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
        assert!(fields.split_off(&["metadata", "finalizers"]).is_empty());
        fields.add(&taken);
        assert_eq!(fields.paths().len(), 2);
        fields.retain_existing(&json!({"metadata": {"finalizers": ["a"]}}));
        assert_eq!(fields, taken);
    }

    #[test]
    fn a_field_is_owned_by_itself_as_a_part_and_as_a_whole() {
        let fields = FieldSet::parse(&json!({"f:spec": {
            "f:list": {"k:{\"name\":\"b\"}": {".": {}, "f:x": {}}}, "f:set": {"v:\"s\"": {}}, "f:by": {"i:1": {"f:x": {}}},
            "f:atomic": {},
        }}));
        let object = json!({"spec": {"list": [{"name": "a"}, {"name": "b"}], "set": ["r", "s"], "by": [{}, {}]}});
        let owns = |steps: &[Step], is_told_apart: bool| fields.owns(steps, is_told_apart.then_some(&object));
        let spec = |name: &str, index: usize, more: &[&str]| -> Vec<Step> {
            let below = more.iter().map(|name| Step::from(*name));
            [Step::from("spec"), name.into(), index.into()].into_iter().chain(below).collect()
        };
        assert!(owns(&["spec".into()], true), "a part of it");
        assert!(owns(&["spec".into(), "atomic".into(), 3.into()], true), "the whole that contains it");
        assert!(!owns(&["spec".into(), "y".into()], true));
        for (name, below) in [("list", &["x"][..]), ("set", &[]), ("by", &["x"])] {
            assert!(owns(&spec(name, 1, below), true) && !owns(&spec(name, 0, below), true), "{name}");
            assert!(owns(&spec(name, 0, below), false), "{name}");
        }
        assert!(!owns(&spec("list", 0, &["y"]), false));
    }

    #[test]
    fn removing_leaves_no_empty_nodes() {
        let mut fields = FieldSet::of_manifest(&json!({"data": {"x": 1}, "spec": {"y": 2}}));
        fields.remove(&["data", "x"].map(|name| MergePathStep::Field(name.into())));
        assert_eq!(fields.to_json(), json!({"f:spec": {"f:y": {}}}));
        fields.remove(&[MergePathStep::Field("spec".into())]);
        assert!(fields.is_empty());
    }

    #[test]
    fn the_difference_of_two_field_sets_keeps_the_fields_of_the_first_alone() {
        let mut theirs = FieldSet::parse(&json!({"f:spec": {"f:a": {}, "f:b": {}}, "f:data": {".": {}, "f:x": {}}}));
        let ours = FieldSet::parse(&json!({"f:spec": {"f:b": {}, "f:c": {}}, "f:data": {"f:x": {}}}));
        assert!(theirs.subtract(&ours));
        assert_eq!(theirs.to_json(), json!({"f:spec": {"f:a": {}}, "f:data": {}}));
        assert!(!theirs.subtract(&ours));
    }
}
