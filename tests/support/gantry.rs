//! Runs the built `gantry` like a person or a pipeline would, isolated from this machine's environment.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Far longer than any test needs: this stops a test that hangs and is not a measurement.
pub(super) const DEADLINE: Duration = Duration::from_secs(180);

/// The variables that a child process needs from this process's environment.
pub(super) const INHERITED: [&str; 4] = ["PATH", "TMPDIR", "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE"];

/// One invocation of `gantry`. By default: an empty home, an empty working directory, no environment, no standard
/// input, and no terminal.
pub struct Gantry {
    pub(super) home: TempDir,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(String, OsString)>,
    pub(super) working_directory: PathBuf,
    stdin: Option<String>,
    /// Options and values of `ulimit`.
    limits: Vec<(&'static str, u64)>,
    /// Replaces the pipe for standard output.
    stdout: Option<Stdio>,
}

impl Gantry {
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let home = TempDir::new().expect("a temporary home");
        let working_directory = home.path().join("work");
        std::fs::create_dir(&working_directory).expect("a working directory");
        Self {
            home,
            arguments: Vec::new(),
            environment: Vec::new(),
            working_directory,
            stdin: None,
            limits: Vec::new(),
            stdout: None,
        }
    }

    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub fn arg(self, argument: impl AsRef<OsStr>) -> Self {
        self.args([argument])
    }

    /// Sets `KUBECONFIG`.
    pub fn kubeconfig(self, path: impl AsRef<Path>) -> Self {
        self.env("KUBECONFIG", path.as_ref())
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    pub fn cwd(mut self, path: impl AsRef<Path>) -> Self {
        self.working_directory = path.as_ref().to_owned();
        self
    }

    pub fn stdin(mut self, text: impl Into<String>) -> Self {
        self.stdin = Some(text.into());
        self
    }

    /// Replaces the standard output; the test does not read it.
    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = Some(stdout.into());
        self
    }

    /// Limits its address space to this many KiB.
    pub fn memory_limit(self, kib: u64) -> Self {
        // For each further arena, of which there are more the busier the threads are, glibc reserves 64 MiB of it.
        self.env("MALLOC_ARENA_MAX", "1").limit("-v", kib)
    }

    /// Sets a limit of `ulimit`; exceeding it fails.
    pub fn limit(mut self, option: &'static str, value: u64) -> Self {
        self.limits.push((option, value));
        self
    }

    /// The home folder of this invocation, for a user's configuration.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Runs it until it exits.
    #[track_caller]
    pub fn run(self) -> Output {
        self.spawn().wait()
    }

    /// Starts it, for a test that watches, interrupts or kills it.
    #[track_caller]
    pub fn spawn(mut self) -> Running {
        let mut command = self.program();
        command.args(&self.arguments).current_dir(&self.working_directory).env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        command.env("HOME", self.home.path()).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(self.stdout.take().unwrap_or_else(Stdio::piped)).stderr(Stdio::piped());
        let mut child = command.spawn().expect("start gantry");
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), self.stdin.clone()) {
            // A thread of its own, because gantry can write before it has read everything. It can also exit without
            // reading.
            thread::spawn(move || pipe.write_all(text.as_bytes()));
        }
        let stdout = match child.stdout.take() {
            Some(stdout) => Stream::collect(stdout),
            None => Stream::collect(std::io::empty()),
        };
        let stderr = Stream::collect(child.stderr.take().expect("piped"));
        Running { child, stdout, stderr, command: self.command_line(), _home: self.home }
    }

    /// `gantry`, or a shell that sets the limits and then executes it.
    fn program(&self) -> Command {
        let gantry = env!("CARGO_BIN_EXE_gantry");
        if self.limits.is_empty() {
            return Command::new(gantry);
        }
        let limits: Vec<String> =
            self.limits.iter().map(|(option, value)| format!("ulimit {option} {value} && ")).collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{}exec \"$0\" \"$@\"", limits.concat()), gantry]);
        shell
    }

    pub(super) fn command_line(&self) -> String {
        let words: Vec<_> = self.arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        format!("gantry {}", words.join(" "))
    }
}

/// A running `gantry`. Dropping it kills the process.
pub struct Running {
    child: Child,
    stdout: Arc<Stream>,
    stderr: Arc<Stream>,
    command: String,
    _home: TempDir,
}

impl Running {
    /// Waits until its standard error contains `text`.
    #[track_caller]
    pub fn wait_for_stderr(&mut self, text: &str) {
        if !self.stderr.wait_until(|so_far, _| String::from_utf8_lossy(so_far).contains(text)) {
            let _ = self.child.kill();
            panic!("no {text:?} on stderr of `{}`, but:\n{}", self.command, self.stderr.text());
        }
    }

    /// Waits until a line of its standard output is `Some` for `find`.
    #[track_caller]
    pub fn wait_for_line<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> T {
        let first = |so_far: &[u8]| String::from_utf8_lossy(so_far).lines().find_map(&find);
        self.stdout.wait_until(|so_far, ended| ended || first(so_far).is_some());
        first(self.stdout.text().as_bytes()).unwrap_or_else(|| {
            let _ = self.child.kill();
            panic!("no such line of `{}`, but:\n{}\n{}", self.command, self.stdout.text(), self.stderr.text());
        })
    }

    /// The lines of its standard output so far.
    pub fn lines(&self) -> Vec<String> {
        self.stdout.text().lines().map(str::to_owned).collect()
    }

    /// Interrupts it like Ctrl-C at the terminal.
    pub fn interrupt(&mut self) {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status().expect("run `kill`");
        assert!(status.success(), "gantry has already ended:\n{}", self.stderr.text());
    }

    /// Waits until it has ended, for at most this time. Returns whether it has.
    pub fn ends_within(&self, limit: Duration) -> bool {
        self.stdout.wait_within(limit, |_, ended| ended)
    }

    /// Kills it at once, without a chance to react.
    pub fn kill(&mut self) {
        self.child.kill().expect("kill gantry");
    }

    #[track_caller]
    pub fn wait(mut self) -> Output {
        let ended = self.stdout.wait_until(|_, ended| ended) && self.stderr.wait_until(|_, ended| ended);
        if !ended {
            let _ = self.child.kill();
        }
        let status = self.child.wait().expect("wait for gantry");
        let (stdout, stderr) = (self.stdout.text(), self.stderr.text());
        let output = Output { code: status.code(), stdout, stderr, command: self.command.clone() };
        assert!(ended, "no end after {DEADLINE:?}\n{output}");
        super::record::output(&output);
        output
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The test failed while gantry was running: what gantry said may be the reason.
        if thread::panicking() {
            eprintln!("`{}` said:\n{}\n{}", self.command, self.stdout.text(), self.stderr.text());
        }
    }
}

/// The result of a run. The assertions return it again, so they can be chained, and print all of it if they fail.
pub struct Output {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub(super) command: String,
}

impl Output {
    #[track_caller]
    pub fn code(&self, expected: i32) -> &Self {
        assert!(self.code == Some(expected), "expected exit code {expected}\n{self}");
        self
    }

    #[track_caller]
    pub fn stdout_contains(&self, text: &str) -> &Self {
        assert!(self.stdout.contains(text), "expected on stdout: {text}\n{self}");
        self
    }

    #[track_caller]
    pub fn stderr_contains(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "expected on stderr: {text}\n{self}");
        self
    }

    /// For values that must never be shown, such as a token.
    #[track_caller]
    pub fn contains_nowhere(&self, text: &str) -> &Self {
        assert!(!self.stdout.contains(text) && !self.stderr.contains(text), "expected nowhere: {text}\n{self}");
        self
    }

    /// Everything that the user sees, for a snapshot.
    pub fn shown(&self) -> String {
        super::shown(self.code, &self.stdout, &self.stderr)
    }

    /// Standard output as a JSON document.
    #[track_caller]
    pub fn report(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("stdout is not one JSON document: {e}\n{self}"))
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = self.code.map_or("by a signal".to_owned(), |code| format!("with code {code}"));
        writeln!(f, "`{}` ended {code}", self.command)?;
        write!(f, "--- stdout\n{}\n--- stderr\n{}\n---", self.stdout, self.stderr)
    }
}

/// An output stream of a child process, collected by a separate thread.
#[derive(Default)]
pub(super) struct Stream {
    /// The bytes so far, and whether the stream has ended.
    state: Mutex<(Vec<u8>, bool)>,
    changed: Condvar,
}

impl Stream {
    pub fn collect(mut from: impl Read + Send + 'static) -> Arc<Self> {
        let stream = Arc::new(Self::default());
        let writer = Arc::clone(&stream);
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            loop {
                let read = from.read(&mut buffer).unwrap_or(0);
                let mut state = writer.state.lock().expect("nobody panics with it");
                state.0.extend(&buffer[..read]);
                state.1 = read == 0;
                writer.changed.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        stream
    }

    /// Whether `condition` (the bytes so far, whether it has ended) became true. Gives up at the end of the stream.
    pub fn wait_until(&self, condition: impl Fn(&[u8], bool) -> bool) -> bool {
        self.wait_within(DEADLINE, condition)
    }

    /// [`Self::wait_until`] with a shorter time limit.
    pub fn wait_within(&self, limit: Duration, condition: impl Fn(&[u8], bool) -> bool) -> bool {
        let deadline = Instant::now() + limit;
        let mut state = self.state.lock().expect("nobody panics with it");
        loop {
            if condition(&state.0, state.1) {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if state.1 || left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).expect("nobody panics with it").0;
        }
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.state.lock().expect("nobody panics with it").0).into_owned()
    }
}
