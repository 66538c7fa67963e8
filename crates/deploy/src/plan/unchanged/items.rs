//! The items of a list in managedFields.

use gantry_schema::Tree;
use gantry_schema::json::Json;

use gantry_core::managed_fields::{FieldSet, ListItemKey};

/// What managedFields record of an item of a list: its key, and its fields.
pub(super) type ItemRecord<'f> = (&'f ListItemKey, &'f FieldSet);

/// The record of an item of the manifest. The server defaults a key that the manifest leaves out (`protocol: TCP` of a
/// port), so an item without it has a record that is of no other item.
pub(super) fn record_of<'f>(
    item: &Json<'_>,
    records: &[ItemRecord<'f>],
    desired: &[Json<'_>],
) -> Option<ItemRecord<'f>> {
    let may_be_of = |key: &ListItemKey| match key {
        ListItemKey::Keys(keys) => {
            keys.iter().all(|(name, value)| item.member(name).is_none_or(|own| own.canonical_text() == *value))
        }
        key => key.identifies(item),
    };
    let is_of_no_other = |key: &ListItemKey| may_be_of(key) && !desired.iter().any(|other| key.identifies(other));
    let find = |fits: &dyn Fn(&ListItemKey) -> bool| records.iter().copied().find(|(key, _)| fits(key));
    find(&|key| key.identifies(item)).or_else(|| find(&is_of_no_other))
}
