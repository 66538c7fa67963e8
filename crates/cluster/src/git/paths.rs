//! Decides which paths of the commit are read.

use std::path::{Path, PathBuf};

use super::command;
use gantry_core::manifest::shown_text;
use gantry_core::options::GitSpec;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render::folder_of_kustomization;

/// A path relative to the root of the repository; empty for the root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryPath {
    pub path: Vec<u8>,
    /// The user wrote the path, so it can be misspelled. Otherwise it comes from manifests that exist.
    pub is_written_out: bool,
    /// An argument of `-k` named the path, or named no other.
    pub is_kustomization: bool,
}

/// The path of the target, or else the paths of the manifests.
///
/// # Errors
/// A manifest has no path in the repository, or nothing says what to read.
pub fn requested_paths(spec: &GitSpec, manifests: &[String], work_tree: Option<&Path>) -> Result<Vec<RepositoryPath>> {
    if let Some(path) = &spec.path {
        // The path stands for all that `-f` names.
        let is_kustomization =
            !manifests.is_empty() && manifests.iter().all(|one| folder_of_kustomization(one).is_some());
        return Ok(vec![RepositoryPath { path: path.clone().into_bytes(), is_written_out: true, is_kustomization }]);
    }
    let help = format!("name the path in the repository: --target git:{}:PATH", spec.revision);
    if manifests.is_empty() {
        return Err(Error::usage(Problem::new("the target does not say which path of the commit to read").help(help)));
    }
    let mut wanted = Vec::new();
    let mut problems = Vec::new();
    for argument in manifests {
        match path_in_repository(argument, work_tree) {
            Ok(path) => wanted.push(RepositoryPath {
                path: command::bytes(path.as_os_str()),
                is_written_out: false,
                is_kustomization: folder_of_kustomization(argument).is_some(),
            }),
            Err(why) => problems.push(Problem::new(why).help(help.clone())),
        }
    }
    wanted.sort();
    wanted.dedup();
    if problems.is_empty() { Ok(wanted) } else { Err(Error::Usage(problems)) }
}

/// The path in the repository of an argument of `-f`, or of a file below one.
pub(super) fn path_in_repository(argument: &str, work_tree: Option<&Path>) -> std::result::Result<PathBuf, String> {
    if argument == "-" {
        return Err("standard input has no path at a commit".to_owned());
    }
    let argument = folder_of_kustomization(argument).unwrap_or(argument);
    if let Some(path) = path_of_argument(argument) {
        return Ok(path);
    }
    if argument.contains("://") {
        return Err(format!("{} has no path at a commit", shown_text(argument)));
    }
    let Some(work_tree) = work_tree else {
        return Err(format!(
            "{} has no path at a commit: the repository is bare, or the working directory is in its .git",
            shown_text(argument)
        ));
    };
    let path = Path::new(argument);
    // The last component can be a link that is itself in the repository; the commit says where it leads.
    let real = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            parent.canonicalize().map(|parent| parent.join(name))
        }
        _ => path.canonicalize(),
    };
    let real = real.map_err(|error| format!("cannot read {}: {error}", shown_text(argument)))?;
    let path = real.strip_prefix(work_tree).map(Path::to_owned);
    path.map_err(|_| {
        format!("{} is not in the git repository {}", shown_text(argument), shown_text(&work_tree.to_string_lossy()))
    })
}

/// The path in the repository that an argument of `-f` reads from a commit; `None` if it reads no commit.
fn path_of_argument(argument: &str) -> Option<PathBuf> {
    let spec: GitSpec = argument.strip_prefix("git:")?.parse().ok()?;
    Some(PathBuf::from(spec.path.unwrap_or_default()))
}
