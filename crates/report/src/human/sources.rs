//! The lines of the files of a run.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::Excerpts;
use crate::places::ShownPlace;
use crate::view::LineIndex;
use gantry_core::manifest::ManifestSource;

/// The maximum size of a file that is read to show a line of it.
const LARGEST: u64 = 64 << 20;

/// Texts by file name. The starts of lines are computed when the first line of a text is requested.
#[derive(Default)]
pub struct Sources {
    files: BTreeMap<String, IndexedSource>,
}

struct IndexedSource {
    source: Arc<ManifestSource>,
    starts: OnceLock<Vec<usize>>,
    /// The indices of long lines, by number.
    long_lines: Mutex<BTreeMap<usize, Arc<LineIndex>>>,
}

impl IndexedSource {
    fn new(source: Arc<ManifestSource>) -> Self {
        IndexedSource { source, starts: OnceLock::new(), long_lines: Mutex::default() }
    }
}

impl Sources {
    #[cfg(test)]
    pub(crate) fn new(sources: impl IntoIterator<Item = Arc<ManifestSource>>) -> Self {
        let mut all = Sources::default();
        for source in sources {
            all.add(source);
        }
        all
    }

    /// Keeps the lines of this file. A file that is there already stays.
    pub fn add(&mut self, source: Arc<ManifestSource>) {
        if !self.files.contains_key(&*source.name) {
            self.files.insert(source.name.to_string(), IndexedSource::new(source));
        }
    }

    /// Where texts that are in no file of their name are shown, by name.
    pub fn shown_at(&self) -> BTreeMap<String, ShownPlace> {
        let of = |(name, file): (&String, &IndexedSource)| {
            let place = match (&file.source.rendered_from, &file.source.committed) {
                (Some(path), _) => ShownPlace { path: path.clone(), has_lines: false },
                (None, Some(file)) => ShownPlace { path: file.on_disk.clone(), has_lines: file.on_disk.is_file() },
                (None, None) => return None,
            };
            Some((name.clone(), place))
        };
        self.files.iter().filter_map(of).collect()
    }

    /// Reads a file that a problem names, if it was not read yet. If it cannot be read, it has no lines.
    pub fn read(&mut self, name: &str) {
        let path = Path::new(name);
        // Standard input cannot be read twice, and a pipe or a device might never end.
        if self.files.contains_key(name) || name == "-" || !path.is_file() || is_elsewhere(path) {
            return;
        }
        let mut text = String::new();
        let Ok(file) = std::fs::File::open(path) else { return };
        let read = file.take(LARGEST + 1).read_to_string(&mut text);
        if read.is_ok_and(|bytes| bytes as u64 <= LARGEST) {
            self.add(Arc::new(ManifestSource::new(name, text)));
        }
    }
}

/// Whether the file is in another folder than its name says. Its text may be nobody's business here: a link in a pull
/// request can lead to any file, and reports are public.
fn is_elsewhere(path: &Path) -> bool {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    path.is_symlink()
        && path
            .canonicalize()
            .ok()
            .zip(folder.canonicalize().ok())
            .is_none_or(|(file, folder)| !file.starts_with(folder))
}

impl Excerpts for Sources {
    fn line(&self, file: &str, line: usize) -> Option<&str> {
        let file = self.files.get(file)?;
        let text = file.source.text();
        let starts = file
            .starts
            .get_or_init(|| std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect());
        let from = *starts.get(line.checked_sub(1)?)?;
        let to = starts.get(line).map_or(text.len(), |next| next - 1);
        let line = text.get(from..to)?;
        Some(line.strip_suffix('\r').unwrap_or(line))
    }

    fn index(&self, file: &str, line: usize) -> Option<Arc<LineIndex>> {
        let long_lines = &self.files.get(file)?.long_lines;
        let mut long_lines = long_lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = long_lines.get(&line) {
            return Some(Arc::clone(known));
        }
        let index = Arc::new(LineIndex::of_long(self.line(file, line)?)?);
        long_lines.insert(line, Arc::clone(&index));
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_number() {
        let text = "first\r\nsecond\n\nfourth".to_owned();
        let sources = Sources::new([Arc::new(ManifestSource::new("a.yaml", text))]);
        let lines: Vec<Option<&str>> = (0..=5).map(|line| sources.line("a.yaml", line)).collect();
        assert_eq!(lines, [None, Some("first"), Some("second"), Some(""), Some("fourth"), None]);
        assert_eq!(sources.line("b.yaml", 1), None);
    }

    #[test]
    fn only_files_that_are_requested_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("gantry.yaml");
        std::fs::write(&path, "a: b\nc").expect("written");
        let name = path.display().to_string();
        let mut sources = Sources::default();
        for name in [name.as_str(), "-", "no/such/file", &folder.path().display().to_string()] {
            sources.read(name);
        }
        assert_eq!(sources.line(&name, 2), Some("c"));
        assert_eq!(sources.files.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_line_behind_a_link_to_another_folder_is_not_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("manifests")).expect("a folder");
        for name in ["secret", "manifests/a.yaml"] {
            std::fs::write(at(name), "password\n").expect("written");
        }
        std::os::unix::fs::symlink("../secret", at("manifests/b.yaml")).expect("a link");
        std::os::unix::fs::symlink("a.yaml", at("manifests/c.yaml")).expect("a link");
        let shown = ["a.yaml", "b.yaml", "c.yaml"].map(|name| {
            let name = at("manifests").join(name).display().to_string();
            let mut sources = Sources::default();
            sources.read(&name);
            sources.line(&name, 1).is_some()
        });
        assert_eq!(shown, [true, false, true]);
    }
}
