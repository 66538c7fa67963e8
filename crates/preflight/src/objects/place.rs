//! A place in an object, its place in the schema, and a pattern that is the same for all objects: indices and keys of
//! maps are replaced by `[*]`.

use serde_json::Value;

use gantry_core::resource::Step;

/// A place in an object, and in its schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectPlace {
    /// The steps in the object.
    pub steps: Vec<Step>,
    /// The steps from the root of the schema to the node that describes the value, or to its nearest described
    /// ancestor.
    pub schema: Vec<Step>,
    /// Whether the schema describes the value.
    pub is_described: bool,
    /// `spec.list[*].x`
    pub pattern: String,
    /// Whether all steps are names of fields.
    pub only_names: bool,
}

/// The place at the end of these steps in an object.
pub fn find_place(steps: &[Step], schema: &Value) -> ObjectPlace {
    let mut place = ObjectPlace { is_described: true, only_names: true, ..ObjectPlace::default() };
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
            // A key that the schema does not describe is kept.
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
    place: &mut ObjectPlace,
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

/// The value at these steps.
pub fn value_at<'v>(value: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
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
    fn the_pattern_of_a_path_has_no_indices_and_keys() {
        let key = |key: &str| Step::from(key);
        for (steps, pattern, node) in [
            (
                vec![key("spec"), key("list"), 1.into(), key("x")],
                "spec.list[*].x",
                vec!["properties", "spec", "properties", "list", "items", "properties", "x"],
            ),
            (
                vec![key("spec"), key("map"), key("k.8"), key("y")],
                "spec.map[*].y",
                vec!["properties", "spec", "properties", "map", "additionalProperties", "properties", "y"],
            ),
            (vec![key("spec"), key("a.b")], "spec.a.b", vec!["properties", "spec", "properties", "a.b"]),
            (vec![key("spec"), key("unknown"), key("deep")], "spec.unknown.deep", vec!["properties", "spec"]),
            (vec![], "", vec![]),
        ] {
            let place = find_place(&steps, &schema());
            assert_eq!(place.pattern, pattern);
            assert_eq!(place.schema, node.iter().map(|step| Step::from(*step)).collect::<Vec<_>>(), "{pattern}");
            assert_eq!(place.is_described, !pattern.contains("unknown"), "{pattern}");
            assert_eq!(place.steps, steps);
        }
    }
}
