//! The files of a commit, and which of them contain manifests.
//!
//! A path is read like an argument of `-f`: a file with any name, all manifests below a folder, and for a bundle its
//! `manifests/`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::blobs::{BlobRequest, Blobs, GitObjectContent, MAX_BYTES_IN_ALL};
use super::command;
use super::paths::RepositoryPath;
use super::repository::{Commit, Repository};
use crate::dir::{FixedFile, unfollowed};
use gantry_core::manifest::{
    ANNOTATIONS, CommittedFile, MANIFESTS, ManifestSource, is_manifest_file, says_bundle, shown_text, text,
};
use gantry_core::problem::{Location, Problem, did_you_mean};
use gantry_core::program::ProgramError;
use gantry_core::render::{CHART_FILE, Renderer, is_package};

/// The type of a path in the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitFileMode {
    File,
    Link,
    Submodule,
    Folder,
}

/// A path in the commit.
#[derive(Debug, Clone)]
pub struct GitTreeEntry {
    pub mode: GitFileMode,
    pub is_executable: bool,
    pub hash: String,
    pub path: Vec<u8>,
}

/// How deep a list goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// All files below the paths, without the folders.
    Files,
    /// The folders on the way to the paths, and their direct contents.
    Folders,
}

/// Lists these paths of a tree, or the whole tree if there are none. `prefix` is prepended to the paths of a tree that
/// is not the root.
pub async fn list(tree: &str, paths: &[&[u8]], depth: Depth, prefix: &[u8]) -> Result<Vec<GitTreeEntry>, Problem> {
    let depth = match depth {
        Depth::Files => "-r",
        Depth::Folders => "-t",
    };
    let mut arguments: Vec<OsString> = ["ls-tree", depth, "-z", "--full-tree"].map(OsString::from).into();
    arguments.push(tree.into());
    arguments.push("--".into());
    arguments.extend(paths.iter().map(|path| command::os(path)));
    let answer = command::run(&arguments).await.map_err(|failed| failed.problem())?;
    let read = |line: &[u8]| {
        let end = line.iter().position(|byte| *byte == b'\t')?;
        let head = std::str::from_utf8(&line[..end]).ok()?;
        let mut words = head.split(' ');
        let (bits, kind, hash) = (words.next()?, words.next()?, words.next()?);
        let mode = match (kind, bits) {
            ("blob", "120000") => GitFileMode::Link,
            ("blob", _) => GitFileMode::File,
            ("commit", _) => GitFileMode::Submodule,
            _ => GitFileMode::Folder,
        };
        let path = match prefix {
            [] => line[end + 1..].to_vec(),
            prefix => [prefix, b"/", &line[end + 1..]].concat(),
        };
        Some(GitTreeEntry { mode, is_executable: bits == "100755", hash: hash.to_owned(), path })
    };
    let lines = answer.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    lines
        .map(read)
        .collect::<Option<_>>()
        .ok_or_else(|| Problem::new("cannot parse the list of files that git printed"))
}

/// What the manifests of a commit stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The live objects: what is not there does not exist yet.
    Live,
    /// The manifests that `-f` names: what is not there is an error, as it is for files.
    Desired,
}

impl Side {
    /// The flag that named the commit.
    pub(super) fn flag(self) -> &'static str {
        match self {
            Side::Live => "--target",
            Side::Desired => "-f",
        }
    }
}

/// Collects the manifests of a commit.
pub struct Gathering<'a> {
    pub(super) commit: &'a Commit,
    pub(super) repository: &'a Repository,
    pub(super) side: Side,
    /// Paths on disk that the commit does not have.
    pub(super) absent: Vec<Vec<u8>>,
    /// The files to read, by path.
    requests: BTreeMap<Vec<u8>, BlobRequest>,
    /// Links that are not read; a notice reports those that lead to a folder.
    links: BTreeMap<Vec<u8>, BlobRequest>,
    pub files: Vec<FixedFile>,
    pub problems: Vec<Problem>,
    pub notices: Vec<Problem>,
}

impl<'a> Gathering<'a> {
    pub fn new(commit: &'a Commit, repository: &'a Repository, side: Side) -> Self {
        let (absent, requests, links, files, problems, notices) = Default::default();
        Gathering { commit, repository, side, absent, requests, links, files, problems, notices }
    }

    /// Finds and reads the manifests; `entries` are the files below the paths.
    pub async fn gather(
        &mut self,
        wanted: &[RepositoryPath],
        entries: &[GitTreeEntry],
        blobs: &mut Blobs,
    ) -> Result<(), ProgramError> {
        for wanted in wanted {
            self.find(wanted, entries, blobs).await?;
        }
        self.read(blobs).await
    }

    /// A path of the commit, as shown in messages and reports and accepted by `git show`.
    pub fn name(&self, path: &[u8]) -> String {
        shown_text(&format!("{}:{}", self.commit.name, String::from_utf8_lossy(path)))
    }

    pub(super) fn at(&self, path: &[u8]) -> Location {
        Location { file: self.name(path), line: 0, column: 0 }
    }

    fn request(&self, path: &[u8]) -> BlobRequest {
        BlobRequest::Path { commit: self.commit.hash.clone(), path: path.to_vec() }
    }

    /// The paths that exist, for a program that renders them. The missing ones count as an empty cluster, with a
    /// notice.
    pub async fn present<'r>(
        &mut self,
        wanted: &[(RepositoryPath, Renderer<'r>)],
        entries: &[GitTreeEntry],
        blobs: &mut Blobs,
    ) -> Result<Vec<(Vec<u8>, Renderer<'r>)>, ProgramError> {
        let mut present = Vec::new();
        for (wanted, renderer) in wanted {
            match entries.iter().any(|entry| is_within(&entry.path, &wanted.path)) {
                true => present.push((wanted.path.clone(), *renderer)),
                false => self.handle_missing_path(wanted, blobs).await?,
            }
        }
        for path in std::mem::take(&mut self.absent) {
            self.notices.push(self.not_there(&path));
        }
        Ok(present)
    }

    /// The file of the working tree with this path.
    fn on_disk_path(&self, path: &Path) -> PathBuf {
        self.repository.work_tree.as_ref().map_or_else(|| path.to_owned(), |root| root.join(path))
    }

    /// Adds a text that was rendered from the files at a path, which were written below `checkout`.
    pub fn add_rendered(&mut self, path: &[u8], mut source: ManifestSource, checkout: &Path) {
        let from = source.rendered_from.take();
        let from = from.map(|from| from.strip_prefix(checkout).map(Path::to_owned).unwrap_or(from));
        source.rendered_from = from.map(|from| self.on_disk_path(&from));
        self.files.push(FixedFile::new(command::os(path).into(), Arc::new(source), None));
    }

    async fn find(
        &mut self,
        wanted: &RepositoryPath,
        entries: &[GitTreeEntry],
        blobs: &mut Blobs,
    ) -> Result<(), ProgramError> {
        let path = &wanted.path;
        let below: Vec<&GitTreeEntry> = entries.iter().filter(|entry| is_within(&entry.path, path)).collect();
        match below.as_slice() {
            [entry] if entry.path == *path => match entry.mode {
                GitFileMode::File => drop(self.requests.insert(path.clone(), BlobRequest::Hash(entry.hash.clone()))),
                GitFileMode::Submodule => self.report_submodule(path, path),
                _ => self.follow(wanted, blobs).await?,
            },
            // The root of a commit without files, or a path that leads through a link.
            [] if !path.is_empty() => self.follow(wanted, blobs).await?,
            _ => self.gather_folder(path, &below, blobs).await?,
        }
        Ok(())
    }

    /// Resolves a path that is a link, leads through one, or does not exist.
    async fn follow(&mut self, wanted: &RepositoryPath, blobs: &mut Blobs) -> Result<(), ProgramError> {
        let path = &wanted.path;
        if path.contains(&b'\n') {
            self.problems.push(Problem::new("a path with a line break cannot be looked up").at(self.at(path)));
            return Ok(());
        }
        match read_blob(blobs, self.request(path)).await? {
            GitObjectContent::Folder(tree) => match list(&tree, &[], Depth::Files, path).await {
                Ok(entries) => self.gather_folder(path, &entries.iter().collect::<Vec<_>>(), blobs).await?,
                Err(problem) => self.problems.push(problem),
            },
            GitObjectContent::Nothing => self.handle_missing_path(wanted, blobs).await?,
            // Read together with the other files, where all remaining errors are reported.
            _ => drop(self.requests.insert(path.clone(), self.request(path))),
        }
        Ok(())
    }

    /// Adds the manifests below a folder.
    async fn gather_folder(
        &mut self,
        folder: &[u8],
        entries: &[&GitTreeEntry],
        blobs: &mut Blobs,
    ) -> Result<(), ProgramError> {
        let bundles = bundles(entries, blobs).await?;
        let before = self.requests.len();
        for entry in entries {
            let path = &entry.path;
            let bundle = bundles.iter().find(|bundle| is_within(path, bundle));
            let is_manifest = match bundle {
                Some(bundle) => parent(path) == join(bundle, MANIFESTS.as_bytes()),
                None => is_manifest_file(Path::new(&command::os(path))),
            };
            let request = match entry.mode {
                GitFileMode::Submodule => {
                    let notice = Problem::new("a submodule; its files are not read").at(self.at(path));
                    self.notices.push(notice.help("its manifests are in another repository: run gantry there"));
                    continue;
                }
                // A link to a folder can have any name.
                GitFileMode::Link if !is_manifest && bundle.is_none() && !path.contains(&b'\n') => {
                    self.links.insert(path.clone(), self.request(path));
                    continue;
                }
                _ if !is_manifest => continue,
                GitFileMode::File | GitFileMode::Folder => BlobRequest::Hash(entry.hash.clone()),
                GitFileMode::Link if path.contains(&b'\n') => {
                    let problem = Problem::new("a link whose name has a line break cannot be looked up");
                    self.problems.push(problem.at(self.at(path)));
                    continue;
                }
                GitFileMode::Link => self.request(path),
            };
            self.requests.insert(path.clone(), request);
        }
        if let (Side::Desired, Some(bundle)) = (self.side, bundles.first()) {
            let problem = Problem::new("a bundle is not read from a commit").at(self.at(bundle));
            let help = format!("check it out: git worktree add DIR {}; then -f DIR/PATH", self.commit.name);
            self.problems.push(problem.help(help));
        }
        if self.requests.len() == before {
            let (rest, problems) = match self.side {
                Side::Live => ("; nothing in it counts as live", &mut self.notices),
                Side::Desired => (" at this commit", &mut self.problems),
            };
            let at = Location {
                file: shown_text(&format!("{}:{}", self.commit.name, String::from_utf8_lossy(folder))),
                line: 0,
                column: 0,
            };
            problems.push(Problem::new(format!("no .yaml, .yml or .json file{rest}")).at(at));
        }
        Ok(())
    }

    /// Handles a path that the commit does not have.
    async fn handle_missing_path(&mut self, wanted: &RepositoryPath, blobs: &mut Blobs) -> Result<(), ProgramError> {
        let path = &wanted.path;
        let ancestors: Vec<&[u8]> = ancestors(path).collect();
        let mut known = match list(&self.commit.hash, &ancestors, Depth::Folders, b"").await {
            Ok(known) => known,
            Err(problem) => {
                self.problems.push(problem);
                return Ok(());
            }
        };
        known.retain(|entry| is_within(path, &entry.path));
        if let Some(submodule) = known.iter().find(|entry| entry.mode == GitFileMode::Submodule) {
            self.report_submodule(path, &submodule.path);
            return Ok(());
        }
        let is_on_disk = match &self.repository.work_tree {
            Some(root) => root.join(command::os(path)).symlink_metadata().is_ok(),
            None => false,
        };
        let head = BlobRequest::Path { commit: "HEAD".into(), path: path.clone() };
        if self.side == Side::Live && (is_on_disk || !wanted.is_written_out) {
            self.absent.push(path.clone());
            return Ok(());
        }
        if self.side == Side::Live && !matches!(read_blob(blobs, head).await?, GitObjectContent::Nothing) {
            self.notices.push(self.not_there(path));
            return Ok(());
        }
        // It exists nowhere, so it is more likely a typo than a new folder.
        let parent = known.last().map_or(&[][..], |entry| &entry.path);
        let below = format!("{}:{}", self.commit.hash, String::from_utf8_lossy(parent));
        let near = list(&below, &[], Depth::Folders, b"").await.unwrap_or_default();
        let names: Vec<String> = near.iter().map(|entry| String::from_utf8_lossy(&entry.path).into_owned()).collect();
        let rest = path.get(parent.len()..).unwrap_or_default();
        let step =
            String::from_utf8_lossy(rest).trim_start_matches('/').split('/').next().unwrap_or_default().to_owned();
        let message = match self.side {
            Side::Live => "does not exist at this commit, nor at HEAD",
            Side::Desired => "does not exist at this commit",
        };
        let problem = Problem::new(message).at(self.at(path));
        self.problems.push(match did_you_mean(&step, names.iter().map(String::as_str)) {
            Some(name) => {
                let path = join(parent, name.as_bytes());
                problem.help(format!("did you mean {}?", shown_text(&String::from_utf8_lossy(&path))))
            }
            None => problem.help("PATH is relative to the root of the repository"),
        });
        Ok(())
    }

    /// The notice for a path that counts as an empty cluster.
    pub(super) fn not_there(&self, path: &[u8]) -> Problem {
        let message = "does not exist at this commit; nothing in it counts as live";
        let help = format!("if its objects were elsewhere, name that path: --target git:{}:PATH", self.commit.name);
        Problem::new(message).at(self.at(path)).help(help)
    }

    fn report_submodule(&mut self, path: &[u8], submodule: &[u8]) {
        let shown = shown_text(&String::from_utf8_lossy(submodule));
        let problem = Problem::new(format!("{shown} is a submodule: its files are in another repository"));
        self.problems.push(problem.at(self.at(path)).help(format!("run gantry in {shown}")));
    }

    /// Reads the files that were found.
    async fn read(&mut self, blobs: &mut Blobs) -> Result<(), ProgramError> {
        let manifests = std::mem::take(&mut self.requests);
        let links = std::mem::take(&mut self.links).into_iter().filter(|(path, _)| !manifests.contains_key(path));
        let links: Vec<(Vec<u8>, BlobRequest)> = links.collect();
        let number = manifests.len();
        let (paths, requests): (Vec<Vec<u8>>, Vec<BlobRequest>) = manifests.into_iter().chain(links).unzip();
        let take = |index: usize, content| match (index < number, &content) {
            (true, _) => self.take(&paths[index], content),
            (false, GitObjectContent::Folder(_)) => self.notices.push(self.link_to_folder(&paths[index])),
            (false, _) => {}
        };
        blobs.read(&requests, take).await
    }

    fn link_to_folder(&self, path: &[u8]) -> Problem {
        unfollowed(self.name(path)).help(format!("name the path that it leads to: {} git:REV:PATH", self.side.flag()))
    }

    fn take(&mut self, path: &[u8], content: GitObjectContent) {
        let name = self.name(path);
        let problem = |message: String| Problem::new(message).at(self.at(path));
        let bytes = match content {
            GitObjectContent::File(bytes) => bytes,
            GitObjectContent::TooLong => {
                return self.problems.push(problem("too large to read".into()).help("split it into several files"));
            }
            GitObjectContent::TooMuch => {
                // Reported once.
                let too_much = too_much();
                if !self.problems.contains(&too_much) {
                    self.problems.push(too_much);
                }
                return;
            }
            GitObjectContent::Folder(_) => {
                return self.notices.push(self.link_to_folder(path));
            }
            GitObjectContent::Nothing if self.side == Side::Desired => {
                let help = "remove the link, or restore what it links to";
                return self.problems.push(problem("broken symbolic link at this commit".into()).help(help));
            }
            GitObjectContent::Nothing => {
                return self.notices.push(problem("a dangling link at this commit is not read".into()));
            }
            GitObjectContent::Outside(to) => {
                let message =
                    format!("a link out of the repository, to {}, which the commit does not contain", shown_text(&to));
                let help = format!("name a path without the link: {} git:REV:PATH", self.side.flag());
                return self.problems.push(problem(message).help(help));
            }
            GitObjectContent::Missing => {
                let help = "see what git fsck reports; fetch again: git fetch --refetch";
                let message = "git cannot read the file: this clone lacks it, or is damaged";
                return self.problems.push(problem(message.into()).help(help));
            }
        };
        if is_lfs_pointer(&bytes) {
            let folder = if self.side == Side::Live { "--target dir:PATH" } else { "-f PATH" };
            let help =
                format!("git has no content for it; check out the commit with Git LFS, and name that folder: {folder}");
            return self.problems.push(problem("a Git LFS pointer instead of the file".into()).help(help));
        }
        match text(&name, bytes) {
            Ok(text) => {
                let at = PathBuf::from(command::os(path));
                let on_disk = self.on_disk_path(&at);
                let file = CommittedFile { commit: self.commit.hash.clone(), path: at, on_disk };
                let source = Arc::new(ManifestSource::committed(name, text, file));
                self.files.push(FixedFile::new(command::os(path).into(), source, None));
            }
            Err(problem) => self.problems.push(problem),
        }
    }
}

/// The problem if all files together are longer than the limit.
pub(super) fn too_much() -> Problem {
    Problem::new(format!("the manifests of the commit are larger than {} MiB in all", MAX_BYTES_IN_ALL >> 20))
        .help("name the folders to compare with: --target git:REV:PATH")
}

async fn read_blob(blobs: &mut Blobs, request: BlobRequest) -> Result<GitObjectContent, ProgramError> {
    let mut answer = GitObjectContent::Nothing;
    blobs.read(&[request], |_, content| answer = content).await?;
    Ok(answer)
}

/// The folders that are bundles.
async fn bundles(entries: &[&GitTreeEntry], blobs: &mut Blobs) -> Result<BTreeSet<Vec<u8>>, ProgramError> {
    let is_file = |entry: &&&GitTreeEntry| entry.mode == GitFileMode::File;
    let root = |entry: &&GitTreeEntry| {
        let root = entry.path.strip_suffix(ANNOTATIONS.as_bytes())?;
        let root = if root.is_empty() { root } else { root.strip_suffix(b"/")? };
        Some((root.to_vec(), BlobRequest::Hash(entry.hash.clone())))
    };
    let (roots, requests): (Vec<_>, Vec<_>) = entries.iter().filter(is_file).filter_map(root).unzip();
    let mut bundles = BTreeSet::new();
    if roots.is_empty() {
        return Ok(bundles);
    }
    let take = |index: usize, content| {
        let root: &Vec<u8> = &roots[index];
        let manifests = join(root, MANIFESTS.as_bytes());
        if let GitObjectContent::File(bytes) = content
            && std::str::from_utf8(&bytes).is_ok_and(says_bundle)
            && entries.iter().any(|entry| entry.path != manifests && is_within(&entry.path, &manifests))
        {
            bundles.insert(root.clone());
        }
    };
    blobs.read(&requests, take).await?;
    Ok(bundles)
}

/// Whether a path is a chart: a folder with a `Chart.yaml`, or a packaged one.
pub(super) fn is_chart(entries: &[GitTreeEntry], path: &[u8]) -> bool {
    let file = join(path, CHART_FILE.as_bytes());
    let is_file = |wanted: &[u8]| entries.iter().any(|entry| entry.mode == GitFileMode::File && entry.path == wanted);
    is_file(&file) || is_package(&String::from_utf8_lossy(path)) && is_file(path)
}

/// Whether a path is this folder or below it.
pub(super) fn is_within(path: &[u8], folder: &[u8]) -> bool {
    match path.strip_prefix(folder) {
        Some(rest) => folder.is_empty() || rest.is_empty() || rest.starts_with(b"/"),
        None => false,
    }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |end| &path[..end])
}

/// The path and the folders that contain it, starting at the root.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
    ends.chain([path.len()]).map(|end| &path[..end])
}

/// Whether this is the placeholder that the repository has for a file in Git LFS.
fn is_lfs_pointer(bytes: &[u8]) -> bool {
    bytes.len() < 1024 && bytes.starts_with(b"version https://git-lfs.github.com/spec/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_their_segments() {
        assert!(is_within(b"a/b", b"a") && is_within(b"a", b"a") && is_within(b"a", b""));
        assert!(!is_within(b"ab", b"a") && !is_within(b"a", b"a/b"));
        assert_eq!(ancestors(b"a/b/c").collect::<Vec<_>>(), [&b"a"[..], b"a/b", b"a/b/c"]);
        assert_eq!((parent(b"a/b"), parent(b"a")), (&b"a"[..], &b""[..]));
    }
}
