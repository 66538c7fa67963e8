//! The commands that reports print can be pasted: each stands on one line however narrow the terminal is, and has no
//! escaped line break.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::support::Gantry;

const COLUMNS: u16 = 60;

/// The start of a command: the program, and a word that is no prose.
static START: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?:^|[ (`])((?:kubectl|gantry|git|helm|kapp) (?:-f|annotate|apply|check|config|create|delete|deploy|diff|explain|fetch|get|history|label|migrate|patch|permissions|replace|rollback|rollout|rules|template) )",
    )
    .expect("a pattern")
});

/// The commands in a line: each until a sentence goes on, outside of quotes.
fn commands(line: &str) -> Vec<&str> {
    let found = START.captures_iter(line).filter_map(|found| found.get(1));
    found.map(|start| until_prose(&line[start.start()..])).collect()
}

fn until_prose(text: &str) -> &str {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        let rest = &text[at..];
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if matches!(c, '\'' | '"') && text[at + 1..].contains(c) => quote = Some(c),
            None => {
                let ends = ["; ", ", ", ": ", ". ", " and ", " or ", " then ", " shows ", " (", ")", "`"];
                if ends.iter().any(|end| rest.starts_with(end)) {
                    return &text[..at];
                }
            }
        }
    }
    text.trim_end().trim_end_matches([':', '.'])
}

/// A text without its line breaks and indentation.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/crd-upgrade-safety");
    let mut fixtures: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    fixtures.sort();
    fixtures
}

/// The fixture checked against its live CRD in a folder.
fn check(fixture: &Path) -> Gantry {
    let gantry = Gantry::new().cwd(fixture);
    let live = gantry.home().join("live");
    std::fs::create_dir(&live).unwrap();
    std::fs::copy(fixture.join("live.yaml"), live.join("crd.yaml")).unwrap();
    let target = format!("dir:{}", live.display());
    gantry.args(["check", "-f", "desired.yaml", "--preflight", "CRDUpgradeSafety", "--target", target.as_str()])
}

#[test]
fn every_command_of_the_rules_about_crds_stands_on_one_line() {
    let mut seen = 0;
    for fixture in fixtures() {
        let report = check(&fixture).args(["-o", "json"]).run().report();
        let findings = report["checks"][0]["findings"].as_array().expect("findings").clone();
        let texts: Vec<&str> = findings
            .iter()
            .flat_map(|finding| ["message", "help"].map(|key| finding[key].as_str().unwrap_or_default()))
            .collect();
        let named: Vec<&str> = texts.iter().flat_map(|text| text.lines()).flat_map(commands).collect();
        if named.is_empty() {
            continue;
        }
        let screen = check(&fixture).arg("-v").on_terminal_of_width(COLUMNS).wait().stderr;
        let (lines, all): (Vec<String>, String) = (screen.lines().map(joined).collect(), joined(&screen));
        for command in named {
            assert!(!command.contains("\\n"), "{}: {command}", fixture.display());
            let command = joined(command);
            assert!(all.contains(&command), "{}: not shown: {command}\n{screen}", fixture.display());
            let is_whole = lines.iter().any(|line| line.contains(&command));
            assert!(is_whole, "{}: not on one line: {command}\n{screen}", fixture.display());
            seen += 1;
        }
    }
    assert!(seen >= 6, "only {seen} commands");
}

#[test]
fn every_command_on_the_page_of_a_rule_stands_on_one_line() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules");
    let pages = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for page in pages.filter(|page| !page.ends_with("README.md")) {
        let name = page.file_stem().unwrap().to_str().unwrap();
        let text = Gantry::new().args(["rules", name]).run().code(0).stdout.clone();
        let named: Vec<&str> = text.lines().flat_map(commands).collect();
        if named.is_empty() {
            continue;
        }
        let screen = Gantry::new().args(["rules", name]).on_terminal_of_width(COLUMNS).wait().stderr;
        let shown: Vec<String> = screen.lines().map(joined).collect();
        for command in named {
            assert!(!command.contains("\\n"), "{name}: {command}");
            assert!(shown.iter().any(|line| line.contains(&joined(command))), "{name}: {command}\n{screen}");
            seen += 1;
        }
    }
    assert!(seen >= 6, "only {seen} commands");
}
