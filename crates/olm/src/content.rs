//! Reads catalogs of the configuration and of a cluster (files, folders, URLs, and content that catalogd serves) as
//! streams of blobs.
//!
//! `gantry-catalog` interprets the blobs. Nothing is kept in memory here, because a catalog may have 250 MB.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use gantry_catalog::Blob;
use tokio::sync::mpsc;

use crate::cluster_catalog::ClusterCatalog;
use crate::source::{CatalogContent, CatalogSource};
use gantry_cluster::Target;
use gantry_cluster::kube::download::{DownloadChunk, download};
use gantry_core::parallel::on_cpu_thread;
use gantry_core::problem::{Error, Location, Problem, Result};

/// The catalogs of the configuration, and how they are read.
#[derive(Debug, Clone, Copy)]
pub struct Catalogs<'a> {
    /// The entries of `catalogs`, in the order of the file.
    pub sources: &'a [CatalogSource],
    /// The folder that relative paths are resolved against.
    pub working_directory: &'a Path,
    /// The maximum time without data from a server.
    pub timeout: Duration,
}

impl Catalogs<'_> {
    /// No catalogs at all.
    pub fn none() -> Catalogs<'static> {
        Catalogs { sources: &[], working_directory: Path::new("."), timeout: Duration::from_secs(1) }
    }
}

/// The number of parts of a response that are buffered for the reader.
const WAITING_PARTS: usize = 16;

/// Reports catalogs that name a missing file, before anything is read or requested.
pub fn check(sources: &[CatalogSource], working_directory: &Path) -> Result<()> {
    let problems: Vec<Problem> = sources
        .iter()
        .filter_map(|source| {
            let CatalogContent::Path(path) = &source.content else { return None };
            let error = std::fs::metadata(working_directory.join(path)).err()?;
            let why = match error.kind() {
                io::ErrorKind::NotFound => "no such file or folder".to_owned(),
                _ => error.to_string(),
            };
            Some(with_place(
                source,
                Problem::new(format!("the catalog {} cannot be read: {}: {why}", source.name, path.display())),
            ))
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Error::Usage(problems)) }
}

/// Reads a whole catalog and calls `each` with every blob. Returns the state of `each`, and an error if the catalog was
/// not read completely.
pub async fn read<T: Send + 'static>(
    source: &CatalogSource,
    working_directory: &Path,
    timeout: Duration,
    mut state: T,
    each: fn(&mut T, &Blob<'_>) -> std::result::Result<(), String>,
) -> (Option<T>, std::result::Result<(), Problem>) {
    match &source.content {
        CatalogContent::Path(path) => {
            let (path, named, source) = (working_directory.join(path), path.clone(), source.clone());
            let read = on_cpu_thread(move || {
                let read = of_path(&path, &named, &mut |blob| each(&mut state, blob));
                (state, read)
            });
            match read.await {
                Some((state, read)) => (Some(state), read.map_err(|problem| of_catalog(&source.name, problem))),
                None => (None, Err(interrupted())),
            }
        }
        CatalogContent::Url { url, ca_file } => {
            let ca_file = ca_file.as_ref().map(|path| working_directory.join(path));
            let (state, read) = streamed(state, each, |send| download(url, ca_file.as_deref(), timeout, send)).await;
            let read = read.map_err(|unread| match unread {
                IncompleteCatalog::Download(problem) => with_place(source, of_catalog(&source.name, problem)),
                IncompleteCatalog::Content(problem) => of_catalog(&source.name, problem),
            });
            (state, read)
        }
    }
}

/// Like [`read`], for the content of a catalog that a cluster serves.
pub async fn read_live<T: Send + 'static>(
    catalog: &ClusterCatalog,
    target: &Target,
    state: T,
    each: fn(&mut T, &Blob<'_>) -> std::result::Result<(), String>,
) -> (Option<T>, std::result::Result<(), Problem>) {
    let service = match catalog.service() {
        Ok(service) => service,
        Err(problem) => return (Some(state), Err(problem)),
    };
    let (state, read) = streamed(state, each, |send| target.download(&service, send)).await;
    let read = read.map_err(|unread| match unread {
        IncompleteCatalog::Download(problem) | IncompleteCatalog::Content(problem) => {
            of_catalog(&catalog.name, problem)
        }
    });
    (state, read)
}

/// The reason why a catalog was not read completely.
enum IncompleteCatalog {
    /// The download failed.
    Download(Problem),
    /// The content is not a valid catalog, or it is incomplete.
    Content(Problem),
}

/// Reads the parts that `send` sends.
async fn streamed<T: Send + 'static, S: Future<Output = std::result::Result<(), Problem>>>(
    mut state: T,
    each: fn(&mut T, &Blob<'_>) -> std::result::Result<(), String>,
    send: impl FnOnce(mpsc::Sender<DownloadChunk>) -> S,
) -> (Option<T>, std::result::Result<(), IncompleteCatalog>) {
    let (sender, receive) = mpsc::channel(WAITING_PARTS);
    let reading = on_cpu_thread(move || {
        let mut parts = DownloadReader { receive, part: Vec::new(), at: 0 };
        let read = gantry_catalog::read(&mut parts, &mut |blob| Ok(each(&mut state, blob)?));
        (state, read)
    });
    let (read, sent) = tokio::join!(reading, send(sender));
    match (read, sent) {
        (None, _) => (None, Err(IncompleteCatalog::Content(interrupted()))),
        // The download error is more useful than the error about truncated content.
        (Some((state, _)), Err(problem)) => (Some(state), Err(IncompleteCatalog::Download(problem))),
        (Some((state, read)), Ok(())) => {
            let problem =
                |error: gantry_catalog::CatalogReadError| Problem::new(format!("{}: {}", error.line, error.message));
            (Some(state), read.map_err(|error| IncompleteCatalog::Content(problem(error))))
        }
    }
}

fn interrupted() -> Problem {
    Problem::new("interrupted while reading a catalog")
}

fn of_path(
    path: &Path,
    named: &Path,
    each: &mut dyn FnMut(&Blob<'_>) -> std::result::Result<(), String>,
) -> std::result::Result<(), Problem> {
    let files = gantry_catalog::list_catalog_files(path).map_err(|unreadable| Problem::new(unreadable.to_string()))?;
    for file in files {
        let shown = match file.strip_prefix(path) {
            Ok(below) if below.as_os_str().is_empty() => named.to_owned(),
            Ok(below) => named.join(below),
            Err(_) => file.clone(),
        };
        let shown = shown.display().to_string();
        // An error quotes the text that it is about.
        let is_inside = || Some(file.canonicalize().ok()?.starts_with(path.canonicalize().ok()?));
        if file != path && file.is_symlink() && is_inside() == Some(false) {
            return Err(Problem::new(format!("{shown}: a link that leads out of the folder of the catalog")));
        }
        let input = File::open(&file).map_err(|error| Problem::new(format!("{shown}: {error}")))?;
        gantry_catalog::read(input, &mut |blob| Ok(each(blob)?)).map_err(|error| {
            let problem = Problem::new(error.message);
            problem.at(Location { file: shown.clone(), line: error.line, column: 0 })
        })?;
    }
    Ok(())
}

fn of_catalog(name: &str, problem: Problem) -> Problem {
    Problem { message: format!("the catalog {name} cannot be read: {}", problem.message), ..problem }
}

fn with_place(source: &CatalogSource, problem: Problem) -> Problem {
    match &source.at {
        Some(at) if problem.at.is_none() => problem.at(at.clone()),
        _ => problem,
    }
}

/// A reader over the parts of a download, for use on a separate thread.
struct DownloadReader {
    receive: mpsc::Receiver<DownloadChunk>,
    part: Vec<u8>,
    at: usize,
}

impl Read for DownloadReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.part.len() {
            match self.receive.blocking_recv() {
                Some(part) => (self.part, self.at) = (part?, 0),
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.part.len() - self.at);
        buffer[..count].copy_from_slice(&self.part[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
