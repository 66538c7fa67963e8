//! Lists used as sets.

use super::ast::BinaryOperator;
use super::budget::CelBudget;
use super::fault::{CelResult, EvaluationError};
use super::library::{Function, OverloadResult};
use super::ops;
use super::value::{CelList, CelValue};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("sets.contains", 2, contains),
    Function::global("sets.equivalent", 2, equivalent),
    Function::global("sets.intersects", 2, intersects),
];

fn has<'a>(list: &CelList<'a>, item: CelValue<'a>, budget: &mut CelBudget) -> CelResult<bool> {
    let list = CelValue::List(list.clone());
    Ok(matches!(ops::apply(BinaryOperator::In, item, list, budget)?, CelValue::Bool(true)))
}

fn covers<'a>(list: &CelList<'a>, part: &CelList<'a>, budget: &mut CelBudget) -> CelResult<bool> {
    for item in part.iter() {
        let found = match item {
            // A list built by a rule never contains a value that does not match its schema.
            Err(EvaluationError::Error(_)) if !list.is_object_list() => false,
            item => has(list, item?, budget)?,
        };
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list), CelValue::List(part)] = args else { return None };
    Some(covers(list, part, budget).map(CelValue::Bool))
}

fn equivalent<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(left), CelValue::List(right)] = args else { return None };
    Some(
        covers(left, right, budget).and_then(|covered| Ok(covered && covers(right, left, budget)?)).map(CelValue::Bool),
    )
}

fn intersects<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(left), CelValue::List(right)] = args else { return None };
    for item in left.iter() {
        match item.and_then(|item| has(right, item, budget)) {
            Ok(true) => return Some(Ok(CelValue::Bool(true))),
            Err(fault) if fault.is_final() => return Some(Err(fault)),
            // The server treats elements that cannot be compared as missing.
            _ => {}
        }
    }
    Some(Ok(CelValue::Bool(false)))
}
