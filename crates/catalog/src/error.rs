//! Why OLM, or one of its libraries, refuses something.

use gantry_k8s_cel::golang::GoParseError;

/// Why OLM refuses a version, a range, or a part of a catalog or of a bundle. Displays OLM's text, or that of its
/// library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OlmError(String);

impl From<String> for OlmError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<OlmError> for String {
    fn from(error: OlmError) -> Self {
        error.0
    }
}

impl From<GoParseError> for OlmError {
    fn from(error: GoParseError) -> Self {
        Self(error.into())
    }
}
