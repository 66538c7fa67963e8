//! Compares the parts of a value: fields with fields and entries, items, what is dropped and what is defaulted.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{
    ChangeOrigin, Changed, ComparedNode, ExpectedEffect, ProductWalk, ValuePath, ValueStep, WalkPosition,
    to_counterexamples,
};
use crate::constraints::{SharedSchema, ValueConstraints};
use crate::keywords::{self as kw, ANY, EMPTY, TEXT};
use crate::solve::SearchResult;
use crate::text::shown_value;

/// The number of schemas in which a field is looked up in one step.
const LOOKUPS_PER_STEP: u64 = 8;

impl<'s> ProductWalk<'_, 's> {
    pub(super) fn child_position(
        &self,
        (around, target): (&Rc<ValueConstraints<'s>>, &'s Value),
        place: &WalkPosition<'s>,
        step: ValueStep,
        suffix: &str,
    ) -> WalkPosition<'s> {
        // Where the source accepts anything, all findings are reported for the topmost such node.
        let suffix = if is_open(around) { "" } else { suffix };
        WalkPosition {
            path: format!("{}{suffix}", place.path),
            is_item: matches!(step, ValueStep::Item),
            value_path: Some(Rc::new(ValuePath {
                constraints: Rc::clone(around),
                target,
                step,
                above: place.value_path.clone(),
            })),
            source_keeps: false,
            target_keeps: false,
            is_root: false,
            is_below_its_path: suffix.is_empty(),
        }
    }

    /// The constraints on the field `name`. `beside` are the object's schemas apart from its structure.
    fn field_constraints(&self, beside: &[SharedSchema<'s>], own: &'s Value, name: &str) -> ValueConstraints<'s> {
        self.solver.spend(beside.len() as u64 / LOOKUPS_PER_STEP);
        let others = beside.iter().filter_map(|part| part.property(name));
        let holds = [SharedSchema::Ref(own)].into_iter().chain(others).collect();
        ValueConstraints { holds, null: kw::flag(own, "nullable"), ..ValueConstraints::default() }
    }

    pub(super) fn compare_fields(&mut self, node: ComparedNode<'_, 's>) {
        let ComparedNode { source, structure, target, place } = node;
        let around = Rc::new(source.clone());
        let beside: Vec<SharedSchema> = source.all_holds().into_iter().skip(1).collect();
        let (source_keeps, target_keeps) = place.keep_unknown(structure, target);
        let is_resource = |schema: &Value| place.is_root || kw::embedded(schema);
        let given = |name: &str| -> &'static Value { if name == "metadata" { &METADATA } else { &TEXT } };
        // The server validates metadata itself; a schema can constrain only its name.
        let is_metadata = |name: &str| name == "metadata" && is_resource(structure) && is_resource(target);
        let mut defaults = Vec::new();
        for (name, own) in kw::properties(structure).into_iter().flatten() {
            let other = kw::property(target, name);
            // Only metadata keeps unknown fields regardless of its schema, and both sides do so in the same way.
            if other.is_some_and(|other| kw::is_same_node(own, other)) {
                continue;
            }
            let field = self.field_constraints(&beside, own, name);
            let mut at =
                self.child_position((&around, target), place, ValueStep::Field(name.clone()), &format!(".{name}"));
            (at.source_keeps, at.target_keeps) = (is_metadata(name), is_metadata(name));
            match (other, kw::additional(target)) {
                (Some(other), _) => {
                    self.differing(ComparedNode { source: &field, structure: own, target: other, place: &at });
                }
                (None, Some(other)) => self.node(&field, other, &at),
                _ if is_resource(target) && kw::is_meta(name) => {}
                // The field is kept, but nothing inside it is defaulted any more.
                _ if target_keeps => self.node(&field, &ANY, &at),
                _ => self.record_removed(&field, &at),
            }
            defaults.extend(changed_default(name, Some(own), other));
        }
        for (name, other) in kw::properties(target).into_iter().flatten() {
            if kw::property(structure, name).is_some() {
                continue;
            }
            let mut at =
                self.child_position((&around, target), place, ValueStep::Field(name.clone()), &format!(".{name}"));
            (at.source_keeps, at.target_keeps) = (is_metadata(name), is_metadata(name));
            let own = match kw::additional(structure) {
                Some(own) => Some(own),
                None if is_resource(structure) && kw::is_meta(name) => Some(given(name)),
                None => source_keeps.then_some(&*ANY),
            };
            self.record_changed(&at, "added");
            if let Some(own) = own {
                let field = self.field_constraints(&beside, own, name);
                self.node(&field, other, &at);
            }
            defaults.extend(changed_default(name, None, Some(other)));
        }
        self.compare_defaults(source, &defaults, target, place);
        let key = fresh_key(structure, target);
        // Values that the source does not describe have no node of their own.
        let is_described = structure.get("additionalProperties").is_some_and(Value::is_object);
        let suffix = if is_described { ".additionalProperties" } else { "" };
        let at = self.child_position((&around, target), place, ValueStep::Entry(key.clone()), suffix);
        match (kw::additional(structure), kw::additional(target)) {
            (Some(own), Some(other)) => {
                let field = self.field_constraints(&beside, own, &key);
                self.node(&field, other, &at);
            }
            (Some(own), None) => {
                let field = self.field_constraints(&beside, own, &key);
                match target_keeps {
                    true => self.node(&field, &ANY, &at),
                    false => self.record_removed(&field, &at),
                }
            }
            (None, Some(other)) if source_keeps => {
                let field = self.field_constraints(&beside, &ANY, &key);
                self.node(&field, other, &at);
            }
            _ => {}
        }
    }

    /// Compares how fields that neither side describes are treated.
    pub(super) fn unknown_fields(&mut self, node: ComparedNode<'_, 's>) {
        let ComparedNode { source, structure, target, place } = node;
        let (source_keeps, target_keeps) = place.keep_unknown(structure, target);
        let is_open = kw::additional(structure).is_none() && kw::additional(target).is_none();
        if is_open && source_keeps && !target_keeps {
            let key = fresh_key(structure, target);
            let beside: Vec<SharedSchema> = source.all_holds().into_iter().skip(1).collect();
            let field = self.field_constraints(&beside, &ANY, &key);
            let around = Rc::new(source.clone());
            let at = self.child_position((&around, target), place, ValueStep::Entry(key), ".additionalProperties");
            let at = WalkPosition { path: place.path.clone(), ..at };
            self.record_dropped(&field, &at, "unknown fields are no longer kept");
        }
        if target.get("additionalProperties") == Some(&Value::Bool(false)) {
            self.obligation(place, "additionalProperties: false".to_owned(), ExpectedEffect::Refused, Vec::new(), {
                Some("a structural schema cannot forbid fields".to_owned())
            });
        }
    }

    /// A field that the target no longer describes.
    fn record_removed(&mut self, field: &ValueConstraints<'s>, at: &WalkPosition<'s>) {
        self.record_changed(at, "removed");
        self.record_dropped(field, at, "removed");
    }

    /// Records a node that only one side has.
    fn record_changed(&mut self, at: &WalkPosition<'s>, words: &str) {
        self.walked.changed.push(Changed { path: at.path.clone(), words: words.to_owned(), keywords: Vec::new() });
    }

    /// Adds an obligation for values that the target drops.
    fn record_dropped(&mut self, field: &ValueConstraints<'s>, at: &WalkPosition<'s>, what: &str) {
        let answer = self.solver.solve(field, None, 2);
        if !answer.is_nothing() {
            self.obligation(
                at,
                what.to_owned(),
                ExpectedEffect::Pruned,
                to_counterexamples(answer.values),
                answer.open,
            );
        }
    }

    /// Adds an obligation for each field whose default changes.
    fn compare_defaults(
        &mut self,
        source: &ValueConstraints<'s>,
        changes: &[DefaultChange<'s>],
        target: &'s Value,
        place: &WalkPosition<'s>,
    ) {
        // If there are many, one object that lacks all of the fields shows all changes.
        let together = (changes.len() > MAX_SINGLE_DEFAULTS).then(|| self.objects_without(source, changes, target));
        let together = together.filter(|answer| !answer.values.is_empty());
        for change in changes {
            let answer = match &together {
                Some(answer) => answer.clone(),
                None => self.objects_without(source, std::slice::from_ref(change), target),
            };
            if answer.is_nothing() {
                continue;
            }
            let is_below_its_path = is_open(source);
            let path = if is_below_its_path { place.path.clone() } else { format!("{}.{}", place.path, change.name) };
            let at = WalkPosition { path, is_below_its_path, ..place.clone() };
            let known = self.walked.obligations.len();
            let values = to_counterexamples(answer.values);
            self.obligation(&at, change.reason.clone(), ExpectedEffect::Defaulted, values, answer.open);
            self.attribute(known, &at, ChangeOrigin::Keywords(vec!["default".to_owned()]));
        }
    }

    /// Objects that the source accepts without these fields; first those that the target accepts as well.
    fn objects_without(
        &self,
        source: &ValueConstraints<'s>,
        changes: &[DefaultChange<'s>],
        target: &Value,
    ) -> SearchResult {
        let mut constraints = ValueConstraints { null: false, ..source.clone() };
        // A field that the source fills in is never missing to the solver.
        let unfilled = changes.iter().filter(|change| !change.is_filled_before);
        let required: Vec<Value> = unfilled.map(|change| json!({"required": [change.name]})).collect();
        if !required.is_empty() {
            constraints.fails.push(SharedSchema::owned(json!({"type": "object", "anyOf": required})));
        }
        let mut answer = self.solver.solve(&constraints, None, 1);
        if answer.is_nothing() {
            return answer;
        }
        // An object that the target refuses for another reason shows the default only when it is read.
        constraints.holds.push(SharedSchema::owned(kw::without_structure(target)));
        answer.values.splice(0..0, self.solver.solve(&constraints, None, 1).values);
        for map in answer.values.iter_mut().filter_map(Value::as_object_mut) {
            changes.iter().for_each(|change| drop(map.shift_remove(change.name)));
        }
        answer
    }

    pub(super) fn item_constraints(
        &self,
        source: &ValueConstraints<'s>,
        structure: &'s Value,
        keeps: bool,
    ) -> ValueConstraints<'s> {
        let own = kw::get(structure, "items").unwrap_or(if keeps { &ANY } else { &EMPTY });
        let others = source.all_holds().into_iter().skip(1).filter_map(|part| part.keyword("items"));
        let null = kw::flag(own, "nullable") || !kw::has_type(own) && kw::default_of(own).is_none();
        ValueConstraints {
            holds: [SharedSchema::Ref(own)].into_iter().chain(others).collect(),
            null,
            ..ValueConstraints::default()
        }
    }

    pub(super) fn compare_items(&mut self, node: ComparedNode<'_, 's>) {
        let ComparedNode { source, structure, target, place } = node;
        let (source_keeps, target_keeps) = place.keep_unknown(structure, target);
        if kw::get(structure, "items").is_none() && kw::get(target, "items").is_none() && source_keeps == target_keeps {
            return;
        }
        let other = kw::get(target, "items").unwrap_or(if target_keeps { &ANY } else { &EMPTY });
        let item = self.item_constraints(source, structure, source_keeps);
        // If neither side describes the items, nor the items of those items, the first level decides for all levels.
        let is_undescribed = |schema: &Value| [&*ANY, &*EMPTY].into_iter().any(|known| std::ptr::eq(known, schema));
        if is_undescribed(structure) && is_undescribed(target) && item.holds.len() == 1 {
            return;
        }
        let suffix = if kw::get(structure, "items").is_some() { ".items" } else { "" };
        let at = WalkPosition {
            source_keeps,
            target_keeps,
            ..self.child_position((&Rc::new(source.clone()), target), place, ValueStep::Item, suffix)
        };
        // If the target has a default and is not nullable, the default replaces a null that the source keeps.
        if let Some(default) = kw::default_of(other).filter(|_| item.null && !kw::flag(other, "nullable")) {
            let reason = format!("default: {} replaces a null item", shown_value(default));
            let known = self.walked.obligations.len();
            self.obligation(&at, reason, ExpectedEffect::Pruned, to_counterexamples(vec![Value::Null]), None);
            let keywords = ["default", "nullable", "type"].map(str::to_owned).to_vec();
            self.attribute(known, &at, ChangeOrigin::Keywords(keywords));
        }
        self.node(&item, other, &at);
    }
}

/// A field whose default changes.
struct DefaultChange<'s> {
    name: &'s str,
    is_filled_before: bool,
    reason: String,
}

/// Up to this many changed defaults of an object have an example each.
const MAX_SINGLE_DEFAULTS: usize = 16;

fn changed_default<'s>(name: &'s str, own: Option<&Value>, other: Option<&Value>) -> Option<DefaultChange<'s>> {
    let (before, after) = (own.and_then(kw::default_of), other.and_then(kw::default_of));
    let reason = match (before, after) {
        (None, None) => return None,
        (Some(before), Some(after)) if kw::same_value(before, after) => return None,
        (None, Some(after)) => format!("default: {} added", shown_value(after)),
        (Some(before), None) => format!("default: {} removed", shown_value(before)),
        (Some(before), Some(after)) => format!("default: {} → {}", shown_value(before), shown_value(after)),
    };
    Some(DefaultChange { name, is_filled_before: before.is_some(), reason })
}

/// Whether the source accepts anything here.
fn is_open(constraints: &ValueConstraints<'_>) -> bool {
    matches!(constraints.holds.first(), Some(SharedSchema::Ref(structure)) if kw::is_unknown(structure))
}

static METADATA: std::sync::LazyLock<Value> =
    std::sync::LazyLock::new(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));

/// A key that neither side describes.
fn fresh_key(a: &Value, b: &Value) -> String {
    let is_known = |name: &str| kw::property(a, name).is_some() || kw::property(b, name).is_some();
    let mut names = std::iter::once("x".to_owned()).chain((1..).map(|n| format!("x{n}")));
    names.find(|name| !is_known(name)).unwrap_or_default()
}
