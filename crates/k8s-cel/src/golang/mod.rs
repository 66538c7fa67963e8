//! What the server delegates to Go libraries: durations, timestamps, addresses, URLs and semantic versions, with their
//! quirks.

pub mod duration;
pub(crate) mod ip;
pub mod semver;
pub mod time;
pub mod url;

pub use time::Timestamp;
