//! Finds values of an object that are missing or different after a conversion.

use serde_json::Value;

use crate::resource::Step;

/// A value that is missing or different.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversionLoss {
    /// The steps to the value.
    pub path: Vec<Step>,
    /// The value before the conversion.
    pub value: Value,
    /// The value that is there now, if any.
    pub now: Option<Value>,
}

impl ConversionLoss {
    /// Whether `other` is the same change: the same field is missing, or set to another value.
    pub fn is_same_change(&self, other: &ConversionLoss) -> bool {
        self.path == other.path && (self.now == other.now || self.now.is_some() && other.now.is_some())
    }
}

/// Every value of `before` that `after` does not have at the same path: the values that a round trip lost or changed.
pub fn differences(before: &Value, after: &Value) -> Vec<ConversionLoss> {
    let mut losses = Vec::new();
    for (key, value) in content(before) {
        walk(value, after.get(key), &mut vec![key.into()], &mut losses);
    }
    let metadata = |object: &Value, key: &str| object.get("metadata").and_then(|metadata| metadata.get(key)).cloned();
    for key in ["labels", "annotations"] {
        if let Some(value) = metadata(before, key) {
            walk(&value, metadata(after, key).as_ref(), &mut vec!["metadata".into(), key.into()], &mut losses);
        }
    }
    losses
}

/// The values of `stored` that `read`, the same object at another version, does not have at all: neither at the same
/// path, nor at another one, nor inside a string such as an annotation.
///
/// A path that has another value was converted. A value that could occur anywhere (`true`, an empty string) is only
/// reported if `describes` says that the other version has its field.
pub fn find_losses(stored: &Value, read: &Value, describes: impl Fn(&[Step]) -> bool) -> Vec<ConversionLoss> {
    let mut losses = Vec::new();
    for (key, value) in content(stored) {
        walk(value, read.get(key), &mut vec![key.into()], &mut losses);
    }
    losses.retain(|loss| {
        if loss.now.is_some() {
            return false;
        }
        let is_distinctive = match &loss.value {
            Value::String(text) => !text.is_empty(),
            Value::Number(number) => number.as_i64().is_none_or(|number| !(-1..=1).contains(&number)),
            _ => false,
        };
        if is_distinctive { !occurs(&loss.value, read) } else { describes(&loss.path) }
    });
    losses
}

/// The members of the object except its type and metadata.
fn content(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let members = object.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value));
    members.filter(|(key, _)| !matches!(*key, "apiVersion" | "kind" | "metadata"))
}

fn walk(before: &Value, after: Option<&Value>, path: &mut Vec<Step>, losses: &mut Vec<ConversionLoss>) {
    match before {
        Value::Object(map) => {
            for (key, value) in map {
                path.push(key.as_str().into());
                walk(value, after.and_then(|after| after.get(key)), path, losses);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.into());
                walk(item, after.and_then(|after| after.get(index)), path, losses);
                path.pop();
            }
        }
        Value::Null => {}
        value if after == Some(value) => {}
        value => losses.push(ConversionLoss { path: path.clone(), value: value.clone(), now: after.cloned() }),
    }
}

/// Whether a value occurs anywhere in an object, also inside a string.
fn occurs(value: &Value, within: &Value) -> bool {
    match within {
        Value::Object(map) => map.values().any(|inner| occurs(value, inner)),
        Value::Array(items) => items.iter().any(|inner| occurs(value, inner)),
        Value::String(text) => match value {
            Value::String(value) => text.contains(value.as_str()),
            value => text.contains(&value.to_string()),
        },
        other => other == value,
    }
}

/// `spec.list[0].x`
pub fn show_path(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        match step {
            Step::Key(key) if out.is_empty() => out.push_str(key),
            Step::Key(key) => out.push_str(&format!(".{key}")),
            Step::Index(index) => out.push_str(&format!("[{index}]")),
        }
    }
    out
}

/// Whether the schema describes the field at this path.
pub fn is_described(schema: Option<&Value>, path: &[Step]) -> bool {
    let mut node = schema;
    for step in path {
        node = match step {
            Step::Key(key) => node.and_then(|node| {
                let declared = node.get("properties").and_then(|properties| properties.get(key));
                declared.or_else(|| node.get("additionalProperties").filter(|values| values.is_object()))
            }),
            Step::Index(_) => node.and_then(|node| node.get("items")),
        };
    }
    node.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(losses: &[ConversionLoss]) -> Vec<String> {
        losses.iter().map(|loss| show_path(&loss.path)).collect()
    }

    #[test]
    fn values_that_a_conversion_loses_or_changes_are_found() {
        let before = json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"labels": {"a": "b"}, "generation": 1},
            "spec": {"size": "5m", "list": [{"x": 1}, {"x": 2}], "gone": {"y": true}, "none": null}});
        assert_eq!(differences(&before, &before), []);
        let after = json!({"apiVersion": "a/v2", "metadata": {"generation": 2},
            "spec": {"size": "300s", "list": [{"x": 1}], "more": 1}});
        assert_eq!(
            paths(&differences(&before, &after)),
            ["spec.size", "spec.list[1].x", "spec.gone.y", "metadata.labels.a"]
        );
    }

    #[test]
    fn a_value_that_a_conversion_moves_is_not_missing() {
        let stored =
            json!({"spec": {"size": "5m", "color": "red", "count": 70, "flag": true, "other": false, "kept": "blue"}});
        let read = json!({"metadata": {"annotations": {"stored": "{\"kept\":\"blue\"}"}},
            "spec": {"size": "300s", "amount": {"count": 70}}});
        let describes = |path: &[Step]| show_path(path) == "spec.flag";
        assert_eq!(paths(&find_losses(&stored, &read, describes)), ["spec.color", "spec.flag"]);
    }
}
