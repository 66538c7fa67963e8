//! The manifests of a commit as the desired side: `-f git:REV[:PATH]`.

use super::command;
use super::paths::RepositoryPath;
use super::repository::Repository;
use super::tree::Side;
use super::{DesiredSource, ReadCommit};
use gantry_core::manifest::PreparedSources;
use gantry_core::options::GitSpec;
use gantry_core::problem::{Error, Location, Problem, Result};
use gantry_core::render::{CHART_FILE, Renderers, is_package};

/// Reads the manifests of a commit below the path, or all of its manifests without a path; or renders them from all
/// files of the commit.
///
/// # Errors
/// The commit or the path does not exist, there is no manifest, or git cannot read one.
pub async fn read_manifests(spec: &GitSpec, is_kustomization: bool, renderers: &Renderers) -> Result<PreparedSources> {
    let repository = Repository::find().await.map_err(Error::failed)?;
    let commit = repository.commit(&spec.revision).await.map_err(Error::failed)?;
    let path = spec.path.clone().unwrap_or_default().into_bytes();
    let wanted = vec![RepositoryPath { path, is_written_out: true, is_kustomization }];
    let desired = DesiredSource { render: Some(renderers), ..DesiredSource::default() };
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

/// Whether the path at the commit is a chart. Errors are reported when it is read.
pub async fn has_chart(spec: &GitSpec) -> bool {
    let path = spec.path.clone().unwrap_or_default();
    if is_package(&path) {
        return true;
    }
    let Ok(repository) = Repository::find().await else { return false };
    let Ok(commit) = repository.commit(&spec.revision).await else { return false };
    let file = if path.is_empty() { CHART_FILE.to_owned() } else { format!("{path}/{CHART_FILE}") };
    command::run(&["cat-file", "-e", &format!("{}:{file}", commit.hash)]).await.is_ok()
}
