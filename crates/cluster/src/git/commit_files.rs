//! All files of a commit.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::command;
use gantry_core::problem::Problem;

/// All files of a commit, not only the manifests.
pub struct CommitFiles {
    pub(super) hash: String,
    /// See `Repository::work_tree`.
    pub(super) work_tree: Option<PathBuf>,
}

impl CommitFiles {
    /// The text of a file at the commit, by its path on disk. The outer `None` if the file is outside the repository,
    /// and the inner one if the commit does not have it.
    ///
    /// # Errors
    /// Git cannot read it.
    pub async fn text_of(&self, path: &Path) -> std::result::Result<Option<Option<String>>, Problem> {
        let within = |path: &Path| {
            let folder = path.parent()?.canonicalize().ok()?;
            let path = folder.join(path.file_name()?);
            path.strip_prefix(self.work_tree.as_ref()?).map(Path::to_owned).ok()
        };
        let Some(path) = within(path) else { return Ok(None) };
        let mut object = OsString::from(format!("{}:", self.hash));
        object.push(command::os(&command::bytes(path.as_os_str())));
        match command::run(&[OsStr::new("cat-file"), OsStr::new("blob"), &object]).await {
            Ok(bytes) => Ok(Some(Some(String::from_utf8_lossy(&bytes).into_owned()))),
            Err(failed) if failed.is_answer() && failed.said.contains("not in '") => Ok(Some(None)),
            Err(failed) if failed.is_answer() && failed.said.contains("does not exist in '") => Ok(Some(None)),
            Err(failed) => Err(failed.problem()),
        }
    }
}
