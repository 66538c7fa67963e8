//! Witnesses without what they do not need.

use serde_json::Value;

use super::Judges;
use super::judge::Confirmed;
use super::way::Way;
use crate::proof::Witness;
use crate::proof::solve::{Solver, is_meta};

/// Attempts to make a witness smaller.
const SHRINKS: usize = 40;
/// Longer lists are long for a reason; they stay or go as a whole.
const LONGEST: usize = 64;

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
            Walk { at: &found.at, parts: &mut parts }.below(&found.witness.object, &mut Here::default(), true);
            let Some(part) = parts.get(next) else { break };
            let smaller = part.left_out(&found.witness.object);
            tries -= 1;
            match self.confirm(solver, &smaller, None, found.witness.via_status, way) {
                Ok(less)
                    if less.witness.desired == found.witness.desired
                        && less.witness.message == found.witness.message =>
                {
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

/// Collects the fields and items that might be left out, outer ones first. What holds the difference stays, and what
/// one item did not allow the same one again does not.
struct Walk<'w> {
    /// Where the difference is.
    at: &'w str,
    parts: &'w mut Vec<Removable>,
}

impl Walk<'_> {
    fn below(&mut self, value: &Value, here: &mut Here, is_root: bool) {
        let around = self.parts.len();
        let mut own = Vec::new();
        match value {
            Value::Object(map) => {
                for (key, inner) in map.iter().filter(|(key, _)| !(is_root && is_meta(key))) {
                    let length = here.path.len();
                    if length > 0 {
                        here.path.push('.');
                    }
                    here.path.push_str(key);
                    own.extend(self.part(key, inner, here));
                    here.path.truncate(length);
                }
            }
            Value::Array(items) if items.len() <= LONGEST => {
                for (index, inner) in items.iter().enumerate() {
                    let length = here.path.len();
                    here.path.push_str(&format!("[{index}]"));
                    let part = self.part(&index.to_string(), inner, here);
                    own.extend(part.filter(|_| index == 0 || items[index - 1] != *inner));
                    here.path.truncate(length);
                }
            }
            _ => {}
        }
        self.parts.splice(around..around, own);
    }

    /// The part that `key` leads to, after those inside of it.
    fn part(&mut self, key: &str, inner: &Value, here: &mut Here) -> Option<Removable> {
        let length = here.pointer.len();
        here.pointer.push('/');
        here.pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        self.below(inner, here, false);
        here.pointer.truncate(length);
        let holds = self.at.starts_with(&here.path) && is_end(&self.at[here.path.len()..]);
        (!holds).then(|| Removable { around: here.pointer.clone(), key: key.to_owned() })
    }
}
