//! Lists used as sets.

use super::ast::Operator;
use super::budget::Budget;
use super::fault::{Fault, Result};
use super::library::Function;
use super::ops;
use super::value::{List, Value};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("sets.contains", 2, contains),
    Function::global("sets.equivalent", 2, equivalent),
    Function::global("sets.intersects", 2, intersects),
];

type Answer<'a> = Option<Result<Value<'a>>>;

fn has<'a>(list: &List<'a>, item: Value<'a>, budget: &mut Budget) -> Result<bool> {
    let list = Value::List(list.clone());
    Ok(matches!(ops::apply(Operator::In, item, list, budget)?, Value::Bool(true)))
}

fn covers<'a>(list: &List<'a>, part: &List<'a>, budget: &mut Budget) -> Result<bool> {
    for item in part.iter() {
        let found = match item {
            // A list built by a rule never contains a value that does not match its schema.
            Err(Fault::Error(_)) if list.kind.is_none() => false,
            item => has(list, item?, budget)?,
        };
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::List(list), Value::List(part)] = args else { return None };
    Some(covers(list, part, budget).map(Value::Bool))
}

fn equivalent<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::List(left), Value::List(right)] = args else { return None };
    Some(covers(left, right, budget).and_then(|covered| Ok(covered && covers(right, left, budget)?)).map(Value::Bool))
}

fn intersects<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::List(left), Value::List(right)] = args else { return None };
    for item in left.iter() {
        match item.and_then(|item| has(right, item, budget)) {
            Ok(true) => return Some(Ok(Value::Bool(true))),
            Err(fault) if fault.is_final() => return Some(Err(fault)),
            // The server treats elements that cannot be compared as missing.
            _ => {}
        }
    }
    Some(Ok(Value::Bool(false)))
}
