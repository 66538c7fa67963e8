//! Whether the project file names a file outside its folder, or one of git's own files.
//!
//! A clone can come from anybody. Its project file must not read or overwrite what is not in it, and git runs programs
//! that are named or stored in a repository's own folder (`.git/hooks`, `.git/config`).

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::config::keys::{SettingKind, path_of_target};

/// The first output file, or the target, that is in a folder of git.
pub fn of_git<'v>(kind: SettingKind, value: &'v serde_json::Value, folder: &Path) -> Option<&'v str> {
    let is_of_git = |path: &str| is_of_git(Path::new(path), folder);
    match kind {
        SettingKind::Outputs => {
            let mut outputs = value.as_array()?.iter().filter_map(serde_json::Value::as_str);
            outputs.find(|output| output.split_once('=').is_some_and(|(_, file)| is_of_git(file)))
        }
        SettingKind::Target => value.as_str().filter(|target| path_of_target(target).is_some_and(is_of_git)),
        _ => None,
    }
}

/// The first output file that is not below `folder`, or the target, if it is a folder or a chart that is not below `folder`.
pub fn find_path_outside<'v>(kind: SettingKind, value: &'v serde_json::Value, folder: &Path) -> Option<&'v str> {
    let leads_out = |path: &str| !is_below(Path::new(path), folder);
    match kind {
        SettingKind::Outputs => {
            let outputs = value.as_array()?.iter().filter_map(serde_json::Value::as_str);
            outputs.into_iter().find(|output| output.split_once('=').is_some_and(|(_, file)| leads_out(file)))
        }
        SettingKind::Target => value.as_str().filter(|target| path_of_target(target).is_some_and(leads_out)),
        _ => None,
    }
}

/// Whether a path, relative to `folder`, is a file below it after symbolic links are resolved.
pub fn is_below(path: &Path, folder: &Path) -> bool {
    let is_plain = |step: Component<'_>| matches!(step, Component::Normal(_) | Component::CurDir);
    if !path.components().all(is_plain) {
        return false;
    }
    let Ok(root) = canonical(folder) else { return false };
    for path in root.join(path).ancestors() {
        match path.canonicalize() {
            Ok(real) => return real.starts_with(&root),
            // Writing to a dangling link creates its destination, which can be anywhere.
            Err(_) if path.is_symlink() => return false,
            Err(_) => {}
        }
    }
    false
}

/// The project file `gantry.yaml` is in the folder with the empty name.
fn canonical(folder: &Path) -> std::io::Result<PathBuf> {
    if folder.as_os_str().is_empty() { Path::new(".").canonicalize() } else { folder.canonicalize() }
}

/// Whether a path, relative to `folder`, is in a folder of git after symbolic links are resolved: a `.git` of any
/// repository, worktree or submodule, or a bare repository of any name.
pub fn is_of_git(path: &Path, folder: &Path) -> bool {
    let Ok(root) = canonical(folder) else { return false };
    let path = root.join(path);
    // What exists, with links resolved; and the rest of the path.
    let existing = path.ancestors().find_map(|path| Some((path, path.canonicalize().ok()?)));
    let Some((known, real)) = existing else { return false };
    let rest = path.strip_prefix(known).unwrap_or(Path::new(""));
    let whole = real.join(rest);
    whole.components().any(|step| is_name_of_git(step.as_os_str())) || real.ancestors().any(is_repository)
}

/// Whether some file system takes the name for `.git`: case, ignored characters, trailing dots and blanks, streams and
/// short names do not matter everywhere.
fn is_name_of_git(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let name: String = name.chars().filter(|c| c.is_ascii() && !c.is_control()).collect();
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_ascii_lowercase();
    name == ".git" || name == "git~1"
}

/// Whether the folder is one of git: a repository, or the part of a worktree.
fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).exists();
    has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_git_is_known_by_any_name() {
        for name in [".git", ".GIT", ".git.", ".git. .", ".g\u{200c}it", "GIT~1", ".git::$INDEX_ALLOCATION"] {
            assert!(is_name_of_git(OsStr::new(name)), "{name}");
        }
        for name in [".github", ".gitignore", "git", "a.git", "reports"] {
            assert!(!is_name_of_git(OsStr::new(name)), "{name}");
        }
    }
}
