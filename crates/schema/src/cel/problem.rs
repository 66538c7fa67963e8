//! Why an expression cannot be compiled.

use std::fmt;

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub text: String,
    /// It is beyond this implementation, and the server may well take it. Otherwise the server refuses it.
    pub is_limit: bool,
}

pub(crate) type Parsed<T> = Result<T, Problem>;

impl Problem {
    pub(crate) fn limit(text: String) -> Self {
        Problem { text, is_limit: true }
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Problem { text, is_limit: false }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
