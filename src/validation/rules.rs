//! The seam to CEL: what this validator needs of an engine that evaluates `x-kubernetes-validations`.
//!
//! The walk over object and schema, the correlation with the old object, and ratcheting are here; a rule sees one value.

use std::fmt;

use serde_json::Value;

use super::correlate::Correlated;
use super::error::{FieldError, Kind, Undecided};
use super::node::Node;
use super::path::Path;

/// What one rule says about one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Holds,
    /// A transition rule without an old value to compare with.
    NotApplicable,
    Fails {
        message: String,
        kind: Kind,
        /// Appended to the path of the value, such as `.replicas` or `[key]`. Empty where the rule names no field.
        field_path: String,
        /// Whether the rule reads `oldSelf`; such a failure is never tolerated.
        is_transition: bool,
    },
    Undecided(String),
}

/// The rules of one schema node, compiled.
pub trait Rules: fmt::Debug + Send + Sync {
    /// The source and the verdict of each rule, in order. `budget` is what is left of the object's cost budget.
    fn evaluate(&self, this: &Value, old: Option<&Value>, budget: &mut u64) -> Vec<(&str, Verdict)>;
}

/// Compiles the rules of a node.
pub trait CompileRules {
    /// `schema` is the node's schema as written, `validations` its `x-kubernetes-validations`.
    fn compile(&self, schema: &Value, validations: &[Value]) -> Box<dyn Rules>;
}

/// Compiles every rule to "undecided".
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEngine;

#[derive(Debug)]
struct Unevaluated(Vec<String>);

impl Rules for Unevaluated {
    fn evaluate(&self, _: &Value, _: Option<&Value>, _: &mut u64) -> Vec<(&str, Verdict)> {
        let open = || Verdict::Undecided("no CEL engine was given".to_owned());
        self.0.iter().map(|rule| (rule.as_str(), open())).collect()
    }
}

impl CompileRules for NoEngine {
    fn compile(&self, _: &Value, validations: &[Value]) -> Box<dyn Rules> {
        let source = |rule: &Value| rule.get("rule").and_then(Value::as_str).unwrap_or_default().to_owned();
        Box::new(Unevaluated(validations.iter().map(source).collect()))
    }
}

/// The whole object's cost budget: the server's limit for one request.
pub const BUDGET: u64 = 10_000_000;

/// Evaluates the rules of a schema over an object.
pub struct RuleWalk {
    pub errors: Vec<FieldError>,
    pub undecided: Vec<Undecided>,
    pub budget: u64,
}

/// Which of the unchanged parts a failing rule is forgiven for.
#[derive(Clone, Copy)]
struct Ratchet<'c, 'a> {
    current: Option<&'c Correlated<'a>>,
    /// The nearest ancestor that has an old counterpart.
    nearest: Option<&'c Correlated<'a>>,
}

impl Ratchet<'_, '_> {
    fn forgives(&self) -> bool {
        self.current.or(self.nearest).is_some_and(Correlated::is_unchanged)
    }
}

impl RuleWalk {
    pub fn new() -> Self {
        Self { errors: Vec::new(), undecided: Vec::new(), budget: BUDGET }
    }

    /// The whole object. `correlated` pairs it with the old one on updates.
    pub fn object(&mut self, node: &Node, new: &Value, old: Option<&Value>, correlated: Option<&Correlated>) {
        self.value(node, node, new, old, &Path::Root, Ratchet { current: correlated, nearest: None });
    }

    /// `node` has the rules, `spine` the structure: they differ below `allOf`.
    fn value(&mut self, node: &Node, spine: &Node, new: &Value, old: Option<&Value>, path: &Path, ratchet: Ratchet) {
        if !node.has_rules || new.is_null() {
            return;
        }
        if let Some(rules) = &node.rules {
            self.own(rules.as_ref(), spine, new, old.filter(|o| !o.is_null()), path, ratchet);
        }
        if let Some(combined) = &node.combined {
            for branch in &combined.all_of {
                let ratchet = Ratchet { current: None, nearest: ratchet.nearest };
                self.value(branch, spine, new, old, path, ratchet);
            }
        }
        match new {
            Value::Object(map) => {
                let mut keys: Vec<&String> = map.keys().collect();
                keys.sort();
                for key in keys {
                    let (Some(child), Some(value)) = (node.child(key), map.get(key)) else { continue };
                    let Some(child_spine) = spine.child(key) else { continue };
                    let old = old.and_then(|o| o.get(key));
                    let path =
                        if spine.properties.contains_key(key) { Path::Name(path, key) } else { Path::Key(path, key) };
                    // Kind and version of the object itself are never forgiven: a conversion hides that they changed.
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
                // Only lists of type map pair their items with old ones.
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
                        &Path::Index(path, at),
                        ratchet,
                    );
                }
            }
            _ => {}
        }
    }

    fn own(
        &mut self,
        rules: &dyn Rules,
        spine: &Node,
        new: &Value,
        old: Option<&Value>,
        path: &Path,
        ratchet: Ratchet,
    ) {
        for (rule, verdict) in rules.evaluate(new, old, &mut self.budget) {
            match verdict {
                Verdict::Holds | Verdict::NotApplicable => {}
                Verdict::Fails { message, kind, field_path, is_transition } => {
                    if !is_transition && ratchet.forgives() {
                        continue;
                    }
                    let mut at = path.field();
                    if !field_path.is_empty() {
                        if matches!(path, Path::Root) {
                            at.clear();
                        }
                        at.push_str(if at.is_empty() { field_path.trim_start_matches('.') } else { &field_path });
                    }
                    let shown = !matches!(spine.types, super::node::Types::One(t) if matches!(t, super::node::Type::Object | super::node::Type::Array));
                    let bad_value = shown.then(|| new.clone());
                    self.errors.push(FieldError { path: at, kind, bad_value, detail: message });
                }
                Verdict::Undecided(reason) => {
                    if !ratchet.forgives() {
                        self.undecided.push(Undecided { path: path.field(), rule: rule.to_owned(), reason });
                    }
                }
            }
        }
    }
}
