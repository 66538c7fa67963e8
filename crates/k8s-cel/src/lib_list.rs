//! Functions on lists.

use std::cmp::Ordering;

use super::budget::CelBudget;
use super::convert::misfit;
use super::equal::{compare, equal, is_ordered};
use super::eval::LIST_COST;
use super::fault::{CelResult, EvaluationError};
use super::library::{Function, OverloadResult};
use super::ops;
use super::release::KubernetesRelease;
use super::types::CelTypeKind;
use super::value::{CelList, CelListItems, CelValue};

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::member("isSorted", 1, is_sorted),
    Function::member("sum", 1, sum),
    Function::member("min", 1, |args, budget| find_extreme(args, budget, "min", Ordering::Greater)),
    Function::member("max", 1, |args, budget| find_extreme(args, budget, "max", Ordering::Less)),
    Function::member("indexOf", 2, |args, budget| position(args, budget, false)),
    Function::member("lastIndexOf", 2, |args, budget| position(args, budget, true)),
    Function::member("includes", 2, includes),
    Function::member("slice", 3, slice),
    Function::member("flatten", 1, flatten).or_one_more(),
    Function::member("sort", 1, sort),
    Function::member("reverse", 1, reverse),
    Function::member("distinct", 1, remove_duplicates),
    Function::global("lists.range", 1, range),
    Function::member("first", 1, first),
    Function::member("last", 1, last),
    Function::member("unwrapOpt", 1, unwrap),
    Function::global("optional.unwrap", 1, unwrap),
];

/// Calls `work` with the elements of the only argument, a list.
fn with<'a>(
    args: &[CelValue<'a>],
    budget: &mut CelBudget,
    work: impl FnOnce(Vec<CelValue<'a>>, &mut CelBudget) -> CelResult<CelValue<'a>>,
) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    let values = budget.take(list.len() as u64).and_then(|()| list.values());
    Some(values.and_then(|values| work(values, budget)))
}

/// Calls `each` for the elements in order until it returns a value, for a function that is selected by the type of the
/// elements: if the type of the first element does not satisfy `fits`, there is no such function.
fn in_order<'a>(
    list: &CelList<'a>,
    (name, fits): (&str, fn(&CelValue) -> bool),
    budget: &mut CelBudget,
    mut each: impl FnMut(CelValue<'a>, &mut CelBudget) -> CelResult<Option<CelValue<'a>>>,
) -> CelResult<Option<CelValue<'a>>> {
    budget.take(list.len() as u64)?;
    for (index, value) in list.iter().enumerate() {
        let value = match value {
            Ok(value) if fits(&value) => value,
            Err(fault) if fault.is_final() || index > 0 => return Err(fault),
            _ if index == 0 => return Err(EvaluationError::error(format!("no such overload: {name}(list)"))),
            _ => return Err(EvaluationError::no_such_overload()),
        };
        if let Some(answer) = each(value, budget)? {
            return Ok(Some(answer));
        }
    }
    Ok(None)
}

fn is_sorted<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    let mut previous: Option<CelValue> = None;
    let falls = in_order(list, ("isSorted", is_ordered), budget, |value, _| {
        // Elements that cannot be compared count as sorted: the server only tests for "greater".
        let falls = previous.as_ref().is_some_and(|last| matches!(compare(last, &value), Ok(Ordering::Greater)));
        previous = Some(value);
        Ok(falls.then_some(CelValue::Bool(false)))
    });
    Some(falls.map(|falls| falls.unwrap_or(CelValue::Bool(true))))
}

fn is_summable(value: &CelValue) -> bool {
    matches!(value, CelValue::Int(_) | CelValue::Uint(_) | CelValue::Double(_) | CelValue::Duration(_))
}

fn sum<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    let zero = match &list.items {
        CelListItems::Json(_, of) | CelListItems::Merged(_, of) if matches!(of.kind, CelTypeKind::Duration) => {
            CelValue::Duration(0)
        }
        _ => CelValue::Int(0),
    };
    let mut sum: Option<CelValue> = None;
    let done = in_order(list, ("sum", is_summable), budget, |value, budget| {
        sum = Some(match sum.take() {
            // Avoids a negative zero as the sum.
            None => match value {
                CelValue::Double(value) => CelValue::Double(0.0 + value),
                value => value,
            },
            Some(sum) => ops::apply(super::ast::BinaryOperator::Add, sum, value, budget)?,
        });
        Ok(None)
    });
    Some(done.map(|_| sum.unwrap_or(zero)))
}

fn find_extreme<'a>(
    args: &[CelValue<'a>],
    budget: &mut CelBudget,
    name: &str,
    replace: Ordering,
) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    let mut best: Option<CelValue> = None;
    let done = in_order(list, (name, is_ordered), budget, |value, _| {
        if best.as_ref().is_none_or(|best| matches!(compare(best, &value), Ok(ordering) if ordering == replace)) {
            best = Some(value);
        }
        Ok(None)
    });
    Some(done.and_then(|_| best.ok_or_else(|| EvaluationError::error(format!("{name} called on empty list")))))
}

fn position<'a>(args: &[CelValue<'a>], budget: &mut CelBudget, backwards: bool) -> OverloadResult<'a> {
    let [CelValue::List(list), wanted] = args else { return None };
    let mut search = || {
        for step in 0..list.len() {
            let index = if backwards { list.len() - 1 - step } else { step };
            let found = match list.get(index).and_then(|item| equal(&item, wanted, budget)) {
                Ok(found) => found,
                Err(fault) if fault.is_final() => return Err(fault),
                Err(_) => false,
            };
            if found {
                return Ok(CelValue::Int(i64::try_from(index).unwrap_or(i64::MAX)));
            }
        }
        Ok(CelValue::Int(-1))
    };
    Some(search())
}

fn slice<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list), CelValue::Int(start), CelValue::Int(end)] = args else { return None };
    let wrong = |why: String| Some(Err(EvaluationError::error(format!("cannot slice({start}, {end}), {why}"))));
    let (Ok(from), Ok(to)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return wrong("negative indexes not supported".to_owned());
    };
    if from > to {
        return wrong("start index must be less than or equal to end index".to_owned());
    }
    if list.len() < to {
        return wrong(format!("list is length {}", list.len()));
    }
    let taken = budget.take(LIST_COST + (to - from) as u64).map(|()| (from..to).map(|index| list.get(index)).collect());
    Some(taken.map(CelList::from_elements).map(CelValue::List))
}

fn flatten<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let (list, depth) = match args {
        [CelValue::List(list)] => (list, 1),
        [CelValue::List(list), CelValue::Int(depth)] => (list, *depth),
        _ => return None,
    };
    if depth < 0 {
        return Some(Err(EvaluationError::error("level must be non-negative")));
    }
    let mut out = Vec::new();
    if let Err(fault) = budget.take(LIST_COST) {
        return Some(Err(fault));
    }
    Some(flatten_into(list, depth, &mut out, budget).map(|()| CelValue::List(CelList::from_elements(out))))
}

fn flatten_into<'a>(
    list: &CelList<'a>,
    depth: i64,
    out: &mut Vec<CelResult<CelValue<'a>>>,
    budget: &mut CelBudget,
) -> CelResult<()> {
    for item in list.iter() {
        budget.take(1)?;
        match item {
            Ok(CelValue::List(inner)) if depth > 0 => flatten_into(&inner, depth - 1, out, budget)?,
            item => out.push(item),
        }
    }
    Ok(())
}

fn sort<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    let mut values = || {
        budget.take(list.len() as u64)?;
        if list.len() == 0 {
            budget.take(quadratic(0))?;
            return Ok(CelValue::List(list.clone()));
        }
        let mut values = Vec::with_capacity(list.len());
        for value in list.iter() {
            match value {
                Err(EvaluationError::Error(_)) if values.is_empty() => {
                    return Err(EvaluationError::error(NOT_COMPARABLE));
                }
                Err(EvaluationError::Error(_)) => return Err(EvaluationError::error(NOT_THE_SAME)),
                value => values.push(value?),
            }
        }
        sort_by_keys(values.iter().cloned().map(Ok).collect(), values, budget)
    };
    Some(values())
}

const NOT_COMPARABLE: &str = "list elements must be comparable";
const NOT_THE_SAME: &str = "list elements must have the same type";

/// Sorts `values` by `keys`.
pub(crate) fn sort_by_keys<'a>(
    values: Vec<CelResult<CelValue<'a>>>,
    keys: Vec<CelValue<'a>>,
    budget: &mut CelBudget,
) -> CelResult<CelValue<'a>> {
    budget.take(quadratic(values.len()))?;
    let Some(first) = keys.first() else { return Ok(CelValue::List(CelList::from_elements(values))) };
    if !is_ordered(first) {
        return Err(EvaluationError::error(NOT_COMPARABLE));
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(EvaluationError::error(NOT_THE_SAME));
    }
    let mut pairs: Vec<_> = keys.into_iter().zip(values).collect();
    pairs.sort_by(|(left, _), (right, _)| compare(left, right).unwrap_or(Ordering::Equal));
    Ok(CelValue::List(CelList::from_elements(pairs.into_iter().map(|(_, value)| value).collect())))
}

fn reverse<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    let cost = LIST_COST + list.len() as u64;
    let taken = budget.take(cost).map(|()| (0..list.len()).rev().map(|index| list.get(index)).collect());
    Some(taken.map(CelList::from_elements).map(CelValue::List))
}

/// The server's maximum cost of comparing the elements of a list with each other.
fn quadratic(length: usize) -> u64 {
    12 + (length as u64).saturating_mul(21 * length as u64).div_ceil(10)
}

fn remove_duplicates<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    let mut unique = || {
        budget.take((list.len() as u64).saturating_add(quadratic(list.len())))?;
        if list.len() == 0 {
            return Ok(CelValue::List(list.clone()));
        }
        let mut unique: Vec<CelResult<CelValue<'a>>> = Vec::new();
        'next: for value in list.iter() {
            // A value that does not match its schema is unequal to every other value.
            if let Ok(value) = &value {
                for known in unique.iter().flatten() {
                    match equal(value, known, budget) {
                        Ok(true) => continue 'next,
                        Err(fault) if fault.is_final() => return Err(fault),
                        _ => {}
                    }
                }
            }
            unique.push(value);
        }
        Ok(CelValue::List(CelList::from_elements(unique)))
    };
    Some(unique())
}

/// Whether a list contains the value, or is the value.
fn includes<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [target, value] = args else { return None };
    let list = match target {
        CelValue::List(list) => list.clone(),
        other => CelList::new(vec![other.clone()]),
    };
    let find = |budget: &mut CelBudget| {
        budget.take(list.len() as u64)?;
        for item in list.iter() {
            match item.and_then(|item| equal(&item, value, budget)) {
                Ok(true) => return Ok(CelValue::Bool(true)),
                Err(fault) if fault.is_final() => return Err(fault),
                _ => {}
            }
        }
        Ok(CelValue::Bool(false))
    };
    Some(find(budget))
}

/// The first release that limits the length of `lists.range`.
const LIMITED_RANGES: KubernetesRelease = KubernetesRelease::minor(37);
/// The limit.
const LONGEST_RANGE: i64 = 1_000_000;

fn range<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::Int(end)] = args else { return None };
    let length = u64::try_from(*end).unwrap_or(0);
    if budget.release() >= LIMITED_RANGES && !(0..=LONGEST_RANGE).contains(end) {
        let problem = match end {
            ..0 => format!("size must be non-negative, got {end}"),
            _ => format!("size {end} exceeds maximum allowed ({LONGEST_RANGE})"),
        };
        return Some(Err(EvaluationError::error(format!("lists.range: {problem}"))));
    }
    Some(
        budget
            .take(LIST_COST.saturating_add(length))
            .map(|()| CelValue::List(CelList::new((0..*end).map(CelValue::Int).collect()))),
    )
}

fn first<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    Some(if list.len() == 0 { Ok(CelValue::Optional(None)) } else { misfit(list.get(0)).map(CelValue::some) })
}

fn last<'a>(args: &[CelValue<'a>], _: &mut CelBudget) -> OverloadResult<'a> {
    let [CelValue::List(list)] = args else { return None };
    Some(match list.len().checked_sub(1) {
        None => Ok(CelValue::Optional(None)),
        Some(last) => misfit(list.get(last)).map(CelValue::some),
    })
}

fn unwrap<'a>(args: &[CelValue<'a>], budget: &mut CelBudget) -> OverloadResult<'a> {
    with(args, budget, |values, _| {
        let mut out = Vec::new();
        for value in values {
            match value {
                CelValue::Optional(value) => out.extend(value.map(|value| (*value).clone())),
                other => {
                    let shown = super::lib_convert::display(&other);
                    return Err(EvaluationError::error(format!("value {shown} is not optional")));
                }
            }
        }
        Ok(CelValue::List(CelList::new(out)))
    })
}
