//! Why an expression has no value.

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A runtime error that the API server meets as well, in its words.
    Error(String),
    /// An internal error that ends the evaluation on the server: no `||` and no macro gets over it.
    Abort(String),
    /// Something that only we cannot evaluate: nothing may be concluded from it.
    Undecided(String),
}

/// The value of an expression, or why it has none.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A runtime error with the server's text.
    pub(crate) fn error(text: impl Into<String>) -> Fault {
        Fault::Error(text.into())
    }

    /// The operator or function is not defined for the types of its arguments.
    pub(crate) fn no_such_overload() -> Fault {
        Fault::error("no such overload")
    }

    /// The one of two faults to report when neither operand of `&&` or `||` decides: what the server reports is the
    /// first, unless the second is one that it does not get over or that we do not know.
    pub(crate) fn of_both(first: Fault, second: Fault) -> Fault {
        match (&first, &second) {
            (Fault::Error(_), Fault::Undecided(_) | Fault::Abort(_)) => second,
            _ => first,
        }
    }

    /// Whether nothing that follows can change the result, a decisive operand of `||` excepted where we do not know.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Fault::Error(_))
    }
}
