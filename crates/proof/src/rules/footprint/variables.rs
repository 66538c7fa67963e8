//! Variables of an expression: finds and substitutes them.

use gantry_k8s_cel::ast::{Expr, FunctionCall, Macro, SelectionStep};

/// The expressions that this one directly consists of.
pub(in crate::rules) fn parts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Literal(_) | Expr::TypeName(_) | Expr::Variable(_) => Vec::new(),
        Expr::Path { root, steps } => {
            let indices = steps.iter().filter_map(|step| match step {
                SelectionStep::Index { index, .. } => Some(index),
                SelectionStep::Field { .. } => None,
            });
            std::iter::once(&**root).chain(indices).collect()
        }
        Expr::Has { operand, .. } | Expr::Not(operand) | Expr::Negate(operand) => vec![operand],
        Expr::And(operands) | Expr::Or(operands) => operands.iter().collect(),
        Expr::Conditional { cases, otherwise } => {
            cases.iter().flat_map(|(when, value)| [when, value]).chain([&**otherwise]).collect()
        }
        Expr::Binary { first, rest } => {
            std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand)).collect()
        }
        Expr::List(items) => items.iter().map(|(item, _)| item).collect(),
        Expr::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
        Expr::Call(call) => call.args.iter().collect(),
        Expr::Macro(of) => [&of.target, &of.body].into_iter().chain(&of.filter).collect(),
    }
}

/// Whether the expression uses the variable.
pub(super) fn mentions(expr: &Expr, name: &str) -> bool {
    let any = |exprs: &[Expr]| exprs.iter().any(|expr| mentions(expr, name));
    match expr {
        Expr::Literal(_) | Expr::TypeName(_) => false,
        Expr::Variable(variable) => variable == name,
        Expr::Path { root, steps } => {
            mentions(root, name)
                || steps.iter().any(|step| matches!(step, SelectionStep::Index { index, .. } if mentions(index, name)))
        }
        Expr::Has { operand, .. } | Expr::Not(operand) | Expr::Negate(operand) => mentions(operand, name),
        Expr::And(operands) | Expr::Or(operands) => any(operands),
        Expr::Conditional { cases, otherwise } => {
            mentions(otherwise, name) || cases.iter().any(|(when, value)| mentions(when, name) || mentions(value, name))
        }
        Expr::Binary { first, rest } => {
            mentions(first, name) || rest.iter().any(|(_, operand)| mentions(operand, name))
        }
        Expr::List(items) => items.iter().any(|(item, _)| mentions(item, name)),
        Expr::Map(entries) => entries.iter().any(|(key, value, _)| mentions(key, name) || mentions(value, name)),
        Expr::Call(call) => any(&call.args),
        Expr::Macro(of) => {
            mentions(&of.target, name)
                || !of.variables.iter().any(|variable| variable == name)
                    && (mentions(&of.body, name) || of.filter.as_ref().is_some_and(|filter| mentions(filter, name)))
        }
    }
}

/// Whether a macro in `expr` binds a variable that `value` mentions, so that `value` would mean something else there.
pub(super) fn binds_any_of(expr: &Expr, value: &Expr) -> bool {
    let is_bound = match expr {
        Expr::Macro(of) => of.variables.iter().any(|variable| mentions(value, variable)),
        _ => false,
    };
    is_bound || parts(expr).into_iter().any(|part| binds_any_of(part, value))
}

/// `expr` with `value` in place of the variable.
pub(super) fn replaced(expr: &Expr, variable: &str, value: &Expr) -> Expr {
    let again = |expr: &Expr| replaced(expr, variable, value);
    let boxed = |expr: &Expr| Box::new(replaced(expr, variable, value));
    match expr {
        Expr::Literal(_) | Expr::TypeName(_) => expr.clone(),
        Expr::Variable(name) => if name == variable { value } else { expr }.clone(),
        Expr::Path { root, steps } => {
            let step = |step: &SelectionStep| match step {
                SelectionStep::Index { index, optional } => {
                    SelectionStep::Index { index: again(index), optional: *optional }
                }
                field @ SelectionStep::Field { .. } => field.clone(),
            };
            Expr::Path { root: boxed(root), steps: steps.iter().map(step).collect() }
        }
        Expr::Has { operand, field } => Expr::Has { operand: boxed(operand), field: field.clone() },
        Expr::Not(operand) => Expr::Not(boxed(operand)),
        Expr::Negate(operand) => Expr::Negate(boxed(operand)),
        Expr::And(operands) => Expr::And(operands.iter().map(again).collect()),
        Expr::Or(operands) => Expr::Or(operands.iter().map(again).collect()),
        Expr::Conditional { cases, otherwise } => Expr::Conditional {
            cases: cases.iter().map(|(when, value)| (again(when), again(value))).collect(),
            otherwise: boxed(otherwise),
        },
        Expr::Binary { first, rest } => Expr::Binary {
            first: boxed(first),
            rest: rest.iter().map(|(operator, operand)| (*operator, again(operand))).collect(),
        },
        Expr::List(items) => Expr::List(items.iter().map(|(item, optional)| (again(item), *optional)).collect()),
        Expr::Map(entries) => {
            Expr::Map(entries.iter().map(|(key, value, optional)| (again(key), again(value), *optional)).collect())
        }
        Expr::Call(call) => Expr::Call(FunctionCall { args: call.args.iter().map(again).collect(), ..call.clone() }),
        Expr::Macro(of) => {
            // An inner variable of the same name hides this one.
            let is_hidden = of.variables.iter().any(|name| name == variable);
            let inner = |expr: &Expr| if is_hidden || !mentions(expr, variable) { expr.clone() } else { again(expr) };
            let (target, filter, body) = (again(&of.target), of.filter.as_ref().map(inner), inner(&of.body));
            Expr::Macro(Box::new(Macro { target, filter, body, ..Macro::clone(of) }))
        }
    }
}
