//! The files of the folder: lists them, and replaces one atomically.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gantry_core::manifest::is_manifest_file;
use gantry_core::problem::Problem;

const TEMPORARY_PREFIX: &str = ".gantry-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// The contents of a folder and its subfolders, sorted by path.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub manifests: Vec<PathBuf>,
    /// Temporary files of a run that was killed while it wrote.
    pub leftovers: Vec<PathBuf>,
    /// Links to folders, which are not followed.
    pub links: Vec<PathBuf>,
    /// The names of all entries directly in the folder, in lower case.
    pub names: BTreeSet<String>,
}

/// When an entry was last added to or removed from the folder. `None` if the system does not report it.
pub(super) fn changed(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).ok()?.modified().ok()
}

/// Lists the folder and its subfolders. Links to files are followed. Links to folders are not, because they can form a
/// cycle.
pub(super) fn list(root: &Path) -> Result<Listing, Problem> {
    let mut listing = Listing::default();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let cannot_read = |error: io::Error| Problem::new(format!("cannot read {}: {error}", folder.display()));
        for entry in fs::read_dir(&folder).map_err(cannot_read)? {
            let entry = entry.map_err(cannot_read)?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if folder == root {
                listing.names.insert(name.to_lowercase());
            }
            if entry.file_type().map_err(cannot_read)?.is_dir() {
                folders.push(path);
            } else if name.starts_with(TEMPORARY_PREFIX) && name.ends_with(TEMPORARY_SUFFIX) {
                listing.leftovers.push(path);
            } else if path.is_dir() {
                listing.links.push(path);
            } else if is_manifest_file(&path) && (path.is_file() || is_dangling(&path)) {
                // Included so that reading the dangling link reports it.
                listing.manifests.push(path);
            }
        }
    }
    listing.manifests.sort_unstable();
    listing.leftovers.sort_unstable();
    listing.links.sort_unstable();
    Ok(listing)
}

fn is_dangling(path: &Path) -> bool {
    path.is_symlink() && !path.exists()
}

/// Keeps other processes from writing to the folder until it is dropped.
///
/// If a folder cannot be locked (some network file systems, Windows), there is no lock. Every file is still written
/// atomically, but of two concurrent deploys one can overwrite what the other wrote.
pub(super) fn lock(root: &Path) -> Option<File> {
    let folder = File::open(root).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// The result of trying to lock a folder.
pub(super) enum Lock {
    Held(File),
    /// By another process.
    Taken,
    /// The folder is gone, or no folder can be locked here.
    Unknown,
}

impl Lock {
    pub fn into_file(self) -> Option<File> {
        match self {
            Lock::Held(folder) => Some(folder),
            Lock::Taken | Lock::Unknown => None,
        }
    }
}

/// Locks a folder unless another process has locked it. The lock ends with the process, however it ends.
pub(super) fn try_lock(folder: &Path) -> Lock {
    let Ok(folder) = File::open(folder) else { return Lock::Unknown };
    match folder.try_lock() {
        Ok(()) => Lock::Held(folder),
        Err(TryLockError::WouldBlock) => Lock::Taken,
        Err(TryLockError::Error(_)) => Lock::Unknown,
    }
}

/// Who can read a newly created file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Everyone that the process's umask allows, as for any new file.
    Usual,
    /// Only the owner, because the file contains a Secret.
    Owner,
}

/// Replaces the file's text atomically: at any moment, even after a crash, a reader finds either the old text or the
/// new one. The file keeps its permissions.
pub(super) fn replace(root: &Path, path: &Path, text: &str) -> io::Result<()> {
    // A link stays a link and its destination is replaced, as long as that is in the folder too.
    let path = fs::canonicalize(path)?;
    if !path.starts_with(fs::canonicalize(root)?) {
        return Err(io::Error::other("the link points outside the folder"));
    }
    // The new text must not be readable by others before the file's own permissions are set.
    let (folder, temporary) = write_temporary(&path, text, Readers::Owner)?;
    temporary.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    temporary.persist(&path).map_err(|failed| failed.error)?;
    sync_folder(&folder);
    Ok(())
}

/// Creates a new file atomically. Fails if the file already exists.
pub(super) fn create(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let (folder, temporary) = write_temporary(path, text, readers)?;
    temporary.persist_noclobber(path).map_err(|failed| failed.error)?;
    sync_folder(&folder);
    Ok(())
}

/// Writes the text to a temporary file beside `path` and syncs it to disk.
fn write_temporary(path: &Path, text: &str, readers: Readers) -> io::Result<(PathBuf, tempfile::NamedTempFile)> {
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX).suffix(TEMPORARY_SUFFIX);
    let mut temporary = match readers {
        // Created explicitly, because a temporary file is readable only by its owner, and the manifest would stay so.
        Readers::Usual => builder.make_in(&folder, |path| File::options().write(true).create_new(true).open(path))?,
        Readers::Owner => builder.tempfile_in(&folder)?,
    };
    temporary.write_all(text.as_bytes())?;
    temporary.as_file().sync_all()?;
    Ok((folder, temporary))
}

/// Makes the new name survive a power failure, if the system supports that for a folder.
fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_are_listed_sorted_and_leftovers_apart() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("sub")).unwrap();
        for name in ["b.yaml", "a.json", "sub/c.yml", "notes.md", ".gantry-x.tmp", "sub/.gantry-y.tmp"] {
            fs::write(root.join(name), "").unwrap();
        }
        let listing = list(root).unwrap();
        assert_eq!(listing.manifests, [root.join("a.json"), root.join("b.yaml"), root.join("sub/c.yml")]);
        assert_eq!(listing.leftovers, [root.join(".gantry-x.tmp"), root.join("sub/.gantry-y.tmp")]);
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        create(&path, "one", Readers::Usual).unwrap();
        let before = fs::metadata(&path).unwrap().permissions();
        replace(folder.path(), &path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::metadata(&path).unwrap().permissions(), before);
        assert!(list(folder.path()).unwrap().leftovers.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn the_file_of_a_secret_is_its_owners_alone_and_stays_so() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret.yaml");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        create(&path, "one", Readers::Owner).unwrap();
        assert_eq!(mode(), 0o600);
        replace(folder.path(), &path, "two").unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_within_the_folder_and_not_out_of_it() {
        let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (inner, outer) = (folder.path().join("inner.yaml"), outside.path().join("outer.yaml"));
        for (file, link) in [(&inner, "in.yaml"), (&outer, "out.yaml")] {
            fs::write(file, "old").unwrap();
            std::os::unix::fs::symlink(file, folder.path().join(link)).unwrap();
        }
        replace(folder.path(), &folder.path().join("in.yaml"), "new").unwrap();
        assert_eq!(fs::read_to_string(&inner).unwrap(), "new");
        assert!(folder.path().join("in.yaml").is_symlink());
        assert!(replace(folder.path(), &folder.path().join("out.yaml"), "new").is_err());
        assert_eq!(fs::read_to_string(&outer).unwrap(), "old");
    }

    #[test]
    fn a_file_is_not_created_over_an_existing_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "mine").unwrap();
        assert_eq!(create(&path, "new", Readers::Usual).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert!(list(folder.path()).unwrap().leftovers.is_empty());
    }
}
