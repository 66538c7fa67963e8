//! The order in which a deploy writes and deletes: a graph of steps.

mod acyclic;
mod backing_workloads;
pub(crate) mod bindings;
mod bound;
mod defaults;
pub(crate) mod rule;
mod steps;
#[cfg(test)]
mod tests;
mod unawaited;
mod waves;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use bindings::OrderBindings;
use defaults::DefaultSets;
use rule::{BY_KIND, OrderGroup, OrderRule, OrderRuleSource, OrderSide, RuleOperation};
pub use steps::ApplyStep;
use steps::{Disorder, ObjectRuleEdge, OrderedObject, Set, Sorted};
use written::{OrderRuleError, Ordering};

use super::removal::{self, Removal};
use super::{Change, directives};
use gantry_core::finding::Action;
use gantry_core::manifest::{Manifest, ManifestOrigin, Spans};
use gantry_core::matcher::{MatchableObject, ObjectScope};
use gantry_core::problem::{Error, Location, Problem, Result};
use gantry_core::resource::{ObjectRef, Step};
use gantry_core::text;

/// Which changes and removals may run in parallel, and which wait for others.
#[derive(Debug, Clone, Default)]
pub struct PlanGraph {
    /// Their members are indices into the changes of the plan.
    pub changes: Vec<ApplyStep>,
    /// Their members are indices into the removals of the plan. They start when all changes are written.
    pub removals: Vec<ApplyStep>,
}

impl PlanGraph {
    /// The changes that are written before this one, in their order in the plan.
    pub fn changes_before(&self, change: usize) -> Vec<usize> {
        let Some(step) = self.changes.iter().position(|step| step.members.contains(&change)) else { return Vec::new() };
        let mut found = vec![false; self.changes.len()];
        let mut open = self.changes[step].after.clone();
        let mut before = Vec::new();
        while let Some(step) = open.pop() {
            if !std::mem::replace(&mut found[step], true) {
                before.extend(&self.changes[step].members);
                open.extend(&self.changes[step].after);
            }
        }
        before.sort_unstable();
        before
    }
}

/// Notices about the order of a plan.
#[derive(Debug, Default)]
pub struct OrderNotes {
    /// Rules that this deploy cannot keep.
    pub blocks: Vec<Problem>,
    /// Rules that have no effect in this deploy.
    pub notices: Vec<Problem>,
    /// Rules after which objects are written before others are ready, because the deploy does not wait for that.
    pub unawaited: Vec<Problem>,
    /// Pairs of objects whose default order a rule reverses, for verbose output.
    pub turned: Vec<Problem>,
}

/// The maximum number of pairs of objects that are named.
const MOST_TURNED: usize = 20;

/// Reports the objects whose default order is reversed.
fn reversed<'o>(turned: &[(usize, usize)], object: impl Fn(usize) -> &'o ObjectRef) -> Vec<Problem> {
    let pair = |(later, earlier): &(usize, usize)| {
        let (first, then) = (object(*later), object(*earlier));
        Problem::new(format!("{first} is written before {then} because of rules; by default it is written after it"))
    };
    let mut problems: Vec<Problem> = turned.iter().take(MOST_TURNED).map(pair).collect();
    if turned.len() > MOST_TURNED {
        let more = text::count(turned.len() - MOST_TURNED, "more pair");
        problems.push(Problem::new(format!("rules reverse the default order of {more} of objects")));
    }
    problems
}

/// Checks whether the rules of the manifests can be followed, as far as that is known without the cluster.
///
/// # Errors
/// Annotations and bindings that cannot be read; rules that form a cycle.
pub fn check<'m>(manifests: &'m [Manifest], bindings: &OrderBindings, namespace: &'m str) -> Result<()> {
    let named = |manifest: &'m Manifest| manifest.object.namespace.as_deref();
    let object = |manifest| NamespacedManifest {
        manifest,
        namespace: named(manifest).unwrap_or(namespace),
        scope: named(manifest).map_or(ObjectScope::Unknown, ObjectScope::In),
    };
    let objects: Vec<NamespacedManifest<'_>> = manifests.iter().map(object).collect();
    let orderings = read(&objects, bindings)?;
    for operation in [RuleOperation::Upsert, RuleOperation::Delete] {
        let node = |index| OrderedObject { set: 0, ordering: orderings.get(&index), is_written: true };
        let nodes: Vec<OrderedObject<'_>> = (0..objects.len()).map(node).collect();
        steps::sort(&nodes, &[Set::default()], operation).map_err(|disorder| {
            Error::usage(problem(&disorder, |index| (&manifests[index].object, Some(&manifests[index].origin))))
        })?;
    }
    Ok(())
}

/// Sorts the changes and removals of a plan. A deploy that `waits` ends when everything is ready.
///
/// # Errors
/// As [`check`], now with the namespaces of the cluster.
pub fn sort_changes(
    changes: &[Change],
    removals: &[Removal],
    bindings: &OrderBindings,
    waits: bool,
) -> Result<(PlanGraph, OrderNotes)> {
    let objects: Vec<NamespacedManifest<'_>> = changes
        .iter()
        .map(|change| NamespacedManifest {
            manifest: &change.desired,
            namespace: change.desired.object.namespace.as_deref().unwrap_or_default(),
            scope: ObjectScope::for_object(&change.desired.object),
        })
        .collect();
    let orderings = read(&objects, bindings)?;
    let mut notes = OrderNotes { notices: unmatched(&objects, &orderings), ..OrderNotes::default() };
    if !waits {
        notes.unawaited = unawaited::rules(changes, &orderings);
    }

    let is_written = |index: &usize| changes[*index].is_written();
    let DefaultSets { sets, of } = defaults::default_order(changes, waits);
    let node = |index: usize| OrderedObject {
        set: of[index],
        // What is not written holds back what waits for it until it is ready. OLM writes objects of bundles itself.
        ordering: orderings.get(&index).filter(|_| changes[index].desired.bundle.is_none()),
        is_written: is_written(&index),
    };
    let nodes: Vec<OrderedObject<'_>> = (0..objects.len()).map(node).collect();
    let sorted = steps::sort(&nodes, &sets, RuleOperation::Upsert).map_err(|disorder| {
        Error::usage(problem(&disorder, |index| {
            let Manifest { object, origin, .. } = objects[index].manifest;
            (object, Some(origin))
        }))
    })?;

    let Sorted { steps: sorted, turned } = sorted;
    notes.turned = reversed(&turned, |index| &changes[index].desired.object);

    let (leaving, notices) = of_removals(removals, bindings);
    notes.notices.extend(notices);
    let DefaultSets { sets, of } = defaults::of_stages(removals.iter().map(|removal| removal::stage(&removal.object)));
    let node = |index: usize| OrderedObject {
        set: of[index],
        ordering: leaving.get(&index).filter(|_| removals[index].action == Action::Delete),
        is_written: true,
    };
    let nodes: Vec<OrderedObject<'_>> = (0..removals.len()).map(node).collect();
    let deletes = steps::sort(&nodes, &sets, RuleOperation::Delete).unwrap_or_else(|disorder| {
        notes.blocks.push(problem(&disorder, |index| (&removals[index].object, None)));
        Sorted::default()
    });
    let written = orderings.iter().filter(|(index, _)| is_written(index));
    let written: Vec<GraphObject<'_>> = written
        .map(|(index, ordering)| {
            let Manifest { object, origin, .. } = objects[*index].manifest;
            GraphObject { object, origin: Some(origin), is_live: changes[*index].action != Action::Create, ordering }
        })
        .collect();
    let deleted = leaving.iter().filter(|(index, _)| removals[**index].action == Action::Delete);
    let deleted: Vec<GraphObject<'_>> = deleted
        .map(|(index, ordering)| GraphObject {
            object: &removals[*index].object,
            origin: None,
            is_live: true,
            ordering,
        })
        .collect();
    notes.blocks.extend(turned_round(&written, &deleted));
    Ok((PlanGraph { changes: sorted, removals: deletes.steps }, notes))
}

/// A manifest in its namespace.
struct NamespacedManifest<'a> {
    manifest: &'a Manifest,
    /// Its namespace, or the default one if it names none.
    namespace: &'a str,
    scope: ObjectScope<'a>,
}

impl NamespacedManifest<'_> {
    /// Whether the manifest may have annotations about the order. Objects of bundles have none: OLM does not know them.
    fn may_have_ordering(&self) -> bool {
        self.manifest.bundle.is_none() && self.manifest.metadata_may_contain(&written::MARKS)
    }
}

/// The ordering from annotations and bindings, by index. If rules name groups by kind or single objects, all their
/// members have an entry.
fn read(objects: &[NamespacedManifest<'_>], bindings: &OrderBindings) -> Result<BTreeMap<usize, Ordering>> {
    let mut orderings = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, object) in objects.iter().enumerate().filter(|(_, object)| object.may_have_ordering()) {
        let Manifest { object: name, raw, origin, .. } = object.manifest;
        let (ordering, unreadable) = written::read(name, object.namespace, &raw.value());
        problems.extend(unreadable.into_iter().map(|unreadable| problem_of(name, origin, unreadable)));
        orderings.insert(index, ordering);
    }
    if !bindings.is_empty() {
        for (index, object) in objects.iter().enumerate().filter(|(_, object)| object.manifest.bundle.is_none()) {
            let Manifest { object: name, raw, origin, .. } = object.manifest;
            let facts = MatchableObject::of_raw(name, object.scope, raw);
            // Only CRDs have placeholders for more than the identity.
            let manifest = if name.is_crd() { raw.value() } else { Value::Null };
            let ordering = orderings.entry(index).or_default();
            let unreadable = written::bind(bindings, &facts, (name, object.namespace, &manifest), ordering);
            problems.extend(unreadable.into_iter().map(|unreadable| problem_of(name, origin, unreadable)));
        }
        orderings.retain(|_, ordering| *ordering != Ordering::default());
    }
    if !problems.is_empty() {
        problems.sort();
        return Err(Error::Usage(problems));
    }
    let member = |object: &NamespacedManifest<'_>| waves::WaveMember {
        ranked: waves::of_written(&directives::of_manifest(object.manifest)),
        is_foundation: is_foundation(&object.manifest.object),
    };
    let written = objects.iter().enumerate().filter(|(_, object)| object.manifest.bundle.is_none());
    let members = written.map(|(index, object)| (index, member(object))).collect();
    waves::add(&members, &mut orderings, RuleOperation::Upsert);
    let named: BTreeSet<OrderGroup> =
        orderings.values().flat_map(|ordering| &ordering.rules).map(|rule| rule.group.clone()).collect();
    if named.iter().any(OrderGroup::is_by_kind) {
        for (index, object) in objects.iter().enumerate() {
            // Objects with annotations have these groups already.
            if object.may_have_ordering() {
                continue;
            }
            let Manifest { object: name, raw, .. } = object.manifest;
            // For all other kinds the identity is enough.
            let manifest = if name.is_crd() { raw.value() } else { Value::Null };
            let groups = written::read(name, object.namespace, &manifest).0.groups;
            orderings.entry(index).or_default().groups.extend(groups);
        }
    }
    if named.iter().any(|group| matches!(group, OrderGroup::Object(..))) {
        for (index, object) in objects.iter().enumerate() {
            let name = &object.manifest.object;
            let (in_namespace, anywhere) = (
                OrderGroup::for_object(&ObjectRef { namespace: Some(object.namespace.to_owned()), ..(**name).clone() }),
                OrderGroup::for_object(&ObjectRef { namespace: None, ..(**name).clone() }),
            );
            for group in [in_namespace, anywhere] {
                if named.contains(&group) {
                    orderings.entry(index).or_insert_with(Ordering::default).groups.insert(group);
                }
            }
        }
    }
    orderings.retain(|_, ordering| *ordering != Ordering::default());
    Ok(orderings)
}

/// The ordering of removals from live annotations and bindings, and what cannot be read of it.
fn of_removals(removals: &[Removal], bindings: &OrderBindings) -> (BTreeMap<usize, Ordering>, Vec<Problem>) {
    let (mut orderings, mut notices) = (BTreeMap::new(), Vec::new());
    for (index, removal) in removals.iter().enumerate() {
        let Removal { object, facts, .. } = removal;
        let manifest = json!({"metadata": {"annotations": facts.annotations}});
        let namespace = object.namespace.as_deref().unwrap_or_default();
        let (mut ordering, mut unreadable) = written::read(object, namespace, &manifest);
        ordering.groups.insert(OrderGroup::for_object(object));
        let facts = MatchableObject::of_metadata(object, &manifest);
        unreadable.extend(written::bind(bindings, &facts, (object, namespace, &manifest), &mut ordering));
        notices.extend(unreadable.into_iter().map(|OrderRuleError { source, message }| match &source {
            OrderRuleSource::Binding(key, at) => {
                Problem { at: at.clone(), ..Problem::new(format!("{object}: {key} is ignored: {message}")) }
            }
            _ => Problem::new(format!("{object}: {source} of the live object is ignored: {message}")),
        }));
        orderings.insert(index, ordering);
    }
    let member = |Removal { object, facts, .. }: &Removal| waves::WaveMember {
        ranked: waves::of_deleted(&directives::of_facts(facts)),
        is_foundation: is_foundation(object),
    };
    let deleted = removals.iter().enumerate().filter(|(_, removal)| removal.action == Action::Delete);
    let members = deleted.map(|(index, removal)| (index, member(removal))).collect();
    waves::add(&members, &mut orderings, RuleOperation::Delete);
    (orderings, notices)
}

fn is_foundation(object: &ObjectRef) -> bool {
    object.is_namespace() || object.is_crd()
}

/// An object with its ordering.
struct GraphObject<'a> {
    object: &'a ObjectRef,
    /// The place of its manifest; `None` for an object that is deleted.
    origin: Option<&'a ManifestOrigin>,
    /// Whether there is a live object.
    is_live: bool,
    ordering: &'a Ordering,
}

/// Rules that require a deletion before something else is written.
fn turned_round(written: &[GraphObject<'_>], deleted: &[GraphObject<'_>]) -> Vec<Problem> {
    let sides = [
        (written, RuleOperation::Upsert, OrderSide::After, deleted, RuleOperation::Delete),
        (deleted, RuleOperation::Delete, OrderSide::Before, written, RuleOperation::Upsert),
    ];
    let mut problems = Vec::new();
    for (those, operation, side, others, other) in sides {
        for placed in those {
            let is_about = |rule: &&OrderRule| (rule.operation, rule.side, rule.other) == (operation, side, other);
            for rule in placed.ordering.rules.iter().filter(is_about) {
                let Some(member) = others.iter().find(|other| other.ordering.groups.contains(&rule.group)) else {
                    continue;
                };
                let (first, then) = match operation {
                    RuleOperation::Upsert => (member.object, placed.object),
                    RuleOperation::Delete => (placed.object, member.object),
                };
                let message = format!(
                    "{}: {}: {first} would have to be deleted before {then} is written, and gantry deletes last",
                    placed.object, rule.source
                );
                let (deleted, is_live) = match operation {
                    RuleOperation::Upsert => (member.object, placed.is_live),
                    RuleOperation::Delete => (placed.object, member.is_live),
                };
                let problem = Problem::new(message).help(in_two_deploys(deleted, then, is_live));
                problems.push(Problem { at: place(&rule.source, placed.origin), ..problem });
            }
        }
    }
    problems
}

/// How to delete an object before another one is written. If the other one is live, leaving it out of the manifests
/// would delete it, too.
fn in_two_deploys(deleted: &ObjectRef, written: &ObjectRef, is_live: bool) -> String {
    let first = match is_live {
        false => format!("first without {written}, which deletes {deleted}, then with all manifests"),
        true => format!(
            "first with the manifest of {written} as it was deployed last, which deletes {deleted}, then with the new \
             one; if the manifests left it out, it would be deleted, too"
        ),
    };
    format!("deploy twice: {first}. If the order does not matter, deploy first with --prune=no, or remove the rule")
}

/// Rules about groups without any object of the manifests. Usually the name is misspelt.
fn unmatched(objects: &[NamespacedManifest<'_>], orderings: &BTreeMap<usize, Ordering>) -> Vec<Problem> {
    let groups: BTreeSet<&OrderGroup> = orderings.values().flat_map(|ordering| &ordering.groups).collect();
    let mut reported = BTreeSet::new();
    let mut notices = Vec::new();
    for (index, ordering) in orderings {
        let Manifest { object, origin, .. } = objects[*index].manifest;
        for rule in &ordering.rules {
            // The group may have only objects that are deleted.
            let is_here = rule.operation == rule.other;
            // Rules of a configuration may be about other manifests; those about kapp's groups by kind always are.
            let is_by_kind = matches!(&rule.group, OrderGroup::Named(name) if name.starts_with(BY_KIND));
            let is_general = matches!(rule.source, OrderRuleSource::Binding(..)) && (rule.is_optional || is_by_kind);
            let is_here = is_here && !is_general;
            if is_here && !groups.contains(&rule.group) && reported.insert(&rule.group) {
                let message = match &rule.group {
                    OrderGroup::Named(_) => {
                        format!("{object}: {}: no object of the manifests is in {}", rule.source, rule.group)
                    }
                    _ => format!("{object}: {}: the manifests have no {}", rule.source, rule.group),
                };
                let problem = Problem { at: place(&rule.source, Some(origin)), ..Problem::new(message) };
                notices.push(problem.help("the rule has no effect; check the name"));
            }
        }
    }
    notices
}

fn problem_of(
    object: &ObjectRef,
    origin: &ManifestOrigin,
    OrderRuleError { source, message }: OrderRuleError,
) -> Problem {
    let at = place(&source, Some(origin));
    Problem { at, ..Problem::new(format!("{object}: {source}: {message}")) }
}

/// The place of a rule of an object with this manifest.
fn place(source: &OrderRuleSource, origin: Option<&ManifestOrigin>) -> Option<Location> {
    match source {
        OrderRuleSource::Nowhere => None,
        OrderRuleSource::Annotation(key) => Some(location(origin?, key)),
        OrderRuleSource::Binding(_, at) => at.clone(),
    }
}

fn location(origin: &ManifestOrigin, key: &str) -> Location {
    Spans::parse(origin).locate(&[Step::from("metadata"), "annotations".into(), key.into()]).location
}

fn problem<'a>(disorder: &Disorder, of: impl Fn(usize) -> (&'a ObjectRef, Option<&'a ManifestOrigin>)) -> Problem {
    let edges = match disorder {
        Disorder::Cycle(edges) => edges,
        Disorder::TooMany(most) => {
            return Problem::new(format!("the change groups and rules order more than {most} pairs of objects"))
                .help("use fewer different groups: {name} in the name of a group creates one for each object");
        }
    };
    let place = |edge: &ObjectRuleEdge| place(&edge.source, of(edge.of).1);
    let cycle: Vec<String> = edges
        .iter()
        .map(|edge| {
            let (later, earlier) = (of(edge.later).0, of(edge.earlier).0);
            let place = place(edge).map(|at| format!(" ({}:{})", at.file, at.line)).unwrap_or_default();
            format!("{later} comes after {earlier}{place}")
        })
        .collect();
    let problem = Problem::new(format!("the order of the objects has a cycle: {}", cycle.join(", ")))
        .help("change or remove one of these rules");
    match edges.first().and_then(place) {
        Some(at) => problem.at(at),
        None => problem,
    }
}
