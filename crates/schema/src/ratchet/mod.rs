//! Which updates of an invalid object the server refuses: on an update, it tolerates invalid values that do not change
//! (ratcheting).
//!
//! The validator itself decides what counts as unchanged: it validates updates in which the old object differs from the
//! new one in its metadata only, then in one of the values around the invalid one, then in the invalid value itself.
//! Everything that speaks about updates of invalid objects (proofs, checks) asks here.

#[cfg(test)]
mod tests;
mod trials;

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::typed::{TypedValueError, UnreadableKind};
use crate::{FieldError, RefusedBy, Schema, Step, is_path_of_rule, older_releases};
use trials::{Trials, TriedChange};

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
    /// The most changes that can be refused of an object with an error that does not refuse every update: what is to be
    /// assumed if the answer takes too much work.
    pub fn most_of_changes(raw: &Value, error: &FieldError, new: &Value) -> Self {
        match error.at.split_at_checked(1).filter(|(_, rest)| !rest.is_empty()) {
            Some((outermost, _)) => {
                let is_list = value_at(new, outermost).is_some_and(Value::is_array);
                Self::ChangesAround(FrozenAncestor { depth: 1, field: pattern(raw, outermost), is_list })
            }
            None => Self::ChangesOfValue,
        }
    }

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
    objects: (&Value, &Value),
    unreadable: &[TypedValueError],
) -> RatchetingRefusals {
    let refused = refused_updates_of_each(schema, raw, has_status, &[error], objects, unreadable);
    refused.into_iter().next().flatten().unwrap_or(RatchetingRefusals::Every)
}

/// [`refused_updates`] for each of the errors of one object, which is validated a few times for each level of nesting
/// and not for each error. `None` for an error whose answer depends on other errors and takes too much work.
pub fn refused_updates_of_each(
    schema: &Schema,
    raw: &Value,
    has_status: bool,
    errors: &[&FieldError],
    (new, old): (&Value, &Value),
    unreadable: &[TypedValueError],
) -> Vec<Option<RatchetingRefusals>> {
    if errors.is_empty() {
        return Vec::new();
    }
    let mut trials = Trials::new(schema, errors, new, labelled(old));
    let mut refused: Vec<Option<RatchetingRefusals>> = vec![None; errors.len()];
    let remain = trials.remain_with(schema);
    let mut open: Vec<usize> = (0..errors.len()).collect();
    open.retain(|number| !decide(remain[*number], RatchetingRefusals::Every, &mut refused[*number]));
    if has_status && schema.release() < older_releases::RATCHETS_STATUS {
        let remain = trials.remain_with(&schema.clone().without_ratcheting());
        open.retain(|number| {
            let remains = remain[*number] && is_validated_with_status(errors[*number]);
            !decide(remains, RatchetingRefusals::OfStatus, &mut refused[*number])
        });
    }
    let frozen = find_frozen(&mut trials, errors, &open);
    let free: Vec<usize> = open.iter().copied().filter(|number| frozen[*number] == Some(None)).collect();
    let changed = trials.remain_after(TriedChange::Value, &free);
    let unparsed: HashSet<&[Step]> = unreadable
        .iter()
        .filter(|found| found.kind != UnreadableKind::Undeclared)
        .map(|found| found.at.as_slice())
        .collect();
    for number in open {
        let at = &errors[number].at;
        let Some(outermost) = frozen[number] else { continue };
        let is_refused = match outermost {
            Some(_) => true,
            None => match changed[number] {
                Some(is_refused) => is_refused,
                None => continue,
            },
        };
        let content = match at.first() {
            Some(Step::Key(part)) if outermost == Some(1) || at.len() == 1 && is_refused => {
                Some(part).filter(|part| is_content(raw, part))
            }
            _ => None,
        };
        refused[number] = Some(if let Some(part) = content {
            RatchetingRefusals::ChangesOfContent(part.clone())
        } else if !unparsed.is_empty() && (0..=at.len()).any(|depth| unparsed.contains(&at[..depth])) {
            RatchetingRefusals::Applies
        } else if let Some(depth) = outermost {
            let is_list = value_at(new, &at[..depth]).is_some_and(Value::is_array);
            RatchetingRefusals::ChangesAround(FrozenAncestor { depth, field: pattern(raw, &at[..depth]), is_list })
        } else if is_refused {
            RatchetingRefusals::ChangesOfValue
        } else {
            RatchetingRefusals::None
        });
    }
    refused
}

fn decide(is_so: bool, refusals: RatchetingRefusals, decided: &mut Option<RatchetingRefusals>) -> bool {
    if is_so {
        *decided = Some(refusals);
    }
    is_so
}

/// The depth of the outermost value around each of these errors that cannot be changed; `Some(None)` if there is no
/// such value, and `None` if that is unknown.
fn find_frozen(trials: &mut Trials, errors: &[&FieldError], tried: &[usize]) -> Vec<Option<Option<usize>>> {
    let mut frozen = vec![Some(None); errors.len()];
    let most = tried.iter().map(|number| errors[*number].at.len()).max().unwrap_or_default();
    for depth in 1..most {
        let at_depth: Vec<usize> =
            tried.iter().copied().filter(|number| errors[*number].at.len() == depth + 1).collect();
        let remain = trials.remain_after(TriedChange::Around(depth), &at_depth);
        for number in at_depth {
            frozen[number] = remain[number].map(|remains| remains.then_some(depth));
        }
    }
    // A change further inside changes everything around it as well.
    let mut open: Vec<usize> = tried.to_vec();
    for depth in 1..most {
        open.retain(|number| frozen[*number].flatten().is_some_and(|innermost| innermost > depth));
        let remain = trials.remain_after(TriedChange::Around(depth), &open);
        open.retain(|number| {
            match remain[*number] {
                None => frozen[*number] = None,
                Some(true) => frozen[*number] = Some(Some(depth)),
                Some(false) => {}
            }
            remain[*number] == Some(false)
        });
    }
    frozen
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
/// whether the value differs afterwards.
fn change_around(object: &mut Value, at: &[Step], depth: usize) -> bool {
    match value_at_mut(object, &at[..depth]) {
        Some(Value::Object(fields)) => mark(fields),
        Some(Value::Array(items)) => {
            items.push(unlike_all(items));
            true
        }
        _ => false,
    }
}

fn mark(fields: &mut Map<String, Value>) -> bool {
    fields.insert(MARK.to_owned(), json!("")).is_none_or(|before| before != "")
}

/// Gives the value at these steps another value of the same type. Returns whether it differs afterwards.
fn change_value(object: &mut Value, at: &[Step]) -> bool {
    let Some(value) = value_at_mut(object, at) else { return false };
    match value {
        Value::Null => *value = json!(""),
        Value::Bool(flag) => *flag = !*flag,
        Value::Number(number) => {
            let another = number.as_i64().map_or(json!(0.5), |number| json!(number.wrapping_add(1)));
            return std::mem::replace(value, another) != *value;
        }
        Value::String(text) => text.push('-'),
        Value::Array(items) => items.push(unlike_all(items)),
        Value::Object(fields) => return mark(fields),
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
