//! Counts objects by what happens to them, and their managers, in memory that does not grow with the number of objects.
//!
//! Objects are counted by the combination of all causes that affect them. So it can later be determined how many
//! objects are affected by any of some causes, each object counted once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::effect::{LossMoment, ObjectEffect, ObjectImpact};
use super::object::FieldManagerEntry;
use gantry_core::resource::Step;
use gantry_core::text;

/// The maximum number of causes counted separately. Further causes are counted as [`ObjectOutcome::Unknown`].
const MOST_CAUSES: usize = 500;
/// The maximum number of combinations of causes counted separately. Objects with further combinations are counted under
/// [`ObjectOutcome::Unknown`].
const MOST_COMBINATIONS: usize = 2000;
/// The maximum number of objects named for each combination.
pub const EXAMPLES: usize = 3;
/// The maximum number of field managers counted.
const MOST_MANAGERS: usize = 50;
/// The maximum number of characters of a manager's name, which is also the limit of the API server.
const LONGEST_MANAGER: usize = 128;

/// What happens to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectOutcome {
    Refused,
    Pruned,
    /// The new storage version does not have the field.
    PrunedAtStorage,
    Defaulted,
    /// A rule or pattern could not be evaluated.
    Undecided,
    /// There are too many causes to know which one it is.
    Unknown,
}

/// What happens to objects, and the part of the desired schema that causes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TalliedCause {
    pub version: Arc<str>,
    pub outcome: ObjectOutcome,
    /// The steps from the root of the schema to the node.
    pub node: Vec<Step>,
    /// The keyword of that node, if known.
    pub keyword: Option<String>,
    /// The pruned field of the node, if the live schema describes it.
    pub field: Option<String>,
}

impl TalliedCause {
    /// The cause of an effect; `None` if it is not caused by a schema.
    pub fn of_effect(effect: &ObjectEffect) -> Option<TalliedCause> {
        let outcome = match &effect.impact {
            ObjectImpact::Refused(_) => ObjectOutcome::Refused,
            ObjectImpact::Pruned(LossMoment::OnWrite) => ObjectOutcome::PrunedAtStorage,
            ObjectImpact::Pruned(_) => ObjectOutcome::Pruned,
            ObjectImpact::Defaulted(_) => ObjectOutcome::Defaulted,
            ObjectImpact::Undecided(_) => ObjectOutcome::Undecided,
            ObjectImpact::NotAppliable { .. }
            | ObjectImpact::WrittenAt { .. }
            | ObjectImpact::StoredAt
            | ObjectImpact::PerhapsStoredAt => {
                return None;
            }
        };
        let (node, keyword) = split(&effect.keyword.at);
        Some(TalliedCause { version: effect.version.clone(), outcome, node, keyword, field: effect.lost.clone() })
    }

    fn unknown() -> TalliedCause {
        TalliedCause {
            version: "".into(),
            outcome: ObjectOutcome::Unknown,
            node: Vec::new(),
            keyword: None,
            field: None,
        }
    }
}

/// Splits a place in a schema into the node and its keyword.
pub fn split(at: &[Step]) -> (Vec<Step>, Option<String>) {
    let mut node = Vec::new();
    let mut steps = at.iter().peekable();
    while let Some(step) = steps.next() {
        let Step::Key(key) = step else { return (node, None) };
        match (key.as_str(), steps.peek()) {
            ("properties", Some(_)) => {
                node.push(step.clone());
                node.extend(steps.next().cloned());
            }
            ("items", Some(Step::Index(_))) => {
                node.push(step.clone());
                node.extend(steps.next().cloned());
            }
            ("items" | "additionalProperties", _) => node.push(step.clone()),
            (keyword, _) => return (node, Some(keyword.to_owned())),
        }
    }
    (node, None)
}

/// An object by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleObject {
    pub namespace: Option<Box<str>>,
    pub name: Box<str>,
    /// Whether it is an object that this deploy writes, not a stored one.
    pub from_manifest: bool,
}

/// Field managers, with the number of objects that each of them writes.
pub type ManagerCounts = BTreeMap<String, u64>;

/// The objects with one combination of causes.
#[derive(Debug, Clone, Default)]
struct Combination {
    objects: u64,
    manifests: u64,
    examples: Vec<ExampleObject>,
    /// The managers of the fields that a cause affects, by cause and name.
    managers: BTreeMap<(u32, String), u64>,
}

/// The counted effects on the objects of one list.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    causes: BTreeMap<TalliedCause, u32>,
    combinations: BTreeMap<Vec<u32>, Combination>,
    /// The number of manifests of this deploy that were validated along with the objects.
    pub manifests: u64,
    /// The number of manifests that could not be validated, and the reason for the first of them.
    pub unvalidated: Option<(u64, String)>,
    /// The managers that write objects, apart from their status.
    pub writers: ManagerCounts,
    /// The managers that write the status of objects.
    pub status_writers: ManagerCounts,
}

/// What happens to one object.
#[derive(Debug)]
pub struct ObjectOutcomes {
    pub example: ExampleObject,
    /// The causes, each with the managers of the fields that it affects.
    pub causes: Vec<(TalliedCause, BTreeSet<String>)>,
}

/// The objects affected by any of some causes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub objects: u64,
    pub manifests: u64,
    pub examples: Vec<ExampleObject>,
    pub managers: ManagerCounts,
}

impl Tally {
    /// Counts the managers of an object.
    pub fn written_by(&mut self, managed: &[FieldManagerEntry]) {
        for (is_status, into) in [(false, &mut self.writers), (true, &mut self.status_writers)] {
            let of = |entry: &&FieldManagerEntry| (entry.subresource.as_deref() == Some("status")) == is_status;
            let names: BTreeSet<String> = managed.iter().filter(of).map(|entry| manager(&entry.manager)).collect();
            names.into_iter().for_each(|name| count(into, name, 1));
        }
    }

    /// Counts what happens to an object.
    pub fn add(&mut self, outcomes: ObjectOutcomes) {
        let mut combination = BTreeSet::new();
        let mut managers: BTreeSet<(u32, String)> = BTreeSet::new();
        for (cause, names) in outcomes.causes {
            let number = self.number(cause);
            combination.insert(number);
            managers.extend(names.into_iter().map(|name| (number, name)));
        }
        if combination.is_empty() {
            return;
        }
        let mut combination: Vec<u32> = combination.into_iter().collect();
        if self.combinations.len() >= MOST_COMBINATIONS && !self.combinations.contains_key(&combination) {
            combination = vec![self.number(TalliedCause::unknown())];
        }
        let counted = self.combinations.entry(combination).or_default();
        match outcomes.example.from_manifest {
            true => counted.manifests += 1,
            false => counted.objects += 1,
        }
        if counted.examples.len() < EXAMPLES {
            counted.examples.push(outcomes.example);
        }
        for (cause, name) in managers {
            let has_room = counted.managers.len() < MOST_MANAGERS;
            match counted.managers.get_mut(&(cause, name.clone())) {
                Some(count) => *count += 1,
                None if has_room => drop(counted.managers.insert((cause, name), 1)),
                None => {}
            }
        }
    }

    fn number(&mut self, cause: TalliedCause) -> u32 {
        let cause = match self.causes.len() >= MOST_CAUSES && !self.causes.contains_key(&cause) {
            true => TalliedCause::unknown(),
            false => cause,
        };
        let next = u32::try_from(self.causes.len()).unwrap_or(u32::MAX);
        *self.causes.entry(cause).or_insert(next)
    }

    /// All causes that affect any object.
    pub fn causes(&self) -> impl Iterator<Item = &TalliedCause> {
        self.causes.keys()
    }

    /// The objects affected by any of these causes.
    pub fn sum(&self, causes: &BTreeSet<&TalliedCause>) -> Sum {
        let wanted: BTreeSet<u32> = causes.iter().filter_map(|cause| self.causes.get(*cause)).copied().collect();
        let mut sum = Sum::default();
        for (combination, counted) in &self.combinations {
            if !combination.iter().any(|cause| wanted.contains(cause)) {
                continue;
            }
            sum.objects += counted.objects;
            sum.manifests += counted.manifests;
            sum.examples.extend(counted.examples.iter().cloned());
            // A manager of fields of several causes is counted for the cause with the most objects.
            let mut most = ManagerCounts::new();
            for ((_, name), count) in counted.managers.iter().filter(|((cause, _), _)| wanted.contains(cause)) {
                let known = most.entry(name.clone()).or_default();
                *known = (*known).max(*count);
            }
            most.into_iter().for_each(|(name, objects)| count(&mut sum.managers, name, objects));
        }
        sum.examples
            .sort_by(|a, b| (a.from_manifest, &a.namespace, &a.name).cmp(&(b.from_manifest, &b.namespace, &b.name)));
        sum.examples.truncate(EXAMPLES);
        sum
    }
}

fn count(managers: &mut ManagerCounts, name: String, objects: u64) {
    if managers.len() < MOST_MANAGERS || managers.contains_key(&name) {
        *managers.entry(name).or_default() += objects;
    }
}

fn manager(name: &str) -> String {
    text::cut(name, LONGEST_MANAGER).into_owned()
}

/// The managers that own the field at these steps; if none does, those of its nearest owned ancestor.
pub fn owners(managed: &[FieldManagerEntry], steps: &[Step]) -> BTreeSet<String> {
    for length in (1..=steps.len()).rev() {
        let owns = |entry: &&FieldManagerEntry| {
            entry.fields.as_ref().is_some_and(|fields| fields.owns(&steps[..length], None))
        };
        let found: BTreeSet<String> = managed.iter().filter(owns).map(|entry| manager(&entry.manager)).collect();
        if !found.is_empty() {
            return found;
        }
    }
    BTreeSet::new()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use gantry_core::managed_fields::FieldSet;

    fn cause(name: &str) -> TalliedCause {
        let node = vec![Step::from("properties"), Step::from(name)];
        TalliedCause {
            version: "v1".into(),
            outcome: ObjectOutcome::Refused,
            node,
            keyword: Some("enum".into()),
            field: None,
        }
    }

    fn outcomes(name: &str, causes: &[(&str, &[&str])]) -> ObjectOutcomes {
        let causes = causes
            .iter()
            .map(|(at, managers)| (cause(at), managers.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>()));
        let example = ExampleObject { namespace: None, name: name.into(), from_manifest: false };
        ObjectOutcomes { example, causes: causes.collect() }
    }

    #[test]
    fn an_object_that_meets_several_causes_is_counted_once() {
        let mut tally = Tally::default();
        tally.add(outcomes("a", &[("x", &["m"]), ("y", &["m", "n"])]));
        tally.add(outcomes("b", &[("y", &["n"])]));
        tally.add(outcomes("c", &[("z", &["o"])]));
        let (x, y, z) = (cause("x"), cause("y"), cause("z"));
        let sum = |causes: &[&TalliedCause]| tally.sum(&causes.iter().copied().collect());
        let both = sum(&[&x, &y]);
        assert_eq!((both.objects, both.examples.len()), (2, 2));
        assert_eq!(both.managers, ManagerCounts::from([("m".into(), 1), ("n".into(), 2)]));
        assert_eq!((sum(&[&x]).objects, sum(&[&y]).objects, sum(&[&z]).objects, sum(&[]).objects), (1, 2, 1, 0));
    }

    #[test]
    fn memory_is_bounded_and_what_does_not_fit_is_still_counted() {
        let mut tally = Tally::default();
        let names: Vec<String> = (0..2 * MOST_CAUSES).map(|i| format!("f{i}")).collect();
        for name in &names {
            let manager = format!("m{name}");
            tally.add(outcomes(name, &[(name, &[&manager])]));
            tally.written_by(&[FieldManagerEntry { manager, ..FieldManagerEntry::default() }]);
        }
        assert!(tally.causes.len() <= MOST_CAUSES + 1 && tally.writers.len() == MOST_MANAGERS);
        let all: BTreeSet<&TalliedCause> = tally.causes.keys().collect();
        assert!(all.contains(&TalliedCause::unknown()));
        let sum = tally.sum(&all);
        assert_eq!((sum.objects, sum.examples.len()), (names.len() as u64, EXAMPLES));
    }

    #[test]
    fn the_path_of_a_keyword_is_split_into_node_and_keyword() {
        let steps = |names: &[&str]| names.iter().map(|name| Step::from(*name)).collect::<Vec<_>>();
        let at = |names: &[&str]| {
            let (node, keyword) = split(&steps(names));
            (node.len(), keyword)
        };
        assert_eq!(at(&["properties", "items", "items", "enum"]), (3, Some("enum".into())));
        assert_eq!(at(&["properties", "properties", "properties"]), (2, Some("properties".into())));
        assert_eq!(at(&["properties", "a", "additionalProperties"]), (3, None));
        assert_eq!(at(&["x-kubernetes-validations"]), (0, Some("x-kubernetes-validations".into())));
    }

    #[test]
    fn the_managers_of_a_field_are_recorded() {
        let managed = |name: &str, fields: Value| FieldManagerEntry {
            manager: name.into(),
            fields: Some(FieldSet::parse(&fields)),
            ..FieldManagerEntry::default()
        };
        let managed = [
            managed("a", json!({"f:spec": {"f:x": {}, "f:list": {"k:{\"name\":\"n\"}": {".": {}, "f:y": {}}}}})),
            managed("b", json!({"f:spec": {".": {}, "f:atomic": {}}})),
        ];
        let owners = |steps: &[Step]| owners(&managed, steps).into_iter().collect::<String>();
        let spec = |more: &[Step]| [&[Step::from("spec")], more].concat();
        assert_eq!(owners(&spec(&["x".into()])), "a");
        assert_eq!(owners(&spec(&["list".into(), 0.into(), "y".into()])), "a");
        assert_eq!(owners(&spec(&["atomic".into(), 3.into(), "z".into()])), "b", "part of a whole");
        assert_eq!(owners(&spec(&["missing".into()])), "ab", "who writes the part that it is missing in");
    }
}
