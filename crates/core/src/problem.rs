//! Errors and notices for the user: the place, the message and the next step.
//!
//! A [`Problem`] is never a finding of a check. Findings are about the change that a user wants to make and are in
//! [`crate::finding`]; a problem means that gantry itself cannot continue.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place in a manifest or a config file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The path as the user gave it (`-` for standard input).
    pub file: String,
    /// 0 if only the file is known.
    pub line: usize,
    /// 0 if only the line is known.
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.file == "-" { "<stdin>" } else { &self.file };
        match (self.line, self.column) {
            (0, _) => f.write_str(file),
            (line, 0) => write!(f, "{file}:{line}"),
            (line, column) => write!(f, "{file}:{line}:{column}"),
        }
    }
}

/// One problem: the place (if there is one), what is wrong, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// `None` if it is not about one place in a file.
    pub at: Option<Location>,
    /// What is wrong, as one sentence without a full stop.
    pub message: String,
    /// The next step.
    pub help: Option<String>,
    /// The last log lines of a container that does not run. They are shown with the problem, but never stored, because
    /// they can contain anything.
    pub log: Option<Box<Log>>,
    /// The user lacks a right, which the help names.
    pub needs_right: bool,
}

/// The end of the log of a container, in lines that are safe for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Log {
    /// The name of the Pod.
    pub pod: String,
    /// The name of the container.
    pub container: String,
    /// Up to ten last lines, each truncated to 400 characters.
    pub lines: Vec<String>,
}

impl Problem {
    /// A problem without a place and without a next step.
    pub fn new(message: impl Into<String>) -> Self {
        Problem { at: None, message: message.into(), help: None, log: None, needs_right: false }
    }

    /// The same problem at a place.
    #[must_use]
    pub fn at(mut self, location: Location) -> Self {
        self.at = Some(location);
        self
    }

    /// The same problem with a next step.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl std::error::Error for Problem {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = &self.at {
            write!(f, "{at}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// The reason why a run ended without a verdict. The variant determines the exit code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A usage or configuration error, found before any request (exit code 2).
    #[error("{}", join(.0))]
    Usage(Vec<Problem>),
    /// The run could not continue: invalid manifests, no cluster, a failed request (exit code 1).
    #[error("{}", join(.0))]
    Failed(Vec<Problem>),
    /// Objects that the target would certainly refuse; nothing was written (exit code 3).
    #[error("{}", join(.0))]
    Blocked(Vec<Problem>),
}

/// The result of a step of the run.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// What is wrong: at least one problem.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Error::Usage(problems) | Error::Failed(problems) | Error::Blocked(problems) => problems,
        }
    }

    /// The first problem, where one has to stand for all.
    pub fn first_problem(&self) -> Problem {
        self.problems().first().cloned().unwrap_or_else(|| Problem::new(self.to_string()))
    }

    /// The same for a command that deploys nothing: there is nothing to block.
    #[must_use]
    pub fn without_block(self) -> Self {
        match self {
            Error::Blocked(problems) => Error::Failed(problems),
            other => other,
        }
    }

    /// A usage error with one problem.
    pub fn usage(problem: Problem) -> Self {
        Error::Usage(vec![problem])
    }

    /// A failure with one problem.
    pub fn failed(problem: Problem) -> Self {
        Error::Failed(vec![problem])
    }
}

fn join(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The known name that is most similar to `word`, if one is similar enough to suggest.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&lower, &name.to_lowercase()), name))
        .filter(|(score, _)| *score >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(a.1)))
        .map(|(_, name)| name)
}

/// A message such as `"eror" is not one of error, warn (did you mean "error"?)`.
pub fn not_one_of(text: &str, choices: &[&str]) -> String {
    let near = did_you_mean(text, choices.iter().copied());
    let hint = near.map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default();
    format!("{text:?} is not one of {}{hint}", choices.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["CRDUpgradeSafety", "PermissionValidation"];
        assert_eq!(did_you_mean("CrdUpgradeSaftey", known), Some("CRDUpgradeSafety"));
        assert_eq!(did_you_mean("xyz", known), None);
    }
}
