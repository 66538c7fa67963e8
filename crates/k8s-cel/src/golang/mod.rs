//! What the server delegates to Go libraries: durations, timestamps, addresses, URLs and semantic versions, with their
//! quirks.

pub mod duration;
pub(crate) mod ip;
pub mod semver;
pub mod time;
pub mod url;

pub use time::Timestamp;

/// A text that Go's library cannot parse. Displays the library's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GoParseError(String);

impl From<String> for GoParseError {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<GoParseError> for String {
    fn from(error: GoParseError) -> Self {
        error.0
    }
}
