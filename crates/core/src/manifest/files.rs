//! Reads the arguments of `-f` into memory.
//!
//! The files of a directory are chosen like kubectl chooses them: every `.yaml`, `.yml` and `.json` file below it,
//! including hidden ones. Links to other directories are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::bundles::Folder;
use super::objects::LARGE;
use super::{ManifestSource, shown_text};
use crate::parallel::in_parallel;
use crate::problem::{Location, Problem};

/// The maximum size of a file or of standard input, in bytes.
pub const MAX_SOURCE_BYTES: usize = gantry_yaml::MAX_BYTES;

/// The maximum size of the texts of all sources, in bytes, that are kept in memory.
const KEPT: usize = 4 << 20;

/// Whether a file in a directory is read as manifests, by its extension. A file that the user names is always read.
pub fn is_manifest_file(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension == *known))
}

/// The sources that were read, and problems and notices about the others.
#[derive(Default)]
pub(super) struct GatheredSources {
    pub sources: Vec<Arc<ManifestSource>>,
    /// The text of each source.
    pub texts: Vec<Arc<String>>,
    pub problems: Vec<Problem>,
    /// Directories without a manifest.
    pub empty: Vec<Problem>,
    pub notices: Vec<Problem>,
    pub bundles: Vec<Folder>,
    /// The index of the bundle that a source is part of, by the source's name.
    pub bundle_of: BTreeMap<String, usize>,
    /// The files to read.
    files: Vec<PathBuf>,
    /// What standard input contains, and the number of files before it.
    standard_input: Option<(usize, Result<ReadSource, Problem>)>,
    /// The canonical paths of the files.
    seen: BTreeSet<PathBuf>,
    /// The maximum size of one source, in bytes.
    most: usize,
}

/// Reads everything that the arguments name, each file once. A source larger than `most` bytes is a problem. First all
/// files are found, and then they are read on all cores: the live objects are not requested before everything is read.
pub(super) fn gather(inputs: &[String], stdin: &mut Option<impl Read>, most: usize) -> GatheredSources {
    let mut gathered = GatheredSources { most, ..GatheredSources::default() };
    for input in inputs {
        match input.as_str() {
            "-" => gathered.standard_input(stdin.take()),
            url if url.starts_with("http://") || url.starts_with("https://") => {
                let message = format!("{}: -f does not accept URLs", shown_text(url));
                let help = "download the manifest, review it, and pass the file";
                gathered.problems.push(Problem::new(message).help(help));
            }
            path => gathered.gather_argument(Path::new(path)),
        }
    }
    gathered.read_files();
    gathered
}

impl GatheredSources {
    /// Sources that are already in memory.
    pub fn from_sources(sources: Vec<Arc<ManifestSource>>) -> Self {
        let texts = sources.iter().map(|source| source.shared_text().clone()).collect();
        GatheredSources { sources, texts, ..GatheredSources::default() }
    }

    /// Standard input can be read once; a second `-` adds nothing.
    fn standard_input(&mut self, stdin: Option<impl Read>) {
        if let Some(stdin) = stdin {
            self.standard_input =
                Some((self.files.len(), source_from_bytes("-".into(), read(stdin, 0, self.most), self.most)));
        }
    }

    /// A file or directory that the user named.
    fn gather_argument(&mut self, path: &Path) {
        match fs::metadata(path) {
            Err(error) => self.problems.push(unreadable(path, &error)),
            Ok(metadata) if metadata.is_dir() => self.gather_directory(path),
            Ok(_) => self.gather_file(path.to_owned()),
        }
    }

    fn gather_directory(&mut self, directory: &Path) {
        let mut files = Vec::new();
        let problems_before = self.problems.len();
        if !self.is_bundle(directory, &mut files) {
            self.walk(directory, &mut files);
        }
        if files.is_empty() && self.problems.len() == problems_before {
            let problem =
                Problem::new("the directory has no .yaml, .yml or .json file").at(whole_file(&name(directory)));
            self.empty.push(problem.help("pass files with other extensions by name"));
        }
        for found in files {
            match found {
                InputEntry::File(file) => self.gather_file(file),
                InputEntry::Bundle(folder) => self.gather_bundle(folder),
            }
        }
    }

    /// Whether a directory is a bundle. Adds the bundle to `files`, or reports its problem.
    fn is_bundle(&mut self, directory: &Path, files: &mut Vec<InputEntry>) -> bool {
        match Folder::read(directory) {
            Ok(None) => return false,
            Ok(Some(folder)) => files.push(InputEntry::Bundle(folder)),
            Err(problem) => self.problems.push(problem),
        }
        true
    }

    /// Reads the objects of a bundle, and nothing else in its folder.
    fn gather_bundle(&mut self, folder: Folder) {
        let identity = fs::canonicalize(&folder.path).unwrap_or_else(|_| folder.path.clone());
        if !self.seen.insert(identity) {
            return;
        }
        let files = match folder.files() {
            Ok(files) => files,
            Err(problem) => return self.problems.push(problem),
        };
        let before = self.files.len();
        files.into_iter().for_each(|file| self.gather_file(file));
        let of_bundle = self.files[before..].iter().map(|file| (name(file), self.bundles.len()));
        self.bundle_of.extend(of_bundle);
        if let [first, more @ ..] = &folder.other_manifests()[..] {
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            let message = format!("gantry reads only manifests/ of a bundle, not {first}{more} next to it");
            let notice = Problem::new(message).at(whole_file(&name(&folder.path)));
            self.notices.push(notice.help("pass it with its own -f to deploy it"));
        }
        self.bundles.push(folder);
    }

    /// The manifests below `directory`, sorted by name in each directory.
    fn walk(&mut self, directory: &Path, files: &mut Vec<InputEntry>) {
        let entries = fs::read_dir(directory).and_then(|entries| entries.collect::<io::Result<Vec<_>>>());
        let mut paths: Vec<PathBuf> = match entries {
            Ok(entries) => entries.into_iter().map(|entry| entry.path()).collect(),
            Err(error) => return self.problems.push(unreadable(directory, &error)),
        };
        // The kubelet keeps the files of a mounted ConfigMap in a folder `..TIME`, with a link `..data` to it, and links to
        // the files beside both: a file is named by the link that people know.
        paths.sort_by_cached_key(|path| (starts_with_dots(path), path.clone()));
        for path in paths {
            let is_manifest = is_manifest_file(&path);
            let Ok(own) = fs::symlink_metadata(&path) else { continue };
            if own.is_dir() {
                if !self.is_bundle(&path, files) {
                    self.walk(&path, files);
                }
                continue;
            }
            match fs::metadata(&path) {
                Ok(target) if target.is_dir() && starts_with_dots(&path) && leads_beside(&path) => {}
                Ok(target) if target.is_dir() => {
                    let problem = Problem::new("a link to a directory, not followed").at(whole_file(&name(&path)));
                    self.notices.push(problem.help("pass it with its own -f to deploy it"));
                }
                Ok(target) if is_manifest && !target.is_file() => {
                    self.notices.push(Problem::new("not a regular file, not read").at(whole_file(&name(&path))));
                }
                // This includes broken links, which are reported when they are read.
                _ if is_manifest => files.push(InputEntry::File(path)),
                _ => {}
            }
        }
    }

    fn gather_file(&mut self, path: PathBuf) {
        if let Some(to) = leads_out(&path) {
            let message = format!("a link that leads out of the repository, to {}", name(&to));
            let help = "manifests of others must not name your files: replace the link by the file, or pass the file \
                        itself with -f";
            return self.problems.push(Problem::new(message).at(whole_file(&name(&path))).help(help));
        }
        let identity = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if self.seen.insert(identity) {
            self.files.push(path);
        }
    }

    /// Reads all files that were found.
    fn read_files(&mut self) {
        let (most, bundle_of) = (self.most, &self.bundle_of);
        let mut all = in_parallel(&std::mem::take(&mut self.files), |path| match File::open(path) {
            Ok(file) => {
                let metadata = file.metadata().ok().filter(Metadata::is_file);
                // Without a size hint, the buffer can grow to twice the size of the file.
                let size = metadata.as_ref().map_or(0, Metadata::len);
                let taken = source_from_bytes(name(path), read(file, size, most), most)?;
                // OLM reads a bundle, and skips such files.
                let is_of_bundle = || bundle_of.contains_key(&name(path));
                if metadata.is_some() && taken.text.is_empty() && !is_of_bundle() {
                    // What is left of a copy that broke off. With --prune, its objects would be deleted.
                    let help = "restore it; if it has no objects on purpose, remove it or write a comment into it";
                    return Err(Problem::new("the file is empty").at(whole_file(&name(path))).help(help));
                }
                Ok(ReadSource { file: metadata.map(|_| path.clone()), ..taken })
            }
            Err(error) => Err(unreadable(path, &error)),
        });
        if let Some((at, taken)) = self.standard_input.take() {
            all.insert(at, taken);
        }
        let length: usize = all.iter().flatten().map(|taken| taken.text.len()).sum();
        for taken in all {
            match taken {
                Ok(ReadSource { name, text, file }) => {
                    let text = Arc::new(text);
                    self.sources.push(Arc::new(match file {
                        // In a large file, the JSON of objects is made from the text.
                        Some(path) if length > KEPT && text.len() < LARGE => ManifestSource::in_file(name, path, &text),
                        _ => ManifestSource::shared(name, text.clone()),
                    }));
                    self.texts.push(text);
                }
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}

fn starts_with_dots(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".."))
}

/// Whether a link leads to an entry of the folder that the link itself is in.
fn leads_beside(link: &Path) -> bool {
    let parent = |path: &Path| path.parent().and_then(|parent| fs::canonicalize(parent).ok());
    fs::canonicalize(link).is_ok_and(|target| parent(&target).is_some_and(|folder| Some(folder) == parent(link)))
}

/// Where a path leads through links, if that is outside the repository that the path is in, or a file of git. Errors
/// quote what they are about, and reports of a pull request are public.
fn leads_out(path: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(path).ok()?;
    // `..` is resolved as the system does, but no link after it.
    let steps: Vec<_> = path.components().collect();
    let named = steps.iter().rposition(|step| *step == Component::ParentDir).map_or(0, |last| last + 1);
    let (start, rest): (PathBuf, PathBuf) = (steps[..named].iter().collect(), steps[named..].iter().collect());
    let start = if named == 0 { std::env::current_dir() } else { fs::canonicalize(start) };
    let shown = start.ok()?.join(rest);
    if shown == real {
        return None;
    }
    let repository = shown.ancestors().skip(1).find(|folder| folder.join(".git").exists())?;
    let is_of_git = real.components().any(|step| step.as_os_str().eq_ignore_ascii_case(".git"));
    let is_inside = fs::canonicalize(repository).is_ok_and(|repository| real.starts_with(repository));
    (is_of_git || !is_inside).then_some(real)
}

/// What was read.
struct ReadSource {
    name: String,
    text: String,
    /// The path of the regular file.
    file: Option<PathBuf>,
}

/// Reads up to one byte more than `most`, so [`source_from_bytes`] can detect a source that is too large. `size` is the initial
/// capacity.
fn read(reader: impl Read, size: u64, most: usize) -> io::Result<Vec<u8>> {
    let most = most as u64 + 1;
    let mut bytes = Vec::with_capacity(size.min(most) as usize);
    reader.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The source of this name and content.
fn source_from_bytes(name: String, bytes: io::Result<Vec<u8>>, most: usize) -> Result<ReadSource, Problem> {
    match bytes {
        Err(error) => Err(Problem::new(explain(&error)).at(whole_file(&name))),
        Ok(bytes) if bytes.len() > most => {
            let message = format!("larger than the limit of {} MiB per source", most >> 20);
            Err(Problem::new(message).at(whole_file(&name)).help("split it into several files"))
        }
        Ok(bytes) => text_of(&name, bytes).map(|text| ReadSource { name, text, file: None }),
    }
}

/// A file or a bundle in a directory.
enum InputEntry {
    File(PathBuf),
    Bundle(Folder),
}

#[derive(Debug)]
struct NotText {
    line: usize,
    column: usize,
    message: String,
    help: &'static str,
}

/// Decodes the content of the file of this name.
///
/// # Errors
/// It is not UTF-8.
pub fn text_of(name: &str, bytes: Vec<u8>) -> Result<String, Problem> {
    text(bytes).map_err(|NotText { line, column, message, help }| {
        Problem::new(message).at(Location { file: name.to_owned(), line, column }).help(help)
    })
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Decodes the content of a file and removes the byte order marks that some editors add.
fn text(bytes: Vec<u8>) -> Result<String, NotText> {
    // The mark of little-endian UTF-32 begins with that of UTF-16.
    let wide = match bytes.as_slice() {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        _ => None,
    };
    if let Some(encoding) = wide {
        let help = "save it as UTF-8 (Windows PowerShell's > writes UTF-16)";
        return Err(NotText { line: 1, column: 1, message: format!("the file is {encoding}, not UTF-8"), help });
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..at]);
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        NotText {
            line: before.matches('\n').count() + 1,
            column: before.chars().rev().take_while(|character| *character != '\n').count() + 1,
            message: format!("the file is not UTF-8: byte {at} is 0x{byte:02X}"),
            help: "save it as UTF-8; binary data of a Secret belongs in `data` as base64",
        }
    })?;
    if text.contains(BYTE_ORDER_MARK) {
        remove_byte_order_marks(&mut text);
    }
    Ok(text)
}

/// Removes the byte order mark at the start of the text and of each document: files can be joined with `---` between
/// them.
fn remove_byte_order_marks(text: &mut String) {
    let mut starts = true;
    let lines = text.split_inclusive('\n').map(|line| {
        let line = if starts { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line };
        starts = line.trim_end() == "---";
        line
    });
    *text = lines.collect();
}

fn unreadable(path: &Path, error: &io::Error) -> Problem {
    // `ls` shows a broken link, so "no such file" would be confusing.
    if error.kind() == io::ErrorKind::NotFound
        && let Ok(leads_to) = fs::read_link(path)
    {
        let message = format!("broken symbolic link: {} does not exist", name(&leads_to));
        return Problem::new(message).at(whole_file(&name(path))).help("remove the link, or restore what it links to");
    }
    Problem::new(explain(error)).at(whole_file(&name(path)))
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => format!("cannot be read: {error}"),
    }
}

/// A path for messages and reports.
fn name(path: &Path) -> String {
    shown_text(&path.to_string_lossy())
}

fn whole_file(file: &str) -> Location {
    Location { file: file.to_owned(), line: 0, column: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_that_is_too_large_is_refused() {
        let endless = io::repeat(b'#');
        let gathered = gather(&["-".to_owned()], &mut Some(endless), 3 << 20);
        assert_eq!(gathered.problems[0].to_string(), "<stdin>: larger than the limit of 3 MiB per source");
        assert!(gathered.sources.is_empty());
        let just = gather(&["-".to_owned()], &mut Some(io::repeat(b'#').take(3 << 20)), 3 << 20);
        assert_eq!(just.sources[0].text().len(), 3 << 20);
    }

    #[test]
    fn manifests_are_known_by_their_extension() {
        assert!(["a/b.yaml", "b.yml", "x.y.json"].iter().all(|path| is_manifest_file(path.as_ref())));
        assert!(!["a/.yaml", "a.yaml/x", "yaml", "a.YAML"].iter().any(|path| is_manifest_file(path.as_ref())));
    }

    #[test]
    fn text_is_utf8_and_nothing_else() {
        assert_eq!(text(b"\xef\xbb\xbfa: 1".to_vec()).unwrap(), "a: 1");
        let joined = "\u{feff}a: \u{feff}1\n---\r\n\u{feff}b: 1\n\u{feff}c: 1\n";
        assert_eq!(text(joined.into()).unwrap(), "a: \u{feff}1\n---\r\nb: 1\n\u{feff}c: 1\n");
        let latin = text(b"a: 1\nb: \xe9t\xe9\n".to_vec()).unwrap_err();
        assert_eq!((latin.line, latin.column), (2, 4));
        assert!(latin.message.contains("byte 8 is 0xE9"), "{}", latin.message);
        assert!(text(b"\xff\xfea\0".to_vec()).unwrap_err().message.contains("UTF-16"));
        assert!(text(b"\xff\xfe\0\0a\0\0\0".to_vec()).unwrap_err().message.contains("UTF-32"));
        assert!(text(b"cut \xc3".to_vec()).is_err());
    }
}
