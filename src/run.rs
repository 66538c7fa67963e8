//! The flow, from parsed arguments to an exit code.

mod flow;
mod output;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use tokio::sync::watch;

use crate::cli::{Cli, Command, ConfigArgs, ConfigCommand, Format, RulesArgs};
use crate::config;
use crate::manifest;
use crate::preflight;
use crate::problem::{Error, Problem};

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
    pub working_directory: PathBuf,
    /// Becomes true when the user interrupts the run.
    pub stop: watch::Receiver<bool>,
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

/// Runs one command to its end.
pub async fn run(cli: Cli, host: &mut Host) -> Exit {
    match cli.command {
        Command::Deploy(args) => flow::run(&args.flow, Some(&args), host).await,
        Command::Check(args) => flow::run(&args.flow, None, host).await,
        Command::Rules(args) => rules(&args, host),
        Command::Config(args) => show_config(&args, host),
    }
}

fn rules(args: &RulesArgs, host: &mut Host) -> Exit {
    let _ = (args, host);
    Exit::Success
}
fn show_config(_args: &ConfigArgs, _host: &mut Host) -> Exit {
    Exit::Success
}
