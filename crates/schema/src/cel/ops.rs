//! Arithmetic and the other binary operators.

use super::ast::Operator;
use super::budget::Budget;
use super::convert::data;
use super::equal::{compare, element_key, equal, find, hashable, is_ordered, is_same};
use super::fault::{Fault, Result};
use super::types::ListKind;
use super::value::{Items, List, Value};
use std::cmp::Ordering;
use std::rc::Rc;

const INT: &str = "integer overflow";
const UINT: &str = "unsigned integer overflow";

fn checked<'a, T>(value: Option<T>, overflow: &str, wrap: fn(T) -> Value<'a>) -> Result<Value<'a>> {
    value.map(wrap).ok_or_else(|| Fault::error(overflow))
}

/// Applies a binary operator.
pub(crate) fn apply<'a>(
    operator: Operator,
    left: Value<'a>,
    right: Value<'a>,
    budget: &mut Budget,
) -> Result<Value<'a>> {
    let ordered = |sign: &str, test: fn(Ordering) -> bool| match is_ordered(&left) {
        true => compare(&left, &right).map(|ordering| Value::Bool(test(ordering))),
        false => Err(Fault::error(format!("no such overload: _{sign}_"))),
    };
    if is_undefined(operator, &left) {
        return Err(Fault::error(format!("no such overload: {}", operator.function())));
    }
    match operator {
        Operator::Equal => equal(&left, &right, budget).map(Value::Bool),
        // Values that cannot be compared are unequal.
        Operator::NotEqual => match equal(&left, &right, budget) {
            Err(Fault::Error(_)) => Ok(Value::Bool(true)),
            equal => equal.map(|equal| Value::Bool(!equal)),
        },
        Operator::Less => ordered("<", Ordering::is_lt),
        Operator::LessEqual => ordered("<=", Ordering::is_le),
        Operator::Greater => ordered(">", Ordering::is_gt),
        Operator::GreaterEqual => ordered(">=", Ordering::is_ge),
        Operator::In => contains(&left, &right, budget).map(Value::Bool),
        Operator::Add => add(left, right, budget),
        Operator::Subtract => subtract(left, right),
        Operator::Multiply => match (left, right) {
            (Value::Int(left), Value::Int(right)) => checked(left.checked_mul(right), INT, Value::Int),
            (Value::Uint(left), Value::Uint(right)) => checked(left.checked_mul(right), UINT, Value::Uint),
            (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left * right)),
            _ => Err(Fault::no_such_overload()),
        },
        Operator::Divide => match (left, right) {
            (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(Fault::error("division by zero")),
            (Value::Int(left), Value::Int(right)) => checked(left.checked_div(right), INT, Value::Int),
            (Value::Uint(left), Value::Uint(right)) => Ok(Value::Uint(left / right)),
            (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left / right)),
            _ => Err(Fault::no_such_overload()),
        },
        Operator::Modulo => match (left, right) {
            (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(Fault::error("modulus by zero")),
            (Value::Int(left), Value::Int(right)) => checked(left.checked_rem(right), INT, Value::Int),
            (Value::Uint(left), Value::Uint(right)) => Ok(Value::Uint(left % right)),
            _ => Err(Fault::no_such_overload()),
        },
    }
}

/// Whether the arithmetic operator is undefined for the left operand, regardless of the right one. The server reports
/// a different error if only the combination is undefined, except for types with their own implementation of the
/// operator.
fn is_undefined(operator: Operator, left: &Value) -> bool {
    let is_number = matches!(left, Value::Int(_) | Value::Uint(_) | Value::Double(_));
    let is_receiver = matches!(left, Value::String(_) | Value::Duration(_) | Value::Timestamp(_));
    !is_receiver
        && match operator {
            Operator::Add => !is_number && !matches!(left, Value::Bytes(_) | Value::List(_)),
            Operator::Subtract | Operator::Multiply | Operator::Divide => !is_number,
            Operator::Modulo => !matches!(left, Value::Int(_) | Value::Uint(_)),
            _ => false,
        }
}

/// `-value`
pub(crate) fn negate(value: Value<'_>) -> Result<Value<'_>> {
    match value {
        Value::Int(value) => checked(value.checked_neg(), INT, Value::Int),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => checked(value.checked_neg(), INT, Value::Duration),
        Value::Bool(_) | Value::String(_) | Value::Timestamp(_) => Err(Fault::no_such_overload()),
        _ => Err(Fault::error("no such overload: -_")),
    }
}

fn add<'a>(left: Value<'a>, right: Value<'a>, budget: &mut Budget) -> Result<Value<'a>> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => checked(left.checked_add(right), INT, Value::Int),
        (Value::Uint(left), Value::Uint(right)) => checked(left.checked_add(right), UINT, Value::Uint),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::String(left), Value::String(right)) => {
            budget.take(((left.len() + right.len()) / 10) as u64)?;
            Ok(Value::from(format!("{}{}", &*left, &*right)))
        }
        (Value::Bytes(left), Value::Bytes(right)) => {
            budget.take(((left.len() + right.len()) / 10) as u64)?;
            Ok(Value::Bytes([&*left, &*right].concat().into()))
        }
        (Value::Duration(left), Value::Duration(right)) => checked(left.checked_add(right), INT, Value::Duration),
        (Value::Timestamp(time), Value::Duration(nanos)) | (Value::Duration(nanos), Value::Timestamp(time)) => {
            checked(time.plus(nanos.into()), "timestamp overflow", Value::Timestamp)
        }
        (Value::List(left), Value::List(right)) => {
            budget.take((left.len() + right.len()) as u64)?;
            concat(left, right, budget).map(Value::List)
        }
        _ => Err(Fault::no_such_overload()),
    }
}

fn subtract<'a>(left: Value<'a>, right: Value<'a>) -> Result<Value<'a>> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => checked(left.checked_sub(right), INT, Value::Int),
        (Value::Uint(left), Value::Uint(right)) => checked(left.checked_sub(right), UINT, Value::Uint),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => checked(left.checked_sub(right), INT, Value::Duration),
        (Value::Timestamp(time), Value::Duration(nanos)) => {
            checked(time.plus(-i128::from(nanos)), "timestamp overflow", Value::Timestamp)
        }
        (Value::Timestamp(left), Value::Timestamp(right)) => {
            checked(i64::try_from(left.total_nanos() - right.total_nanos()).ok(), INT, Value::Duration)
        }
        _ => Err(Fault::no_such_overload()),
    }
}

/// `left + right` for lists: a union if the left list is a set, a merge by key if it is of type `map`.
fn concat<'a>(left: List<'a>, right: List<'a>, budget: &mut Budget) -> Result<List<'a>> {
    if left.kind.is_none() && left.len() == 0 {
        return Ok(right);
    }
    if left.kind.is_none() && right.len() == 0 {
        return Ok(left);
    }
    let (mut items, of): (Vec<Value<'a>>, _) = match &left.items {
        Items::Json(items, of) => (items.iter().map(Value::Unknown).collect(), *of),
        Items::Merged(items, of) => (items.to_vec(), *of),
        _ => {
            let marked = |list: &List<'a>| (0..list.len()).map(|at| (list.get(at), list.is_of_object(at))).collect();
            let mut items: Vec<_> = marked(&left);
            items.append(&mut marked(&right));
            return Ok(List { items: Items::Joined(Rc::new(items)), kind: left.kind });
        }
    };
    let known_keys = match left.kind {
        Some(ListKind::Set) => items.iter().try_for_each(hashable).map(|()| Vec::new())?,
        Some(ListKind::Map(keys)) => items.iter().map(|item| element_key(item, keys)).collect::<Result<_>>()?,
        _ => Vec::new(),
    };
    for value in right.iter() {
        let value = match value {
            Ok(value) => data(&value),
            Err(Fault::Error(text)) => Value::Misfit(text.into()),
            Err(fault) => return Err(fault),
        };
        budget.take(items.len() as u64)?;
        match left.kind {
            Some(ListKind::Set) => {
                hashable(&value)?;
                if !items.iter().any(|item| is_same(item, &value)) {
                    items.push(value);
                }
            }
            Some(ListKind::Map(keys)) => {
                // New elements are matched only with the original elements.
                let key = element_key(&value, keys)?;
                match known_keys.iter().rposition(|known| key.is_some() && *known == key) {
                    Some(at) => items[at] = value,
                    None => items.push(value),
                }
            }
            _ => items.push(value),
        }
    }
    Ok(List { items: Items::Merged(Rc::new(items), of), kind: left.kind })
}

/// `value in container`
fn contains<'a>(value: &Value<'a>, container: &Value<'a>, budget: &mut Budget) -> Result<bool> {
    match container {
        Value::List(list) => {
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
        Value::Map(map) => find(map, value).map(|found| found.is_some()),
        _ => Err(Fault::no_such_overload()),
    }
}
