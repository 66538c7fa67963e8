//! The reasons why an expression cannot be compiled.

/// An error in an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
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
    /// Whether a name or an overload is not declared.
    pub(crate) fn is_undeclared(&self) -> bool {
        ["undeclared reference to ", "found no matching overload for "].iter().any(|text| self.text.starts_with(text))
    }

    pub(crate) fn limit(text: String) -> Self {
        ExpressionError { text, is_limit: true }
    }
}

impl From<String> for ExpressionError {
    fn from(text: String) -> Self {
        ExpressionError { text, is_limit: false }
    }
}

impl From<ExpressionError> for String {
    fn from(error: ExpressionError) -> Self {
        error.text
    }
}
