//! What the server leaves to Go's libraries: durations, points in time, addresses, URLs and semantic versions, with their quirks.

pub mod duration;
pub(crate) mod ip;
pub mod semver;
pub mod time;
pub(crate) mod url;

pub use time::Timestamp;
