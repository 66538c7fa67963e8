//! Shrinks witnesses: removes the parts that they do not need.

use serde_json::Value;

use super::CompiledSides;
use super::confirm::Confirmed;
use super::route::Route;
use crate::ProofWitness;
use crate::keywords as kw;
use crate::solve::Solver;
use gantry_schema::Step;

/// The maximum number of attempts to make a witness smaller.
const SHRINKS: usize = 40;
/// The maximum weight of all attempts together: each of them reads the whole witness.
const MAX_SHRUNK_WEIGHT: u64 = 8 << 20;
/// The number of bytes that are read in one step.
const WEIGHED: u64 = 4096;
/// Longer lists are long for a reason; they are kept or removed as a whole.
const LONGEST: usize = 64;

impl CompiledSides<'_> {
    /// The witness without the parts that it does not need.
    pub(super) fn shrink(&self, solver: &Solver, mut found: Confirmed, route: &Route<'_>) -> ProofWitness {
        if found.witness.old_object.is_some() {
            return found.witness;
        }
        let original = found.witness.object.clone();
        // Many changes of one object have the same witness.
        let known =
            self.shrunk.borrow().as_ref().filter(|(known, _)| *known == original).map(|(_, small)| small.clone());
        if let Some(small) = known
            && let Ok(less) = self.confirm(solver, &small, None, found.witness.via_status, route)
            && less.witness.desired == found.witness.desired
            && less.witness.message == found.witness.message
        {
            return less.witness;
        }
        let weight = kw::weight(&original).max(1);
        let mut tries = SHRINKS.min(usize::try_from(MAX_SHRUNK_WEIGHT / weight).unwrap_or(SHRINKS));
        let mut next = 0;
        while tries > 0 && solver.spend(weight / WEIGHED) {
            let mut parts = Vec::new();
            RemovalWalk { at: found.at.as_deref(), parts: &mut parts }.collect_below(
                &found.witness.object,
                &mut Vec::new(),
                true,
            );
            let Some(part) = parts.get(next) else { break };
            let smaller = part.left_out(&found.witness.object);
            tries -= 1;
            match self.confirm(solver, &smaller, None, found.witness.via_status, route) {
                Ok(less)
                    if less.witness.desired == found.witness.desired
                        && less.witness.message == found.witness.message =>
                {
                    found = less;
                }
                _ => next += 1,
            }
        }
        *self.shrunk.borrow_mut() = Some((original, found.witness.object.clone()));
        found.witness
    }
}

/// A field or an item that could be removed.
struct Removable {
    around: Vec<Step>,
    step: Step,
}

impl Removable {
    fn left_out(&self, object: &Value) -> Value {
        let mut smaller = object.clone();
        let around = self.around.iter().try_fold(&mut smaller, |value, step| match step {
            Step::Key(key) => value.get_mut(key),
            Step::Index(index) => value.get_mut(index),
        });
        match (around, &self.step) {
            (Some(Value::Object(map)), Step::Key(key)) => {
                map.shift_remove(key);
            }
            (Some(Value::Array(items)), Step::Index(at)) if *at < items.len() => {
                items.remove(*at);
            }
            _ => {}
        }
        smaller
    }
}

/// Collects the fields and items that could be removed, outer ones first. Parts that contain the difference are kept.
/// An item equal to the one before it is skipped: if one cannot be removed, neither can the other.
struct RemovalWalk<'w> {
    /// Where the difference is, if that is known.
    at: Option<&'w [Step]>,
    parts: &'w mut Vec<Removable>,
}

impl RemovalWalk<'_> {
    /// `here` is the path to `value`.
    fn collect_below(&mut self, value: &Value, here: &mut Vec<Step>, is_root: bool) {
        let around = self.parts.len();
        let mut own = Vec::new();
        match value {
            Value::Object(map) => {
                for (key, inner) in map.iter().filter(|(key, _)| !(is_root && kw::is_meta(key))) {
                    own.extend(self.part(Step::from(key.as_str()), inner, here));
                }
            }
            Value::Array(items) if items.len() <= LONGEST => {
                for (index, inner) in items.iter().enumerate() {
                    let part = self.part(Step::Index(index), inner, here);
                    own.extend(part.filter(|_| index == 0 || items[index - 1] != *inner));
                }
            }
            _ => {}
        }
        self.parts.splice(around..around, own);
    }

    /// The part that `step` leads to, after the parts inside it.
    fn part(&mut self, step: Step, inner: &Value, here: &mut Vec<Step>) -> Option<Removable> {
        here.push(step);
        self.collect_below(inner, here, false);
        let holds = self.at.is_some_and(|at| at.starts_with(here));
        let step = here.pop()?;
        (!holds).then(|| Removable { around: here.clone(), step })
    }
}
