//! What the rules about nodes look at: a schema node beside its successor.

use super::json::{Json, Map};
use crate::resource::Step;
use gantry_schema::keywords;

/// What became of a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transition {
    Added,
    Changed,
    Removed,
}

/// A keyword that does not mean the same on both sides of a node.
#[derive(Debug, Clone, Copy)]
pub struct Change<'n, 'a> {
    pub keyword: &'n str,
    pub live: Option<&'n Json<'a>>,
    pub desired: Option<&'n Json<'a>>,
}

impl Change<'_, '_> {
    pub fn transition(&self) -> Transition {
        match (self.live, self.desired) {
            (None, _) => Transition::Added,
            (_, None) => Transition::Removed,
            _ => Transition::Changed,
        }
    }
}

/// Where a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the CRD.
    pub crd: String,
    pub version: String,
    /// `^.spec.pollInterval`
    pub path: String,
    /// From the root of the desired CRD to this node of its schema.
    pub steps: Vec<Step>,
}

impl Place {
    /// The field as a person names it: `spec.pollInterval`.
    pub fn field(&self) -> &str {
        self.path.strip_prefix("^.").unwrap_or("the object itself")
    }
}

/// A schema node that both CRDs have, where something of its own differs.
#[derive(Debug)]
pub struct NodePair<'n, 'a> {
    pub place: &'n Place,
    pub live: &'n Map<'a>,
    pub desired: &'n Map<'a>,
    /// Sorted by keyword. Nodes below are not looked at: each is a pair of its own.
    pub changes: &'n [Change<'n, 'a>],
    /// Those that no rule claims but the one for unknown changes.
    pub unclaimed: &'n [&'n Change<'n, 'a>],
}

impl<'n, 'a> NodePair<'n, 'a> {
    pub fn change(&self, keyword: &str) -> Option<&'n Change<'n, 'a>> {
        self.changes.iter().find(|change| change.keyword == keyword)
    }

    /// The desired node's value of a keyword, unless it means nothing.
    pub fn desired(&self, keyword: &str) -> Option<&'n Json<'a>> {
        keywords::get(self.desired, keyword)
    }
}

/// A schema node of the live CRD that the desired one lacks.
#[derive(Debug)]
pub struct RemovedNode<'n, 'a> {
    pub place: &'n Place,
    pub live: &'n Map<'a>,
}

/// A schema node of the desired CRD of which the live one says nothing, and keeps what is there.
#[derive(Debug)]
pub struct AddedNode<'n, 'a> {
    pub place: &'n Place,
    pub desired: &'n Map<'a>,
}
