//! The reasons why an expression cannot be compiled.

use std::fmt;

/// An error in an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpressionError {
    /// What is wrong.
    pub text: String,
    /// Whether the expression exceeds this implementation, although the server might accept it. Otherwise the server
    /// rejects it.
    pub is_limit: bool,
}

pub type ExpressionResult<T> = Result<T, ExpressionError>;

impl ExpressionError {
    pub(crate) fn limit(text: String) -> Self {
        ExpressionError { text, is_limit: true }
    }
}

impl From<String> for ExpressionError {
    fn from(text: String) -> Self {
        ExpressionError { text, is_limit: false }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ExpressionError {}

impl From<ExpressionError> for String {
    fn from(error: ExpressionError) -> Self {
        error.text
    }
}
