//! The Rust side of `supervisor.sh`: starts it, sends it commands, and closes its input.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A shell that owns server processes and a folder, and removes both when this value is dropped or the test process
/// ends.
pub struct Supervisor {
    child: Child,
    /// Closing this pipe stops the servers; `None` only during drop.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    folder: PathBuf,
}

impl Supervisor {
    pub fn start() -> Self {
        let mut child = Command::new("sh")
            .args(["-c", include_str!("supervisor.sh"), "testbed-supervisor"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("gantry-testbed needs a POSIX shell named `sh` on the PATH");
        let commands = child.stdin.take();
        let mut answers = BufReader::new(child.stdout.take().expect("stdout was piped"));
        let folder = read_line(&mut answers);
        assert!(!folder.is_empty(), "no temporary folder: is {} writable?", std::env::temp_dir().display());
        Self { child, commands, answers, folder: PathBuf::from(folder) }
    }

    /// The folder in which the servers run; it is removed with them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts `program` with `args` as the server `name`; its output goes to `NAME.log` in the folder.
    pub fn run(&mut self, name: &str, program: &Path, args: &[String]) {
        let words: Vec<String> = std::iter::once(program.to_str().expect("a UTF-8 path"))
            .chain(args.iter().map(String::as_str))
            .map(quote)
            .collect();
        let script = self.folder.join(format!("{name}.sh"));
        std::fs::write(&script, format!("exec {}\n", words.join(" "))).expect("write the server's start script");
        self.restart(name);
    }

    /// Restarts a server with the arguments of its last [`run`](Self::run).
    pub fn restart(&mut self, name: &str) {
        self.ask(&format!("start {name}"));
    }

    /// Kills a server and waits until its process has ended.
    pub fn stop(&mut self, name: &str) {
        self.ask(&format!("stop {name}"));
    }

    pub fn is_alive(&mut self, name: &str) -> bool {
        self.ask(&format!("alive {name}")) == "yes"
    }

    /// The process ID of a server; `None` if it was not started or has been stopped.
    pub fn pid(&self, name: &str) -> Option<u32> {
        std::fs::read_to_string(self.folder.join(format!("{name}.pid"))).ok()?.trim().parse().ok()
    }

    /// The last lines of a server's log, for error messages.
    pub fn log_tail(&self, name: &str) -> String {
        let path = self.folder.join(format!("{name}.log"));
        let log = std::fs::read(&path).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn ask(&mut self, line: &str) -> String {
        let commands = self.commands.as_mut().expect("not dropped yet");
        writeln!(commands, "{line}").expect("the supervisor of the control plane is gone");
        read_line(&mut self.answers)
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.commands = None;
        let _ = self.child.wait();
    }
}

fn read_line(from: &mut impl BufRead) -> String {
    let mut line = String::new();
    from.read_line(&mut line).expect("read from the supervisor of the control plane");
    line.trim_end().to_owned()
}

fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
