//! `x-kubernetes-validations`: whether each rule compiles, and what it may cost.

use std::sync::Arc;

use serde_json::Value;

use super::found::Errors;
use super::props::{Props, Rule};
use super::show;
use crate::validation::Patterns;
use crate::validation::cel::{Kind, Type, compile_expression, escape};
use crate::validation::path::Path;

/// What rules see of a node's values.
#[derive(Clone)]
enum Seen {
    /// There are no rules at the node or above.
    Outside,
    Typed(Arc<Type>),
    /// Rules cannot be about such values.
    Untyped,
    /// The same, where the type was that of a list's items or a map's values.
    UntypedPart,
}

/// A node as rules see it. None where no rules are compiled.
#[derive(Clone)]
pub struct Scope(Option<Seen>);

impl Scope {
    pub fn none() -> Self {
        Scope(None)
    }

    pub fn of_root(schema: &Props) -> Self {
        let seen = if schema.rules.is_empty() { Seen::Outside } else { own(schema, true) };
        Scope(Some(seen))
    }

    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub fn property(&self, name: &str, child: &Props) -> Self {
        self.below(child, |of| {
            let Kind::Object(properties) = &of.kind else { return None };
            let property = properties.get(name).filter(|of| of.is_declared() && escape(name).is_some())?;
            Some(Seen::Typed(Arc::clone(property)))
        })
    }

    pub fn item(&self, child: &Props) -> Self {
        self.below(child, |of| {
            let Kind::List { items, .. } = &of.kind else { return Some(Seen::UntypedPart) };
            Some(if items.is_declared() { Seen::Typed(Arc::clone(items)) } else { Seen::UntypedPart })
        })
    }

    pub fn entry(&self, child: &Props) -> Self {
        self.below(child, |of| {
            let Kind::Map(values) = &of.kind else { return Some(Seen::UntypedPart) };
            Some(if values.is_declared() { Seen::Typed(Arc::clone(values)) } else { Seen::UntypedPart })
        })
    }

    fn below(&self, child: &Props, part: impl FnOnce(&Type) -> Option<Seen>) -> Self {
        let Some(seen) = &self.0 else { return Scope(None) };
        Scope(Some(match seen {
            Seen::Outside if child.rules.is_empty() => Seen::Outside,
            Seen::Outside => own(child, child.embedded),
            Seen::Typed(of) => part(of).unwrap_or_else(|| own(child, child.embedded)),
            Seen::Untyped | Seen::UntypedPart => Seen::Untyped,
        }))
    }
}

/// What rules see of a node by itself.
fn own(schema: &Props, is_resource: bool) -> Seen {
    let of = Type::compile(schema.raw.0.unwrap_or(&Value::Null), is_resource);
    if of.is_declared() { Seen::Typed(of) } else { Seen::Untyped }
}

/// Checks the rules of a node of which there are some. `uncorrelated` is the topmost node above whose values before and
/// after an update cannot be paired.
pub fn check(schema: &Props, scope: &Scope, uncorrelated: Option<&str>, path: &Path, errors: &mut Errors) {
    let of = match &scope.0 {
        Some(Seen::Typed(of)) => of,
        Some(Seen::UntypedPart) => {
            let problem = "failed to convert to declType for CEL validation rules";
            return errors.internal(path, problem);
        }
        _ => {
            let problem = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                           unable to convert structural schema to CEL declarations";
            return errors.internal(path, problem);
        }
    };
    for (at, rule) in schema.rules.iter().enumerate() {
        self::rule(rule, of, uncorrelated, &Path::Index(path, at), errors);
    }
}

fn rule(rule: &Rule, of: &Arc<Type>, uncorrelated: Option<&str>, path: &Path, errors: &mut Errors) {
    if rule.rule.trim().is_empty() {
        return;
    }
    let rule_path = &Path::Name(path, "rule");
    let optional_old = rule.optional_old_self == Some(true);
    let mut uses_old = false;
    match compile_expression(rule.rule, of, optional_old, &Patterns::default()) {
        Err(problem) if problem.is_limit => return errors.open(rule_path, rule.rule, &problem.text),
        Err(problem) => {
            errors.invalid_as(rule_path, &show::rule(rule), &format!("compilation failed: {problem}"));
        }
        Ok(compiled) if !compiled.is_condition() => {
            errors.invalid_as(rule_path, &show::rule(rule), "cel expression must evaluate to a bool");
        }
        Ok(compiled) => {
            uses_old = compiled.uses_old;
            message(rule, of, optional_old, &Path::Name(path, "messageExpression"), errors);
        }
    }
    if uses_old {
        if let Some(above) = uncorrelated {
            let detail = format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {above}");
            errors.invalid(rule_path, rule.rule, detail);
        }
    } else if let Some(optional) = rule.optional_old_self {
        errors.invalid(&Path::Name(path, "optionalOldSelf"), optional, "may not be set if oldSelf is not used in rule");
    }
}

fn message(rule: &Rule, of: &Arc<Type>, optional_old: bool, path: &Path, errors: &mut Errors) {
    if rule.message_expression.is_empty() {
        return;
    }
    match compile_expression(rule.message_expression, of, optional_old, &Patterns::default()) {
        Err(problem) if problem.is_limit => errors.open(path, rule.message_expression, &problem.text),
        Err(problem) => {
            errors.invalid_as(path, &show::rule(rule), &format!("messageExpression compilation failed: {problem}"));
        }
        Ok(compiled) if !compiled.is_text() => {
            errors.invalid_as(path, &show::rule(rule), "messageExpression must evaluate to a string");
        }
        Ok(_) => {}
    }
}
