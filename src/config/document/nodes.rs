//! Parts of a YAML node.

use gantry_yaml::{Data, Entry, Node};

use crate::resource::Step;

pub fn find<'a>(root: &'a Node, steps: &[Step]) -> Option<&'a Node> {
    steps.iter().try_fold(root, |node, step| match (step, &node.data) {
        (Step::Key(key), Data::Mapping(_)) => entry(node, key).map(|entry| &entry.value),
        (Step::Index(index), Data::Sequence(items)) => items.get(*index),
        _ => None,
    })
}

pub fn entries(node: &Node) -> Option<&[Entry]> {
    match &node.data {
        Data::Mapping(entries) => Some(entries),
        _ => None,
    }
}

pub fn entry<'a>(node: &'a Node, key: &str) -> Option<&'a Entry> {
    entries(node)?.iter().find(|entry| entry.key == key)
}

pub fn text_of(node: &Node) -> Option<&str> {
    match &node.data {
        Data::Scalar(serde_json::Value::String(text)) => Some(text),
        _ => None,
    }
}

pub fn is_null(node: &Node) -> bool {
    node.data == Data::Scalar(serde_json::Value::Null)
}
