//! Lists in strategic merge patches: their order, and two patches of one list.

use serde_json::{Map, Value};

use super::schema::PatchSchema;
use super::{DELETE, DIRECTIVE, Fields, ORDER, PatchResult, merge_patches, without_directives};

/// What is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Items {
    Maps,
    Scalars,
}

/// What is in these lists.
///
/// Source: `sliceElementType`
pub fn items(lists: &[&[Value]]) -> PatchResult<Items> {
    let mut all = lists.iter().copied().flatten();
    let first = all.next().ok_or("no elements in any of the given slices")?;
    if first.is_array() {
        return Err("lists of lists are not supported".to_owned());
    }
    if all.any(|item| std::mem::discriminant(item) != std::mem::discriminant(first)) {
        return Err("list element types are not identical".to_owned());
    }
    Ok(if first.is_object() { Items::Maps } else { Items::Scalars })
}

/// A scalar as Go prints it, by which lists are sorted.
pub fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        value => value.to_string(),
    }
}

pub fn no_key(item: &Value, key: &str) -> String {
    let names: Vec<&String> = item.as_object().into_iter().flat_map(Map::keys).collect();
    format!("an item of a list (with {names:?}) does not contain declared merge key: {key}")
}

/// Go sorts short lists so. What is in no order stays in none, so the result is not that of another algorithm.
fn insertion_sort<T>(list: &mut [T], is_less: impl Fn(&T, &T) -> bool) {
    for end in 1..list.len() {
        let mut at = end;
        while at > 0 && is_less(&list[at], &list[at - 1]) {
            list.swap(at, at - 1);
            at -= 1;
        }
    }
}

/// What identifies an item.
fn identity<'v>(item: &'v Value, key: &str, kind: Items) -> Option<&'v Value> {
    match kind {
        Items::Maps => item.get(key),
        Items::Scalars => Some(item),
    }
}

fn index(list: &[Value], wanted: &Value, key: &str, kind: Items) -> Option<usize> {
    list.iter().position(|item| identity(item, key, kind) == identity(wanted, key, kind))
}

fn is_delete(item: &Value) -> bool {
    item.get(DIRECTIVE).is_some_and(|directive| directive == DELETE)
}

/// The items in the order of another list. Directives that delete come last.
///
/// Source: `normalizeSliceOrder`
pub fn order(list: Vec<Value>, by: &[Value], key: &str, kind: Items) -> PatchResult<Vec<Value>> {
    let mut deleted = Vec::new();
    let mut list = list;
    if kind == Items::Maps {
        if let Some(item) = list.iter().chain(by).find(|item| item.get(key).is_none()) {
            return Err(no_key(item, key));
        }
        (deleted, list) = list.into_iter().partition(is_delete);
    }
    let mut placed: Vec<(Option<usize>, Value)> =
        list.into_iter().map(|item| (index(by, &item, key, kind), item)).collect();
    insertion_sort(&mut placed, |(a, _), (b, _)| a.is_none() || b.is_none() || a < b);
    Ok(placed.into_iter().map(|(_, item)| item).chain(deleted).collect())
}

/// Source: `mergeSortedSlice`
fn merge_sorted(left: Vec<Value>, right: Vec<Value>, by: &[Value], key: &str, kind: Items) -> Vec<Value> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    loop {
        let is_left = match (left.peek(), right.peek()) {
            (None, None) => return merged,
            (Some(a), Some(b)) => match (index(by, a, key, kind), index(by, b, key, kind)) {
                (Some(a), Some(b)) => a < b,
                _ => false,
            },
            (a, _) => a.is_some(),
        };
        merged.extend(if is_left { left.next() } else { right.next() });
    }
}

/// The items in the order of the patch, and those that it lacks between them.
///
/// Source: `normalizeElementOrder`, after `partitionMapsByPresentInList`
fn enforce_order(merged: Vec<Value>, by: &[Value], old: &[Value], key: &str, kind: Items) -> PatchResult<Vec<Value>> {
    let (named, others) = merged.into_iter().partition(|item: &Value| index(by, item, key, kind).is_some());
    let (named, others) = (order(named, by, key, kind)?, order(others, old, key, kind)?);
    Ok(merge_sorted(others, named, old, key, kind))
}

/// Two patches of one list.
///
/// Source: `mergeSlice`
pub fn merge(old: Vec<Value>, new: Vec<Value>, key: &str, schema: PatchSchema<'_>) -> PatchResult<Vec<Value>> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let kind = items(&[&old, &new])?;
    if kind == Items::Scalars {
        let mut merged: Vec<Value> = Vec::new();
        for item in old.iter().chain(&new) {
            if !merged.contains(item) {
                merged.push(item.clone());
            }
        }
        return enforce_order(merged, &new, &old, key, kind);
    }
    if key.is_empty() {
        return Err("cannot merge lists without merge key".to_owned());
    }
    let (deleted, new): (Vec<Value>, Vec<Value>) = new.into_iter().partition(is_delete);
    let mut old = old;
    old.retain(|item| !deleted.iter().any(|gone| gone.get(key) == item.get(key)));
    let mut merged = old.clone();
    for item in &new {
        let at = item.get(key).ok_or_else(|| no_key(item, key))?;
        let known = merged.iter().position(|known| known.get(key) == Some(at));
        match (known, item) {
            (Some(known), Value::Object(item)) => {
                let Value::Object(below) = merged[known].take() else { return Err("not a map".to_owned()) };
                merged[known] = Value::Object(merge_patches(below, item.clone(), schema)?);
            }
            _ => merged.push(item.clone()),
        }
    }
    enforce_order(merged, &new, &old, key, kind)
}

/// Refuses a patch whose items are in another order than the directive says, such as two items of one key.
///
/// Source: `validatePatchWithSetOrderList`
fn require_order(list: &[Value], by: &[Value], key: &str) -> PatchResult<()> {
    if list.is_empty() || by.is_empty() {
        return Ok(());
    }
    let kind = if key.is_empty() { Items::Scalars } else { Items::Maps };
    let mut places = by.iter();
    for item in list.iter().filter(|item| !is_delete(item)) {
        if !places.any(|place| identity(place, key, kind) == identity(item, key, kind)) {
            return Err(format!(
                "the order in patch list doesn't match $setElementOrder list, at {}",
                name_item(item, key)
            ));
        }
    }
    Ok(())
}

/// What names an item in a message, without its values, which may be secret.
fn name_item(item: &Value, key: &str) -> String {
    item.get(key).map_or_else(|| "a value".to_owned(), |value| format!("{key} {value}"))
}

/// Merges the lists of two patches for which the second one sets the order.
///
/// Source: `mergePatchIntoOriginal`
pub fn merge_ordered(old: &mut Fields, new: &mut Fields, schema: PatchSchema<'_>) -> PatchResult<()> {
    let orders: Vec<String> = new.keys().filter(|key| key.starts_with(ORDER)).cloned().collect();
    for directive in orders {
        let Some(Value::Array(by)) = new.shift_remove(&directive) else { continue };
        let name = directive[ORDER.len()..].to_owned();
        match old.get(&directive) {
            Some(known) if known.as_array() != Some(&by) => {
                return Err("invalid patch format of setElementOrder list".to_owned());
            }
            _ => drop(old.insert(directive, Value::Array(by.clone()))),
        }
        let list = |fields: &Fields| fields.get(&name).and_then(Value::as_array).cloned();
        let (of_old, of_new) = (list(old), list(new));
        let (below, hint) = schema.items_of(&name)?;
        require_order(of_new.as_deref().unwrap_or_default(), &by, &hint.key)?;
        let merged = match (&of_old, &of_new) {
            (None, None) => continue,
            (Some(old), None) => old.clone(),
            (None, Some(new)) => new.iter().cloned().filter_map(without_directives).collect(),
            (Some(old), Some(new)) if hint.strategy == "merge" => merge(old.clone(), new.clone(), &hint.key, below)?,
            (Some(_), Some(new)) => new.clone(),
        };
        let (of_old, of_new) = (of_old.unwrap_or_default(), of_new.unwrap_or_default());
        let kind = items(&[&of_old, &of_new])?;
        let merged = enforce_order(merged, &by, &of_old, &hint.key, kind)?;
        old.insert(name.clone(), Value::Array(merged));
        new.shift_remove(&name);
    }
    Ok(())
}
