//! The commands of the flow.

use crate::cli::{DeployArgs, FlowArgs};
use crate::run::diffs;
use gantry_core::options::DiffKind;

/// Which command runs the flow.
#[derive(Clone, Copy)]
pub enum Goal<'a> {
    Deploy(&'a DeployArgs),
    /// The deploy of no manifests that deletes an app.
    Delete(&'a DeployArgs),
    Check,
    Diff,
}

impl<'a> Goal<'a> {
    pub fn deploy(self) -> Option<&'a DeployArgs> {
        match self {
            Goal::Deploy(deploy) | Goal::Delete(deploy) => Some(deploy),
            Goal::Check | Goal::Diff => None,
        }
    }

    /// The diffs to show.
    pub fn diffs(self, args: &FlowArgs) -> Option<diffs::DiffRequest> {
        let always = matches!(self, Goal::Diff).then_some(DiffKind::Changes);
        args.diff.or(always).map(|kind| diffs::DiffRequest { kind, all: args.output.verbose > 0 })
    }
}
