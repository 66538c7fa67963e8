//! The files of the folder: which there are, and how one is replaced so that it is whole at every moment.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::manifest::is_manifest_file;
use crate::problem::Problem;

const TEMPORARY_PREFIX: &str = ".gantry-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// What is below a folder, sorted by path.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub manifests: Vec<PathBuf>,
    /// Temporary files of a run that was killed while it wrote.
    pub leftovers: Vec<PathBuf>,
    /// Links to folders, which are not followed.
    pub links: Vec<PathBuf>,
    /// The names of everything directly in the folder, in lower case.
    pub names: BTreeSet<String>,
}

/// When a file was last added to the folder or taken out of it. `None` where the system does not say.
pub(super) fn changed(folder: &Path) -> Option<SystemTime> {
    fs::metadata(folder).ok()?.modified().ok()
}

/// Looks through the folder and the folders in it. Links to files are followed, links to folders are not, as they may
/// lead round in a circle.
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
                // Reading a link that leads nowhere says so.
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
/// Where a folder cannot be locked (some network file systems, Windows) there is no lock: every file is whole all
/// the same, but of two deploys at the same moment one may overwrite what the other wrote.
pub(super) fn lock(root: &Path) -> Option<File> {
    let folder = File::open(root).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// Whether a folder could be locked at once.
pub(super) enum Lock {
    Held(File),
    /// By another process.
    Taken,
    /// The folder is gone, or no folder can be locked here.
    Unknown,
}

impl Lock {
    pub fn held(self) -> Option<File> {
        match self {
            Lock::Held(folder) => Some(folder),
            Lock::Taken | Lock::Unknown => None,
        }
    }
}

/// Locks a folder unless somebody else has. The lock ends with the process, however it ends.
pub(super) fn try_lock(folder: &Path) -> Lock {
    let Ok(folder) = File::open(folder) else { return Lock::Unknown };
    match folder.try_lock() {
        Ok(()) => Lock::Held(folder),
        Err(TryLockError::WouldBlock) => Lock::Taken,
        Err(TryLockError::Error(_)) => Lock::Unknown,
    }
}

/// Who may read a file that is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// Those that the process's umask allows, as for any new file.
    Usual,
    /// The owner alone: the file holds a Secret.
    Owner,
}

/// Replaces the file's text in one step: a reader of the file finds at any moment, even after a crash, either the
/// old text or the new one. The file's permissions stay.
pub(super) fn replace(root: &Path, path: &Path, text: &str) -> io::Result<()> {
    // A link stays a link and what it leads to is replaced, as long as that is in the folder too.
    let path = fs::canonicalize(path)?;
    if !path.starts_with(fs::canonicalize(root)?) {
        return Err(io::Error::other("the link points outside the folder"));
    }
    // Nobody reads the new text before the file's own permissions are set.
    let (folder, temporary) = write_temporary(&path, text, Readers::Owner)?;
    temporary.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    temporary.persist(&path).map_err(|failed| failed.error)?;
    sync_folder(&folder);
    Ok(())
}

/// Makes a new file, whole from the first moment on. Fails if there is one of that name.
pub(super) fn create(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let (folder, temporary) = write_temporary(path, text, readers)?;
    temporary.persist_noclobber(path).map_err(|failed| failed.error)?;
    sync_folder(&folder);
    Ok(())
}

/// The text in a file beside `path`, on the disk and not only on its way there.
fn write_temporary(path: &Path, text: &str, readers: Readers) -> io::Result<(PathBuf, tempfile::NamedTempFile)> {
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY_PREFIX).suffix(TEMPORARY_SUFFIX);
    let mut temporary = match readers {
        // Made by hand, as a temporary file is readable by its owner only and the manifest would stay so.
        Readers::Usual => builder.make_in(&folder, |path| File::options().write(true).create_new(true).open(path))?,
        Readers::Owner => builder.tempfile_in(&folder)?,
    };
    temporary.write_all(text.as_bytes())?;
    temporary.as_file().sync_all()?;
    Ok((folder, temporary))
}

/// Makes the new name outlast a power cut, where the system can do that for a folder.
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
    fn nothing_is_created_over_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "mine").unwrap();
        assert_eq!(create(&path, "new", Readers::Usual).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert!(list(folder.path()).unwrap().leftovers.is_empty());
    }
}
