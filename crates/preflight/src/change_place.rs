//! The line of a manifest at which a removed part is missing: next to what stood beside it in the live object. The
//! rule's own place can be hundreds of lines above, at the key that the part was in, and code hosts show annotations
//! only near changed lines.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::slice;

use serde_json::Value;

use crate::objects::place::value_at;
use gantry_core::manifest::{Spans, ValueLocation};
use gantry_core::resource::Step;
use gantry_deploy::plan::Change;

/// The two sides of a change, parsed when the first part is found missing.
pub struct RemovedPartLocator<'a> {
    change: &'a Change,
    sides: OnceCell<Option<[Value; 2]>>,
    neighbours: RefCell<KnownNeighbours>,
}

/// The missing keys of objects, by the path of the object: thousands can be missing from one.
type KnownNeighbours = HashMap<Vec<Step>, HashMap<String, Neighbours>>;

/// The nearest parts that are still there beside a missing part.
#[derive(Default)]
struct Neighbours {
    next: Option<String>,
    before: Option<String>,
}

impl<'a> RemovedPartLocator<'a> {
    pub fn new(change: &'a Change) -> Self {
        RemovedPartLocator { change, sides: OnceCell::new(), neighbours: RefCell::default() }
    }

    /// The place next to which the part at `path` stood in the live object; `None` if the manifest has it, or the live
    /// object does not.
    pub fn locate(&self, path: &[Step], located: &ValueLocation, spans: &Spans<'_>) -> Option<ValueLocation> {
        if located.depth >= path.len() {
            return None;
        }
        let sides = self.sides.get_or_init(|| {
            let live = self.change.live.as_ref()?.raw.value();
            Some([live, self.change.desired.raw.value()])
        });
        let [live, desired] = sides.as_ref()?;
        let beside = neighbour_path(live, desired, path, &mut self.neighbours.borrow_mut())?;
        let place = spans.locate(&beside);
        (place.depth == beside.len()).then_some(place)
    }
}

/// The path of the part that followed the missing one, or else the end of the one before it.
fn neighbour_path(live: &Value, desired: &Value, path: &[Step], known: &mut KnownNeighbours) -> Option<Vec<Step>> {
    let (mut live, mut desired) = (live, desired);
    for (depth, step) in path.iter().enumerate() {
        let of_live = counterpart(path, depth, live, desired)?;
        match (of_live, value_at(desired, slice::from_ref(step))) {
            (of_live, Some(of_desired)) => (live, desired) = (of_live, of_desired),
            (_, None) => {
                let Step::Key(removed) = step else { return None };
                let known = match known.get(&path[..depth]) {
                    Some(known) => known,
                    None => known.entry(path[..depth].to_vec()).or_insert(neighbours(live, desired)?),
                };
                let Neighbours { next, before } = known.get(removed.as_str())?;
                let mut place = path[..depth].to_vec();
                if let Some(next) = next {
                    place.push(Step::Key(next.clone()));
                    return Some(place);
                }
                let before = before.as_ref()?;
                place.push(Step::Key(before.clone()));
                place.extend(end_of(desired.get(before.as_str())?));
                return Some(place);
            }
        }
    }
    None
}

/// What stands beside each key of `live` that `desired` does not have.
fn neighbours(live: &Value, desired: &Value) -> Option<HashMap<String, Neighbours>> {
    let mut missing: HashMap<String, Neighbours> = HashMap::new();
    let mut last = None;
    let stays = |key: &str| desired.get(key).is_some();
    for key in live.as_object()?.keys() {
        match stays(key) {
            true => last = Some(key),
            false => missing.entry(key.clone()).or_default().before = last.cloned(),
        }
    }
    last = None;
    for key in live.as_object()?.keys().rev() {
        match stays(key) {
            true => last = Some(key),
            false => missing.entry(key.clone()).or_default().next = last.cloned(),
        }
    }
    Some(missing)
}

/// What the live object has at a step of the path. A version of a CRD is found by its name.
fn counterpart<'v>(path: &[Step], depth: usize, live: &'v Value, desired: &Value) -> Option<&'v Value> {
    let is_version = depth == 2 && path[..2] == ["spec".into(), "versions".into()];
    match &path[depth] {
        Step::Index(index) if is_version => {
            let name = &desired.get(index)?["name"];
            live.as_array()?.iter().find(|version| version["name"] == *name)
        }
        step => value_at(live, slice::from_ref(step)),
    }
}

/// The steps to the last part of a value.
fn end_of(value: &Value) -> Vec<Step> {
    let (step, last) = match value {
        Value::Object(map) => match map.iter().next_back() {
            Some((key, last)) => (Step::Key(key.clone()), last),
            None => return Vec::new(),
        },
        Value::Array(list) => match list.last() {
            Some(last) => (Step::Index(list.len() - 1), last),
            None => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let mut steps = vec![step];
    steps.extend(end_of(last));
    steps
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_stood_beside_removed_parts_is_looked_for_once() {
        let keys = |from: usize, to: usize| (from..to).map(|n| (format!("k{n}"), json!({}))).collect::<Value>();
        let (live, desired) = (json!({ "a": keys(0, 100) }), json!({ "a": keys(40, 60) }));
        let known = &mut KnownNeighbours::new();
        let mut beside = |n: usize| {
            let found = neighbour_path(&live, &desired, &["a".into(), Step::from(format!("k{n}").as_str())], known);
            found.map(|path| format!("{:?}", path[1]))
        };
        let key = |name: &str| Some(format!("{:?}", Step::from(name)));
        assert!((0..40).all(|n| beside(n) == key("k40")) && (60..100).all(|n| beside(n) == key("k59")));
        assert_eq!((beside(50), beside(100)), (None, None));
        assert_eq!(known.len(), 1);
    }

    #[test]
    fn the_position_of_a_removed_part_is_that_of_its_neighbour() {
        let crd = |name: &str, spec: Value| json!({"spec": {"versions": [{"name": name, "schema": spec}]}});
        let live = json!({"spec": {"versions": [{"name": "v1beta1"},
            {"name": "v1", "schema": {"a": {"x": 1}, "b": {}, "c": {"y": {"z": [1, 2]}}, "d": {}}}]}});
        let path = |key: &str| -> Vec<Step> {
            vec!["spec".into(), "versions".into(), Step::Index(0), "schema".into(), key.into()]
        };
        let at = |desired: Value, key: &str| {
            let found = neighbour_path(&live, &crd("v1", desired), &path(key), &mut KnownNeighbours::new())?;
            Some(found[4..].iter().map(|step| format!("{step:?}")).collect::<Vec<_>>().join(" "))
        };
        let key = |name: &str| format!("{:?}", Step::from(name));
        assert_eq!(at(json!({"a": {}, "c": {}, "d": {}}), "b"), Some(key("c")));
        assert_eq!(at(json!({"a": {}, "d": {}}), "b"), Some(key("d")));
        let end = format!("{} {} {} {:?}", key("c"), key("y"), key("z"), Step::Index(1));
        assert_eq!(at(json!({"a": {}, "c": {"y": {"z": [1, 2]}}}), "d"), Some(end));
        assert_eq!(at(json!({"a": {}, "b": {}}), "a"), None);
        assert_eq!(at(json!({}), "a"), None);
        assert_eq!(neighbour_path(&live, &crd("v2", json!({})), &path("a"), &mut KnownNeighbours::new()), None);
    }
}
