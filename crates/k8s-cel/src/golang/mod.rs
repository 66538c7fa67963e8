//! What the server delegates to Go libraries: durations, timestamps, addresses, URLs and semantic versions, with their
//! quirks.

pub mod duration;
pub(crate) mod ip;
pub mod semver;
pub mod time;
pub mod url;

pub use time::Timestamp;

use std::fmt;

/// A text that Go's library cannot parse. Displays the library's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoParseError(String);

impl fmt::Display for GoParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for GoParseError {}

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
