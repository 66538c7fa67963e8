//! Runs the user's `git`, only to read.
//!
//! It is started directly and never through a shell. It finds the repository as usual (the working directory, `GIT_DIR`
//! and so on), uses no pager, never prompts and takes no locks. None of the commands used here runs a hook or a filter.
//!
//! A repository can come from somebody else, and its configuration can name programs. Git would start one of them when
//! it fetches what a partial clone lacks (`remote.*.uploadpack`, `core.sshCommand`), so it may not fetch: the user runs
//! `git fetch`, which is the user's own decision.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::CommandWrap;

use gantry_core::problem::Problem;
use gantry_core::program::{self, ProgramError, Talk};
use gantry_core::text;

/// A large repository on a slow disk takes minutes.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The maximum size of a list of files; a path has about 100 bytes.
const MAX_BYTES: usize = 256 << 20;
/// The maximum number of characters of git's messages that are shown.
const SHOWN: usize = 600;

/// Why git failed.
#[derive(Debug)]
pub struct Failed {
    failure: ProgramError,
    /// Its standard error.
    pub said: String,
    /// The remote that a partial clone would fetch missing objects from, if that is why git failed.
    lacks_objects_of: Option<String>,
}

/// Runs git and returns its output.
pub async fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Result<Vec<u8>, Failed> {
    run_with_warnings(arguments).await.map(|(answer, _)| answer)
}

/// Like [`run`], but also returns standard error of a successful run.
pub async fn run_with_warnings<S: AsRef<OsStr>>(arguments: &[S]) -> Result<(Vec<u8>, String), Failed> {
    let (answer, said) = program::run(command(arguments, Stdio::null()), None, TIMEOUT, MAX_BYTES).await;
    match answer {
        Ok(answer) => Ok((answer, said)),
        Err(failure) => Err(failed(failure, said).await),
    }
}

/// Starts a git process that reads requests, and lets `talk` exchange data with it.
pub async fn converse<'f, S: AsRef<OsStr>>(
    arguments: &[S],
    talk: impl FnOnce(Option<tokio::process::ChildStdin>, tokio::process::ChildStdout) -> Talk<'f> + Send,
) -> Result<(), Failed> {
    let (ended, said) = program::converse(command(arguments, Stdio::piped()), TIMEOUT, talk).await;
    match ended {
        Ok(()) => Ok(()),
        Err(failure) => Err(failed(failure, said).await),
    }
}

async fn failed(failure: ProgramError, said: String) -> Failed {
    // Versions of git before 2.45 ignore the variable that forbids fetching, and are not allowed any transport.
    let is_partial = said.contains("lazy fetching disabled") || said.contains("promisor remote");
    let lacks_objects_of = if is_partial { Some(promisor().await) } else { None };
    Failed { failure, said, lacks_objects_of }
}

/// The remote of a partial clone.
async fn promisor() -> String {
    let query = ["config", "--get-regexp", r"^remote\..*\.promisor$"];
    let (answer, _) = program::run(command(&query, Stdio::null()), None, TIMEOUT, MAX_BYTES).await;
    let answer = String::from_utf8_lossy(&answer.unwrap_or_default()).into_owned();
    let name =
        answer.lines().find_map(|line| line.strip_prefix("remote.")?.split_once(".promisor").map(|(name, _)| name));
    // The name becomes part of a command to copy.
    let is_plain = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte));
    name.filter(is_plain).filter(|name| !name.starts_with('-')).unwrap_or("origin").to_owned()
}

fn command<S: AsRef<OsStr>>(arguments: &[S], stdin: Stdio) -> CommandWrap {
    let mut command = CommandWrap::with_new(OsString::from("git"), |command| {
        // Paths are taken literally, and git always warns about ambiguous names.
        let options = ["--no-pager", "--literal-pathspecs", "-c", "core.warnAmbiguousRefs=true"];
        command.args(options);
        // No program that the repository names, whatever the commands below read.
        for setting in ["core.fsmonitor=false", "core.hooksPath=/dev/null", "gc.auto=0", "core.pager=cat"] {
            command.args(["-c", setting]);
        }
        command.args(arguments);
        // Its messages are parsed.
        command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
        command.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none").env_remove("GIT_EXTERNAL_DIFF");
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    });
    program::as_group(&mut command);
    command
}

impl Failed {
    /// The problem to report.
    pub fn problem(&self) -> Problem {
        match &self.failure {
            ProgramError::NotStarted(error) if error.kind() == io::ErrorKind::NotFound => {
                Problem::new("git is not installed")
                    .help("install git, or add it to PATH; gantry reads the commit with it")
            }
            ProgramError::NotStarted(error) => Problem::new(format!("cannot start git: {error}")),
            ProgramError::TimedOut => {
                Problem::new(format!("git did not finish within {} s and was stopped", TIMEOUT.as_secs()))
                    .help("check that the repository is on a fast disk, and see what git fsck reports")
            }
            ProgramError::TooLong => {
                Problem::new(format!("git listed more than {} MiB of files and was stopped", MAX_BYTES >> 20))
                    .help("name a folder of the commit: --target git:REV:PATH")
            }
            ProgramError::Ended(_) | ProgramError::Broken(_) if self.lacks_objects_of.is_some() => {
                let remote = self.lacks_objects_of.as_deref().unwrap_or_default();
                Problem::new("this is a partial clone, and it lacks files of the commit").help(format!(
                    "fetch them: git fetch --refetch --no-filter {remote} (gantry does not fetch, because git would run \
                     programs that the configuration of the repository names)"
                ))
            }
            ProgramError::Ended(_) if self.is_no_repository() => {
                Problem::new("the working directory is not in a git repository")
                    .help("run gantry in the repository, or set GIT_DIR; --target dir:PATH reads a folder")
            }
            // If git fails during the exchange, it exits before it has responded.
            ProgramError::Ended(_) | ProgramError::Broken(_) if !self.said.is_empty() => {
                let mut lines: Vec<&str> = Vec::new();
                for line in self.said.lines().map(str::trim).filter(|line| !line.is_empty()) {
                    // Git prints the same message for each retry.
                    if !lines.contains(&line) {
                        lines.push(line);
                    }
                }
                // The message is the `fatal` line; the lines after it are git's hints.
                let ended = lines.iter().position(|line| line.starts_with("fatal: ")).unwrap_or_default();
                let rest = lines.split_off((ended + 1).min(lines.len())).join(" ");
                let message = lines.pop().unwrap_or_default();
                let message = message.trim_start_matches("fatal: ").trim_start_matches("error: ");
                let problem = Problem::new(format!("git failed: {}", words(message)));
                match rest.as_str() {
                    "" if self.is_damage() => problem.help(
                        "the repository is damaged: see what git fsck reports, and fetch again (git fetch --refetch) or \
                         clone again",
                    ),
                    "" => problem,
                    rest => problem.help(words(rest)),
                }
            }
            ProgramError::Ended(status) => Problem::new(format!("git failed ({status})")),
            ProgramError::Broken(error) => Problem::new(format!("cannot read from git: {error}")),
        }
    }

    /// Whether git ran and reported a failure.
    pub fn is_answer(&self) -> bool {
        matches!(self.failure, ProgramError::Ended(_))
    }

    fn is_damage(&self) -> bool {
        let signs = [
            "is corrupt",
            "is empty",
            "inflate:",
            "unable to unpack",
            "unable to read",
            "not a tree object",
            "bad object",
        ];
        signs.iter().any(|sign| self.said.contains(sign))
    }

    fn is_no_repository(&self) -> bool {
        self.said.contains("not a git repository")
    }
}

fn words(said: &str) -> String {
    text::sanitize(&text::cut(said, SHOWN)).into_owned()
}

/// The bytes of a path in the repository.
pub fn bytes(path: &OsStr) -> Vec<u8> {
    #[cfg(unix)]
    return std::os::unix::ffi::OsStrExt::as_bytes(path).to_vec();
    #[cfg(not(unix))]
    return path.to_string_lossy().replace('\\', "/").into_bytes();
}

/// A path in the repository as an argument, or as a path of the file system.
pub fn os(path: &[u8]) -> OsString {
    #[cfg(unix)]
    return std::os::unix::ffi::OsStringExt::from_vec(path.to_vec());
    #[cfg(not(unix))]
    return String::from_utf8_lossy(path).into_owned().into();
}
