//! Arithmetic and the other binary operators.

use super::ast::BinaryOperator;
use super::budget::CelBudget;
use super::equal::{compare, equal, find, is_ordered};
use super::fault::{CelResult, EvaluationError};
use super::object_list::concat;
use super::value::CelValue;
use std::cmp::Ordering;

const INT: &str = "integer overflow";
const UINT: &str = "unsigned integer overflow";

fn checked<'a, T>(value: Option<T>, overflow: &str, wrap: fn(T) -> CelValue<'a>) -> CelResult<CelValue<'a>> {
    value.map(wrap).ok_or_else(|| EvaluationError::error(overflow))
}

/// Applies a binary operator.
pub(crate) fn apply<'a>(
    operator: BinaryOperator,
    left: CelValue<'a>,
    right: CelValue<'a>,
    budget: &mut CelBudget,
) -> CelResult<CelValue<'a>> {
    let ordered = |sign: &str, test: fn(Ordering) -> bool| match is_ordered(&left) {
        true => compare(&left, &right).map(|ordering| CelValue::Bool(test(ordering))),
        false => Err(EvaluationError::error(format!("no such overload: _{sign}_"))),
    };
    if is_undefined(operator, &left) {
        return Err(EvaluationError::error(format!("no such overload: {}", operator.function())));
    }
    match operator {
        BinaryOperator::Equal => equal(&left, &right, budget).map(CelValue::Bool),
        // Values that cannot be compared are unequal.
        BinaryOperator::NotEqual => match equal(&left, &right, budget) {
            Err(EvaluationError::Error(_)) => Ok(CelValue::Bool(true)),
            equal => equal.map(|equal| CelValue::Bool(!equal)),
        },
        BinaryOperator::Less => ordered("<", Ordering::is_lt),
        BinaryOperator::LessEqual => ordered("<=", Ordering::is_le),
        BinaryOperator::Greater => ordered(">", Ordering::is_gt),
        BinaryOperator::GreaterEqual => ordered(">=", Ordering::is_ge),
        BinaryOperator::In => contains(&left, &right, budget).map(CelValue::Bool),
        BinaryOperator::Add => add(left, right, budget),
        BinaryOperator::Subtract => subtract(left, right),
        BinaryOperator::Multiply => match (left, right) {
            (CelValue::Int(left), CelValue::Int(right)) => checked(left.checked_mul(right), INT, CelValue::Int),
            (CelValue::Uint(left), CelValue::Uint(right)) => checked(left.checked_mul(right), UINT, CelValue::Uint),
            (CelValue::Double(left), CelValue::Double(right)) => Ok(CelValue::Double(left * right)),
            _ => Err(EvaluationError::no_such_overload()),
        },
        BinaryOperator::Divide => match (left, right) {
            (CelValue::Int(_), CelValue::Int(0)) | (CelValue::Uint(_), CelValue::Uint(0)) => {
                Err(EvaluationError::error("division by zero"))
            }
            (CelValue::Int(left), CelValue::Int(right)) => checked(left.checked_div(right), INT, CelValue::Int),
            (CelValue::Uint(left), CelValue::Uint(right)) => Ok(CelValue::Uint(left / right)),
            (CelValue::Double(left), CelValue::Double(right)) => Ok(CelValue::Double(left / right)),
            _ => Err(EvaluationError::no_such_overload()),
        },
        BinaryOperator::Modulo => match (left, right) {
            (CelValue::Int(_), CelValue::Int(0)) | (CelValue::Uint(_), CelValue::Uint(0)) => {
                Err(EvaluationError::error("modulus by zero"))
            }
            (CelValue::Int(left), CelValue::Int(right)) => checked(left.checked_rem(right), INT, CelValue::Int),
            (CelValue::Uint(left), CelValue::Uint(right)) => Ok(CelValue::Uint(left % right)),
            _ => Err(EvaluationError::no_such_overload()),
        },
    }
}

/// Whether the arithmetic operator is undefined for the left operand, regardless of the right one. The server reports
/// a different error if only the combination is undefined, except for types with their own implementation of the
/// operator.
fn is_undefined(operator: BinaryOperator, left: &CelValue) -> bool {
    let is_number = matches!(left, CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_));
    let is_receiver = matches!(left, CelValue::String(_) | CelValue::Duration(_) | CelValue::Timestamp(_));
    !is_receiver
        && match operator {
            BinaryOperator::Add => !is_number && !matches!(left, CelValue::Bytes(_) | CelValue::List(_)),
            BinaryOperator::Subtract | BinaryOperator::Multiply | BinaryOperator::Divide => !is_number,
            BinaryOperator::Modulo => !matches!(left, CelValue::Int(_) | CelValue::Uint(_)),
            _ => false,
        }
}

/// `-value`
pub(crate) fn negate(value: CelValue<'_>) -> CelResult<CelValue<'_>> {
    match value {
        CelValue::Int(value) => checked(value.checked_neg(), INT, CelValue::Int),
        CelValue::Double(value) => Ok(CelValue::Double(-value)),
        CelValue::Duration(value) => checked(value.checked_neg(), INT, CelValue::Duration),
        CelValue::Bool(_) | CelValue::String(_) | CelValue::Timestamp(_) => Err(EvaluationError::no_such_overload()),
        _ => Err(EvaluationError::error("no such overload: -_")),
    }
}

fn add<'a>(left: CelValue<'a>, right: CelValue<'a>, budget: &mut CelBudget) -> CelResult<CelValue<'a>> {
    match (left, right) {
        (CelValue::Int(left), CelValue::Int(right)) => checked(left.checked_add(right), INT, CelValue::Int),
        (CelValue::Uint(left), CelValue::Uint(right)) => checked(left.checked_add(right), UINT, CelValue::Uint),
        (CelValue::Double(left), CelValue::Double(right)) => Ok(CelValue::Double(left + right)),
        (CelValue::String(left), CelValue::String(right)) => {
            budget.take(((left.len() + right.len()) / 10) as u64)?;
            Ok(CelValue::from(format!("{}{}", &*left, &*right)))
        }
        (CelValue::Bytes(left), CelValue::Bytes(right)) => {
            budget.take(((left.len() + right.len()) / 10) as u64)?;
            Ok(CelValue::Bytes([&*left, &*right].concat().into()))
        }
        (CelValue::Duration(left), CelValue::Duration(right)) => {
            checked(left.checked_add(right), INT, CelValue::Duration)
        }
        (CelValue::Timestamp(time), CelValue::Duration(nanos))
        | (CelValue::Duration(nanos), CelValue::Timestamp(time)) => {
            checked(time.plus(nanos.into()), "timestamp overflow", CelValue::Timestamp)
        }
        (CelValue::List(left), CelValue::List(right)) => {
            budget.take((left.len() + right.len()) as u64)?;
            concat(left, right, budget).map(CelValue::List)
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

fn subtract<'a>(left: CelValue<'a>, right: CelValue<'a>) -> CelResult<CelValue<'a>> {
    match (left, right) {
        (CelValue::Int(left), CelValue::Int(right)) => checked(left.checked_sub(right), INT, CelValue::Int),
        (CelValue::Uint(left), CelValue::Uint(right)) => checked(left.checked_sub(right), UINT, CelValue::Uint),
        (CelValue::Double(left), CelValue::Double(right)) => Ok(CelValue::Double(left - right)),
        (CelValue::Duration(left), CelValue::Duration(right)) => {
            checked(left.checked_sub(right), INT, CelValue::Duration)
        }
        (CelValue::Timestamp(time), CelValue::Duration(nanos)) => {
            checked(time.plus(-i128::from(nanos)), "timestamp overflow", CelValue::Timestamp)
        }
        (CelValue::Timestamp(left), CelValue::Timestamp(right)) => {
            checked(i64::try_from(left.total_nanos() - right.total_nanos()).ok(), INT, CelValue::Duration)
        }
        _ => Err(EvaluationError::no_such_overload()),
    }
}

/// `value in container`
fn contains<'a>(value: &CelValue<'a>, container: &CelValue<'a>, budget: &mut CelBudget) -> CelResult<bool> {
    match container {
        CelValue::List(list) => {
            let mut fault = None;
            for (index, item) in list.iter().enumerate() {
                let is_of_object = list.is_of_object(index);
                let is_it = match is_of_object {
                    true => item.and_then(|item| equal(&item, value, budget)),
                    false => item.and_then(|item| equal(value, &item, budget)),
                };
                match is_it {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(problem) if problem.is_final() => return Err(problem),
                    // A list of the validated object reports elements that cannot be compared; other lists treat them
                    // as unequal.
                    Err(problem) if is_of_object => fault = fault.or(Some(problem)),
                    Err(_) => {}
                }
            }
            fault.map_or(Ok(false), Err)
        }
        CelValue::Map(map) => find(map, value).map(|found| found.is_some()),
        _ => Err(EvaluationError::no_such_overload()),
    }
}
