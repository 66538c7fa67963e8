//! The fields that a field manager loses when a manifest is applied to a live object: the fields that it owns according
//! to `metadata.managedFields` and whose values the manifest changes.

use gantry_schema::{Tree, ValueView};

use super::schema::{MergeSchema, MergeShape};
use crate::managed_fields::{FieldSet, ListItemKey, MergePathStep};

/// The fields that a manager owns.
#[derive(Clone, Copy)]
pub enum Owned<'r> {
    /// Every field that the live object has: without managed fields, it belongs completely to its previous writer.
    AllLive,
    /// The fields of one or more managers.
    Fields(&'r FieldSet),
}

impl Owned<'_> {
    fn field(self, key: &str) -> Option<Self> {
        match self {
            Owned::AllLive => Some(Owned::AllLive),
            Owned::Fields(fields) => fields.field(key).map(Owned::Fields),
        }
    }

    fn item(self, item: &ListItemKey) -> Option<Self> {
        match self {
            Owned::AllLive => Some(Owned::AllLive),
            Owned::Fields(fields) => fields.item(item).map(Owned::Fields),
        }
    }

    /// Whether the node itself is owned, not only nodes below it.
    fn owns_itself(self) -> bool {
        match self {
            Owned::AllLive => true,
            Owned::Fields(fields) => fields.has_itself(),
        }
    }
}

/// The fields of `owned` that change when the object `desired` is applied to `live`.
pub fn lost_fields<V: Tree, S: Tree>(
    desired: &V,
    live: &V,
    owned: Owned<'_>,
    schema: MergeSchema<'_, S>,
) -> Vec<Vec<MergePathStep>> {
    let mut found = Vec::new();
    desired.all_members(&mut |key, value| {
        let below = Some(owned).filter(|_| can_change(key)).and_then(|owned| owned.field(key));
        if let (Some(owned), Some(schema)) = (below, schema.member(key)) {
            let mut path = vec![MergePathStep::Field(key.to_owned())];
            walk(value, live.member(key), owned, schema, &mut path, &mut found);
        }
        true
    });
    found
}

/// Like [`lost`], for a value inside an object: no key is excluded.
pub fn lost_fields_below<V: Tree, S: Tree>(
    desired: &V,
    live: &V,
    owned: Owned<'_>,
    schema: MergeSchema<'_, S>,
) -> Vec<Vec<MergePathStep>> {
    let mut found = Vec::new();
    walk(desired, Some(live), owned, schema, &mut Vec::new(), &mut found);
    found
}

/// Whether `desired` may change an owned field; `false` means that nothing is lost under any schema.
pub fn overlaps<V: Tree>(desired: &V, live: &V, owned: Owned<'_>) -> bool {
    fn loses_below<V: Tree>(desired: &V, live: Option<&V>, owned: Owned<'_>) -> bool {
        let is_map = |value: &V| matches!(value.view(), ValueView::Map(_));
        match (live, owned) {
            (None, Owned::AllLive) => false,
            (Some(live), Owned::Fields(fields)) if fields.has_below() && is_map(desired) && is_map(live) => {
                any_member(desired, |key, value| {
                    owned.field(key).is_some_and(|owned| loses_below(value, live.member(key), owned))
                })
            }
            _ => !live.is_some_and(|live| live.same_value(desired)),
        }
    }
    any_member(desired, |key, value| {
        can_change(key) && owned.field(key).is_some_and(|owned| loses_below(value, live.member(key), owned))
    })
}

fn any_member<V: Tree>(object: &V, mut holds: impl FnMut(&str, &V) -> bool) -> bool {
    !object.all_members(&mut |key, value| !holds(key, value))
}

/// Whether a `fieldsV1` has a field that an apply can change.
pub fn is_at_stake(fields: &FieldSet) -> bool {
    fields.fields().any(|(name, _)| can_change(name))
}

/// Whether an apply can change this top-level field. `status` is written through its own subresource.
pub(super) fn can_change(key: &str) -> bool {
    !matches!(key, "apiVersion" | "kind" | "status")
}

fn walk<V: Tree, S: Tree>(
    desired: &V,
    live: Option<&V>,
    owned: Owned<'_>,
    schema: MergeSchema<'_, S>,
    path: &mut Vec<MergePathStep>,
    found: &mut Vec<Vec<MergePathStep>>,
) {
    if live.is_none() && matches!(owned, Owned::AllLive) {
        return;
    }
    let is_map = |value: &V| matches!(value.view(), ValueView::Map(_));
    let is_same = || live.is_some_and(|live| live.same_value(desired));
    match schema.shape(desired) {
        MergeShape::Set => {
            let live = live.map_or(&[][..], items);
            for item in items(desired) {
                let is_repeated = live.iter().filter(|live| live.same_value(item)).nth(1).is_some();
                let item = ListItemKey::Value(item.canonical_text());
                if is_repeated && owned.item(&item).is_some() {
                    let mut path = path.clone();
                    path.push(MergePathStep::Item(item));
                    found.push(path);
                }
            }
        }
        MergeShape::Map if live.is_none_or(is_map) => {
            if live.is_none() && owned.owns_itself() {
                found.push(path.clone());
            }
            desired.all_members(&mut |key, value| {
                if let (Some(owned), Some(schema)) = (owned.field(key), schema.member(key)) {
                    path.push(MergePathStep::Field(key.to_owned()));
                    walk(value, live.and_then(|live| live.member(key)), owned, schema, path, found);
                    path.pop();
                }
                true
            });
        }
        MergeShape::Keyed(keyed) => {
            let live = live.map_or(&[][..], items);
            for item in items(desired) {
                let Some(key) = keyed.key(item) else { continue };
                let Some(owned) = owned.item(&key) else { continue };
                let mut live = live.iter().filter(|live| keyed.key(*live).as_ref() == Some(&key));
                let (first, is_repeated) = (live.next(), live.next().is_some());
                path.push(MergePathStep::Item(key));
                match is_repeated {
                    // Items with the same keys are one field together. The apply replaces all of them by the one of the
                    // manifest, even if it equals one of them.
                    true if owned.owns_itself() => found.push(path.clone()),
                    true => walk(item, None, owned, keyed.items, path, found),
                    false => walk(item, first, owned, keyed.items, path, found),
                }
                path.pop();
            }
        }
        // `null` for a map or a list leaves the fields in it alone.
        MergeShape::Leaf
            if matches!(desired.view(), ValueView::Null) && live.is_some_and(|live| schema.merges(live)) => {}
        // If an atomic value was merged before, the server treats its recorded parts as the whole value.
        MergeShape::Atomic if !is_same() => found.push(path.clone()),
        MergeShape::Leaf | MergeShape::Map if !is_same() && owned.owns_itself() => found.push(path.clone()),
        _ => {}
    }
}

pub(super) fn items<V: Tree>(list: &V) -> &[V] {
    match list.view() {
        ValueView::List(items) => items,
        _ => &[],
    }
}

/// The path of a field in the API server's notation for conflicts: `.spec.containers[name="a"].image`.
pub fn path_text(path: &[MergePathStep]) -> String {
    path.iter().map(MergePathStep::to_string).collect()
}

#[cfg(test)]
mod tests {
    use gantry_schema::json::Json;

    use super::super::schema::OBJECT_META;
    use super::*;

    /// The fields of `live` that the manager of `owned` loses.
    fn lost_of(schema: &str, live: &str, desired: &str, owned: &str) -> Vec<String> {
        let [schema, live, desired, owned, meta] =
            [schema, live, desired, owned, OBJECT_META].map(|text| Json::parse(text).unwrap());
        let owned = FieldSet::parse(&owned);
        let found = lost_fields(&desired, &live, Owned::Fields(&owned), MergeSchema::of_object(&schema, None, &meta));
        assert!(found.is_empty() || overlaps(&desired, &live, Owned::Fields(&owned)), "{found:?}");
        found.iter().map(|path| path_text(path)).collect()
    }

    #[test]
    fn a_list_with_keys_is_lost_by_field_and_any_other_list_as_a_whole() {
        let keyed = r#"{"properties": {"l": {"type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["n", "z"],
            "items": {"properties": {"n": {}, "z": {"default": "x"}, "v": {}}}}}}"#;
        let live = r#"{"l": [{"n": 1, "z": "x", "v": 1}, {"n": 2, "z": "y", "v": 1}]}"#;
        let desired = r#"{"l": [{"n": 2, "z": "y", "v": 1}, {"n": 1, "v": 2}, {"n": 3, "v": 1}]}"#;
        let owned =
            r#"{"f:l": {"k:{\"n\":1,\"z\":\"x\"}": {".": {}, "f:v": {}}, "k:{\"n\":2,\"z\":\"y\"}": {"f:v": {}}}}"#;
        assert_eq!(lost_of(keyed, live, desired, owned), [r#".l[n=1,z="x"].v"#]);
        assert_eq!(lost_of(r#"{"properties": {"l": {"type": "array"}}}"#, live, desired, r#"{"f:l": {}}"#), [".l"]);
        assert!(lost_of(keyed, live, live, owned).is_empty());
    }

    #[test]
    fn a_field_without_an_owner_or_a_change_is_not_lost() {
        let any = r#"{"type": "object"}"#;
        let live = r#"{"spec": {"a": 1, "b": {"c": 1}}, "status": {"x": 1}}"#;
        assert!(lost_of(any, live, r#"{"spec": {"a": 1.0}}"#, r#"{"f:spec": {"f:a": {}}}"#).is_empty());
        assert!(lost_of(any, live, r#"{"spec": {"b": {"c": 2}}}"#, r#"{"f:spec": {"f:a": {}}}"#).is_empty());
        assert!(lost_of(any, live, r#"{"status": {"x": 2}}"#, r#"{"f:status": {"f:x": {}}}"#).is_empty());
        assert_eq!(
            lost_of(any, live, r#"{"spec": {"b": {"c": 2}}}"#, r#"{"f:spec": {"f:b": {"f:c": {}}}}"#),
            [".spec.b.c"]
        );
    }

    #[test]
    fn owner_references_are_keyed_by_uid_for_every_crd() {
        let live = r#"{"metadata": {"ownerReferences": [{"uid": "u", "name": "a"}]}}"#;
        let desired = r#"{"metadata": {"ownerReferences": [{"uid": "u", "name": "b"}]}}"#;
        let owned = r#"{"f:metadata": {"f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}}}"#;
        let found = lost_of(r#"{"properties": {"metadata": {"type": "object"}}}"#, live, desired, owned);
        assert_eq!(found, [r#".metadata.ownerReferences[uid="u"]"#]);
    }
}
