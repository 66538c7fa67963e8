//! Writes all files of a commit to a temporary folder, for a program that renders them.
//!
//! They are written unchanged: no filter and no hook is run, and git does not know about the folder.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::blobs::{BlobRequest, Blobs, GitObjectContent};
use super::command;
use super::tree::{GitFileMode, GitTreeEntry};
use gantry_core::manifest::shown_text;
use gantry_core::problem::Problem;
use gantry_core::program::ProgramError;

/// The maximum total size of the files, in bytes.
const MAX_BYTES: usize = 2 << 30;

/// Writes the files below `root`. Returns a problem for each file that cannot be written.
pub async fn write(entries: &[GitTreeEntry], blobs: &mut Blobs, root: &Path) -> Result<Vec<Problem>, ProgramError> {
    let mut problems = Vec::new();
    let mut folders = BTreeSet::new();
    let (mut requests, mut files) = (Vec::new(), Vec::new());
    for entry in entries {
        if !is_safe(&entry.path) {
            problems.push(problem(entry, "unsafe path; git would not check it out"));
            continue;
        }
        let path = root.join(command::os(&entry.path));
        let folder = if entry.mode == GitFileMode::Submodule { Some(path.as_path()) } else { path.parent() };
        if let Some(folder) = folder.filter(|folder| folders.insert(folder.to_path_buf()))
            && let Err(error) = fs::create_dir_all(folder)
        {
            problems.push(problem(entry, &format!("cannot be written: {error}")));
        }
        if matches!(entry.mode, GitFileMode::File | GitFileMode::Link) {
            requests.push(BlobRequest::Hash(entry.hash.clone()));
            files.push((entry, path));
        }
    }
    let mut links = Vec::new();
    let mut total = 0;
    let keep = |index: usize, content: GitObjectContent| {
        let (entry, path): &(&GitTreeEntry, PathBuf) = &files[index];
        let GitObjectContent::File(bytes) = content else {
            problems.push(problem(entry, "too large, or not in this clone"));
            return;
        };
        let before = total;
        total += bytes.len();
        if total > MAX_BYTES {
            // Reported only once.
            if before <= MAX_BYTES {
                problems.push(problem(entry, "the files of the commit are larger than 2 GiB in all"));
            }
        } else if entry.mode == GitFileMode::Link {
            links.push((*entry, path.clone(), bytes));
        } else if let Err(error) = file(path, &bytes, entry.is_executable) {
            problems.push(problem(entry, &format!("cannot be written: {error}")));
        }
    };
    blobs.read(&requests, keep).await?;
    // Links are written last, so that no file is written through one.
    for (entry, path, to) in links.into_iter().filter(|(entry, _, to)| stays_within(&entry.path, to)) {
        if let Err(error) = link(&to, &path) {
            problems.push(problem(entry, &format!("the link cannot be written: {error}")));
        }
    }
    Ok(problems)
}

fn problem(entry: &GitTreeEntry, message: &str) -> Problem {
    Problem::new(format!("{} at the commit: {message}", shown_text(&String::from_utf8_lossy(&entry.path))))
}

fn file(path: &Path, bytes: &[u8], is_executable: bool) -> io::Result<()> {
    let mut options = fs::File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if is_executable { 0o755 } else { 0o644 });
    }
    #[cfg(not(unix))]
    let _ = is_executable;
    io::Write::write_all(&mut options.open(path)?, bytes)
}

#[cfg(unix)]
fn link(to: &[u8], path: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(command::os(to), path)
}

/// Like git on a file system without links.
#[cfg(not(unix))]
fn link(to: &[u8], path: &Path) -> io::Result<()> {
    fs::write(path, to)
}

/// Whether a path stays below the folder and is not part of git's own directory.
fn is_safe(path: &[u8]) -> bool {
    let leads_elsewhere = |step: &[u8]| {
        matches!(step, b"" | b"." | b"..")
            || step.eq_ignore_ascii_case(b".git")
            || cfg!(windows) && step.iter().any(|byte| matches!(byte, b'\\' | b':'))
    };
    !path.split(|byte| *byte == b'/').any(leads_elsewhere)
}

/// Whether a link leads to a path below the folder. `..` is allowed only at the beginning, because a later component
/// can be a link itself.
fn stays_within(path: &[u8], to: &[u8]) -> bool {
    let depth = path.iter().filter(|byte| **byte == b'/').count();
    let steps: Vec<&[u8]> = to.split(|byte| *byte == b'/').collect();
    let is_up = |step: &&&[u8]| **step == b"..";
    let first = steps.iter().take_while(|step| matches!(**step, b".." | b".")).filter(is_up).count();
    !to.starts_with(b"/") && !to.contains(&0) && first == steps.iter().filter(is_up).count() && first <= depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_links_of_a_commit_stay_within_the_folder() {
        assert!(is_safe(b"a/b.yaml") && is_safe(b"..a/.gitignore"));
        for path in [&b"../a"[..], b"a/../b", b"/a", b"a//b", b".git/config", b"a/.GIT/x", b"."] {
            assert!(!is_safe(path), "{}", String::from_utf8_lossy(path));
        }
        assert!(stays_within(b"a/b", b"../c") && stays_within(b"a", b"b/c") && stays_within(b"a/b/c", b"./../../x"));
        for to in [&b"/etc"[..], b"../../x", b"x/../../y", b"x/../y"] {
            assert!(!stays_within(b"a/b", to), "{}", String::from_utf8_lossy(to));
        }
    }
}
