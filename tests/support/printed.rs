//! Commands that gantry prints, run as a user would: copied into a shell.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs a printed command in the folder `home`, in which `kubectl` is the real one.
pub fn run_printed(command: &str, kubeconfig: &Path, home: &Path) -> Output {
    let output = Command::new("sh")
        .args(["-c", &format!("kubectl() {{ \"$KUBECTL\" \"$@\"; }}\n{command}")])
        .env("KUBECTL", gantry_testbed::kubectl())
        .env("HOME", home)
        .current_dir(home)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{command}: {output:?}");
    output
}

/// The command in the output that begins with `start`, however the lines around it are broken: until the words `end`, or to
/// the end of its only argument in quotes if `end` is `'`.
#[track_caller]
pub fn printed_command(output: &super::Output, start: &str, end: &str) -> String {
    let lines = output.stdout.lines().chain(output.stderr.lines());
    let lines: Vec<&str> = lines.map(|line| line.trim_start_matches(['|', '=', ' ']).trim_end()).collect();
    let text = format!("{} ", lines.join(" "));
    let from = text.find(start).unwrap_or_else(|| panic!("expected: {start}\n{output}"));
    let mut parts = text[from..].split_inclusive(end);
    let command: String = parts.by_ref().take(if end == "'" { 2 } else { 1 }).collect();
    assert!(command.ends_with(end), "expected: {start} … {end}\n{output}");
    if end == "'" { command } else { command[..command.len() - end.len()].trim_end().to_owned() }
}

/// The lines of the texts of a report that are commands of kubectl.
pub fn printed_commands(report: &Value) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => {
                found.extend(text.lines().filter(|line| line.starts_with("kubectl ")).map(str::to_owned));
            }
            Value::Array(list) => list.iter().for_each(|value| collect(value, found)),
            Value::Object(map) => map.values().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(report, &mut found);
    found
}
