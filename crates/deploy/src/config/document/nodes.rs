//! Parts of a YAML node.

use gantry_yaml::{Data, MappingEntry, YamlNode};

use gantry_core::resource::Step;

pub fn find<'a>(root: &'a YamlNode, steps: &[Step]) -> Option<&'a YamlNode> {
    steps.iter().try_fold(root, |node, step| match (step, &node.data) {
        (Step::Key(key), Data::Mapping(_)) => entry(node, key).map(|entry| &entry.value),
        (Step::Index(index), Data::Sequence(items)) => items.get(*index),
        _ => None,
    })
}

pub fn entries(node: &YamlNode) -> Option<&[MappingEntry]> {
    match &node.data {
        Data::Mapping(entries) => Some(entries),
        _ => None,
    }
}

pub fn entry<'a>(node: &'a YamlNode, key: &str) -> Option<&'a MappingEntry> {
    entries(node)?.iter().find(|entry| entry.key == key)
}

pub fn text_of(node: &YamlNode) -> Option<&str> {
    match &node.data {
        Data::Scalar(serde_json::Value::String(text)) => Some(text),
        _ => None,
    }
}

pub fn is_null(node: &YamlNode) -> bool {
    node.data == Data::Scalar(serde_json::Value::Null)
}
