//! Quantities such as `500m` and `1Gi`.

use std::cmp::Ordering;
use std::rc::Rc;

use super::budget::Budget;
use super::fault::{Fault, Result};
use super::library::Function;
use super::value::Value;

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

/// A quantity, exact to a billionth, which is as precise as quantities are.
#[derive(Debug, Clone)]
pub(crate) struct Quantity {
    nanos: i128,
    /// The mantissa and decimal exponent, where the server keeps the quantity as those. Only then it can be an integer.
    small: Option<(i64, i32)>,
    /// Whether the quantity is the result of a calculation. The server cannot compare such a one on the right of `==`.
    pub computed: bool,
}

const NANO: i32 = -9;

/// Why a text is no quantity.
enum Problem {
    Server(&'static str),
    TooLarge,
}

const FORMAT: Problem =
    Problem::Server("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
const SUFFIX: Problem = Problem::Server("unable to parse quantity's suffix");

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Server(text) => Fault::error(text),
            Problem::TooLarge => too_large(),
        }
    }
}

fn too_large() -> Fault {
    Fault::Undecided("the quantity is larger than supported".to_owned())
}

fn power(exponent: i32) -> Option<i128> {
    10i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// The base and exponent that a suffix stands for.
fn suffix(text: &str) -> Option<(bool, i32)> {
    Some(match text {
        "Ki" => (true, 10),
        "Mi" => (true, 20),
        "Gi" => (true, 30),
        "Ti" => (true, 40),
        "Pi" => (true, 50),
        "Ei" => (true, 60),
        "n" => (false, -9),
        "u" => (false, -6),
        "m" => (false, -3),
        "" => (false, 0),
        "k" => (false, 3),
        "M" => (false, 6),
        "G" => (false, 9),
        "T" => (false, 12),
        "P" => (false, 15),
        "E" => (false, 18),
        _ => (false, i32::try_from(text.strip_prefix(['e', 'E'])?.parse::<i64>().ok()?).ok()?),
    })
}

fn parse(text: &str) -> std::result::Result<Quantity, Problem> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if text.is_empty() {
        return Err(FORMAT);
    }
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, mut rest) = unsigned.split_at(digits(unsigned));
    let mut fraction = "";
    if let Some(tail) = rest.strip_prefix('.') {
        (fraction, rest) = tail.split_at(digits(tail));
    }
    let letters = rest.bytes().take_while(|b| b"eEinumkKMGTP".contains(b)).count();
    let tail = &rest[letters..];
    let tail = tail.strip_prefix(['+', '-']).unwrap_or(tail);
    if digits(tail) != tail.len() {
        return Err(FORMAT);
    }
    let (binary, exponent) = suffix(rest).ok_or(SUFFIX)?;
    let whole = whole.trim_start_matches('0');
    let number = match format!("{whole}{fraction}").trim_start_matches('0') {
        "" => 0,
        digits => digits.parse::<i128>().map_err(|_| Problem::TooLarge)?,
    };
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let places = i32::try_from(fraction.len()).map_err(|_| Problem::TooLarge)?;
    if let Some(small) = small(whole, number, places, binary, exponent) {
        let small = (if sign < 0 { -small.0 } else { small.0 }, small.1);
        let nanos = power(small.1 - NANO).and_then(|power| power.checked_mul(small.0.into()));
        return Ok(Quantity { nanos: nanos.ok_or(Problem::TooLarge)?, small: Some(small), computed: false });
    }
    let scale = if binary { -places } else { exponent - places } - NANO;
    let number = match binary {
        true => number.checked_mul(1i128 << exponent).ok_or(Problem::TooLarge)?,
        false => number,
    };
    let mut nanos = if scale >= 0 {
        if number == 0 { Some(0) } else { power(scale).and_then(|power| power.checked_mul(number)) }
    } else {
        // What is left of less than a billionth is rounded away from zero.
        Some(power(-scale).map_or(i128::from(number > 0), |power| (number + power - 1) / power))
    }
    .ok_or(Problem::TooLarge)?;
    if binary {
        nanos = nanos.min(i128::from(i64::MAX) * 1_000_000_000);
    }
    Ok(Quantity { nanos: sign * nanos, small: None, computed: false })
}

/// The mantissa and exponent of a number that the server keeps as such.
fn small(whole: &str, number: i128, places: i32, binary: bool, exponent: i32) -> Option<(i64, i32)> {
    let digits = i32::try_from(whole.len().max(1)).ok()?;
    let value = i64::try_from(number).ok()?;
    if binary {
        let precision = 15 - digits - exponent * 3 / 10 - 1;
        (places == 0 && precision >= 0).then_some(())?;
        return Some((value.checked_mul(1i64.checked_shl(u32::try_from(exponent).ok()?)?)?, 0));
    }
    let scale = exponent - places;
    (18 - (digits + places) >= 0 && scale >= NANO).then_some((value, scale))
}

impl Quantity {
    /// The order of two quantities.
    pub(crate) fn compare(&self, other: &Quantity) -> Result<Ordering> {
        Ok(self.nanos.cmp(&other.nanos))
    }

    fn plus(&self, other: &Quantity, sign: i64) -> Result<Quantity> {
        let nanos = other
            .nanos
            .checked_mul(sign.into())
            .and_then(|other| self.nanos.checked_add(other))
            .ok_or_else(too_large)?;
        Ok(Quantity { nanos, small: self.small.and_then(|left| sum(left, other.small?, sign)), computed: true })
    }

    fn integer(&self) -> Option<i64> {
        let (value, scale) = self.small?;
        i64::try_from(power(scale)?.checked_mul(value.into())?).ok()
    }
}

/// The sum of two small numbers, where it is small again.
fn sum(left: (i64, i32), right: (i64, i32), sign: i64) -> Option<(i64, i32)> {
    let right = (right.0.checked_mul(sign)?, right.1);
    if right.0 == 0 {
        return Some(left);
    }
    if left.0 == 0 {
        return Some(right);
    }
    let scale = left.1.min(right.1);
    let scaled = |(value, from): (i64, i32)| i64::try_from(power(from - scale)?.checked_mul(value.into())?).ok();
    Some((scaled(left)?.checked_add(scaled(right)?)?, scale))
}

type Answer<'a> = Option<Result<Value<'a>>>;

fn quantity<'a>(args: &[Value<'a>], budget: &mut Budget) -> Answer<'a> {
    let [Value::String(text)] = args else { return None };
    if let Err(fault) = budget.take(1 + text.len() as u64 / 10) {
        return Some(Err(fault));
    }
    Some(parse(text).map(|quantity| Value::Quantity(Rc::new(quantity))).map_err(Fault::from))
}

fn is_quantity<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::String(text)] = args else { return None };
    Some(Ok(Value::Bool(!matches!(parse(text), Err(Problem::Server(_))))))
}

fn sign<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Quantity(quantity)] = args else { return None };
    Some(Ok(Value::Int(quantity.nanos.signum() as i64)))
}

fn is_integer<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Quantity(quantity)] = args else { return None };
    Some(Ok(Value::Bool(quantity.integer().is_some())))
}

fn as_integer<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Quantity(quantity)] = args else { return None };
    Some(quantity.integer().map(Value::Int).ok_or_else(|| Fault::error("cannot convert value to integer")))
}

fn as_float<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    let [Value::Quantity(quantity)] = args else { return None };
    let (base, exponent) = match quantity.small {
        Some((value, scale)) => (value as f64, scale),
        None => (quantity.nanos as f64, NANO),
    };
    // The power is read from text: computed by multiplication it would not be exact.
    let power: f64 = format!("1e{exponent}").parse().unwrap_or(f64::NAN);
    Some(Ok(Value::Double(if exponent == 0 { base } else { base * power })))
}

fn arithmetic<'a>(args: &[Value<'a>], sign: i64) -> Answer<'a> {
    let (left, right) = match args {
        [Value::Quantity(left), Value::Quantity(right)] => (left, (**right).clone()),
        [Value::Quantity(left), Value::Int(right)] => {
            let nanos = i128::from(*right) * 1_000_000_000;
            (left, Quantity { nanos, small: Some((*right, 0)), computed: false })
        }
        _ => return None,
    };
    Some(left.plus(&right, sign).map(|sum| Value::Quantity(Rc::new(sum))))
}

fn add<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    arithmetic(args, 1)
}

fn sub<'a>(args: &[Value<'a>], _: &mut Budget) -> Answer<'a> {
    arithmetic(args, -1)
}

fn ordered<'a>(args: &[Value<'a>], map: fn(Ordering) -> Value<'static>) -> Answer<'a> {
    let [Value::Quantity(left), Value::Quantity(right)] = args else { return None };
    Some(left.compare(right).map(map))
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
