//! Lists the files of a catalog.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use walkdir::WalkDir;

/// The name of the file that excludes other files from the catalog.
const INDEX_IGNORE: &str = ".indexignore";
/// The maximum number of files in a catalog.
const MOST_FILES: usize = 100_000;

/// A file or folder that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", path.display())]
#[non_exhaustive]
pub struct FileReadError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub reason: String,
}

/// The files of a catalog, sorted by name: `root` itself if it is a file, otherwise all files of the folder except
/// those that an `.indexignore` excludes.
///
/// # Errors
/// A file or folder that cannot be read, or too many files.
pub fn list_catalog_files(root: &Path) -> Result<Vec<PathBuf>, FileReadError> {
    let unreadable =
        |path: &Path, error: &io::Error| FileReadError { path: path.to_owned(), reason: error.to_string() };
    if !fs::metadata(root).map_err(|error| unreadable(root, &error))?.is_dir() {
        return Ok(vec![root.to_owned()]);
    }
    let (mut files, mut ignored) = (Vec::new(), Vec::new());
    for entry in WalkDir::new(root).sort_by_file_name().follow_root_links(true) {
        let entry = entry.map_err(|error| FileReadError {
            path: error.path().unwrap_or(root).to_owned(),
            reason: error.io_error().map_or_else(|| error.to_string(), ToString::to_string),
        })?;
        if entry.file_type().is_dir() {
            let file = entry.path().join(INDEX_IGNORE);
            if file.is_file() {
                ignored.push(rules(entry.path(), &file)?);
            }
        } else if entry.file_name() != INDEX_IGNORE {
            files.push(entry.into_path());
        }
        if files.len() > MOST_FILES {
            return Err(FileReadError {
                path: root.to_owned(),
                reason: format!("the folder has more than {MOST_FILES} files"),
            });
        }
    }
    files.retain(|file| !is_ignored(file, &ignored));
    for file in &files {
        // The walk reports a link to a folder as a file, but it cannot be read as one.
        let is = fs::metadata(file).map_err(|error| unreadable(file, &error))?;
        let reason = match is.is_dir() {
            true => "it is a link to a folder",
            // Reading a pipe could block forever.
            false if !is.is_file() => "it is not a regular file",
            false => continue,
        };
        return Err(FileReadError { path: file.clone(), reason: reason.into() });
    }
    Ok(files)
}

fn rules(folder: &Path, file: &Path) -> Result<Gitignore, FileReadError> {
    let mut builder = GitignoreBuilder::new(folder);
    let error = builder.add(file);
    let built = match error {
        Some(error) => Err(error),
        None => builder.build(),
    };
    built.map_err(|error| FileReadError { path: file.to_owned(), reason: error.to_string() })
}

/// The rules of the folder nearest to the file take precedence.
fn is_ignored(file: &Path, rules: &[Gitignore]) -> bool {
    let mut near: Vec<&Gitignore> = rules.iter().filter(|rules| file.starts_with(rules.path())).collect();
    near.sort_by_key(|rules| std::cmp::Reverse(rules.path().components().count()));
    let decided =
        near.iter().map(|rules| rules.matched_path_or_any_parents(file, false)).find(|found| !found.is_none());
    matches!(decided, Some(Match::Ignore(_)))
}
