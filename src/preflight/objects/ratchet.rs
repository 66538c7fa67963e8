//! Which updates of an invalid object are refused: on an update, the server tolerates invalid values that do not change
//! (ratcheting).
//!
//! The validator itself decides what counts as unchanged: it validates updates in which the old object differs from the
//! new one only in metadata, then around the value, then in the value itself.

use serde_json::{Value, json};

use super::compiled::Compiled;
use super::place::{self, Place};
use crate::resource::Step;
use gantry_schema::FieldError;
use gantry_schema::typed::{self, Duplicates, Unreadable, UnreadableKind};

/// The refused writes, from most to fewest. In each case, creating such an object is refused too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Refusal {
    /// Every update, even of a label or a finalizer.
    AnyUpdate,
    /// Every update that changes anything directly in this field, which holds the whole content of the object: `spec`.
    AnyChangeOf(String),
    /// Every server-side apply, whatever it sets, and every other update that changes the value: an apply first parses
    /// the live object by its schema, and cannot parse a value of the wrong type, or an item of a list without its
    /// keys.
    AnyApply,
    /// Every update that changes the value, or the object that it is missing in, and leaves it invalid.
    Touched,
    /// No update.
    CreateOnly,
}

/// A field that no schema describes. It makes two objects differ without any other effect.
const MARK: &str = "gantry.dev/differs";

/// Which updates the server refuses of an object whose `new` form has `error`. `today` is what server-side apply cannot
/// parse of the object with the live CRD.
pub fn refusal(
    version: &Compiled,
    error: &FieldError,
    place: &Place,
    (new, old): (&Value, &Value),
    today: &[Unreadable],
) -> Refusal {
    let remains = |old: &Value| {
        let found = version.schema.validate_all(new, Some(old)).errors;
        let is_it = |found: &FieldError| {
            found.path == error.path && found.at == error.at && found.kind == error.kind && found.detail == error.detail
        };
        found.iter().any(is_it)
    };
    let mut before = labelled(old);
    if remains(&before) {
        return Refusal::AnyUpdate;
    }
    if let Some(Step::Key(part)) = place.steps.first()
        && is_content(&version.raw, part)
    {
        mark(&mut before, &place.steps[..1]);
        if remains(&before) {
            return Refusal::AnyChangeOf(part.clone());
        }
    }
    let found = typed::unreadable(&version.raw, new, Duplicates::Allowed);
    let is_new = |found: &&Unreadable| !today.iter().any(|known| known.at == found.at && known.kind == found.kind);
    let is_above = |found: &Unreadable| found.kind != UnreadableKind::Undeclared && place.steps.starts_with(&found.at);
    if found.iter().filter(is_new).any(is_above) {
        return Refusal::AnyApply;
    }
    for depth in 1..place.steps.len() {
        mark(&mut before, &place.steps[..depth]);
    }
    if let Some(value) = place::value_at_mut(&mut before, &place.steps) {
        *value = other(value);
    }
    if remains(&before) { Refusal::Touched } else { Refusal::CreateOnly }
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

/// Changes the value at these steps, if it is an object.
fn mark(object: &mut Value, steps: &[Step]) {
    if let Some(Value::Object(map)) = place::value_at_mut(object, steps) {
        map.insert(MARK.to_owned(), json!(""));
    }
}

/// A different value of the same type.
fn other(value: &Value) -> Value {
    match value {
        Value::Null => json!(""),
        Value::Bool(flag) => json!(!flag),
        Value::Number(number) => number.as_i64().map_or(json!(0.5), |number| json!(number.wrapping_add(1))),
        Value::String(text) => json!(format!("{text}-")),
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(map) => {
            let mut map = map.clone();
            map.insert(MARK.to_owned(), json!(""));
            Value::Object(map)
        }
    }
}
