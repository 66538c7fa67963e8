//! Writes the file of a report as a whole, or leaves it as it was.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use gantry_core::bounded;

/// Checks whether a report can be written there. Writes nothing: an earlier report stays until the new one replaces it.
pub fn check(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() || found.is_dir() => OpenOptions::new().append(true).open(path).map(drop),
        // A pipe or a device: opening it would have an effect.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => temporary(path).map(drop),
        Err(error) => Err(error),
    }
}

/// Writes a file. It replaces the earlier one once it is complete.
pub fn replace(path: &Path, write: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // A symbolic link stays one.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|before| !before.is_file()) {
        return buffered(&open(path, OpenOptions::new().write(true))?, write);
    }
    let new = match temporary(path) {
        Ok(new) => new,
        // No file can be created in the folder.
        Err(_) if before.is_some() => {
            let file = File::create(path)?;
            return buffered(&file, write).inspect_err(|_| drop(file.set_len(0)));
        }
        Err(error) => return Err(error),
    };
    buffered(new.as_file(), write)?;
    if let Some(before) = before {
        fs::set_permissions(new.path(), before.permissions())?;
    }
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Appends to a file: everything or nothing.
pub fn append(path: &Path, write: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let file = open(path, OpenOptions::new().create(true).append(true))?;
    let before = file.metadata()?;
    let written = buffered(&file, write);
    if written.is_err() && before.is_file() {
        let _ = file.set_len(before.len());
    }
    written
}

/// Opens a file, a pipe or a device. A pipe may have no reader, and then the system waits for one.
fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    if fs::metadata(path).map_or(true, |found| found.is_file()) {
        return options.open(path);
    }
    let (path, options) = (path.to_owned(), options.clone());
    bounded::within_limit("no program opened it to read the report", move || options.open(path))
}

/// The file that a report with this path replaces. Links are followed, also those to a file that does not exist yet.
/// `None` for a pipe or a device, which holds several reports.
pub fn replaced(path: &Path) -> Option<PathBuf> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return None;
    }
    let mut path = path.to_owned();
    // The system follows no more links than this.
    for _ in 0..40 {
        let Ok(to) = path.read_link() else { break };
        path = path.parent().map(|folder| folder.join(&to)).unwrap_or(to);
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    Some(match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        _ => path,
    })
}

/// How the names of unfinished reports begin.
pub const TEMPORARY: &str = ".gantry-report.";

/// A temporary file in the same folder, which is removed unless it is renamed.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    // The permissions of any new file, minus the umask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    builder.tempfile_in(folder.unwrap_or(Path::new(".")))
}

/// Writes with a buffer, and reports an error of the last flush, too.
fn buffered(file: &File, write: impl Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn half(out: &mut dyn Write) -> io::Result<()> {
        // More than a buffer holds, so that some of it is in the file.
        out.write_all(&[b'x'; 1 << 16])?;
        Err(io::ErrorKind::StorageFull.into())
    }

    #[test]
    fn a_file_is_written_completely_or_not_at_all() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("report");
        let names = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        for write in [replace, append] as [fn(&Path, fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()>; 2] {
            let before = fs::read(&path).ok();
            assert!(write(&path, half).is_err());
            assert_eq!(fs::read(&path).unwrap_or_default(), before.clone().unwrap_or_default());
            assert_eq!(names().len(), usize::from(before.is_some()));
            write(&path, |out| out.write_all(b"whole\n")).unwrap();
            assert!(write(&path, half).is_err());
            assert!(fs::read_to_string(&path).unwrap().ends_with("whole\n"));
            assert_eq!(names(), ["report"]);
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nwhole\n");
        check(&path).unwrap();
        check(&folder.path().join("new")).unwrap();
        assert_eq!(names(), ["report"], "a look leaves nothing behind");
        assert!(check(&folder.path().join("gone").join("new")).is_err());
        assert!(check(folder.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn writing_a_file_keeps_its_link_and_its_permissions() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = TempDir::new().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        fs::write(&file, "before").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, |out| out.write_all(b"after")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(replace(Path::new("/dev/full"), |out| out.write_all(b"x")).is_err());
        assert!(Path::new("/dev/full").exists());
    }

    #[cfg(unix)]
    #[test]
    fn one_file_has_one_name() {
        use std::os::unix::fs::symlink;
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink(".", path("here")).unwrap();
        symlink("here/new", path("link")).unwrap();
        symlink("loop", path("loop")).unwrap();
        let new = Some(path("new").parent().unwrap().canonicalize().unwrap().join("new"));
        for exists in [false, true] {
            if exists {
                fs::write(path("new"), "").unwrap();
            }
            for name in ["new", "here/new", "here/here/./new", "link", "here/link"] {
                assert_eq!(replaced(&path(name)), new, "{name}");
            }
        }
        assert_ne!(replaced(&path("other")), new);
        assert!(replaced(&path("loop")).is_some());
        assert_eq!(replaced(Path::new("/dev/null")), None);
    }
}
