//! The server's cost of calls: a rule that the server stops as too expensive must not pass here.
//!
//! The numbers are those of cel-go and of Kubernetes' libraries, or higher: strings are measured in bytes where the
//! server counts characters.

use super::ast::BinaryOperator;
use super::equal::find;
use super::fault::CelResult;
use super::value::CelValue;

/// The cost of a call with these arguments. If computing it takes more than `most` steps, the result is at least
/// `most`.
pub(super) fn of_call(function: &str, args: &[CelValue], result: &CelResult<CelValue>, most: u64) -> u64 {
    let length = |index: usize| args.get(index).map_or(1, size);
    match function {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" | "includes" => {
            let mut left = most;
            let cost = args.first().map_or(0, |arg| traversal(arg, &mut left));
            if left == 0 { most.max(cost) } else { cost }
        }
        "sets.contains" | "sets.intersects" => 1 + length(0).saturating_mul(length(1)),
        "sets.equivalent" => 1 + length(0).saturating_mul(length(1)).saturating_mul(2),
        "join" => result.as_ref().map_or(0, |text| tenth(2 * size(text))),
        "contains" => tenth(length(0)).saturating_mul(tenth(length(1))),
        "replace" | "split" | "ip.isCanonical" => tenth(2 * length(0)),
        "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "startsWith" | "endsWith" | "bytes" | "string"
        | "strings.quote" | "format" | "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver"
        | "isSemver" => tenth(length(0)).max(1),
        _ => 1,
    }
}

/// The cost of a binary operator.
pub(super) fn of_operator(operator: BinaryOperator, left: &CelValue, right: &CelValue) -> u64 {
    match operator {
        BinaryOperator::In => size(right),
        BinaryOperator::Add => match left {
            CelValue::String(_) | CelValue::Bytes(_) => tenth(size(left) + size(right)),
            _ => 1,
        },
        BinaryOperator::Subtract | BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => 1,
        _ => tenth(size(left).min(size(right))).max(1),
    }
}

fn tenth(length: u64) -> u64 {
    length.div_ceil(10)
}

fn size(value: &CelValue) -> u64 {
    match value {
        CelValue::String(text) => text.len() as u64,
        CelValue::Bytes(bytes) => bytes.len() as u64,
        CelValue::List(list) => list.len() as u64,
        CelValue::Map(map) => map.len() as u64,
        CelValue::Optional(Some(value)) => size(value),
        _ => 1,
    }
}

/// The cost of traversing a value, limited to `left` nested values.
fn traversal(value: &CelValue, left: &mut u64) -> u64 {
    if *left == 0 {
        return 0;
    }
    *left -= 1;
    let mut all = |parts: &mut dyn Iterator<Item = CelResult<CelValue>>| {
        parts.map(|part| part.map_or(1, |part| traversal(&part, left))).fold(0, u64::saturating_add)
    };
    match value {
        CelValue::String(_) | CelValue::Bytes(_) => tenth(size(value)),
        CelValue::List(list) => all(&mut list.iter()),
        CelValue::Map(map) => all(&mut map.keys().into_iter().flat_map(|key| {
            let value = find(map, &key).map(|value| value.unwrap_or(CelValue::Null));
            [Ok(key), value]
        })),
        _ => 1,
    }
}
