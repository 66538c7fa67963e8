//! What a deploy of an app changed, or was going to change.

use serde::{Deserialize, Serialize};

use crate::apply::Applied;
use crate::apply::delete::DeletionResults;
use crate::plan::{Action, Change, Plan};
use gantry_core::finding::ApplyResult;
use gantry_core::resource::ObjectRef;

/// Objects that a deploy changes in the same way.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangedObjects {
    /// How many there are.
    pub count: usize,
    /// The first of them.
    pub names: Vec<String>,
}

impl ChangedObjects {
    /// The most objects that are named.
    const NAMED: usize = 20;
    /// The longest name, in bytes, that is kept.
    const LONGEST: usize = 400;

    /// These objects.
    fn new<'o>(objects: impl Iterator<Item = &'o ObjectRef>) -> Self {
        let mut changed = ChangedObjects::default();
        for object in objects {
            changed.count += 1;
            if changed.names.len() < Self::NAMED {
                changed.names.push(gantry_core::text::cut(&object.to_string(), Self::LONGEST).into_owned());
            }
        }
        changed
    }

    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What a deploy was going to change, or has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RevisionChanges {
    /// Objects that did not exist.
    pub created: ChangedObjects,
    /// Objects that existed, also those that the app adopts.
    pub updated: ChangedObjects,
    /// Members that left the manifests.
    pub deleted: ChangedObjects,
    /// Those of them whose deletion began, and that were not gone when the deploy ended.
    #[serde(skip_serializing_if = "ChangedObjects::is_empty")]
    pub deleting: ChangedObjects,
    /// Objects of which it is unknown whether they were changed: the answer of the server was lost, or an object was
    /// deleted to be replaced and could not be created again.
    #[serde(skip_serializing_if = "ChangedObjects::is_empty")]
    pub unknown: ChangedObjects,
}

impl RevisionChanges {
    /// What a plan changes.
    pub fn planned(plan: &Plan) -> Self {
        let with = |actions: &[Action]| {
            let written = changes_to_write(plan).filter(|(_, change)| actions.contains(&change.action));
            ChangedObjects::new(written.map(|(_, change)| &*change.desired.object))
        };
        let deleted = plan.removals.iter().filter(|removal| removal.action == Action::Delete);
        RevisionChanges {
            created: with(&[Action::Create]),
            updated: with(&[Action::Update, Action::Adopt, Action::Replace]),
            deleted: ChangedObjects::new(deleted.map(|removal| &*removal.object)),
            ..RevisionChanges::default()
        }
    }

    /// What a deploy of the plan has changed.
    pub fn done(plan: &Plan, applied: &Applied, removed: &DeletionResults) -> Self {
        let is_applied = |index: &usize| applied.results[*index] == ApplyResult::Applied;
        let is_new = |index: &usize, change: &Change| {
            // Something else may have created it after the checks.
            change.action == Action::Create && !applied.were_there.contains(index)
        };
        let is_unknown = |index: &usize, change: &Change| {
            let may_be_half_done = change.replaces.is_some() && applied.results[*index] == ApplyResult::Failed;
            applied.unknown.contains(index) || may_be_half_done
        };
        let of_change = |fits: &dyn Fn(&usize, &Change) -> bool| {
            let fitting = changes_to_write(plan).filter(|(index, change)| fits(index, change));
            ChangedObjects::new(fitting.map(|(_, change)| &*change.desired.object))
        };
        let of_removal = |wanted: ApplyResult| {
            let deletions = plan.removals.iter().zip(&removed.results);
            let deletions =
                deletions.filter(|(removal, result)| removal.action == Action::Delete && **result == wanted);
            ChangedObjects::new(deletions.map(|(removal, _)| &*removal.object))
        };
        RevisionChanges {
            created: of_change(&|index, change| is_applied(index) && is_new(index, change)),
            updated: of_change(&|index, change| is_applied(index) && !is_new(index, change)),
            deleted: of_removal(ApplyResult::Deleted),
            deleting: of_removal(ApplyResult::Deleting),
            unknown: of_change(&is_unknown),
        }
    }

    /// Whether nothing was changed for sure.
    pub fn is_empty(&self) -> bool {
        let RevisionChanges { created, updated, deleted, deleting, unknown } = self;
        [created, updated, deleted, deleting, unknown].iter().all(|changed| changed.is_empty())
    }
}

/// The changes that are written, with their indices.
fn changes_to_write(plan: &Plan) -> impl Iterator<Item = (usize, &Change)> {
    plan.changes.iter().enumerate().filter(|(_, change)| change.is_written())
}
