//! Runs one program (a custom check, a credential plugin) and returns its output, with limits on time and memory.
//!
//! The program runs in a separate process group (a job on Windows). The whole group is killed when the program has
//! ended, when its time limit is reached, when its output is too long, and when the caller no longer waits for it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

#[cfg(windows)]
use process_wrap::tokio::JobObject;
#[cfg(unix)]
use process_wrap::tokio::ProcessGroup;
use process_wrap::tokio::{ChildWrapper, CommandWrap};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStdin, ChildStdout};

/// The number of bytes that are kept from the end of standard error.
const KEPT: usize = 16 * 1024;
/// How long the streams are still read after the program has ended.
const AFTERWARDS: Duration = Duration::from_secs(2);

/// A program and its environment.
pub struct Program<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// The folder that the program is started in.
    pub working_directory: &'a Path,
    /// All variables that the program gets; it inherits none.
    pub environment: &'a BTreeMap<String, String>,
    /// The time limit for the whole run.
    pub timeout: Duration,
    /// The maximum length of its output in bytes.
    pub limit: usize,
}

/// The reason why there is no output.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The operating system could not start it.
    #[error("cannot be started: {0}")]
    NotStarted(io::Error),
    /// The time limit was reached.
    #[error("did not end in time and was stopped")]
    TimedOut,
    /// The output is longer than the limit.
    #[error("printed too much and was stopped")]
    TooLong,
    /// It ended with a non-zero exit code, or by a signal.
    #[error("failed ({0})")]
    Ended(ExitStatus),
    /// A stream broke, or the end of the program could not be awaited.
    #[error("cannot be read: {0}")]
    Broken(io::Error),
}

/// Writes the input to the program.
pub(crate) type Feed<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

/// Creates a [`Feed`] for the program's standard input.
pub(crate) type Feeder<'a> = Box<dyn FnOnce(ChildStdin) -> Feed<'a> + Send + 'a>;

impl Program<'_> {
    /// The path of the program: a relative path is resolved against the working directory, and a plain name is looked
    /// up in `PATH`.
    pub fn path(&self) -> PathBuf {
        let program = self.command.first().map(String::as_str).unwrap_or_default();
        match program.contains(['/', std::path::MAIN_SEPARATOR]) {
            true => self.working_directory.join(program).components().collect(),
            false => program.into(),
        }
    }

    /// Runs the program with [`run`].
    pub async fn run<'f>(
        &self,
        feed: impl FnOnce(ChildStdin) -> Feed<'f> + Send + 'f,
    ) -> (Result<Vec<u8>, ProgramError>, String) {
        run(self.command(), Some(Box::new(feed)), self.timeout, self.limit).await
    }

    fn command(&self) -> CommandWrap {
        let mut command = CommandWrap::with_new(OsString::from(self.path()), |command| {
            command.args(self.command.iter().skip(1)).env_clear().envs(self.environment);
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            if !self.working_directory.as_os_str().is_empty() {
                command.current_dir(self.working_directory);
            }
        });
        as_group(&mut command);
        command
    }
}

/// Makes a command run in a separate process group, together with the processes that it starts.
pub fn as_group(command: &mut CommandWrap) {
    #[cfg(unix)]
    command.wrap(ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(JobObject);
}

/// Exchanges data with a running program through its standard input and output, if these are pipes.
pub type Talk<'a> = Pin<Box<dyn Future<Output = Result<(), ProgramError>> + Send + 'a>>;

/// Runs a command to its end. Returns its standard output (up to `limit` bytes) or the failure, and the end of its
/// standard error, if that is a pipe.
pub async fn run<'f>(
    command: CommandWrap,
    feed: Option<Feeder<'f>>,
    timeout: Duration,
    limit: usize,
) -> (Result<Vec<u8>, ProgramError>, String) {
    let mut answer = Vec::new();
    let read = &mut answer;
    let (ended, said) = converse(command, timeout, move |stdin, stdout| {
        Box::pin(async move {
            let feeding = async {
                let Some(feed) = feed else { return Ok(()) };
                match feed(stdin.ok_or_else(missing)?).await {
                    // The program need not read all of its input.
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(ProgramError::Broken(error)),
                    _ => Ok(()),
                }
            };
            tokio::try_join!(read_up_to(stdout, limit, read), feeding).map(drop)
        })
    })
    .await;
    (ended.map(|()| answer), said)
}

/// Runs a command to its end while `talk` exchanges data with it. Returns whether it succeeded, and the end of its
/// standard error, if that is a pipe.
pub async fn converse<'f>(
    mut command: CommandWrap,
    timeout: Duration,
    talk: impl FnOnce(Option<ChildStdin>, ChildStdout) -> Talk<'f> + Send,
) -> (Result<(), ProgramError>, String) {
    let mut said = Vec::new();
    let ended = match command.spawn().map(ProgramGroup) {
        Err(error) => Err(ProgramError::NotStarted(error)),
        Ok(group) => {
            let work = serve_program(group, talk, &mut said);
            tokio::time::timeout(timeout, work).await.unwrap_or(Err(ProgramError::TimedOut))
        }
    };
    (ended, String::from_utf8_lossy(&said).trim().to_owned())
}

fn missing() -> ProgramError {
    ProgramError::Broken(io::Error::other("a stream of the program is missing"))
}

/// A running program with all processes that it started.
struct ProgramGroup(Box<dyn ChildWrapper>);

impl Drop for ProgramGroup {
    fn drop(&mut self) {
        // Kill the remaining processes. An error means that there are none.
        let _ = self.0.start_kill();
    }
}

async fn serve_program<'f>(
    mut group: ProgramGroup,
    talk: impl FnOnce(Option<ChildStdin>, ChildStdout) -> Talk<'f>,
    said: &mut Vec<u8>,
) -> Result<(), ProgramError> {
    let stdin = group.0.stdin().take();
    let stdout = group.0.stdout().take().ok_or_else(missing)?;
    let stderr = group.0.stderr().take();
    let ending = async {
        let status = group.0.wait().await.map_err(ProgramError::Broken)?;
        // Remaining processes would keep the streams open.
        let _ = group.0.start_kill();
        Ok(status)
    };
    let talking = async {
        let (mut talk, mut keep) = (talk(stdin, stdout), pin!(keep_end(stderr, said)));
        tokio::select! {
            kept = &mut keep => {
                kept?;
                talk.await
            }
            talked = &mut talk => match talked {
                Ok(()) => keep.await,
                // A program that failed has closed its output; standard error has the reason.
                Err(failure @ ProgramError::Broken(_)) => {
                    let _ = tokio::time::timeout(AFTERWARDS, keep).await;
                    Err(failure)
                }
                Err(failure) => Err(failure),
            },
        }
    };
    let status = {
        let (mut talking, mut ending) = (pin!(talking), pin!(ending));
        tokio::select! {
            talked = &mut talking => {
                talked?;
                ending.await?
            }
            ended = &mut ending => {
                let status = ended?;
                // A process that left the group (a daemon) may keep the streams open forever. The program's own output
                // is already there.
                tokio::time::timeout(AFTERWARDS, talking).await.unwrap_or(Ok(()))?;
                status
            }
        }
    };
    if status.success() { Ok(()) } else { Err(ProgramError::Ended(status)) }
}

/// Reads the whole stream; fails if it is longer than `limit` bytes.
async fn read_up_to(from: impl AsyncRead + Unpin, limit: usize, into: &mut Vec<u8>) -> Result<(), ProgramError> {
    from.take(limit as u64 + 1).read_to_end(into).await.map_err(ProgramError::Broken)?;
    if into.len() > limit { Err(ProgramError::TooLong) } else { Ok(()) }
}

/// Keeps the last bytes of the stream, if there is one.
async fn keep_end(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) -> Result<(), ProgramError> {
    let Some(mut from) = from else { return Ok(()) };
    let mut buffer = [0; 8 * 1024];
    loop {
        let read = from.read(&mut buffer).await.map_err(ProgramError::Broken)?;
        if read == 0 {
            return Ok(());
        }
        into.extend_from_slice(&buffer[..read]);
        if into.len() > 2 * KEPT {
            into.drain(..into.len() - KEPT);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_reason_of_a_program_that_ends_while_it_is_read_is_kept() {
        let command = CommandWrap::with_new("sh", |command| {
            // The reason is written after the output is closed.
            command.args(["-c", "exec >&-; sleep 0.2; echo the reason >&2; exit 1"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        });
        let (ended, said) = converse(command, Duration::from_secs(60), |_, mut stdout| {
            Box::pin(async move {
                let error = stdout.read_u8().await.expect_err("it answers nothing");
                Err(ProgramError::Broken(error))
            })
        })
        .await;
        assert!(matches!(ended, Err(ProgramError::Broken(_))), "{ended:?}");
        assert_eq!(said, "the reason");
    }
}
