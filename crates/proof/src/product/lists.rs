//! Compares list types and their keys, and embedded resources.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Effect, Place, ProductWalk, plain};
use crate::constraints::{Constraints, Part};
use crate::keywords as kw;

impl<'s> ProductWalk<'_, 's> {
    pub(super) fn list_type(
        &mut self,
        source: &Constraints<'s>,
        structure: &'s Value,
        target: &'s Value,
        place: &Place<'s>,
    ) {
        const KEYWORD: &str = "x-kubernetes-list-type";
        let of = |schema: &'s Value| schema.get(KEYWORD).and_then(Value::as_str).unwrap_or("atomic");
        let keys = |schema: &'s Value| kw::names(schema, "x-kubernetes-list-map-keys").collect::<BTreeSet<&str>>();
        let (before, after) = (of(structure), of(target));
        if before != after && !matches!(after, "set" | "map") {
            let note = "changes how server-side apply tracks the ownership of items";
            self.walked.notes.push((place.path.clone(), format!("{KEYWORD}: {before} → {after}: {note}")));
        }
        let (old_keys, new_keys) = (keys(structure), keys(target));
        let is_finer = match (before, after) {
            (_, "set") => before == "set",
            ("map", "map") => old_keys.is_subset(&new_keys),
            (_, "map") => false,
            _ => true,
        };
        if is_finer {
            return;
        }
        let mut constraints = Constraints { null: false, ..source.clone() };
        constraints.fails.push(Part::own(json!({"type": "array", "maxItems": 1})));
        let mut answer = self.solver.solve(&constraints, None, 1);
        if answer.is_nothing() {
            return;
        }
        if before == "map"
            && let Some(list) = self.same_under(source, structure, &old_keys, &new_keys)
        {
            answer.values = vec![list];
        }
        let reason = match before == after {
            true => "x-kubernetes-list-map-keys: a key was removed".to_owned(),
            false => format!("{KEYWORD}: {before} → {after}"),
        };
        let open = answer.open.or_else(|| Some("other lists may have duplicates".to_owned()));
        self.obligation(place, reason, Effect::Refused, plain(answer.values), open);
        if let Some(obligation) = self.walked.obligations.last_mut() {
            obligation.is_of_whole = true;
        }
    }

    /// A list of two items that differ in the old keys but not in the new ones.
    fn same_under(
        &mut self,
        source: &Constraints<'s>,
        structure: &'s Value,
        old: &BTreeSet<&str>,
        new: &BTreeSet<&str>,
    ) -> Option<Value> {
        let item = self.item_constraints(source, structure, false);
        let first = self.solver.solve(&item, None, 1).values.into_iter().next()?;
        let mut same = Map::new();
        let mut required: Vec<&str> = Vec::new();
        for key in new {
            if let Some(value) = first.get(*key) {
                same.insert((*key).to_owned(), json!({"enum": [value]}));
                required.push(key);
            }
        }
        old.difference(new).find_map(|key| {
            let mut second = item.clone();
            second.holds.push(Part::own(json!({"required": required, "properties": same})));
            let taken = first.get(*key)?;
            second.fails.push(Part::own(json!({"required": [key], "properties": {*key: {"enum": [taken]}}})));
            let second = self.solver.solve(&second, None, 1).values.into_iter().next()?;
            Some(json!([first, second]))
        })
    }

    pub(super) fn embedding(
        &mut self,
        source: &Constraints<'s>,
        structure: &'s Value,
        target: &'s Value,
        place: &Place<'s>,
    ) {
        match (kw::embedded(structure), kw::embedded(target)) {
            (false, true) => {
                for name in ["apiVersion", "kind"] {
                    let refused = Part::own(json!({"type": "object", "required": [name]}));
                    let reason = || "x-kubernetes-embedded-resource: added".to_owned();
                    self.prove_accepted(source, refused, place, reason);
                }
                // The other constraints on the metadata are not checked.
                self.obligation(
                    place,
                    "x-kubernetes-embedded-resource: added".to_owned(),
                    Effect::Refused,
                    Vec::new(),
                    Some("the metadata of embedded resources is not compared".to_owned()),
                );
            }
            (true, false) if !kw::preserves(target) => {
                let answer = self.solver.solve(source, None, 1);
                if !answer.is_nothing() {
                    let reason = "x-kubernetes-embedded-resource: removed".to_owned();
                    let open = Some("not every embedded resource was tried".to_owned());
                    self.obligation(place, reason, Effect::Pruned, plain(answer.values), open);
                }
            }
            _ => {}
        }
    }
}
