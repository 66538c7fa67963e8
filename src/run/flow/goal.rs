//! The commands of the flow.

use crate::cli::{DeployArgs, FlowArgs};
use crate::run::diffs;
use crate::run::history::WantedRevision;
use gantry_core::options::DiffKind;

/// Which command runs the flow.
#[derive(Clone, Copy)]
pub enum Goal<'a> {
    Deploy(&'a DeployArgs),
    /// The deploy of no manifests that deletes an app.
    Delete(&'a DeployArgs),
    /// The deploy of the manifests of a revision.
    Rollback(&'a DeployArgs, WantedRevision),
    Check,
    /// With a revision, of its manifests.
    Diff(Option<u32>),
}

impl<'a> Goal<'a> {
    pub fn deploy(self) -> Option<&'a DeployArgs> {
        match self {
            Goal::Deploy(deploy) | Goal::Delete(deploy) | Goal::Rollback(deploy, _) => Some(deploy),
            Goal::Check | Goal::Diff(_) => None,
        }
    }

    /// The revision whose manifests are used instead of files.
    pub fn revision(self) -> Option<WantedRevision> {
        match self {
            Goal::Rollback(_, wanted) => Some(wanted),
            Goal::Diff(to) => to.map(Some),
            Goal::Deploy(_) | Goal::Delete(_) | Goal::Check => None,
        }
    }

    /// The diffs to show.
    pub fn diffs(self, args: &FlowArgs) -> Option<diffs::DiffRequest> {
        let always = matches!(self, Goal::Diff(_)).then_some(DiffKind::Changes);
        args.diff.or(always).map(|kind| diffs::DiffRequest { kind, all: args.output.verbose > 0 })
    }
}
