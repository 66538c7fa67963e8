//! The input of the rules about schema nodes: a live node paired with the desired one.

use super::json::{Json, JsonMap};
use gantry_core::resource::Step;
use gantry_schema::keywords;

/// How a keyword changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transition {
    Added,
    Changed,
    Removed,
}

/// A keyword of a node whose meaning differs between live and desired.
#[derive(Debug, Clone, Copy)]
pub struct KeywordDifference<'n, 'a> {
    pub keyword: &'n str,
    pub live: Option<&'n Json<'a>>,
    pub desired: Option<&'n Json<'a>>,
}

impl KeywordDifference<'_, '_> {
    pub fn transition(&self) -> Transition {
        match (self.live, self.desired) {
            (None, _) => Transition::Added,
            (_, None) => Transition::Removed,
            _ => Transition::Changed,
        }
    }
}

/// The place of a schema node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaNodePlace {
    /// The name of the CRD.
    pub crd: String,
    pub version: String,
    /// `^.spec.pollInterval`
    pub path: String,
    /// From the root of the desired CRD to this node of its schema.
    pub steps: Vec<Step>,
}

impl SchemaNodePlace {
    /// The field for messages: `spec.pollInterval`.
    pub fn field(&self) -> &str {
        self.path.strip_prefix("^.").unwrap_or("the object itself")
    }
}

/// A schema node that both CRDs have, and whose own keywords differ.
#[derive(Debug)]
pub struct NodePair<'n, 'a> {
    pub place: &'n SchemaNodePlace,
    pub live: &'n JsonMap<'a>,
    pub desired: &'n JsonMap<'a>,
    /// Sorted by keyword. Child nodes are not included: each is a pair of its own.
    pub changes: &'n [KeywordDifference<'n, 'a>],
    /// The changes that no rule claims, except the rule for unknown changes.
    pub unclaimed: &'n [&'n KeywordDifference<'n, 'a>],
}

impl<'n, 'a> NodePair<'n, 'a> {
    pub fn change(&self, keyword: &str) -> Option<&'n KeywordDifference<'n, 'a>> {
        self.changes.iter().find(|change| change.keyword == keyword)
    }

    /// The desired node's value of a keyword, unless it has no effect.
    pub fn desired(&self, keyword: &str) -> Option<&'n Json<'a>> {
        keywords::get(self.desired, keyword)
    }
}

/// A schema node of the live CRD that the desired one lacks.
#[derive(Debug)]
pub struct RemovedNode<'n, 'a> {
    pub place: &'n SchemaNodePlace,
    /// The name of the field, which can contain points.
    pub name: &'n str,
    pub live: &'n JsonMap<'a>,
}

/// A schema node of the desired CRD that the live one does not describe, but whose values it keeps.
#[derive(Debug)]
pub struct AddedNode<'n, 'a> {
    pub place: &'n SchemaNodePlace,
    /// The name of the field, which can contain points.
    pub name: &'n str,
    pub desired: &'n JsonMap<'a>,
}
