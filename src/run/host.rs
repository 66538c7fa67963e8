//! The environment of a run, and its exit code.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio::sync::watch;

use gantry_core::ci_log::{self, Guarded, OutputSyntax};
use gantry_core::date::Date;
use gantry_core::options::ColorChoice;
use gantry_core::problem::{Error, Problem};
use gantry_core::text;
use gantry_core::ui;
use gantry_report::human::{HumanOptions, Sources, write_problems};

/// The environment of a run: streams, variables, folder, clock. Passed in, so that no code below reads a global.
pub struct Host {
    /// Taken by its only reader: the manifests (`-f -`) or the confirmation.
    pub stdin: Option<Box<dyn BufRead + Send>>,
    /// Reports, diffs and lists.
    pub stdout: Box<dyn Write + Send>,
    /// Problems, progress and questions.
    pub stderr: Box<dyn Write + Send>,
    /// Whether somebody can answer a question.
    pub stdin_is_terminal: bool,
    /// Whether reports are for people, in the width of the terminal.
    pub stdout_is_terminal: bool,
    /// Whether progress can be drawn.
    pub stderr_is_terminal: bool,
    /// All variables, including those of the configuration (`GANTRY_…`).
    pub environment: BTreeMap<String, String>,
    /// The variables that are not in `environment` because their name or value is not UTF-8.
    pub unreadable_environment: BTreeMap<String, OsString>,
    /// Relative paths are resolved against it.
    pub working_directory: PathBuf,
    /// The words of the command line, with the name of the program first; for reports that say how they were made.
    pub arguments: Vec<String>,
    /// Today in UTC, for expiry dates.
    pub today: Date,
    /// When the run starts, for reports that say it.
    pub started: SystemTime,
    /// Becomes true when the user interrupts the run.
    pub stop: watch::Receiver<bool>,
    /// How much the run has written, for a caller that ends the process.
    pub writes: Arc<WriteProgress>,
}

/// How many changes of a deploy are done: objects written, deleted, released.
#[derive(Debug, Default)]
pub struct WriteProgress {
    total: AtomicUsize,
    done: AtomicUsize,
    /// The counts of single clusters, which are added.
    parts: Mutex<Vec<Arc<WriteProgress>>>,
}

impl WriteProgress {
    /// A separate count for one cluster.
    fn part(&self) -> Arc<WriteProgress> {
        let part = Arc::new(WriteProgress::default());
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&part));
        part
    }

    /// How many changes are done, and how many there are, including those of all parts.
    fn count(&self) -> (usize, usize) {
        let own = (self.done.load(Ordering::SeqCst), self.total.load(Ordering::SeqCst));
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().map(|part| part.count()).fold(own, |all, part| (all.0 + part.0, all.1 + part.1))
    }

    /// Sets the number of changes to make.
    pub(crate) fn begin(&self, total: usize) {
        self.total.store(total, Ordering::SeqCst);
    }

    /// Sets the number of changes that are done.
    pub(crate) fn set_done(&self, done: usize) {
        self.done.store(done, Ordering::SeqCst);
    }
}

impl fmt::Display for WriteProgress {
    /// The message if the process ends now.
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

/// The exit codes. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Deployed, nothing to do, or warnings only.
    Success = 0,
    /// The run failed: something could not be read, reached or checked.
    Failed = 1,
    /// Usage or configuration error, found before any request.
    Usage = 2,
    /// A check, or an object that the target would refuse, blocks the deploy; nothing was written.
    Blocked = 3,
    /// There are changes to make, or changes were made; only with `--detailed-exitcode`.
    Changes = 4,
    /// Written, but something failed or is not ready in time, or a deleted object is not gone.
    NotReady = 5,
}

impl From<&Error> for Exit {
    fn from(error: &Error) -> Self {
        match error {
            Error::Usage(_) => Exit::Usage,
            Error::Failed(_) => Exit::Failed,
            Error::Blocked(_) => Exit::Blocked,
        }
    }
}

impl Host {
    /// The environment of a run on one of many clusters: it asks no questions, and the whole run reports its result.
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
            arguments: self.arguments.clone(),
            today: self.today,
            started: self.started,
            stop: self.stop.clone(),
            writes: self.writes.part(),
        }
    }

    /// Escapes commands of CI hosts in everything that is written to standard error, unless people read it directly.
    pub(super) fn guard_stderr(&mut self) {
        if !self.stderr_is_terminal || ci_log::is_detected(&self.environment) {
            let stderr = std::mem::replace(&mut self.stderr, Box::new(io::sink()));
            self.stderr = Box::new(Guarded::new(stderr, OutputSyntax::Text));
        }
    }

    /// Standard output for a report or an answer in this syntax, with the commands of CI hosts escaped. Only this
    /// writes to standard output.
    pub(super) fn stdout(&mut self, syntax: OutputSyntax) -> Guarded<&mut (dyn Write + Send)> {
        Guarded::new(&mut *self.stdout, syntax)
    }

    /// The same for a command that writes until it ends, from several tasks.
    pub(super) fn take_stdout(&mut self, syntax: OutputSyntax) -> Guarded<Box<dyn Write + Send>> {
        Guarded::new(std::mem::replace(&mut self.stdout, Box::new(io::sink())), syntax)
    }

    /// Whether to colour a stream.
    pub(super) fn color(&self, choice: ColorChoice, is_terminal: bool) -> bool {
        ui::color::decide(choice, |name| self.environment.get(name).cloned(), is_terminal)
    }

    /// Prints the errors of a command that has no report.
    pub(super) fn complain(&mut self, error: &Error) -> Exit {
        let mut sources = Sources::default();
        for at in error.problems().iter().filter_map(|problem| problem.at.as_ref()) {
            sources.read(&at.file);
        }
        let color = self.color(ColorChoice::Auto, self.stderr_is_terminal);
        // All are printed, because no report has them.
        let options = HumanOptions { color, verbose: true, ..HumanOptions::default() };
        let _ = write_problems(error.problems(), &options, &sources, &mut self.stderr);
        Exit::from(error)
    }

    /// Prints notices.
    pub(super) fn print_notices<'a>(&mut self, notices: impl IntoIterator<Item = &'a Problem>) {
        for notice in notices {
            let text = text::sanitize_block(&notice.to_string()).into_owned();
            let help = notice.help.as_deref().map(|help| format!(" ({})", text::sanitize(help)));
            let _ = writeln!(self.stderr, "notice: {text}{}", help.unwrap_or_default());
        }
    }

    /// Prints the whole answer of a command.
    pub(super) fn say(&mut self, text: &str) -> Exit {
        let mut out = self.stdout(OutputSyntax::detect(text));
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Ok(()) => Exit::Success,
            // The reader closed the pipe (`gantry rules | head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Err(error) => self.complain(&Error::failed(Problem::new(format!("cannot write: {error}")))),
        }
    }
}
