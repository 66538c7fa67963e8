//! A rule of `x-kubernetes-validations`: what it says of a value, and in which words.

use std::sync::Arc;

use serde_json::Value as Json;

use super::ast::Expr;
use super::budget::Budget;
use super::check::{Checkup, check, check_up};
use super::convert::{misfit, typed};
use super::eval::Evaluation;
use super::fault::Fault;
use super::field_path::{FieldPath, normalized};
use super::parser::parse;
use super::problem::Parsed;
use super::resolve::resolve;
use super::types::Type;
use super::typing::{BOOL, STRING, Ty};
use super::value::Value;
use crate::Patterns;

/// The longest message that a `messageExpression` may make.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

/// What a rule says of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The rule is true.
    Holds,
    /// The rule is false, or ends in an error.
    Fails(Failure),
    /// A transition rule, and there is no old value.
    NotApplicable,
    /// We do not know, and why.
    Undecided(String),
}

/// How the server reports that a rule fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The message of the rule, or of the error.
    pub message: String,
    /// The reason that the rule names.
    pub reason: Reason,
    /// The field that the failure is about.
    pub field_path: Option<FieldPath>,
    /// Whether the rule could not be evaluated, on the server neither. Then what is printed as the bad value is the
    /// name of the value's type, the failure has no reason of its own, and an unchanged value does not excuse it.
    pub is_error: bool,
}

/// The kind of error that a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
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
pub struct Rule {
    source: String,
    node: Arc<Node>,
    /// None: the rule is empty and holds. An error: why it cannot be evaluated.
    expr: Result<Option<Expr>, String>,
    uses_old: bool,
    optional_old: bool,
    message: Option<String>,
    message_expr: Option<Expr>,
    reason: Reason,
    field_path: Option<FieldPath>,
}

/// What the rules of one schema node share.
#[derive(Debug)]
struct Node {
    of: Arc<Type>,
    /// Whether one of the rules uses `oldSelf`: only then message expressions can.
    uses_old: bool,
}

/// Compiles the rules of a schema node. `resource` says that the node is the root of a custom resource.
///
/// A rule that cannot be compiled is among the result: its answer is always undecided.
pub fn compile_rules(schema: &Json, validations: &[Json], resource: bool) -> Vec<Rule> {
    compile_rules_sharing(schema, validations, resource, &Patterns::default())
}

/// [`compile_rules`] with literal patterns that others have, too: each is compiled when it is first needed, once for all.
pub fn compile_rules_sharing(schema: &Json, validations: &[Json], resource: bool, patterns: &Patterns) -> Vec<Rule> {
    let of = Type::compile(schema, resource);
    let mut rules: Vec<Rule> = Vec::with_capacity(validations.len());
    let placeholder = Arc::new(Node { of: Arc::clone(&of), uses_old: false });
    for validation in validations {
        rules.push(compile(schema, validation, Arc::clone(&placeholder), patterns));
    }
    let node = Arc::new(Node { of, uses_old: rules.iter().any(|rule| rule.uses_old) });
    for rule in &mut rules {
        rule.node = Arc::clone(&node);
    }
    rules
}

fn compile(schema: &Json, validation: &Json, node: Arc<Node>, patterns: &Patterns) -> Rule {
    let text = |key: &str| validation.get(key).and_then(Json::as_str);
    let source = text("rule").unwrap_or_default();
    let optional_old = validation.get("optionalOldSelf") == Some(&Json::Bool(true));
    let mut uses_old = false;
    let expr = if source.trim().is_empty() {
        Ok(None)
    } else if !node.of.is_declared() {
        Err("the schema gives the value no type that rules could be about".to_owned())
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
    Rule {
        source: source.to_owned(),
        node,
        expr,
        uses_old,
        optional_old,
        message: text("message").filter(|message| !message.is_empty()).map(|message| message.trim().to_owned()),
        message_expr,
        reason: match text("reason") {
            Some("FieldValueForbidden") => Reason::Forbidden,
            Some("FieldValueRequired") => Reason::Required,
            Some("FieldValueDuplicate") => Reason::Duplicate,
            _ => Reason::Invalid,
        },
        field_path: text("fieldPath").and_then(|path| normalized(path, schema)),
    }
}

/// The expression of a rule, its names resolved; none for an empty rule, which holds.
pub fn parse_rule(source: &str) -> Result<Option<Expr>, String> {
    if source.trim().is_empty() {
        return Ok(None);
    }
    let resolved = |source| -> Parsed<Expr> {
        let mut expr = parse(source)?;
        resolve(&mut expr, &Patterns::default())?.working()?;
        Ok(expr)
    };
    resolved(source).map(Some).map_err(|problem| problem.text)
}

/// An expression of which the types are right, as the server finds it when a CRD is written.
pub(crate) struct Compiled {
    ty: Ty,
    pub uses_old: bool,
    /// Why the server can make no program of it, if so.
    pub broken: Option<String>,
    /// What it may cost at most, as the server estimates it.
    pub cost: Parsed<u64>,
}

impl Compiled {
    /// Whether it is true or false, as a rule has to be.
    pub(crate) fn is_condition(&self) -> bool {
        self.ty == BOOL
    }

    /// Whether it makes a text, as a message has to.
    pub(crate) fn is_text(&self) -> bool {
        self.ty == STRING
    }
}

/// Compiles an expression about a value of that type. `optional_old` says that `oldSelf` is an optional.
pub(crate) fn compile_expression(source: &str, of: &Arc<Type>, optional_old: bool) -> Parsed<Compiled> {
    let mut expr = parse(source)?;
    let names = resolve(&mut expr, &Patterns::default())?;
    let Checkup { ty, broken, cost } = check_up(&expr, of, optional_old)?;
    Ok(Compiled { ty, uses_old: names.uses_old, broken: names.broken.or(broken), cost })
}

/// The expression, which has to be of the type `wanted`, and whether it uses `oldSelf`.
fn expression(
    source: &str,
    of: &Arc<Type>,
    optional_old: bool,
    wanted: &Ty,
    patterns: &Patterns,
) -> Result<(Expr, bool), String> {
    let checked = || -> Parsed<(Expr, Ty, bool)> {
        let mut expr = parse(source)?;
        let uses_old = resolve(&mut expr, patterns)?.working()?.uses_old;
        let ty = check(&expr, of, optional_old)?;
        Ok((expr, ty, uses_old))
    };
    let (expr, ty, uses_old) = checked().map_err(|problem| problem.text)?;
    match ty == *wanted {
        true => Ok((expr, uses_old)),
        false => Err(format!("the expression must evaluate to {wanted}, not {ty}")),
    }
}

impl Rule {
    /// The rule as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Whether the rule compares with the old value. The failure of such a rule is never tolerated on update.
    pub fn is_transition(&self) -> bool {
        self.uses_old
    }

    /// The `type` of the rule's schema node: what is printed as the bad value where the rule cannot be evaluated.
    pub fn type_name(&self) -> &str {
        &self.node.of.name
    }

    /// Why the rule cannot be evaluated at all, if so.
    pub fn problem(&self) -> Option<&str> {
        self.expr.as_ref().err().map(String::as_str)
    }

    /// What the rule says of `this`, a value of the node's schema. `old` is the value that it replaces.
    pub fn evaluate(&self, this: &Json, old: Option<&Json>, budget: &mut Budget) -> Answer {
        let expr = match &self.expr {
            Ok(Some(expr)) => expr,
            Ok(None) => return Answer::Holds,
            Err(reason) => return Answer::Undecided(reason.clone()),
        };
        // Null values have no rules: the rules of their parent can look at them.
        if this.is_null() {
            return Answer::Holds;
        }
        let old = old.filter(|old| !old.is_null());
        if self.uses_old && old.is_none() && !self.optional_old {
            return Answer::NotApplicable;
        }
        budget.next_rule();
        match self.run(expr, this, old, budget) {
            _ if budget.is_exhausted() => {
                Answer::Undecided("the rule takes more steps than its budget allows".to_owned())
            }
            Ok(Value::Bool(true)) => Answer::Holds,
            Ok(Value::Bool(false)) => Answer::Fails(Failure {
                message: self.failure_message(this, old, budget),
                reason: self.reason,
                field_path: self.field_path.clone(),
                is_error: false,
            }),
            Ok(_) => Answer::Undecided("the rule does not evaluate to a bool".to_owned()),
            Err(Fault::Undecided(reason)) => Answer::Undecided(reason),
            Err(Fault::Error(text) | Fault::Abort(text)) => Answer::Fails(Failure {
                message: self.error_message(&text),
                reason: Reason::Invalid,
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
        budget: &mut Budget,
    ) -> super::fault::Result<Value<'a>> {
        let of = &*self.node.of;
        let mut variables = Vec::with_capacity(2);
        variables.push(("self", typed(this, of)));
        if self.node.uses_old {
            match (old, self.optional_old) {
                // There is a value even where it does not fit the schema.
                (Some(old), true) => variables.push(("oldSelf", misfit(typed(old, of)).map(Value::some))),
                (Some(old), false) => variables.push(("oldSelf", typed(old, of))),
                (None, true) => variables.push(("oldSelf", Ok(Value::Optional(None)))),
                (None, false) => {}
            }
        }
        Evaluation::new(variables, budget).eval(expr)
    }

    /// How the server names the rule in messages.
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

    fn failure_message(&self, this: &Json, old: Option<&Json>, budget: &mut Budget) -> String {
        if let Some(expr) = &self.message_expr {
            budget.next_rule();
            // An expression that makes no message, or one that is not fit to print, leaves it to the fixed one.
            if let Ok(Value::String(text)) = self.run(expr, this, old, budget) {
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
