//! Nothing on the way to the server makes gantry hang, panic or exhaust the memory: no token, no plugin, no file.
//!
//! Each run has an address space limit, so unbounded memory use fails instead of exhausting this machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Bed, Gantry, Mock, Output, changed, eventually};
use serde_json::{Value, json};

/// Far more than a run needs, and far less than the faults below used to need.
const MOST_KIB: u64 = 1 << 20;

struct Hostile {
    bed: Bed,
    server: Mock,
}

impl Hostile {
    fn new() -> Self {
        let bed = Bed::new();
        bed.write("manifests.yaml", &bed.config_map("a", "x"));
        Hostile { bed, server: Mock::start(|_| None) }
    }

    fn folder(&self) -> &Path {
        self.bed.folder.path()
    }

    fn user(&self, user: Value) -> PathBuf {
        self.with(|_, old| *old = user.clone())
    }

    fn with(&self, change: impl Fn(&mut Value, &mut Value)) -> PathBuf {
        // Several runs can need one at the same time.
        let folder = tempfile::TempDir::new_in(self.folder()).expect("a folder").keep();
        changed(self.folder(), &self.server.kubeconfig(&folder, "unused"), change)
    }

    fn plugin(&self, script: &str) -> PathBuf {
        self.user(json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "interactiveMode": "IfAvailable",
        }}))
    }

    fn gantry(&self, kubeconfig: PathBuf) -> Gantry {
        self.bed.deploy(kubeconfig, &[]).memory_limit(MOST_KIB)
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let path = self.folder().join(name);
        let made = Command::new("mkfifo").arg(&path).status().expect("run mkfifo");
        assert!(made.success());
        path
    }

    /// A file that seems to be longer than the memory.
    fn huge(&self, name: &str) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::File::create(&path).and_then(|file| file.set_len(64 << 30)).expect("a sparse file");
        path
    }
}

/// Asserts that there is one error of one line, and nothing else.
#[track_caller]
fn explained(run: &Output, code: i32, message: &str) {
    run.code(code).contains_nowhere("panicked").contains_nowhere("geheim");
    let said = format!("{}{}", run.stdout, run.stderr);
    let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors, [format!("error: {message}")], "{run}");
}

#[test]
fn a_token_that_cannot_be_sent_in_a_header_is_an_error() {
    let hostile = Hostile::new();
    let message = "the token of user \"admin\" contains a character that cannot be sent, such as a line break";
    for token in ["geheim\nX-Other: geheim", "geheim\r\n", "geheim\u{7}", "\u{0}geheim"] {
        let run = hostile.gantry(hostile.user(json!({"token": token}))).run();
        explained(&run, 1, message);
        hostile.bed.write("token", &format!("{token}geheim"));
        let run = hostile.gantry(hostile.user(json!({"tokenFile": hostile.folder().join("token")}))).run();
        explained(&run, 1, message);
        let answer = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"token": token}});
        hostile.bed.write("answer", &answer.to_string());
        let script = format!("cat {}", hostile.folder().join("answer").display());
        explained(&hostile.gantry(hostile.plugin(&script)).run(), 1, message);
    }
    hostile.bed.write("token", " \n");
    let empty = hostile.folder().join("token");
    let run = hostile.gantry(hostile.user(json!({"tokenFile": empty}))).run();
    explained(&run, 1, &format!("the token file {} of user \"admin\" is empty", empty.display()));
}

#[test]
fn a_credential_plugin_that_does_not_end_is_an_error() {
    let hostile = Hostile::new();
    let run = hostile.gantry(hostile.plugin("sleep 100000")).env("GANTRY_TIMEOUTS__CREDENTIALS", "300ms").run();
    explained(&run, 1, "the credential plugin \"sh\" of user \"admin\" did not finish within 0.3 s and was stopped");
    run.stderr_contains("timeouts.credentials");
}

#[test]
fn a_credential_plugin_that_floods_its_output_is_an_error() {
    let hostile = Hostile::new();
    let run = hostile.gantry(hostile.plugin("exec cat /dev/zero")).run();
    explained(&run, 1, "the credential plugin \"sh\" of user \"admin\" printed more than 1 MiB and was stopped");
    let flood = "yes | head -c 1200000000 >&2; echo >&2 the end; exit 4";
    let run = hostile.gantry(hostile.plugin(flood)).env("GANTRY_TIMEOUTS__CREDENTIALS", "100s").run();
    let message = "error: the credential plugin \"sh\" of user \"admin\" failed (exit status: 4): ";
    run.code(1).stderr_contains(message).stderr_contains("the end").contains_nowhere("panicked");
    assert!(run.stderr.len() < 8192, "{}", run.stderr.len());
}

#[test]
fn the_child_that_a_credential_plugin_leaves_behind_is_stopped() {
    let hostile = Hostile::new();
    let answer = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
        "status": {"token": "some-token"}});
    let pid = hostile.folder().join("pid");
    let script = format!("sleep 100000 & echo $! > {}; printf '%s' '{answer}'", pid.display());
    // The child keeps standard output and standard error open.
    hostile.gantry(hostile.plugin(&script)).run().code(0);
    let asked = hostile.server.requests();
    assert!(asked.iter().all(|asked| asked.headers["authorization"] == "Bearer some-token"), "{asked:?}");
    let pid = std::fs::read_to_string(pid).expect("the plugin ran").trim().to_owned();
    eventually("the child of the plugin is ended", || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (state.is_empty() || state.contains(") Z ")).then_some(())
    });
}

#[test]
fn endless_files_of_a_kubeconfig_are_refused() {
    let hostile = Hostile::new();
    let fifo = hostile.fifo("pipe");
    let huge = hostile.huge("huge");
    let zero = PathBuf::from("/dev/zero");
    let never = "it is a pipe, and its writer did not close it within 10 s";
    let long = "it is larger than 4 MiB";
    std::thread::scope(|scope| {
        for (path, why) in [(&fifo, never), (&huge, long), (&zero, long)] {
            let hostile = &hostile;
            scope.spawn(move || {
                let run = hostile.gantry(hostile.user(json!({"tokenFile": path}))).run();
                explained(
                    &run,
                    1,
                    &format!("the token file {} of user \"admin\" cannot be read: {why}", path.display()),
                );
            });
            scope.spawn(move || {
                let ca = |cluster: &mut Value, _: &mut Value| {
                    cluster["certificate-authority-data"].take();
                    cluster["certificate-authority"] = json!(path);
                };
                let run = hostile.gantry(hostile.with(ca)).run();
                let message =
                    format!("the certificate authority {} of cluster \"test\" cannot be read: {why}", path.display());
                explained(&run, 1, &message);
            });
            scope.spawn(move || {
                let key = json!({"client-certificate-data": "Z2VoZWlt", "client-key": path});
                let run = hostile.gantry(hostile.user(key)).run();
                explained(
                    &run,
                    1,
                    &format!("the client key {} of user \"admin\" cannot be read: {why}", path.display()),
                );
            });
            scope.spawn(move || {
                let run = hostile.gantry(path.clone()).run();
                explained(&run, 1, &format!("kubeconfig {} cannot be read: {why}", path.display()));
            });
            scope.spawn(move || {
                let run = hostile.gantry(hostile.with(|_, _| ())).arg("-c").arg(path).run();
                explained(&run, 2, &format!("cannot read the config file {}: {why}", path.display()));
            });
        }
    });
}

/// `--kubeconfig <(…)` of a shell is a pipe that another process writes to.
#[test]
fn a_kubeconfig_from_a_pipe_is_read() {
    let hostile = Hostile::new();
    let fifo = hostile.fifo("pipe");
    let text = std::fs::read(hostile.with(|_, _| ())).expect("a kubeconfig");
    std::thread::scope(|scope| {
        let run = hostile.gantry(fifo.clone()).spawn();
        scope.spawn(|| std::fs::write(&fifo, text).expect("gantry reads the pipe"));
        run.wait().code(0);
    });
}
