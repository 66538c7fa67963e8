//! A commit of a git repository whose manifests stand for what is live: nothing is ever written to it.
//!
//! Only files of the commit are read, as bytes: what is checked out does not matter, nor what git would make of a file on
//! the way there. They are read as those of a folder ([`super::dir`]), which decides what they mean.

mod blobs;
mod command;
mod paths;
mod repository;
mod tree;

use self::blobs::Blobs;
use self::repository::{Commit, Repository};
use self::tree::{Depth, Gathering};
use super::dir::State;
use crate::manifest::MAX_SOURCE_BYTES;
use crate::options::GitSpec;
use crate::problem::{Error, Problem, Result};

/// The files of a commit.
pub struct GitTarget {
    commit: Commit,
    /// As it was named.
    spec: GitSpec,
    state: State,
    notices: Vec<Problem>,
}

impl GitTarget {
    /// Reads the manifests of the commit below the path of the target, or below those of `manifests` (the arguments of
    /// `-f`). Paths that are not there yet are an empty cluster, which is said.
    pub async fn open(spec: &GitSpec, manifests: &[String]) -> Result<Self> {
        let repository = Repository::find().await.map_err(Error::failed)?;
        let wanted = paths::wanted(spec, manifests, repository.work_tree.as_deref())?;
        let commit = repository.commit(&spec.revision).await.map_err(Error::failed)?;
        let is_whole = wanted.iter().any(|wanted| wanted.path.is_empty());
        let paths: Vec<&[u8]> = wanted.iter().filter(|_| !is_whole).map(|wanted| wanted.path.as_slice()).collect();
        let entries = tree::list(&commit.hash, &paths, Depth::Files, b"").await.map_err(Error::failed)?;
        let mut gathering = Gathering::new(&commit, &repository);
        let gathered = &mut gathering;
        let read = command::converse(&Blobs::COMMAND, |stdin, stdout| {
            Box::pin(async move {
                let mut blobs = Blobs::new(stdin, stdout, MAX_SOURCE_BYTES)?;
                gathered.gather(&wanted, &entries, &mut blobs).await
            })
        });
        read.await.map_err(|failed| Error::failed(failed.problem()))?;
        let Gathering { sources, mut problems, notices, .. } = gathering;
        if !problems.is_empty() {
            problems.sort();
            return Err(Error::Failed(problems));
        }
        let state = State::of_commit(sources)?;
        Ok(GitTarget { commit, spec: spec.clone(), state, notices })
    }

    /// `git: main (1a2b3c4d5e6f)`
    pub fn describe(&self) -> String {
        let spec = self.spec.to_string();
        let spec = crate::manifest::shown(spec.strip_prefix("git:").unwrap_or(&spec));
        format!("git: {spec} ({})", self.commit.short())
    }

    /// What to know of how the commit was read.
    pub fn notices(&self) -> &[Problem] {
        &self.notices
    }

    /// What the files hold.
    pub(super) fn state(&self) -> &State {
        &self.state
    }
}

/// Why nothing is written.
pub(super) fn read_only() -> Problem {
    Problem::new("a commit cannot be changed").help("deploy to a cluster, or to a folder: --target dir:PATH")
}
