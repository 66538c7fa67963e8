//! Regular expressions.

use regex::Regex;

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::library::Function;
use super::value::Value;
use crate::re2;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("matches", 2, matches),
    Function::member("matches", 2, matches),
    Function::member("find", 2, find),
    Function::member("findAll", 2, find_all),
    Function::member("findAll", 3, find_all),
];

type Answer<'a> = Option<Result<Value<'a>>>;

/// Calls a function of this library with a compiled pattern.
pub(crate) fn call<'a>(function: &str, pattern: &Regex, args: &[Value<'a>], budget: &mut Budget) -> Result<Value<'a>> {
    let [target, Value::String(source), ..] = args else { return Err(Fault::no_such_overload()) };
    let text = text(target).ok_or_else(Fault::no_such_overload)?;
    // The server's cost, in bytes instead of characters.
    let machine = source.len().div_ceil(4) as u64;
    budget.take(1 + ((1 + text.len()).div_ceil(10) as u64).saturating_mul(machine))?;
    let found = |most: usize| pattern.find_iter(text).take(most).map(|found| found.as_str().to_owned());
    match (function, args.get(2)) {
        ("matches", None) => Ok(Value::Bool(pattern.is_match(text))),
        ("find", None) => Ok(Value::from(found(1).next().unwrap_or_default())),
        ("findAll", None) => Ok(Value::strings(found(usize::MAX))),
        // A negative limit means no limit.
        ("findAll", Some(Value::Int(most))) => Ok(Value::strings(found(usize::try_from(*most).unwrap_or(usize::MAX)))),
        _ => Err(Fault::no_such_overload()),
    }
}

/// The strings that the server matches against a literal pattern: any value that is a string in Go, even inside an
/// optional.
fn text<'v>(target: &'v Value) -> Option<&'v str> {
    match target {
        Value::String(text) => Some(text),
        Value::Type(name) => Some(name),
        Value::Optional(Some(value)) => text(value),
        _ => None,
    }
}

fn dynamic<'a>(function: &str, args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let Some(Value::String(pattern)) = args.get(1) else { return None };
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
        Err(problem) => Some(Err(Fault::Undecided(problem))),
    }
}

fn matches<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    dynamic("matches", args, budget)
}

fn find<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    dynamic("find", args, budget)
}

fn find_all<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    dynamic("findAll", args, budget)
}
