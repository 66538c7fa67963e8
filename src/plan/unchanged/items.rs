//! The items of a list in managedFields.

use gantry_schema::json::Json;

use super::member;

/// What managedFields record of an item of a list.
pub(super) enum ItemRecord<'j> {
    /// A member of a set.
    Value(Json<'j>),
    /// The keys of an item, and its fields.
    Keys(Json<'j>, &'j Json<'j>),
}

impl<'j> ItemRecord<'j> {
    pub fn read((step, children): (&'j str, &'j Json<'j>)) -> Option<Self> {
        match step.split_once(':')? {
            ("v", value) => Some(ItemRecord::Value(Json::parse(value).ok()?)),
            ("k", keys) => {
                Some(ItemRecord::Keys(Json::parse(keys).ok().filter(|keys| keys.map().is_some())?, children))
            }
            _ => None,
        }
    }

    /// The record of an item of the manifest. The server defaults a key that the manifest leaves out (`protocol: TCP`
    /// of a port), so an item without it has a record that is of no other item.
    pub fn of<'r>(item: &Json<'_>, records: &'r [Self], desired: &[Json<'_>]) -> Option<&'r Self> {
        let may_be_of = |record: &&Self| match record {
            ItemRecord::Value(value) => value == item,
            ItemRecord::Keys(keys, _) => {
                each_member(keys, |key, value| member(Some(item), key).is_none_or(|own| own == value))
            }
        };
        let is_of_no_other = |record: &&Self| may_be_of(record) && !desired.iter().any(|other| record.is_of(other));
        records.iter().find(|record| record.is_of(item)).or_else(|| records.iter().find(is_of_no_other))
    }

    /// Whether the item has this value or all of these keys.
    pub fn is_of(&self, item: &Json<'_>) -> bool {
        match self {
            ItemRecord::Value(value) => value == item,
            ItemRecord::Keys(keys, _) => each_member(keys, |key, value| member(Some(item), key) == Some(value)),
        }
    }
}

fn each_member(map: &Json<'_>, holds: impl Fn(&str, &Json<'_>) -> bool) -> bool {
    map.map().is_some_and(|map| map.iter().all(|(key, value)| holds(key, value)))
}
