//! Witnesses without what they do not need.

use serde_json::Value;

use super::Judges;
use super::judge::Confirmed;
use super::way::Way;
use crate::proof::Witness;
use crate::proof::solve::{Solver, is_meta};

/// Attempts to make a witness smaller.
const SHRINKS: usize = 40;

impl Judges<'_> {
    /// The witness without what it does not need.
    pub(super) fn shrunk(&self, solver: &Solver, mut found: Confirmed, way: &Way<'_>) -> Witness {
        if found.witness.old_object.is_some() {
            return found.witness;
        }
        let mut tries = SHRINKS;
        let mut next = 0;
        while tries > 0 {
            let mut parts = Vec::new();
            removable(&found.witness.object, &mut Here::default(), true, &mut parts);
            let Some(part) = parts.get(next) else { break };
            // What holds the difference stays, and what one item did not allow the same one again does not.
            if part.is_twin || found.at.starts_with(&part.path) && is_end(&found.at[part.path.len()..]) {
                next += 1;
                continue;
            }
            let smaller = part.left_out(&found.witness.object);
            tries -= 1;
            match self.confirm(solver, &smaller, None, found.witness.via_status, way) {
                Ok(less) if less.witness.desired == found.witness.desired && less.witness.message == found.witness.message => {
                    found = less;
                }
                _ => next += 1,
            }
        }
        found.witness
    }
}

/// Whether nothing more belongs to the last name of a place.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(['.', '['])
}

/// A field or an item that might be left out.
struct Removable {
    /// A JSON pointer to what is around it.
    around: String,
    key: String,
    /// As the validator writes places.
    path: String,
    /// Whether it is an item that equals the one before it.
    is_twin: bool,
}

impl Removable {
    fn left_out(&self, object: &Value) -> Value {
        let mut smaller = object.clone();
        match smaller.pointer_mut(&self.around) {
            Some(Value::Object(map)) => {
                map.shift_remove(&self.key);
            }
            Some(Value::Array(items)) => {
                self.key.parse::<usize>().ok().filter(|at| *at < items.len()).map(|at| items.remove(at));
            }
            _ => {}
        }
        smaller
    }
}

/// Where a walk is: as a JSON pointer, and as the validator writes places.
#[derive(Default)]
struct Here {
    pointer: String,
    path: String,
}

/// The fields and items that might be left out, outer ones first.
fn removable(value: &Value, here: &mut Here, is_root: bool, parts: &mut Vec<Removable>) {
    let around = parts.len();
    let mut own = Vec::new();
    let mut add = |key: &str, step: &str, is_twin: bool, inner: &Value, here: &mut Here| {
        let lengths = (here.pointer.len(), here.path.len());
        let pointer = here.pointer.clone();
        here.pointer.push('/');
        here.pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        here.path.push_str(step);
        removable(inner, here, false, parts);
        own.push(Removable { around: pointer, key: key.to_owned(), path: here.path.clone(), is_twin });
        here.pointer.truncate(lengths.0);
        here.path.truncate(lengths.1);
    };
    match value {
        Value::Object(map) => {
            for (key, inner) in map.iter().filter(|(key, _)| !(is_root && is_meta(key))) {
                let dot = if here.path.is_empty() { "" } else { "." };
                add(key, &format!("{dot}{key}"), false, inner, here);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                let is_twin = index > 0 && items[index - 1] == *inner;
                add(&index.to_string(), &format!("[{index}]"), is_twin, inner, here);
            }
        }
        _ => {}
    }
    parts.splice(around..around, own);
}
