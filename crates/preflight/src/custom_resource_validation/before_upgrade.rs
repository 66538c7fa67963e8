//! Whether objects can be made valid before an upgrade: only with values that the live CRD keeps and accepts, too.

use serde_json::Value;

use crate::objects::place::value_at;
use gantry_core::crd::Crd;
use gantry_core::resource::Step;

/// What the live CRD allows for a field that the desired one refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Possible {
    /// A valid value can be written, as far as is known.
    Yes,
    /// The live CRD does not have the field, so the server drops it.
    Pruned,
    /// No value is valid for both. What a schema needs that accepts the values of both, in words.
    NoCommonValue(&'static str),
}

/// Whether objects can get a value for `field`, which the keyword at `at` in the schema of `version` refuses.
pub fn possible(live: &Crd, desired: &Crd, version: &str, field: &str, at: &[Step]) -> Possible {
    // With a webhook, only the webhook knows what becomes of a value.
    if live.converts_by_webhook() || desired.converts_by_webhook() {
        return Possible::Yes;
    }
    let of_live = live.version(version).or_else(|| live.storage()).and_then(|version| version.schema_value().ok());
    let of_desired = desired.version(version).and_then(|version| version.schema_value().ok());
    let (Some(of_live), Some(of_desired)) = (of_live, of_desired) else { return Possible::Yes };
    compare(&of_live, &of_desired, &steps_to_judged_node(&of_desired, field, at))
}

/// The steps from the root of a schema to the node whose value a keyword is about: for `required`, the missing field.
fn steps_to_judged_node(schema: &Value, field: &str, at: &[Step]) -> Vec<Step> {
    let mut length = 0;
    loop {
        length += match &at[length..] {
            [Step::Key(keyword), Step::Key(_), ..] if keyword == "properties" => 2,
            [Step::Key(keyword), ..] if keyword == "items" || keyword == "additionalProperties" => 1,
            _ => break,
        };
    }
    let mut place = at[..length].to_vec();
    if at.get(length) == Some(&Step::from("required")) {
        let names = value_at(schema, &at[..=length]).and_then(Value::as_array).into_iter().flatten();
        let is_it = |name: &&str| field.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        // A name may contain dots.
        if let Some(name) = names.filter_map(Value::as_str).filter(is_it).max_by_key(|name| name.len()) {
            place.extend(["properties".into(), name.into()]);
        }
    }
    place
}

fn compare(live: &Value, desired: &Value, place: &[Step]) -> Possible {
    let (mut live, mut rest) = (live, place);
    while let [keyword, ..] = rest {
        if live["x-kubernetes-preserve-unknown-fields"] == true && value_at(live, &rest[..1]).is_none() {
            return Possible::Yes;
        }
        let is_property = *keyword == Step::from("properties");
        let length = if is_property { 2 } else { 1 };
        live = match value_at(live, &rest[..length]) {
            Some(below) if below.is_object() => below,
            _ if is_property && live["additionalProperties"].is_object() => &live["additionalProperties"],
            _ if live["x-kubernetes-preserve-unknown-fields"] == true => return Possible::Yes,
            _ => return Possible::Pruned,
        };
        rest = &rest[length..];
    }
    let Some(desired) = value_at(desired, place) else { return Possible::Yes };
    if let (Some(live), Some(desired)) = (types(live), types(desired))
        && !live.iter().any(|of| desired.contains(of))
    {
        return Possible::NoCommonValue("x-kubernetes-preserve-unknown-fields: true and no type");
    }
    if let (Some(live), Some(desired)) = (live["enum"].as_array(), desired["enum"].as_array())
        && !live.iter().any(|value| desired.contains(value))
    {
        return Possible::NoCommonValue("the values of both enums");
    }
    let ranges = [
        ("minimum", "maximum"),
        ("minLength", "maxLength"),
        ("minItems", "maxItems"),
        ("minProperties", "maxProperties"),
    ];
    let is_apart = |(least, most): (&str, &str)| {
        let bound = |schema: &Value, keyword: &str| schema[keyword].as_f64();
        let above =
            |a: &Value, b: &Value| bound(a, least).zip(bound(b, most)).is_some_and(|(least, most)| least > most);
        above(live, desired) || above(desired, live)
    };
    if ranges.into_iter().any(is_apart) {
        return Possible::NoCommonValue("bounds that include both");
    }
    Possible::Yes
}

/// The types of values that a node accepts; `None` for all.
fn types(schema: &Value) -> Option<Vec<&str>> {
    if schema["x-kubernetes-int-or-string"] == true {
        return Some(vec!["integer", "string"]);
    }
    match schema["type"].as_str()? {
        // An integer is a number.
        "number" => Some(vec!["integer", "number"]),
        other => Some(vec![other]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_values_that_the_live_schema_accepts_and_keeps_are_possible_before_the_upgrade() {
        let spec = |properties: Value| json!({"properties": {"spec": {"properties": properties, "required": ["x"]}}});
        let required: Vec<Step> = vec!["properties".into(), "spec".into(), "required".into()];
        let is =
            |live: &Value, desired: &Value| compare(live, desired, &steps_to_judged_node(desired, "spec.x", &required));
        let text = json!({"type": "string"});
        let open = json!({"properties": {"spec": {"x-kubernetes-preserve-unknown-fields": true}}});
        let map = json!({"properties": {"spec": {"additionalProperties": text}}});
        let desired = spec(json!({"x": text}));
        for (live, expected) in [
            (spec(json!({})), Possible::Pruned),
            (json!({}), Possible::Pruned),
            (open, Possible::Yes),
            (map, Possible::Yes),
            (spec(json!({"x": text})), Possible::Yes),
            (spec(json!({"x": {"x-kubernetes-int-or-string": true}})), Possible::Yes),
            (
                spec(json!({"x": {"type": "object"}})),
                Possible::NoCommonValue("x-kubernetes-preserve-unknown-fields: true and no type"),
            ),
        ] {
            assert_eq!(is(&live, &desired), expected, "{live}");
        }
        let node = |node: Value| spec(json!({"x": node}));
        let is = |live: Value, desired: Value| is(&node(live), &node(desired));
        assert_eq!(is(json!({"type": "integer"}), json!({"type": "number"})), Possible::Yes);
        assert_eq!(is(json!({"enum": ["a", "b"]}), json!({"enum": ["b", "c"]})), Possible::Yes);
        let no_value = |live, desired| matches!(is(live, desired), Possible::NoCommonValue(_));
        assert!(no_value(json!({"enum": ["a"]}), json!({"enum": ["b"]})));
        assert!(no_value(json!({"maximum": 3}), json!({"minimum": 4})));
        assert!(no_value(json!({"minLength": 5}), json!({"maxLength": 4})));
    }
}
