//! The texts that objects come from.
//!
//! After the objects are read, a text is needed only for the places of findings and for excerpts. Long texts of regular
//! files are therefore not kept in memory, but read again for the few objects that have findings.

use std::fmt;
use std::fs::File;
use std::hash::BuildHasher;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use foldhash::quality::FixedState;

use super::files::text_of;

/// A file (or standard input) that was read.
pub struct ManifestSource {
    /// The path as the user gave it, or as it was found below a directory that the user gave; `-` for standard input.
    pub name: Arc<str>,
    /// The path that a program rendered the text from, relative to the working directory. Such a text is not in a file.
    pub rendered_from: Option<PathBuf>,
    /// The file of a commit that the text was read from.
    pub committed: Option<CommittedFile>,
    /// Empty until the text is needed again, if it is not kept.
    text: OnceLock<Arc<String>>,
    /// Where a text that is not kept is.
    file: Option<InFile>,
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedFile {
    /// The hash of the commit.
    pub commit: String,
    /// Relative to the root of the repository.
    pub path: PathBuf,
    /// The path of the same file in the working tree, whether it is there or not; relative to the root of the
    /// repository if it has no working tree.
    pub on_disk: PathBuf,
}

/// A text in a regular file.
struct InFile {
    path: PathBuf,
    /// Of the text as it was read first.
    length: usize,
    hash: u64,
}

impl ManifestSource {
    /// A text that is kept.
    pub fn new(name: impl Into<Arc<str>>, text: String) -> Self {
        ManifestSource::shared(name, Arc::new(text))
    }

    pub(super) fn shared(name: impl Into<Arc<str>>, text: Arc<String>) -> Self {
        ManifestSource {
            name: name.into(),
            rendered_from: None,
            committed: None,
            text: OnceLock::from(text),
            file: None,
        }
    }

    /// A text that a program rendered from the file at this path.
    pub fn rendered(name: impl Into<Arc<str>>, text: String, from: PathBuf) -> Self {
        ManifestSource { rendered_from: Some(from), ..ManifestSource::new(name, text) }
    }

    /// A text that was read from a file of a commit.
    pub fn committed(name: impl Into<Arc<str>>, text: String, file: CommittedFile) -> Self {
        ManifestSource { committed: Some(file), ..ManifestSource::new(name, text) }
    }

    /// The text of the regular file at `path`, which is read again when it is needed.
    pub(super) fn in_file(name: impl Into<Arc<str>>, path: PathBuf, text: &str) -> Self {
        let file = InFile { path, length: text.len(), hash: hash(text) };
        ManifestSource {
            name: name.into(),
            rendered_from: None,
            committed: None,
            text: OnceLock::new(),
            file: Some(file),
        }
    }

    /// The text. It is empty if it is not kept and the file has changed in the meantime; then places and excerpts are
    /// unknown.
    pub fn text(&self) -> &str {
        self.shared_text()
    }

    pub(super) fn shared_text(&self) -> &Arc<String> {
        self.text.get_or_init(|| {
            let text = self.file.as_ref().and_then(|file| file.read_again(&self.name));
            Arc::new(text.unwrap_or_default())
        })
    }
}

impl InFile {
    fn read_again(&self, name: &str) -> Option<String> {
        let mut bytes = Vec::with_capacity(self.length + 1);
        // The byte order mark is not part of the text.
        let most = self.length as u64 + 4;
        File::open(&self.path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        text_of(name, bytes).ok().filter(|text| text.len() == self.length && hash(text) == self.hash)
    }
}

fn hash(text: &str) -> u64 {
    FixedState::default().hash_one(text)
}

impl fmt::Debug for ManifestSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.file.as_ref().map_or_else(|| self.text().len(), |file| file.length);
        write!(f, "Source({}, {length} bytes)", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_a_file_is_read_again_unless_it_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        let read_again = |written: &[u8]| {
            let source = ManifestSource::in_file("a.yaml", path.clone(), "a: 1\n");
            std::fs::write(&path, written).unwrap();
            source.text().to_owned()
        };
        assert_eq!((read_again(b"a: 1\n"), read_again(b"\xef\xbb\xbfa: 1\n")), ("a: 1\n".into(), "a: 1\n".into()));
        for changed in [&b"a: 2\n"[..], b"a: 1", b"a: 1\n\n", b"a: 1\nb: 2\nc: 3\n", b"a: \xff\n"] {
            assert_eq!(read_again(changed), "");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(ManifestSource::in_file("a.yaml", path, "a: 1\n").text(), "");
    }
}
