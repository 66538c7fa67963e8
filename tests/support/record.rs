//! `GANTRY_RECORD=<folder>` keeps what `gantry` printed in each test, so that a change of words can be read as the
//! difference of two folders. What differs from run to run is replaced.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// What differs from run to run, and what stands for it.
static UNSTEADY: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let pairs = [
        (r"\bt[0-9]+-[0-9]+\b", "NAME"),
        (r"\buser-[0-9]+\b", "USER"),
        (r"(127\.0\.0\.1|localhost):[0-9]+", "$1:PORT"),
        (r"/[^\s:,'`]*/(\.tmp|gantry-)[A-Za-z0-9.-]+", "FOLDER"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID"),
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "TIME"),
        (r#"("?resourceVersion"?: ?)"?[0-9]+"?"#, "${1}VERSION"),
    ];
    pairs.into_iter().map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name)).collect()
});

/// The text with what differs from run to run replaced.
pub fn steady(text: String) -> String {
    UNSTEADY.iter().fold(text, |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
}

/// Every sentence of the findings of a report, by check and rule.
pub fn sentences(report: &Value) -> String {
    let mut out = String::new();
    for check in report["checks"].as_array().into_iter().flatten() {
        for finding in check["findings"].as_array().into_iter().flatten() {
            let text = |key: &str| finding[key].as_str();
            let place: Vec<&str> = ["severity", "rule", "version", "path"].into_iter().filter_map(text).collect();
            out.push_str(&format!("{}\n", place.join(" ")));
            for key in ["message", "label", "documented", "help"] {
                if let Some(words) = text(key) {
                    out.push_str(&format!("  {key}: {}\n", words.replace('\n', "\n    ")));
                }
            }
        }
    }
    steady(out)
}

/// Adds the output to the file of the test that runs.
pub fn output(output: &super::Output) {
    let Some(folder) = std::env::var_os("GANTRY_RECORD") else { return };
    let test = std::thread::current().name().unwrap_or("main").replace("::", ".");
    let steady = steady(output.to_string());
    std::fs::create_dir_all(&folder).expect("the folder of the record");
    let path = Path::new(&folder).join(format!("{test}.txt"));
    let file = OpenOptions::new().create(true).append(true).open(path);
    file.and_then(|mut file| writeln!(file, "{steady}")).expect("write the record");
}
