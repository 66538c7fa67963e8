//! `check --watch`: checks again whenever the manifests or the configuration change, for authors of CRDs.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc;

use super::file;
use super::flow::{self, Goal};
use super::host::{Exit, Host};
use super::interrupt::interrupt;
use super::prepare::loader;
use crate::cli::FlowArgs;
use gantry_core::manifest::shown_text;
use gantry_core::options::HelmReleaseSpec;
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::render;
use gantry_deploy::config::PROJECT_FILE;
use gantry_preflight::registry;

/// Editors write a file in several steps. A change counts once nothing has changed for this long.
const QUIET: Duration = Duration::from_millis(150);
/// The longest wait for that.
const MOST_WAIT: Duration = Duration::from_secs(2);

/// Checks until the user interrupts it. The exit code is that of the last run.
pub async fn check_on_change(args: &FlowArgs, goal: Goal<'_>, host: &mut Host) -> Exit {
    let mut changes = match WatchedFiles::of_arguments(args, host).and_then(FileChanges::begin) {
        Ok(changes) => changes,
        Err(error) => return host.complain(&error),
    };
    loop {
        let exit = Box::pin(flow::run(args, goal, host)).await;
        if *host.stop.borrow() {
            return exit;
        }
        let _ = writeln!(host.stderr, "waiting for changes; Ctrl-C ends");
        let _ = host.stderr.flush();
        let changed = tokio::select! {
            changed = changes.next() => changed,
            () = interrupt(&host.stop) => return exit,
        };
        let Some(path) = changed else { return exit };
        let shown = path.strip_prefix(&host.working_directory).unwrap_or(&path);
        let _ = writeln!(host.stderr, "\n{} changed", shown_text(&shown.to_string_lossy()));
    }
}

/// The files that a check reads, as far as they are on disk.
#[derive(Debug, Default)]
struct WatchedFiles {
    /// Absolute.
    files: BTreeSet<PathBuf>,
    /// Everything below them counts. Absolute.
    folders: BTreeSet<PathBuf>,
    /// The reports that the run writes.
    written: BTreeSet<PathBuf>,
}

impl WatchedFiles {
    /// # Errors
    /// The arguments name nothing that can change, or standard input.
    fn of_arguments(args: &FlowArgs, host: &Host) -> Result<Self> {
        // The events of the system name real paths.
        let root = host.working_directory.canonicalize().unwrap_or_else(|_| host.working_directory.clone());
        let mut watched = WatchedFiles::default();
        for argument in args.input.arguments() {
            let path = render::folder_of_kustomization(&argument).unwrap_or(&argument);
            if path == "-" {
                let problem = Problem::new("--watch: standard input is read only once");
                return Err(Error::usage(problem.help("name files or folders with -f")));
            }
            let is_elsewhere = path.contains("://") || path.starts_with("git:");
            if !is_elsewhere && HelmReleaseSpec::of_argument(path).is_none() {
                watched.add(&root.join(path));
            }
        }
        if watched.files.is_empty() && watched.folders.is_empty() {
            let problem = Problem::new("--watch: -f names no file on disk that can change");
            return Err(Error::usage(problem.help("name files or folders with -f")));
        }
        let values = args.input.chart.values.iter().filter(|name| !name.contains("://")).map(PathBuf::from);
        // The project file may be created only now.
        let project = [PathBuf::from(PROJECT_FILE)];
        for file in values.chain(loader(&args.input.config, host).every_file()).chain(project) {
            watched.add(&root.join(file));
        }
        // A configuration with errors is reported by the run.
        let configured = loader(&args.input.config, host).load([], &registry::known());
        let of_configuration = configured.map(|loaded| loaded.settings.output).unwrap_or_default();
        let reports = args.output.specs.iter().chain(&of_configuration).filter_map(|spec| spec.file.as_ref());
        watched.written = reports.filter_map(|report| file::replaced(&root.join(report))).collect();
        Ok(watched)
    }

    fn add(&mut self, path: &Path) {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        match path.is_dir() {
            true => self.folders.insert(path),
            false => self.files.insert(path),
        };
    }

    /// Whether a change of this path counts.
    fn concerns(&self, path: &Path) -> bool {
        // Git writes its own files during a commit, and reports must not cause the next run.
        let is_of_git = path.components().any(|step| step.as_os_str() == ".git");
        let is_unfinished =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(file::TEMPORARY.as_bytes()));
        !is_of_git
            && !is_unfinished
            && !self.written.contains(path)
            && (self.files.contains(path) || self.folders.iter().any(|folder| path.starts_with(folder)))
    }
}

/// The changes of files, as the system reports them.
struct FileChanges {
    receiver: mpsc::UnboundedReceiver<PathBuf>,
    /// Ends the reports when it is dropped.
    _watcher: RecommendedWatcher,
}

impl FileChanges {
    /// # Errors
    /// The system cannot watch one of the files.
    fn begin(files: WatchedFiles) -> Result<Self> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let files = Arc::new(files);
        let known = Arc::clone(&files);
        let report = move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            // The system has dropped events.
            if event.need_rescan() {
                let any = known.files.iter().chain(&known.folders).next();
                any.into_iter().for_each(|path| drop(sender.send(path.clone())));
            }
            if matches!(event.kind, EventKind::Access(_)) {
                return;
            }
            for path in event.paths.into_iter().filter(|path| known.concerns(path)) {
                let _ = sender.send(path);
            }
        };
        let failed = |error: notify::Error| {
            let problem = Problem::new(format!("--watch: the files cannot be watched: {error}"));
            Error::failed(problem.help("run gantry check again by hand"))
        };
        let mut watcher = notify::recommended_watcher(report).map_err(failed)?;
        for folder in &files.folders {
            watcher.watch(folder, RecursiveMode::Recursive).map_err(failed)?;
        }
        // An editor replaces a file with another one, so its folder is watched.
        let parents: BTreeSet<&Path> = files.files.iter().filter_map(|file| file.parent()).collect();
        for folder in parents.into_iter().filter(|folder| folder.is_dir() && !files.folders.contains(*folder)) {
            watcher.watch(folder, RecursiveMode::NonRecursive).map_err(failed)?;
        }
        Ok(FileChanges { receiver, _watcher: watcher })
    }

    /// The first file that has changed since the last call, as soon as no more are changing.
    async fn next(&mut self) -> Option<PathBuf> {
        let mut changed = vec![self.receiver.recv().await?];
        let settled = async {
            while let Ok(Some(path)) = tokio::time::timeout(QUIET, self.receiver.recv()).await {
                changed.push(path);
            }
        };
        // A file that changes all the time must not prevent the run.
        let _ = tokio::time::timeout(MOST_WAIT, settled).await;
        // Editors write a temporary file first, which takes the place of the other one.
        let is_left = changed.iter().position(|path| path.exists());
        Some(changed.swap_remove(is_left.unwrap_or(0)))
    }
}
