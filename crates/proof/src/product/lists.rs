//! Compares list types and their keys, and embedded resources.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{
    ChangeOrigin, ComparedNode, ExpectedEffect, PRESERVE, ProductWalk, WalkPosition, changed_keywords,
    to_counterexamples,
};
use crate::cel::{self, Implied, RuleSet};
use crate::constraints::{SharedSchema, ValueConstraints};
use crate::keywords as kw;
use crate::text::shown_value;

impl<'s> ProductWalk<'_, 's> {
    pub(super) fn list_type(&mut self, node: ComparedNode<'_, 's>, differing: &[&str]) {
        let ComparedNode { source, structure, target, place } = node;
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
            return self.filled_items(node);
        }
        let mut constraints = ValueConstraints { null: false, ..source.clone() };
        constraints.fails.push(SharedSchema::owned(json!({"type": "array", "maxItems": 1})));
        let mut answer = self.solver.solve(&constraints, None, 1);
        if answer.is_nothing() || self.is_free_of_duplicates(node, after, &new_keys) {
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
        let known = self.walked.obligations.len();
        self.obligation(place, reason, ExpectedEffect::Refused, to_counterexamples(answer.values), open);
        self.attribute(known, place, changed_keywords(differing, &[KEYWORD, "x-kubernetes-list-map-keys"]));
    }

    /// Whether the source's rules of the list already refuse items that are equal, or whose keys are equal.
    fn is_free_of_duplicates(&self, node: ComparedNode<'_, 's>, list_type: &str, keys: &BTreeSet<&str>) -> bool {
        let ComparedNode { structure, target, place, .. } = node;
        let rules = kw::list(structure, "x-kubernetes-validations");
        let other = kw::get(target, "items");
        let Some(item) = kw::get(structure, "items").filter(|_| !rules.is_empty()) else { return false };
        let equal = match list_type {
            "set" if kw::has_type(item) && !kw::flag(item, "nullable") => Some("a == b".to_owned()),
            "map" => {
                let key = |key: &&str| {
                    let own = kw::property(item, key)?;
                    let is_same = cel::same_default(Some(own), other.and_then(|other| kw::property(other, key)));
                    let is_set = is_same && (kw::is_to_be_written(item, key) || kw::default_of(own).is_some());
                    let name = gantry_k8s_cel::escape(key).filter(|_| is_set && !kw::flag(own, "nullable"))?;
                    Some(format!("a.{name} == b.{name}"))
                };
                keys.iter().map(key).collect::<Option<Vec<String>>>().map(|equal| equal.join(" && "))
            }
            _ => None,
        };
        let Some(equal) = equal.filter(|equal| !equal.is_empty()) else { return false };
        let asked = [json!({"rule": format!("self.all(a, self.exists_one(b, {equal}))")})];
        let live = RuleSet { schema: structure, rules, is_root: false, keeps: place.source_keeps };
        let desired = RuleSet { rules: &asked, ..live };
        self.solver.with_means(|means| cel::implied(live, desired, means)) == Implied::Yes
    }

    /// Adds obligations for items that differ under live but are duplicates when desired's defaults are filled in: one
    /// that lacks a field, and one that has the new default there.
    fn filled_items(&mut self, node: ComparedNode<'_, 's>) {
        let ComparedNode { source, structure, target, place } = node;
        let (Some(own), Some(other)) = (kw::get(structure, "items"), kw::get(target, "items")) else { return };
        let is_map = match target.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("map") => true,
            Some("set") => false,
            _ => return,
        };
        let keys: Vec<&str> = kw::names(target, "x-kubernetes-list-map-keys").collect();
        if !is_map {
            let mut found = Vec::new();
            deep_defaults(own, other, &format!("{}.items", place.path), &mut found);
            for path in found {
                let reason = "default: added or changed: items become duplicates".to_owned();
                let open = Some("a default inside items of a set may make them equal".to_owned());
                let at = WalkPosition { path, ..place.clone() };
                let known = self.walked.obligations.len();
                self.obligation(&at, reason, ExpectedEffect::Refused, Vec::new(), open);
                self.attribute(known, &at, ChangeOrigin::Keywords(vec!["default".to_owned()]));
            }
        }
        let default = |schema: &'s Value, name: &str| kw::property(schema, name).and_then(kw::default_of);
        for (name, _) in kw::properties(other).into_iter().flatten() {
            let (before, after) = (default(own, name), default(other, name));
            let Some(after) = after.filter(|after| !before.is_some_and(|before| kw::same_value(before, after))) else {
                continue;
            };
            if is_map && !keys.contains(&name.as_str()) {
                continue;
            }
            let Some((values, open)) = self.alike_when_filled(source, structure, (name, after), &keys) else {
                continue;
            };
            let reason = match before {
                Some(before) => {
                    format!("default: {} → {}: items become duplicates", shown_value(before), shown_value(after))
                }
                None => format!("default: {} added: items become duplicates", shown_value(after)),
            };
            let at = WalkPosition { path: format!("{}.items.{name}", place.path), ..place.clone() };
            let known = self.walked.obligations.len();
            self.obligation(&at, reason, ExpectedEffect::Refused, to_counterexamples(values), open);
            self.attribute(known, &at, ChangeOrigin::Keywords(vec!["default".to_owned()]));
        }
    }

    /// Lists of two items of which one lacks the field and the other has this value there. `None` if there are none.
    fn alike_when_filled(
        &mut self,
        source: &ValueConstraints<'s>,
        structure: &'s Value,
        (name, value): (&str, &Value),
        keys: &[&str],
    ) -> Option<(Vec<Value>, Option<String>)> {
        let open = || Some("other items may become duplicates".to_owned());
        let mut long = ValueConstraints { null: false, ..source.clone() };
        long.fails.push(SharedSchema::owned(json!({"type": "array", "maxItems": 1})));
        if self.solver.solve(&long, None, 1).is_nothing() {
            return None;
        }
        let item = self.item_constraints(source, structure, false);
        let item = ValueConstraints { null: false, ..item };
        let mut without = item.clone();
        // A field that live fills in is never missing to the solver.
        if kw::get(structure, "items").and_then(|item| kw::property(item, name)).and_then(kw::default_of).is_none() {
            without.fails.push(SharedSchema::owned(json!({"type": "object", "required": [name]})));
        }
        let answer = self.solver.solve(&without, None, 1);
        if answer.is_nothing() {
            return None;
        }
        let Some(mut first) = answer.values.into_iter().next() else {
            return Some((Vec::new(), answer.open.or_else(open)));
        };
        first.as_object_mut().map(|map| map.shift_remove(name));
        let mut with = item.clone();
        with.holds.push(SharedSchema::owned(json!({"required": [name], "properties": {name: {"enum": [value]}}})));
        let answer = self.solver.solve(&with, None, 1);
        if answer.is_nothing() {
            return None;
        }
        // Everything else, or for a map its other keys, must be the same.
        let mut same = Map::new();
        for (field, same_value) in first.as_object().into_iter().flatten() {
            if field != name && (keys.is_empty() || keys.contains(&field.as_str())) {
                same.insert(field.clone(), json!({"enum": [same_value]}));
            }
        }
        let required: Vec<&String> = same.keys().collect();
        with.holds.push(SharedSchema::owned(json!({"required": required, "properties": same})));
        if keys.is_empty() {
            with.holds.push(SharedSchema::owned(json!({"maxProperties": same.len() + 1})));
        }
        let second = self.solver.solve(&with, None, 1).values.into_iter().next();
        Some((second.into_iter().map(|second| json!([first, second])).collect(), open()))
    }

    /// A list of two items that differ in the old keys but not in the new ones.
    fn same_under(
        &mut self,
        source: &ValueConstraints<'s>,
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
            second.holds.push(SharedSchema::owned(json!({"required": required, "properties": same})));
            // A key that is not written has its default.
            let default =
                || kw::get(structure, "items").and_then(|item| kw::property(item, key)).and_then(kw::default_of);
            let taken = first.get(*key).or_else(default)?;
            second.fails.push(SharedSchema::owned(json!({"required": [key], "properties": {*key: {"enum": [taken]}}})));
            let second = self.solver.solve(&second, None, 1).values.into_iter().next()?;
            Some(json!([first, second]))
        })
    }

    pub(super) fn compare_embedding(&mut self, node: ComparedNode<'_, 's>, differing: &[&str]) {
        let ComparedNode { source, structure, target, place } = node;
        let known = self.walked.obligations.len();
        match (kw::embedded(structure), kw::embedded(target)) {
            (false, true) => {
                for name in ["apiVersion", "kind"] {
                    let refused = SharedSchema::owned(json!({"type": "object", "required": [name]}));
                    let reason = || "x-kubernetes-embedded-resource: added".to_owned();
                    self.prove_accepted(source, refused, place, reason);
                }
                // The other constraints on the metadata are not checked.
                self.obligation(
                    place,
                    "x-kubernetes-embedded-resource: added".to_owned(),
                    ExpectedEffect::Refused,
                    Vec::new(),
                    Some("the metadata of embedded resources is not compared".to_owned()),
                );
            }
            (true, false) if !kw::preserves(target) => {
                let answer = self.solver.solve(source, None, 1);
                if !answer.is_nothing() {
                    let reason = "x-kubernetes-embedded-resource: removed".to_owned();
                    let open = Some("not every embedded resource was tried".to_owned());
                    self.obligation(place, reason, ExpectedEffect::Pruned, to_counterexamples(answer.values), open);
                }
            }
            _ => {}
        }
        self.attribute(known, place, changed_keywords(differing, &["x-kubernetes-embedded-resource", PRESERVE]));
    }
}

/// The paths of the fields below those of an object whose default is added or changed.
fn deep_defaults(own: &Value, other: &Value, path: &str, found: &mut Vec<String>) {
    for (name, field) in kw::properties(other).into_iter().flatten() {
        let Some(known) = kw::property(own, name) else { continue };
        for (below, after) in kw::properties(field).into_iter().flatten() {
            let before = kw::property(known, below).and_then(kw::default_of);
            match kw::default_of(after) {
                Some(after) if !before.is_some_and(|before| kw::same_value(before, after)) => {
                    found.push(format!("{path}.{name}.{below}"));
                }
                _ => {}
            }
        }
        deep_defaults(known, field, &format!("{path}.{name}"), found);
    }
}
