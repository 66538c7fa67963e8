//! Config files: where gantry looks for them, and how it splits them into documents.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gantry_core::bounded;
use gantry_core::problem::Problem;

use super::document::{self, ConfigReading, ConfigText};
use super::origin::Layer;

/// The name of the project file, which is looked up in the working directory and then in each parent.
pub const PROJECT_FILE: &str = "gantry.yaml";

/// The path of the user's own file, in the configuration folder that the environment defines.
///
/// A folder may have a name that is not UTF-8.
pub(super) fn user_file(
    environment: &BTreeMap<String, String>,
    not_utf_8: &BTreeMap<String, OsString>,
    windows: bool,
) -> Option<PathBuf> {
    let folder = |name: &str| {
        let path = environment.get(name).map(PathBuf::from).or_else(|| not_utf_8.get(name).map(PathBuf::from));
        path.filter(|path| !path.as_os_str().is_empty())
    };
    let configuration = if windows {
        folder("APPDATA")?
    } else {
        // The XDG specification says to ignore a relative XDG_CONFIG_HOME.
        match folder("XDG_CONFIG_HOME").filter(|path| path.is_absolute()) {
            Some(path) => path,
            None => folder("HOME")?.join(".config"),
        }
    };
    Some(configuration.join("gantry").join("config.yaml"))
}

/// The nearest project file: its name relative to the working directory (`gantry.yaml`, `../gantry.yaml`), and its
/// path. An entry that cannot be read, such as a broken link, is not skipped: the file of a parent folder could allow
/// what this one forbids.
pub(super) fn project_file(
    working_directory: &Path,
    replaced: &BTreeMap<PathBuf, Option<String>>,
) -> Option<(PathBuf, PathBuf)> {
    let mut name = PathBuf::from(PROJECT_FILE);
    for folder in working_directory.ancestors() {
        let path = folder.join(PROJECT_FILE);
        if replaced.get(&path).map_or_else(|| !is_absent(&path), Option::is_some) {
            return Some((name, path));
        }
        name = Path::new("..").join(name);
    }
    None
}

/// Reads every document of the file at `path`; `name` is the path shown to the user, relative to the working directory.
/// A missing file is an error only if the user named it (`-c`).
/// `replaced` is the text in place of the one on disk, if any; a file without one has no documents.
/// With `confined_to`, the file may not name an output file or a target outside that folder.
pub(super) fn read(
    layer: Layer,
    name: &Path,
    path: &Path,
    replaced: Option<&Option<String>>,
    confined_to: Option<&Path>,
) -> ConfigReading {
    let mut reading = ConfigReading::default();
    let shown = name.display().to_string();
    let text = match replaced {
        Some(text) => Ok(text.clone().unwrap_or_default()),
        None => read_text(path),
    };
    let text = match text {
        Ok(text) => text,
        Err(_) if layer != Layer::File && is_absent(path) => return reading,
        Err(error) => {
            let why = match path.read_link() {
                // `ls` shows a broken link, so "no such file" would be confusing.
                Ok(to) if error.kind() == ErrorKind::NotFound => {
                    format!("broken symbolic link: {} does not exist", to.display())
                }
                _ => reason(&error),
            };
            let problem = Problem::new(format!("cannot read the config file {shown}: {why}"));
            reading.problems.push(problem);
            return reading;
        }
    };
    let folder = name.parent().unwrap_or(Path::new(""));
    for (index, bytes) in documents(&text).into_iter().enumerate() {
        reading.add(document::read(&ConfigText {
            layer,
            file: &shown,
            document: index + 1,
            text: &text[bytes.clone()],
            lines_before: count_lines(&text[..bytes.start]),
            within: &[],
            indent: 0,
            folded: None,
            folder,
            confined_to,
        }));
    }
    reading
}

/// Whether the folder has no entry with that name.
fn is_absent(path: &Path) -> bool {
    let error = path.symlink_metadata().err();
    error.is_some_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

/// What was read from pipes.
static PIPES: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// Reads a file. Configuration is read more than once: before the manifests are rendered, and with those among them. A
/// pipe, such as a shell's `<(…)`, can be read only once, so its content is kept.
fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    if path.metadata()?.is_file() {
        return bounded::read(path);
    }
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = pipes.get(path) {
        return Ok(bytes.clone());
    }
    let bytes = bounded::read(path)?;
    pipes.insert(path.to_owned(), bytes.clone());
    Ok(bytes)
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let text = String::from_utf8(read_bytes(path)?).map_err(|error| {
        let line = count_lines(&String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()])) + 1;
        std::io::Error::new(ErrorKind::InvalidData, format!("it is not UTF-8 (line {line})"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::IsADirectory => "it is a directory".into(),
        _ => error.to_string(),
    }
}

/// The number of line feeds in `text`.
pub(super) fn count_lines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// The byte range of each document of a YAML stream. A line that starts with `---` always starts a document.
fn documents(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let (mut start, mut at, mut directives) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        let marks = |mark: &str| {
            line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        };
        if marks("---") && !directives {
            found.push(start..at);
            start = at;
        } else if marks("...") {
            found.push(start..at);
            start = at + line.len();
        }
        // A directive (%YAML) belongs to the document that its --- begins.
        directives = line.starts_with('%') && (at == start || directives) || directives && line.starts_with('#');
        at += line.len();
    }
    found.push(start..at);
    found.retain(|bytes| !text[bytes.clone()].trim().is_empty());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<&str> {
        documents(text).into_iter().map(|bytes| &text[bytes]).collect()
    }

    #[test]
    fn documents_are_split_at_their_marks_only() {
        assert_eq!(split("a: 1\n---\nb: 2\n"), ["a: 1\n", "---\nb: 2\n"]);
        assert_eq!(split("---\r\na: 1\r\n...\r\n---\nb: 2"), ["---\r\na: 1\r\n", "---\nb: 2"]);
        assert_eq!(split("a: ---\nb: |\n  ---\n----: 1\n"), ["a: ---\nb: |\n  ---\n----: 1\n"]);
        assert_eq!(split("%YAML 1.1\n---\na: 1\n"), ["%YAML 1.1\n---\na: 1\n"]);
        assert_eq!(split("\n\n"), Vec::<&str>::new());
    }

    #[test]
    fn the_user_file_follows_the_environment() {
        let environment = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let home = environment(&[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "relative"), ("APPDATA", "/roaming")]);
        assert_eq!(user_file(&home, &BTreeMap::new(), false), Some("/home/ada/.config/gantry/config.yaml".into()));
        assert_eq!(user_file(&home, &BTreeMap::new(), true), Some("/roaming/gantry/config.yaml".into()));
        assert_eq!(user_file(&environment(&[("HOME", "")]), &BTreeMap::new(), false), None);
        if cfg!(unix) {
            let xdg = environment(&[("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/xdg")]);
            assert_eq!(user_file(&xdg, &BTreeMap::new(), false), Some("/xdg/gantry/config.yaml".into()));
        }
    }

    #[test]
    fn the_nearest_project_file_is_found() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(root.path().join("gantry.yaml"), "").unwrap();
        assert_eq!(
            project_file(&deep, &BTreeMap::new()),
            Some(("../../gantry.yaml".into(), root.path().join("gantry.yaml")))
        );
        std::fs::write(root.path().join("a/gantry.yaml"), "").unwrap();
        assert_eq!(
            project_file(&deep, &BTreeMap::new()),
            Some(("../gantry.yaml".into(), root.path().join("a/gantry.yaml")))
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_config_file_that_cannot_be_read_is_not_skipped() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let [folder, entry] = ["a", "a/gantry.yaml"].map(|name| root.path().join(name));
        std::fs::write(root.path().join("gantry.yaml"), "").unwrap();
        std::fs::create_dir(&folder).unwrap();
        let problems = |layer| -> Vec<String> {
            assert_eq!(project_file(&folder, &BTreeMap::new()), Some(("gantry.yaml".into(), entry.clone())));
            read(layer, Path::new("c.yaml"), &entry, None, None)
                .problems
                .into_iter()
                .map(|found| found.message)
                .collect()
        };
        let gone = "cannot read the config file c.yaml: broken symbolic link: gone.yaml does not exist";
        for layer in [Layer::User, Layer::Project, Layer::File] {
            symlink("gone.yaml", &entry).unwrap();
            assert_eq!(problems(layer), [gone]);
            std::fs::remove_file(&entry).unwrap();
            symlink("gantry.yaml", &entry).unwrap();
            let message = problems(layer).concat();
            assert!(message.contains("Too many levels of symbolic links"), "{message}");
            std::fs::remove_file(&entry).unwrap();
            std::fs::create_dir(&entry).unwrap();
            assert_eq!(problems(layer), ["cannot read the config file c.yaml: it is a directory"]);
            std::fs::remove_dir(&entry).unwrap();
        }
        // HOME may be /dev/null.
        let below_a_file = root.path().join("gantry.yaml").join("config.yaml");
        assert!(read(Layer::User, &below_a_file, &below_a_file, None, None).problems.is_empty());
    }
}
