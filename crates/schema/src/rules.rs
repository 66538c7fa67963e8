//! The interface to CEL: what this validator needs from an engine that evaluates `x-kubernetes-validations`.
//!
//! The walk over object and schema, the correlation with the old object, and ratcheting are implemented here; a rule
//! sees one value only.

use std::fmt;

use serde_json::Value;

use super::correlate::Correlated;
use super::error::{FieldError, FieldErrorKind, RefusedBy, Undecided};
use super::node::{JsonType, SchemaNode, Types};
use super::older_releases;
use super::path::LinkedPath;
use crate::Step;
use gantry_k8s_cel::{EXHAUSTED, FieldPath, KubernetesRelease};

/// The result of one rule for one value.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleVerdict {
    /// The rule is true.
    Holds,
    /// The rule is a transition rule, and there is no old value to compare with.
    NotApplicable,
    /// The rule is false.
    Fails {
        /// The message of the rule.
        message: String,
        /// The kind of error that the rule declares.
        kind: FieldErrorKind,
        /// The field below the value that the rule declares, if any.
        field_path: Option<FieldPath>,
        /// Whether the rule reads `oldSelf`; such a failure is never tolerated.
        is_transition: bool,
    },
    /// The rule fails to evaluate in the server too, which then rejects the value, even if it is unchanged.
    Errs {
        /// The text of the error.
        message: String,
        /// The `type` of the schema, which the server prints in place of the value.
        type_name: String,
    },
    /// The result is unknown; the string is the reason.
    Undecided(String),
}

/// The compiled rules of one schema node.
pub trait EvaluateRules: fmt::Debug + Send + Sync {
    /// The source and the result of each rule on a server of this release, in order and without omissions. `budget` is
    /// the remaining cost budget of the object.
    fn evaluate(
        &self,
        this: &Value,
        old: Option<&Value>,
        release: KubernetesRelease,
        budget: &mut u64,
    ) -> Vec<(&str, RuleVerdict)>;
}

/// Compiles the rules of a node.
pub trait CompileRules {
    /// Compiles `validations`, the `x-kubernetes-validations` of a node. `schema` is the structural schema of the
    /// node, and `is_root` is whether it is the root of a resource.
    fn compile(&self, schema: &Value, is_root: bool, validations: &[Value]) -> Box<dyn EvaluateRules>;
}

/// Assumes that every rule holds; the caller checks the rules separately.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRules;

#[derive(Debug)]
struct Nothing;

impl EvaluateRules for Nothing {
    fn evaluate(&self, _: &Value, _: Option<&Value>, _: KubernetesRelease, _: &mut u64) -> Vec<(&str, RuleVerdict)> {
        Vec::new()
    }
}

impl CompileRules for NoRules {
    fn compile(&self, _: &Value, _: bool, _: &[Value]) -> Box<dyn EvaluateRules> {
        Box::new(Nothing)
    }
}

/// Compiles every rule to [`Verdict::Undecided`].
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEngine;

#[derive(Debug)]
struct Unevaluated(Vec<String>);

impl EvaluateRules for Unevaluated {
    fn evaluate(&self, _: &Value, _: Option<&Value>, _: KubernetesRelease, _: &mut u64) -> Vec<(&str, RuleVerdict)> {
        let open = || RuleVerdict::Undecided("there is no CEL engine".to_owned());
        self.0.iter().map(|rule| (rule.as_str(), open())).collect()
    }
}

impl CompileRules for NoEngine {
    fn compile(&self, _: &Value, _: bool, validations: &[Value]) -> Box<dyn EvaluateRules> {
        let source = |rule: &Value| rule.get("rule").and_then(Value::as_str).unwrap_or_default().to_owned();
        Box::new(Unevaluated(validations.iter().map(source).collect()))
    }
}

/// The cost budget of a whole object: the server's limit for one request.
pub const BUDGET: u64 = 10_000_000;

/// Evaluates the rules of a schema on an object.
pub struct RuleWalk {
    pub errors: Vec<FieldError>,
    pub undecided: Vec<Undecided>,
    pub budget: u64,
    release: KubernetesRelease,
}

/// The correlated values that decide whether a failing rule is tolerated.
#[derive(Clone, Copy)]
struct Ratchet<'c, 'a> {
    current: Option<&'c Correlated<'a>>,
    /// The nearest ancestor with an old counterpart.
    nearest: Option<&'c Correlated<'a>>,
}

impl Ratchet<'_, '_> {
    fn tolerates(&self) -> bool {
        self.current.or(self.nearest).is_some_and(Correlated::is_unchanged)
    }
}

impl RuleWalk {
    pub fn for_release(release: KubernetesRelease) -> Self {
        Self { errors: Vec::new(), undecided: Vec::new(), budget: BUDGET, release }
    }

    /// Evaluates the whole object. On an update, `correlated` pairs it with the old one.
    pub fn object(&mut self, node: &SchemaNode, new: &Value, old: Option<&Value>, correlated: Option<&Correlated>) {
        self.value(node, node, new, old, &LinkedPath::Root, Ratchet { current: correlated, nearest: None });
    }

    /// `node` has the rules, `spine` the structure: they differ below `allOf`.
    fn value(
        &mut self,
        node: &SchemaNode,
        spine: &SchemaNode,
        new: &Value,
        old: Option<&Value>,
        path: &LinkedPath,
        ratchet: Ratchet,
    ) {
        if !node.has_rules || new.is_null() {
            return;
        }
        if let Some(rules) = &node.rules {
            self.own_rules(rules.as_ref(), spine, new, old.filter(|o| !o.is_null()), path, ratchet);
        }
        if let Some(combined) = &node.combined {
            for (at, branch) in combined.all_of.iter().enumerate() {
                let ratchet = Ratchet { current: None, nearest: ratchet.nearest };
                self.value(branch, spine, new, old, &LinkedPath::Branch(path, "allOf", Some(at)), ratchet);
            }
        }
        match new {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                for key in keys {
                    let (Some(child), Some(value)) = (node.child(key), map.get(key)) else { continue };
                    let Some(child_spine) = spine.child(key).filter(|child| child.is_declared) else { continue };
                    let old = old.and_then(|o| o.get(key));
                    let path = if spine.properties.contains_key(key) {
                        LinkedPath::Name(path, key)
                    } else {
                        LinkedPath::Key(path, key)
                    };
                    // The apiVersion and kind of the object itself are never ratcheted: conversion hides that they
                    // changed.
                    let is_type_meta = ratchet.nearest.is_none() && (key == "apiVersion" || key == "kind");
                    let next = ratchet.current.filter(|_| !is_type_meta).and_then(|c| c.key(key));
                    let ratchet = match ratchet.current {
                        None => ratchet,
                        Some(_) if is_type_meta => Ratchet { current: None, nearest: None },
                        here => Ratchet { current: next.as_ref(), nearest: here },
                    };
                    self.value(child, child_spine, value, old, &path, ratchet);
                }
            }
            Value::Array(items) => {
                let (Some(child), Some(child_spine)) = (node.items.as_deref(), spine.items.as_deref()) else { return };
                if !child_spine.is_declared {
                    return;
                }
                // Only lists of type map correlate their items with old ones.
                let pairs = old.map(|old| Correlated::new(new, old, spine));
                for (at, value) in items.iter().enumerate() {
                    let pair = pairs.as_ref().and_then(|p| p.index(at));
                    let next = ratchet.current.and_then(|c| c.index(at));
                    let ratchet = match ratchet.current {
                        None => ratchet,
                        here => Ratchet { current: next.as_ref(), nearest: here },
                    };
                    self.value(
                        child,
                        child_spine,
                        value,
                        pair.as_ref().map(|p| p.old()),
                        &LinkedPath::Index(path, at),
                        ratchet,
                    );
                }
            }
            _ => {}
        }
    }

    fn own_rules(
        &mut self,
        rules: &dyn EvaluateRules,
        spine: &SchemaNode,
        new: &Value,
        old: Option<&Value>,
        path: &LinkedPath,
        ratchet: Ratchet,
    ) {
        // The paths of failing rules before, where they are not separate.
        let mut earlier: Vec<FieldPath> = Vec::new();
        for (index, (rule, verdict)) in rules.evaluate(new, old, self.release, &mut self.budget).into_iter().enumerate()
        {
            let rule_at = || {
                let mut steps = path.keyword("x-kubernetes-validations");
                steps.push(index.into());
                steps
            };
            match verdict {
                RuleVerdict::Holds | RuleVerdict::NotApplicable => {}
                RuleVerdict::Fails { message, kind, field_path, is_transition } => {
                    if !is_transition && ratchet.tolerates() {
                        continue;
                    }
                    earlier.extend(field_path);
                    let (at, text) = place_below(path, &earlier);
                    if self.release >= older_releases::SEPARATE_RULE_PATHS {
                        earlier.clear();
                    }
                    // Objects and lists are not printed.
                    let shown = !matches!(spine.types, Types::One(JsonType::Object | JsonType::Array));
                    let bad_value = shown.then(|| new.clone());
                    // The server omits the message for a duplicate.
                    let detail = if kind == FieldErrorKind::Duplicate { String::new() } else { message };
                    let by = RefusedBy::Keyword(rule_at());
                    self.errors.push(FieldError { at, path: text, by, kind, bad_value, detail: detail.into() });
                }
                RuleVerdict::Errs { message, type_name } => {
                    let bad_value = Some(Value::String(type_name));
                    let ((at, path), kind) = (place_below(path, &earlier), FieldErrorKind::Invalid);
                    let by = RefusedBy::Evaluation(rule_at());
                    self.errors.push(FieldError { at, path, by, kind, bad_value, detail: message.into() });
                }
                RuleVerdict::Undecided(reason) => {
                    // The server refuses an object whose rules cost too much even if nothing in it changes.
                    if !ratchet.tolerates() || reason == EXHAUSTED {
                        self.undecided.push(Undecided {
                            path: path.field(),
                            at: path.steps(),
                            rule: rule.to_owned(),
                            reason,
                        });
                    }
                }
            }
        }
    }
}

/// The steps to the field below a value that these paths lead to, one after the other, and their text.
fn place_below(value: &LinkedPath, paths: &[FieldPath]) -> (Vec<Step>, String) {
    let (mut steps, mut text) = (value.steps(), value.field());
    if value.is_root() && !paths.is_empty() {
        text.clear();
    }
    for path in paths {
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(&path.text);
        steps.extend(path.steps.iter().map(|name| Step::from(name.as_str())));
    }
    (steps, text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ObjectValidationResult, Schema};
    use super::*;

    /// An engine with two rules: `bad` fails for the value "bad", and `moved` fails for a value that differs from the
    /// old one.
    #[derive(Debug)]
    struct Words(Vec<String>);

    impl EvaluateRules for Words {
        fn evaluate(
            &self,
            this: &Value,
            old: Option<&Value>,
            _: KubernetesRelease,
            _: &mut u64,
        ) -> Vec<(&str, RuleVerdict)> {
            let fails = |is_transition| RuleVerdict::Fails {
                message: "no".to_owned(),
                kind: FieldErrorKind::Invalid,
                field_path: None,
                is_transition,
            };
            let verdict = |rule: &str| match (rule, old) {
                ("bad", _) if this == "bad" => fails(false),
                ("moved", None) => RuleVerdict::NotApplicable,
                ("moved", Some(old)) if this != old => fails(true),
                _ => RuleVerdict::Holds,
            };
            self.0.iter().map(|rule| (rule.as_str(), verdict(rule))).collect()
        }
    }

    struct Engine;

    impl CompileRules for Engine {
        fn compile(&self, _: &Value, _: bool, validations: &[Value]) -> Box<dyn EvaluateRules> {
            Box::new(Words(validations.iter().map(|v| v["rule"].as_str().unwrap_or_default().to_owned()).collect()))
        }
    }

    fn judge(spec: Value, new: Value, old: Option<Value>) -> ObjectValidationResult {
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let schema = Schema::compile_with(&schema, &Engine).expect("a schema");
        let object = |spec: Value| json!({"metadata": {"name": "x"}, "spec": spec});
        schema.validate(&object(new), old.map(object).as_ref())
    }

    fn texts(outcome: &ObjectValidationResult) -> Vec<String> {
        outcome.errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_see_old_items_by_key_and_unchanged_failures_are_tolerated() {
        let rules = json!([{"rule": "bad"}, {"rule": "moved"}]);
        let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"},
                "v": {"type": "string", "x-kubernetes-validations": rules}}}});
        let old = json!([{"k": "a", "v": "bad"}, {"k": "b", "v": "x"}]);
        assert_eq!(texts(&judge(list.clone(), old.clone(), None)), ["spec[0].v: Invalid value: \"bad\": no"]);
        let turned = json!([{"k": "b", "v": "y"}, {"k": "a", "v": "bad"}]);
        assert_eq!(texts(&judge(list, turned, Some(old))), ["spec[0].v: Invalid value: \"y\": no"]);
    }

    #[test]
    fn rules_wait_until_types_and_bounds_hold() {
        let spec = json!({"type": "string", "maxLength": 1, "x-kubernetes-validations": [{"rule": "bad"}]});
        let said = texts(&judge(spec, json!("bad"), None));
        assert_eq!(said[0], "spec: Too long: may not be more than 1 byte");
        assert!(said[1].starts_with("<nil>: Invalid value: null: some validation rules were not checked"));
    }

    #[test]
    fn rules_on_and_below_fields_of_unknown_types_are_not_evaluated() {
        let rules = json!([{"rule": "bad"}]);
        let text = json!({"type": "string", "x-kubernetes-validations": rules});
        let open = |spec: Value| {
            let mut spec = spec;
            spec["x-kubernetes-preserve-unknown-fields"] = true.into();
            spec
        };
        let fields = json!({"properties": {"a": text}});
        let typed = json!({"type": "object", "properties": {"a": text}});
        for (spec, new, expected) in [
            (open(fields.clone()), json!({"a": "bad"}), 0),
            (open(typed.clone()), json!({"a": "bad"}), 1),
            (typed.clone(), json!({"a": "bad"}), 1),
            (json!({"type": "object", "properties": {"b": open(fields.clone())}}), json!({"b": {"a": "bad"}}), 0),
            (json!({"type": "array", "items": open(fields.clone())}), json!([{"a": "bad"}]), 0),
            (json!({"type": "array", "items": typed.clone()}), json!([{"a": "bad"}]), 1),
            (json!({"type": "object", "additionalProperties": open(fields)}), json!({"x": {"a": "bad"}}), 0),
            (json!({"type": "object", "additionalProperties": typed}), json!({"x": {"a": "bad"}}), 1),
            (json!({"x-kubernetes-int-or-string": true, "x-kubernetes-validations": rules}), json!("bad"), 1),
        ] {
            assert_eq!(judge(spec.clone(), new, None).errors.len(), expected, "{spec}");
        }
    }

    #[test]
    fn a_rule_below_all_of_is_not_forgiven() {
        let spec = json!({"type": "string", "allOf": [{"x-kubernetes-validations": [{"rule": "bad"}]}]});
        assert_eq!(judge(spec, json!("bad"), Some(json!("bad"))).errors.len(), 1);
    }

    #[test]
    fn without_an_engine_rules_are_undecided() {
        let schema = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a == 1"}]});
        let outcome = Schema::compile(&schema).expect("a schema").validate(&json!({"metadata": {"name": "x"}}), None);
        assert_eq!(outcome.undecided.iter().map(|u| u.rule.as_str()).collect::<Vec<_>>(), ["self.a == 1"]);
    }
}
