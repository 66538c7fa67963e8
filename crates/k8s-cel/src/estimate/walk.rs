//! Traverses an expression in the server's order and sums up the cost.
//!
//! The pending work is kept in a list instead of on the stack: chains of operators nest as deeply as they are long.

use std::collections::HashMap;

use super::call;
use super::model::CostModel;
use super::place::{INDICES, ITEMS, KEYS, SharedFieldPath, VALUES};
use super::size::Size;
use super::sketch::{ACCUMULATOR, Id, Loop, Of, Sketch, SketchNode};
use crate::problem::{ExpressionError, ExpressionResult};
use crate::release::KubernetesRelease;
use crate::types::CelType;
use crate::typing::{Ty, TypeBindings};

/// The limit for visited nodes plus inspected steps of their places.
const MAX_STEPS: usize = 5_000_000;

const READ_COST: u64 = 1;
const LIST_COST: u64 = 10;
const MAP_COST: u64 = 30;

/// The maximum cost of the expression for a value of type `of`.
pub(crate) fn estimate(
    sketch: &Sketch,
    bindings: &TypeBindings,
    of: &CelType,
    release: KubernetesRelease,
) -> ExpressionResult<u64> {
    if sketch.is_too_large() {
        return Err(ExpressionError::limit("the expanded expression is too large for a cost estimate".to_owned()));
    }
    let Some(root) = sketch.nodes.len().checked_sub(1) else { return Ok(0) };
    let mut walk = EstimateWalk {
        model: CostModel::of_release(release),
        nodes: &sketch.nodes,
        bindings,
        of,
        notes: vec![Note::default(); sketch.nodes.len()],
        variables: HashMap::new(),
        seen: Vec::new(),
        steps: 0,
    };
    let mut next = vec![EstimateTask::Enter(root)];
    while let Some(work) = next.pop() {
        walk.steps += 1;
        if walk.steps > MAX_STEPS {
            return Err(ExpressionError::limit("estimating the cost of the expression takes too long".to_owned()));
        }
        walk.run(work, &mut next);
    }
    Ok(walk.notes[root].cost)
}

/// The sizes of the keys and values in a list or map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entries {
    is_list: bool,
    key: Size,
    pub value: Size,
}

impl Entries {
    pub fn or(this: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (this, other) = (this?, other?);
        Some(Entries { is_list: this.is_list, key: this.key.or(other.key), value: this.value.or(other.value) })
    }
}

/// The estimate for a node.
#[derive(Debug, Clone, Default)]
struct Note<'e> {
    cost: u64,
    place: Option<SharedFieldPath<'e>>,
    size: Option<Size>,
    entries: Option<Entries>,
}

/// A variable of a macro.
#[derive(Debug)]
struct Variable<'e> {
    place: Option<SharedFieldPath<'e>>,
    /// In older servers, the last step to the place of an element, which each use of the variable adds again.
    step: Option<&'static str>,
    size: Option<Size>,
    entries: Option<Entries>,
}

/// An argument, as it was known when it was visited.
#[derive(Debug)]
pub(super) struct VisitedArgument<'e> {
    pub id: Id,
    pub place: Option<SharedFieldPath<'e>>,
    pub size: Option<Size>,
}

#[derive(Debug)]
enum EstimateTask {
    Enter(Id),
    /// Completes a node after its descendants.
    Leave(Id),
    /// Records the current estimate for an argument.
    See(Id),
    /// Begins the scope of a loop's variables, or ends that of its element variables.
    Begin(Id),
    EndElements(Id),
}

pub(super) struct EstimateWalk<'s, 'e> {
    pub model: CostModel,
    pub nodes: &'s [SketchNode<'e>],
    bindings: &'s TypeBindings,
    of: &'s CelType,
    notes: Vec<Note<'e>>,
    variables: HashMap<&'e str, Vec<Variable<'e>>>,
    seen: Vec<VisitedArgument<'e>>,
    steps: usize,
}

impl<'e> EstimateWalk<'_, 'e> {
    fn run(&mut self, work: EstimateTask, next: &mut Vec<EstimateTask>) {
        match work {
            EstimateTask::Enter(id) => self.enter(id, next),
            EstimateTask::Leave(id) => self.leave(id),
            EstimateTask::See(id) => {
                let (place, size) = (self.place(id), self.size(id));
                self.seen.push(VisitedArgument { id, place, size });
            }
            EstimateTask::Begin(id) => self.begin(id),
            EstimateTask::EndElements(id) => {
                if let Of::Loop(of) = &self.nodes[id].of {
                    let (first, second) = of.variables;
                    self.end_variable(first);
                    // Older servers do not know the second variable.
                    let second = second.filter(|_| self.model.follows_values);
                    second.into_iter().for_each(|second| self.end_variable(second));
                }
            }
        }
    }

    /// Pushes the work for a node, in reverse order.
    fn enter(&mut self, id: Id, next: &mut Vec<EstimateTask>) {
        next.push(EstimateTask::Leave(id));
        let nodes = self.nodes;
        match &nodes[id].of {
            Of::Constant { .. } | Of::Name(_) => {}
            Of::Field { operand, .. } | Of::Has(operand) => next.push(EstimateTask::Enter(*operand)),
            Of::Logic(operands) => next.extend(operands.iter().rev().map(|id| EstimateTask::Enter(*id))),
            Of::List(items) => {
                next.extend(items.iter().rev().flat_map(|id| [EstimateTask::See(*id), EstimateTask::Enter(*id)]))
            }
            Of::Map(entries) => next.extend(entries.iter().rev().flat_map(|(key, value)| {
                [
                    EstimateTask::See(*value),
                    EstimateTask::See(*key),
                    EstimateTask::Enter(*value),
                    EstimateTask::Enter(*key),
                ]
            })),
            Of::Call { args, is_member, .. } => {
                // The target comes after the arguments.
                let (target, rest) = args.split_at(usize::from(*is_member).min(args.len()));
                next.extend(
                    target
                        .iter()
                        .chain(rest.iter().rev())
                        .flat_map(|id| [EstimateTask::See(*id), EstimateTask::Enter(*id)]),
                );
            }
            Of::Bind { value, result, .. } => {
                next.extend([EstimateTask::Enter(*result), EstimateTask::Begin(id), EstimateTask::Enter(*value)]);
            }
            Of::Loop(of) => next.extend([
                EstimateTask::Enter(of.result),
                EstimateTask::EndElements(id),
                EstimateTask::Enter(of.step),
                EstimateTask::Enter(of.condition),
                EstimateTask::Begin(id),
                EstimateTask::Enter(of.start),
                EstimateTask::Enter(of.range),
            ]),
        }
    }

    fn leave(&mut self, id: Id) {
        let nodes = self.nodes;
        let cost = match &nodes[id].of {
            Of::Constant { .. } => 0,
            Of::Name(name) => {
                let place = match self.variable(name) {
                    Some(Variable { place: Some(range), step: Some(step), .. }) => {
                        let (range, step) = (range.clone(), *step);
                        Some(self.then(&range, step))
                    }
                    Some(variable) => variable.place.clone(),
                    None if !self.model.follows_values && *name == ACCUMULATOR => None,
                    None => Some(SharedFieldPath::of_variable(name)),
                };
                self.notes[id].place = place;
                READ_COST
            }
            Of::Field { operand, name } => {
                let place = self.place(*operand).unwrap_or_default();
                self.notes[id].place = Some(self.then(&place, name));
                let reads = matches!(self.ty(*operand), Ty::Object(_) | Ty::Of("map", _));
                self.notes[*operand].cost.saturating_add(if reads { READ_COST } else { 0 })
            }
            Of::Has(operand) => self.notes[*operand].cost.saturating_add(u64::from(self.model.has_costs)),
            Of::Logic(operands) => self.cost_of(operands),
            Of::List(items) => {
                let seen = self.seen.split_off(self.seen.len() - items.len());
                let value = all_of(seen.iter());
                self.set_entries(id, Some(Entries { is_list: true, key: Size::fixed(1), value }));
                self.cost_of(items).saturating_add(LIST_COST)
            }
            Of::Map(entries) => {
                let seen = self.seen.split_off(self.seen.len() - 2 * entries.len());
                let (key, value) = (all_of(seen.iter().step_by(2)), all_of(seen.iter().skip(1).step_by(2)));
                self.set_entries(id, Some(Entries { is_list: false, key, value }));
                entries.iter().fold(MAP_COST, |cost, (key, value)| cost.saturating_add(self.cost_of(&[*key, *value])))
            }
            Of::Call { args, is_member, overloads } => {
                let mut seen = self.seen.split_off(self.seen.len() - args.len());
                let target = if *is_member { seen.pop() } else { None };
                call::cost(self, id, target.as_ref(), &seen, overloads)
            }
            Of::Bind { name, value, result } => {
                if self.model.follows_values {
                    self.end_variable(name);
                } else {
                    // The size of the empty list that the value is bound over.
                    self.set_size(id, self.model.loops_have_size.then_some(Size::fixed(0)));
                    return self.notes[id].cost = self.cost_of(&[*value, *result]).saturating_add(LIST_COST);
                }
                let (size, entries) = (self.size(*result), self.entries(*result));
                self.set_size(id, size);
                self.set_entries(id, entries);
                // The server expands a bound value to a loop over an empty list.
                self.cost_of(&[*value, *result]).saturating_add(LIST_COST)
            }
            Of::Loop(of) => self.leave_loop(id, of),
        };
        self.notes[id].cost = cost;
    }

    fn begin(&mut self, id: Id) {
        let nodes = self.nodes;
        let (name, value) = match &nodes[id].of {
            Of::Bind { name, value, .. } => (*name, *value),
            Of::Loop(of) => (ACCUMULATOR, of.start),
            _ => return,
        };
        if self.model.follows_values {
            let (entries, place) = (self.entries(value), self.place(value));
            let size = self.size(value);
            self.variables.entry(name).or_default().push(Variable { place, step: None, size, entries });
        }
        let Of::Loop(of) = &nodes[id].of else { return };
        let entries = self.entries(of.range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.ty(of.range), Ty::Of("list", _)),
        };
        let key = (entries.map(|of| of.key), if is_list { INDICES } else { KEYS });
        let value = (entries.map(|of| of.value), if is_list { ITEMS } else { VALUES });
        match of.variables {
            (first, Some(second)) if self.model.follows_values => {
                self.declare_element(first, of.range, key);
                self.declare_element(second, of.range, value);
            }
            (first, _) => self.declare_element(first, of.range, if is_list { value } else { key }),
        }
    }

    /// Declares a variable for the elements of `range`.
    fn declare_element(&mut self, name: &'e str, range: Id, (size, step): (Option<Size>, &'static str)) {
        let of_range = self.place(range).unwrap_or_default();
        let variable = if self.model.follows_values {
            Variable { place: Some(self.then(&of_range, step)), step: None, size, entries: None }
        } else {
            let place = matches!(self.ty(range), Ty::Of("list" | "map", _)).then_some(of_range);
            Variable { place, step: Some(step), size: None, entries: None }
        };
        self.variables.entry(name).or_default().push(variable);
    }

    fn leave_loop(&mut self, id: Id, of: &Loop) -> u64 {
        if self.model.follows_values {
            self.end_variable(ACCUMULATOR);
        }
        let times = self.size(of.range).unwrap_or(Size::UNKNOWN);
        let each = self.cost_of(&[of.step, of.condition]);
        let nodes = self.nodes;
        match &nodes[of.start].of {
            _ if !self.model.follows_values => self.set_size(id, self.model.loops_have_size.then_some(times)),
            Of::List(_) | Of::Map(_) => {
                self.set_size(id, Some(times));
                let entries = self.entries(of.step);
                self.set_entries(id, entries);
            }
            _ => {
                let size = self.size(of.start);
                self.set_size(id, size);
            }
        }
        self.cost_of(&[of.range, of.start, of.result]).saturating_add(times.max.saturating_mul(each))
    }

    fn end_variable(&mut self, name: &str) {
        if let Some(variables) = self.variables.get_mut(name) {
            variables.pop();
        }
    }

    fn variable(&self, name: &str) -> Option<&Variable<'e>> {
        self.variables.get(name)?.last()
    }

    /// The macro variable that a node refers to.
    fn as_variable(&self, id: Id) -> Option<&Variable<'e>> {
        match self.nodes[id].of {
            Of::Name(name) => self.variable(name),
            _ => None,
        }
    }

    fn cost_of(&self, ids: &[Id]) -> u64 {
        ids.iter().fold(0, |cost, id| cost.saturating_add(self.notes[*id].cost))
    }

    pub fn ty(&self, id: Id) -> &Ty {
        self.head(&self.nodes[id].ty)
    }

    pub fn head<'t>(&'t self, ty: &'t Ty) -> &'t Ty {
        self.bindings.head(ty)
    }

    pub fn place(&self, id: Id) -> Option<SharedFieldPath<'e>> {
        match self.as_variable(id) {
            Some(variable) if self.model.follows_values => variable.place.clone(),
            _ => self.notes[id].place.clone(),
        }
    }

    pub fn then(&mut self, place: &SharedFieldPath<'e>, step: &'e str) -> SharedFieldPath<'e> {
        self.steps += place.len();
        place.then(step)
    }

    pub fn set_place(&mut self, id: Id, place: SharedFieldPath<'e>) {
        self.notes[id].place = Some(place);
    }

    /// The maximum size that the schema allows for a value.
    pub fn size_at(&mut self, place: Option<&SharedFieldPath<'e>>) -> Option<Size> {
        let place = place?;
        self.steps += place.len();
        place.size_in(self.of)
    }

    pub fn size(&mut self, id: Id) -> Option<Size> {
        if let Some(size) = self.notes[id].size {
            return Some(size);
        }
        match &self.nodes[id].of {
            Of::Constant { size, .. } => return Some(Size::fixed(*size)),
            Of::List(items) => return Some(Size::fixed(items.len() as u64)),
            Of::Map(entries) => return Some(Size::fixed(entries.len() as u64)),
            _ => {}
        }
        let place = self.place(id);
        if let Some(size) = self.size_at(place.as_ref()) {
            if self.model.follows_values {
                self.notes[id].size = Some(size);
            }
            return Some(size);
        }
        let is_optional = matches!(self.ty(id), Ty::Of("optional_type", _));
        if is_scalar(self.ty(id), self.bindings) && (self.model.follows_values || !is_optional) {
            return Some(Size::fixed(1));
        }
        self.as_variable(id).and_then(|variable| variable.size)
    }

    pub fn set_size(&mut self, id: Id, size: Option<Size>) {
        self.notes[id].size = size.or(self.notes[id].size);
    }

    pub fn entries(&self, id: Id) -> Option<Entries> {
        self.notes[id].entries.or_else(|| self.as_variable(id).and_then(|variable| variable.entries))
    }

    pub fn set_entries(&mut self, id: Id, entries: Option<Entries>) {
        if self.model.follows_values {
            self.notes[id].entries = entries.or(self.notes[id].entries);
        }
    }

    pub fn cost(&self, id: Id) -> u64 {
        self.notes[id].cost
    }
}

fn all_of<'a, 'e: 'a>(mut seen: impl ExactSizeIterator<Item = &'a VisitedArgument<'e>>) -> Size {
    match seen.len() {
        0 => Size::fixed(0),
        _ => seen
            .try_fold(Size::NOTHING, |all, seen| Some(all.or(seen.size.unwrap_or(Size::UNKNOWN))))
            .unwrap_or(Size::UNKNOWN),
    }
}

/// Whether all values of the type have the same size.
fn is_scalar(ty: &Ty, bindings: &TypeBindings) -> bool {
    match ty {
        Ty::Scalar(name) => !matches!(*name, "string" | "bytes"),
        Ty::Of("google.protobuf.Duration" | "google.protobuf.Timestamp", _) => true,
        Ty::Of("optional_type", of) => of.first().is_some_and(|of| is_scalar(bindings.head(of), bindings)),
        _ => false,
    }
}
