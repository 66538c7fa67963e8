//! Shapes of rules for which a few items of a list decide.

use super::variables::{mentions, replaced};
use gantry_k8s_cel::ast::{BinaryOperator, Expr, FunctionCall, Literal, Macro, MacroKind};

/// Whether the rule checks each item of `self` separately.
pub(super) fn is_of_each(expr: &Expr) -> bool {
    matches!(expr, Expr::Macro(of) if of.kind == MacroKind::All && is_self(&of.target) && of.filter.is_none()
        && !mentions(&of.body, "self") && !mentions(&of.body, "oldSelf"))
}

/// Whether the rule compares each item of `self` with all items exactly once: `self.all(a, self.exists_one(b, …))`,
/// possibly under a condition on `a`.
///
/// A list without some of its items passes where the whole list does, provided that each item passes alone; and if a
/// list fails, two of its items fail. For let `a` be an item, `m` how many items fit it, and the rule `F(a, m = 1)`,
/// which is no less true the more `m = 1` is. Without other items `m` shrinks. If it shrinks from 1 to 0, `a` does not
/// fit itself, and then passing alone says `F(a, false)`. And if `F(a, m = 1)` fails, then `m` is 0 or at least 2:
/// either `a` does not fit itself, and fails alone, or `a` and another item that fits it fail together. For an inner
/// `all` both are plain.
pub(super) fn is_paired(expr: &Expr) -> bool {
    let Expr::Macro(of) = expr else { return false };
    of.kind == MacroKind::All
        && is_self(&of.target)
        && of.filter.is_none()
        && !mentions(&of.body, "oldSelf")
        && inner(&of.body) == Some(1)
}

/// The rule with counts replaced by `all` and `exists_one`, if that is equivalent: `size(self.filter(i,
/// size(self.filter(j, j == i)) > 1)) == 0` means that no two items are equal, as does `self.all(i, self.exists_one(j,
/// j == i))`. The result is only analysed, never evaluated.
pub(super) fn uncounted(expr: Expr) -> Expr {
    let of_each = |of: &Macro| {
        let body = of_others(negated(of.body.clone()), &of.variables);
        Expr::Macro(Box::new(Macro { kind: MacroKind::All, body, ..of.clone() }))
    };
    match &expr {
        Expr::Macro(of) if of.kind == MacroKind::All => {
            let body = of_others(of.body.clone(), &of.variables);
            Expr::Macro(Box::new(Macro { body, ..Macro::clone(of) }))
        }
        Expr::Not(operand) => match &**operand {
            Expr::Macro(of) if of.kind == MacroKind::Exists => of_each(of),
            _ => expr,
        },
        _ => match count(&expr) {
            Some((of, BinaryOperator::Equal | BinaryOperator::LessEqual, 0) | (of, BinaryOperator::Less, 1)) => {
                of_each(of)
            }
            _ => expr,
        },
    }
}

/// Replaces counts of items that equal the item of the enclosing macro: an item equals itself, so the count is at least
/// one.
fn of_others(expr: Expr, variables: &[String]) -> Expr {
    let again = |expr: Expr| of_others(expr, variables);
    match expr {
        Expr::And(operands) => Expr::And(operands.into_iter().map(again).collect()),
        Expr::Or(operands) => Expr::Or(operands.into_iter().map(again).collect()),
        Expr::Not(operand) => match *operand {
            Expr::Not(operand) => again(*operand),
            operand => match count(&operand) {
                Some(_) => again(negated(operand)),
                None => Expr::Not(Box::new(operand)),
            },
        },
        expr => match (count(&expr), variables) {
            (
                Some((of, BinaryOperator::Equal | BinaryOperator::LessEqual, 1) | (of, BinaryOperator::Less, 2)),
                [item],
            ) if is_self(&of.target) && is_equality(&of.body, &of.variables, item) => {
                Expr::Macro(Box::new(Macro { kind: MacroKind::ExistsOne, ..of.clone() }))
            }
            _ => expr,
        },
    }
}

/// A comparison of `size(list.filter(x, …))` with a number, with the count on the left.
fn count(expr: &Expr) -> Option<(&Macro, BinaryOperator, i64)> {
    let Expr::Binary { first, rest } = expr else { return None };
    let [(operator, second)] = &rest[..] else { return None };
    let counted = |expr: &'_ Expr| matches!(expr, Expr::Call(call) if is_count(call));
    let (call, operator, number) = match (counted(first), &**first, second) {
        (true, call, Expr::Literal(Literal::Int(number))) => (call, *operator, *number),
        (false, Expr::Literal(Literal::Int(number)), call) if counted(call) => {
            (call, swap_operands(*operator), *number)
        }
        _ => return None,
    };
    match call {
        Expr::Call(FunctionCall { args, .. }) => match &args[..] {
            [Expr::Macro(of)] => Some((of, operator, number)),
            _ => None,
        },
        _ => None,
    }
}

fn is_count(call: &FunctionCall) -> bool {
    let is_filter = |of: &Macro| of.kind == MacroKind::Filter && of.filter.is_none() && of.variables.len() == 1;
    call.function == "size" && matches!(&call.args[..], [Expr::Macro(of)] if is_filter(of))
}

/// The operator for swapped operands.
fn swap_operands(operator: BinaryOperator) -> BinaryOperator {
    match operator {
        BinaryOperator::Less => BinaryOperator::Greater,
        BinaryOperator::LessEqual => BinaryOperator::GreaterEqual,
        BinaryOperator::Greater => BinaryOperator::Less,
        BinaryOperator::GreaterEqual => BinaryOperator::LessEqual,
        other => other,
    }
}

/// The negated expression. A comparison is inverted.
fn negated(expr: Expr) -> Expr {
    let operator = match &expr {
        Expr::Not(operand) => return (**operand).clone(),
        Expr::Binary { rest, .. } => match &rest[..] {
            [(BinaryOperator::Less, _)] => Some(BinaryOperator::GreaterEqual),
            [(BinaryOperator::LessEqual, _)] => Some(BinaryOperator::Greater),
            [(BinaryOperator::Greater, _)] => Some(BinaryOperator::LessEqual),
            [(BinaryOperator::GreaterEqual, _)] => Some(BinaryOperator::Less),
            [(BinaryOperator::Equal, _)] => Some(BinaryOperator::NotEqual),
            [(BinaryOperator::NotEqual, _)] => Some(BinaryOperator::Equal),
            _ => None,
        },
        _ => None,
    };
    match (operator, expr) {
        (Some(operator), Expr::Binary { first, rest }) => {
            Expr::Binary { first, rest: rest.into_iter().map(|(_, operand)| (operator, operand)).collect() }
        }
        (_, expr) => Expr::Not(Box::new(expr)),
    }
}

/// Whether a condition on two items means that parts of them are equal, which every item satisfies with itself.
fn is_equality(condition: &Expr, variables: &[String], item: &str) -> bool {
    let [other] = variables else { return false };
    match condition {
        Expr::And(operands) => operands.iter().all(|operand| is_equality(operand, variables, item)),
        Expr::Binary { first, rest } => match &rest[..] {
            [(BinaryOperator::Equal, second)] => {
                let of_item = |expr: &Expr| replaced(expr, other, &Expr::Variable(item.to_owned()));
                let text = |expr: &Expr| format!("{expr:?}");
                other != item && text(&of_item(first)) == text(&of_item(second))
            }
            _ => false,
        },
        _ => false,
    }
}

pub(super) fn is_self(expr: &Expr) -> bool {
    matches!(expr, Expr::Variable(name) if name == "self")
}

/// The number of macros over `self` in the expression, all in positions where the expression is monotonic in them.
/// None: it mentions `self` in another way.
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
