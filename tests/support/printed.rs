//! Commands that gantry prints, run as a user would: copied into a shell.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs a printed command, in which `kubectl` is the real one.
pub fn run_printed(command: &str, kubeconfig: &Path, home: &Path) -> Output {
    let output = Command::new("sh")
        .args(["-c", &format!("kubectl() {{ \"$KUBECTL\" \"$@\"; }}\n{command}")])
        .env("KUBECTL", gantry_testbed::kubectl())
        .env("HOME", home)
        .env("KUBECONFIG", kubeconfig)
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{command}: {output:?}");
    output
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
