//! Collects the environment of the process, calls the library, and exits with its exit code.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{CommandFactory, FromArgMatches};
use gantry::cli::{Cli, correct};
use gantry::run::{COMPLETION_VARIABLE, Host, WriteProgress, answer_shell, run};
use gantry_core::ci_log::{self, OutputSyntax};
use gantry_core::date::Date;
use gantry_core::parallel::{STACK, processors};
use tokio::runtime::Runtime;
use tokio::sync::watch;

fn main() -> ExitCode {
    // The script of a shell wants to know how a command line goes on.
    let is_completion = std::env::var_os(COMPLETION_VARIABLE).is_some_and(|shell| !shell.is_empty());
    let cli = (!is_completion).then(parse);
    let runtime = match enough_files().and_then(|()| start()) {
        Ok(runtime) => runtime,
        Err(error) => return ExitCode::from(cannot_start(&error) as u8),
    };
    let code = runtime.block_on(async {
        let (interrupt, stop) = watch::channel(false);
        let writes = Arc::new(WriteProgress::default());
        let written = Arc::clone(&writes);
        tokio::spawn(async move {
            // The first interrupt stops the run between two objects; the second one ends the process immediately.
            let mut interrupts = Interrupts::new();
            interrupts.next().await;
            let _ = interrupt.send(true);
            interrupts.next().await;
            // Erase the progress line first.
            let line = if io::stderr().is_terminal() { "\r\u{1b}[2K" } else { "" };
            eprintln!("{line}error: {written}");
            std::process::exit(1);
        });
        let (environment, unreadable): (Vec<_>, Vec<_>) = std::env::vars_os()
            .map(|(name, value)| (name.into_string(), value.into_string()))
            .map(|variable| match variable {
                (Ok(name), Ok(value)) => Ok((name, value)),
                (name, value) => {
                    let name = name.unwrap_or_else(|name| name.to_string_lossy().into_owned());
                    Err((name, value.map_or_else(|value| value, OsString::from)))
                }
            })
            .partition(Result::is_ok);
        let started = SystemTime::now();
        let arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
        let mut host = Host {
            stdin: Some(Box::new(BufReader::new(io::stdin()))),
            stdout: Box::new(BufWriter::new(io::stdout())),
            stderr: Box::new(io::stderr()),
            stdin_is_terminal: io::stdin().is_terminal(),
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            environment: environment.into_iter().flatten().collect(),
            unreadable_environment: unreadable.into_iter().filter_map(Result::err).collect(),
            working_directory: std::env::current_dir().unwrap_or_else(|_| ".".into()),
            arguments: std::iter::once("gantry".to_owned()).chain(arguments).collect(),
            today: Date::from(started),
            started,
            stop,
            writes,
        };
        match cli {
            Some(cli) => run(cli, &mut host).await as u8,
            None => u8::from(answer_shell(std::env::args_os().collect(), &mut host).await.is_err()),
        }
    });
    // A plugin or a request that still hangs must not keep the process alive.
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// Parses the command line. As a kubectl plugin, the program shows the name that the user typed: `kubectl gantry`.
fn parse() -> Cli {
    let program = std::env::args_os().next().map(PathBuf::from);
    let is_plugin = program.as_deref().and_then(Path::file_stem).is_some_and(|name| name == "kubectl-gantry");
    let command = Cli::command();
    let command = if is_plugin { command.bin_name("kubectl gantry") } else { command };
    let parsed = command.clone().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| exit_with(&correct(error, command, std::env::args_os())))
}

/// Prints a usage error or help, and exits. An argument can be the name of somebody else's file.
fn exit_with(error: &clap::Error) -> ! {
    let is_terminal = if error.use_stderr() { io::stderr().is_terminal() } else { io::stdout().is_terminal() };
    if is_terminal {
        error.exit();
    }
    let text = ci_log::escape(&error.render().to_string(), OutputSyntax::Text);
    let out: &mut dyn Write = if error.use_stderr() { &mut io::stderr() } else { &mut io::stdout() };
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    std::process::exit(error.exit_code())
}

/// The number of files, pipes and connections that the smallest run has open at the same time, and some more. If they
/// are not available, tokio panics when it sets up signals, and later failures are hard to explain.
const FILES: usize = 32;

fn enough_files() -> io::Result<()> {
    if cfg!(unix) {
        let _files: Vec<File> = (0..FILES).map(|_| File::open("/dev/null")).collect::<io::Result<_>>()?;
    }
    Ok(())
}

/// The maximum number of threads that wait for the network. CPU-bound work has separate threads (`gantry_core::parallel`).
const WORKERS: usize = 4;
/// A duration that is longer than any run.
const FOREVER: Duration = Duration::from_secs(1 << 32);
/// The time limit for starting one thread.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts the runtime with all the threads that it needs.
fn start() -> io::Result<Runtime> {
    let refused = || io::Error::new(io::ErrorKind::WouldBlock, "no more threads can be started");
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all().thread_stack_size(STACK).thread_keep_alive(FOREVER);
    // If this variable is set, tokio uses its value.
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        builder.worker_threads(processors().min(WORKERS));
    }
    // tokio panics if the system refuses a thread, and would then wait for the threads that it has.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |_| std::process::exit(cannot_start(&refused()))));
    let runtime = builder.build()?;
    // Start one thread for blocking work now: if no more threads can be started later, such work waits for this one.
    let blocking = async { tokio::time::timeout(PATIENCE, tokio::task::spawn_blocking(|| ())).await };
    let started = runtime.block_on(blocking);
    std::panic::set_hook(hook);
    match started {
        Ok(_) => Ok(runtime),
        Err(_) => {
            runtime.shutdown_background();
            Err(refused())
        }
    }
}

/// Prints the reason and returns the exit code.
fn cannot_start(error: &io::Error) -> i32 {
    eprintln!("error: cannot start: {error}");
    if cfg!(unix) {
        eprintln!("  = help: the limit on open files or threads may be too low for this process: see ulimit -a");
    }
    1
}

/// Ctrl-C, and the signal that the system sends to end a process. A signal between two calls of `next` is not lost.
#[cfg(unix)]
struct Interrupts(Option<[tokio::signal::unix::Signal; 2]>);

#[cfg(unix)]
impl Interrupts {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let both = [signal(SignalKind::interrupt()), signal(SignalKind::terminate())];
        Interrupts(match both {
            [Ok(interrupt), Ok(terminate)] => Some([interrupt, terminate]),
            _ => None,
        })
    }

    async fn next(&mut self) {
        match &mut self.0 {
            Some([interrupt, terminate]) => {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            }
            None => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
struct Interrupts;

#[cfg(not(unix))]
impl Interrupts {
    fn new() -> Self {
        Interrupts
    }

    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
