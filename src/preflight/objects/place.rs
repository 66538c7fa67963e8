//! From the text of a path, as the server writes it, to steps: in the object, in the schema, and with what varies from
//! one object to the next (indices and keys of maps) taken out.

use serde_json::Value;

use crate::resource::Step;
use gantry_schema::FieldError;

/// A path taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// In the object.
    pub steps: Vec<Step>,
    /// From the root of the schema to the node that describes the value, or to the nearest one above.
    pub schema: Vec<Step>,
    /// The node that describes the value.
    pub is_described: bool,
    /// `spec.list[*].x`
    pub pattern: String,
    /// Whether all steps are names of fields.
    pub only_names: bool,
}

/// The place of an error: by its steps, else by its text.
pub fn of(error: &FieldError, schema: &Value, object: &Value) -> Place {
    match &error.at {
        // What the server says of the object as a whole stays there.
        Some(steps) if error.path != "<nil>" => at(steps, schema),
        _ => resolve(&error.path, schema, object),
    }
}

/// Takes `text` apart. Two notations occur, `a.key.x[0]` and `a[key].x[0]`, and keys of maps may hold anything: what is
/// a step is told by the schema first, then by the object.
pub fn resolve(text: &str, schema: &Value, object: &Value) -> Place {
    let mut place = Place { is_described: true, only_names: true, ..Place::default() };
    let mut rest = if text == "<nil>" { "" } else { text };
    let mut node = Some(schema);
    let mut value = Some(object);
    while !rest.is_empty() {
        let bracket = rest.starts_with('[');
        let from = if bracket { &rest[1..] } else { rest.strip_prefix('.').unwrap_or(rest) };
        let properties = node.and_then(|node| node.get("properties")).and_then(Value::as_object);
        let items = node.and_then(|node| node.get("items")).filter(|items| items.is_object());
        let index = bracket.then(|| from.split_once(']')).flatten().and_then(|(number, _)| number.parse().ok());
        if let (Some(index), true) = (index, items.is_some() || value.is_some_and(Value::is_array)) {
            let index: usize = index;
            place.steps.push(Step::Index(index));
            place.pattern.push_str("[*]");
            place.only_names = false;
            node = descend(&mut place, node, items, &[Step::from("items")]);
            value = value.and_then(|value| value.get(index));
            rest = from.split_once(']').map_or("", |(_, rest)| rest);
            continue;
        }
        let keys = value.and_then(Value::as_object);
        let is_named = |key: &&str| properties.is_some_and(|properties| properties.contains_key(*key));
        let known = longest(from, bracket, properties.into_iter().flat_map(|map| map.keys()))
            .or_else(|| longest(from, bracket, keys.into_iter().flat_map(|map| map.keys())));
        let key = known.unwrap_or_else(|| {
            let end = if bracket { from.find(']') } else { from.find(['.', '[']) };
            &from[..end.unwrap_or(from.len())]
        });
        let (next, steps) = if is_named(&key) {
            (properties.and_then(|map| map.get(key)), vec![Step::from("properties"), Step::from(key)])
        } else {
            let entries = node.and_then(|node| node.get("additionalProperties")).filter(|entries| entries.is_object());
            (entries, vec![Step::from("additionalProperties")])
        };
        if is_named(&key) || next.is_none() {
            if !place.pattern.is_empty() {
                place.pattern.push('.');
            }
            place.pattern.push_str(key);
        } else {
            place.pattern.push_str("[*]");
            place.only_names = false;
        }
        place.steps.push(Step::from(key));
        node = descend(&mut place, node, next, &steps);
        value = value.and_then(|value| value.get(key));
        rest = &from[key.len()..];
        if bracket {
            rest = rest.strip_prefix(']').unwrap_or(rest);
        }
    }
    place
}

/// The place of known steps.
pub fn at(steps: &[Step], schema: &Value) -> Place {
    let mut place = Place { is_described: true, only_names: true, ..Place::default() };
    let mut node = Some(schema);
    for step in steps {
        let child = |keyword: &str| node.and_then(|node| node.get(keyword)).filter(|child| child.is_object());
        let (next, below) = match step {
            Step::Index(_) => (child("items"), vec![Step::from("items")]),
            Step::Key(key) => match child("properties").and_then(|properties| properties.get(key)) {
                Some(property) => (Some(property), vec![Step::from("properties"), step.clone()]),
                None => (child("additionalProperties"), vec![Step::from("additionalProperties")]),
            },
        };
        match step {
            // What is not described is named as it is.
            Step::Key(key) if below.len() == 2 || next.is_none() => {
                if !place.pattern.is_empty() {
                    place.pattern.push('.');
                }
                place.pattern.push_str(key);
            }
            _ => {
                place.pattern.push_str("[*]");
                place.only_names = false;
            }
        }
        place.steps.push(step.clone());
        node = descend(&mut place, node, next, &below);
    }
    place
}

fn descend<'s>(
    place: &mut Place,
    node: Option<&'s Value>,
    next: Option<&'s Value>,
    steps: &[Step],
) -> Option<&'s Value> {
    match (node, next) {
        (Some(_), Some(next)) => {
            place.schema.extend_from_slice(steps);
            Some(next)
        }
        _ => {
            place.is_described = false;
            None
        }
    }
}

/// The longest of the keys that `text` begins with, as a whole step.
fn longest(text: &str, bracket: bool, keys: impl Iterator<Item = impl AsRef<str>>) -> Option<&str> {
    let fits = |key: &str| {
        let rest = text.strip_prefix(key)?;
        let ends = if bracket { rest.starts_with(']') } else { rest.is_empty() || rest.starts_with(['.', '[']) };
        (ends && !key.is_empty()).then_some(key.len())
    };
    keys.filter_map(|key| fits(key.as_ref())).max().map(|length| &text[..length])
}

/// The value at these steps.
pub fn value_at<'v>(value: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

pub fn value_at_mut<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"properties": {"spec": {"properties": {
            "list": {"items": {"properties": {"x": {"type": "string"}}}},
            "map": {"additionalProperties": {"properties": {"y": {}}}},
            "a.b": {"type": "string"}}}}})
    }

    #[test]
    fn indices_and_keys_are_taken_out_of_the_pattern() {
        let object = json!({"spec": {"list": [{}, {"x": 1}], "map": {"k.8": {"y": 1}, "k": {}}}});
        for (text, pattern, node) in [
            (
                "spec.list[1].x",
                "spec.list[*].x",
                vec!["properties", "spec", "properties", "list", "items", "properties", "x"],
            ),
            (
                "spec.map.k.8.y",
                "spec.map[*].y",
                vec!["properties", "spec", "properties", "map", "additionalProperties", "properties", "y"],
            ),
            (
                "spec.map[k.8].y",
                "spec.map[*].y",
                vec!["properties", "spec", "properties", "map", "additionalProperties", "properties", "y"],
            ),
            ("spec.a.b", "spec.a.b", vec!["properties", "spec", "properties", "a.b"]),
            ("spec.unknown.deep", "spec.unknown.deep", vec!["properties", "spec"]),
            ("<nil>", "", vec![]),
        ] {
            let place = resolve(text, &schema(), &object);
            assert_eq!(place.pattern, pattern, "{text}");
            assert_eq!(place.schema, node.iter().map(|step| Step::from(*step)).collect::<Vec<_>>(), "{text}");
            assert_eq!(place.is_described, !text.contains("unknown"), "{text}");
        }
        let steps = resolve("spec.map[k.8].y", &schema(), &object).steps;
        assert_eq!(value_at(&object, &steps), Some(&json!(1)));
    }
}
