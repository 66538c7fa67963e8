//! Resolves the names in an expression: variables, types and functions.
//!
//! The server rejects a CRD with an expression that contains an unknown name.

use super::ast::{Expr, Literal, SelectionStep};
use super::library;
use super::problem::{ExpressionError, ExpressionResult};
use crate::re2::Patterns;
use crate::re2::{self, syntax};

/// The names of types. Those with dots are parsed as selections.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "google.protobuf.Duration",
    "google.protobuf.Timestamp",
    "int",
    "list",
    "map",
    "net.CIDR",
    "net.IP",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// The results of name resolution.
#[derive(Debug)]
pub(crate) struct ResolvedNames<'v> {
    /// Whether the expression uses `oldSelf`.
    pub uses_old: bool,
    /// The first pattern that prevents the server from compiling a program.
    pub program_error: Option<String>,
    /// The declared variables.
    variables: &'v [&'static str],
    scope: Vec<String>,
    /// The cache for literal patterns.
    patterns: Patterns,
}

/// The variables of a schema's rule.
const OF_A_RULE: &[&str] = &["self", OLD];
const OLD: &str = "oldSelf";

/// Resolves the names in `expr`, a rule of a schema.
pub(crate) fn resolve(expr: &mut Expr, patterns: &Patterns) -> ExpressionResult<ResolvedNames<'static>> {
    resolve_in(expr, OF_A_RULE, patterns)
}

/// Resolves the names in `expr`, which can use these variables.
pub(crate) fn resolve_in<'v>(
    expr: &mut Expr,
    variables: &'v [&'static str],
    patterns: &Patterns,
) -> ExpressionResult<ResolvedNames<'v>> {
    let mut names = ResolvedNames {
        uses_old: false,
        program_error: None,
        variables,
        scope: Vec::new(),
        patterns: patterns.clone(),
    };
    names.visit(expr)?;
    Ok(names)
}

impl ResolvedNames<'_> {
    /// `self`, or the reason why the server cannot compile the expression to a program.
    pub(crate) fn require_program(self) -> ExpressionResult<Self> {
        match self.program_error {
            Some(problem) => Err(problem.into()),
            None => Ok(self),
        }
    }

    fn visit(&mut self, expr: &mut Expr) -> ExpressionResult<()> {
        match expr {
            Expr::Literal(_) | Expr::TypeName(_) => Ok(()),
            Expr::Variable(name) => {
                if self.scope.contains(name) {
                    return Ok(());
                }
                if self.variables.contains(&name.as_str()) {
                    self.uses_old |= name == OLD;
                    return Ok(());
                }
                match TYPES.iter().find(|known| *known == name) {
                    Some(known) => *expr = Expr::TypeName(known),
                    None => return Err(format!("undeclared reference to '{name}'").into()),
                }
                Ok(())
            }
            Expr::Path { root, steps } => {
                if let Some(name) = self.type_name(root, steps) {
                    *expr = Expr::TypeName(name);
                    return Ok(());
                }
                self.visit(root)?;
                for step in steps {
                    if let SelectionStep::Index { index, .. } = step {
                        self.visit(index)?;
                    }
                }
                Ok(())
            }
            Expr::Has { operand, .. } => self.visit(operand),
            Expr::Not(operand) | Expr::Negate(operand) => self.visit(operand),
            Expr::And(operands) | Expr::Or(operands) => operands.iter_mut().try_for_each(|operand| self.visit(operand)),
            Expr::Conditional { cases, otherwise } => {
                for (condition, value) in cases {
                    self.visit(condition)?;
                    self.visit(value)?;
                }
                self.visit(otherwise)
            }
            Expr::Binary { first, rest } => {
                self.visit(first)?;
                rest.iter_mut().try_for_each(|(_, operand)| self.visit(operand))
            }
            Expr::List(items) => items.iter_mut().try_for_each(|(item, _)| self.visit(item)),
            Expr::Map(entries) => entries.iter_mut().try_for_each(|(key, value, _)| {
                self.visit(key)?;
                self.visit(value)
            }),
            Expr::Call(call) => {
                call.args.iter_mut().try_for_each(|arg| self.visit(arg))?;
                call.resolved.overloads = library::overloads(&call.function, call.member, call.args.len());
                if call.resolved.overloads.is_empty() {
                    let text = match library::is_known(&call.function) {
                        true => format!("found no matching overload for '{}'", call.function),
                        false => format!("undeclared reference to '{}'", call.function),
                    };
                    return Err(text.into());
                }
                if let ("matches" | "find" | "findAll", Some(Expr::Literal(Literal::String(pattern)))) =
                    (call.function.as_str(), call.args.get(1))
                {
                    if let Err(syntax::PatternError::Refused(text)) = syntax::check(pattern) {
                        // The server checks the patterns of `matches` before it compiles the program.
                        if call.function == "matches" {
                            return Err(text.into());
                        }
                        self.program_error.get_or_insert(text);
                        return Ok(());
                    }
                    re2::check(pattern).map_err(|unsupported| ExpressionError::limit(unsupported.into()))?;
                    call.pattern = Some(self.patterns.get(pattern));
                }
                Ok(())
            }
            Expr::Macro(of) => {
                self.visit(&mut of.target)?;
                let depth = self.scope.len();
                self.scope.extend(of.variables.iter().cloned());
                let filter = of.filter.as_mut().map_or(Ok(()), |filter| self.visit(filter));
                let body = self.visit(&mut of.body);
                self.scope.truncate(depth);
                filter.and(body)
            }
        }
    }

    /// The type that a path of plain selections refers to, such as `google.protobuf.Duration`.
    fn type_name(&self, root: &Expr, steps: &[SelectionStep]) -> Option<&'static str> {
        let Expr::Variable(first) = root else { return None };
        if self.scope.contains(first) {
            return None;
        }
        let mut name = first.clone();
        for step in steps {
            let SelectionStep::Field { name: next, optional: false } = step else { return None };
            name.push('.');
            name.push_str(next);
        }
        TYPES.iter().find(|known| **known == name).copied()
    }
}
