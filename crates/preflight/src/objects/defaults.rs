//! Defaults that change or are removed. A field with today's default may not be stored: the server fills in defaults
//! when it reads from storage, and the API does not show whether the value is stored.

use serde_json::Value;

use super::place;
use gantry_core::resource::Step;
use gantry_schema::same_value;

/// A default of the live schema that differs in the desired one.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedDefault {
    pub live: Value,
    /// `None` if the default is removed.
    pub desired: Option<Value>,
    /// `spec.list[*].x`
    pub pattern: String,
    /// The place in the desired schema.
    pub at: Vec<Step>,
    way: Vec<DefaultsStep>,
}

#[derive(Debug, Clone, PartialEq)]
enum DefaultsStep {
    Name(String),
    /// Each item of a list.
    Items,
    /// Each entry of a map.
    Entries,
}

/// The defaults that differ, of fields that both schemas have.
pub fn changed(live: &Value, desired: &Value) -> Vec<ChangedDefault> {
    let mut found = Vec::new();
    walk(live, desired, &mut Vec::new(), &mut Vec::new(), &mut found);
    found
}

fn walk(
    live: &Value,
    desired: &Value,
    way: &mut Vec<DefaultsStep>,
    at: &mut Vec<Step>,
    found: &mut Vec<ChangedDefault>,
) {
    let default = |node: &Value| node.get("default").filter(|default| !default.is_null()).cloned();
    if let (Some(before), after) = (default(live), default(desired))
        && !after.as_ref().is_some_and(|after| same_value(after, &before))
    {
        let mut at = at.clone();
        at.push("default".into());
        found.push(ChangedDefault { live: before, desired: after, pattern: pattern(way), at, way: way.clone() });
    }
    let properties = |node: &Value| node.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let successors = properties(desired);
    for (name, child) in &properties(live) {
        if let Some(successor) = successors.get(name) {
            way.push(DefaultsStep::Name(name.clone()));
            at.extend(["properties".into(), name.as_str().into()]);
            walk(child, successor, way, at, found);
            at.truncate(at.len() - 2);
            way.pop();
        }
    }
    for (keyword, down) in [("items", DefaultsStep::Items), ("additionalProperties", DefaultsStep::Entries)] {
        if let (Some(child @ Value::Object(_)), Some(successor @ Value::Object(_))) =
            (live.get(keyword), desired.get(keyword))
        {
            way.push(down);
            at.push(keyword.into());
            walk(child, successor, way, at, found);
            at.pop();
            way.pop();
        }
    }
}

fn pattern(way: &[DefaultsStep]) -> String {
    let mut text = String::new();
    for down in way {
        match down {
            DefaultsStep::Name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(name);
            }
            DefaultsStep::Items | DefaultsStep::Entries => text.push_str("[*]"),
        }
    }
    text
}

impl ChangedDefault {
    /// The places in the object whose value is the live default.
    pub fn places_in(&self, object: &Value) -> Vec<Vec<Step>> {
        let mut places: Vec<Vec<Step>> = vec![Vec::new()];
        for down in &self.way {
            places = places
                .into_iter()
                .flat_map(|place| {
                    let steps: Vec<Step> = match (down, place::value_at(object, &place)) {
                        (DefaultsStep::Name(name), Some(Value::Object(map))) if map.contains_key(name) => {
                            vec![name.as_str().into()]
                        }
                        (DefaultsStep::Items, Some(Value::Array(items))) => (0..items.len()).map(Step::from).collect(),
                        (DefaultsStep::Entries, Some(Value::Object(map))) => {
                            map.keys().map(|key| key.as_str().into()).collect()
                        }
                        _ => Vec::new(),
                    };
                    steps.into_iter().map(move |step| {
                        let mut place = place.clone();
                        place.push(step);
                        place
                    })
                })
                .collect();
        }
        places.retain(|place| place::value_at(object, place) == Some(&self.live));
        places
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changed_defaults_are_found_wherever_they_stand() {
        let schema = |default: Value| {
            json!({"properties": {"a": {"default": default, "type": "string"}, "same": {"default": 1},
                "list": {"items": {"properties": {"b": {"default": default}}}},
                "map": {"additionalProperties": {"properties": {"c": {"default": default}}}}}})
        };
        let found = changed(&schema(json!("x")), &schema(json!("y")));
        let patterns: Vec<&str> = found.iter().map(|changed| changed.pattern.as_str()).collect();
        assert_eq!(patterns, ["a", "list[*].b", "map[*].c"]);
        let object =
            json!({"a": "x", "same": 1, "list": [{"b": "x"}, {"b": "z"}, {}, {"b": "x"}], "map": {"k": {"c": "x"}}});
        let places: Vec<usize> = found.iter().map(|changed| changed.places_in(&object).len()).collect();
        assert_eq!(places, [1, 2, 1]);
        assert_eq!(changed(&schema(json!("x")), &schema(Value::Null)).len(), 3, "a removed default");
        assert_eq!(
            changed(&schema(Value::Null), &schema(json!("x"))),
            [],
            "a new default is found when it is filled in"
        );
    }
}
