//! The manifests of a commit as the desired side: `-f git:REV[:PATH]`.

use std::path::PathBuf;

use super::paths::RepositoryPath;
use super::repository::Repository;
use super::tree::Side;
use super::{DesiredSource, ReadCommit};
use gantry_core::manifest::PreparedSources;
use gantry_core::options::GitSpec;
use gantry_core::problem::{Error, Location, Problem, Result};
use gantry_core::render::Render;

/// Reads the manifests of a commit below the path, or all of its manifests without a path; or renders them from all
/// files of the commit.
///
/// # Errors
/// The commit or the path does not exist, there is no manifest, or git cannot read one.
pub async fn read_manifests(spec: &GitSpec, render: Option<&Render>) -> Result<PreparedSources> {
    let repository = Repository::find().await.map_err(Error::failed)?;
    let commit = repository.commit(&spec.revision).await.map_err(Error::failed)?;
    let path = spec.path.clone().unwrap_or_default().into_bytes();
    let wanted = vec![RepositoryPath { path, is_written_out: true }];
    let desired = DesiredSource { render, ..DesiredSource::default() };
    let ReadCommit { files, notices, .. } =
        ReadCommit::read(&commit, &repository, wanted, Side::Desired, desired).await?;
    // What is left of a copy that broke off. With --prune, its objects would be deleted.
    let empty = files.iter().filter(|file| file.source.text().is_empty() && file.source.committed.is_some());
    let problems: Vec<Problem> = empty
        .map(|file| {
            let at = Location { file: file.source.name.to_string(), line: 0, column: 0 };
            let help = "restore it; if it has no objects on purpose, remove it or write a comment into it";
            Problem::new("the file is empty at this commit").at(at).help(help)
        })
        .collect();
    if !problems.is_empty() {
        return Err(Error::Failed(problems));
    }
    Ok(PreparedSources { sources: files.into_iter().map(|file| file.source).collect(), notices })
}

/// The path in the repository that an argument of `-f` reads from a commit; `None` if it reads no commit.
pub fn path_of_argument(argument: &str) -> Option<PathBuf> {
    let spec: GitSpec = argument.strip_prefix("git:")?.parse().ok()?;
    Some(PathBuf::from(spec.path.unwrap_or_default()))
}
