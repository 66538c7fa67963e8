//! What an apply leaves in an object beside the manifest, where the server may refuse both together: server-side apply
//! merges lists by item and maps by field, so a list can get two ports of one name, and a volume two sources.

use gantry_schema::{Tree, ValueView};

use super::lost::{can_change, items};
use super::schema::{MergeSchema, MergeShape};
use crate::managed_fields::{ListItemKey, MergePathStep};

/// The parts of an object after an apply that its manifest does not set, but that stand in a list or a map whose other
/// parts it changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// Items of lists, by path.
    pub items: Vec<Vec<MergePathStep>>,
    /// Fields of maps, by path.
    pub fields: Vec<Vec<MergePathStep>>,
    /// Whether the live list has several items with the same keys as an item of the manifest.
    pub has_repeated: bool,
}

impl Beside {
    /// What `after`, the object `live` with `desired` applied to it, has beside `desired`.
    pub fn new<V: Tree, S: Tree>(desired: &V, live: &V, after: &V, schema: MergeSchema<'_, S>) -> Self {
        let mut found = Beside::default();
        desired.all_members(&mut |key, value| {
            let is_spec = can_change(key) && key != "metadata";
            let parts = is_spec.then(|| Some((live.member(key)?, after.member(key)?, schema.member(key)?)));
            if let Some((live, after, schema)) = parts.flatten() {
                found.walk([value, live, after], schema, &mut vec![MergePathStep::Field(key.to_owned())]);
            }
            true
        });
        found
    }

    /// Whether the server may refuse the object for it.
    pub fn is_any(&self) -> bool {
        !self.items.is_empty() || !self.fields.is_empty() || self.has_repeated
    }

    fn walk<V: Tree, S: Tree>(
        &mut self,
        [desired, live, after]: [&V; 3],
        schema: MergeSchema<'_, S>,
        path: &mut Vec<MergePathStep>,
    ) {
        match schema.shape(desired) {
            MergeShape::Map => {
                // Defaults of the server stand in every `spec`.
                if path.len() > 1 {
                    self.fields_of([desired, live, after], path);
                }
                desired.all_members(&mut |key, value| {
                    if let (Some(live), Some(after), Some(schema)) =
                        (live.member(key), after.member(key), schema.member(key))
                    {
                        path.push(MergePathStep::Field(key.to_owned()));
                        self.walk([value, live, after], schema, path);
                        path.pop();
                    }
                    true
                });
            }
            MergeShape::Keyed(keyed) => {
                let find = |list: &V, key: &ListItemKey| {
                    items(list).iter().position(|item| keyed.key(item).as_ref() == Some(key))
                };
                for item in items(after) {
                    let Some(key) = keyed.key(item) else { continue };
                    let same_key = |live: &&V| keyed.key(*live).as_ref() == Some(&key);
                    let in_desired = find(desired, &key);
                    path.push(MergePathStep::Item(key.clone()));
                    match (in_desired, items(live).iter().find(same_key)) {
                        (None, _) => self.items.push(path.clone()),
                        (Some(_), _) if items(live).iter().filter(same_key).nth(1).is_some() => {
                            self.has_repeated = true
                        }
                        (Some(at), Some(live)) => self.walk([&items(desired)[at], live, item], keyed.items, path),
                        (Some(_), None) => {}
                    }
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// Fields beside one that the manifest adds or changes, of which at least one is a map: as `emptyDir` beside
    /// `configMap`, `value` beside `valueFrom`, and `rollingUpdate` beside another `type`.
    fn fields_of<V: Tree>(&mut self, [desired, live, after]: [&V; 3], path: &[MergePathStep]) {
        let is_full_map = |value: &V| matches!(value.view(), ValueView::Map(false));
        let (mut is_changed, mut adds_map) = (false, false);
        desired.all_members(&mut |key, value| {
            match live.member(key) {
                None => (is_changed, adds_map) = (true, adds_map || is_full_map(value)),
                Some(live) if !is_full_map(live) => is_changed |= !live.same_value(value),
                Some(_) => {}
            }
            true
        });
        if !is_changed {
            return;
        }
        after.all_members(&mut |key, value| {
            let is_part = !matches!(value.view(), ValueView::List(_) | ValueView::Null);
            if desired.member(key).is_none() && (is_full_map(value) || adds_map && is_part) {
                self.fields.push(path.iter().cloned().chain([MergePathStep::Field(key.to_owned())]).collect());
            }
            true
        });
    }
}
