//! The texts of findings, for a snapshot: its diff shows changes of messages.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Values that differ from run to run, and their replacements.
static UNSTEADY: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pairs = [
        (r"\bt[0-9]+-[0-9]+\b", "NAME"),
        (r"\buser-[0-9]+\b", "USER"),
        // The name of a suggested role, which depends on its rules and namespace.
        (r"\b(gantry-[A-Za-z0-9.-]+)-[0-9a-f]{8}\b", "$1-HASH"),
        (r"(127\.0\.0\.1|localhost):[0-9]+", "$1:PORT"),
        (r"/[^\s:,'`]*/(\.tmp|gantry-)[A-Za-z0-9.-]+", "FOLDER"),
        (r"\.gantry-report\.[A-Za-z0-9]{6}", ".gantry-report.RANDOM"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
        (r"\b[0-9a-f]{12}\b", "COMMIT"),
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "TIME"),
        (r#"("?resourceVersion"?: ?)"?[0-9]+"?"#, "${1}VERSION"),
    ];
    pairs.into_iter().map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name)).collect()
});

/// The text with these values replaced.
pub fn steady(text: String) -> String {
    UNSTEADY.iter().fold(text, |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
}

/// What a person sees of a run, for a snapshot: the exit code and both streams.
pub fn shown(code: Option<i32>, stdout: &str, stderr: &str) -> String {
    let code = code.map_or("a signal".to_owned(), |code| code.to_string());
    let stdout = if stdout.starts_with('{') { "(JSON)\n" } else { stdout };
    let streams = [("stdout", stdout), ("stderr", stderr)].into_iter().filter(|(_, text)| !text.is_empty());
    let streams: String = streams.map(|(name, text)| format!("----- {name}\n{text}")).collect();
    steady(format!("exit code {code}\n{streams}"))
}

/// A finding as lines: its rule and place, then all its texts.
pub fn words(finding: &Value) -> String {
    let text = |key: &str| finding[key].as_str();
    let place: Vec<&str> = ["severity", "rule", "version", "path"].into_iter().filter_map(text).collect();
    let mut out = format!("{}\n", place.join(" "));
    for key in ["message", "label", "documented", "help"] {
        if let Some(words) = text(key) {
            out.push_str(&format!("  {key}: {}\n", words.replace('\n', "\n    ")));
        }
    }
    for witness in finding["witnesses"].as_array().into_iter().flatten() {
        let desired = witness["desired"].as_str().unwrap_or_default();
        out.push_str(&format!("  witness: {desired}: {}\n", witness["message"]));
    }
    steady(out)
}

/// The findings of all checks of a report, in its order.
fn findings(report: &Value) -> impl Iterator<Item = &Value> {
    let checks = report["checks"].as_array().into_iter().flatten();
    checks.flat_map(|check| check["findings"].as_array().into_iter().flatten())
}

/// All texts of the findings of a report, by check and rule.
pub fn sentences(report: &Value) -> String {
    findings(report).map(words).collect()
}

/// The texts of several reports, each once, in an order that does not depend on the names of a test's objects.
#[derive(Default)]
pub struct Sentences {
    rules: BTreeSet<String>,
    words: BTreeSet<String>,
}

impl Sentences {
    pub fn add(&mut self, report: &Value) {
        for finding in findings(report) {
            self.rules.insert(finding["rule"].as_str().expect("a rule").to_owned());
            self.words.insert(words(finding));
        }
    }

    /// All texts. Asserts that each of these rules has at least one.
    pub fn of_rules<'a>(self, rules: impl IntoIterator<Item = &'a str>) -> String {
        let unseen: Vec<&str> = rules.into_iter().filter(|rule| !self.rules.contains(*rule)).collect();
        assert!(unseen.is_empty(), "no sentence of {unseen:?} among these:\n{:#?}", self.words);
        self.words.into_iter().collect()
    }
}
