//! The surroundings of a run, and how it ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::date::Date;
use crate::options::ColorChoice;
use crate::problem::{Error, Problem};
use crate::report::human::{HumanOptions, Sources, write_problems};
use crate::text;
use crate::ui;

/// The surroundings of a run, handed in so that nothing below reads a global.
pub struct Host {
    /// Taken by its one reader: the manifests (`-f -`) or the question before writing.
    pub stdin: Option<Box<dyn BufRead + Send>>,
    pub stdout: Box<dyn Write + Send>,
    pub stderr: Box<dyn Write + Send>,
    pub stdin_is_terminal: bool,
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
    pub environment: BTreeMap<String, String>,
    /// The variables whose name or value is not UTF-8, and which are therefore not in `environment`.
    pub unreadable_environment: BTreeMap<String, OsString>,
    pub working_directory: PathBuf,
    /// In UTC: what expires is measured by it.
    pub today: Date,
    /// Becomes true when the user interrupts the run.
    pub stop: watch::Receiver<bool>,
    /// How far the run has written, for a caller that ends it.
    pub writes: Arc<Writes>,
}

/// How many changes of a deploy are made: objects written, deleted, let go.
#[derive(Debug, Default)]
pub struct Writes {
    total: AtomicUsize,
    done: AtomicUsize,
    /// Those of single clusters, which count as well.
    parts: Mutex<Vec<Arc<Writes>>>,
}

impl Writes {
    /// A part of them, to be counted by itself.
    fn part(&self) -> Arc<Writes> {
        let part = Arc::new(Writes::default());
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&part));
        part
    }

    /// How many are made, and how many there are, those of all parts included.
    fn count(&self) -> (usize, usize) {
        let own = (self.done.load(Ordering::SeqCst), self.total.load(Ordering::SeqCst));
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().map(|part| part.count()).fold(own, |all, part| (all.0 + part.0, all.1 + part.1))
    }

    /// So many changes are going to be made.
    pub(crate) fn begin(&self, total: usize) {
        self.total.store(total, Ordering::SeqCst);
    }

    /// So many changes are made.
    pub(crate) fn done(&self, done: usize) {
        self.done.store(done, Ordering::SeqCst);
    }
}

impl fmt::Display for Writes {
    /// What to say when a run ends where it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, total) = self.count();
        match total {
            0 => f.write_str("interrupted; nothing was written"),
            total if done == total => write!(f, "interrupted; all {} were made", text::count(total, "change")),
            total => write!(
                f,
                "interrupted; {done} of {} {} made, and those in flight may have been too; run the same command \
                    again to continue",
                text::count(total, "change"),
                if done == 1 { "was" } else { "were" }
            ),
        }
    }
}

/// How a process ends. The numbers are a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Deployed, nothing to do, or warnings only.
    Success = 0,
    /// Could not.
    Failed = 1,
    /// Usage or configuration error, before any request.
    Usage = 2,
    /// A preflight check blocked the deploy; nothing was written.
    Blocked = 3,
    /// There are changes to make, or changes were made; only for who asked to be told.
    Changes = 4,
    /// Written, but something has failed or is not ready in time, or what was deleted is not gone.
    NotReady = 5,
}

impl From<&Error> for Exit {
    fn from(error: &Error) -> Self {
        match error {
            Error::Usage(_) => Exit::Usage,
            Error::Failed(_) => Exit::Failed,
        }
    }
}

impl Host {
    /// The surroundings of a run on one of many clusters: it asks nobody, and the whole run reports what it found.
    pub(super) fn for_cluster(&self) -> Host {
        Host {
            stdin: None,
            stdout: Box::new(io::sink()),
            stderr: Box::new(io::sink()),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            environment: self.environment.clone(),
            unreadable_environment: self.unreadable_environment.clone(),
            working_directory: self.working_directory.clone(),
            today: self.today,
            stop: self.stop.clone(),
            writes: self.writes.part(),
        }
    }

    /// Whether to colour a stream.
    pub(super) fn color(&self, choice: ColorChoice, is_terminal: bool) -> bool {
        ui::color::decide(choice, |name| self.environment.get(name).cloned(), is_terminal)
    }

    /// Says what stopped a command that has no report.
    pub(super) fn complain(&mut self, error: &Error) -> Exit {
        let mut sources = Sources::default();
        for at in error.problems().iter().filter_map(|problem| problem.at.as_ref()) {
            sources.read(&at.file);
        }
        let color = self.color(ColorChoice::Auto, self.stderr_is_terminal);
        // There is no report that would have all of them.
        let options = HumanOptions { color, verbose: true, ..HumanOptions::default() };
        let _ = write_problems(error.problems(), &options, &sources, &mut self.stderr);
        Exit::from(error)
    }

    /// Says what the user should know and what stops nothing.
    pub(super) fn notices<'a>(&mut self, notices: impl IntoIterator<Item = &'a Problem>) {
        for notice in notices {
            let text = text::sanitize_block(&notice.to_string()).into_owned();
            let help = notice.help.as_deref().map(|help| format!(" ({})", text::sanitize(help)));
            let _ = writeln!(self.stderr, "notice: {text}{}", help.unwrap_or_default());
        }
    }

    /// Prints the whole answer of a command.
    pub(super) fn say(&mut self, text: &str) -> Exit {
        match self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush()) {
            Ok(()) => Exit::Success,
            // The reader has what it wanted (`gantry rules | head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Err(error) => self.complain(&Error::failed(Problem::new(format!("cannot write: {error}")))),
        }
    }
}
