//! Targets that stand for a cluster and are never written to: a commit, a chart, a Helm release. The meaning of their
//! manifests is the same as in a folder ([`super::dir`]).

use super::dir::FolderState;
use super::git::commit_files::CommitFiles;
use gantry_core::problem::Problem;

/// A target that is never written to, because its manifests are what Git or Helm has recorded or renders.
pub struct RecordedTarget {
    /// `git: main (1a2b3c4d5e6f)`, `chart: web-1.0.0.tgz`, `helm: prod/shop revision 3 (web 1.0.0)`
    pub(super) description: String,
    /// The name for messages.
    pub(super) name: String,
    /// The namespace of objects whose manifest names none; `None` for `default`.
    pub(super) namespace: Option<String>,
    /// What the manifests say.
    pub(super) state: FolderState,
    /// Notices about how the manifests were read.
    pub(super) notices: Vec<Problem>,
    /// The commit, if it is one.
    pub(super) commit: Option<CommitFiles>,
}

impl RecordedTarget {
    /// Why nothing can be written.
    pub(super) fn read_only(&self) -> Problem {
        Problem::new(format!("a {} is read-only", self.state.holder().noun()))
            .help("deploy to a cluster, or to a folder: --target dir:PATH")
    }
}
