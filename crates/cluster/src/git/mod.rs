//! A commit of a git repository whose manifests count as live. It is read-only.
//!
//! Only files of the commit are read, as stored: neither the checked-out files nor git's filters matter. Their meaning
//! is the same as in a folder ([`super::dir`]).

mod blobs;
mod checkout;
mod command;
pub mod commit_files;
mod desired;
mod moved;
mod paths;
mod repository;
mod tree;

use self::blobs::{BlobRequest, Blobs, GitObjectContent, MAX_BYTES_IN_ALL};
use self::commit_files::CommitFiles;
use self::paths::RepositoryPath;
use self::repository::{Commit, Repository};
use self::tree::{Depth, Gathering, Side};
use super::DesiredSource;
use super::dir::{FileContainer, FixedFile, FolderState, snapshot};
use super::recorded::RecordedTarget;
use gantry_core::manifest::MAX_SOURCE_BYTES;
use gantry_core::options::GitSpec;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render::{RenderedManifests, Renderer};

pub use desired::{has_chart, read_manifests};

/// Reads the manifests of the commit below the target's path, or below the paths of `-f`. Objects that are not there
/// are looked up in the rest of the commit.
///
/// # Errors
/// There is no repository or no such commit, or its manifests cannot be read.
pub(super) async fn open(spec: &GitSpec, desired: DesiredSource<'_>) -> Result<RecordedTarget> {
    let repository = Repository::find().await.map_err(Error::failed)?;
    let wanted = paths::requested_paths(spec, desired.files, repository.work_tree.as_deref())?;
    let commit = repository.commit(&spec.revision).await.map_err(Error::failed)?;
    let ReadCommit { files, notices, markers } =
        ReadCommit::read(&commit, &repository, wanted, Side::Live, desired).await?;
    let mut state = FolderState::of_fixed(files, FileContainer::Commit, desired.namespace)?;
    state.release = snapshot::release_in_markers(markers);
    let spec = spec.to_string();
    let spec = gantry_core::manifest::shown_text(spec.strip_prefix("git:").unwrap_or(&spec));
    Ok(RecordedTarget {
        description: format!("git: {spec} ({})", commit.short_hash()),
        name: commit.name,
        namespace: None,
        state,
        notices,
        commit: Some(CommitFiles { hash: commit.hash, work_tree: repository.work_tree.clone() }),
    })
}

/// What was read from a commit.
struct ReadCommit {
    files: Vec<FixedFile>,
    notices: Vec<Problem>,
    /// The texts of the files that mark snapshots.
    markers: Vec<Vec<u8>>,
}

impl ReadCommit {
    /// Reads the manifests below these paths, or renders them.
    async fn read(
        commit: &Commit,
        repository: &Repository,
        wanted: Vec<RepositoryPath>,
        side: Side,
        desired: DesiredSource<'_>,
    ) -> Result<Self> {
        let is_whole = wanted.iter().any(|wanted| wanted.path.is_empty());
        let paths: Vec<&[u8]> = wanted.iter().filter(|_| !is_whole).map(|wanted| wanted.path.as_slice()).collect();
        let entries = tree::list(&commit.hash, &paths, Depth::Files, b"").await.map_err(Error::failed)?;
        let mut gathering = Gathering::new(commit, repository, side);
        let (mut rendered, mut plain) = (Vec::new(), Vec::new());
        for wanted in wanted {
            let is_chart = tree::is_chart(&entries, &wanted.path);
            match desired.render.and_then(|renderers| renderers.choose(wanted.is_kustomization, is_chart)) {
                Some(renderer) => rendered.push((wanted, renderer)),
                None => plain.push(wanted),
            }
        }
        let mut markers = Vec::new();
        if !plain.is_empty() {
            let (gathered, snapshots) = (&mut gathering, &mut markers);
            let read = command::converse(&Blobs::COMMAND, |stdin, stdout| {
                Box::pin(async move {
                    let mut blobs = Blobs::new(stdin, stdout, MAX_SOURCE_BYTES, MAX_BYTES_IN_ALL)?;
                    let is_wanted = |path: &[u8]| plain.iter().any(|wanted| tree::is_within(path, &wanted.path));
                    let of_snapshots =
                        entries.iter().filter(|entry| snapshot::is_marker(&entry.path) && is_wanted(&entry.path));
                    let requests: Vec<_> = of_snapshots.map(|entry| BlobRequest::Hash(entry.hash.clone())).collect();
                    let keep = |_, content| {
                        if let GitObjectContent::File(marker) = content {
                            snapshots.push(marker);
                        }
                    };
                    blobs.read(&requests, keep).await?;
                    gathered.gather(&plain, &entries, &mut blobs).await?;
                    gathered.follow_moved(&plain, desired.loaded, &mut blobs).await
                })
            });
            read.await.map_err(|failed| Error::failed(failed.problem()))?;
        }
        if !rendered.is_empty() {
            render(&mut gathering, &rendered).await?;
        }
        let Gathering { files, mut problems, notices, .. } = gathering;
        if !problems.is_empty() {
            problems.sort();
            return Err(Error::Failed(problems));
        }
        let notices = commit.notices.iter().cloned().chain(notices).collect();
        Ok(ReadCommit { files, notices, markers })
    }
}

/// Renders the manifests at these paths. The programs find all files of the commit, because they can read any of them.
async fn render(gathering: &mut Gathering<'_>, wanted: &[(RepositoryPath, Renderer<'_>)]) -> Result<()> {
    let repository = gathering.repository;
    let entries = tree::list(&gathering.commit.hash, &[], Depth::Files, b"").await.map_err(Error::failed)?;
    let checkout = tempfile::Builder::new().prefix("gantry-commit.").tempdir().map_err(|error| no_folder(&error))?;
    let root = checkout.path();
    let mut present = Vec::new();
    let (gathered, to_render) = (&mut *gathering, &mut present);
    let read = command::converse(&Blobs::COMMAND, |stdin, stdout| {
        Box::pin(async move {
            // Files that are written for a renderer are not kept, and have a limit of their own.
            let mut blobs = Blobs::new(stdin, stdout, MAX_SOURCE_BYTES, u64::MAX)?;
            *to_render = gathered.present(wanted, &entries, &mut blobs).await?;
            if !to_render.is_empty() {
                gathered.problems.extend(checkout::write(&entries, &mut blobs, root).await?);
            }
            Ok(())
        })
    });
    read.await.map_err(|failed| Error::failed(failed.problem()))?;
    if !gathering.problems.is_empty() {
        return Ok(());
    }
    // Other relative paths in the command lead to the same files, as of the commit.
    let from = root.join(repository.prefix());
    std::fs::create_dir_all(&from).map_err(|error| no_folder(&error))?;
    for (path, renderer) in present {
        let folder = root.join(command::os(&path));
        match renderer.run(folder.as_os_str(), &from, &gathering.name(&path)).await {
            Ok(RenderedManifests { source, notice }) => {
                // Only what is about to be installed.
                gathering.notices.extend(notice.filter(|_| gathering.side == Side::Desired));
                gathering.add_rendered(&path, source, root);
            }
            Err(problem) => gathering.problems.push(problem),
        }
    }
    Ok(())
}

fn no_folder(error: &std::io::Error) -> Error {
    let problem = Problem::new(format!("cannot create a temporary folder for the files of the commit: {error}"));
    Error::failed(problem.help("set TMPDIR to a folder with enough free space"))
}
