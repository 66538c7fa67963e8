//! The result of a deploy.

use std::collections::{BTreeMap, BTreeSet};

use super::Reached;
use crate::app::last_applied::Mark;
use crate::plan::{Action, Change, Plan};
use gantry_core::finding::ApplyResult;
use gantry_core::problem::Problem;
use gantry_core::resource::LiveObject;

/// The result of a deploy.
#[derive(Debug, Default)]
pub struct Applied {
    /// The result of each change of the plan, in their order.
    pub results: Vec<ApplyResult>,
    /// The uids of the objects that were written, in the same order.
    pub uids: Vec<Option<String>>,
    /// See [`super::WrittenObject::mark`], by the index of the change.
    pub marks: BTreeMap<usize, Mark>,
    /// See [`super::WrittenObject::was_there`]: the indices of such changes.
    pub were_there: BTreeSet<usize>,
    /// The indices of changes of which it is unknown whether they were written.
    pub unknown: BTreeSet<usize>,
    /// Why the deploy stopped; empty if it did not.
    pub problems: Vec<Problem>,
    /// Objects that were written and then failed, or were not ready in time.
    pub unready: Vec<Problem>,
    /// The indices of the changes that these are about. Nothing waits for them any more.
    pub reported: BTreeSet<usize>,
    /// Notices about objects that were written.
    pub notices: Vec<Problem>,
    /// The objects that were awaited, by the index of their change.
    pub waits: BTreeMap<usize, Reached>,
    /// The user interrupted the deploy between two objects or during a wait.
    pub interrupted: bool,
}

impl Applied {
    /// The result of a deploy that wrote nothing.
    pub fn not_reached(plan: &Plan) -> Self {
        let result = |change: &Change| match change.action {
            _ if change.desired.bundle.is_some() => ApplyResult::LeftToOlm,
            Action::Unchanged => ApplyResult::Unchanged,
            Action::Skip => ApplyResult::Skipped,
            _ => ApplyResult::NotReached,
        };
        let results: Vec<ApplyResult> = plan.changes.iter().map(result).collect();
        Applied { uids: vec![None; results.len()], results, ..Applied::default() }
    }

    /// The result of a deploy that wrote at most one object, before all others: see [`super::ApplyOptions::written`].
    pub fn with_step_started(plan: &Plan, written: Option<&(usize, LiveObject)>) -> Self {
        let mut applied = Applied::not_reached(plan);
        if let Some((index, live)) = written {
            applied.results[*index] = ApplyResult::Applied;
            applied.uids[*index] = Some(live.uid.clone());
        }
        applied
    }
}
