//! Quantities such as `500m` and `1Gi`.

use std::cmp::Ordering;
use std::rc::Rc;

use super::budget::CelBudget;
use super::fault::EvaluationError;
use super::library::{Function, OverloadResult};
use super::value::CelValue;
use crate::quantity::{self, QuantityError};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::global("quantity", 1, quantity),
    Function::global("isQuantity", 1, is_quantity),
    Function::global("sign", 1, |args, _| property(args, |exact| CelValue::Int(exact.nanos().signum() as i64))),
    Function::member("isInteger", 1, |args, _| property(args, |exact| CelValue::Bool(exact.integer().is_some()))),
    Function::member("asInteger", 1, as_integer),
    Function::member("asApproximateFloat", 1, |args, _| {
        property(args, |exact| CelValue::Double(exact.approximate_float()))
    }),
    Function::member("add", 2, |args, _| arithmetic(args, 1)),
    Function::member("sub", 2, |args, _| arithmetic(args, -1)),
    Function::member("isGreaterThan", 2, |args, _| ordered(args, |ordering| CelValue::Bool(ordering.is_gt()))),
    Function::member("isLessThan", 2, |args, _| ordered(args, |ordering| CelValue::Bool(ordering.is_lt()))),
    Function::member("compareTo", 2, |args, _| ordered(args, |ordering| CelValue::Int(ordering as i64))),
];

/// A quantity as a CEL value.
#[derive(Debug, Clone)]
pub(crate) struct CelQuantity {
    exact: quantity::Quantity,
    /// Whether the quantity is the result of a calculation. The server cannot compare such a value on the right of
    /// `==`.
    pub computed: bool,
}

impl CelQuantity {
    /// The order of two quantities.
    pub(crate) fn compare(&self, other: &CelQuantity) -> Ordering {
        self.exact.nanos().cmp(&other.exact.nanos())
    }
}

fn too_large() -> EvaluationError {
    EvaluationError::Undecided("the quantity is larger than supported".to_owned())
}

fn quantity<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    if let Err(fault) = budget.take(1 + text.len() as u64 / 10) {
        return Some(Err(fault));
    }
    Some(match quantity::Quantity::parse(text) {
        Ok(exact) => Ok(CelValue::Quantity(Rc::new(CelQuantity { exact, computed: false }))),
        Err(QuantityError::None(why)) => Err(EvaluationError::error(why)),
        Err(QuantityError::TooLarge) => Err(too_large()),
    })
}

fn is_quantity<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::String(text)] = args else { return None };
    Some(Ok(CelValue::Bool(!matches!(quantity::Quantity::parse(text), Err(QuantityError::None(_))))))
}

fn property<'a>(args: &[CelValue<'a>], property: fn(&quantity::Quantity) -> CelValue<'static>) -> OverloadResult<'a> {
    let [CelValue::Quantity(quantity)] = args else { return None };
    Some(Ok(property(&quantity.exact)))
}

fn as_integer<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::Quantity(quantity)] = args else { return None };
    Some(
        quantity
            .exact
            .integer()
            .map(CelValue::Int)
            .ok_or_else(|| EvaluationError::error("cannot convert value to integer")),
    )
}

fn arithmetic<'a>(args: &[CelValue<'a>], sign: i64) -> OverloadResult<'a> {
    let (left, right) = match args {
        [CelValue::Quantity(left), CelValue::Quantity(right)] => (left, right.exact),
        [CelValue::Quantity(left), CelValue::Int(right)] => (left, quantity::Quantity::from_integer(*right)),
        _ => return None,
    };
    let sum = left.exact.plus(&right, sign).ok_or_else(too_large);
    Some(sum.map(|exact| CelValue::Quantity(Rc::new(CelQuantity { exact, computed: true }))))
}

fn ordered<'a>(args: &[CelValue<'a>], map: fn(Ordering) -> CelValue<'static>) -> OverloadResult<'a> {
    let [CelValue::Quantity(left), CelValue::Quantity(right)] = args else { return None };
    Some(Ok(map(left.compare(right))))
}
