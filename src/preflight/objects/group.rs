//! Effects on single objects, grouped by their cause: one group for one mistake, however many objects meet it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use super::cause::Keyword;
use super::judge::{Effect, Impact};
use super::object::Item;
use crate::finding::AffectedObject;

/// Causes that are counted separately in one CRD. What comes after them is counted together.
const MOST_CAUSES: usize = 500;
/// Objects that are named in the findings of one check. What comes after them is counted.
pub const MOST_NAMED: usize = 200_000;

/// What makes effects the same cause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub version: Arc<str>,
    pub harm: Impact,
    pub pattern: String,
    pub keyword: Keyword,
}

/// The objects that meet one cause.
#[derive(Debug, Clone, Default)]
pub struct Group {
    pub count: u64,
    /// The last object, which may come several times in a row.
    last: Option<Named>,
    pub objects: Vec<AffectedObject>,
}

/// The causes found so far among the objects of one list.
#[derive(Debug, Clone)]
pub struct Groups {
    pub groups: BTreeMap<Key, Group>,
    /// Objects looked at.
    pub total: u64,
    /// How many more may be named.
    room: usize,
}

impl Default for Groups {
    fn default() -> Self {
        Groups::with_room(MOST_NAMED)
    }
}

impl Groups {
    /// Groups that name at most so many objects, over all causes.
    pub fn with_room(room: usize) -> Self {
        Groups { groups: BTreeMap::new(), total: 0, room }
    }

    pub fn add(&mut self, object: &Named, effects: Vec<Effect>) {
        for Effect { harm, version, pattern, keyword, path, value, .. } in effects {
            let mut key = Key { version, harm, pattern, keyword };
            if self.groups.len() >= MOST_CAUSES && !self.groups.contains_key(&key) {
                key.pattern = String::new();
                key.keyword = Keyword { at: Vec::new(), words: "further causes".into() };
            }
            let group = match self.groups.entry(key) {
                Entry::Vacant(entry) => entry.insert(Group::default()),
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

/// The name of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub namespace: Option<Box<str>>,
    pub name: Box<str>,
}

impl Named {
    pub fn of(item: &Item) -> Self {
        Named { namespace: item.namespace().map(Into::into), name: item.name().into() }
    }
}
