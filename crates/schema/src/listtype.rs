//! Uniqueness in lists of type set and map.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::error::{FieldError, FieldErrorKind, RefusedBy};
use super::node::{AdditionalKeys, ListType, SchemaNode};
use super::path::LinkedPath;
use gantry_k8s_cel::Num;
use gantry_k8s_cel::gotext;

/// The duplicates in the whole object.
pub fn check(object: &Value, node: &SchemaNode) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(object, node, &LinkedPath::Root, &mut errors);
    errors
}

fn walk(value: &Value, node: &SchemaNode, path: &LinkedPath, errors: &mut Vec<FieldError>) {
    if !node.has_unique_lists {
        return;
    }
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            for key in keys {
                let Some(value) = map.get(key) else { continue };
                // A schema has either properties or entries, so a key is never both.
                if let AdditionalKeys::Schema(entry) = &node.additional {
                    walk(value, entry, &LinkedPath::Key(path, key), errors);
                }
                if let Some(child) = node.properties.get(key) {
                    walk(value, child, &LinkedPath::Name(path, key), errors);
                }
            }
        }
        Value::Array(items) => {
            match node.list_type {
                ListType::Atomic => {}
                ListType::Set => {
                    for at in repeated(items.iter().map(identity)) {
                        errors.push(duplicate(path, at, items[at].clone()));
                    }
                }
                ListType::Map => check_map(items, &node.map_keys, path, errors),
            }
            if let Some(item_node) = node.items.as_deref() {
                for (at, item) in items.iter().enumerate() {
                    walk(item, item_node, &LinkedPath::Index(path, at), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_map(items: &[Value], keys: &[String], path: &LinkedPath, errors: &mut Vec<FieldError>) {
    if let Some((at, item)) = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map".to_owned();
        errors.push(of_item(path, at, FieldErrorKind::Invalid, item.clone(), detail));
        return;
    }
    let keys_of: Vec<Value> = items
        .iter()
        .map(|item| {
            let key = |name: &String| Some((name.clone(), item.get(name)?.clone()));
            Value::Object(keys.iter().filter_map(key).collect::<Map<_, _>>())
        })
        .collect();
    let identities: Vec<String> = match keys {
        // A single key is compared like a scalar in a set.
        [key] => keys_of.iter().map(|k| k.get(key).map_or_else(String::new, identity)).collect(),
        _ => keys_of.iter().map(identity).collect(),
    };
    for at in repeated(identities.into_iter()) {
        errors.push(duplicate(path, at, keys_of[at].clone()));
    }
}

fn duplicate(list: &LinkedPath, at: usize, value: Value) -> FieldError {
    of_item(list, at, FieldErrorKind::Duplicate, value, String::new())
}

/// An error about an item, reported by the type of its list.
fn of_item(list: &LinkedPath, at: usize, kind: FieldErrorKind, value: Value, detail: String) -> FieldError {
    let by = RefusedBy::Keyword(list.keyword("x-kubernetes-list-type"));
    let item = LinkedPath::Index(list, at);
    FieldError { at: item.steps(), path: item.field(), by, kind, bad_value: Some(value), detail: detail.into() }
}

/// A text that is equal for equal values. Scalars of different types are never equal, but within lists and objects an
/// integer equals the same float.
fn identity(value: &Value) -> String {
    match value {
        Value::Number(n) => match Num::from(n) {
            Num::Int(i) => format!("i{i}"),
            Num::Float(f) => format!("f{}", if f == 0.0 { 0.0 } else { f }),
        },
        other => gotext::json(other),
    }
}

/// The index of the second occurrence of each value that occurs again.
fn repeated(identities: impl Iterator<Item = String>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut second = Vec::new();
    for (at, identity) in identities.enumerate() {
        let times = seen.entry(identity).or_insert(0);
        *times += 1;
        if *times == 2 {
            second.push(at);
        }
    }
    second
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Schema;
    use super::*;

    fn texts(schema: Value, object: Value) -> Vec<String> {
        let schema = Schema::compile(&json!({"type": "object", "properties": {"l": schema}})).expect("a schema");
        check(&object, schema.root()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_set_names_the_second_of_equal_items() {
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
        assert_eq!(texts(set, json!({"l": ["a", "b", "a", "a"]})), ["l[2]: Duplicate value: \"a\""]);
    }

    #[test]
    fn items_of_a_list_of_type_map_are_compared_by_the_keys_that_they_have() {
        let map = |keys: Value| {
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
                "items": {"type": "object", "properties": {"k": {"type": "string"}, "p": {"type": "integer"}}}})
        };
        let object = json!({"l": [{"k": "a", "p": 1}, {"p": 1}, {"k": "a", "p": 2}, {"p": 1}]});
        assert_eq!(
            texts(map(json!(["k"])), object.clone()),
            ["l[2]: Duplicate value: {\"k\":\"a\"}", "l[3]: Duplicate value: {}"]
        );
        assert_eq!(texts(map(json!(["k", "p"])), object), ["l[3]: Duplicate value: {\"p\":1}"]);
    }
}
