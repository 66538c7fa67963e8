//! The result of a walk, and the position in it.

use std::rc::Rc;

use serde_json::Value;

use crate::cel::Counterexample;
use crate::constraints::ValueConstraints;
use crate::keywords as kw;

/// The step from a value to a value inside it.
#[derive(Clone, Debug)]
pub enum ValueStep {
    Field(String),
    /// Any key that no property describes; the name is a representative.
    Entry(String),
    Item,
}

/// The path from a node up to the root, with the source's constraints on each enclosing value.
#[derive(Clone, Debug)]
pub struct ValuePath<'s> {
    /// The constraints on the enclosing value; the fields of one value share them.
    pub constraints: Rc<ValueConstraints<'s>>,
    /// The target's schema of the enclosing value.
    pub target: &'s Value,
    pub step: ValueStep,
    pub above: Option<Rc<ValuePath<'s>>>,
}

/// What is expected to happen to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpectedEffect {
    Pruned,
    Refused,
    Defaulted,
}

/// The change that something comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeOrigin {
    /// Any change of the node.
    Node,
    /// The changes of these keywords of the node.
    Keywords(Vec<String>),
    /// Changes of other nodes: a keyword that did not change sees other values.
    OtherNodes,
}

/// Something that is not proven: values that the target may refuse, prune or default differently.
#[derive(Clone, Debug)]
pub struct Obligation<'s> {
    /// The node, such as `^.spec.x`.
    pub path: String,
    pub reason: String,
    pub effect: ExpectedEffect,
    /// Values at the end of `value_path`, each with an old value if only an update shows the difference.
    pub values: Vec<Counterexample>,
    pub value_path: Option<Rc<ValuePath<'s>>>,
    /// The schema that refuses the values. None: any value at this place will do.
    pub refused: Option<Value>,
    /// Why other values may exist. None: if no whole object can contain the values found, nothing is left to prove.
    pub open: Option<String>,
    pub origin: ChangeOrigin,
}

/// A node whose own keywords differ.
#[derive(Debug)]
pub struct Changed {
    pub path: String,
    /// What differs, in words.
    pub words: String,
    /// The keywords that differ; empty if the node exists on one side only.
    pub keywords: Vec<String>,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub struct Walked<'s> {
    pub obligations: Vec<Obligation<'s>>,
    pub changed: Vec<Changed>,
    /// The paths of nodes, and the keywords whose change alone accepts more: see [`walk_back`](super::walk_back).
    pub widening: Vec<(String, String)>,
    /// Where rules were added or changed, and in which way: all rules of an object share a limit on their cost.
    pub costs: Vec<(WalkPosition<'s>, String)>,
    /// Changes that are proven safe but worth reporting.
    pub notes: Vec<(String, String)>,
    /// Nodes where the source accepts anything and whose parts were not walked: see [`walk`].
    pub unwalked: Vec<Unwalked<'s>>,
    /// Whether nodes were left out because the steps ran out.
    pub is_cut: bool,
}

/// A node whose parts were not compared.
#[derive(Debug)]
pub struct Unwalked<'s> {
    pub path: String,
    pub(super) source: ValueConstraints<'s>,
    pub(super) structure: &'s Value,
    pub(super) target: &'s Value,
    pub(super) place: WalkPosition<'s>,
}

/// The position of a walk.
#[derive(Clone, Debug)]
pub struct WalkPosition<'s> {
    pub path: String,
    pub value_path: Option<Rc<ValuePath<'s>>>,
    /// Whether unknown fields are kept because the enclosing list says so.
    pub source_keeps: bool,
    pub target_keeps: bool,
    pub is_item: bool,
    pub is_root: bool,
    /// Whether `path` is that of a node above, because the source has no node of its own here.
    pub is_below_its_path: bool,
}

impl WalkPosition<'_> {
    /// Whether source and target keep unknown fields of the value at this position, which these two nodes describe.
    pub fn keep_unknown(&self, structure: &Value, target: &Value) -> (bool, bool) {
        (self.source_keeps || kw::preserves(structure), self.target_keeps || kw::preserves(target))
    }
}
