//! Walks two schemas side by side and compares each pair of nodes.
//!
//! A node accepts a value if each of its keywords accepts it and the nodes below accept its parts. So the pairs are
//! walked once, and each keyword that differs is a separate question to [`Solver`]: is there a value that the source
//! accepts and this keyword of the target refuses? If there is none, the keyword is proven. Otherwise the values found
//! become an [`Obligation`], from which [`super::witness`] builds whole objects.

mod fields;
mod filled;
mod keywords;
mod lists;
mod obligation;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Value, json};

use super::cel::{self, Counterexample, Implied, RuleSet};
use super::constraints::{SharedSchema, ValueConstraints};
use super::keywords::{self as kw, JsonTypeSet};
use super::rules::cost;
use super::solve::Solver;
use super::text::{kind_words, own_changes};
use obligation::WalkPosition;
pub use obligation::{ChangeOrigin, Changed, ExpectedEffect, Obligation, Unwalked, ValuePath, ValueStep, Walked};

/// The number of schema values that are compiled in one step.
const COMPILED_PER_STEP: u64 = 8;
/// The maximum number of obligations; nodes after that are not compared.
const MAX_OBLIGATIONS: usize = 20_000;

/// The maximum total weight of the values of all obligations; obligations after that have no values.
const MAX_WEIGHT: u64 = 64 << 20;
pub struct ProductWalk<'a, 's> {
    solver: &'a Solver<'s>,
    walked: Walked<'s>,
    /// The total weight of the values of the obligations.
    weight: u64,
    /// What happens below nodes where the source accepts anything.
    open: OpenNodes<'a>,
    /// The keywords, by path, whose change is also compared without the other changes of their node.
    asked: &'a BTreeMap<String, BTreeSet<String>>,
    postponed: Vec<PostponedRules<'s>>,
}

/// A node whose rules are compared after all others: what the source accepts there, both schemas, the place, and the
/// keywords that differ.
type PostponedRules<'s> = (ValueConstraints<'s>, &'s Value, &'s Value, WalkPosition<'s>, Vec<&'s str>);

static NOTHING: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();

/// What happens to the parts of a node where the source accepts anything.
#[derive(Clone, Copy)]
enum OpenNodes<'a> {
    /// Deferred: if the node itself breaks, thousands of parts would add nothing.
    Defer,
    /// Skipped if the node's path is in this set.
    Skip(&'a BTreeSet<String>),
    /// Skipped everywhere: only the keywords of one node are compared.
    SkipAll,
}

/// Walks both schemas to find out whether `target` accepts the objects that `source` accepts.
///
/// The walk stops at nodes where the source accepts anything and the target describes it; [`resume`] continues there.
pub fn walk<'s>(solver: &Solver<'s>, source: &'s Value, target: &'s Value) -> Walked<'s> {
    walk_with(solver, source, target, OpenNodes::Defer, &NOTHING)
}

/// Like [`walk`] with the sides exchanged, but it skips everything below the nodes in `known`. Of each keyword in
/// `asked`, by the path of its node, it finds out whether its change alone accepts more.
pub fn walk_back<'s>(
    solver: &Solver<'s>,
    desired: &'s Value,
    live: &'s Value,
    known: &BTreeSet<String>,
    asked: &BTreeMap<String, BTreeSet<String>>,
) -> Walked<'s> {
    walk_with(solver, desired, live, OpenNodes::Skip(known), asked)
}

/// Walks the parts of `nodes`, and stops at the same kind of node as [`walk`].
pub fn resume<'s>(solver: &Solver<'s>, nodes: Vec<Unwalked<'s>>) -> Walked<'s> {
    let open = OpenNodes::Defer;
    let mut product =
        ProductWalk { solver, walked: Walked::default(), weight: 0, open, asked: &NOTHING, postponed: Vec::new() };
    for Unwalked { source, structure, target, place, .. } in nodes {
        product.parts(ComparedNode { source: &source, structure, target, place: &place });
    }
    product.postponed_rules();
    product.walked
}

fn walk_with<'s>(
    solver: &Solver<'s>,
    source: &'s Value,
    target: &'s Value,
    open: OpenNodes<'_>,
    asked: &BTreeMap<String, BTreeSet<String>>,
) -> Walked<'s> {
    let mut product = ProductWalk { solver, walked: Walked::default(), weight: 0, open, asked, postponed: Vec::new() };
    let constraints =
        ValueConstraints { holds: vec![SharedSchema::Ref(source)], is_resource: true, ..ValueConstraints::default() };
    let place = WalkPosition {
        path: "^".to_owned(),
        value_path: None,
        source_keeps: false,
        target_keeps: false,
        is_item: false,
        is_root: true,
        is_below_its_path: false,
    };
    product.node(&constraints, target, &place);
    product.postponed_rules();
    product.walked
}

/// A node that both schemas have.
#[derive(Clone, Copy)]
struct ComparedNode<'n, 's> {
    /// What the source accepts there.
    source: &'n ValueConstraints<'s>,
    /// The source's schema of the node, the first of its constraints.
    structure: &'s Value,
    target: &'s Value,
    place: &'n WalkPosition<'s>,
}

impl<'s> ProductWalk<'_, 's> {
    fn node(&mut self, source: &ValueConstraints<'s>, target: &'s Value, place: &WalkPosition<'s>) {
        let Some(SharedSchema::Ref(structure)) = source.holds.first().cloned() else { return };
        let is_described = kw::is_unknown(structure) && !kw::is_unknown(target);
        if is_described || !kw::is_same_node(structure, target) || place.source_keeps != place.target_keeps {
            self.differing(ComparedNode { source, structure, target, place });
        }
    }

    /// Compares two nodes that differ.
    fn differing(&mut self, node: ComparedNode<'_, 's>) {
        let ComparedNode { source, structure, target, place } = node;
        let differing = kw::differing(structure, target);
        if let Some(what) = own_changes(&differing, structure, target) {
            let keywords = match place.is_below_its_path {
                true => Vec::new(),
                false => differing.iter().map(|keyword| (*keyword).to_owned()).collect(),
            };
            self.walked.changed.push(Changed { path: place.path.clone(), words: what, keywords });
        }
        if self.walked.obligations.len() >= MAX_OBLIGATIONS || !self.solver.spend(10) {
            let why = Some("the step limit was reached".to_owned());
            self.walked.is_cut = true;
            return self.obligation(place, "not compared".to_owned(), ExpectedEffect::Refused, Vec::new(), why);
        }
        let known = self.walked.obligations.len();
        self.kinds(node, &differing);
        let is_other_kind = self.walked.obligations.len() > known;
        let kinds = kw::kinds(structure) & kw::kinds(target);
        // If some kinds no longer pass, the other keywords are checked only for values of the kinds that still do.
        let mut passing = source.clone();
        if is_other_kind {
            passing.holds.push(SharedSchema::owned(Value::Object(kw::type_keywords(target))));
        }
        // Without a type, the format determines which kinds pass.
        let is_open = !kw::has_type(target) && kw::string_format(target).is_some();
        if kinds != JsonTypeSet::NONE || is_open {
            let node = ComparedNode { source: &passing, ..node };
            self.compare_keywords(node, &differing);
            self.compare_combined(node, &differing);
            self.list_type(node, &differing);
            self.rules_within_share(node, &differing);
            self.compare_embedding(node, &differing);
        }
        if kinds.contains(JsonTypeSet::OBJECT) {
            let known = self.walked.obligations.len();
            self.unknown_fields(node);
            self.attribute(known, place, changed_keywords(&differing, &[PRESERVE, "additionalProperties"]));
        }
        if let Some(asked) = self.asked.get(&place.path).filter(|_| !place.is_below_its_path) {
            let wider = asked.iter().filter(|keyword| self.accepts_more_alone(keyword, target, structure, place));
            let wider: Vec<(String, String)> = wider.map(|keyword| (place.path.clone(), keyword.clone())).collect();
            self.walked.widening.extend(wider);
        }
        match self.open {
            OpenNodes::SkipAll => {}
            OpenNodes::Defer if kw::is_unknown(structure) => self.walked.unwalked.push(Unwalked {
                path: place.path.clone(),
                source: source.clone(),
                structure,
                target,
                place: place.clone(),
            }),
            OpenNodes::Skip(known) if known.contains(&place.path) => {}
            _ => self.parts(node),
        }
    }

    /// Whether `live` with this one keyword of `desired` accepts more than `live`.
    fn accepts_more_alone(&self, keyword: &str, live: &Value, desired: &Value, place: &WalkPosition<'s>) -> bool {
        if !self.solver.spend(kw::size(live) as u64 / COMPILED_PER_STEP) {
            return true;
        }
        let mut alone = live.clone();
        if let Some(keywords) = alone.as_object_mut() {
            match desired.get(keyword) {
                Some(value) => drop(keywords.insert(keyword.to_owned(), value.clone())),
                None => drop(keywords.shift_remove(keyword)),
            }
        }
        let solver = Solver::new(self.solver.left(), self.solver.patterns(), self.solver.release());
        let asked = &NOTHING;
        let open = OpenNodes::SkipAll;
        let mut product =
            ProductWalk { solver: &solver, walked: Walked::default(), weight: 0, open, asked, postponed: Vec::new() };
        let source = ValueConstraints {
            holds: vec![SharedSchema::Ref(&alone)],
            is_resource: place.is_root,
            null: kw::flag(&alone, "nullable"),
            ..ValueConstraints::default()
        };
        let at = WalkPosition {
            path: place.path.clone(),
            value_path: None,
            source_keeps: place.source_keeps,
            target_keeps: place.target_keeps,
            is_item: place.is_item,
            is_root: place.is_root,
            is_below_its_path: false,
        };
        product.differing(ComparedNode { source: &source, structure: &alone, target: live, place: &at });
        product.postponed_rules();
        let is_wider = !product.walked.obligations.is_empty();
        self.solver.spend(self.solver.left() - solver.left());
        is_wider
    }

    /// Compares the parts of a node.
    fn parts(&mut self, node: ComparedNode<'_, 's>) {
        let kinds = kw::kinds(node.structure) & kw::kinds(node.target);
        if kinds.contains(JsonTypeSet::OBJECT) {
            self.compare_fields(node);
        }
        if kinds.contains(JsonTypeSet::ARRAY) {
            self.compare_items(node);
        }
    }

    fn obligation(
        &mut self,
        place: &WalkPosition<'s>,
        reason: String,
        effect: ExpectedEffect,
        mut values: Vec<Counterexample>,
        mut open: Option<String>,
    ) {
        let weighed = |value: &Counterexample| kw::weight(&value.value) + value.old.as_ref().map_or(0, kw::weight);
        self.weight += values.iter().map(weighed).sum::<u64>();
        if self.weight > MAX_WEIGHT && !values.is_empty() {
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
            origin: match place.is_below_its_path {
                true => ChangeOrigin::Keywords(DESCRIBE_BELOW.iter().map(|keyword| (*keyword).to_owned()).collect()),
                false => ChangeOrigin::Node,
            },
        });
    }

    /// Attributes the obligations from index `known` on, all of which are about the node at `place`.
    fn attribute(&mut self, known: usize, place: &WalkPosition<'s>, origin: ChangeOrigin) {
        if !place.is_below_its_path {
            self.walked.obligations[known..].iter_mut().for_each(|obligation| obligation.origin = origin.clone());
        }
    }

    /// Looks for values that `source` accepts and `refused` does not. Returns true if there are none, and otherwise
    /// adds an obligation.
    fn prove_accepted(
        &mut self,
        source: &ValueConstraints<'s>,
        refused: SharedSchema<'s>,
        place: &WalkPosition<'s>,
        reason: impl FnOnce() -> String,
    ) -> bool {
        // A null in a field never has a wrong type: if it is not allowed it is dropped (`kinds`), and if it is allowed
        // only an `enum` can refuse it.
        let refused = match refused {
            SharedSchema::Own(mut schema) if source.null && !place.is_item => {
                if let Some(schema) = Rc::make_mut(&mut schema).as_object_mut() {
                    schema.insert("nullable".to_owned(), Value::Bool(true));
                }
                SharedSchema::Own(schema)
            }
            other => other,
        };
        let mut constraints = source.clone();
        constraints.fails.push(refused.clone());
        let answer = self.solver.solve(&constraints, None, 3);
        // Metadata has fields that no schema has to name, and only the named ones are searched.
        let unnamed = place.source_keeps.then(|| "metadata that the schema does not name".to_owned());
        if answer.is_nothing() && unnamed.is_none() {
            return true;
        }
        // Rules above may ask for a string of a certain form.
        let mut values = match place.value_path.as_deref() {
            Some(value_path) if !answer.values.is_empty() => {
                self.solver.hinted_by(&constraints, &rules_above(value_path, place.path.rsplit('.').next()))
            }
            _ => Vec::new(),
        };
        values.extend(answer.values);
        self.obligation(place, reason(), ExpectedEffect::Refused, to_counterexamples(values), answer.open.or(unnamed));
        if let Some(obligation) = self.walked.obligations.last_mut() {
            obligation.refused = Some((*refused).clone());
        }
        false
    }

    fn kinds(&mut self, node: ComparedNode<'_, 's>, differing: &[&str]) {
        let ComparedNode { source, structure, target, place } = node;
        let known = self.walked.obligations.len();
        // The server drops a null from a field that is not nullable before it validates. In a field or entry that no
        // schema described, a null is one of the values that a type refuses.
        let keeps_null = source.null || kw::is_undescribed(structure) && !kw::has_type(target);
        if keeps_null && !place.is_item && !kw::flag(target, "nullable") && !kw::is_undescribed(target) {
            let constraints =
                ValueConstraints { holds: source.holds.clone(), null: true, ..ValueConstraints::default() };
            if constraints.holds.iter().all(|part| self.solver.takes(part, &Value::Null) != Some(false)) {
                self.obligation(
                    place,
                    "nullable: true → false".to_owned(),
                    ExpectedEffect::Pruned,
                    to_counterexamples(vec![Value::Null]),
                    None,
                );
            }
            self.attribute(known, place, changed_keywords(differing, &["nullable", "type", PRESERVE]));
        }
        let known = self.walked.obligations.len();
        let (before, after) = (kw::type_keywords(structure), kw::type_keywords(target));
        if kw::has_type(target) && before != after {
            let mut constraints = source.clone();
            constraints.null = source.null && place.is_item;
            let reason = || format!("type: {} → {}", kind_words(structure), kind_words(target));
            let is_text = kw::type_name(target) == Some("string") && kw::flag(structure, "x-kubernetes-int-or-string");
            if !(is_text && !source.null && self.is_always_text(place)) {
                self.prove_accepted(&constraints, SharedSchema::owned(Value::Object(after)), place, reason);
                self.attribute(known, place, changed_keywords(differing, TYPES));
            }
        }
    }

    /// Whether the rules of the enclosing value refuse every value here that is not a string.
    fn is_always_text(&self, place: &WalkPosition<'s>) -> bool {
        let Some(value_path) = &place.value_path else { return false };
        let Some(SharedSchema::Ref(around)) = value_path.constraints.holds.first() else { return false };
        let rules = kw::list(around, "x-kubernetes-validations");
        let rule = match &value_path.step {
            ValueStep::Entry(_) => "self.all(k, type(self[k]) == string)",
            ValueStep::Item => "self.all(item, type(item) == string)",
            ValueStep::Field(_) => return false,
        };
        let asked = [json!({"rule": rule})];
        let is_root = value_path.above.is_none();
        let live = RuleSet { schema: around, rules, is_root, keeps: false };
        let desired = RuleSet { rules: &asked, ..live };
        !rules.is_empty() && self.solver.with_means(|means| cel::implied(live, desired, means)) == Implied::Yes
    }
}

/// The rules of all nodes above that name the field.
fn rules_above<'s>(value_path: &ValuePath<'s>, field: Option<&str>) -> Vec<&'s str> {
    let levels = std::iter::successors(Some(value_path), |level| level.above.as_deref());
    let structures = levels.filter_map(|level| match level.constraints.holds.first() {
        Some(SharedSchema::Ref(structure)) => Some(*structure),
        _ => None,
    });
    let rules = structures.flat_map(|structure| kw::list(structure, RULES));
    let texts = rules.filter_map(|rule| rule.get("rule").and_then(Value::as_str));
    texts.filter(|text| field.is_none_or(|field| field == "items" || text.contains(field))).collect()
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const RULES: &str = "x-kubernetes-validations";
const TYPES: &[&str] = &["type", "nullable", "x-kubernetes-int-or-string"];

/// The keywords whose change affects values that the source does not describe.
const DESCRIBE_BELOW: &[&str] = &[
    "additionalProperties",
    "items",
    "properties",
    "type",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    PRESERVE,
];

/// Those of `keywords` that differ; if none does, the change is elsewhere.
fn changed_keywords(differing: &[&str], keywords: &[&str]) -> ChangeOrigin {
    let changed: Vec<String> =
        keywords.iter().filter(|keyword| differing.contains(keyword)).map(|keyword| (*keyword).to_owned()).collect();
    if changed.is_empty() { ChangeOrigin::OtherNodes } else { ChangeOrigin::Keywords(changed) }
}

/// Adds an obligation for all rules of an object together, if some were added and the total may exceed the server's
/// limit. If that of live may exceed it as well, the estimate says nothing about the added ones.
pub fn add_cost_obligation<'s>(solver: &Solver<'s>, source: &Value, target: &Value, walked: &mut Walked<'s>) {
    let Some((place, reason)) = walked.costs.first() else { return };
    let known = cost::LiveValues::Node { schema: source, keeps: false };
    let together = |schema| cost::too_costly_together(&cost::bounded(known, schema, true));
    let open = match solver.spend((kw::size(source) + kw::size(target)) as u64) {
        true => together(target).filter(|_| together(source).is_none()),
        false => Some("the step limit was reached".to_owned()),
    };
    walked.obligations.extend(open.map(|why| Obligation {
        path: place.path.clone(),
        reason: reason.clone(),
        effect: ExpectedEffect::Refused,
        values: Vec::new(),
        value_path: place.value_path.clone(),
        refused: None,
        open: Some(why),
        origin: ChangeOrigin::Keywords(vec![RULES.to_owned()]),
    }));
}

fn to_counterexamples(values: Vec<Value>) -> Vec<Counterexample> {
    values.into_iter().map(|value| Counterexample { value, old: None }).collect()
}

/// The obligation for a status that is written with the object and dropped by the target. None if no object can have a
/// status.
pub fn status_obligation<'s>(solver: &Solver<'s>, source: &'s Value, target: &'s Value) -> Option<Obligation<'s>> {
    let own = kw::property(source, "status")?;
    let field = ValueConstraints { holds: vec![SharedSchema::Ref(own)], null: false, ..ValueConstraints::default() };
    let answer = solver.solve(&field, None, 1);
    let constraints =
        ValueConstraints { holds: vec![SharedSchema::Ref(source)], is_resource: true, ..ValueConstraints::default() };
    let value_path = ValuePath {
        constraints: Rc::new(constraints),
        target,
        step: ValueStep::Field("status".to_owned()),
        above: None,
    };
    (!answer.is_nothing()).then(|| Obligation {
        path: "^.status".to_owned(),
        reason: "subresources.status: added".to_owned(),
        effect: ExpectedEffect::Pruned,
        values: to_counterexamples(answer.values),
        value_path: Some(Rc::new(value_path)),
        refused: None,
        open: answer.open,
        origin: ChangeOrigin::OtherNodes,
    })
}
