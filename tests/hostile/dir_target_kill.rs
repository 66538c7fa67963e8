//! A deploy to a folder is killed again and again; every file is complete each time.
//!
//! The test starts itself as the child that writes, so that there is a process to kill. A kill hits the few
//! microseconds of a write only by chance, so the files are also watched all the time: what a reader sees at a moment
//! is what a kill at that moment would leave behind.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use gantry_cluster::dir::DirTarget;
use gantry_cluster::{Apply, FormerTools, ObjectToRead, WritePrecondition};
use gantry_core::resource::{ObjectRef, RawObject, Resource};
use serde_json::{Value, json};

const FOLDER: &str = "GANTRY_KILL_TEST_FOLDER";
const ROUNDS: u32 = 12;
/// Large enough that a write takes a while.
const PADDING: usize = 200_000;

fn wanted(name: &str) -> ObjectToRead {
    ObjectToRead {
        resource: Resource {
            group: String::new(),
            version: "v1".into(),
            kind: "ConfigMap".into(),
            plural: "configmaps".into(),
            namespaced: true,
        }
        .into(),
        object: ObjectRef {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: Some("default".into()),
            name: name.into(),
        }
        .into(),
    }
}

/// The same number before and after the padding, so half a write would be visible.
fn config_map(name: &str, number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"first": number.to_string(), "padding": "x".repeat(PADDING + number % 7), "last": number.to_string()},
    })
}

fn number(target: &DirTarget, name: &str) -> Option<usize> {
    let live = target.read(&[wanted(name)]).remove(0)?.raw.value();
    assert_eq!(live["data"]["first"], live["data"]["last"], "{name} is torn");
    Some(live["data"]["first"].as_str().unwrap().parse().unwrap())
}

/// The child: writes in an endless loop, and prints a line after each write.
#[test]
#[ignore = "it is the child of the other test and never ends"]
fn writer() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let target = DirTarget::open(Path::new(&folder)).unwrap();
    let mut out = std::io::stdout();
    for round in 0.. {
        for name in ["shared", "new"] {
            let ObjectToRead { resource, object } = wanted(name);
            let live = target.read(&[wanted(name)]).remove(0);
            let pin = live.map_or(WritePrecondition::Absent, |live| WritePrecondition::At {
                uid: live.uid,
                resource_version: live.resource_version,
            });
            let raw = RawObject::from_value(&config_map(name, round));
            let apply = Apply {
                resource: &resource,
                object: &object,
                raw: &raw,
                live: None,
                pin: &pin,
                field_manager: "gantry",
                force_conflicts: false,
                helm: None,
                former_tools: FormerTools::TakeUnlessConflict,
            };
            target.apply(&apply).unwrap();
            writeln!(out, "\nwritten").unwrap();
        }
    }
}

#[test]
fn a_kill_at_any_moment_leaves_every_file_whole() {
    let folder = tempfile::tempdir().unwrap();
    let other = "# Not to be touched.\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n---\n";
    let shared = serde_json::to_string(&config_map("shared", 0)).unwrap();
    fs::write(folder.path().join("shared.yaml"), format!("{other}{shared}\n")).unwrap();

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(folder.path(), &done));
        let rounds = scope.spawn(|| (0..ROUNDS).for_each(|round| kill_once(round, folder.path(), other)));
        let rounds = rounds.join();
        done.store(true, Ordering::Relaxed);
        assert_eq!(watcher.join().unwrap(), None, "a file was seen in the middle of a write");
        rounds.unwrap();
    });
}

/// Reads the files until it is stopped, or until one is too short to be complete.
fn watch(folder: &Path, done: &AtomicBool) -> Option<String> {
    let files = ["shared.yaml", "configmap_default_new.yaml"];
    while !done.load(Ordering::Relaxed) {
        for file in files {
            if let Ok(metadata) = fs::metadata(folder.join(file))
                && metadata.len() < PADDING as u64
            {
                return Some(format!("{file}: {} bytes", metadata.len()));
            }
        }
    }
    None
}

fn kill_once(round: u32, folder: &Path, other: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "dir_target_kill::writer", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // After a number of writes, and then at some moment within the next one.
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.filter(|line| line == "written").nth(round as usize % 4).expect("the child writes");
    for spin in 0..u64::from(round) * 80_000 {
        std::hint::black_box(spin);
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let target = DirTarget::open(folder).unwrap_or_else(|error| panic!("round {round}: {error}"));
    number(&target, "shared").expect("the object of the shared file is there");
    number(&target, "new");
    assert!(target.read(&[wanted("other")])[0].is_some());
    assert!(fs::read_to_string(folder.join("shared.yaml")).unwrap().starts_with(other));
}
