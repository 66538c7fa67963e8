//! Objects with long lists, shortened so that their rules can be repaired, and made long again.

use serde_json::Value;

/// Lists of more items than this are shortened to their first item.
const LONG: usize = 12;

/// An object in which long lists have one item.
pub(super) struct LongLists {
    pub short: Value,
    /// The JSON pointers to the lists and their items.
    lists: Vec<(String, Vec<Value>)>,
}

impl LongLists {
    pub fn shorten(mut object: Value) -> Self {
        let mut lists = Vec::new();
        cut_lists(&mut object, &mut String::new(), &mut lists);
        LongLists { short: object, lists }
    }

    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// `repaired`, a changed form of the short object, with long lists again: each item is like the first one, except
    /// for the fields in which it differed from the first one before.
    pub fn lengthened(self, mut repaired: Value) -> Value {
        for (pointer, items) in self.lists {
            let Some(list) = repaired.pointer_mut(&pointer).and_then(Value::as_array_mut) else { continue };
            let (Some(like), Some(first)) = (list.first().cloned(), items.first()) else { continue };
            *list = items.iter().map(|item| with_differences(&like, first, item)).collect();
        }
        repaired
    }
}

fn cut_lists(value: &mut Value, pointer: &mut String, lists: &mut Vec<(String, Vec<Value>)>) {
    let length = pointer.len();
    match value {
        Value::Object(map) => {
            for (name, below) in map.iter_mut() {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                cut_lists(below, pointer, lists);
                pointer.truncate(length);
            }
        }
        Value::Array(items) if items.len() > LONG => {
            lists.push((pointer.clone(), items.clone()));
            items.truncate(1);
        }
        _ => {}
    }
}

fn with_differences(like: &Value, first: &Value, item: &Value) -> Value {
    let mut like = like.clone();
    match (like.as_object_mut(), first, item) {
        (Some(map), Value::Object(first), Value::Object(item)) => {
            for (name, value) in item.iter().filter(|(name, value)| first.get(*name) != Some(value)) {
                map.insert(name.clone(), value.clone());
            }
            like
        }
        _ if first == item => like,
        _ => item.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_items_of_a_lengthened_list_keep_their_differences() {
        let items: Vec<Value> = (0..20).map(|n| json!({"name": n, "a": 1})).collect();
        let long = LongLists::shorten(json!({"spec": {"l/1": items, "few": [1, 2]}}));
        assert_eq!(long.short, json!({"spec": {"l/1": [{"name": 0, "a": 1}], "few": [1, 2]}}));
        let whole = long.lengthened(json!({"spec": {"l/1": [{"name": 0, "a": 2, "b": 3}], "few": [1]}}));
        let list = whole["spec"]["l/1"].as_array().expect("a list");
        assert_eq!((list.len(), &list[19]), (20, &json!({"name": 19, "a": 2, "b": 3})));
        assert_eq!(whole["spec"]["few"], json!([1]));
        assert!(LongLists::shorten(json!({"l": [1]})).is_empty());
    }
}
