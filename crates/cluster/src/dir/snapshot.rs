//! Writes live objects to a folder that a dir target can read: one file for each object, with the same bytes for the
//! same objects.
//!
//! The objects are first written to a staging folder beside the named one, because they might not fit in memory. They
//! are moved into place only when all of them are written: a snapshot that could not be completed changes nothing.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

use super::files::{self, Lock};
use super::{document, names};
use gantry_core::manifest::is_manifest_file;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::{LiveObject, ObjectRef};
use gantry_k8s_cel::KubernetesRelease;

/// The file that marks a folder as a snapshot and lists the files that are part of it. No target reads it, because it
/// does not have the extension of a manifest.
const MARKER: &str = ".gantry-snapshot";
/// The prefix of the staging folder's name.
const STAGED_PREFIX: &str = ".gantry-snapshot.";
const HEAD: &str = "# Created by gantry snapshot, which replaces the files listed here. Keep this file with them.\n";

/// What the line with the release of the server begins with. Versions of gantry that do not know it skip comments.
const RELEASE: &str = "# Kubernetes ";

/// A snapshot that is being written.
pub struct SnapshotFolder {
    folder: PathBuf,
    staged: TempDir,
    /// Held while the snapshot is being written, so that no other process treats it as a leftover.
    _lock: Option<File>,
    /// The names of the staged files.
    names: Mutex<BTreeSet<String>>,
    /// The files of the previous snapshot in the folder.
    before: BTreeSet<String>,
    /// Whether the folder already exists.
    exists: bool,
}

/// The number of files that were created, changed, left unchanged and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotFileCounts {
    /// Files of objects that the folder did not have.
    pub created: usize,
    /// Files whose object differs.
    pub changed: usize,
    /// Files that are left as they are.
    pub unchanged: usize,
    /// Files of objects that are no longer in the target.
    pub removed: usize,
}

impl SnapshotFolder {
    /// Begins a snapshot.
    ///
    /// # Errors
    /// The folder has other content, or is not writable.
    pub fn begin(folder: &Path) -> Result<Self> {
        let shown = folder.display();
        let unwritable = |error: io::Error| {
            Error::usage(Problem::new(format!("cannot write to {shown}: {error}")).help("name another folder: -o DIR"))
        };
        let (before, exists) = match fs::read_dir(folder) {
            Ok(entries) => (existing_files(folder, entries)?, true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (BTreeSet::new(), false),
            Err(error) => return Err(unwritable(error)),
        };
        // In the same parent folder, so that moving the files is only a rename.
        let parent = match folder.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(unwritable)?;
        let parent = if exists { folder.canonicalize().map_err(unwritable)? } else { parent.join("x") };
        let parent = parent.parent().unwrap_or(Path::new("/")).to_owned();
        remove_leftovers(&parent);
        let (staged, lock) = create_staging_folder(&parent).map_err(unwritable)?;
        Ok(SnapshotFolder { folder: folder.to_owned(), staged, _lock: lock, names: Mutex::default(), before, exists })
    }

    /// Writes an object to its file, and returns the file's name. Refuses a Secret.
    pub fn add(&self, live: &LiveObject) -> std::result::Result<String, Problem> {
        let mut value = live.raw.value();
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let (Some(api_version), Some(kind), Some(name)) = (text("/apiVersion"), text("/kind"), text("/metadata/name"))
        else {
            return Err(Problem::new("the target returned an object without a kind or a name"));
        };
        let object = ObjectRef { api_version, kind, namespace: text("/metadata/namespace"), name };
        if object.is_secret() {
            return Err(Problem::new(format!("{object} is a Secret; a snapshot never contains Secrets")));
        }
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            // The resourceVersion counts the writes of the whole cluster, and a folder makes its own.
            metadata.remove("resourceVersion");
            metadata.remove("selfLink");
        }
        value.sort_all_objects();
        let name = names::file_name(&object);
        let text = document::render_new_file(&name, &value)?;
        let path = self.staged.path().join(&name);
        fs::write(&path, text).map_err(|error| self.cannot_write(&error))?;
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        Ok(name)
    }

    /// Removes the files that were added, because their list restarts.
    pub fn forget(&self, names: &[String]) {
        let mut staged = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            let _ = fs::remove_file(self.staged.path().join(name));
            staged.remove(name);
        }
    }

    /// Moves all files into place, each in one step, and removes files of the previous snapshot that are no longer part
    /// of it. A folder that did not exist appears as a whole. `release` is that of the server, if it is known.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn publish(self, release: Option<KubernetesRelease>) -> Result<SnapshotFileCounts> {
        let SnapshotFolder { folder, staged, _lock, names, before, exists } = self;
        let names = names.into_inner().unwrap_or_else(PoisonError::into_inner);
        let failed = |error: io::Error| {
            let problem = Problem::new(format!("cannot write to {}: {error}", folder.display()));
            Error::failed(problem.help("the snapshot is not complete; run the command again"))
        };
        let mut written = SnapshotFileCounts::default();
        if !exists {
            written.created = names.len();
            fs::write(staged.path().join(MARKER), marker(&names, release)).map_err(failed)?;
            fs::rename(staged.path(), &folder).map_err(failed)?;
            // The folder was renamed, so there is nothing left to remove.
            let _ = staged.keep();
            return Ok(written);
        }
        // Whenever this is interrupted, the next run recognizes all of these files as its own.
        let all: BTreeSet<String> = names.union(&before).cloned().collect();
        write_file(&folder, MARKER, &marker(&all, release)).map_err(failed)?;
        for name in &names {
            let (from, to) = (staged.path().join(name), folder.join(name));
            let is_file = to.symlink_metadata().is_ok_and(|metadata| metadata.is_file());
            if is_file && have_same_content(&from, &to).map_err(failed)? {
                written.unchanged += 1;
                continue;
            }
            *(if is_file { &mut written.changed } else { &mut written.created }) += 1;
            fs::rename(&from, &to).map_err(failed)?;
        }
        for stale in before.difference(&names) {
            match fs::remove_file(folder.join(stale)) {
                Ok(()) => written.removed += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        write_file(&folder, MARKER, &marker(&names, release)).map_err(failed)?;
        Ok(written)
    }

    fn cannot_write(&self, error: &io::Error) -> Problem {
        let problem = Problem::new(format!("cannot write beside {}: {error}", self.folder.display()));
        problem.help("name another folder: -o DIR")
    }
}

/// Creates the staging folder, and locks it if folders can be locked.
fn create_staging_folder(parent: &Path) -> io::Result<(TempDir, Option<File>)> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(STAGED_PREFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The umask is applied to this mode. The folder may become the snapshot.
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    loop {
        let staged = builder.tempdir_in(parent)?;
        let lock = files::try_lock(staged.path());
        // Another process can have removed it as a leftover before it was locked.
        if staged.path().exists() && !matches!(lock, Lock::Taken) {
            return Ok((staged, lock.into_file()));
        }
    }
}

/// Removes the staging folders of snapshots that were killed. The lock shows whether a snapshot is still being written.
/// If folders cannot be locked, leftovers stay.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let is_staged = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with(STAGED_PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    for leftover in entries.flatten().filter(is_staged) {
        if let Lock::Held(_lock) = files::try_lock(&leftover.path()) {
            let _ = fs::remove_dir_all(leftover.path());
        }
    }
}

/// The files of the snapshot in the folder; `None` if it is none.
fn listed(folder: &Path) -> std::result::Result<Option<BTreeSet<String>>, Problem> {
    let marker = match fs::read_to_string(folder.join(MARKER)) {
        Ok(marker) => marker,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Problem::new(format!("cannot read {}/{MARKER}: {error}", folder.display()))),
    };
    // It can come from a repository, so only names that a snapshot could have created are trusted.
    Ok(Some(marker.lines().filter(|line| is_ours(line)).map(str::to_owned).collect()))
}

/// The release of the server that the snapshots in these folders were taken from. Of several, it is the oldest, which
/// accepts least.
pub(super) fn recorded_release<'f>(folders: impl IntoIterator<Item = &'f Path>) -> Option<KubernetesRelease> {
    let markers = folders.into_iter().filter_map(|folder| fs::read(folder.join(MARKER)).ok());
    release_in_markers(markers)
}

/// The same for the contents of markers.
pub(crate) fn release_in_markers(markers: impl IntoIterator<Item = Vec<u8>>) -> Option<KubernetesRelease> {
    let recorded = |marker: Vec<u8>| {
        let marker = String::from_utf8_lossy(&marker);
        marker.lines().find_map(|line| line.strip_prefix(RELEASE)?.parse().ok())
    };
    markers.into_iter().filter_map(recorded).min()
}

/// Whether a path is that of a marker.
pub(crate) fn is_marker(path: &[u8]) -> bool {
    path.rsplit(|byte| *byte == b'/').next() == Some(MARKER.as_bytes())
}

/// What is missing from the snapshot in the folder. Without it, a check would take an object that exists for a new one.
/// `has_object` tells whether a file has been read and contains an object.
pub(crate) fn missing(folder: &Path, has_object: impl Fn(&Path) -> bool) -> Vec<Problem> {
    let listed = match listed(folder) {
        Ok(listed) => listed.unwrap_or_default(),
        Err(problem) => return vec![problem],
    };
    let problem = |name: &String| {
        let path = folder.join(name);
        if has_object(&path) {
            return None;
        }
        let what = if path.exists() { "contains no object" } else { "is missing" };
        let message = format!("{} {what}, but {MARKER} lists it as part of the snapshot", path.display());
        let help = format!("take the snapshot again, restore the file, or remove its line from {MARKER}");
        Some(Problem::new(message).help(help))
    };
    listed.iter().filter_map(problem).collect()
}

/// The files of the existing snapshot in the folder.
fn existing_files(folder: &Path, entries: fs::ReadDir) -> Result<BTreeSet<String>> {
    let shown = folder.display();
    let marked = listed(folder).map_err(Error::usage)?;
    let is_snapshot = marked.is_some();
    let listed = marked.unwrap_or_default();
    for entry in entries {
        let entry = entry.map_err(|error| Error::usage(Problem::new(format!("cannot read {shown}: {error}"))))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_manifest = is_manifest_file(&entry.path());
        let message = match is_snapshot {
            false => {
                format!(
                    "{shown} is not empty and is not a snapshot: it contains {}",
                    gantry_core::manifest::shown_text(&name)
                )
            }
            // It would be part of the cluster that the folder represents.
            true if (is_folder || is_manifest) && !listed.contains(&name) => {
                format!(
                    "{shown} contains {}, which is not part of its snapshot",
                    gantry_core::manifest::shown_text(&name)
                )
            }
            true => continue,
        };
        return Err(Error::usage(Problem::new(message).help("move it away, or name another folder: -o DIR")));
    }
    Ok(listed)
}

/// Whether a name is one that [`names::file_name`] can return: in the folder itself, and a manifest.
fn is_ours(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._%~".contains(&byte);
    name.bytes().all(plain) && name.ends_with(".yaml") && !name.starts_with('.')
}

fn marker(names: &BTreeSet<String>, release: Option<KubernetesRelease>) -> String {
    let mut text = HEAD.to_owned();
    text.extend(release.map(|release| format!("{RELEASE}{release}\n")));
    for name in names {
        text.push_str(name);
        text.push('\n');
    }
    text
}

/// Replaces a file atomically. A link itself is replaced, not its destination.
fn write_file(folder: &Path, name: &str, text: &str) -> io::Result<()> {
    let temporary = tempfile::Builder::new()
        .prefix(".gantry-")
        .suffix(".tmp")
        .make_in(folder, |path| fs::File::options().write(true).create_new(true).open(path))?;
    fs::write(temporary.path(), text)?;
    temporary.persist(folder.join(name)).map_err(|failed| failed.error)?;
    Ok(())
}

fn have_same_content(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(fs::metadata(one)?.len() == fs::metadata(other)?.len() && fs::read(one)? == fs::read(other)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use gantry_core::resource::RawObject;

    fn live(kind: &str, name: &str, extra: &str) -> LiveObject {
        let value = json!({"kind": kind, "apiVersion": "v1", "z": extra, "a": {"c": 1, "b": "y"},
            "metadata": {"resourceVersion": extra, "name": name, "uid": "u"}});
        LiveObject { raw: RawObject::from_value(&value), uid: "u".into(), resource_version: "1".into() }
    }

    fn snapshot(folder: &Path, objects: &[LiveObject]) -> Result<SnapshotFileCounts> {
        let snapshot = SnapshotFolder::begin(folder)?;
        for object in objects {
            snapshot.add(object).unwrap();
        }
        snapshot.publish(None)
    }

    fn list(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_snapshot_replaces_the_one_before_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("deep/live");
        let (a, b) = (live("ConfigMap", "a", "1"), live("ConfigMap", "b", "1"));
        let written = snapshot(&folder, &[a.clone(), b.clone()]).unwrap();
        assert_eq!(written, SnapshotFileCounts { created: 2, ..SnapshotFileCounts::default() });
        assert_eq!(list(&folder), [MARKER, "configmap_a.yaml", "configmap_b.yaml"]);
        assert_eq!(list(&parent.path().join("deep")), ["live"]);
        let text = fs::read_to_string(folder.join("configmap_a.yaml")).unwrap();
        assert_eq!(
            text,
            "a:\n  b: \"y\"\n  c: 1\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  uid: u\nz: \"1\"\n"
        );

        fs::write(folder.join("README.md"), "mine").unwrap();
        let written = snapshot(&folder, &[a, live("ConfigMap", "c", "1")]).unwrap();
        assert_eq!(written, SnapshotFileCounts { created: 1, unchanged: 1, removed: 1, changed: 0 });
        assert_eq!(list(&folder), [MARKER, "README.md", "configmap_a.yaml", "configmap_c.yaml"]);
        let written = snapshot(&folder, &[live("ConfigMap", "a", "2"), live("ConfigMap", "c", "1")]).unwrap();
        assert_eq!((written.changed, written.unchanged), (1, 1));

        fs::write(folder.join("own.yaml"), "a: 1").unwrap();
        let refused = snapshot(&folder, &[]).unwrap_err().to_string();
        assert!(refused.ends_with("contains own.yaml, which is not part of its snapshot"), "{refused}");
        assert_eq!(list(parent.path()), ["deep"]);
    }

    #[test]
    fn a_folder_that_is_not_a_snapshot_is_not_replaced() {
        let parent = tempfile::tempdir().unwrap();
        for file in ["a.yaml", "notes.txt"] {
            let folder = parent.path().join(file).join("folder");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(file), "").unwrap();
            assert!(snapshot(&folder, &[]).unwrap_err().to_string().contains("is not empty and is not a snapshot"));
            assert_eq!(list(&folder), [file]);
        }
        // A marker from somebody else cannot lead out of the folder.
        let folder = parent.path().join("marked");
        fs::create_dir(&folder).unwrap();
        let precious = parent.path().join("precious.yaml");
        fs::write(&precious, "").unwrap();
        fs::write(folder.join(MARKER), format!("../precious.yaml\n{}\n.yaml\n", precious.display())).unwrap();
        snapshot(&folder, &[]).unwrap();
        assert!(precious.exists());
    }

    #[test]
    fn a_snapshot_that_is_not_completed_changes_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("live");
        let begun = SnapshotFolder::begin(&folder).unwrap();
        begun.add(&live("ConfigMap", "a", "1")).unwrap();
        let name = begun.add(&live("ConfigMap", "b", "1")).unwrap();
        begun.forget(&[name]);
        assert!(begun.add(&live("Secret", "s", "geheim")).is_err());
        drop(begun);
        assert_eq!(list(parent.path()), Vec::<String>::new());
    }

    #[cfg(unix)]
    #[test]
    fn leftovers_of_a_killed_snapshot_are_removed_but_not_those_of_a_running_one() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("live");
        let killed = parent.path().join(".gantry-snapshot.killed");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join("configmap_a.yaml"), "a: 1").unwrap();
        fs::write(parent.path().join(".gantry-snapshot.mine"), "a file").unwrap();
        let other = SnapshotFolder::begin(&parent.path().join("other")).unwrap();
        snapshot(&folder, &[live("ConfigMap", "a", "1")]).unwrap();
        assert!(!killed.exists());
        other.add(&live("ConfigMap", "b", "1")).unwrap();
        other.publish(None).unwrap();
        assert_eq!(list(parent.path()), [".gantry-snapshot.mine", "live", "other"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_folder_is_replaced_and_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, outside) = (parent.path().join("live"), parent.path().join("outside"));
        snapshot(&folder, &[live("ConfigMap", "a", "1"), live("ConfigMap", "b", "1")]).unwrap();
        fs::write(&outside, "mine").unwrap();
        for name in [MARKER, "configmap_a.yaml"] {
            fs::copy(folder.join(name), parent.path().join("kept")).unwrap();
            fs::remove_file(folder.join(name)).unwrap();
            let to = if name == MARKER { parent.path().join("kept") } else { outside.clone() };
            std::os::unix::fs::symlink(to, folder.join(name)).unwrap();
            snapshot(&folder, &[live("ConfigMap", "a", "2")]).unwrap();
            assert!(!folder.join(name).is_symlink());
        }
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
    }
}
