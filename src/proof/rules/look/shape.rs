//! Shapes of rules for which few items of a list decide.

use crate::validation::cel::ast::{Expr, MacroKind, Step};

/// Whether the rule asks something of each item of `self`, one by one.
pub(super) fn is_of_each(expr: &Expr) -> bool {
    matches!(expr, Expr::Macro(of) if of.kind == MacroKind::All && is_self(&of.target) && of.filter.is_none()
        && !mentions(&of.body, "self") && !mentions(&of.body, "oldSelf"))
}

/// Whether the rule asks of each item of `self` something that compares it with all others, once:
/// `self.all(a, self.exists_one(b, …))`, perhaps where a condition on `a` holds.
///
/// A list without some of its items passes where the whole list does, provided that each item passes alone; and if a
/// list fails, two of its items fail. For let `a` be an item, `m` how many items fit it, and the rule `F(a, m = 1)`,
/// which is no less true the more `m = 1` is. Without other items `m` shrinks. If it shrinks from 1 to 0, `a` does not
/// fit itself, and then passing alone says `F(a, false)`. And if `F(a, m = 1)` fails, then `m` is 0 or at least 2: either
/// `a` does not fit itself, and fails alone, or `a` and another item that fits it fail together. For an inner `all` both
/// are plain.
pub(super) fn is_paired(expr: &Expr) -> bool {
    let Expr::Macro(of) = expr else { return false };
    of.kind == MacroKind::All
        && is_self(&of.target)
        && of.filter.is_none()
        && !mentions(&of.body, "oldSelf")
        && inner(&of.body) == Some(1)
}

pub(super) fn is_self(expr: &Expr) -> bool {
    matches!(expr, Expr::Variable(name) if name == "self")
}

/// How many macros over `self` the expression has, each of them where the expression is no less true when they are. None:
/// it mentions `self` in another way.
fn inner(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Macro(of) if is_self(&of.target) => {
            let is_plain = of.filter.is_none() && !mentions(&of.body, "self");
            (is_plain && matches!(of.kind, MacroKind::All | MacroKind::ExistsOne)).then_some(1)
        }
        Expr::And(operands) | Expr::Or(operands) => operands.iter().map(inner).sum(),
        Expr::Conditional { cases, otherwise } => {
            let plain = cases.iter().all(|(when, _)| !mentions(when, "self"));
            let values = cases.iter().map(|(_, value)| value).chain([&**otherwise]).map(inner);
            if plain { values.sum() } else { None }
        }
        other => (!mentions(other, "self")).then_some(0),
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
                || steps.iter().any(|step| matches!(step, Step::Index { index, .. } if mentions(index, name)))
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
