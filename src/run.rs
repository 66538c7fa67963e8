//! The flow, from parsed arguments to an exit code.

mod file;
mod flow;
mod output;
mod permissions;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

use crate::cli::{Cli, Command, ConfigCommand, ConfigFlags, RulesArgs};
use crate::config::{self, Loader, Overrides};
use crate::date::Date;
use crate::manifest;
use crate::options::{ColorChoice, Format};
use crate::preflight::{explain, registry};
use crate::problem::{Error, Problem, Result};
use crate::report::human::{HumanOptions, Sources, write_problems};
use crate::report::json;
use crate::text;
use crate::ui;

/// The surroundings of a run, handed in so that nothing below reads a global.
pub struct Host {
    /// Taken by whoever reads it: the manifests (`-f -`) or the question before writing.
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

/// How many objects of a deploy are written.
#[derive(Debug, Default)]
pub struct Writes {
    total: AtomicUsize,
    done: AtomicUsize,
}

impl Writes {
    /// So many objects are going to be written.
    pub(crate) fn begin(&self, total: usize) {
        self.total.store(total, Ordering::SeqCst);
    }

    /// So many objects are written.
    pub(crate) fn done(&self, done: usize) {
        self.done.store(done, Ordering::SeqCst);
    }
}

impl fmt::Display for Writes {
    /// What to say when a run ends where it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, total) = (self.done.load(Ordering::SeqCst), self.total.load(Ordering::SeqCst));
        match total {
            0 => f.write_str("interrupted; nothing was written"),
            total if done == total => write!(f, "interrupted; all {} were applied", text::count(total, "object")),
            total => write!(
                f,
                "interrupted; {done} of {} {} applied, and those under way may have been; run the same command again to continue",
                text::count(total, "object"),
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
    /// Whether to colour a stream.
    fn color(&self, choice: ColorChoice, is_terminal: bool) -> bool {
        ui::color::decide(choice, |name| self.environment.get(name).cloned(), is_terminal)
    }

    /// Says what stopped a command that has no report.
    fn complain(&mut self, error: &Error) -> Exit {
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
    fn notices<'a>(&mut self, notices: impl IntoIterator<Item = &'a Problem>) {
        for notice in notices {
            let text = text::sanitize_block(&notice.to_string()).into_owned();
            let help = notice.help.as_deref().map(|help| format!(" ({})", text::sanitize(help)));
            let _ = writeln!(self.stderr, "notice: {text}{}", help.unwrap_or_default());
        }
    }

    /// Prints the whole answer of a command.
    fn say(&mut self, text: &str) -> Exit {
        match self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush()) {
            Ok(()) => Exit::Success,
            // The reader has what it wanted (`gantry rules | head`).
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
            Err(error) => self.complain(&Error::failed(Problem::new(format!("cannot write: {error}")))),
        }
    }
}

/// Runs one command to its end.
pub async fn run(cli: Cli, host: &mut Host) -> Exit {
    let answer = match &cli.command {
        Command::Deploy(args) => return flow::run(&args.flow, Some(args), host).await,
        Command::Check(args) => return flow::run(&args.flow, None, host).await,
        Command::Permissions(args) => permissions::run(args, host).await,
        Command::Rules(args) => rules(args, host),
        Command::Config(args) => match &args.command {
            ConfigCommand::Schema => Ok(pretty(&config::schema(&registry::known()))),
            ConfigCommand::Show { config, files, output } => show(config, files, *output, host),
        },
    };
    match answer {
        Ok(text) => host.say(&text),
        Err(error) => host.complain(&error),
    }
}

/// Every check and rule, those that the configuration defines included; or one of them.
fn rules(args: &RulesArgs, host: &mut Host) -> Result<String> {
    let of_gantry = args.name.as_deref().and_then(explain::explain);
    if let Some(text) = of_gantry {
        return Ok(text);
    }
    let loaded = loader(&args.config, host).load([], &registry::known());
    let own = match (loaded, &args.name) {
        (Ok(loaded), _) => loaded.settings.own_checks,
        // What gantry brings can be listed whatever state the project's file is in.
        (Err(_), None) if args.config.config_files.is_empty() => {
            let _ = writeln!(
                host.stderr,
                "notice: your own checks are not listed, as the configuration has mistakes: gantry config show"
            );
            Vec::new()
        }
        (Err(error), _) => return Err(error),
    };
    match &args.name {
        None => Ok(explain::list(&own)),
        Some(name) => explain::explain_own(name, &own),
    }
}

fn loader(flags: &ConfigFlags, host: &Host) -> Loader {
    Loader {
        environment: host.environment.clone(),
        unreadable_environment: host.unreadable_environment.clone(),
        working_directory: host.working_directory.clone(),
        files: flags.config_files.clone(),
        overrides: Overrides { allow_exec: flags.allow_exec, ..Overrides::default() },
    }
}

/// The merged configuration with the origin of each value.
fn show(flags: &ConfigFlags, files: &[String], output: Option<Format>, host: &mut Host) -> Result<String> {
    let loader = loader(flags, host);
    let manifests = match files {
        [] => manifest::Loaded::default(),
        files => manifest::load(files, &mut host.stdin).map_err(Error::Failed)?,
    };
    let origins = manifests.configs.iter().map(|document| &document.origin);
    let loaded = loader.load(origins, &registry::known())?;
    host.notices(&loaded.notices);
    Ok(match output.unwrap_or(Format::Human) {
        Format::Human => loaded.settings.show(),
        Format::Json => pretty(&serde_json::json!(loaded.settings.list())),
    })
}

fn pretty(value: &serde_json::Value) -> String {
    let mut out = Vec::new();
    // Memory takes everything, and JSON is text.
    let _ = json::write_value(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
