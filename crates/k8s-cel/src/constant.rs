//! The server's handling of constants when it compiles a rule: it converts them and builds lists and maps of them, and
//! rejects the rule if that fails, even if the constant would never be evaluated.

use super::ast::{Expr, FunctionCall, Literal};
use super::budget::CelBudget;
use super::eval::literal_value;
use super::fault::EvaluationError;
use super::value::{CelList, CelValue};
use crate::re2;

/// Checks a literal argument: the server converts literals when it compiles a rule, and rejects those that it cannot
/// convert.
pub(super) fn literal_argument(call: &FunctionCall) -> Result<(), String> {
    match call.args.as_slice() {
        // The server checks the target string as a pattern here, although the pattern is the second argument.
        [Expr::Literal(Literal::String(text)), _] if call.function == "matches" && !call.member => {
            Ok(re2::check(text)?)
        }
        _ => match converted(call) {
            Some(Err(EvaluationError::Error(why))) => Err(why),
            _ => Ok(()),
        },
    }
}

/// Whether the server checks the literal during type checking; it checks other literals when it compiles the program.
pub(super) fn is_validated(call: &FunctionCall) -> bool {
    match call.function.as_str() {
        "matches" => true,
        "duration" | "timestamp" => matches!(call.args.as_slice(), [Expr::Literal(_)]),
        _ => false,
    }
}

/// The functions that the server evaluates at compile time if the argument is a constant.
const CONVERSIONS: &[&str] =
    &["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// The result of converting a constant.
fn converted(call: &FunctionCall) -> Option<super::fault::CelResult<CelValue<'_>>> {
    let ([arg], [overload]) = (call.args.as_slice(), call.resolved.overloads.as_slice()) else { return None };
    let value = match arg {
        Expr::Literal(literal) => literal_value(literal),
        Expr::TypeName(name) => CelValue::Type(name),
        // The elements do not affect conversions.
        Expr::List(_) | Expr::Map(_) if is_constant(arg) => CelValue::List(CelList::new(Vec::new())),
        Expr::Call(inner) => converted(inner)?.ok()?,
        _ => return None,
    };
    CONVERSIONS.contains(&overload.name).then(|| {
        (overload.call)(&[value], &mut CelBudget::default()).unwrap_or_else(|| Err(EvaluationError::no_such_overload()))
    })
}

/// The Go type of a constant index if it cannot be used for a lookup. The server evaluates constants when it compiles
/// a rule.
pub(super) fn unfit_index(expr: &Expr) -> Option<&'static str> {
    match expr {
        Expr::Literal(Literal::Null) => Some("types.Null"),
        Expr::Literal(Literal::Bytes(_)) => Some("types.Bytes"),
        Expr::TypeName(_) => Some("*types.Type"),
        Expr::List(_) if is_constant(expr) => Some("*types.baseList"),
        Expr::Map(_) if is_constant(expr) => Some("*types.baseMap"),
        Expr::Call(call) if is_constant(expr) => match (call.function.as_str(), call.args.as_slice()) {
            ("bytes", _) => Some("types.Bytes"),
            ("duration", _) => Some("types.Duration"),
            ("timestamp", _) => Some("types.Timestamp"),
            ("type", _) => Some("*types.Type"),
            ("dyn", [arg]) => unfit_index(arg),
            _ => None,
        },
        _ => None,
    }
}

fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) | Expr::TypeName(_) => true,
        Expr::List(items) => items.iter().all(|(item, _)| is_constant(item)),
        Expr::Map(entries) => entries.iter().all(|(key, value, _)| is_constant(key) && is_constant(value)),
        Expr::Call(call) => match call.args.as_slice() {
            [arg] => !call.member && CONVERSIONS.contains(&call.function.as_str()) && is_constant(arg),
            _ => false,
        },
        _ => false,
    }
}
