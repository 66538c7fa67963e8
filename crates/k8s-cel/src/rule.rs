//! A rule of `x-kubernetes-validations`: its result for a value, and its message.

use std::sync::Arc;

use serde_json::Value as Json;

use super::ast::Expr;
use super::budget::{CelBudget, EXHAUSTED};
use super::check::{Analysis, analyze, check};
use super::convert::{misfit, typed};
use super::environment::CelEnvironment;
use super::eval::Evaluation;
use super::fault::EvaluationError;
use super::field_path::{FieldPath, normalized};
use super::parser::{parse, parse_in};
use super::problem::{ExpressionError, ExpressionResult};
use super::resolve::resolve;
use super::types::CelType;
use super::typing::{BOOL, STRING, Ty};
use super::value::CelValue;
use crate::re2::Patterns;

/// The maximum length of a message from a `messageExpression`.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// The result of a rule for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CelRuleResult {
    /// The rule is true.
    Holds,
    /// The rule is false, or its evaluation fails.
    Fails(FailedCelRule),
    /// The rule is a transition rule, and there is no old value.
    NotApplicable,
    /// The result is unknown; the string is the reason.
    Undecided(String),
}

/// The server's report of a failing rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedCelRule {
    /// The message of the rule, or of the error.
    pub message: String,
    /// The reason that the rule declares.
    pub reason: RuleFailureReason,
    /// The field that the failure is attributed to.
    pub field_path: Option<FieldPath>,
    /// Whether the evaluation failed, which it does in the server too. Then the server prints the name of the value's
    /// type as the bad value, the failure has no declared reason, and it is not tolerated for unchanged values.
    pub is_error: bool,
}

/// The kind of error that a failure is reported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleFailureReason {
    /// `FieldValueInvalid`, which is the default.
    Invalid,
    /// `FieldValueForbidden`
    Forbidden,
    /// `FieldValueRequired`
    Required,
    /// `FieldValueDuplicate`
    Duplicate,
}

/// A compiled rule.
#[derive(Debug, Clone)]
pub struct CompiledRule {
    source: String,
    node: Arc<NodeRules>,
    /// `Ok(None)` for an empty rule, which holds. The error is the reason why the rule cannot be evaluated.
    expr: Result<Option<Expr>, String>,
    uses_old: bool,
    optional_old: bool,
    message: Option<String>,
    message_expr: Option<Expr>,
    reason: RuleFailureReason,
    field_path: Option<FieldPath>,
}

/// The data shared by all rules of one schema node.
#[derive(Debug)]
struct NodeRules {
    of: Arc<CelType>,
    /// Whether one of the rules uses `oldSelf`: otherwise message expressions cannot use it either.
    uses_old: bool,
}

/// Compiles the rules of a schema node. `resource` is whether the node is the root of a custom resource.
///
/// The result includes rules that cannot be compiled: their result is always [`CelRuleResult::Undecided`].
pub fn compile_rules(schema: &Json, validations: &[Json], resource: bool) -> Vec<CompiledRule> {
    compile_rules_sharing(schema, validations, resource, &Patterns::default())
}

/// [`compile_rules`] with literal patterns shared with others: each is compiled once, on first use.
pub fn compile_rules_sharing(
    schema: &Json,
    validations: &[Json],
    resource: bool,
    patterns: &Patterns,
) -> Vec<CompiledRule> {
    let of = CelType::compile(schema, resource);
    let mut rules: Vec<CompiledRule> = Vec::with_capacity(validations.len());
    let placeholder = Arc::new(NodeRules { of: Arc::clone(&of), uses_old: false });
    for validation in validations {
        rules.push(compile(schema, validation, Arc::clone(&placeholder), patterns));
    }
    let node = Arc::new(NodeRules { of, uses_old: rules.iter().any(|rule| rule.uses_old) });
    for rule in &mut rules {
        rule.node = Arc::clone(&node);
    }
    rules
}

fn compile(schema: &Json, validation: &Json, node: Arc<NodeRules>, patterns: &Patterns) -> CompiledRule {
    let text = |key: &str| validation.get(key).and_then(Json::as_str);
    let source = text("rule").unwrap_or_default();
    let optional_old = validation.get("optionalOldSelf") == Some(&Json::Bool(true));
    let mut uses_old = false;
    let expr = if source.trim().is_empty() {
        Ok(None)
    } else if !node.of.is_declared() {
        Err("the schema does not specify a type, so it cannot have rules".to_owned())
    } else {
        expression(source, &node.of, optional_old, &BOOL, patterns).map(|(expr, uses)| {
            uses_old = uses;
            Some(expr)
        })
    };
    let message_expr = text("messageExpression")
        .filter(|source| !source.trim().is_empty())
        .and_then(|source| expression(source, &node.of, optional_old, &STRING, patterns).ok())
        .map(|(expr, _)| expr);
    CompiledRule {
        source: source.to_owned(),
        node,
        expr,
        uses_old,
        optional_old,
        message: text("message").filter(|message| !message.is_empty()).map(|message| message.trim().to_owned()),
        message_expr,
        reason: match text("reason") {
            Some("FieldValueForbidden") => RuleFailureReason::Forbidden,
            Some("FieldValueRequired") => RuleFailureReason::Required,
            Some("FieldValueDuplicate") => RuleFailureReason::Duplicate,
            _ => RuleFailureReason::Invalid,
        },
        field_path: text("fieldPath").and_then(|path| normalized(path, schema)),
    }
}

/// The expression of a rule with resolved names; `None` for an empty rule, which holds.
///
/// # Errors
/// The text is not an expression, or it exceeds this implementation.
pub fn parse_rule(source: &str) -> Result<Option<Expr>, ExpressionError> {
    if source.trim().is_empty() {
        return Ok(None);
    }
    let resolved = |source| -> ExpressionResult<Expr> {
        let mut expr = parse(source)?;
        resolve(&mut expr, &Patterns::default())?.require_program()?;
        Ok(expr)
    };
    resolved(source).map(Some)
}

/// A well-typed expression, with the results that the server computes when a CRD is written.
#[derive(Debug)]
pub struct CompiledExpression {
    ty: Ty,
    /// Whether it uses `oldSelf`.
    pub uses_old: bool,
    /// The reason why the server cannot compile it to a program, if any.
    pub program_error: Option<String>,
    /// The server's estimate of its maximum cost.
    pub cost: ExpressionResult<u64>,
}

impl CompiledExpression {
    /// Whether it is boolean, as required for a rule.
    pub fn is_condition(&self) -> bool {
        self.ty == BOOL
    }

    /// Whether it returns a string, as required for a message.
    pub fn is_text(&self) -> bool {
        self.ty == STRING
    }
}

/// Compiles an expression for a value of type `of`. `optional_old` is whether `oldSelf` is an optional.
///
/// In a release that came after the newest known one, names and overloads that are not declared are limits of this
/// implementation.
pub fn compile_expression(
    source: &str,
    of: &Arc<CelType>,
    optional_old: bool,
    environment: CelEnvironment,
) -> ExpressionResult<CompiledExpression> {
    let compiled = || {
        let mut expr = parse_in(source, environment)?;
        let names = resolve(&mut expr, &Patterns::default())?;
        let Analysis { ty, program_error, cost } = analyze(&expr, of, optional_old, environment)?;
        let program_error = names.program_error.or(program_error);
        Ok(CompiledExpression { ty, uses_old: names.uses_old, program_error, cost })
    };
    compiled().map_err(|error: ExpressionError| {
        let may_be_declared = environment.release().is_unknown() && error.is_undeclared();
        ExpressionError { is_limit: error.is_limit || may_be_declared, ..error }
    })
}

/// Compiles an expression that must have the type `wanted`; also returns whether it uses `oldSelf`.
fn expression(
    source: &str,
    of: &Arc<CelType>,
    optional_old: bool,
    wanted: &Ty,
    patterns: &Patterns,
) -> Result<(Expr, bool), String> {
    let checked = || -> ExpressionResult<(Expr, Ty, bool)> {
        let mut expr = parse(source)?;
        let uses_old = resolve(&mut expr, patterns)?.require_program()?.uses_old;
        let ty = check(&expr, of, optional_old)?;
        Ok((expr, ty, uses_old))
    };
    let (expr, ty, uses_old) = checked().map_err(|problem| problem.text)?;
    match ty == *wanted {
        true => Ok((expr, uses_old)),
        false => Err(format!("the expression must evaluate to {wanted}, not {ty}")),
    }
}

impl CompiledRule {
    /// The rule as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the rule uses the old value. The failure of such a rule is never tolerated on update.
    pub fn is_transition(&self) -> bool {
        self.uses_old
    }

    /// The `type` of the rule's schema node, which is printed as the bad value if the evaluation fails.
    pub fn type_name(&self) -> &str {
        &self.node.of.name
    }

    /// The reason why the rule cannot be evaluated at all, if any.
    pub fn problem(&self) -> Option<&str> {
        self.expr.as_ref().err().map(String::as_str)
    }

    /// Evaluates the rule for `this`, a value of the node's schema. `old` is the value that it replaces.
    pub fn evaluate(&self, this: &Json, old: Option<&Json>, budget: &mut CelBudget) -> CelRuleResult {
        let expr = match &self.expr {
            Ok(Some(expr)) => expr,
            Ok(None) => return CelRuleResult::Holds,
            Err(reason) => return CelRuleResult::Undecided(reason.clone()),
        };
        // Rules do not apply to null values; only the rules of a parent can access them.
        if this.is_null() {
            return CelRuleResult::Holds;
        }
        let old = old.filter(|old| !old.is_null());
        if self.uses_old && old.is_none() && !self.optional_old {
            return CelRuleResult::NotApplicable;
        }
        budget.next_rule();
        match self.run(expr, this, old, budget) {
            _ if budget.is_exhausted() => CelRuleResult::Undecided(EXHAUSTED.to_owned()),
            Ok(CelValue::Bool(true)) => CelRuleResult::Holds,
            Ok(CelValue::Bool(false)) => CelRuleResult::Fails(FailedCelRule {
                message: self.failure_message(this, old, budget),
                reason: self.reason,
                field_path: self.field_path.clone(),
                is_error: false,
            }),
            Ok(_) => CelRuleResult::Undecided("the rule does not evaluate to a bool".to_owned()),
            Err(EvaluationError::Undecided(reason)) => CelRuleResult::Undecided(reason),
            Err(EvaluationError::Error(text) | EvaluationError::Abort(text)) => CelRuleResult::Fails(FailedCelRule {
                message: self.error_message(&text),
                reason: RuleFailureReason::Invalid,
                field_path: None,
                is_error: true,
            }),
        }
    }

    fn run<'a>(
        &'a self,
        expr: &'a Expr,
        this: &'a Json,
        old: Option<&'a Json>,
        budget: &mut CelBudget,
    ) -> super::fault::CelResult<CelValue<'a>> {
        let of = &*self.node.of;
        let mut variables = Vec::with_capacity(2);
        variables.push(("self", typed(this, of)));
        if self.node.uses_old {
            match (old, self.optional_old) {
                // The optional has a value even if that does not match the schema.
                (Some(old), true) => variables.push(("oldSelf", misfit(typed(old, of)).map(CelValue::some))),
                (Some(old), false) => variables.push(("oldSelf", typed(old, of))),
                (None, true) => variables.push(("oldSelf", Ok(CelValue::Optional(None)))),
                (None, false) => {}
            }
        }
        Evaluation::new(variables, budget).eval(expr)
    }

    /// The text that identifies the rule in messages.
    fn name(&self) -> &str {
        self.message.as_deref().unwrap_or_else(|| self.source.trim())
    }

    fn error_message(&self, text: &str) -> String {
        if text.starts_with("no such overload") {
            return format!(
                "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {}",
                self.name()
            );
        }
        format!("{text} evaluating rule: {}", self.name())
    }

    fn failure_message(&self, this: &Json, old: Option<&Json>, budget: &mut CelBudget) -> String {
        if let Some(expr) = &self.message_expr {
            budget.next_rule();
            // If the expression fails or returns an unprintable message, the fixed message is used.
            if let Ok(CelValue::String(text)) = self.run(expr, this, old, budget) {
                let text = text.trim();
                if !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n') {
                    return text.to_owned();
                }
            }
        }
        match &self.message {
            Some(message) => message.clone(),
            None => format!("failed rule: {}", self.source.trim()),
        }
    }
}
