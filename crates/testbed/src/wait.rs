//! Waiting for conditions.

use std::thread;
use std::time::{Duration, Instant};

/// Waits until `probe` returns a value, and returns it.
///
/// # Panics
///
/// If there is no value after a minute; the message includes `what`.
#[track_caller]
pub fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    within_a_minute(probe).unwrap_or_else(|| panic!("timed out after a minute waiting for: {what}"))
}

pub(crate) fn within_a_minute<T>(probe: impl FnMut() -> Option<T>) -> Option<T> {
    within_minutes(1, probe)
}

pub(crate) fn within_minutes<T>(minutes: u64, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + Duration::from_secs(60 * minutes);
    loop {
        let found = probe();
        if found.is_some() || Instant::now() > deadline {
            return found;
        }
        thread::sleep(Duration::from_millis(20));
    }
}
