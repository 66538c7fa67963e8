//! Runs the program in `crates/testbed/control-plane/crd-oracle`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::Answer;

/// Environment variable with the path of the built program.
const PROGRAM: &str = "GANTRY_CRD_ORACLE";

/// A running program. It stops when dropped.
pub struct Oracle {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    /// The program that the environment variable names, if it is set.
    pub fn named() -> Option<Self> {
        let program = std::env::var_os(PROGRAM)?;
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{PROGRAM}: {error}"));
        let (questions, answers) = (child.stdin.take(), child.stdout.take().expect("its answers are piped"));
        Some(Self { child, questions, answers: BufReader::new(answers) })
    }

    /// The server's answer to a create, or to an update of `old`.
    pub fn ask(&mut self, new: &Value, old: Option<&Value>) -> Answer {
        let mut question = json!({"new": new});
        if let Some(old) = old {
            question["old"] = old.clone();
        }
        let questions = self.questions.as_mut().expect("it is asked until it is dropped");
        writeln!(questions, "{question}").map_err(|error| error.to_string())?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(|error| error.to_string())?;
        let answer: Value = serde_json::from_str(&line).map_err(|error| format!("{error}: {line:?}"))?;
        let status = answer["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        Ok((status.ok_or("an answer without a code")?, answer))
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It exits at the end of its input.
        self.questions = None;
        let _ = self.child.wait();
    }
}
