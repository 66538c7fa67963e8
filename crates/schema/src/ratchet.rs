//! Which updates of an invalid object the server refuses: on an update, it tolerates invalid values that do not change
//! (ratcheting).
//!
//! The validator itself decides what counts as unchanged: it validates updates in which the old object differs from the
//! new one in its metadata only, then in one of the values around the invalid one, then in the invalid value itself.
//! Everything that speaks about updates of invalid objects (proofs, checks) asks here.

use serde_json::{Value, json};

use crate::typed::{TypedValueError, UnreadableKind};
use crate::{FieldError, RefusedBy, Schema, Step, is_path_of_rule, older_releases};
use gantry_k8s_cel::KubernetesRelease;

/// The refused updates, from most to fewest. In each case, creating such an object is refused too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RatchetingRefusals {
    /// Every update, even of a label or a finalizer.
    Every,
    /// Every update of the status subresource, and no other update that leaves the value as it is: up to 1.32, servers
    /// ratchet only updates of the object itself.
    OfStatus,
    /// Every update that changes anything in this field, which holds the whole content of the object: `spec`.
    ChangesOfContent(String),
    /// Every server-side apply, whatever it sets, and every other update that changes the value: an apply first parses
    /// the live object by its schema, and cannot parse a value of the wrong type, or an item of a list without its
    /// keys.
    Applies,
    /// Every update that changes anything in the value around the invalid one.
    ChangesAround(FrozenAncestor),
    /// Every update that changes the invalid value and leaves it invalid.
    ChangesOfValue,
    /// No update: no change of the invalid value leaves it invalid in the same way.
    None,
}

/// The outermost value around an invalid one that cannot be changed while the invalid one stays.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrozenAncestor {
    /// The number of steps to it from the object: the first ones of the steps to the invalid value.
    pub depth: usize,
    /// The path to it, with `[*]` for indexes and for the keys of maps: `status.conditions`.
    pub field: String,
    /// Whether it is a list. The server pairs the items of a list with the old ones only in a list of type `map`. Any
    /// change of another list, such as a new item, makes it validate all items.
    pub is_list: bool,
}

impl RatchetingRefusals {
    /// Whether there are refused updates that leave the invalid value as it is.
    pub fn are_of_stored_objects(&self) -> bool {
        !matches!(self, Self::ChangesOfValue | Self::None)
    }
}

/// A field that no schema describes. It makes two objects differ without any other effect.
const MARK: &str = "gantry.dev/differs";

/// Which updates the server refuses of an object that has `error` with `schema`. `new` and `old` are the object as it
/// is written and as it was read, both prepared.
///
/// `unreadable` is what server-side apply cannot parse because of the schema: see [`crate::typed::unreadable`].
/// `has_status` is whether the version has the status subresource.
pub fn refused_updates(
    schema: &Schema,
    raw: &Value,
    has_status: bool,
    error: &FieldError,
    (new, old): (&Value, &Value),
    unreadable: &[TypedValueError],
) -> RatchetingRefusals {
    let remains_in = |schema: &Schema, new: &Value, old: &Value| {
        let found = schema.validate_all(new, Some(old)).errors;
        let is_it = |found: &FieldError| {
            found.path == error.path && found.at == error.at && found.kind == error.kind && found.by == error.by
        };
        found.iter().any(is_it)
    };
    let remains = |new: &Value, old: &Value| remains_in(schema, new, old);
    let labelled = labelled(old);
    if remains(new, &labelled) {
        return RatchetingRefusals::Every;
    }
    if has_status && schema.release() < older_releases::RATCHETS_STATUS && is_validated_with_status(error) {
        let without = schema.clone().with_release(KubernetesRelease::OLDEST_KNOWN);
        if remains_in(&without, new, &labelled) {
            return RatchetingRefusals::OfStatus;
        }
    }
    let is_refused_around = |depth: &usize| {
        let mut before = labelled.clone();
        change_around(&mut before, &error.at, *depth) && remains(new, &before)
    };
    let is_refused_itself = || {
        let is_empty = value_at(new, &error.at).is_some_and(is_empty);
        let mut changed = if is_empty { new.clone() } else { labelled.clone() };
        change_value(&mut changed, &error.at)
            // There is only one empty list: a change adds something to it.
            && if is_empty { remains(&changed, &labelled) } else { remains(new, &changed) }
    };
    // A change further inside changes everything around it as well.
    let innermost = error.at.len().checked_sub(1).filter(|depth| *depth > 0 && is_refused_around(depth));
    let outermost = innermost.map(|innermost| (1..innermost).find(is_refused_around).unwrap_or(innermost));
    let is_refused = outermost.is_some() || is_refused_itself();
    if let Some(Step::Key(part)) = error.at.first()
        && is_content(raw, part)
        && (outermost == Some(1) || error.at.len() == 1 && is_refused)
    {
        return RatchetingRefusals::ChangesOfContent(part.clone());
    }
    let is_above =
        |found: &TypedValueError| found.kind != UnreadableKind::Undeclared && error.at.starts_with(&found.at);
    if unreadable.iter().any(is_above) {
        return RatchetingRefusals::Applies;
    }
    match outermost {
        Some(depth) => {
            let is_list = value_at(new, &error.at[..depth]).is_some_and(Value::is_array);
            RatchetingRefusals::ChangesAround(FrozenAncestor {
                depth,
                field: pattern(raw, &error.at[..depth]),
                is_list,
            })
        }
        None if is_refused => RatchetingRefusals::ChangesOfValue,
        None => RatchetingRefusals::None,
    }
}

/// Whether a write of the status validates what is wrong: the values in the status, and the rules of the whole object.
fn is_validated_with_status(error: &FieldError) -> bool {
    let is_of_rule = match &error.by {
        RefusedBy::Keyword(at) => is_path_of_rule(at),
        by => matches!(by, RefusedBy::Evaluation(_)),
    };
    is_of_rule || error.at.first() == Some(&Step::from("status"))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// The path to a value, the same for all objects.
fn pattern(schema: &Value, steps: &[Step]) -> String {
    let (mut path, mut node) = (String::new(), Some(schema));
    for step in steps {
        let below = |keyword: &str| node.and_then(|node| node.get(keyword)).filter(|below| below.is_object());
        let field = match step {
            Step::Key(key) => below("properties").and_then(|fields| fields.get(key)),
            Step::Index(_) => None,
        };
        let entry = below(if matches!(step, Step::Index(_)) { "items" } else { "additionalProperties" });
        match step {
            Step::Key(key) if field.is_some() || entry.is_none() => {
                path.push_str(if path.is_empty() { "" } else { "." });
                path.push_str(key);
            }
            _ => path.push_str("[*]"),
        }
        node = field.or(entry);
    }
    path
}

/// The object with another label.
pub fn labelled(object: &Value) -> Value {
    let mut labelled = object.clone();
    labelled["metadata"]["labels"][MARK] = json!("");
    labelled
}

/// Whether a field of the object itself holds all that its owner or its controller changes: `spec`, `status`, or the
/// only other field. Elsewhere an update of the other fields leaves it unchanged, just as in a part of `spec`.
fn is_content(schema: &Value, part: &str) -> bool {
    let of_server = ["apiVersion", "kind", "metadata", "status"];
    let is_other = |name: &str| name != part && !of_server.contains(&name);
    ["spec", "status"].contains(&part)
        || !schema["properties"].as_object().is_some_and(|fields| fields.keys().any(|name| is_other(name)))
}

/// Changes something in the value at the first `depth` steps that is not on the way to the end of the steps. Returns
/// whether there is such a value.
fn change_around(object: &mut Value, at: &[Step], depth: usize) -> bool {
    match value_at_mut(object, &at[..depth]) {
        Some(Value::Object(fields)) => {
            fields.insert(MARK.to_owned(), json!(""));
            true
        }
        Some(Value::Array(items)) => {
            items.push(unlike_all(items));
            true
        }
        _ => false,
    }
}

/// Gives the value at these steps another value of the same type. Returns whether there is one.
fn change_value(object: &mut Value, at: &[Step]) -> bool {
    let Some(value) = value_at_mut(object, at) else { return false };
    match value {
        Value::Null => *value = json!(""),
        Value::Bool(flag) => *flag = !*flag,
        Value::Number(number) => {
            *value = number.as_i64().map_or(json!(0.5), |number| json!(number.wrapping_add(1)));
        }
        Value::String(text) => text.push('-'),
        Value::Array(items) => items.push(unlike_all(items)),
        Value::Object(fields) => drop(fields.insert(MARK.to_owned(), json!(""))),
    }
    true
}

/// An item of the same type as these that is none of them.
fn unlike_all(items: &[Value]) -> Value {
    match items.first() {
        Some(Value::Object(_)) => json!({ MARK: "" }),
        Some(Value::Array(_)) => json!([MARK]),
        Some(Value::Number(_)) => {
            json!(items.iter().filter_map(Value::as_i64).max().unwrap_or_default().wrapping_add(1))
        }
        Some(Value::Bool(flag)) => json!(!flag),
        _ => json!(MARK),
    }
}

/// The value at these steps.
fn value_at<'v>(value: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    })
}

pub(crate) fn value_at_mut<'v>(value: &'v mut Value, steps: &[Step]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    })
}
