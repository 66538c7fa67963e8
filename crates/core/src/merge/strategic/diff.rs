//! What differs between two objects, as a strategic merge patch.

use std::mem::discriminant;

use serde_json::{Value, json};

use super::lists::{self, Items, order, scalar_text};
use super::schema::{PatchHint, PatchSchema};
use super::{DELETE, DELETE_SCALARS, DIRECTIVE, Fields, ORDER, PatchResult, RETAIN_KEYS};

/// The half of the differences that a patch gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Additions,
    Deletions,
}

/// What a patch gets.
#[derive(Debug, Clone, Copy)]
pub struct PatchPart {
    half: Half,
    /// Whether it names the fields that stay.
    retains_keys: bool,
}

impl PatchPart {
    /// What is added or changed.
    pub const ADDITIONS: PatchPart = PatchPart { half: Half::Additions, retains_keys: false };
    /// What is removed.
    pub const DELETIONS: PatchPart = PatchPart { half: Half::Deletions, retains_keys: false };

    fn adds(self) -> bool {
        self.half == Half::Additions
    }

    fn below(self, hint: &PatchHint) -> Self {
        PatchPart { retains_keys: hint.retains_keys, ..self }
    }
}

/// The patch from one map to another.
///
/// Source: `diffMaps`
pub fn diff_maps(old: &Fields, new: &Fields, schema: PatchSchema<'_>, wanted: PatchPart) -> PatchResult<Fields> {
    let mut patch = Fields::new();
    for (key, value) in new {
        let known = match old.get(key) {
            Some(known) if is_of_one_type(known, value) => known,
            _ => {
                if wanted.adds() {
                    patch.insert(key.clone(), value.clone());
                }
                continue;
            }
        };
        match (known, value) {
            (Value::Object(old), Value::Object(new)) => diff_map(key, old, new, &mut patch, schema, wanted)?,
            (Value::Array(old), Value::Array(new)) => diff_list(key, old, new, &mut patch, schema, wanted)?,
            _ if wanted.adds() && known != value => drop(patch.insert(key.clone(), value.clone())),
            _ => {}
        }
    }
    if !wanted.adds() {
        let gone = old.keys().filter(|key| !new.contains_key(*key));
        patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    }
    if wanted.retains_keys {
        let mut kept: Vec<&String> = new.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key).collect();
        kept.sort();
        let clears = old.iter().any(|(key, value)| !value.is_null() && !new.contains_key(key));
        if !kept.is_empty() && (!patch.is_empty() || clears) {
            patch.insert(RETAIN_KEYS.to_owned(), json!(kept));
        }
    }
    Ok(patch)
}

/// Go has a type for each kind of JSON value, and two for numbers.
fn is_of_one_type(a: &Value, b: &Value) -> bool {
    discriminant(a) == discriminant(b) && a.is_f64() == b.is_f64()
}

fn diff_map(
    key: &str,
    old: &Fields,
    new: &Fields,
    patch: &mut Fields,
    schema: PatchSchema<'_>,
    wanted: PatchPart,
) -> PatchResult<()> {
    let (below, hint) = match schema.member(key) {
        Err(_) if old == new => return Ok(()),
        found => found?,
    };
    if hint.strategy == "replace" {
        if wanted.adds() {
            patch.insert(key.to_owned(), Value::Object(new.clone()));
        }
        return Ok(());
    }
    let found = diff_maps(old, new, below, wanted.below(&hint))?;
    if !found.is_empty() {
        patch.insert(key.to_owned(), Value::Object(found));
    }
    Ok(())
}

fn diff_list(
    key: &str,
    old: &[Value],
    new: &[Value],
    patch: &mut Fields,
    schema: PatchSchema<'_>,
    wanted: PatchPart,
) -> PatchResult<()> {
    let (below, hint) = match schema.items_of(key) {
        Err(_) if old == new => return Ok(()),
        found => found?,
    };
    if hint.strategy != "merge" {
        if wanted.adds() && old != new {
            patch.insert(key.to_owned(), json!(new));
        }
        return Ok(());
    }
    let found = diff_lists(old, new, &hint.key, below, wanted.below(&hint))?;
    let mut add = |key: String, list: Vec<Value>| {
        if !list.is_empty() {
            patch.insert(key, Value::Array(list));
        }
    };
    add(key.to_owned(), found.patch);
    add(format!("{DELETE_SCALARS}{key}"), found.deleted);
    add(format!("{ORDER}{key}"), found.order);
    Ok(())
}

#[derive(Default)]
struct ListDiff {
    patch: Vec<Value>,
    /// Scalars that leave the list.
    deleted: Vec<Value>,
    order: Vec<Value>,
}

/// Source: `diffLists`
fn diff_lists(
    old: &[Value],
    new: &[Value],
    key: &str,
    schema: PatchSchema<'_>,
    wanted: PatchPart,
) -> PatchResult<ListDiff> {
    if old.is_empty() {
        let patch = if wanted.adds() { new.to_vec() } else { Vec::new() };
        return Ok(ListDiff { patch, ..ListDiff::default() });
    }
    match lists::items(&[old, new])? {
        Items::Maps => {
            let (changed, deleted) = diff_items(old, new, key, schema, wanted)?;
            let mut patch = order(changed, new, key, Items::Maps)?;
            let is_in_order = old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old[key] == new[key]);
            patch.extend(deleted);
            let has_order = !patch.is_empty() || wanted.adds() && !is_in_order;
            let order = if has_order { new.iter().map(|item| json!({key: item[key]})).collect() } else { Vec::new() };
            Ok(ListDiff { patch, deleted: Vec::new(), order })
        }
        Items::Scalars => {
            let (added, deleted) = diff_scalars(old, new, wanted);
            let patch = order(added, new, key, Items::Scalars)?;
            let has_order = if wanted.adds() { old != new } else { !deleted.is_empty() };
            Ok(ListDiff { patch, deleted, order: if has_order { new.to_vec() } else { Vec::new() } })
        }
    }
}

/// The items that change, and the directives that delete the others.
///
/// Source: `diffListsOfMaps`
fn diff_items(
    old: &[Value],
    new: &[Value],
    key: &str,
    schema: PatchSchema<'_>,
    wanted: PatchPart,
) -> PatchResult<(Vec<Value>, Vec<Value>)> {
    let sorted = |list: &[Value]| -> PatchResult<Vec<(String, Value)>> {
        let keyed = |item: &Value| match item.get(key) {
            Some(value) => Ok((scalar_text(value), item.clone())),
            None => Err(lists::no_key(item, key)),
        };
        // Go compares with <=, which turns the order of equal items round.
        let mut sorted = list.iter().rev().map(keyed).collect::<PatchResult<Vec<_>>>()?;
        sorted.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(sorted)
    };
    let (old, new) = (sorted(old)?, sorted(new)?);
    let (mut patch, mut deleted) = (Vec::new(), Vec::new());
    let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
    loop {
        match (olds.peek(), news.peek()) {
            (None, None) => return Ok((patch, deleted)),
            (Some((at, old)), Some((same, new))) if at == same => {
                let (old, new) = (old.as_object().ok_or("not a map")?, new.as_object().ok_or("not a map")?);
                let mut found = diff_maps(old, new, schema, wanted)?;
                if !found.is_empty() {
                    found.insert(key.to_owned(), new[key].clone());
                    patch.push(Value::Object(found));
                }
                olds.next();
                news.next();
            }
            (old, Some((at, new))) if old.is_none_or(|(old, _)| old > at) => {
                if wanted.adds() {
                    patch.push(new.clone());
                }
                news.next();
            }
            (Some((_, old)), _) => {
                if !wanted.adds() {
                    deleted.push(json!({key: old[key], DIRECTIVE: DELETE}));
                }
                olds.next();
            }
            (None, Some(_)) => unreachable!("an item after the last old one is new"),
        }
    }
}

/// The scalars that are added, and those that leave.
///
/// Source: `diffListsOfScalars`
fn diff_scalars(old: &[Value], new: &[Value], wanted: PatchPart) -> (Vec<Value>, Vec<Value>) {
    let sorted = |list: &[Value]| {
        let mut list = list.to_vec();
        list.sort_by_key(scalar_text);
        list
    };
    let (old, new) = (sorted(old), sorted(new));
    let (mut added, mut deleted) = (Vec::new(), Vec::new());
    let (mut olds, mut news) = (old.iter().peekable(), new.iter().peekable());
    loop {
        let (old, new) = (olds.peek().map(|old| scalar_text(old)), news.peek().map(|new| scalar_text(new)));
        match (old, new) {
            (None, None) => break,
            (Some(old), Some(new)) if old == new => drop((olds.next(), news.next())),
            (old, Some(new)) if old.as_ref().is_none_or(|old| *old > new) => {
                added.extend(news.next().filter(|_| wanted.adds()).cloned());
            }
            _ => {
                let gone = olds.next().filter(|gone| !wanted.adds() && !deleted.contains(*gone));
                deleted.extend(gone.cloned());
            }
        }
    }
    (added, deleted)
}
