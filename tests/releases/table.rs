//! The table of features by release: the servers' answers, and gantry's word beside them.

use std::fmt::Write as _;
use std::path::Path;

use super::features::{Answer, FEATURES};
use super::probes::{Probed, Server, probe};
use super::{assert_no_differences, minor_version, tested_releases};
use crate::support::ControlPlane;

#[test]
#[ignore = "builds API servers of several releases"]
fn each_feature_is_on_the_servers_that_the_table_names_and_gantry_says_so() {
    let releases = tested_releases();
    let mut probed: Vec<Vec<Probed>> = Vec::new();
    for release in &releases {
        let server = Server { release, control_plane: ControlPlane::start_release(release) };
        probed.push(FEATURES.iter().map(|feature| probe(&server, &feature.probe)).collect());
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("releases.md");
    std::fs::write(&file, table(&releases, &probed)).expect("write the table");
    println!("{}", file.display());

    let mut differences = Vec::new();
    for (release, probed) in releases.iter().zip(&probed) {
        for (feature, found) in FEATURES.iter().zip(probed) {
            let place = format!("{release} {}", feature.name);
            let expected = feature.expected(minor_version(release));
            if found.server != expected {
                differences.push(format!("{place}: expected {expected:?}, found {:?} {}", found.server, found.message));
            }
            for (word, whose) in words(found).filter(|(word, _)| !agrees(*word, found.server)) {
                differences.push(format!("{place}: gantry says {word:?} ({whose}), the server {:?}", found.server));
            }
        }
    }
    assert_no_differences("the table of features, and gantry's words beside it", &differences);
}

/// Whether gantry says the same as the server; "could not decide" is never wrong, but is not the server's word either.
fn agrees(word: Answer, server: Answer) -> bool {
    word != Answer::Undecided && word.is_accepted() == server.is_accepted()
}

/// In Markdown: the server's answer and, where it differs, gantry's word by dry run, by its tables, and on a folder.
fn table(releases: &[&str], probed: &[Vec<Probed>]) -> String {
    let mut text = format!("| feature | {} |\n|---|{}\n", releases.join(" | "), "---|".repeat(releases.len()));
    for (row, feature) in FEATURES.iter().enumerate() {
        let cells: Vec<String> = probed.iter().map(|column| cell(&column[row])).collect();
        writeln!(text, "| {} | {} |", feature.name, cells.join(" | ")).expect("write to a string");
    }
    text
}

/// gantry's words, and where each comes from.
fn words(found: &Probed) -> impl Iterator<Item = (Answer, &'static str)> {
    let words = [(found.gantry, "dry run"), (found.gantry_as_reader, "tables"), (found.gantry_on_folder, "folder")];
    words.into_iter().filter_map(|(word, whose)| Some((word?, whose)))
}

fn cell(found: &Probed) -> String {
    let mut text = found.server.symbol().to_owned();
    for (word, whose) in words(found).filter(|(word, _)| !agrees(*word, found.server)) {
        write!(text, " (gantry, {whose}: {})", word.symbol()).expect("write to a string");
    }
    text
}
