//! Compares what the rules of both sides see.

use serde_json::Value;

use crate::cel::{RuleSet, same_default, same_type};
use crate::keywords as kw;

/// Whether a rule has the same result on both sides for every object that live accepts, whatever it looks at.
pub fn see_the_same_values(live: &RuleSet, desired: &RuleSet) -> bool {
    fn treats_alike(a: &Value, b: &Value, keeps: bool) -> bool {
        let (entry, other_entry) = (a.get("additionalProperties"), b.get("additionalProperties"));
        // A field that live does not describe is in no object, unless live keeps it.
        let keeps = keeps || kw::preserves(a) || kw::embedded(a) || entry.is_some();
        let below = |a: Option<&Value>, b: Option<&Value>| match (a, b) {
            (Some(a @ Value::Object(_)), Some(b @ Value::Object(_))) => treats_alike(a, b, keeps),
            (a, b) => a == b,
        };
        same_type(a, b)
            && kw::flag(a, "nullable") == kw::flag(b, "nullable")
            && same_default(Some(a), Some(b))
            && below(a.get("items"), b.get("items"))
            && below(entry, other_entry)
            && kw::properties(a)
                .into_iter()
                .flatten()
                .all(|(name, a)| kw::property(b, name).is_some_and(|b| treats_alike(a, b, keeps || kw::is_meta(name))))
            && kw::properties(b).into_iter().flatten().all(|(name, b)| {
                kw::property(a, name).is_some() || !keeps && !kw::is_meta(name) && !kw::has_defaults(b)
            })
    }
    live.is_root == desired.is_root && treats_alike(live.schema, desired.schema, live.keeps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_see_the_same_values_if_types_defaults_and_fields_agree() {
        let text = || json!({"type": "string"});
        let object = |fields: Value| json!({"type": "object", "properties": fields});
        let open = |fields: Value| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": fields});
        let list = |items: Value| json!({"type": "array", "items": items});
        let map = |values: Value| json!({"type": "object", "additionalProperties": values});
        for (live, desired, expected) in [
            (object(json!({"a": text()})), object(json!({"a": text(), "b": text()})), true),
            (object(json!({"a": text()})), object(json!({"a": {"type": "string", "maxLength": 3}})), true),
            (list(object(json!({}))), list(object(json!({"a": text()}))), true),
            // A field that is removed, kept although it is unknown, or filled in.
            (object(json!({"a": text(), "b": text()})), object(json!({"a": text()})), false),
            (open(json!({"a": text()})), open(json!({"a": text(), "b": text()})), false),
            (list(open(json!({}))), list(open(json!({"a": text()}))), false),
            (object(json!({})), object(json!({"a": {"type": "string", "default": "x"}})), false),
            (object(json!({})), object(json!({"a": object(json!({"b": {"type": "string", "default": "x"}}))})), false),
            (list(object(json!({"a": text()}))), list(object(json!({"a": {"type": "string", "default": "x"}}))), false),
            (object(json!({"a": text()})), object(json!({"a": {"type": "string", "nullable": true}})), false),
            (object(json!({"a": text()})), object(json!({"a": {"type": "string", "format": "date"}})), false),
            (map(text()), object(json!({"a": text()})), false),
            (object(json!({})), map(text()), false),
            (map(json!(true)), map(json!({})), false),
            (list(text()), json!({"type": "array", "items": text(), "x-kubernetes-list-type": "set"}), false),
        ] {
            let [a, b] = [&live, &desired].map(|schema| RuleSet { schema, rules: &[], is_root: false, keeps: false });
            assert_eq!(see_the_same_values(&a, &b), expected, "{live} → {desired}");
            assert!(see_the_same_values(&a, &a) && see_the_same_values(&b, &b));
        }
        let (live, desired) = (object(json!({})), object(json!({"a": text(), "metadata": object(json!({}))})));
        let kept = |schema, keeps| RuleSet { schema, rules: &[], is_root: true, keeps };
        assert!(!see_the_same_values(&kept(&live, true), &kept(&desired, false)));
        assert!(!see_the_same_values(&kept(&live, false), &kept(&desired, false)));
    }
}
