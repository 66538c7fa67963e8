//! `gantry mcp`: a session of a client, line by line.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::formats::repository;

/// A client of a running server.
struct Client {
    server: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    last: u64,
}

impl Client {
    /// Starts the server in `deploy/` of a repository.
    fn connect(repository: &TempDir) -> Client {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
        command.arg("mcp").current_dir(repository.path().join("deploy")).env_clear().env("HOME", repository.path());
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("gantry runs");
        let (requests, answers) = (server.stdin.take().expect("a pipe"), server.stdout.take().expect("a pipe"));
        let mut client = Client { server, requests, answers: BufReader::new(answers), last: 0 };
        let about = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = client.ask("initialize", about);
        assert_eq!(answer["result"]["serverInfo"]["name"], "gantry", "{answer:#}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests, "{message}").expect("the server reads");
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}));
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The text, the exit code, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: Value) -> (String, Option<i64>, bool) {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
        (text.to_owned(), result["structuredContent"]["exitCode"].as_i64(), result["isError"] == true)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn tools_are_listed_and_say_that_they_only_read() {
    let repository = repository();
    let mut client = Client::connect(&repository);
    let answer = client.ask("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(["check", "diff", "permissions", "rules"].iter().all(|name| names.contains(name)), "{names:?}");
    for tool in tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool:#}");
        let arguments = tool["inputSchema"]["properties"].as_object().expect("arguments");
        assert!(arguments.values().all(|argument| argument["description"].is_string()), "{tool:#}");
        for flag in ["yes", "render", "config", "allow_exec", "output"] {
            assert!(!arguments.contains_key(flag), "{flag}");
        }
    }
}

#[test]
fn calls_answer_what_the_commands_print() {
    let repository = repository();
    let mut client = Client::connect(&repository);
    let (text, code, is_error) = client.call("check", json!({"files": ["breaking"], "target": "dir:live"}));
    assert_eq!((code, is_error), (Some(3), false), "{text}");
    assert!(text.contains("Would be blocked: ") && text.contains("breaking/bakery.yaml:"), "{text}");
    let (text, code, _) = client.call("check", json!({"files": ["breaking"], "target": "dir:live", "json": true}));
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((code, report["outcome"].as_str()), (Some(3), Some("blocked")));

    let manifests = fs::read_to_string(repository.path().join("deploy/safe/bakery.yaml")).expect("a file");
    let (text, code, _) = client.call("check", json!({"manifests": manifests, "target": "dir:live"}));
    assert_eq!(code, Some(0), "{text}");
    let (text, code, _) = client.call("diff", json!({"manifests": manifests, "target": "dir:live"}));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("cakes.bakery.example.com"), "{text}");
    for tool in ["check", "diff"] {
        let upgrade = json!({"files": ["safe"], "target": "dir:live", "as_helm": true, "release": "shop"});
        let (text, code, _) = client.call(tool, upgrade);
        assert!(code == Some(2) && text.contains("--as-helm: the target is not a cluster"), "{text}");
    }
    let (text, _, _) = client.call("rules", json!({"name": "NoScopeChange"}));
    assert!(text.starts_with("NoScopeChange"), "{text}");
}

#[test]
fn hostile_arguments_are_values_and_write_nothing() {
    let repository = repository();
    let before = fs::read_to_string(repository.path().join("deploy/live/bakery.yaml")).expect("a file");
    let mut client = Client::connect(&repository);
    let live = "dir:live";
    for (tool, arguments, expected) in [
        ("check", json!({"files": ["--allow-exec"], "target": live}), "--allow-exec"),
        (
            "check",
            json!({"files": ["safe"], "target": live, "preset": "kapp --output=json=live/bakery.yaml"}),
            "preset",
        ),
        (
            "check",
            json!({"files": ["safe"], "target": live, "output": "json=live/bakery.yaml"}),
            "\"output\" is not one of",
        ),
        ("check", json!({"files": ["-"], "target": live}), "standard input belongs to the protocol"),
        ("check", json!({"target": live}), "files or manifests is required"),
        ("check", json!({"files": "safe"}), "invalid type"),
        ("check", json!({"manifests": "kind: [", "target": live}), "error"),
        ("rules", json!({"name": "--config=/etc/passwd"}), "error"),
    ] {
        let (text, _, is_error) = client.call(tool, arguments.clone());
        assert!(is_error && text.contains(expected), "{arguments}: {text}");
    }
    let answer = client.ask("tools/call", json!({"name": "deploy", "arguments": {}}));
    assert!(answer["error"]["message"].as_str().is_some_and(|why| why.contains("there is no such tool")), "{answer:#}");
    let after = fs::read_to_string(repository.path().join("deploy/live/bakery.yaml")).expect("a file");
    assert_eq!(before, after);
    // The session goes on.
    assert_eq!(client.call("check", json!({"files": ["safe"], "target": live})).1, Some(0));
}

#[test]
fn a_program_that_is_no_client_gets_an_error() {
    let repository = repository();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
    command.arg("mcp").env_clear().env("HOME", repository.path()).stdin(Stdio::null());
    let output = command.output().expect("gantry runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("Model Context Protocol") && said.contains("help"), "{said}");
}
