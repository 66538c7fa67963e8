//! Parts of a value: fields against fields and entries, items, what is dropped and what is filled in.

use std::rc::Rc;

use serde_json::{Value, json};

use super::text::shown;
use super::{Effect, Place, ProductWalk, Step, ValuePath, plain};
use crate::constraints::{Constraints, Part};
use crate::keywords::{self as kw, ANY, EMPTY, TEXT};
use crate::solve::is_meta;

/// So many schemas that a field is looked up in cost a step.
const BESIDE: u64 = 8;

impl<'s> ProductWalk<'_, 's> {
    pub(super) fn below(
        &self,
        (around, target): (&Rc<Constraints<'s>>, &'s Value),
        place: &Place<'s>,
        step: Step,
        suffix: &str,
    ) -> Place<'s> {
        // What becomes of values that the source leaves open is said of the topmost node that it leaves open.
        let suffix = if is_open(around) { "" } else { suffix };
        Place {
            path: format!("{}{suffix}", place.path),
            is_item: matches!(step, Step::Item),
            value_path: Some(Rc::new(ValuePath {
                constraints: Rc::clone(around),
                target,
                step,
                above: place.value_path.clone(),
            })),
            source_keeps: false,
            target_keeps: false,
            is_root: false,
        }
    }

    /// What is known of the field `name`: `beside` are the schemas of the object but for its structure.
    fn kid_facts(&self, beside: &[Part<'s>], own: &'s Value, name: &str) -> Constraints<'s> {
        self.solver.spend(beside.len() as u64 / BESIDE);
        let others = beside.iter().filter_map(|part| part.property(name));
        let holds = [Part::Ref(own)].into_iter().chain(others).collect();
        Constraints { holds, null: kw::flag(own, "nullable"), ..Constraints::default() }
    }

    pub(super) fn fields(
        &mut self,
        source: &Constraints<'s>,
        structure: &'s Value,
        target: &'s Value,
        place: &Place<'s>,
    ) {
        let around = Rc::new(source.clone());
        let beside: Vec<Part> = source.all_holds().into_iter().skip(1).collect();
        let (source_keeps, target_keeps) = place.keep_unknown(structure, target);
        let is_resource = |schema: &Value| place.is_root || kw::embedded(schema);
        let given = |name: &str| -> &'static Value { if name == "metadata" { &METADATA } else { &TEXT } };
        // Metadata is no business of the schema, which can only ask something of the name.
        let is_metadata = |name: &str| name == "metadata" && is_resource(structure) && is_resource(target);
        for (name, own) in kw::properties(structure).into_iter().flatten() {
            let other = kw::property(target, name);
            // Both sides keep unknown fields in metadata alone, and there alike.
            if other.is_some_and(|other| kw::same(own, other)) {
                continue;
            }
            let kid = self.kid_facts(&beside, own, name);
            let mut at = self.below((&around, target), place, Step::Field(name.clone()), &format!(".{name}"));
            (at.source_keeps, at.target_keeps) = (is_metadata(name), is_metadata(name));
            match (other, kw::additional(target)) {
                (Some(other), _) => self.differing(&kid, own, other, &at),
                (None, Some(other)) => self.node(&kid, other, &at),
                _ if is_resource(target) && is_meta(name) => {}
                // Kept, but nothing inside of it is filled in any more.
                _ if target_keeps => self.node(&kid, &ANY, &at),
                _ => self.removed(&kid, &at),
            }
            self.default(source, Some(own), other, name, target, place);
        }
        for (name, other) in kw::properties(target).into_iter().flatten() {
            if kw::property(structure, name).is_some() {
                continue;
            }
            let mut at = self.below((&around, target), place, Step::Field(name.clone()), &format!(".{name}"));
            (at.source_keeps, at.target_keeps) = (is_metadata(name), is_metadata(name));
            let own = match kw::additional(structure) {
                Some(own) => Some(own),
                None if is_resource(structure) && is_meta(name) => Some(given(name)),
                None => source_keeps.then_some(&*ANY),
            };
            self.walked.changed.push((at.path.clone(), "added".to_owned()));
            if let Some(own) = own {
                let kid = self.kid_facts(&beside, own, name);
                self.node(&kid, other, &at);
            }
            self.default(source, None, Some(other), name, target, place);
        }
        let key = fresh_key(structure, target);
        // Values that the source does not describe are no node of their own.
        let is_described = structure.get("additionalProperties").is_some_and(Value::is_object);
        let suffix = if is_described { ".additionalProperties" } else { "" };
        let at = self.below((&around, target), place, Step::Entry(key.clone()), suffix);
        match (kw::additional(structure), kw::additional(target)) {
            (Some(own), Some(other)) => {
                let kid = self.kid_facts(&beside, own, &key);
                self.node(&kid, other, &at);
            }
            (Some(own), None) => {
                let kid = self.kid_facts(&beside, own, &key);
                match target_keeps {
                    true => self.node(&kid, &ANY, &at),
                    false => self.removed(&kid, &at),
                }
            }
            (None, Some(other)) if source_keeps => {
                let kid = self.kid_facts(&beside, &ANY, &key);
                self.node(&kid, other, &at);
            }
            _ => {}
        }
    }

    /// What becomes of the fields that neither side describes.
    pub(super) fn unknown_fields(
        &mut self,
        source: &Constraints<'s>,
        structure: &'s Value,
        target: &'s Value,
        place: &Place<'s>,
    ) {
        let (source_keeps, target_keeps) = place.keep_unknown(structure, target);
        let is_open = kw::additional(structure).is_none() && kw::additional(target).is_none();
        if is_open && source_keeps && !target_keeps {
            let key = fresh_key(structure, target);
            let beside: Vec<Part> = source.all_holds().into_iter().skip(1).collect();
            let kid = self.kid_facts(&beside, &ANY, &key);
            let around = Rc::new(source.clone());
            let at = self.below((&around, target), place, Step::Entry(key), ".additionalProperties");
            let at = Place { path: place.path.clone(), ..at };
            self.dropped(&kid, &at, "unknown fields are no longer kept");
        }
        if target.get("additionalProperties") == Some(&Value::Bool(false)) {
            self.obligation(place, "additionalProperties: false".to_owned(), Effect::Refused, Vec::new(), {
                Some("no structural schema forbids fields".to_owned())
            });
        }
    }

    /// A field that the target no longer describes.
    fn removed(&mut self, kid: &Constraints<'s>, at: &Place<'s>) {
        self.walked.changed.push((at.path.clone(), "removed".to_owned()));
        self.dropped(kid, at, "removed");
    }

    /// A field that the target does not know.
    fn dropped(&mut self, kid: &Constraints<'s>, at: &Place<'s>, what: &str) {
        let answer = self.solver.solve(kid, None, 2);
        if !answer.is_nothing() {
            self.obligation(at, what.to_owned(), Effect::Pruned, plain(answer.values), answer.open);
        }
    }

    /// What is filled in where the field `name` is missing.
    fn default(
        &mut self,
        source: &Constraints<'s>,
        own: Option<&'s Value>,
        other: Option<&'s Value>,
        name: &str,
        target: &'s Value,
        place: &Place<'s>,
    ) {
        let (before, after) = (own.and_then(kw::default_of), other.and_then(kw::default_of));
        let reason = match (before, after) {
            (None, None) => return,
            (Some(before), Some(after)) if kw::same_value(before, after) => return,
            (None, Some(after)) => format!("default: {} added", shown(after)),
            (Some(before), None) => format!("default: {} removed", shown(before)),
            (Some(before), Some(after)) => format!("default: {} → {}", shown(before), shown(after)),
        };
        let mut constraints = Constraints { null: false, ..source.clone() };
        if before.is_none() {
            constraints.fails.push(Part::own(json!({"type": "object", "required": [name]})));
        }
        let mut answer = self.solver.solve(&constraints, None, 1);
        if answer.is_nothing() {
            return;
        }
        // Where the target accepts no such object at all, another change breaks the objects.
        constraints.holds.push(Part::own(kw::types_of_fields(target)));
        if self.solver.solve(&constraints, None, 1).is_nothing() {
            return;
        }
        constraints.holds.pop();
        // What the target refuses for something else shows nothing: best is a value that it takes.
        constraints.holds.push(Part::own(kw::without_structure(target)));
        answer.values.splice(0..0, self.solver.solve(&constraints, None, 1).values);
        for value in &mut answer.values {
            value.as_object_mut().map(|map| map.shift_remove(name));
        }
        let path = if is_open(source) { place.path.clone() } else { format!("{}.{name}", place.path) };
        let at = Place { path, ..place.clone() };
        self.obligation(&at, reason, Effect::Defaulted, plain(answer.values), answer.open);
    }

    pub(super) fn item_facts(&self, source: &Constraints<'s>, structure: &'s Value, keeps: bool) -> Constraints<'s> {
        let own = kw::get(structure, "items").unwrap_or(if keeps { &ANY } else { &EMPTY });
        let others = source.all_holds().into_iter().skip(1).filter_map(|part| part.keyword("items"));
        let null = kw::flag(own, "nullable") || !kw::has_type(own) && kw::default_of(own).is_none();
        Constraints { holds: [Part::Ref(own)].into_iter().chain(others).collect(), null, ..Constraints::default() }
    }

    pub(super) fn items(
        &mut self,
        source: &Constraints<'s>,
        structure: &'s Value,
        target: &'s Value,
        place: &Place<'s>,
    ) {
        let (source_keeps, target_keeps) = place.keep_unknown(structure, target);
        if kw::get(structure, "items").is_none() && kw::get(target, "items").is_none() && source_keeps == target_keeps {
            return;
        }
        let other = kw::get(target, "items").unwrap_or(if target_keeps { &ANY } else { &EMPTY });
        let item = self.item_facts(source, structure, source_keeps);
        // Neither side describes the items, nor items in items, and so on: the first of these decides for all.
        let is_undescribed = |schema: &Value| [&*ANY, &*EMPTY].into_iter().any(|known| std::ptr::eq(known, schema));
        if is_undescribed(structure) && is_undescribed(target) && item.holds.len() == 1 {
            return;
        }
        let suffix = if kw::get(structure, "items").is_some() { ".items" } else { "" };
        let at = Place {
            source_keeps,
            target_keeps,
            ..self.below((&Rc::new(source.clone()), target), place, Step::Item, suffix)
        };
        // A null that the source keeps is replaced by the default where the target has one and is not nullable.
        if let Some(default) = kw::default_of(other).filter(|_| item.null && !kw::flag(other, "nullable")) {
            let reason = format!("default: {} for an item that is null", shown(default));
            self.obligation(&at, reason, Effect::Pruned, plain(vec![Value::Null]), None);
        }
        self.node(&item, other, &at);
    }
}

/// Whether nothing is known of the structure of a value.
fn is_open(constraints: &Constraints<'_>) -> bool {
    matches!(constraints.holds.first(), Some(Part::Ref(structure)) if kw::is_unknown(structure))
}

static METADATA: std::sync::LazyLock<Value> =
    std::sync::LazyLock::new(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));

/// A key that neither side describes.
fn fresh_key(a: &Value, b: &Value) -> String {
    let is_known = |name: &str| kw::property(a, name).is_some() || kw::property(b, name).is_some();
    let mut names = std::iter::once("x".to_owned()).chain((1..).map(|n| format!("x{n}")));
    names.find(|name| !is_known(name)).unwrap_or_default()
}
