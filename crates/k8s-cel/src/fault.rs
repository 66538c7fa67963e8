//! The reasons why an expression has no value.

/// The reason why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EvaluationError {
    /// A runtime error that the API server reports too, with its text.
    Error(String),
    /// An internal error that aborts the evaluation in the server: neither `||` nor a macro recovers from it.
    Abort(String),
    /// A limitation of this implementation: the result is unknown.
    Undecided(String),
}

/// The value of an expression, or the reason why it has none.
pub(crate) type CelResult<T> = std::result::Result<T, EvaluationError>;

impl EvaluationError {
    /// A runtime error with the server's text.
    pub(crate) fn error(text: impl Into<String>) -> EvaluationError {
        EvaluationError::Error(text.into())
    }

    /// The error for an operator or function that is not defined for the types of its arguments.
    pub(crate) fn no_such_overload() -> EvaluationError {
        EvaluationError::error("no such overload")
    }

    /// The fault to report if neither operand of `&&` or `||` is decisive: the first, as in the server, unless the
    /// second aborts the evaluation or is undecided.
    pub(crate) fn of_both(first: EvaluationError, second: EvaluationError) -> EvaluationError {
        match (&first, &second) {
            (EvaluationError::Error(_), EvaluationError::Undecided(_) | EvaluationError::Abort(_)) => second,
            _ => first,
        }
    }

    /// Whether nothing that follows can change the result, except that a decisive operand of `||` overrides an
    /// undecided one.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, EvaluationError::Error(_))
    }
}
