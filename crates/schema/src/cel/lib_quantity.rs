//! Quantities such as `500m` and `1Gi`.

use std::cmp::Ordering;
use std::rc::Rc;

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::library::Function;
use super::value::Value;
use crate::quantity::{self, Unread};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("quantity", 1, quantity),
    Function::global("isQuantity", 1, is_quantity),
    Function::global("sign", 1, sign),
    Function::member("isInteger", 1, is_integer),
    Function::member("asInteger", 1, as_integer),
    Function::member("asApproximateFloat", 1, as_float),
    Function::member("add", 2, add),
    Function::member("sub", 2, sub),
    Function::member("isGreaterThan", 2, is_greater),
    Function::member("isLessThan", 2, is_less),
    Function::member("compareTo", 2, compare_to),
];

/// A quantity as a CEL value.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    exact: quantity::Quantity,
    /// Whether the quantity is the result of a calculation. The server cannot compare such a value on the right of
    /// `==`.
    pub computed: bool,
}

impl Quantity {
    /// The order of two quantities.
    pub(crate) fn compare(&self, other: &Quantity) -> Ordering {
        self.exact.nanos().cmp(&other.exact.nanos())
    }
}

fn too_large() -> Fault {
    Fault::Undecided("the quantity is larger than supported".to_owned())
}

type Answer<'a> = Option<Result<Value<'a>>>;

fn quantity<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::String(text)] = args else { return None };
    if let Err(fault) = budget.take(1 + text.len() as u64 / 10) {
        return Some(Err(fault));
    }
    Some(match quantity::Quantity::parse(text) {
        Ok(exact) => Ok(Value::Quantity(Rc::new(Quantity { exact, computed: false }))),
        Err(Unread::None(why)) => Err(Fault::error(why)),
        Err(Unread::TooLarge) => Err(too_large()),
    })
}

fn is_quantity<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::String(text)] = args else { return None };
    Some(Ok(Value::Bool(!matches!(quantity::Quantity::parse(text), Err(Unread::None(_))))))
}

fn sign<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Quantity(quantity)] = args else { return None };
    Some(Ok(Value::Int(quantity.exact.nanos().signum() as i64)))
}

fn is_integer<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Quantity(quantity)] = args else { return None };
    Some(Ok(Value::Bool(quantity.exact.integer().is_some())))
}

fn as_integer<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Quantity(quantity)] = args else { return None };
    Some(quantity.exact.integer().map(Value::Int).ok_or_else(|| Fault::error("cannot convert value to integer")))
}

fn as_float<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Quantity(quantity)] = args else { return None };
    Some(Ok(Value::Double(quantity.exact.approximate_float())))
}

fn arithmetic<'a>(args: &[Value<'a>], sign: i64) -> Answer<'a> {
    let (left, right) = match args {
        [Value::Quantity(left), Value::Quantity(right)] => (left, right.exact),
        [Value::Quantity(left), Value::Int(right)] => (left, quantity::Quantity::whole(*right)),
        _ => return None,
    };
    let sum = left.exact.plus(&right, sign).ok_or_else(too_large);
    Some(sum.map(|exact| Value::Quantity(Rc::new(Quantity { exact, computed: true }))))
}

fn add<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    arithmetic(args, 1)
}

fn sub<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    arithmetic(args, -1)
}

fn ordered<'a>(args: &[Value<'a>], map: fn(Ordering) -> Value<'static>) -> Answer<'a> {
    let [Value::Quantity(left), Value::Quantity(right)] = args else { return None };
    Some(Ok(map(left.compare(right))))
}

fn is_greater<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    ordered(args, |ordering| Value::Bool(ordering.is_gt()))
}

fn is_less<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    ordered(args, |ordering| Value::Bool(ordering.is_lt()))
}

fn compare_to<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    ordered(args, |ordering| Value::Int(ordering as i64))
}
