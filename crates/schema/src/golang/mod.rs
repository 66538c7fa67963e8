//! What the server leaves to Go's standard library: durations, points in time, addresses and URLs, with its quirks.

pub mod duration;
pub(crate) mod ip;
pub mod time;
pub(crate) mod url;

pub use time::Timestamp;
