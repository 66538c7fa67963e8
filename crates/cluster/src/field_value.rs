//! Compares two objects at a field that the server names.

use serde_json::Value;

/// Whether two objects have the same value at a field, as the server writes it:
/// `.spec.ports[port=80,protocol="TCP"].name`. A field that neither has is the same; one that is found in only one of
/// them, and an item of a list that is not found in both, count as different.
pub fn is_same_at(field: &str, a: &Value, b: &Value) -> bool {
    if field.is_empty() {
        return a == b;
    }
    if let Some(rest) = field.strip_prefix('.') {
        let (Some(of_a), Some(of_b)) = (a.as_object(), b.as_object()) else { return false };
        // A name may contain dots and brackets: try every possible prefix of the path, the longest first.
        let fits = |name: &&String| {
            rest.strip_prefix(name.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let name = of_a.keys().filter(|name| of_b.contains_key(*name)).filter(fits).max_by_key(|name| name.len());
        return match name {
            Some(name) => is_same_at(&rest[name.len()..], &of_a[name], &of_b[name]),
            None => !of_a.keys().chain(of_b.keys()).any(|name| fits(&name)),
        };
    }
    let (Some((selector, rest)), Some(of_a), Some(of_b)) = (selector(field), a.as_array(), b.as_array()) else {
        return false;
    };
    let find = |list: &[Value]| list.iter().position(|item| selector.fits(item));
    match (&selector, find(of_a), find(of_b)) {
        (ItemSelector::Index(index), ..) => {
            of_a.get(*index).zip(of_b.get(*index)).is_some_and(|(a, b)| is_same_at(rest, a, b))
        }
        (_, Some(a), Some(b)) => is_same_at(rest, &of_a[a], &of_b[b]),
        _ => false,
    }
}

/// How a path selects an item of a list.
enum ItemSelector {
    Index(usize),
    /// `="x"`
    Value(Value),
    /// `port=80,protocol="TCP"`
    Keys(Vec<(String, Value)>),
}

impl ItemSelector {
    fn fits(&self, item: &Value) -> bool {
        match self {
            Self::Index(_) => false,
            Self::Value(value) => item == value,
            Self::Keys(keys) => keys.iter().all(|(key, value)| item.get(key) == Some(value)),
        }
    }
}

/// The selector at the start of the path, and the rest.
fn selector(path: &str) -> Option<(ItemSelector, &str)> {
    let mut rest = path.strip_prefix('[')?;
    if let Some((index, behind)) = rest.split_once(']')
        && let Ok(index) = index.parse()
    {
        return Some((ItemSelector::Index(index), behind));
    }
    let mut keys = Vec::new();
    loop {
        let (key, text) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let value = values.next()?.ok()?;
        rest = &text[values.byte_offset()..];
        if key.is_empty() {
            return Some((ItemSelector::Value(value), rest.strip_prefix(']')?));
        }
        keys.push((key.to_owned(), value));
        match rest.strip_prefix(']') {
            Some(behind) => return Some((ItemSelector::Keys(keys), behind)),
            None => rest = rest.strip_prefix(',')?,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_found_by_names_and_keys_that_hold_anything() {
        let a = json!({"metadata": {"annotations": {"a.b/c": "x", "a": {"b/c": 1}, "x[y]": 1}}, "spec": {
            "ports": [{"port": 80, "protocol": "TCP", "name": "a"}, {"port": 80, "protocol": "UDP", "name": "u"}],
            "names": [{"name": "a]b\"c.d", "v": 1}], "set": ["x", 7], "list": [1, 2]}});
        let mut b = a.clone();
        for field in [
            ".metadata.annotations.a.b/c",
            ".metadata.annotations.x[y]",
            ".spec.ports[port=80,protocol=\"UDP\"].name",
            ".spec.names[name=\"a]b\\\"c.d\"].v",
            ".spec.set[=\"x\"]",
            ".spec.set[=7]",
            ".spec.list[1]",
            ".spec.list",
            ".spec.none",
        ] {
            assert!(is_same_at(field, &a, &b), "{field}");
        }
        for field in [".spec.ports[port=81].name", ".spec.list[2]", ".spec.list.x", ".spec.set[=8]", "spec"] {
            assert!(!is_same_at(field, &a, &b), "{field}");
        }
        b["metadata"]["annotations"]["a.b/c"] = json!("y");
        b["spec"]["ports"][1]["name"] = json!("v");
        b["spec"]["names"][0]["v"] = json!(2);
        b["spec"]["list"] = json!([1, 3]);
        b["spec"]["more"] = json!(1);
        for (field, is_same) in [
            (".metadata.annotations.a.b/c", false),
            (".spec.ports[port=80,protocol=\"TCP\"].name", true),
            (".spec.ports[port=80,protocol=\"UDP\"].name", false),
            (".spec.names[name=\"a]b\\\"c.d\"].v", false),
            (".spec.list[0]", true),
            (".spec.list[1]", false),
            (".spec.list", false),
            (".spec.more", false),
        ] {
            assert_eq!(is_same_at(field, &a, &b), is_same, "{field}");
        }
    }
}
