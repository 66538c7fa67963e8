//! Effects on single objects, grouped by their cause: one group for each cause, however many objects are affected.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::cause::CausingKeyword;
use super::effect::{ObjectEffect, ObjectImpact};
use super::object::ProjectedObject;
use gantry_core::finding::AffectedObject;

/// The maximum number of causes counted separately for one CRD. Further causes are counted together.
const MOST_CAUSES: usize = 500;
/// The maximum number of objects named in the findings of one check. Further objects are only counted.
pub const MOST_NAMED: usize = 200_000;

/// The cause of effects, by which they are grouped.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectCause {
    pub version: Arc<str>,
    pub impact: ObjectImpact,
    pub pattern: String,
    pub keyword: CausingKeyword,
}

/// The objects affected by one cause.
#[derive(Debug, Clone, Default)]
pub struct AffectedGroup {
    pub count: u64,
    /// The last object added, whose effects are added one after the other.
    last: Option<ObjectName>,
    pub objects: Vec<AffectedObject>,
}

/// The causes found so far among the objects of one list.
#[derive(Debug, Clone)]
pub struct Groups {
    pub groups: BTreeMap<EffectCause, AffectedGroup>,
    /// The number of objects examined.
    pub total: u64,
    /// The number of objects that can still be named.
    room: usize,
}

impl Default for Groups {
    fn default() -> Self {
        Groups::with_room(MOST_NAMED)
    }
}

impl Groups {
    /// Groups that name at most `room` objects over all causes.
    pub fn with_room(room: usize) -> Self {
        Groups { groups: BTreeMap::new(), total: 0, room }
    }

    pub fn add(&mut self, object: &ObjectName, effects: Vec<ObjectEffect>) {
        for ObjectEffect { impact, version, pattern, keyword, path, value, .. } in effects {
            let mut key = EffectCause { version, impact, pattern, keyword };
            if self.groups.len() >= MOST_CAUSES && !self.groups.contains_key(&key) {
                key.pattern = String::new();
                key.keyword = CausingKeyword { at: Vec::new(), words: "further causes".into() };
            }
            let group = match self.groups.entry(key) {
                Entry::Vacant(entry) => entry.insert(AffectedGroup::default()),
                Entry::Occupied(entry) => entry.into_mut(),
            };
            if group.last.as_ref() != Some(object) {
                group.count += 1;
                group.last = Some(object.clone());
            }
            if let Some(room) = self.room.checked_sub(1) {
                self.room = room;
                group.objects.push(AffectedObject {
                    namespace: object.namespace.clone(),
                    name: object.name.clone(),
                    path: path.map(Into::into),
                    value: (!value.is_empty()).then(|| value.into()),
                });
            }
        }
    }
}

/// The namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    pub namespace: Option<Box<str>>,
    pub name: Box<str>,
}

impl ObjectName {
    pub fn of_object(item: &ProjectedObject) -> Self {
        ObjectName { namespace: item.namespace().map(Into::into), name: item.name().into() }
    }
}
