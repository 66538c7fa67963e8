//! The commands of the flow.

use crate::cli::{DeployArgs, FlowArgs};
use crate::run::diffs;
use crate::run::history::WantedRevision;
use gantry_core::options::DiffKind;

/// Whose work is foretold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// What a deploy would do.
    Gantry,
    /// What Helm would do: `--as-helm`.
    Helm,
}

impl Actor {
    /// The one that the flag names.
    pub fn named(as_helm: bool) -> Self {
        if as_helm { Actor::Helm } else { Actor::Gantry }
    }
}

/// Which command runs the flow.
#[derive(Clone, Copy)]
pub enum Goal<'a> {
    Deploy(&'a DeployArgs),
    /// The deploy of no manifests that deletes an app.
    Delete(&'a DeployArgs),
    /// The deploy of the manifests of a revision.
    Rollback(&'a DeployArgs, WantedRevision),
    Check(Actor),
    /// With a revision, of its manifests.
    Diff(Option<u32>, Actor),
}

impl<'a> Goal<'a> {
    pub fn deploy(self) -> Option<&'a DeployArgs> {
        match self {
            Goal::Deploy(deploy) | Goal::Delete(deploy) | Goal::Rollback(deploy, _) => Some(deploy),
            Goal::Check(_) | Goal::Diff(..) => None,
        }
    }

    /// The revision whose manifests are used instead of files.
    pub fn revision(self) -> Option<WantedRevision> {
        match self {
            Goal::Rollback(_, wanted) => Some(wanted),
            Goal::Diff(to, _) => to.map(Some),
            Goal::Deploy(_) | Goal::Delete(_) | Goal::Check(_) => None,
        }
    }

    /// Whether it is foretold what Helm would do.
    pub fn is_as_helm(self) -> bool {
        matches!(self, Goal::Check(Actor::Helm) | Goal::Diff(_, Actor::Helm))
    }

    /// The diffs to show.
    pub fn diffs(self, args: &FlowArgs) -> Option<diffs::DiffRequest> {
        let always = matches!(self, Goal::Diff(..)).then_some(DiffKind::Changes);
        args.diff.or(always).map(|kind| diffs::DiffRequest { kind, all: args.output.verbose > 0 })
    }
}
