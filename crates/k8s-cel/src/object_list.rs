//! Equality and concatenation of lists of the validated object, which follow their `x-kubernetes-list-type`.
//!
//! Up to Kubernetes 1.36 both work on the data: the result of `+` is data again, which is read with the element type of
//! the left list. From [`LISTS_OF_VALUES`] on they work on typed values.
//!
//! Source: `pkg/cel/common/valuesunstructured.go` and `valuesreflect.go` of `k8s.io/apiserver`.

use std::rc::Rc;

use serde_json::Value as Json;

use super::budget::CelBudget;
use super::convert::data;
use super::equal::{elements, find, is_data};
use super::fault::{CelResult, EvaluationError};
use super::release::KubernetesRelease;
use super::types::ListKind;
use super::value::{CelList, CelListItems, CelMap, CelValue};
use crate::golang::Timestamp;

/// The first release whose sets contain typed values, so that `2.0` is `2`, and whose sums do. Items that occur several
/// times count from then on.
const LISTS_OF_VALUES: KubernetesRelease = KubernetesRelease::minor(37);

/// The key values that identify an element in a list of type `map`; `None` for what matches no element.
type ElementKey<'a> = Option<Vec<Option<CelValue<'a>>>>;

/// Whether two lists of the same length, of which the left one is a set, have the same items.
pub(crate) fn sets_are_equal<'a>(left: &CelList<'a>, right: &CelList<'a>, budget: &mut CelBudget) -> CelResult<bool> {
    if budget.release() >= LISTS_OF_VALUES {
        let known = set_items(left.iter())?;
        let mut others = Vec::with_capacity(known.len());
        for item in right.iter() {
            let item = set_item(item)?;
            budget.take(known.len() as u64)?;
            if !known.iter().any(|known| is_same_item(known, &item)) {
                return Ok(false);
            }
            others.push(item);
        }
        return Ok(known.iter().all(|known| others.iter().any(|other| is_same_item(known, other))));
    }
    left_data(left).try_for_each(|item| require_hashable(&item))?;
    for value in right.iter() {
        let value = match value {
            // A value that does not match its schema is not in any set.
            Err(EvaluationError::Error(_)) => return Ok(false),
            value => value?,
        };
        require_hashable(&value)?;
        budget.take(left.len() as u64)?;
        if !left_data(left).any(|item| is_same_data(&item, &value)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether two lists of the same length, of which the left one is of type `map`, have equal elements with the same keys.
pub(crate) fn keyed_lists_are_equal<'a>(
    left: &CelList<'a>,
    right: &CelList<'a>,
    keys: &[String],
    budget: &mut CelBudget,
) -> CelResult<bool> {
    // Only the sum of values has such items and a list type.
    let is_sum = matches!(left.items, CelListItems::Taken(_));
    // An element can be found even if parts of it do not match the schema.
    let known: Vec<ElementKey<'a>> = match is_sum {
        true => left.iter().map(|element| value_key(&element, keys)).collect::<CelResult<_>>()?,
        false => left_data(left).map(|item| data_key(&item, keys)).collect::<CelResult<_>>()?,
    };
    let mut others = Vec::with_capacity(known.len());
    for element in right.iter() {
        let key = match (&element, is_sum) {
            (element, true) => value_key(element, keys)?,
            (Err(EvaluationError::Error(_)), false) => return Ok(false),
            (Err(fault), false) => return Err(fault.clone()),
            (Ok(element), false) => data_key(element, keys)?,
        };
        budget.take(left.len() as u64)?;
        // The last of several elements with the same key wins.
        match known.iter().rposition(|known| is_same_key(known, &key)) {
            Some(index) if elements(left.get(index), element, budget)? => {}
            _ => return Ok(false),
        }
        others.push(key);
    }
    // Before, a list in which a key occurs several times can equal one that lacks another key.
    Ok(budget.release() < LISTS_OF_VALUES
        || known.iter().all(|known| others.iter().any(|other| is_same_key(known, other))))
}

/// `left + right` for lists: a union if the left list is a set, a merge by key if it is of type `map`.
pub(crate) fn concat<'a>(left: CelList<'a>, right: CelList<'a>, budget: &mut CelBudget) -> CelResult<CelList<'a>> {
    if left.kind.is_none() && left.len() == 0 {
        return Ok(right);
    }
    if left.kind.is_none() && right.len() == 0 {
        return Ok(left);
    }
    let (mut items, of): (Vec<CelValue<'a>>, _) = match &left.items {
        CelListItems::Json(..) | CelListItems::Taken(_)
            if left.kind.is_some() && budget.release() >= LISTS_OF_VALUES =>
        {
            return concat_values(left, &right, budget);
        }
        CelListItems::Json(items, of) => (items.iter().map(CelValue::Unknown).collect(), *of),
        CelListItems::Merged(items, of) => (items.to_vec(), *of),
        _ => {
            let marked = |list: &CelList<'a>| (0..list.len()).map(|at| (list.get(at), list.is_of_object(at))).collect();
            let mut items: Vec<_> = marked(&left);
            items.append(&mut marked(&right));
            return Ok(CelList { items: CelListItems::Joined(Rc::new(items)), kind: left.kind });
        }
    };
    let known_keys = match left.kind {
        Some(ListKind::Set) => items.iter().try_for_each(require_hashable).map(|()| Vec::new())?,
        Some(ListKind::Map(keys)) => items.iter().map(|item| data_key(item, keys)).collect::<CelResult<_>>()?,
        _ => Vec::new(),
    };
    for value in right.iter() {
        let value = match value {
            Ok(value) => data(&value),
            Err(EvaluationError::Error(text)) => CelValue::Misfit(text.into()),
            Err(fault) => return Err(fault),
        };
        budget.take(items.len() as u64)?;
        match left.kind {
            Some(ListKind::Set) => {
                require_hashable(&value)?;
                if !items.iter().any(|item| is_same_data(item, &value)) {
                    items.push(value);
                }
            }
            Some(ListKind::Map(keys)) => {
                // New elements are matched only with the original elements.
                let key = data_key(&value, keys)?;
                match known_keys.iter().rposition(|known| is_same_key(known, &key)) {
                    Some(at) => items[at] = value,
                    None => items.push(value),
                }
            }
            _ => items.push(value),
        }
    }
    Ok(CelList { items: CelListItems::Merged(Rc::new(items), of), kind: left.kind })
}

/// [`concat`] of values. The result keeps the elements that do not match their schema, and the list type, except
/// `atomic`: then it is like any list that a rule built.
fn concat_values<'a>(left: CelList<'a>, right: &CelList<'a>, budget: &mut CelBudget) -> CelResult<CelList<'a>> {
    if left.len() + right.len() == 0 {
        return Ok(left);
    }
    let mut values: Vec<CelResult<CelValue<'a>>> = left.iter().collect();
    match left.kind {
        Some(ListKind::Set) => {
            let mut known = set_items(left.iter())?;
            for value in right.iter() {
                let item = set_item(value.clone())?;
                budget.take(known.len() as u64)?;
                if !known.iter().any(|known| is_same_item(known, &item)) {
                    known.push(item);
                    values.push(value);
                }
            }
        }
        Some(ListKind::Map(keys)) => {
            let known = left.iter().map(|element| value_key(&element, keys)).collect::<CelResult<Vec<_>>>()?;
            for value in right.iter() {
                let key = value_key(&value, keys)?;
                budget.take(known.len() as u64)?;
                match known.iter().rposition(|known| is_same_key(known, &key)) {
                    Some(at) => values[at] = value,
                    None => values.push(value),
                }
            }
        }
        _ => values.extend(right.iter()),
    }
    let kind = left.kind.filter(|kind| !matches!(kind, ListKind::Atomic));
    Ok(CelList { items: CelListItems::Taken(Rc::new(values)), kind })
}

/// An item of a set; `None` for one that does not match its schema, which is the same as no other.
fn set_item<'a>(item: CelResult<CelValue<'a>>) -> CelResult<Option<CelValue<'a>>> {
    match item {
        Ok(CelValue::List(_) | CelValue::Map(_)) => {
            Err(EvaluationError::error("listSet operations are only supported on lists of scalar values"))
        }
        Ok(item) => Ok(Some(item)),
        Err(EvaluationError::Error(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn set_items<'a>(items: impl Iterator<Item = CelResult<CelValue<'a>>>) -> CelResult<Vec<Option<CelValue<'a>>>> {
    items.map(set_item).collect()
}

fn is_same_item(left: &Option<CelValue>, right: &Option<CelValue>) -> bool {
    left.as_ref().zip(right.as_ref()).is_some_and(|(left, right)| is_same_value(left, right))
}

/// Whether two values are the same key of a Go map.
fn is_same_value(left: &CelValue, right: &CelValue) -> bool {
    match (left, right) {
        (CelValue::Null, CelValue::Null) => true,
        (CelValue::Bytes(left), CelValue::Bytes(right)) => left == right,
        (CelValue::Timestamp(left), CelValue::Timestamp(right)) => is_same_time(*left, *right),
        _ => is_same_data(left, right),
    }
}

/// Go compares the location of times, too, which is a new one for each time with an offset other than whole hours from
/// -12 to 14. Source: `FixedZone` of Go's package `time`.
fn is_same_time(left: Timestamp, right: Timestamp) -> bool {
    const HOUR: i32 = 3_600;
    let is_shared = left.offset % HOUR == 0 && (-12..=14).contains(&(left.offset / HOUR));
    left == right && is_shared
}

/// Whether two elements are the same data.
fn is_same_data(left: &CelValue, right: &CelValue) -> bool {
    match (left, right) {
        (CelValue::Unknown(left), right) => is_data(left, right),
        (left, CelValue::Unknown(right)) => is_data(right, left),
        (CelValue::String(left), CelValue::String(right)) => **left == **right,
        (CelValue::Bool(left), CelValue::Bool(right)) => left == right,
        (CelValue::Int(left), CelValue::Int(right)) => left == right,
        (CelValue::Double(left), CelValue::Double(right)) => left == right,
        (CelValue::Duration(left), CelValue::Duration(right)) => left == right,
        _ => false,
    }
}

/// The elements of a list in the validated object, as written.
fn left_data<'l, 'a>(list: &'l CelList<'a>) -> impl Iterator<Item = CelValue<'a>> + 'l {
    let item = |index: usize| match &list.items {
        CelListItems::Json(items, _) => CelValue::Unknown(&items[index]),
        CelListItems::Merged(items, _) => items[index].clone(),
        _ => CelValue::Null,
    };
    (0..list.len()).map(item)
}

/// The server keeps the elements of sets, and the keys of elements in lists of type `map`, in a Go map. Lists,
/// maps and bytes cannot be keys of a Go map, and abort the evaluation.
fn require_hashable(data: &CelValue) -> CelResult<()> {
    let of = match data {
        CelValue::Bytes(_) => "[]uint8",
        CelValue::List(_) | CelValue::Unknown(Json::Array(_)) => "[]interface {}",
        CelValue::Map(_) | CelValue::Unknown(Json::Object(_)) => "map[string]interface {}",
        _ => return Ok(()),
    };
    Err(EvaluationError::Abort(format!("internal error: runtime error: hash of unhashable type {of}")))
}

/// The key of an element by its data.
fn data_key<'a>(element: &CelValue<'a>, keys: &[String]) -> CelResult<ElementKey<'a>> {
    let fields = match element {
        CelValue::Map(CelMap::Json { fields, .. } | CelMap::Plain(fields)) => *fields,
        CelValue::Unknown(Json::Object(fields)) => fields,
        _ => return Ok(None),
    };
    let key: Vec<_> = keys.iter().map(|key| fields.get(key).map(CelValue::Unknown)).collect();
    // The server joins more than three keys as text.
    if keys.len() <= 3 {
        key.iter().flatten().try_for_each(require_hashable)?;
    }
    Ok(Some(key))
}

/// The key of an element by its values. A key without a value counts as missing, as do all keys of an element that is not a map.
fn value_key<'a>(element: &CelResult<CelValue<'a>>, keys: &[String]) -> CelResult<ElementKey<'a>> {
    let part = |key: &String| match element {
        Ok(CelValue::Map(map)) => match find(map, &CelValue::from(&**key)) {
            Err(EvaluationError::Error(_)) => Ok(None),
            value => value,
        },
        Ok(_) | Err(EvaluationError::Error(_)) => Ok(None),
        Err(fault) => Err(fault.clone()),
    };
    keys.iter().map(part).collect::<CelResult<Vec<_>>>().map(Some)
}

fn is_same_key(left: &ElementKey, right: &ElementKey) -> bool {
    let is_same_part = |(left, right): (&Option<CelValue>, &Option<CelValue>)| match (left, right) {
        (Some(left), Some(right)) => is_same_value(left, right),
        (left, right) => left.is_none() && right.is_none(),
    };
    left.as_ref().zip(right.as_ref()).is_some_and(|(left, right)| left.iter().zip(right).all(is_same_part))
}
