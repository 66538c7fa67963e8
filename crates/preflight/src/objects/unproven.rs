//! What a proof about a version does not cover: objects that are converted to the version, objects that are invalid
//! already, and lists in place of strings. If one of these can matter, the objects are read.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use gantry_schema::{Sense, enforced_format_accepts, is_same_keyword, meaning_of_rule};

/// The keywords that ask something of an object or a list as a whole, apart from rules.
const OF_WHOLES: [&str; 10] =
    ["allOf", "anyOf", "enum", "maxItems", "maxProperties", "minItems", "minProperties", "not", "oneOf", "required"];

/// Whether an object converted to a version can have a value that `before`, its live schema, drops and `after`, its
/// desired schema, keeps. A proof about the pair does not cover such objects. `from` is the schema of the objects
/// before the conversion; `None` if they can contain anything. If in doubt, returns true.
pub fn may_revive(from: Option<&Value>, before: &Value, after: &Value) -> bool {
    if before == after {
        return false;
    }
    let has = |node: &Value, keyword: &str| node.get(keyword) == Some(&Value::Bool(true));
    let newly = |keyword| has(after, keyword) && !has(before, keyword);
    let newly_kept = ["nullable", "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields"];
    if newly_kept.into_iter().any(newly) {
        return true;
    }
    let (old, new) = (properties(before), properties(after));
    for (name, after) in new.into_iter().flatten() {
        let below = from.map(|from| child(from, name));
        match (old.and_then(|old| old.get(name)), below) {
            // The objects do not have this field.
            (_, Some(PossibleFieldValues::Nothing)) => {}
            (Some(before), None | Some(PossibleFieldValues::Anything)) if may_revive(None, before, after) => {
                return true;
            }
            (Some(before), Some(PossibleFieldValues::Some(from))) if may_revive(Some(from), before, after) => {
                return true;
            }
            (Some(_), _) => {}
            // It was already kept as an unknown field.
            (None, _) if keeps_all(before) => {}
            (None, _) => return true,
        }
    }
    for keyword in ["items", "additionalProperties"] {
        match (before.get(keyword), after.get(keyword)) {
            (before, after) if before == after => {}
            (_, None) => {}
            (Some(before @ Value::Object(_)), Some(after @ Value::Object(_))) => {
                let below = from.and_then(|from| from.get(keyword)).filter(|below| below.is_object());
                if may_revive(below, before, after) {
                    return true;
                }
            }
            _ => return true,
        }
    }
    false
}

/// The possible values of a field in objects of a schema.
enum PossibleFieldValues<'s> {
    Nothing,
    Some(&'s Value),
    Anything,
}

fn child<'s>(node: &'s Value, name: &str) -> PossibleFieldValues<'s> {
    let described = properties(node).and_then(|properties| properties.get(name));
    match described.or_else(|| node.get("additionalProperties")) {
        Some(child @ Value::Object(_)) => PossibleFieldValues::Some(child),
        Some(Value::Bool(true)) => PossibleFieldValues::Anything,
        _ if keeps_all(node) => PossibleFieldValues::Anything,
        _ => PossibleFieldValues::Nothing,
    }
}

fn properties(node: &Value) -> Option<&Map<String, Value>> {
    node.get("properties").and_then(Value::as_object)
}

fn keeps_all(node: &Value) -> bool {
    node.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
}

/// Whether an update pairs the items of a list with fewer old items than before, because it is no longer a list of type
/// map or has other keys. Then updates no longer tolerate what was already invalid in an item, which a proof about
/// valid objects does not cover.
pub fn pairs_less(before: &Value, after: &Value) -> bool {
    if before == after {
        return false;
    }
    let keys = |node: &Value| {
        let is_map = node.get("x-kubernetes-list-type").is_some_and(|kind| kind == "map");
        node.get("x-kubernetes-list-map-keys").filter(|_| is_map).cloned()
    };
    if keys(before).is_some_and(|keys_before| keys(after) != Some(keys_before)) {
        return true;
    }
    let below = |keyword: &str| before.get(keyword).zip(after.get(keyword));
    let fields = properties(before).into_iter().flatten();
    let of_field = |(name, before)| Some((before, properties(after)?.get(name)?));
    let mut pairs = fields.filter_map(of_field).chain(below("items")).chain(below("additionalProperties"));
    pairs.any(|(before, after)| pairs_less(before, after))
}

/// Whether `after` asks something of an object or a list as a whole that `before` does not ask of it.
///
/// What is asked can follow from what `before` asks of the parts, and then it is proven. But an update tolerates a part
/// that is invalid already and does not change, while the whole around it changes with every other part. A transition
/// rule is never tolerated, wherever it is.
pub fn constrains_wholes_anew(before: &Value, after: &Value) -> bool {
    if before == after {
        return false;
    }
    let is_scalar =
        after.get("type").and_then(Value::as_str).is_some_and(|kind| !matches!(kind, "object" | "array" | ""));
    let rules = |node: &Value| {
        let rules = node.get("x-kubernetes-validations").and_then(Value::as_array).cloned();
        rules.unwrap_or_default()
    };
    let meaning = |rule: &Value| meaning_of_rule(rule, Sense::Objects);
    let known: BTreeSet<String> = rules(before).iter().map(meaning).collect();
    let is_known = |rule: &Value| known.contains(&meaning(rule));
    let is_transition = |rule: &Value| rule["rule"].as_str().is_some_and(|rule| rule.contains("oldSelf"));
    if rules(after).iter().any(|rule| !(is_known(rule) || is_scalar && !is_transition(rule))) {
        return true;
    }
    let is_filled = |name: &Value| {
        let field = name.as_str().and_then(|name| properties(after)?.get(name));
        field.and_then(|field| field.get("default")).is_some_and(|default| !default.is_null())
    };
    let asks_anew = |keyword: &str| match (before.get(keyword), after.get(keyword), keyword) {
        (_, None, _) => false,
        (known, Some(Value::Array(names)), "required") => {
            let known = known.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            names.iter().any(|name| !known.contains(name) && !is_filled(name))
        }
        // A proof about such a change concerns the keyword alone: it is looser.
        (Some(_), Some(_), "enum" | "maxItems" | "maxProperties" | "minItems" | "minProperties") => false,
        (before, after, _) => !is_same_keyword(keyword, before, after, Sense::Objects),
    };
    if !is_scalar && OF_WHOLES.into_iter().any(asks_anew) {
        return true;
    }
    let below = |keyword: &str| before.get(keyword).zip(after.get(keyword));
    let fields = properties(before).into_iter().flatten();
    let of_field = |(name, before)| Some((before, properties(after)?.get(name)?));
    let mut pairs = fields.filter_map(of_field).chain(below("items")).chain(below("additionalProperties"));
    pairs.any(|(before, after)| constrains_wholes_anew(before, after))
}

/// Whether `before` accepts lists in place of a string somewhere, because of its format, and `after` does not. The
/// server accepts a list for a string with a format that it enforces, whatever the type is. Nobody intends that, and
/// proofs do not cover it.
pub fn accepts_fewer_lists(before: &Value, after: &Value) -> bool {
    let accepts_lists = |node: &Value| {
        let format = node.get("format").and_then(Value::as_str);
        node.get("type").is_some_and(|kind| kind == "string")
            && format.is_some_and(|format| enforced_format_accepts(format, "").is_some())
    };
    if accepts_lists(before) && !accepts_lists(after) {
        return true;
    }
    let pairs = properties(before).into_iter().flatten().filter_map(|(name, before)| {
        let after = properties(after).and_then(|after| after.get(name)).or_else(|| after.get("additionalProperties"));
        Some((before, after?))
    });
    let below = ["items", "additionalProperties"].into_iter().filter_map(|k| Some((before.get(k)?, after.get(k)?)));
    pairs.chain(below).any(|(before, after)| accepts_fewer_lists(before, after))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn a_field_that_only_another_version_keeps_can_reappear() {
        let (text, number) = (json!({"type": "string"}), json!({"type": "integer"}));
        let a = object(json!({"a": text}));
        let both = object(json!({"a": text, "b": number}));
        assert!(may_revive(Some(&both), &a, &both), "b was dropped so far");
        assert!(!may_revive(Some(&a), &a, &both), "nobody has b");
        assert!(may_revive(None, &a, &both), "a webhook may make b");
        let under = |below: &Value| object(json!({"x": {"type": "array", "items": below}}));
        assert!(may_revive(Some(&under(&both)), &under(&a), &under(&both)));
        assert!(!may_revive(Some(&under(&a)), &under(&a), &under(&both)));
        let map = |below: &Value| json!({"type": "object", "additionalProperties": below});
        assert!(may_revive(Some(&map(&both)), &map(&a), &map(&both)));
        assert!(may_revive(Some(&map(&number)), &a, &both), "a map may have an entry b");
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        assert!(may_revive(Some(&open), &a, &both) && may_revive(Some(&a), &a, &open));
        assert!(!may_revive(Some(&open), &open, &both), "b was there before");
    }

    #[test]
    fn schemas_that_differ_only_in_a_bound_keep_the_same_fields() {
        let schema = |max: u64| object(json!({"a": {"type": "string", "maxLength": max}, "l": {"items": {"x": max}}}));
        assert!(!may_revive(None, &schema(1), &schema(2)));
        let null = json!({"type": "string", "nullable": true});
        assert!(
            may_revive(None, &json!({"type": "string"}), &null) && !may_revive(None, &null, &json!({"type": "string"}))
        );
    }

    #[test]
    fn what_is_newly_asked_of_a_whole_is_asked_of_objects_with_invalid_parts() {
        let spec = |more: Value| {
            let mut node = object(json!({"a": {"type": "string", "minLength": 3}}));
            node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            object(json!({"spec": node}))
        };
        let rules = |rules: &[&str]| {
            let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
            json!({"x-kubernetes-validations": rules})
        };
        let none = spec(json!({}));
        for more in [rules(&["self.a.size() >= 3"]), json!({"required": ["a"]}), json!({"maxProperties": 1})] {
            assert!(constrains_wholes_anew(&none, &spec(more.clone())), "{more}");
            assert!(!constrains_wholes_anew(&spec(more.clone()), &none), "{more} removed");
        }
        let two = spec(rules(&["self.a != 'x'", "self.a != 'y'"]));
        assert!(!constrains_wholes_anew(&two, &spec(rules(&["self.a!='y'"]))));
        assert!(!constrains_wholes_anew(&spec(json!({"maxProperties": 1})), &spec(json!({"maxProperties": 2}))));
        // What is asked of a value itself is tolerated as long as the value does not change.
        let text = |more: Value| {
            let mut node = json!({"type": "string", "minLength": 3});
            node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            object(json!({"a": node}))
        };
        let plain = text(json!({}));
        assert!(!constrains_wholes_anew(&plain, &text(rules(&["self.size() >= 3"]))));
        assert!(!constrains_wholes_anew(&plain, &text(json!({"enum": ["abc"]}))));
        assert!(constrains_wholes_anew(&plain, &text(rules(&["self.size() >= 3 || oldSelf.size() < 3"]))));
    }

    #[test]
    fn lists_pass_for_formats_that_are_enforced() {
        let of = |format: &str| {
            object(json!({"a": {"items": {"additionalProperties": {"type": "string", "format": format}}}}))
        };
        let none = object(json!({"a": {"items": {"additionalProperties": {"type": "string"}}}}));
        assert!(accepts_fewer_lists(&of("date"), &none) && accepts_fewer_lists(&of("date"), &of("quantity")));
        assert!(!accepts_fewer_lists(&of("date"), &of("uri")) && !accepts_fewer_lists(&none, &of("date")));
        assert!(!accepts_fewer_lists(&of("quantity"), &none));
    }
}
