//! The procedures of `docs/changing-a-crd.md`, run as the page shows them, with objects in place.
//!
//! The page is the input of these tests. Each of its `##` sections is a task. The blocks above the first `###` are
//! release 1 and the objects of the users; the test deploys them before each `###`, which it runs on a CRD and a namespace
//! of its own. A block of YAML is the file that its first line names, a block of a console is run line by line, and the
//! output must be what the page shows. Where the page shows that a command fails, it fails on the server.
//!
//! `UPDATE_DOCS=1 cargo test --test checks guide::` replaces every output that is different.

mod session;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::support::transcript::{Piece, pieces};
use session::Session;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/changing-a-crd.md")
}

fn page() -> String {
    fs::read_to_string(path()).expect("the page is there")
}

/// The sections of a page, with their headings.
fn sections(page: &str) -> Vec<&str> {
    parts(page, "\n## ")
}

/// The text up to the first heading of a level, and then the text below each of them.
fn parts<'p>(text: &'p str, heading: &str) -> Vec<&'p str> {
    let starts = text.match_indices(heading).map(|(at, _)| at + 1);
    let ends: Vec<usize> = [0].into_iter().chain(starts).chain([text.len()]).collect();
    ends.windows(2).map(|range| &text[range[0]..range[1]]).collect()
}

fn section<'p>(page: &'p str, title: &str) -> &'p str {
    let has_title = |section: &&&str| section.lines().next() == Some(&format!("## {title}"));
    let page = sections(page);
    page.iter().find(has_title).unwrap_or_else(|| panic!("the page has no section {title:?}"))
}

/// Runs a section of the page, and returns its last session.
#[track_caller]
fn run(title: &str) -> Session {
    let page = page();
    let template = pieces(section(&page, "How to read the examples"))
        .into_iter()
        .find_map(|piece| if let Piece::BlockEnd(lines) = piece { Some(lines) } else { None })
        .expect("the CRD around each example");
    let written = section(&page, title);
    let parts = parts(written, "\n### ");
    let [start, procedures @ ..] = &parts[..] else { unreachable!("there is always a first part") };
    let mut fresh = (*start).to_owned();
    let (mut last, mut wrong) = (None, Vec::new());
    for procedure in procedures {
        let mut session = Session::new(&template);
        session.set_up(start);
        fresh.push_str(&session.follow(procedure, &mut wrong));
        last = Some(session);
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        replace(written, &fresh);
    } else {
        assert!(wrong.is_empty(), "{title}: the page does not show what happens:\n{}", wrong.join("\n"));
    }
    last.expect("the section has a procedure")
}

/// Replaces a section in the page. Other tests do the same with theirs meanwhile.
fn replace(written: &str, fresh: &str) {
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().expect("nobody panics with it");
    fs::write(path(), page().replace(written, fresh)).expect("it can be written");
}

/// The objects of the users, by name, are exactly these at a version.
#[track_caller]
fn has_kept(session: &Session, version: &str, expected: &[(&str, Value)]) {
    let specs = session.specs(version);
    let specs: Vec<(&str, Value)> = specs.iter().map(|(name, spec)| (name.as_str(), spec.clone())).collect();
    assert_eq!(specs, expected, "at {version}");
}

const NIGHT: &str = "0 2 * * *";
const WEEK: &str = "0 4 * * 0";

#[test]
fn a_field_is_added() {
    let session = run("Add a field");
    has_kept(&session, "v1", &[("nightly", json!({"schedule": NIGHT, "keep": 30}))]);
}

#[test]
fn a_field_is_required() {
    let session = run("Require a field");
    // Of the last procedure, with a default: nobody wrote the bucket.
    let bucket = "archive";
    let nightly = json!({"schedule": "0 3 * * *", "bucket": bucket});
    has_kept(&session, "v1", &[("nightly", nightly), ("weekly", json!({"schedule": WEEK, "bucket": bucket}))]);
}

#[test]
fn a_field_is_restricted() {
    let session = run("Restrict a field");
    let nightly = json!({"schedule": NIGHT, "keep": 30});
    has_kept(&session, "v1", &[("nightly", nightly), ("weekly", json!({"schedule": WEEK, "keep": 90}))]);
}

#[test]
fn a_field_is_renamed() {
    let session = run("Rename a field");
    let nightly = json!({"schedule": NIGHT, "target": "archive"});
    has_kept(&session, "v1", &[("nightly", nightly), ("weekly", json!({"schedule": WEEK, "target": "vault"}))]);
}

#[test]
fn a_field_is_removed() {
    let session = run("Remove a field");
    has_kept(&session, "v1", &[("nightly", json!({"schedule": NIGHT})), ("weekly", json!({"schedule": WEEK}))]);
}

#[test]
fn a_type_is_changed() {
    let session = run("Change a type");
    let nightly = json!({"schedule": NIGHT, "keep": 30});
    has_kept(&session, "v1", &[("nightly", nightly), ("weekly", json!({"schedule": WEEK, "keep": 90}))]);
}

#[test]
fn a_version_is_added() {
    let session = run("Add a new version");
    let nightly = json!({"schedule": NIGHT, "keep": 14});
    let objects = [("nightly", nightly), ("weekly", json!({"schedule": WEEK, "keep": 90}))];
    has_kept(&session, "v1", &objects);
    has_kept(&session, "v2", &objects);
}

#[test]
fn a_conversion_webhook_is_turned_on() {
    let session = run("Turn on a conversion webhook");
    let objects = |field: &str| {
        let spec = |schedule: &str, days: u8| json!({"schedule": schedule, field: days});
        [("nightly", spec(NIGHT, 14)), ("weekly", spec(WEEK, 90))]
    };
    has_kept(&session, "v1", &objects("keep"));
    has_kept(&session, "v2", &objects("retention"));
}

#[test]
fn the_storage_version_is_moved() {
    let session = run("Move the storage version");
    let objects = backups();
    has_kept(&session, "v1", &objects);
    has_kept(&session, "v2", &objects);
}

#[test]
fn a_version_is_dropped() {
    let session = run("Drop a version");
    has_kept(&session, "v2", &backups());
}

#[test]
fn a_version_that_a_webhook_converts_is_dropped() {
    let session = run("Drop a version that a webhook converts");
    let spec = |schedule: &str, retention: u8| json!({"schedule": schedule, "retention": retention});
    has_kept(&session, "v2", &[("nightly", spec(NIGHT, 30)), ("weekly", spec(WEEK, 90))]);
}

/// What the users wrote in the examples with several versions.
fn backups() -> [(&'static str, Value); 2] {
    let spec = |schedule: &str, keep: u16| json!({"schedule": schedule, "keep": keep});
    [("nightly", spec(NIGHT, 30)), ("weekly", spec(WEEK, 90))]
}

#[test]
fn every_section_with_commands_is_run() {
    let page = page();
    let has_commands = |section: &&&str| section.lines().any(|line| line.trim_start().starts_with("$ "));
    let sections = sections(&page);
    let mut seen = 0;
    for section in sections.iter().filter(has_commands) {
        let title = section.lines().next().unwrap_or_default().trim_start_matches("## ");
        assert!(include_str!("guide.rs").contains(&format!("run(\"{title}\")")), "no test runs {title:?}");
        let anchor = format!("(#{})", title.to_lowercase().replace(' ', "-"));
        assert!(page.split("\n## ").next().is_some_and(|table| table.contains(&anchor)), "no row leads to {anchor}");
        seen += 1;
    }
    assert!(seen >= 10, "only {seen} sections");
}
