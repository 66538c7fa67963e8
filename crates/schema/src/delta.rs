//! The difference between two schemas.
//!
//! A change to a schema cannot affect an object where both versions mean the same: there, objects are pruned,
//! defaulted and validated identically. Such parts keep only their defaults, which the surrounding parts may depend
//! on.

use serde_json::Value;

use super::by_name::ByName;
use super::compile::update_summary;
use super::node::{AdditionalKeys, Bounds, ListType, SchemaNode, is_declared};
use crate::{self as schema, Sense};

/// Removes from `node`, compiled from `schema`, whatever means the same in `other`. The node itself is assumed to
/// differ.
pub fn narrow(node: &mut SchemaNode, schema: &Value, other: &Value) {
    // Branches constrain values below the node as well.
    if node.combined.is_some() {
        return;
    }
    // Rules below begin to count, even if they do not change. Items of a list that has other keys are paired with other
    // old items, so updates tolerate other errors in them.
    let is_revealed = node.is_declared && !is_declared(other);
    let is_paired_anew = is_paired_anew(schema, other);
    let below = |child: &mut SchemaNode, schema: Option<&Value>, other: Option<&Value>| match (schema, other) {
        _ if is_paired_anew || is_revealed && child.has_rules => {}
        (Some(schema), Some(other)) if same_for_objects(schema, other) => *child = only_defaults(std::mem::take(child)),
        (Some(schema), Some(other)) => narrow(child, schema, other),
        _ => {}
    };
    for (name, child) in node.properties.iter_mut() {
        below(child, at(schema, &["properties", name]), at(other, &["properties", name]));
    }
    if let Some(child) = node.items.as_deref_mut() {
        below(child, at(schema, &["items"]), at(other, &["items"]));
    }
    if let AdditionalKeys::Schema(child) = &mut node.additional {
        below(child, at(schema, &["additionalProperties"]), at(other, &["additionalProperties"]));
    }
    update_summary(node);
}

/// Whether an update pairs the items of a list with others of the old list than under the other schema.
fn is_paired_anew(schema: &Value, other: &Value) -> bool {
    let keys = |schema: &Value| {
        let is_map = schema.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("map");
        schema.get("x-kubernetes-list-map-keys").filter(|_| is_map).cloned()
    };
    keys(schema) != keys(other)
}

fn at<'s>(schema: &'s Value, path: &[&str]) -> Option<&'s Value> {
    path.iter().try_fold(schema, |schema, step| schema.get(step))
}

/// A node that accepts and keeps everything, with the same defaults as `node`.
fn only_defaults(node: SchemaNode) -> SchemaNode {
    let pairing = pairing(&node);
    let kept = |child: SchemaNode| Some(only_defaults(child)).filter(|child| child.has_defaults);
    let properties = node.properties.into_iter().filter_map(|(name, child)| Some((name, kept(child)?)));
    let mut reduced = SchemaNode {
        is_declared: node.is_declared,
        nullable: node.nullable,
        default: node.default,
        default_weight: node.default_weight,
        preserve_unknown: true,
        has_only_defaults: true,
        pairing,
        properties: properties.collect(),
        items: node.items.and_then(|child| kept(*child)).map(Box::new),
        additional: match node.additional {
            AdditionalKeys::Schema(child) => {
                kept(*child).map_or(AdditionalKeys::Absent, |kept| AdditionalKeys::Schema(kept.into()))
            }
            _ => AdditionalKeys::Absent,
        },
        ..SchemaNode::default()
    };
    update_summary(&mut reduced);
    reduced
}

/// What ratcheting needs to correlate old and new values below a node: see [`super::correlate`]. `None` if every key
/// is described and no list has type map: equal values are then unchanged.
fn pairing(node: &SchemaNode) -> Option<Box<SchemaNode>> {
    let is_map = node.list_type == ListType::Map;
    let leaf =
        |child: &SchemaNode| SchemaNode { has_only_defaults: true, pairing: pairing(child), ..SchemaNode::default() };
    let properties: ByName<Box<str>, SchemaNode> =
        node.properties.iter().map(|(name, child)| (name.into(), leaf(child))).collect();
    let entries = node.additional.schema().map(leaf);
    let is_plain = !is_map
        && !node.preserve_unknown
        && !node.embedded
        && matches!(node.additional, AdditionalKeys::Absent | AdditionalKeys::Schema(_))
        && properties.values().chain(&entries).all(|child| child.pairing.is_none());
    if is_plain {
        return None;
    }
    Some(Box::new(SchemaNode {
        list_type: node.list_type,
        map_keys: node.map_keys.clone(),
        properties,
        additional: entries.map_or(AdditionalKeys::Absent, |entries| AdditionalKeys::Schema(entries.into())),
        // Items of other lists are not correlated.
        items: node.items.as_deref().filter(|_| is_map).map(|child| Box::new(leaf(child))),
        ..SchemaNode::default()
    }))
}

/// Whether both schemas treat objects identically.
fn same_for_objects(a: &Value, b: &Value) -> bool {
    schema::same_schema(a, b, Sense::Objects)
}

/// Whether the value of a field can affect the outcome at `node`.
pub fn looks_at(node: &SchemaNode, field: &str) -> bool {
    let SchemaNode { rules, combined, enumeration, required, property_count, .. } = node;
    let as_a_whole = rules.is_some() || combined.is_some() || !enumeration.is_empty();
    if field == "metadata" {
        // Rules see only the names in the metadata, which are always present.
        return as_a_whole && rules.is_none();
    }
    as_a_whole
        || *property_count != Bounds::default()
        || required.iter().any(|name| name == field)
        || node.child(field).is_none_or(|child| !child.has_only_defaults || child.has_defaults)
}

/// Whether pruning and defaulting leave the value unchanged. `keeps` is whether unknown fields are kept regardless of
/// the node, as in the items of a list that keeps them.
pub fn is_settled(value: &Value, node: Option<&SchemaNode>, keeps: bool, is_resource: bool) -> bool {
    let keeps = keeps || node.is_some_and(|node| node.preserve_unknown);
    match value {
        Value::Object(map) => {
            let of_child = |(key, value): (&String, &Value)| {
                if is_resource && matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
                    return true;
                }
                let Some(node) = node else { return false };
                match (node.child(key), &node.additional) {
                    (Some(child), _) if value.is_null() => child.nullable,
                    (Some(child), _) => is_settled(value, Some(child), false, child.embedded),
                    (None, AdditionalKeys::Absent) => keeps,
                    (None, _) => is_settled(value, None, false, false),
                }
            };
            let is_missing = |(name, child): (&str, &SchemaNode)| child.default.is_some() && !map.contains_key(name);
            map.iter().all(of_child)
                && !node.is_some_and(|node| node.has_defaults && node.properties.iter().any(is_missing))
        }
        Value::Array(items) => match node.and_then(|node| node.items.as_deref()) {
            Some(node) => items.iter().all(|item| match item {
                Value::Null => node.nullable || node.default.is_none(),
                item => is_settled(item, Some(node), keeps, node.embedded),
            }),
            None => keeps || items.iter().all(|item| is_settled(item, None, false, false)),
        },
        _ => true,
    }
}

/// Whether some rule in the schema uses `oldSelf`. With `other`, only the parts that differ from it count.
pub fn looks_back(schema: &Value, other: Option<&Value>) -> bool {
    if other.is_some_and(|other| same_for_objects(schema, other)) {
        return false;
    }
    let Value::Object(map) = schema else { return false };
    let counts_anew = |other: &Value| is_declared(schema) && !is_declared(other) || is_paired_anew(schema, other);
    let other = other.filter(|other| !counts_anew(other));
    map.iter().any(|(keyword, value)| {
        let there = other.and_then(|other| other.get(keyword));
        match (keyword.as_str(), value) {
            ("properties", Value::Object(children)) => {
                let other = |name| there.and_then(|there| there.get(name));
                children.iter().any(|(name, child)| looks_back(child, other(name)))
            }
            ("items" | "additionalProperties", child) => looks_back(child, there),
            // Branches are never removed.
            ("allOf", Value::Array(branches)) => branches.iter().any(|branch| looks_back(branch, None)),
            ("x-kubernetes-validations", rules) => rules
                .as_array()
                .into_iter()
                .flatten()
                .any(|rule| rule.get("rule").and_then(Value::as_str).is_some_and(|rule| rule.contains("oldSelf"))),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Schema;
    use super::*;

    fn changes(live: Value, desired: Value) -> Schema {
        let around = |spec: Value| {
            let kept = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
            json!({"type": "object", "properties": {"spec": spec, "kept": kept}})
        };
        Schema::compile_beside(&around(desired), &around(live)).expect("a schema")
    }

    #[test]
    fn changed_rules_about_unchanged_fields_are_evaluated() {
        let rules = json!([{"rule": "self.size() < 3"}]);
        let with_rules = |mut schema: Value| {
            schema["x-kubernetes-validations"] = rules.clone();
            schema
        };
        let text = json!({"type": "string", "maxLength": 9});
        let values = json!({"type": "object", "maxProperties": 9, "additionalProperties": text});
        let items = json!({"type": "array", "maxItems": 9, "items": text});
        let untyped = |spec: Value| {
            let mut spec = spec;
            spec.as_object_mut().unwrap().shift_remove("type");
            spec["x-kubernetes-preserve-unknown-fields"] = true.into();
            spec
        };
        let open = |spec: &Value| {
            let mut spec = spec.clone();
            spec["x-kubernetes-preserve-unknown-fields"] = true.into();
            spec
        };
        let within = |field: Value| json!({"type": "object", "properties": {"a": field, "b": {"type": "string"}}});
        let (old_rule, back) = (with_rules(text.clone()), json!([{"rule": "self == oldSelf || self.size() < 3"}]));
        let mut looks_back = text.clone();
        looks_back["x-kubernetes-validations"] = back;
        let new = json!({"a": "aaa", "b": "b"});
        for (live, desired, refused, accepted) in [
            (items.clone(), with_rules(items), json!(["a", "b", "c"]), json!(["a"])),
            (values.clone(), with_rules(values), json!({"a": "", "b": "", "c": ""}), json!({"a": ""})),
            // Rules that did not count before.
            (untyped(within(old_rule.clone())), open(&within(old_rule.clone())), new.clone(), json!({"a": "aa"})),
            (
                json!({"type": "array", "items": untyped(within(old_rule.clone()))}),
                json!({"type": "array", "items": open(&within(old_rule.clone()))}),
                json!([new]),
                json!([]),
            ),
            (
                json!({"type": "object", "additionalProperties": untyped(within(old_rule.clone()))}),
                json!({"type": "object", "additionalProperties": open(&within(old_rule))}),
                json!({"k": new}),
                json!({}),
            ),
        ] {
            let schema = changes(live, desired.clone());
            for (spec, expected) in [(refused, 1), (accepted, 0)] {
                let object = json!({"metadata": {"name": "x"}, "spec": spec});
                assert_eq!(schema.validate(&object, None).errors.len(), expected, "{desired} {spec}");
            }
        }
        let schema = changes(untyped(within(looks_back.clone())), open(&within(looks_back)));
        assert!(schema.looks_back());
    }

    #[test]
    fn defaults_of_unchanged_parts_are_filled_in_if_a_change_needs_them() {
        let items = json!({"type": "array", "items": {"type": "object", "properties": {"y": {"default": 2, "type": "integer"}}}});
        let inner = json!({"type": "object", "properties": {"x": {"default": 1, "type": "integer"}, "l": items}});
        let live = json!({"type": "object", "properties": {"p": inner}});
        let mut desired = live.clone();
        desired["properties"]["p"]["default"] = json!({"l": [{}]});
        desired["properties"]["p"]["required"] = json!(["x"]);
        let schema = changes(live, desired);
        for (object, expected) in [
            (json!({"spec": {}}), json!({"spec": {"p": {"l": [{"y": 2}], "x": 1}}})),
            (json!({"spec": {"p": {}}}), json!({"spec": {"p": {"x": 1}}})),
        ] {
            let mut filled = object.clone();
            schema.prepare(&mut filled).expect("prepared");
            assert_eq!(filled, expected);
            assert!(schema.validate(&filled, None).is_accepted());
            assert!(!schema.is_settled(&object) && schema.is_settled(&filled));
        }
    }

    #[test]
    fn unchanged_parts_of_a_schema_are_neither_validated_nor_read() {
        let narrow = |max: u64| json!({"type": "object", "properties": {"s": {"type": "string", "maxLength": max}}});
        let schema = changes(narrow(3), narrow(2));
        let object = json!({"kept": {"unknown": 1}, "spec": {"s": "long"}});
        assert_eq!(schema.validate(&object, None).errors.len(), 1);
        assert!(schema.is_settled(&object));
        let looked_at: Vec<&str> =
            ["kept", "spec", "metadata", "other"].into_iter().filter(|f| schema.looks_at(f)).collect();
        assert_eq!(looked_at, ["spec", "other"], "undeclared fields are dropped");
    }

    /// Whether a value is unchanged depends on the whole object, including fields that are otherwise ignored.
    #[test]
    fn unchanged_fields_still_count_for_whether_a_value_is_unchanged() {
        let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}});
        let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": item});
        let inner =
            json!({"type": "object", "properties": {"x": {"type": "integer"}, "l": {"type": "array", "items": item}}});
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"x": {"type": "integer"}}});
        let spec = |required: Value| {
            json!({"type": "object", "required": required, "properties": {"r": {"type": "string"}, "inner": inner,
                "list": list, "open": open, "map": {"type": "object", "additionalProperties": inner}}})
        };
        let (live, desired) = (spec(json!([])), spec(json!(["r"])));
        let whole =
            Schema::compile(&json!({"type": "object", "properties": {"spec": desired.clone()}})).expect("a schema");
        let changes = changes(live, desired);
        let (new, old) = (|| json!({"x": 1, "l": [{"k": "a"}]}), json!({"x": 2}));
        for (new, old, is_unchanged) in [
            (json!({"inner": new()}), json!({"inner": new()}), true),
            (json!({"inner": new()}), json!({"inner": old}), false),
            (json!({"map": {"m": new()}}), json!({"map": {"m": new()}}), true),
            (
                json!({"list": [{"k": "a"}, {"k": "b", "v": 1}]}),
                json!({"list": [{"k": "b", "v": 1}, {"k": "a"}]}),
                true,
            ),
            (json!({"list": [{"v": 1}]}), json!({"list": [{"v": 1}]}), false),
            (json!({"open": {"x": 1}}), json!({"open": {"x": 1}}), true),
            (json!({"open": {"x": 1, "y": 1}}), json!({"open": {"x": 1, "y": 1}}), false),
        ] {
            let object = |spec: &Value| json!({"metadata": {"name": "x"}, "spec": spec});
            let (new, old) = (object(&new), object(&old));
            assert_eq!(changes.validate(&new, Some(&old)).is_accepted(), is_unchanged, "{new}");
            assert_eq!(whole.validate(&new, Some(&old)).is_accepted(), is_unchanged, "{new}");
        }
    }

    #[test]
    fn unchanged_items_are_recognised_by_parts_that_are_not_validated() {
        let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}});
        let map = json!({"type": "object", "additionalProperties": {"type": "object", "properties": {"d": {"default": 1, "type": "integer"}}}});
        let spec = |max: u64| json!({"type": "object", "maxProperties": max, "properties": {"list": list, "map": map}});
        let schema = changes(spec(2), spec(1));
        let object = |v: &str| json!({"spec": {"list": [{"k": "a", "v": v}], "map": {"m": {"d": 1}}}});
        assert!(!schema.validate(&object("x"), None).is_accepted());
        assert!(schema.validate(&object("x"), Some(&object("x"))).is_accepted(), "nothing in it has changed");
        assert!(!schema.validate(&object("x"), Some(&object("y"))).is_accepted());
    }

    #[test]
    fn only_new_and_changed_transition_rules_read_the_old_value() {
        let rule = |rule: &str| json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
        let object = |a: Value, b: Value| json!({"type": "object", "properties": {"a": a, "b": b}});
        let (back, plain) = (rule("self == oldSelf"), rule("self != ''"));
        let text = json!({"type": "string"});
        assert!(!changes(object(back.clone(), text.clone()), object(back.clone(), plain.clone())).looks_back());
        assert!(changes(object(text.clone(), text), object(plain, back)).looks_back());
    }
}
