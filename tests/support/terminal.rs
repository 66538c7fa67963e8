//! Runs `gantry` on its own pseudo-terminal, like a person at a keyboard.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use tempfile::TempDir;

use super::gantry::{DEADLINE, Gantry, INHERITED, Output, Stream};

/// The columns of a terminal.
const WIDTH: u16 = 120;

/// A `gantry` whose standard input and standard error are a terminal. Dropping it kills the process.
pub struct Terminal {
    child: Child,
    pty: Pty,
    screen: Arc<Stream>,
    piped: Option<Arc<Stream>>,
    command: String,
    _home: TempDir,
}

impl Gantry {
    /// Starts it on a terminal, with all three streams.
    #[track_caller]
    pub fn on_terminal(self) -> Terminal {
        self.start(false, WIDTH)
    }

    /// The same, on a terminal with so many columns.
    #[track_caller]
    pub fn on_terminal_of_width(self, columns: u16) -> Terminal {
        self.start(false, columns)
    }

    /// Starts it on a terminal as in `gantry … | tee log`: standard output is a pipe.
    #[track_caller]
    pub fn on_terminal_with_piped_output(self) -> Terminal {
        self.start(true, WIDTH)
    }

    #[track_caller]
    fn start(self, pipe: bool, columns: u16) -> Terminal {
        let (pty, side_of_child) = open().expect("a pseudo-terminal");
        pty.resize(Size::new(40, columns)).expect("its size can be set");
        let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"))
            .args(&self.arguments)
            .current_dir(&self.working_directory)
            .env_clear()
            .envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .env("HOME", self.home.path())
            .env("TERM", "xterm")
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        if pipe {
            command = command.stdout(Stdio::piped());
        }
        let mut child = command.spawn(side_of_child).expect("start gantry");
        let reader = File::from(pty.as_fd().try_clone_to_owned().expect("a second handle of the terminal"));
        let screen = Stream::collect(reader);
        let piped = child.stdout.take().map(Stream::collect);
        Terminal { child, pty, screen, piped, command: self.command_line(), _home: self.home }
    }
}

impl Terminal {
    /// Waits until the terminal has shown `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        if !self.screen.wait_until(|so_far, _| String::from_utf8_lossy(so_far).contains(text)) {
            let _ = self.child.kill();
            panic!("no {text:?} on the terminal of `{}`, but:\n{}", self.command, self.screen.text());
        }
    }

    /// Types keys; `\n` is Return, `\u{3}` is Ctrl-C, `\u{4}` is Ctrl-D.
    pub fn press(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Types the keys repeatedly until the program exits, because a program that has just started can miss the first
    /// ones.
    #[track_caller]
    pub fn press_until_end(mut self, keys: &str) -> Output {
        let deadline = Instant::now() + DEADLINE;
        while Instant::now() < deadline {
            // Once no process reads the keys, the terminal can refuse them.
            let _ = self.pty.write_all(keys.as_bytes());
            if self.screen.wait_within(Duration::from_millis(300), |_, ended| ended) {
                break;
            }
        }
        self.wait()
    }

    /// The result: the terminal's content as standard error, and the piped output as standard output.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        let ended = self.screen.wait_until(|_, ended| ended)
            && self.piped.as_ref().is_none_or(|piped| piped.wait_until(|_, ended| ended));
        if !ended {
            let _ = self.child.kill();
        }
        let status = self.child.wait().expect("wait for gantry");
        let stdout = self.piped.as_ref().map(|piped| piped.text()).unwrap_or_default();
        let output = Output { code: status.code(), stdout, stderr: self.screen.text(), command: self.command.clone() };
        assert!(ended, "no end after {DEADLINE:?}\n{output}");
        output
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
