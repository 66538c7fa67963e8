//! Two schemas side by side: at each pair of nodes, what may a value that the first takes meet at the second?
//!
//! A value passes a node when it passes each keyword of it and its parts pass the nodes below. So the pairs are walked
//! once, and each keyword that differs is a question of its own, put to [`Solver`]: is there a value that the source
//! takes and this keyword of the target refuses? If there is none, the keyword is proven. Else the values found are a
//! [`Obligation`], for [`super::witness`] to make whole objects of.

mod fields;
mod filled;
mod lists;
#[cfg(test)]
mod tests;
mod text;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use serde_json::{Value, json};

use super::cel::{self, Counterexample, Implied, RuleSet};
use super::constraints::{Constraints, Part};
use super::keywords::{self as kw, Kinds};
use super::solve::{Solver, is_meta};
pub use text::short;
use text::{changed_words, kind_words, own_changes};

/// How a value gets into the value around it.
#[derive(Clone, Debug)]
pub enum Step {
    Field(String),
    /// Any key that no property has; this one represents them.
    Entry(String),
    Item,
}

/// The way from a node up to the root, through what the source knows of each value on it.
#[derive(Clone, Debug)]
pub struct ValuePath<'s> {
    /// The value around; the fields of one value share it.
    pub constraints: Rc<Constraints<'s>>,
    /// The schema that the target has for it.
    pub target: &'s Value,
    pub step: Step,
    pub above: Option<Rc<ValuePath<'s>>>,
}

/// What is expected to happen to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    Pruned,
    Refused,
    Defaulted,
}

/// Something that is not proven.
#[derive(Clone, Debug)]
pub struct Obligation<'s> {
    /// The node, such as `^.spec.x`.
    pub path: String,
    pub reason: String,
    pub effect: Effect,
    /// Values at the end of `value_path`, each perhaps with the one before it.
    pub values: Vec<Counterexample>,
    pub value_path: Option<Rc<ValuePath<'s>>>,
    /// The schema that refuses the values. None: any value at this place will do.
    pub refused: Option<Value>,
    /// Why the values found may not be all. None: if there are none of them in a whole object, nothing is left to prove.
    pub open: Option<String>,
    /// Whether the value as a whole is judged, so that a change anywhere in it brings the refusal up.
    pub is_of_whole: bool,
}

/// What a walk found out.
#[derive(Debug, Default)]
pub struct Walked<'s> {
    pub obligations: Vec<Obligation<'s>>,
    /// The nodes that differ in keywords of their own, and what differs.
    pub changed: Vec<(String, String)>,
    /// What is proven and still worth saying.
    pub notes: Vec<(String, String)>,
    /// Nodes that the source leaves open and whose parts were left out: see [`walk`].
    pub unwalked: Vec<Unwalked<'s>>,
    /// Whether nodes were left out for want of steps.
    pub is_cut: bool,
}

/// A node that was compared without its parts.
#[derive(Debug)]
pub struct Unwalked<'s> {
    pub path: String,
    source: Constraints<'s>,
    structure: &'s Value,
    target: &'s Value,
    place: Place<'s>,
}

/// Where a walk is.
#[derive(Clone, Debug)]
struct Place<'s> {
    path: String,
    value_path: Option<Rc<ValuePath<'s>>>,
    /// Whether unknown fields are kept because the list around says so.
    source_keeps: bool,
    target_keeps: bool,
    is_item: bool,
    is_root: bool,
}

impl Place<'_> {
    /// Whether source and target keep unknown fields of the value here, whose nodes these are.
    fn keep_unknown(&self, structure: &Value, target: &Value) -> (bool, bool) {
        (self.source_keeps || kw::preserves(structure), self.target_keeps || kw::preserves(target))
    }
}

/// So many values of a schema that is compiled cost a step.
const COMPILED: u64 = 8;
/// Nodes that are left to prove at most; past them the rest is one obligation.
const DOUBTS: usize = 20_000;

/// What the values of all obligations may weigh together; past that obligations have none.
const WEIGHT: u64 = 64 << 20;
/// Options of two enums that are compared each with each, at most.
const OPTIONS: usize = 10_000;
/// So many fields that become required are asked about one by one; more are one question.
const ALONE: usize = 64;

pub struct ProductWalk<'a, 's> {
    solver: &'a Solver<'s>,
    walked: Walked<'s>,
    /// What the values of the obligations weigh.
    weight: u64,
    /// How a walk goes on below nodes that one side leaves open.
    open: Open<'a>,
}

/// What becomes of the parts of a node that one side leaves open.
#[derive(Clone, Copy)]
enum Open<'a> {
    /// Left out for now: if the node itself breaks, thousands of parts would add nothing.
    Later,
    /// Left out where the path is among these.
    But(&'a BTreeSet<String>),
}

/// Walks both schemas: `source` takes the objects, `target` is to take them too.
///
/// Where the source takes anything and the target describes it, the walk ends for now: [`resume`] goes on.
pub fn walk<'s>(solver: &Solver<'s>, source: &'s Value, target: &'s Value) -> Walked<'s> {
    walk_by(solver, source, target, Open::Later)
}

/// The same without what is below the `known` nodes.
pub fn walk_but<'s>(solver: &Solver<'s>, source: &'s Value, target: &'s Value, known: &BTreeSet<String>) -> Walked<'s> {
    walk_by(solver, source, target, Open::But(known))
}

/// Walks the parts of the nodes as well, but not the parts of these.
pub fn resume<'s>(solver: &Solver<'s>, nodes: Vec<Unwalked<'s>>) -> Walked<'s> {
    let mut product = ProductWalk { solver, walked: Walked::default(), weight: 0, open: Open::Later };
    for Unwalked { source, structure, target, place, .. } in nodes {
        product.parts(&source, structure, target, &place);
    }
    product.walked
}

fn walk_by<'s>(solver: &Solver<'s>, source: &'s Value, target: &'s Value, open: Open<'_>) -> Walked<'s> {
    let mut product = ProductWalk { solver, walked: Walked::default(), weight: 0, open };
    let constraints = Constraints { holds: vec![Part::Ref(source)], is_resource: true, ..Constraints::default() };
    let place = Place {
        path: "^".to_owned(),
        value_path: None,
        source_keeps: false,
        target_keeps: false,
        is_item: false,
        is_root: true,
    };
    product.node(&constraints, target, &place);
    product.walked
}

impl<'s> ProductWalk<'_, 's> {
    fn node(&mut self, source: &Constraints<'s>, target: &'s Value, place: &Place<'s>) {
        let Some(Part::Ref(structure)) = source.holds.first().cloned() else { return };
        let is_described = kw::is_unknown(structure) && !kw::is_unknown(target);
        if is_described || !kw::same(structure, target) || place.source_keeps != place.target_keeps {
            self.differing(source, structure, target, place);
        }
    }

    /// Two nodes that do not say the same.
    fn differing(&mut self, source: &Constraints<'s>, structure: &'s Value, target: &'s Value, place: &Place<'s>) {
        let differing = kw::differing(structure, target);
        if let Some(what) = own_changes(&differing, structure, target) {
            self.walked.changed.push((place.path.clone(), what));
        }
        if self.walked.obligations.len() >= DOUBTS || !self.solver.spend(10) {
            let why = Some("the limit of steps is reached".to_owned());
            self.walked.is_cut = true;
            return self.obligation(place, "not compared".to_owned(), Effect::Refused, Vec::new(), why);
        }
        let known = self.walked.obligations.len();
        self.kinds(source, structure, target, place);
        let is_other_kind = self.walked.obligations.len() > known;
        let kinds = kw::kinds(structure) & kw::kinds(target);
        // Where some kinds no longer pass, the other keywords are about the values of those that still do.
        let mut passing = source.clone();
        if is_other_kind {
            passing.holds.push(Part::own(Value::Object(kw::type_keywords(target))));
        }
        // Without a type, a format says which kinds pass.
        let is_open = !kw::has_type(target) && kw::string_format(target).is_some();
        if kinds != Kinds::NONE || is_open {
            self.keywords(&passing, (structure, target), &differing, place);
            self.combined(&passing, (structure, target), &differing, place);
            self.list_type(&passing, structure, target, place);
            self.rules(&passing, structure, target, place);
            self.embedding(&passing, structure, target, place);
        }
        if kinds.contains(Kinds::OBJECT) {
            self.unknown_fields(source, structure, target, place);
        }
        match self.open {
            Open::Later if kw::is_unknown(structure) => self.walked.unwalked.push(Unwalked {
                path: place.path.clone(),
                source: source.clone(),
                structure,
                target,
                place: place.clone(),
            }),
            Open::But(known) if known.contains(&place.path) => {}
            _ => self.parts(source, structure, target, place),
        }
    }

    /// What is below a node.
    fn parts(&mut self, source: &Constraints<'s>, structure: &'s Value, target: &'s Value, place: &Place<'s>) {
        let kinds = kw::kinds(structure) & kw::kinds(target);
        if kinds.contains(Kinds::OBJECT) {
            self.fields(source, structure, target, place);
        }
        if kinds.contains(Kinds::ARRAY) {
            self.items(source, structure, target, place);
        }
    }

    fn obligation(
        &mut self,
        place: &Place<'s>,
        reason: String,
        effect: Effect,
        mut values: Vec<Counterexample>,
        mut open: Option<String>,
    ) {
        let weighed = |value: &Counterexample| kw::weight(&value.value) + value.old.as_ref().map_or(0, kw::weight);
        self.weight += values.iter().map(weighed).sum::<u64>();
        if self.weight > WEIGHT && !values.is_empty() {
            values.clear();
            open.get_or_insert_with(|| "the values found are too large together".to_owned());
        }
        self.walked.obligations.push(Obligation {
            path: place.path.clone(),
            reason,
            effect,
            values,
            value_path: place.value_path.clone(),
            refused: None,
            open,
            is_of_whole: false,
        });
    }

    /// Asks for values that `source` takes and `refused` does not; true where there are none.
    fn ask(
        &mut self,
        source: &Constraints<'s>,
        refused: Part<'s>,
        place: &Place<'s>,
        reason: impl FnOnce() -> String,
    ) -> bool {
        // A null in a field never has a wrong type: where it is not allowed it is dropped (`kinds`), and where it is allowed
        // only an `enum` may refuse it.
        let refused = match refused {
            Part::Own(mut schema) if source.null && !place.is_item => {
                if let Some(schema) = Rc::make_mut(&mut schema).as_object_mut() {
                    schema.insert("nullable".to_owned(), Value::Bool(true));
                }
                Part::Own(schema)
            }
            other => other,
        };
        let mut constraints = source.clone();
        constraints.fails.push(refused.clone());
        let answer = self.solver.solve(&constraints, None, 3);
        // Metadata has fields that no schema needs to name, and only the named ones are looked for.
        let unnamed = place.source_keeps.then(|| "metadata that the schema does not name".to_owned());
        if answer.is_nothing() && unnamed.is_none() {
            return true;
        }
        self.obligation(place, reason(), Effect::Refused, plain(answer.values), answer.open.or(unnamed));
        if let Some(obligation) = self.walked.obligations.last_mut() {
            obligation.refused = Some((*refused).clone());
        }
        false
    }

    fn kinds(&mut self, source: &Constraints<'s>, structure: &'s Value, target: &'s Value, place: &Place<'s>) {
        // A null in a field that takes none is dropped before anything is judged.
        // Of a field that nothing described, a null is one of the values that a type refuses.
        let keeps_null = source.null || kw::is_unknown(structure) && !kw::has_type(target);
        if keeps_null && !place.is_item && !kw::flag(target, "nullable") && !kw::is_unknown(target) {
            let constraints = Constraints { holds: source.holds.clone(), null: true, ..Constraints::default() };
            if constraints.holds.iter().all(|part| self.solver.takes(part, &Value::Null) != Some(false)) {
                self.obligation(
                    place,
                    "nullable: true → false".to_owned(),
                    Effect::Pruned,
                    plain(vec![Value::Null]),
                    None,
                );
            }
        }
        let (before, after) = (kw::type_keywords(structure), kw::type_keywords(target));
        if kw::has_type(target) && before != after {
            let mut constraints = source.clone();
            constraints.null = source.null && place.is_item;
            let reason = || format!("type: {} → {}", kind_words(structure), kind_words(target));
            let is_text = kw::type_name(target) == Some("string") && kw::flag(structure, "x-kubernetes-int-or-string");
            if !(is_text && !source.null && self.is_always_text(place)) {
                self.ask(&constraints, Part::own(Value::Object(after)), place, reason);
            }
        }
    }

    /// Whether the rules of the value around refuse each value here that is no string.
    fn is_always_text(&self, place: &Place<'s>) -> bool {
        let Some(value_path) = &place.value_path else { return false };
        let Some(Part::Ref(around)) = value_path.constraints.holds.first() else { return false };
        let rules = kw::list(around, "x-kubernetes-validations");
        let rule = match &value_path.step {
            Step::Entry(_) => "self.all(k, type(self[k]) == string)",
            Step::Item => "self.all(item, type(item) == string)",
            Step::Field(_) => return false,
        };
        let asked = [json!({"rule": rule})];
        let is_root = value_path.above.is_none();
        let live = RuleSet { schema: around, rules, is_root, keeps: false };
        let desired = RuleSet { rules: &asked, ..live };
        !rules.is_empty() && self.solver.with_means(|means| cel::implied(live, desired, means)) == Implied::Yes
    }

    fn keywords(
        &mut self,
        source: &Constraints<'s>,
        (structure, target): (&'s Value, &'s Value),
        differing: &[&str],
        place: &Place<'s>,
    ) {
        let is_same = |keyword: &str| !differing.contains(&keyword);
        // What a bound means for a number depends on both: one that no integer can have refuses all integers. So does what
        // a format means: `int32` bounds integers alone.
        let is_same_number = ["type", "format"].into_iter().all(is_same);
        for (keyword, parts) in kw::VALUE_KEYWORDS {
            let is_number = matches!(keyword, "maximum" | "minimum" | "multipleOf" | "format");
            let is_same = parts.iter().all(|part| is_same(part)) && (is_same_number || !is_number)
                || keyword == "enum" && has_options_of(structure, target);
            let is_about_objects = matches!(keyword, "enum" | "maxProperties" | "minProperties");
            if is_same && !is_about_objects || kw::get(target, keyword).is_none() {
                continue;
            }
            let mut refused = kw::type_keywords(target);
            let mut of = vec!["format"];
            of.extend(parts);
            for part in of.into_iter().filter(|part| *part != "format" || keyword == "format" || is_number) {
                if let Some(value) = kw::get(target, part) {
                    refused.insert(part.to_owned(), value.clone());
                }
            }
            let Some((refused, reason)) = self.refused(keyword, refused, is_same, structure, target) else { continue };
            let known = self.walked.obligations.len();
            self.ask(source, Part::own(refused), place, || reason);
            let is_of_whole = matches!(keyword, "maxItems" | "minItems" | "maxProperties" | "minProperties");
            self.walked.obligations[known..].iter_mut().for_each(|obligation| obligation.is_of_whole = is_of_whole);
        }
        let required: BTreeSet<&str> = kw::names(structure, "required").collect();
        let mut added: Vec<&str> = Vec::new();
        for name in kw::names(target, "required").filter(|name| !required.contains(name)) {
            if kw::property(target, name).is_some_and(|kid| kw::default_of(kid).is_some()) {
                self.walked.notes.push((place.path.clone(), format!("required {name}: the default fills it in")));
                continue;
            }
            // These every resource has.
            if is_meta(name) && (place.is_root || kw::embedded(structure) && name != "metadata") {
                continue;
            }
            added.push(name);
        }
        let known = self.walked.obligations.len();
        let questions: Vec<&[&str]> = match added.len() {
            ..=ALONE => added.chunks(1).collect(),
            _ => vec![&added[..]],
        };
        for names in questions {
            let refused = Part::own(json!({"type": "object", "required": names}));
            self.ask(source, refused, place, || format!("required: {} added", short(&names.join(", "))));
        }
        self.walked.obligations[known..].iter_mut().for_each(|obligation| obligation.is_of_whole = true);
    }

    /// What `refused`, which has a keyword of the target, refuses before anything is filled in, and what changed. None
    /// where nothing did.
    fn refused(
        &self,
        keyword: &str,
        refused: serde_json::Map<String, Value>,
        is_same: bool,
        structure: &'s Value,
        target: &'s Value,
    ) -> Option<(Value, String)> {
        let refused = Value::Object(refused);
        match filled::before_filling(self.solver, &refused, structure, target) {
            Some(before) if is_same => Some((before, with_filled(keyword))),
            Some(before) => Some((before, changed_words(keyword, structure, target))),
            None if is_same => None,
            None => Some((refused, changed_words(keyword, structure, target))),
        }
    }

    fn combined(
        &mut self,
        source: &Constraints<'s>,
        (structure, target): (&'s Value, &'s Value),
        differing: &[&str],
        place: &Place<'s>,
    ) {
        let known = self.walked.obligations.len();
        for keyword in ["anyOf", "oneOf", "not"] {
            let Some(value) = kw::get(target, keyword) else { continue };
            let mut refused = kw::type_keywords(target);
            refused.insert(keyword.to_owned(), value.clone());
            let is_same = !differing.contains(&keyword);
            let Some((refused, reason)) = self.refused(keyword, refused, is_same, structure, target) else { continue };
            self.ask(source, Part::own(refused), place, || reason);
        }
        let kept = kw::list(structure, "allOf");
        for branch in kw::list(target, "allOf") {
            let is_same = kept.iter().any(|known| kw::same(known, branch));
            match filled::before_filling(self.solver, branch, structure, target) {
                Some(before) => drop(self.ask(source, Part::own(before), place, || with_filled("allOf"))),
                None if is_same => {}
                None => drop(self.ask(source, Part::Ref(branch), place, || changed_words("allOf", structure, target))),
            }
        }
        let is_of_whole = kw::kinds(target).contains(Kinds::OBJECT);
        self.walked.obligations[known..].iter_mut().for_each(|obligation| obligation.is_of_whole = is_of_whole);
    }

    fn rules(&mut self, source: &Constraints<'s>, structure: &'s Value, target: &'s Value, place: &Place<'s>) {
        let rules = kw::list(target, "x-kubernetes-validations");
        if rules.is_empty() {
            return;
        }
        let live = RuleSet {
            schema: structure,
            rules: kw::list(structure, "x-kubernetes-validations"),
            is_root: place.is_root,
            keeps: place.source_keeps,
        };
        let desired = RuleSet { schema: target, rules, is_root: place.is_root, keeps: place.target_keeps };
        let known: HashSet<_> = live.rules.iter().map(cel::judging_part).collect();
        let added: Vec<&str> = rules
            .iter()
            .filter(|rule| !known.contains(&cel::judging_part(rule)))
            .filter_map(|rule| rule.get("rule").and_then(Value::as_str))
            .collect();
        let reason = match added[..] {
            [] => "x-kubernetes-validations: sees other types or defaults".to_owned(),
            _ => format!("x-kubernetes-validations: {} added or changed", short(&added.join("; "))),
        };
        // What the rules cost beyond that they spend themselves: both schemas are compiled.
        if !self.solver.spend(500 + (kw::size(structure) + kw::size(target)) as u64 / COMPILED) {
            return self.obligation(
                place,
                reason,
                Effect::Refused,
                Vec::new(),
                Some("the limit of steps is reached".to_owned()),
            );
        }
        let (values, open) = match self.solver.with_means(|means| cel::implied(live, desired, means)) {
            Implied::Yes => return,
            Implied::No(found) => (found, Some("other values may differ".to_owned())),
            Implied::Unknown(why) => (Vec::new(), Some(why)),
        };
        // The server evaluates no rule for a null.
        if values.is_empty() && self.solver.solve(&Constraints { null: false, ..source.clone() }, None, 1).is_nothing()
        {
            return;
        }
        self.obligation(place, reason, Effect::Refused, values, open);
        if let Some(obligation) = self.walked.obligations.last_mut() {
            obligation.is_of_whole = true;
        }
    }
}

/// Whether the target's `enum` has all that the source's has.
fn has_options_of(source: &Value, target: &Value) -> bool {
    let (before, after) = (kw::list(source, "enum"), kw::list(target, "enum"));
    let is_small = before.len().saturating_mul(after.len()) <= OPTIONS;
    is_small && !before.is_empty() && before.iter().all(|value| after.iter().any(|other| kw::same_value(value, other)))
}

/// In words: the keyword is what it was, and what it judges is not.
fn with_filled(keyword: &str) -> String {
    format!("{keyword}: sees new defaults")
}

fn plain(values: Vec<Value>) -> Vec<Counterexample> {
    values.into_iter().map(|value| Counterexample { value, old: None }).collect()
}

impl Obligation<'_> {
    /// Whether the value is inside of a list whose items an update does not pair with the old ones.
    pub fn is_in_list(&self) -> bool {
        let mut level = self.value_path.as_deref();
        while let Some(value_path) = level {
            let is_map = |part: &Part| part.get("x-kubernetes-list-type").and_then(Value::as_str) == Some("map");
            if matches!(value_path.step, Step::Item) && !value_path.constraints.holds.first().is_some_and(is_map) {
                return true;
            }
            level = value_path.above.as_deref();
        }
        false
    }
}

/// That a status which is written with the object is lost.
pub fn status_doubt<'s>(solver: &Solver<'s>, source: &'s Value, target: &'s Value) -> Option<Obligation<'s>> {
    let own = kw::property(source, "status")?;
    let kid = Constraints { holds: vec![Part::Ref(own)], null: false, ..Constraints::default() };
    let answer = solver.solve(&kid, None, 1);
    let constraints = Constraints { holds: vec![Part::Ref(source)], is_resource: true, ..Constraints::default() };
    let value_path =
        ValuePath { constraints: Rc::new(constraints), target, step: Step::Field("status".to_owned()), above: None };
    (!answer.is_nothing()).then(|| Obligation {
        path: "^.status".to_owned(),
        reason: "subresources.status: added".to_owned(),
        effect: Effect::Pruned,
        values: plain(answer.values),
        value_path: Some(Rc::new(value_path)),
        refused: None,
        open: answer.open,
        is_of_whole: false,
    })
}
