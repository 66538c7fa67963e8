//! Recognizes macros: calls whose arguments are not values but expressions with their own variables.

use super::ast::{Expr, Macro, MacroKind, ResolvedCall, SelectionStep};
use super::problem::{ExpressionError, ExpressionResult};

/// Namespaces of functions such as `sets.contains`: the apparent selection on a variable is part of the name.
const NAMESPACES: &[&str] = &["format", "ip", "lists", "optional", "sets", "strings"];

/// `name(args)`
pub(crate) fn global_call(name: String, mut args: Vec<Expr>) -> ExpressionResult<Expr> {
    if name != "has" || args.len() != 1 {
        return Ok(Expr::call(name, false, args));
    }
    let invalid = || ExpressionError::from("invalid argument to has() macro".to_owned());
    match args.pop() {
        Some(Expr::Path { root, mut steps }) => match steps.pop() {
            Some(SelectionStep::Field { name: field, optional: false }) => {
                let operand = if steps.is_empty() { root } else { Box::new(Expr::Path { root, steps }) };
                Ok(Expr::Has { operand, field })
            }
            _ => Err(invalid()),
        },
        _ => Err(invalid()),
    }
}

/// `target.name(args)`
pub(crate) fn member_call(target: Expr, name: String, args: Vec<Expr>) -> ExpressionResult<Expr> {
    if let Expr::Variable(namespace) = &target
        && NAMESPACES.contains(&namespace.as_str())
    {
        let qualified = format!("{namespace}.{name}");
        if super::library::is_known(&qualified) {
            return Ok(Expr::call(qualified, false, args));
        }
    }
    let Some((kind, variables, filter)) = shape(&name, args.len()) else {
        let args = std::iter::once(target).chain(args).collect();
        return Ok(Expr::call(name, true, args));
    };
    let mut args = args.into_iter();
    let variables = args
        .by_ref()
        .take(variables)
        .map(|arg| match arg {
            Expr::Variable(name) => Ok(name),
            _ => Err("argument must be a simple name".to_owned().into()),
        })
        .collect::<ExpressionResult<Vec<_>>>()?;
    if variables.len() == 2 && variables[0] == variables[1] {
        return Err(format!("duplicate variable name: {}", variables[0]).into());
    }
    let filter = if filter { args.next() } else { None };
    let Some(body) = args.next() else { return Err(format!("too few arguments for {name}()").into()) };
    Ok(Expr::Macro(Box::new(Macro { kind, target, variables, filter, body, resolved: ResolvedCall::default() })))
}

/// The macro that a call refers to, its number of variables, and whether it has a filter before its body.
fn shape(name: &str, args: usize) -> Option<(MacroKind, usize, bool)> {
    Some(match (name, args) {
        ("all", 2 | 3) => (MacroKind::All, args - 1, false),
        ("exists", 2 | 3) => (MacroKind::Exists, args - 1, false),
        ("exists_one", 2 | 3) | ("existsOne", 3) => (MacroKind::ExistsOne, args - 1, false),
        ("filter", 2) => (MacroKind::Filter, 1, false),
        ("map", 2 | 3) => (MacroKind::List, 1, args == 3),
        ("transformList", 3 | 4) => (MacroKind::List, 2, args == 4),
        ("transformMap", 3 | 4) => (MacroKind::Map, 2, args == 4),
        ("transformMapEntry", 3 | 4) => (MacroKind::MapEntry, 2, args == 4),
        ("sortBy", 2) => (MacroKind::SortBy, 1, false),
        ("optMap", 2) => (MacroKind::OptMap, 1, false),
        ("optFlatMap", 2) => (MacroKind::OptFlatMap, 1, false),
        _ => return None,
    })
}
