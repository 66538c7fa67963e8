//! `x-kubernetes-validations`: whether each rule compiles, and its estimated cost.

use std::sync::Arc;

use gantry_k8s_cel::{CelType, CompiledExpression, ExpressionError, KubernetesRelease, compile_expression, escape};
use serde_json::Value;

use super::api_value::ApiValue;
use super::cost::{self, Costs};
use super::found::Errors;
use super::options::CrdRequirements;
use super::props::{Props, ValidationRule};
use crate::path::LinkedPath;

/// The CEL type of a node's values.
#[derive(Clone)]
enum NodeCelType {
    /// Neither the node nor an ancestor has rules.
    Outside,
    Typed(Arc<CelType>),
    /// Values without a CEL type, which cannot have rules.
    Untyped,
    /// The same for a node whose type came from list items or map values.
    UntypedPart,
}

/// The context for rules at a node; `None` where no rules are compiled.
#[derive(Clone)]
pub struct RuleScope(Option<RuleContext>);

#[derive(Clone)]
struct RuleContext {
    release: KubernetesRelease,
    seen: NodeCelType,
    /// The maximum number of values of the node in an object, if it is limited.
    cardinality: Option<u64>,
}

impl RuleScope {
    pub fn none() -> Self {
        RuleScope(None)
    }

    pub fn of_root(schema: &Props, release: KubernetesRelease) -> Self {
        let seen = if schema.rules.is_empty() { NodeCelType::Outside } else { own_type(schema, true, release) };
        RuleScope(Some(RuleContext { release, seen, cardinality: Some(1) }))
    }

    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub fn property(&self, schema: &Props, name: &str, child: &Props) -> Self {
        self.child_scope(schema, child, |of| {
            let property = of.declared_property(name).filter(|of| of.is_declared() && escape(name).is_some())?;
            Some(NodeCelType::Typed(Arc::clone(property)))
        })
    }

    pub fn item(&self, schema: &Props, child: &Props) -> Self {
        self.child_scope(schema, child, |of| Some(part_of(of.items())))
    }

    pub fn entry(&self, schema: &Props, child: &Props) -> Self {
        self.child_scope(schema, child, |of| Some(part_of(of.values())))
    }

    /// The scope of a child of the node with the schema `schema`.
    fn child_scope(&self, schema: &Props, child: &Props, part: impl FnOnce(&CelType) -> Option<NodeCelType>) -> Self {
        let Some(RuleContext { release, seen, cardinality }) = &self.0 else { return RuleScope(None) };
        let seen = match seen {
            NodeCelType::Outside if child.rules.is_empty() => NodeCelType::Outside,
            NodeCelType::Outside => own_type(child, child.embedded, *release),
            NodeCelType::Typed(of) => part(of).unwrap_or_else(|| own_type(child, child.embedded, *release)),
            NodeCelType::Untyped | NodeCelType::UntypedPart => NodeCelType::Untyped,
        };
        let cardinality = cardinality.zip(cost::parts(schema)).map(|(above, parts)| above.saturating_mul(parts));
        RuleScope(Some(RuleContext { release: *release, seen, cardinality }))
    }
}

/// The CEL type of list items or map values.
fn part_of(part: Option<&Arc<CelType>>) -> NodeCelType {
    match part {
        Some(part) if part.is_declared() => NodeCelType::Typed(Arc::clone(part)),
        _ => NodeCelType::UntypedPart,
    }
}

/// The CEL type of a node without regard to its ancestors.
fn own_type(schema: &Props, is_resource: bool, release: KubernetesRelease) -> NodeCelType {
    let of = CelType::compile_for(schema.raw.0.unwrap_or(&Value::Null), is_resource, release);
    if of.is_declared() { NodeCelType::Typed(of) } else { NodeCelType::Untyped }
}

/// Checks rules.
pub struct CrdRuleChecker<'r, 'o> {
    pub options: &'r CrdRequirements<'o>,
    /// The path of the topmost ancestor whose old and new values cannot be correlated.
    pub uncorrelated: Option<&'r str>,
    pub costs: &'r mut Costs,
    pub errors: &'r mut Errors,
}

impl CrdRuleChecker<'_, '_> {
    /// Checks the rules of a node that has some.
    pub fn check(&mut self, schema: &Props, scope: &RuleScope, path: &LinkedPath) {
        let Some(node) = &scope.0 else { return };
        let of = match &node.seen {
            NodeCelType::Typed(of) => of,
            NodeCelType::UntypedPart => {
                let problem = "failed to convert to declType for CEL validation rules";
                return self.errors.internal(path, problem);
            }
            NodeCelType::Outside | NodeCelType::Untyped => {
                let problem = "internal error: failed to construct type information for x-kubernetes-validations \
                               rules: unable to convert structural schema to CEL declarations";
                return self.errors.internal(path, problem);
            }
        };
        // Without a limit, assume as many values as fit into a request.
        let times = node.cardinality.unwrap_or_else(|| of.max_cardinality());
        for (at, rule) in schema.rules.iter().enumerate() {
            self.check_rule(rule, of, times, &LinkedPath::Index(path, at));
        }
    }

    fn check_rule(&mut self, rule: &ValidationRule, of: &Arc<CelType>, times: u64, path: &LinkedPath) {
        if rule.rule.trim().is_empty() {
            return;
        }
        let rule_path = &LinkedPath::Name(path, "rule");
        let optional_old = rule.optional_old_self == Some(true);
        let mut uses_old = false;
        match compile_expression(rule.rule, of, optional_old, self.options.environment_of_rule(rule.rule)) {
            Err(problem) if problem.is_limit => return self.errors.open(rule_path, rule.rule, &problem.text),
            Err(problem) => {
                self.errors.invalid_as(rule_path, &rule.show(), &format!("compilation failed: {problem}"));
            }
            Ok(compiled) if !compiled.is_condition() => {
                self.errors.invalid_as(rule_path, &rule.show(), "cel expression must evaluate to a bool");
            }
            Ok(CompiledExpression { program_error: Some(problem), uses_old: uses, .. }) => {
                uses_old = uses;
                let detail = format!("program instantiation failed: {problem}");
                self.errors.invalid_as(rule_path, &rule.show(), &detail);
            }
            Ok(compiled) => {
                uses_old = compiled.uses_old;
                let cost = compiled.cost.map(|cost| cost.saturating_mul(times));
                self.check_cost("estimated rule cost", cost, rule.rule, rule_path);
                self.check_message(rule, of, optional_old, &LinkedPath::Name(path, "messageExpression"));
            }
        }
        if uses_old {
            if let Some(above) = self.uncorrelated {
                let detail =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {above}");
                self.errors.invalid(rule_path, rule.rule, detail);
            }
        } else if let Some(optional) = rule.optional_old_self {
            let detail = "may not be set if oldSelf is not used in rule";
            self.errors.invalid(&LinkedPath::Name(path, "optionalOldSelf"), optional, detail);
        }
    }

    fn check_message(&mut self, rule: &ValidationRule, of: &Arc<CelType>, optional_old: bool, path: &LinkedPath) {
        let source = rule.message_expression;
        if source.is_empty() {
            return;
        }
        match compile_expression(source, of, optional_old, self.options.environment_of_message(source)) {
            Err(problem) if problem.is_limit => self.errors.open(path, source, &problem.text),
            Err(problem) => {
                let detail = format!("messageExpression compilation failed: {problem}");
                self.errors.invalid_as(path, &rule.show(), &detail);
            }
            Ok(compiled) if !compiled.is_text() => {
                self.errors.invalid_as(path, &rule.show(), "messageExpression must evaluate to a string");
            }
            Ok(CompiledExpression { program_error: Some(problem), .. }) => {
                let detail = format!("messageExpression instantiation failed: {problem}");
                self.errors.invalid_as(path, &rule.show(), &detail);
            }
            // The server does not multiply the cost of messages by the number of values.
            Ok(compiled) => self.check_cost("estimated messageExpression cost", compiled.cost, source, path),
        }
    }

    fn check_cost(&mut self, of: &str, cost: Result<u64, ExpressionError>, source: &str, path: &LinkedPath) {
        match cost {
            Ok(cost) => {
                if !self.options.any_rule_cost {
                    cost::check(of, cost, path, self.errors);
                }
                self.costs.add_cost(cost, path);
            }
            Err(problem) => self.errors.open(path, source, &problem.text),
        }
    }
}
