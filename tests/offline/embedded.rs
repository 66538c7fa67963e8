//! The library inside another program: every stream is the caller's, and so is the stop signal.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use clap::Parser as _;
use gantry::cli::Cli;
use gantry::run::{Exit, Host, run};
use gantry_core::date::Date;
use tempfile::TempDir;
use tokio::sync::watch;

/// A stream whose content the test can read.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// A deploy of one ConfigMap to a folder.
struct Embedded {
    work: TempDir,
    stdout: Kept,
    stderr: Kept,
}

impl Embedded {
    fn new() -> Self {
        let work = TempDir::new().unwrap();
        std::fs::create_dir(work.path().join("cluster")).unwrap();
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {key: x}\n";
        std::fs::write(work.path().join("manifest.yaml"), manifest).unwrap();
        Embedded { work, stdout: Kept::default(), stderr: Kept::default() }
    }

    fn cluster(&self) -> &Path {
        self.work.path()
    }

    fn is_written(&self) -> bool {
        std::fs::read_dir(self.cluster().join("cluster")).unwrap().next().is_some()
    }

    /// `answer`: the keys that a person types on the caller's terminal, if there is one.
    async fn deploy(&self, answer: Option<&'static str>, stop: watch::Receiver<bool>) -> Exit {
        let manifest = self.work.path().join("manifest.yaml").display().to_string();
        let target = format!("dir:{}", self.work.path().join("cluster").display());
        let cli = Cli::try_parse_from(["gantry", "deploy", "-f", &manifest, "--target", &target]).unwrap();
        let mut host = Host {
            stdin: Some(Box::new(Cursor::new(answer.unwrap_or_default()))),
            stdout: Box::new(self.stdout.clone()),
            stderr: Box::new(self.stderr.clone()),
            stdin_is_terminal: answer.is_some(),
            stdout_is_terminal: false,
            stderr_is_terminal: answer.is_some(),
            environment: BTreeMap::from([("TERM".into(), "dumb".into())]),
            unreadable_environment: BTreeMap::new(),
            working_directory: self.work.path().to_owned(),
            arguments: Vec::new(),
            today: Date::parse("2026-01-01").unwrap(),
            started: std::time::SystemTime::UNIX_EPOCH,
            stop,
            writes: Default::default(),
        };
        run(cli, &mut host).await
    }
}

#[tokio::test]
async fn the_question_is_asked_on_the_callers_stream() {
    for (answer, exit, last) in [
        ("y\n", Exit::Success, "?"),
        ("n\n", Exit::Failed, "error: not confirmed; nothing was written"),
        ("", Exit::Failed, "error: not confirmed; nothing was written"),
    ] {
        let embedded = Embedded::new();
        let (_keep, stop) = watch::channel(false);
        assert_eq!(embedded.deploy(Some(answer), stop).await, exit, "{answer:?}");
        let said = embedded.stderr.text();
        let question = format!("Create 1 in dir: {}", embedded.cluster().join("cluster").display());
        assert!(said.starts_with(&question) && said.contains("? [y/N] ") && said.contains(last), "{said}");
        assert_eq!(embedded.is_written(), exit == Exit::Success, "{answer:?}");
        assert!(embedded.stdout.text().contains("create    1 (1 ConfigMap)"));
        if answer.is_empty() {
            assert!(said.contains("[y/N] \nerror"), "the error has a line of its own: {said:?}");
        }
    }
}

#[tokio::test]
async fn a_deploy_that_its_caller_stops_writes_nothing() {
    // The work takes only a moment, and the stop signal still wins each time.
    for _ in 0..20 {
        let embedded = Embedded::new();
        let (_keep, stop) = watch::channel(true);
        assert_eq!(embedded.deploy(None, stop).await, Exit::Failed);
        assert_eq!(embedded.stderr.text(), "error: interrupted; nothing was written\n");
        assert!(!embedded.is_written());
    }
}

#[tokio::test]
async fn a_deploy_that_cannot_be_stopped_is_completed() {
    for answer in [None, Some("y\n")] {
        let embedded = Embedded::new();
        let (sender, stop) = watch::channel(false);
        drop(sender);
        assert_eq!(embedded.deploy(answer, stop).await, Exit::Success, "{}", embedded.stderr.text());
        assert!(embedded.is_written());
    }
}

#[tokio::test]
async fn two_deploys_run_in_one_process() {
    let (one, two) = (Embedded::new(), Embedded::new());
    let (_keep, stop) = watch::channel(false);
    let exits = tokio::join!(one.deploy(None, stop.clone()), two.deploy(None, stop));
    assert_eq!(exits, (Exit::Success, Exit::Success));
    assert!(one.is_written() && two.is_written());
    assert_eq!((one.stderr.text(), two.stderr.text()), (String::new(), String::new()));
}
