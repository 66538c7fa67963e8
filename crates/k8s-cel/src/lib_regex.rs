//! Regular expressions.

use regex::Regex;

use super::budget::CelBudget;
use super::fault::{CelResult, EvaluationError};
use super::library::{Function, OverloadResult};
use super::value::CelValue;
use crate::re2;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("matches", 2, matches),
    Function::member("matches", 2, matches),
    Function::member("find", 2, |args, budget| dynamic("find", args, budget)),
    Function::member("findAll", 2, find_all).or_one_more(),
];

/// Calls a function of this library with a compiled pattern.
pub(crate) fn call<'a>(
    function: &str,
    pattern: &Regex,
    args: &[CelValue<'a>],
    budget: &mut CelBudget,
) -> CelResult<CelValue<'a>> {
    let [target, CelValue::String(source), ..] = args else { return Err(EvaluationError::no_such_overload()) };
    let text = text(target).ok_or_else(EvaluationError::no_such_overload)?;
    // The server's cost, in bytes instead of characters.
    let machine = source.len().div_ceil(4) as u64;
    budget.take(1 + ((1 + text.len()).div_ceil(10) as u64).saturating_mul(machine))?;
    let found = |most: usize| pattern.find_iter(text).take(most).map(|found| found.as_str().to_owned());
    match (function, args.get(2)) {
        ("matches", None) => Ok(CelValue::Bool(pattern.is_match(text))),
        ("find", None) => Ok(CelValue::from(found(1).next().unwrap_or_default())),
        ("findAll", None) => Ok(CelValue::strings(found(usize::MAX))),
        // A negative limit means no limit.
        ("findAll", Some(CelValue::Int(most))) => {
            Ok(CelValue::strings(found(usize::try_from(*most).unwrap_or(usize::MAX))))
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// The strings that the server matches against a literal pattern: any value that is a string in Go, even inside an
/// optional.
fn text<'v>(target: &'v CelValue) -> Option<&'v str> {
    match target {
        CelValue::String(text) => Some(text),
        CelValue::Type(name) => Some(name),
        CelValue::Optional(Some(value)) => text(value),
        _ => None,
    }
}

fn dynamic<'a>(function: &str, args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let Some(CelValue::String(pattern)) = args.get(1) else { return None };
    // Compiling is more expensive than matching.
    if let Err(fault) = budget.take(100 + pattern.len() as u64) {
        return Some(Err(fault));
    }
    // The compiled pattern is dropped after the call, so every call pays for it.
    if let Ok(weight) = re2::weight(pattern)
        && let Err(fault) = budget.take(weight)
    {
        return Some(Err(fault));
    }
    match re2::compile(pattern) {
        Ok(pattern) => Some(call(function, &pattern, args, budget)),
        Err(problem) => Some(Err(EvaluationError::Undecided(problem.into()))),
    }
}

fn matches<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    dynamic("matches", args, budget)
}

fn find_all<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    dynamic("findAll", args, budget)
}
